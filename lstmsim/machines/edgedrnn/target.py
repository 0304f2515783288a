"""EdgeDRNN as code that knows no machine sees it: lowering, what is refused, changes worth a try."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.machines.assembly import Parts, PerStep, Phases, assemble
from lstmsim.machines.change import OTHER_NUMBERS, Change, detail_of
from lstmsim.machines.edgedrnn.chip import DEPTHS, LANES, MOST_CHANGE, DeltaCore, EdgeDrnn
from lstmsim.machines.edgedrnn.lowering import MAC, UNITS, Lowering, Timing
from lstmsim.machines.target import Evidence, Fidelity, MemoryRate, Target
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job, claims_of, for_data
from lstmsim.program.program import Buffer, Core, Program

#: Most operations of a job: each layer-step has operations of its own, which are held.
MOST_HELD = 4_000_000
#: Operations of an entry: its scan, its passage of the multipliers, a command, beats (two kinds if they come slowly).
_OF_ENTRY = 5


def _columns(model: Model) -> int:
    return sum(1 + layer.input + layer.hidden for layer in model.layers)


@lru_cache(32)
def _lowered(job: Job, core: DeltaCore) -> Phases:
    from lstmsim.machines.edgedrnn.network import entries, sizes_of

    memory, sizes = core.memory, sizes_of(job.model, core.pe)
    timing = Timing(memory.latency, memory.period, memory.gap, memory.outstanding)
    made = Lowering(timing, reset=core.reset_cycles)
    for number, own in enumerate(entries(job, core.pe, core.threshold.registers)):
        step, layer = divmod(number, len(sizes))
        made.add(own, sizes[layer], step, layer)
    return tuple(made.phases)


def _phases(job: Job, core: DeltaCore) -> Phases:
    """The phases of a job: the same object for jobs that differ in nothing that they depend on."""
    bare = Job("", job.model, job.steps, density=job.density, numbers=job.numbers)
    return _lowered(bare, core)


#: Name of a change -> the fields of a core that it changes; None: there is no such core.
_OF_CORES: dict[str, Callable[[DeltaCore], dict[str, Any] | None]] = {
    "lanes doubled": lambda core: {"pe": 2 * core.pe} if 2 * core.pe in LANES else None,
    "thresholds doubled": lambda core: {"threshold": _thresholds(core, 2)},
    "thresholds halved": lambda core: {"threshold": _thresholds(core, 0.5)},
    "FIFO deeper": lambda core: {"fifo": DEPTHS[DEPTHS.index(core.fifo) + 1]} if core.fifo < DEPTHS[-1] else None,
    "memory latency halved": lambda core: {"memory": replace(core.memory, latency=core.memory.latency // 2)},
    "one more command under way": lambda core: (
        {"memory": replace(core.memory, outstanding=core.memory.outstanding + 1)} if core.memory.outstanding else None
    ),
}


def _thresholds(core: DeltaCore, factor: float) -> Any:
    own = core.threshold
    return replace(own, x=min(factor * own.x, MOST_CHANGE), h=min(factor * own.h, MOST_CHANGE))


class _EdgeTarget(Target):
    """EdgeDRNN. Jobs run one after another on a core, layer after layer within a step."""

    kind: ClassVar[str] = "edgedrnn"
    title: ClassVar[str] = "delta-GRU accelerator"
    chip: ClassVar[type] = EdgeDrnn
    core: ClassVar[type] = DeltaCore
    counts: ClassVar[tuple[str, ...]] = ("lanes",)
    other_numbers: ClassVar[str] = (
        "an EdgeDRNN computes in its own fixed point (8-bit weights, 16-bit vectors, tables of 4 bits), not in this one"
    )
    fidelity: ClassVar[Fidelity] = Fidelity(
        exact=(
            "the public RTL of EdgeDRNN (commit 2f57fc6), cycle by cycle and bit by bit, on 89 recorded runs, inside "
            "the sizes of docs/edgedrnn.md",
        ),
        assumed=(
            "the memory of the weights, which is outside the RTL; the reset before a job; in presets the lanes, the "
            "clock and the thresholds, which are from memory and not verified",
        ),
    )

    def lower(self, chip: EdgeDrnn, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        claims = claims_of(jobs, len(chip.cores))
        for each in claims.different:
            self.check(chip, each.job)
        refuse(
            Mistake(f"job {job.name}: steps", f"takes up to {most:,} operations of its own, more than {MOST_HELD:,}")
            for job, _, _ in claims.jobs
            if (most := job.steps * self.per_step(chip.cores, job.model).most) > MOST_HELD
        )
        parts = Parts(
            self.per_step,
            _phases,
            lambda core: (Buffer("entry of the FIFO", core.fifo),),
            lambda kind, core: Core(kind, UNITS, 1, MAC),
        )
        return assemble(chip.cores, claims, parts, templates=templates)

    def check(self, chip: EdgeDrnn, job: Job) -> None:
        """`InputError` if no core can run the job, or if it asks for what the machine does not have."""
        self.check_job(chip.cores, job)
        lanes = [chip.cores[each].pe for each in job.allowed(len(chip.cores))]
        where = f"job {job.name}"
        if job.frame_interval and 2 in lanes:
            text = "must be 0 on cores of 2 lanes, whose results are wrong where an input comes late"
            raise InputError(Mistake(f"{where}: frame_interval", text))
        if job.preempts:
            text = "the machine keeps sums from step to step, which a job that is stopped would lose"
            raise InputError(Mistake(f"{where}: preemption", text))
        if job.states_of is not None or job.initial not in ("", "zero"):
            raise InputError(Mistake(f"{where}: initial", "states begin at 0 on this machine: a reset clears them"))

    def per_step(
        self, cores: Sequence[DeltaCore], model: Model, batch: int = 1, split: str = "", members: int = 1
    ) -> PerStep:
        most = _OF_ENTRY * _columns(model) + 2 * len(model.layers)
        return PerStep(most, most)

    def evidence(
        self, chip: EdgeDrnn, jobs: Sequence[Job], *, bits: bool, preset: str, changed: Collection[str]
    ) -> Evidence:
        """The RTL, whose memory of weights is outside."""
        text = "every cycle equal to EdgeDRNN's public RTL on 89 recorded runs"
        inside = f"sizes of docs/edgedrnn.md, section 2; the memory of the weights is not in the RTL; {for_data(jobs)}"
        return Evidence(text, inside, "EdgeDRNN's RTL, on 89 recorded runs (cycles depend on the data)", outside=False)

    def reads_numbers(self, chip: EdgeDrnn) -> bool:
        return True

    def varies(self, chip: EdgeDrnn) -> bool:
        """No: the numbers of jobs are read anew."""
        return False

    def left_out(self, chip: EdgeDrnn, jobs: Sequence[Job]) -> float | None:
        from lstmsim.machines.edgedrnn.network import left_out

        cores = [chip.cores[job.allowed(len(chip.cores))[0]] for job in jobs]
        pairs = [left_out(job, core.pe, core.threshold.registers) for job, core in zip(jobs, cores, strict=True)]
        total = sum(every for _, every in pairs)
        return 1 - sum(sent for sent, _ in pairs) / total if total else None

    def chip_counts(self, chip: EdgeDrnn) -> Mapping[str, int]:
        return {"lanes": sum(core.pe for core in chip.cores)}

    def memory_rate(self, chip: EdgeDrnn) -> MemoryRate | None:
        """A beat of weights, a byte a lane, each period."""
        lanes = sum(core.pe / core.memory.period for core in chip.cores)
        return MemoryRate(lanes, 1, "pe, memory.period")

    def changes(self, chip: EdgeDrnn, jobs: Sequence[Job]) -> Sequence[Change]:
        """What a core has more of, or sends less; thresholds where numbers decide."""
        tried = []
        drawn = all(job.density is not None for job in jobs)
        for name, change in _OF_CORES.items():
            pairs = [(core, new) for core in chip.cores if (new := change(core))]
            if len(pairs) < len(chip.cores) or (drawn and "thresholds" in name):
                continue
            detail = detail_of([(_Flat(core), _flat(new)) for core, new in pairs])
            try:
                changed = replace(chip, cores=tuple(replace(core, **new) for core, new in pairs))
                for job in jobs:
                    self.check(changed, job)
            except InputError as error:
                tried.append(Change(name, detail, None, tuple(jobs), error.mistakes[0].sentence))
                continue
            if changed != chip:
                no_price = OTHER_NUMBERS if "thresholds" in name else ""
                tried.append(Change(name, detail, changed, tuple(jobs), no_price=no_price))
        return tried


class _Flat:
    """A core whose memory and thresholds are read like keys of its own: `memory.latency`."""

    def __init__(self, core: DeltaCore) -> None:
        self._core = core

    def __getattr__(self, name: str) -> object:
        return attrgetter(name)(self._core)


def _flat(new: Mapping[str, Any]) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, value in new.items():
        parts = (
            {f"{key}.{each.name}": getattr(value, each.name) for each in fields(value)} if is_dataclass(value) else {}
        )
        made |= parts or {key: value}
    return made


TARGET = _EdgeTarget()
