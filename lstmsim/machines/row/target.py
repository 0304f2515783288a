"""The row-wise NPU as code that knows no machine sees it: files, lowering (docs/row_npu.md), changes worth a try.

Lowering makes one phase for each block of a job's plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from lstmsim.base.keys import described, keys_of
from lstmsim.machines.assembly import Parts, PerStep, assemble
from lstmsim.machines.change import Change, detail_of, halved, one_more_core
from lstmsim.machines.row.npu import Dispatch, RowCore, RowNpu, Shape
from lstmsim.machines.row.plan import PROGRAMS, Block, plan
from lstmsim.machines.row.timing import MVU, UNITS, BlockTimer, Wait, Written
from lstmsim.machines.target import Evidence, Fault, Fidelity, Target
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job, claims_of
from lstmsim.program.operations import Operation
from lstmsim.program.program import Body, Core, Phase, Program, Unit

if TYPE_CHECKING:
    from lstmsim.machines.hardware import Hardware


#: Numbers that layers of a cell have from the core, where `by_cell` leaves them out.
_GENERAL = ("dispatch_cycles", "start_cycles")


#: What an operation waits for: the columns of a row of `needs`, but for barriers.
Need = tuple[int, int, int, int, int, bool]

#: First letters of the units that pictures do not show.
_HIDDEN = ("fetch", "decode", "serializer")


class _Earlier(NamedTuple):
    """The last writer of a name in a phase."""

    phase: int
    written: Written  # the operation that wrote the name
    gap: int = 0  # empty slots since then, if the name is a unit

    def need(self, delay: int, *, last: bool) -> Need:
        """The wait for the writer in the same iteration, or (`last`) in the last iteration of its phase."""
        own = self.written
        return own.operation, delay + own.cycles - 1 + self.gap, own.cause, 0, self.phase, last


class _Writers(NamedTuple):
    """The writers of a name in earlier phases for which an operation can wait."""

    last: _Earlier  # the last writer
    # kind of block (a block without its items) -> its first writer. A batch has thousands of blocks of few kinds
    first: Mapping[Block, _Earlier]

    def passed(self, slots: int) -> _Writers:
        """The same writers after `slots` more empty slots."""
        first = {kind: each._replace(gap=each.gap + slots) for kind, each in self.first.items()}
        return _Writers(self.last._replace(gap=self.last.gap + slots), first)


Earlier = dict[str, _Writers]


def _needs(wait: Wait, block: Block, timer: BlockTimer, earlier: Earlier) -> list[Need]:
    """The dependences of an operation on a name that no operation before it in its block writes.

    block: its block, without the items.
    """
    own, before = timer.written.get(wait.name), earlier.get(wait.name)
    unit, needs = UNITS.index(wait.name) if wait.name in UNITS else None, []

    def later(gap: int) -> bool:
        """Whether it is later than operations of a unit follow each other anyway."""
        return unit is None or wait.delay + gap > 1

    gap = 0 if unit is None else timer.trailing[unit]
    if own is not None and block.repeat > 1 and later(gap):
        needs.append((own.operation, own.cycles - 1 + wait.delay + gap, own.cause, 1, -1, False))
    if before is not None and wait.name in block.matched and block in before.first:
        needs.append(before.first[block].need(wait.delay, last=False))
    elif before is not None and later(before.last.gap):
        # of the other direction all steps have been done when the last has
        needs.append(before.last.need(wait.delay, last=True))
    return needs


def _phase(core: RowCore, block: Block, number: int, earlier: Earlier, kind: tuple[bool, bool]) -> Phase:
    """The phase of a block. `earlier` gives the writers in other phases, and gets the names that this block writes."""
    timer = BlockTimer(core, *kind)
    for item in block.items:
        timer.add(item)
    alike = replace(block, items=())
    for wait in timer.waits:
        for need in _needs(wait, alike, timer, earlier):
            timer.need(wait.operation, need)
    for unit, name in enumerate(UNITS):
        if name not in timer.written and name in earlier:
            passed = timer.trailing[unit] * block.repeat
            earlier[name] = earlier[name].passed(passed) if passed else earlier[name]
    for name, written in timer.written.items():
        gap = timer.trailing[UNITS.index(name)] if name in UNITS else 0
        one, first = _Earlier(number, written, gap), earlier[name].first if name in earlier else {}
        earlier[name] = _Writers(one, first if alike in first else {**first, alike: one})
    return Phase(timer.body(), block.repeat, block.mirrored, block.first_step)


@lru_cache(maxsize=64)
def _phases(model: Model, core: RowCore, steps: int, batch: int, paced: bool) -> tuple[Phase, ...]:
    phases = []
    start_cycles = core.dispatch(model.layers[0].cell.name).start_cycles
    if start_cycles:
        start = Operation(0, start_cycles, result_cycles=start_cycles, label="start")
        phases.append(Phase(Body((start,)), 1))
    earlier: Earlier = {}
    dense = steps == 1 and not any(layer.cell.recurrent for layer in model.layers)
    for block in plan(model, steps, batch, core.batch):
        phases.append(_phase(core, block, len(phases), earlier, (dense, paced)))
    return tuple(phases)


def _operations_per_step(model: Model, core: RowCore, batch: int) -> int:
    """A bound on the operations of one step of a model in a batch. The operations are not made."""
    shape, total = Shape(core), 0
    for layer in model.layers:
        program = PROGRAMS[layer.cell.name](layer)
        for chain in (*program.x_part, *program.h_part):
            groups = shape.groups(chain.size)
            parts = groups if core.serializer_cycles else len(shape.chunks(groups))
            stores = len(shape.loader_words(chain.size)) + 1
            total += layer.directions * (7 + 5 * parts + 2 * stores)
        total += layer.directions * 2 * core.tiles + 2
    return total * -(-batch // core.batch)


def _core(kind: int, core: RowCore) -> Core:
    called = {UNITS[MVU]: "MVM"}
    units = tuple(
        Unit(name, "coarse", shown=not name.startswith(_HIDDEN), pipeline=called.get(name, "")) for name in UNITS
    )
    return Core(kind, units, 1, MVU)


#: Name of a change -> gives the fields of a core that it changes.
_OF_CORES: dict[str, Callable[[RowCore], dict[str, object]]] = {
    "faster dispatch": lambda core: {
        "dispatch_cycles": 1,
        "by_cell": tuple(Dispatch(each.cell, 1, each.start_cycles) for each in core.by_cell),
    },
    "latencies halved": lambda core: {"latency": replace(core.latency, **halved(core.latency))},
    "no start time": lambda core: {
        "start_cycles": 0,
        "by_cell": tuple(replace(each, start_cycles=0) for each in core.by_cell),
    },
    "engines doubled": lambda core: {"engines": 2 * core.engines},
    "wider vector pipe": lambda core: {"vector_lanes": 2 * core.vector_lanes},
    "faster serializer": lambda core: {"serializer_cycles": -(-core.serializer_cycles // 2)},
    "replicas doubled": lambda core: {"replicas": 2 * core.replicas},
}


def _room(chip: RowNpu, job: Job) -> int:
    """Inferences that run together on every core that the job may use."""
    return min(core.batch for core in [chip.cores[index] for index in job.allowed(len(chip.cores))])


def _dispatch_detail(chip: RowNpu, jobs: Sequence[Job]) -> str:
    cells = {job.model.layers[0].cell.name for job in jobs}
    reported = {f"dispatch_cycles {core.dispatch(cell).dispatch_cycles} -> 1" for core in chip.cores for cell in cells}
    return reported.pop() if len(reported) == 1 else "dispatch_cycles -> 1"


#: Preset -> what its cycles of the published workloads equal; the preset that is fitted.
_PUBLISHED = {"intel-npu-rtl": "Intel's RTL", "intel-npu-cpp": "Intel's own simulator"}
_FITTED = "brainwave-s10"
#: Least and most units of the workloads in published/intel_npu.csv, and most steps.
_SIZES = (256, 1792, 8)


def _published(job: Job) -> bool:
    """Whether a job lies in the range of the published workloads."""
    least, most, steps = _SIZES
    layers = job.model.layers
    plain = all(each.directions == 1 and each.cell.name in ("dense", "rnn", "gru-lbr0", "lstm") for each in layers)
    dense = all(each.cell.name == "dense" for each in layers)
    sizes = [size for each in layers for size in (each.hidden, each.input)]
    whole = job.batch in ((6, 18) if dense else (6,)) and not job.frame_interval and (dense or len(layers) == 1)
    return plain and whole and job.steps <= steps and least <= min(sizes) <= max(sizes) <= most


class _RowTarget(Target):
    """The row-wise NPU; in a file, what `by_cell` leaves out is as for all cells."""

    kind: ClassVar[str] = "row-npu"
    title: ClassVar[str] = "row-wise NPU"
    batches: ClassVar[bool] = True
    deals: ClassVar[bool] = False
    rounds: ClassVar[bool] = True
    chip: ClassVar[type] = RowNpu
    core: ClassVar[type] = RowCore
    counts: ClassVar[tuple[str, ...]] = ("threads", "tail_width")
    fidelity: ClassVar[Fidelity] = Fidelity(
        exact=(
            "its own timing contract (docs/row_npu.md), cycle by cycle: both engines and a model in the tests that "
            "steps through every cycle",
            "all 19 published workloads of the Intel NPU, for its RTL and for its own simulator, without a fitted "
            "number",
        ),
        assumed=(
            "of Brainwave two numbers for each cell, fitted on half of the DeepBench tasks, and a pipeline like the "
            "Intel NPU's: no evidence for other sizes",
            "endless queues",
        ),
    )

    def core_of(self, entry: Mapping[str, Any]) -> RowCore | Fault:
        by_cell = entry.get("by_cell") or {}
        for cell in by_cell:
            if cell not in PROGRAMS:
                return Fault((("by_cell", cell),), f"a row-npu has no program for cell {cell!r}", [*PROGRAMS])
        keys = keys_of(RowCore)
        general = {key: entry.get(key, keys[key].default) for key in _GENERAL}
        own = {
            cell: general | {key: value for key, value in each.items() if value is not None}
            for cell, each in by_cell.items()
        }
        return described(RowCore, {**entry, "by_cell": own})

    def lower(self, chip: RowNpu, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        def phases(job: Job, core: RowCore) -> tuple[Phase, ...]:
            return _phases(job.model, core, job.steps, job.batch, job.frame_interval > 0)

        parts = Parts(self.per_step, phases, lambda _: (), _core)
        claims = claims_of(jobs, len(chip.cores))
        for each in claims.different:
            self.check_job(chip.cores, each.job)
        return assemble(chip.cores, claims, parts, templates=templates)

    def per_step(
        self, cores: Sequence[RowCore], model: Model, batch: int = 1, split: str = "", members: int = 1
    ) -> PerStep:
        """Bounds on the operations of one step; a job runs on one core, so `split` and `members` do not matter."""
        most = max(_operations_per_step(model, core, batch) for core in cores)
        return PerStep(most, most)

    def evidence(
        self, chip: RowNpu, jobs: Sequence[Job], *, bits: bool, preset: str, changed: Collection[str]
    ) -> Evidence:
        """Intel's hardware or simulator for their presets, whatever the clock; for Brainwave's, fitted figures."""
        if preset == _FITTED and not changed:
            cells = {each.cell for core in chip.cores for each in core.by_cell}
            beyond = next(filter(None, (chip.cores[job.allowed(1)[0]].beyond_fit(job.model) for job in jobs)), None)
            sizes = f"one layer of {', '.join(sorted(cells))} of the sizes fitted, within 5 %"
            inside = f"outside: {beyond}" if beyond else sizes
            compared = f"published latencies, to which it was fitted{' for other jobs' if beyond else ''}"
            return Evidence("no hardware: fitted to published latencies", inside, compared, True, bool(beyond))
        if preset not in _PUBLISHED or set(changed) - {"frequency_mhz"}:
            return Evidence()
        least, most, steps = _SIZES
        sizes = (
            "one job of one layer of rnn, gru-lbr0 or lstm, or of dense layers, "
            f"{least} to {most} units, up to {steps} steps, a batch of 6"
        )
        outer = "several jobs" if len(jobs) > 1 else ""
        for job in jobs:
            if not _published(job) or chip.too_large(job):
                outer = outer or job.name
        name = _PUBLISHED[preset]
        what = f"{name}, 19 published workloads to the cycle"
        if outer:
            compared = f"{Evidence.compared} (outside the published workloads)"
            return Evidence(inside=f"outside what {what} equal ({sizes}): {outer}", compared=compared)
        compared = f"{name}, on 19 published workloads"
        return Evidence(what, f"the range of their sizes: {sizes}", compared, outside=False)

    def hardware(self) -> Hardware:
        from lstmsim.machines.row.hardware import HARDWARE

        return HARDWARE

    def chip_counts(self, chip: RowNpu) -> Mapping[str, int]:
        """A core runs one job at a time; its accumulators are no banks."""
        return {"threads": len(chip.cores), "tail_width": sum(core.vector_lanes * core.replicas for core in chip.cores)}

    def adders(self, chip: RowNpu) -> int:
        """Each engine's tree, the sum over the tiles, an accumulator a row: as many as multipliers."""
        return sum(core.vp * (core.ep - 1) + core.vp for core in chip.cores)

    def changes(self, chip: RowNpu, jobs: Sequence[Job]) -> Sequence[Change]:
        """Dispatch, batches, then the cores' parts; changes without effect are left out."""
        tried = []
        for name, change in _OF_CORES.items():
            pairs = [(core, change(core)) for core in chip.cores]
            cores = tuple(replace(core, **new) for core, new in pairs)  # type: ignore[arg-type]
            in_rounds = any(job.batch > _room(chip, job) for job in jobs)
            if cores == chip.cores or (name == "replicas doubled" and not in_rounds):
                continue
            detail = detail_of(pairs, unreported=("latency", "by_cell"))
            detail = _dispatch_detail(chip, jobs) if name == "faster dispatch" else detail
            tried.append(Change(name, detail, replace(chip, cores=cores), tuple(jobs)))
        filled = tuple(replace(job, batch=max(job.batch, _room(chip, job))) for job in jobs)
        if filled != tuple(jobs):
            sizes = sorted({f"batch {job.batch} -> {new.batch}" for job, new in zip(jobs, filled, strict=True)})
            detail = sizes[0] if len(sizes) == 1 else "batch of each job"
            tried.insert(1, Change("full batches", detail, chip, filled))
        return [*tried, *one_more_core(chip, jobs)]


TARGET = _RowTarget()
