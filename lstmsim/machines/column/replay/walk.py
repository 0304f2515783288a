"""The walk through a trace of the column-wise NPU, which executes the trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.machines.column.passes import ARRAY, TAIL
from lstmsim.machines.column.replay.array import PeArray
from lstmsim.machines.column.replay.contents import check_lasting, warm_tasks
from lstmsim.machines.column.replay.cut import Cut
from lstmsim.machines.column.replay.job_work import JobWork
from lstmsim.machines.column.replay.job_work import start as start_job
from lstmsim.machines.column.replay.streams import streamed_block, streams_of
from lstmsim.machines.column.replay.units import Units
from lstmsim.machines.column.replay.work import Place
from lstmsim.machines.seats import Seats, seats_of
from lstmsim.model.numerics.golden import NetworkRun
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.scenario import Scenario
from lstmsim.program.program import Operation, Program
from lstmsim.program.trace import Trace
from lstmsim.program.trace_tables import ISSUES

__all__ = ["replay"]

#: Columns that say what issued and when. The causes of waits are left out: the replay counts on its own.
_COLUMNS = ISSUES.names[: ISSUES.place("cycles") + 1]


def replay(
    scenario: Scenario,
    program: Program,
    trace: Trace,
    numbers: Mapping[int, JobNumbers],
    progress: Callable[[int, int], None] | None = None,
) -> Mapping[int, NetworkRun]:
    """Compute the results of the jobs in `numbers`; see `lstmsim.analysis.replay.replay`."""
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    seats = seats_of(scenario, program, trace)
    works = _works(scenario, program, trace, numbers, seats)
    pauses = {task: seats.pauses(task) for task in works}
    ends = trace.task("finish").tolist()
    waiting = {task for task in works if numbers[task].follows is not None}
    units = Units()
    issued: dict[tuple[int, int, int, int], int] = {}
    rows = zip(*(trace.issue(name).tolist() for name in _COLUMNS), strict=True)
    for number, (start, core, unit, context, task, phase, iteration, index, count, cycles) in enumerate(rows):
        if progress and number % 1000 == 0:
            progress(number, len(trace.issues))
        if unit == ARRAY and core < len(chip.cores):
            units.turn(core, context, start, chip.cores[core].switch_cycles)
        body = program.tasks[task].phases(program.cores[seats.core(task)].kind, len(seats.members[task]))[phase]
        operation = body.body.operations[index]
        if unit != operation.unit:
            raise ReplayError(
                f"job {seats.names[task]}: unit {unit} of core {core} does at {start} what is not its own"
            )
        seats.check(task, operation.member, (core, context), start, start + count * cycles)
        if task not in works:
            units.take(core, unit, start, count * cycles)
            continue
        if task in waiting:
            waiting.remove(task)
            _follow(task, works, numbers, ends)
        while pauses[task] and start >= pauses[task][0][1]:
            works[task].rest(pauses[task].pop(0)[0])
        before = issued.get((task, phase, iteration, index), 0)
        issued[task, phase, iteration, index] = before + count
        one = _Issue(operation, body.step(iteration, operation.ahead), start, before, count, cycles)
        units.take(core, unit, start, _execute(works[task], one, body.body.operations, index))
    for task, left in pauses.items():
        for paused, _ in left:
            works[task].rest(paused)
    return {index: work.result(ends[index]) for index, work in works.items()}


def _follow(task: int, works: Mapping[int, JobWork], numbers: Mapping[int, JobNumbers], ends: Sequence[int]) -> None:
    """Begin a job that follows another, with the last states of that other job, from its finish on."""
    before = numbers[task].follows
    if before is None or before not in works:
        raise ReplayError(f"job {works[task].job.name} follows a job that was turned away, which has no last states")
    works[task].begin(numbers[task].after(works[before].result(ends[before])), ends[before])


def _works(
    scenario: Scenario, program: Program, trace: Trace, numbers: Mapping[int, JobNumbers], seats: Seats
) -> dict[int, JobWork]:
    """Give the jobs with numbers that were not turned away, before their first tile."""
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    arrays = [PeArray(core.ep, core.vp, core.tree_inputs, core.cat) for core in chip.cores]
    check_lasting(scenario, program, seats)
    warm = warm_tasks(program, trace, seats)
    works = {}
    for index, each in numbers.items():
        if not seats.ran(index):
            continue
        job, task, first = scenario.jobs[index], program.tasks[index], seats.core(index)
        # the memory is no member
        members = sum(seats.core(index, member) < len(chip.cores) for member in seats.members[index])
        cores = tuple(seats.core(index, member) for member in range(members))
        weights = None
        if task.content is not None:
            phases = task.phases(program.cores[first].kind)
            weights = streams_of(job, chip, Cut(job.model, job.split_over(members), cores), phases, index in warm)
        arrived = int(trace.task("arrived")[index])
        works[index] = start_job(job, chip, cores, each, arrays[first], arrived, weights)
    return works


class _Issue(NamedTuple):
    """A row of the trace: issues of one operation.

    operation: the operation.
    step: the time step.
    start: cycle of the first issue.
    before: issues of the operation in earlier rows.
    issues: issues in this row.
    cycles: cycles of one issue.
    """

    operation: Operation
    step: int
    start: int
    before: int
    issues: int
    cycles: int


def _execute(work: JobWork, one: _Issue, body: Sequence[Operation], index: int) -> int:
    """Execute a row of the trace, and give the cycles for which the row occupies its unit."""
    operation, member, taken = one.operation, one.operation.member, one.issues * one.cycles
    if work.weights is not None and member == len(work.tiles):
        if operation.place:
            block = streamed_block(body, index, len(work.tiles))
            work.weights.stream(block, one.step, one.start, taken)
        else:
            work.weights.load(one.start, taken)
        return taken
    if operation.unit == ARRAY:
        for turn in range(one.issues):
            place, group = _tile(operation, one.step, one.before + turn, work.core.block_order)
            work.tile(member, place, group, one.start + turn)
        return one.issues
    layer, direction, block_number, _, stage, segment = operation.place
    place = Place(layer, direction, one.step, stage, block_number)
    if operation.unit == TAIL:
        work.tails[member].finish(place, segment, one.start)
        return work.turns(member, place)
    work.send(member, place, segment, _vector(body, index), one.start)
    return work.sending_cycles(member, place)


def _vector(body: Sequence[Operation], index: int) -> int:
    """Give the number of the vector that an exchange operation sends; a row block's exchanges stand in a row."""
    first = index
    while first and all(
        getattr(body[first - 1], name) == getattr(body[index], name) for name in ("unit", "member", "place")
    ):
        first -= 1
    return index - first


def _tile(operation: Operation, step: int, turn: int, block_order: str) -> tuple[Place, int]:
    """Give the place and the column group of issue number `turn`: a run goes on to the next group or block."""
    layer, direction, block, group, stage = operation.place
    blocks, groups = (turn, 0) if block_order == "column" else (0, turn)
    return Place(layer, direction, step, stage, block + blocks), group + groups
