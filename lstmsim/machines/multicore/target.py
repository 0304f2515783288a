"""The multi-core CPU as all other rooms see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from lstmsim.machines.assembly import PerStep
from lstmsim.machines.multicore.chip import CpuCore, MulticoreCpu, MulticoreEntries
from lstmsim.machines.multicore.jobs.lower import per_step
from lstmsim.machines.target import Fidelity, Target
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from lstmsim.program.program import Program

if TYPE_CHECKING:
    from lstmsim.machines.change import Change
    from lstmsim.machines.gemm import GemmThreads
    from lstmsim.model.figures import PlannedProducts


class _MulticoreTarget(MulticoreEntries, Target):
    """The multi-core CPU."""

    counts: ClassVar[tuple[str, ...]] = ("threads", "memories")
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

    def lower(self, chip: MulticoreCpu, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        """The Program of these jobs on that chip."""
        from lstmsim.machines.multicore.jobs.lower import lower

        return lower(chip, jobs, templates)

    def per_step(
        self, cores: Sequence[CpuCore], model: Model, batch: int = 1, split: str = "", members: int = 1
    ) -> PerStep:
        """Bounds on the operations of one step of a job on `members` cores."""
        return per_step(cores, model, batch, split, members)

    def chip_counts(self, chip: MulticoreCpu) -> Mapping[str, int]:
        """Threads, one on each core, and memories."""
        return {"threads": len(chip.cores), "memories": chip.view.domains}

    def changes(self, chip: MulticoreCpu, jobs: Sequence[Job]) -> Sequence[Change]:
        """Threads of the jobs, then the chip: what cores share, and the cores themselves."""
        from lstmsim.machines.multicore.what_if import changes

        return changes(chip, jobs)

    def gemm_threads(self) -> GemmThreads:
        """The planner and the executor of threads for a matrix product."""
        from lstmsim.machines.multicore.study import THREADS

        return THREADS

    def planned(self, chip: MulticoreCpu, jobs: Sequence[Job]) -> PlannedProducts:
        """The cut of each product of a time step, and what was rejected before it."""
        from lstmsim.machines.multicore.jobs.lower import planned_products

        return planned_products(chip.view, jobs)

    def begins_cold(self, chip: MulticoreCpu) -> bool:
        """Each job begins with empty caches."""
        return True

    def element_bytes(self, chip: MulticoreCpu) -> int:
        """Of all operands of products."""
        return chip.element_bytes

    def beside_cores(self, chip: MulticoreCpu, jobs: Sequence[Job]) -> tuple[str, ...]:
        """The last-level caches and the memories."""
        view = chip.view
        caches = f"{view.groups} of {view.llc_bytes:,} bytes, each for {chip.cores_per_llc} cores"
        memories = f"{view.domains}, each for {chip.cores_per_domain} cores"
        rate = f"a line of {chip.line} bytes takes {chip.memory_cycles_per_line} cycles, and is there {{}} cycles later"
        latency = f"{chip.memory_latency}"
        latency += f" (of another memory {chip.memory_latency + chip.remote_latency})" if view.domains > 1 else ""
        return (f"Last-level caches: {caches}.", f"Memories: {memories}; {rate.format(latency)}.")


TARGET = _MulticoreTarget()
