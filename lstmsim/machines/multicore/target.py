"""The multi-core CPU as all other packages see it, and the changes to it that are worth a try."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from lstmsim.base.errors import InputError
from lstmsim.machines.assembly import PerStep
from lstmsim.machines.change import Change, detail_of
from lstmsim.machines.multicore.chip import MAX_CPU_CORES, CpuCore, MulticoreCpu, MulticoreEntries, up
from lstmsim.machines.multicore.jobs import bound_of, lower, planned_products, warm_text
from lstmsim.machines.target import Fidelity, MemoryRate, Target
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from lstmsim.program.program import Program

if TYPE_CHECKING:
    from lstmsim.model.figures import PlannedProducts


#: Name of a change -> the fields of the chip that it changes.
_OF_CHIP: dict[str, Callable[[MulticoreCpu], dict[str, Any]]] = {
    "barriers twice as fast": lambda chip: {"barrier_cycles": chip.barrier_cycles // 2},
    "memories faster": lambda chip: {"memory_cycles_per_line": up(chip.memory_cycles_per_line, 2)},
    "memory latency halved": lambda chip: {"memory_latency": up(chip.memory_latency, 2)},
    "last-level caches doubled": lambda chip: {"llc_sets": 2 * chip.llc_sets},
    "handovers twice as fast": lambda chip: {"handover_cycles": chip.handover_cycles // 2},
}
#: The same of each core.
_OF_CORES: dict[str, Callable[[CpuCore], dict[str, Any]]] = {
    "multiply-accumulates doubled": lambda core: {"macs_per_cycle": 2 * core.macs_per_cycle},
    "L2 doubled": lambda core: {"l2_sets": 2 * core.l2_sets},
    "micro-kernel calls twice as fast": lambda core: {"kernel_cycles": core.kernel_cycles // 2},
    "activations twice as fast": lambda core: {"activation_cycles": up(core.activation_cycles, 2)},
    # whole cycles for a line: 3 become 2, which is not twice as fast, so no name says twice
    "lines from L2 faster": lambda core: {"l2_cycles_per_line": up(core.l2_cycles_per_line, 2)},
    "lines from last-level caches faster": lambda core: {"llc_cycles_per_line": up(core.llc_cycles_per_line, 2)},
    "a core's lines from memory faster": lambda core: {
        "core_memory_cycles_per_line": up(core.core_memory_cycles_per_line, 2)
    },
}


def changes(chip: MulticoreCpu, jobs: Sequence[Job]) -> list[Change]:
    """List the changes to try, the most telling first; those without effect are left out."""
    tried = _of_threads(chip, jobs)
    if 2 * len(chip.cores) <= MAX_CPU_CORES:
        reported = f"{len(chip.cores)} -> {2 * len(chip.cores)}"
        tried.append(_changed(chip, "cores doubled", reported, {"cores": chip.cores * 2}, jobs))
    for name, of_chip in _OF_CHIP.items():
        new = of_chip(chip)
        if any(getattr(chip, key) != value for key, value in new.items()):
            tried.append(_changed(chip, name, detail_of([(chip, new)]), new, jobs))
    for name, of_core in _OF_CORES.items():
        new = of_core(chip.cores[0])
        if any(getattr(chip.cores[0], key) != value for key, value in new.items()):
            cores = (replace(chip.cores[0], **new),) * len(chip.cores)
            tried.append(_changed(chip, name, detail_of([(chip.cores[0], new)]), {"cores": cores}, jobs))
    return tried


def _changed(chip: MulticoreCpu, name: str, detail: str, new: Mapping[str, Any], jobs: Sequence[Job]) -> Change:
    """The change of some fields; a chip that is too large to be built says why."""
    try:
        return Change(name, detail, replace(chip, **new), tuple(jobs))
    except InputError as error:
        return Change(name, detail, None, tuple(jobs), error.mistakes[0].sentence)


def _of_threads(chip: MulticoreCpu, jobs: Sequence[Job]) -> list[Change]:
    """Half and twice as many threads for each job, as far as there are cores."""
    tried: list[Change] = []
    now = [job.threads or len(chip.cores) for job in jobs]
    halves = [max(1, each // 2) for each in now]
    twice = [min(2 * each, len(chip.cores)) for each in now]
    for name, new in (
        ("threads halved" if [2 * each for each in halves] == now else "fewer threads", halves),
        ("threads doubled" if twice == [2 * each for each in now] else "more threads", twice),
    ):
        if new != now:
            reported = {f"{one} -> {other}" for one, other in zip(now, new, strict=True)}
            detail = f"threads {min(reported)}" if len(reported) == 1 else "threads of each job"
            after = tuple(replace(job, threads=each) for job, each in zip(jobs, new, strict=True))
            tried.append(Change(name, detail, chip, after))
    return tried


class _MulticoreTarget(MulticoreEntries, Target):
    """The multi-core CPU."""

    counts: ClassVar[tuple[str, ...]] = ("threads", "memories")
    warms: ClassVar[bool] = True
    other_numbers: ClassVar[str] = "a multi-core CPU multiplies floating-point numbers, not fixed point"
    fidelity: ClassVar[Fidelity] = Fidelity(
        exact=(
            "its own timing contract (docs/multicore.md), cycle by cycle: both engines, and a model in the tests that "
            "is written from the text alone",
            "its golden cases, made by an independent model",
        ),
        assumed=(
            "the planner of threads, which is a reconstruction: the patent names conditions and gives no formula",
            "handovers, barriers, activations and the cost of a micro-kernel's call",
            "packing, as measured on a Zen 4",
            "no TLB, no prefetchers as units, no sharing of a last-level cache's rate, no SMT, one clock",
            "numbers of jobs, which are timed and not computed",
        ),
    )

    def memory_rate(self, chip: MulticoreCpu) -> MemoryRate:
        """A line of each memory in `memory_cycles_per_line` cycles."""
        rate = chip.domains * chip.line / chip.memory_cycles_per_line
        return MemoryRate(rate, chip.element_bytes, "line, memory_cycles_per_line, element_bytes")

    def lower(self, chip: MulticoreCpu, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        """The Program of these jobs on that chip."""
        return lower(chip, jobs, templates)

    def per_step(
        self, cores: Sequence[CpuCore], model: Model, batch: int = 1, split: str = "", members: int = 1
    ) -> PerStep:
        """Bounds on the operations of one step of a job on `members` cores.

        What cores share is not known here. It is taken as in a chip that says nothing about it; when jobs are lowered,
        they are counted again.
        """
        chip = MulticoreCpu("", 1000, (cores[0],))
        return bound_of(chip, model, batch, members, up(members, chip.cores_per_domain), 1)

    def chip_counts(self, chip: MulticoreCpu) -> Mapping[str, int]:
        """Threads, one on each core, and memories."""
        return {"threads": len(chip.cores), "memories": chip.domains}

    def changes(self, chip: MulticoreCpu, jobs: Sequence[Job]) -> Sequence[Change]:
        """Threads of the jobs, then the chip: what cores share, and the cores themselves."""
        return changes(chip, jobs)

    def planned(self, chip: MulticoreCpu, jobs: Sequence[Job]) -> PlannedProducts:
        """The cut of each product of a time step, and what was rejected before it."""
        return planned_products(chip.bare, jobs)

    def begins_cold(self, chip: MulticoreCpu) -> bool:
        """Each job begins with empty caches."""
        return True

    def element_bytes(self, chip: MulticoreCpu) -> int:
        """Of all operands of products."""
        return chip.element_bytes

    def shared_parts(self, chip: MulticoreCpu, jobs: Sequence[Job]) -> tuple[str, ...]:
        """The last-level caches and the memories."""
        caches = f"{chip.groups} of {chip.llc_bytes:,} bytes, each for {chip.cores_per_llc} cores"
        memories = f"{chip.domains}, each for {chip.cores_per_domain} cores"
        rate = f"a line of {chip.line} bytes takes {chip.memory_cycles_per_line} cycles, and is there {{}} cycles later"
        latency = f"{chip.memory_latency}"
        latency += f" (of another memory {chip.memory_latency + chip.remote_latency})" if chip.domains > 1 else ""
        warm = warm_text(chip.bare, jobs)
        return (f"Last-level caches: {caches}.", f"Memories: {memories}; {rate.format(latency)}.", *warm)


TARGET = _MulticoreTarget()
