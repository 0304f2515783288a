"""The lowering of jobs on a row-wise NPU to a Program: one phase for each block of a job's plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from lstmsim.machines.assembly import Parts, assemble
from lstmsim.machines.row.cells import PROGRAMS
from lstmsim.machines.row.core import RowCore
from lstmsim.machines.row.entries import RowEntries
from lstmsim.machines.row.npu import RowNpu
from lstmsim.machines.row.plan import Block, plan
from lstmsim.machines.row.shape import Shape
from lstmsim.machines.row.timing import MVU, UNITS, BlockTimer, Wait, Written
from lstmsim.machines.sizes import PerStep
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from lstmsim.program.program import Body, Core, Dependence, Operation, Phase, Program, Unit
from lstmsim.program.rows import Name, rows_of

__all__ = ["lower", "operations_per_step", "per_step"]

#: First letters of the units that pictures do not show.
_HIDDEN = ("fetch", "decode", "serializer")


@dataclass(frozen=True)
class _Earlier:
    """The last writer of a name in a phase.

    phase, block: the phase and its block.
    written: the operation that wrote the name.
    gap: empty slots since then, if the name is a unit.
    """

    phase: int
    block: Block
    written: Written
    gap: int = 0

    def need(self, delay: int, *, last: bool) -> Dependence:
        """The wait for the writer in the same iteration, or (`last`) in the last iteration of its phase."""
        own = self.written
        delay += own.cycles - 1 + self.gap
        return Dependence(own.operation, delay, own.cause, phase=self.phase, mirrored=last)


@dataclass(frozen=True)
class _Writers:
    """The writers of a name in earlier phases for which an operation can wait.

    last: the last writer.
    first: kind of block (a block without its items) -> its first writer. A batch has thousands of blocks of few kinds.
    """

    last: _Earlier
    first: Mapping[Block, _Earlier]

    def passed(self, slots: int) -> _Writers:
        """The same writers after `slots` more empty slots."""
        first = {kind: replace(each, gap=each.gap + slots) for kind, each in self.first.items()}
        return _Writers(replace(self.last, gap=self.last.gap + slots), first)

    def and_then(self, each: _Earlier) -> _Writers:
        """The writers with one more, which is the last now."""
        return _Writers(each, {_kind(each.block): each} | dict(self.first))


Earlier = dict[str, _Writers]


def _kind(block: Block) -> Block:
    return replace(block, items=())


def _needs(wait: Wait, block: Block, timer: BlockTimer, earlier: Earlier) -> list[Dependence]:
    """The dependences of an operation on a name that no operation before it in its block writes."""
    own, before = timer.written.get(wait.name), earlier.get(wait.name)
    unit = UNITS.index(wait.name) if wait.name in UNITS else None
    needs = []
    if own is not None and block.repeat > 1:
        gap = 0 if unit is None else timer.trailing[unit]
        needs.append(Dependence(own.operation, own.cycles - 1 + wait.delay + gap, own.cause, lag=1))
    same = before.first.get(_kind(block)) if before is not None and wait.name in block.matched else None
    if same is not None:
        needs.append(same.need(wait.delay, last=False))
    elif before is not None:
        # of the other direction all steps have been done when the last has
        needs.append(before.last.need(wait.delay, last=True))
    # operations of a unit follow each other anyway
    return [need for need in needs if unit is None or need.delay > _length(need, own, before)]


def _length(need: Dependence, own: Written | None, before: _Writers | None) -> int:
    one = own if need.phase is None or before is None else before.last.written
    return 0 if one is None else one.cycles


def _phase(core: RowCore, block: Block, number: int, earlier: Earlier, kind: tuple[bool, bool]) -> Phase:
    """The phase of a block. `earlier` gives the writers in other phases, and gets the names that this block writes."""
    timer = BlockTimer(core, *kind)
    for item in block.items:
        timer.add(item)
    needs: dict[int, list[Dependence]] = {}
    for wait in timer.waits:
        needs.setdefault(wait.operation, []).extend(_needs(wait, block, timer, earlier))
    operations = [
        each._replace(needs=(*each.needs, *needs[i])) if i in needs else each for i, each in enumerate(timer.operations)
    ]
    for unit, name in enumerate(UNITS):
        if name not in timer.written and name in earlier:
            passed = timer.trailing[unit] * block.repeat
            earlier[name] = earlier[name].passed(passed) if passed else earlier[name]
    for name, written in timer.written.items():
        gap = timer.trailing[UNITS.index(name)] if name in UNITS else 0
        one = _Earlier(number, block, written, gap)
        earlier[name] = earlier[name].and_then(one) if name in earlier else _Writers(one, {_kind(block): one})
    # As rows a body takes less than half the memory, and no engine looks at its operations.
    body = Body.of_rows(rows_of(operations), [_name(each.label, each.place) for each in operations])
    return Phase(body, block.repeat, block.mirrored, block.first_step)


@lru_cache(maxsize=100_000)
def _name(label: str, place: tuple[int, ...]) -> Name:
    """The name of an operation, once for all that have it."""
    return label, place


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


def operations_per_step(model: Model, core: RowCore, batch: int) -> int:
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


def per_step(cores: Sequence[RowCore], model: Model, batch: int = 1, split: str = "", members: int = 1) -> PerStep:
    """Bounds on the operations of one step of a job; arguments as for `lstmsim.machines.target.Target.per_step`.

    A job runs on one core, so `split` and `members` do not matter.
    """
    most = max(operations_per_step(model, core, batch) for core in cores)
    return PerStep(most, most)


def lower(chip: RowNpu, jobs: Sequence[Job], templates: bool = False) -> Program:
    """Lower jobs to a Program; arguments and errors are those of `lstmsim.machines.lower`.

    >>> from lstmsim.engines import run
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> core = RowCore(7, 40, 40, vectors=3, replicas=2, chunk_groups=12, serializer_cycles=4)
    >>> job = Job("gemv", Model("m", (Layer(cell("dense"), 512, 512),)), steps=1, batch=6)
    >>> run(lower(RowNpu("c", 300, (core,)), [job])).makespan_cycles
    266
    """
    return assemble(chip.cores, jobs, partial(RowEntries().check_job, chip.cores), PARTS, templates=templates)


def _job_phases(job: Job, core: RowCore) -> tuple[Phase, ...]:
    return _phases(job.model, core, job.steps, job.batch, job.frame_interval > 0)


def _core(kind: int, core: RowCore) -> Core:
    called = {UNITS[MVU]: "MVM"}
    units = tuple(
        Unit(name, "coarse", shown=not name.startswith(_HIDDEN), pipeline=called.get(name, "")) for name in UNITS
    )
    return Core(kind, units, 1, MVU)


#: What `assemble` makes a Program of.
PARTS = Parts(per_step, _job_phases, lambda _: (), _core)
