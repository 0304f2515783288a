"""Walks through a trace of the column-wise NPU and executes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lstmsim.errors import ReplayError
from lstmsim.numerics.golden import NetworkRun
from lstmsim.program.program import Operation, Program
from lstmsim.program.trace import Trace
from lstmsim.replay.array import PeArray
from lstmsim.replay.array_work import ArrayWork
from lstmsim.replay.numbers import JobNumbers
from lstmsim.replay.tail_work import TailWork
from lstmsim.replay.work import Place, Work
from lstmsim.targets.column_npu import ColumnNpu
from lstmsim.targets.column_passes import ARRAY
from lstmsim.workload.scenario import Scenario

__all__ = ["replay"]

_COLUMNS = ("start", "core", "unit", "context", "task", "phase", "iteration", "operation", "count", "cycles")


@dataclass(eq=False)
class _Units:
    """Until when each unit of each core is busy, and with which thread; two things at once are an error, and so is a
    change of the array's thread without the cycles that it takes."""

    until: dict[tuple[int, int], int] = field(default_factory=dict)
    thread: dict[int, int] = field(default_factory=dict)

    def take(self, core: int, unit: int, start: int, cycles: int) -> None:
        free = self.until.get((core, unit), 0)
        if start < free:
            raise ReplayError(f"unit {unit} of core {core} starts something at cycle {start}, but is busy until {free}")
        self.until[core, unit] = start + cycles

    def turn(self, core: int, context: int, start: int, switch_cycles: int) -> None:
        """The array of a core goes on with a thread; the active one at cycle 0 is thread 0."""
        if self.thread.get(core, 0) != context:
            free = self.until.get((core, ARRAY), 0) + switch_cycles
            if start < free:
                text = f"the array of core {core} turns to thread {context} at cycle {start}"
                raise ReplayError(f"{text}, but the switch takes until {free}")
        self.thread[core] = context


def replay(
    scenario: Scenario,
    program: Program,
    trace: Trace,
    numbers: Mapping[int, JobNumbers],
    progress: Callable[[int, int], None] | None = None,
) -> Mapping[int, NetworkRun]:
    """What the jobs in `numbers` computed; see `lstmsim.replay.replay`."""
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    arrays = [PeArray(core.ep, core.vp, core.tree_inputs, core.cat) for core in chip.cores]
    works = {}
    for index, each in numbers.items():
        core_index = int(trace.task("core")[index])
        work = Work(scenario.jobs[index], chip.cores[core_index], each)
        tiles = ArrayWork(work, arrays[core_index])
        works[index] = (work, tiles, TailWork(work, tiles))
    _check_contexts(scenario, trace)
    units = _Units()
    issued: dict[tuple[int, int, int, int], int] = {}
    rows = zip(*(trace.issue(name).tolist() for name in _COLUMNS), strict=True)
    for number, (start, core, unit, context, task, phase, iteration, index, count, cycles) in enumerate(rows):
        if progress and number % 1000 == 0:
            progress(number, len(trace.issues))
        if unit == ARRAY:
            units.turn(core, context, start, chip.cores[core].switch_cycles)
        body = program.tasks[task].phases(program.cores[core].kind)[phase]
        operation = body.body.operations[index]
        step = body.step(iteration, operation.ahead)
        if task not in works:
            units.take(core, unit, start, count * cycles)
            continue
        if (core, context) != (int(trace.task("core")[task]), int(trace.task("context")[task])):
            raise ReplayError(f"job {scenario.jobs[task].name} issues on core {core}, thread {context}, not on its own")
        before = issued.get((task, phase, iteration, index), 0)
        issued[task, phase, iteration, index] = before + count
        work, tiles, tail = works[task]
        if unit != ARRAY:
            layer, direction, block, _, stage, segment = operation.place
            block_place = Place(layer, direction, step, stage, block)
            units.take(core, unit, start, work.turns(block_place))
            tail.finish(block_place, segment, start)
            continue
        units.take(core, unit, start, count)
        for turn in range(count):
            place, group = _tile(operation, step, before + turn, work.core.block_order)
            tiles.tile(place, group, start + turn)
    ends = trace.task("finish").tolist()
    return {index: work.result(ends[index]) for index, (work, _, _) in works.items()}


def _tile(operation: Operation, step: int, turn: int, block_order: str) -> tuple[Place, int]:
    """Place and column group of the operation's issue number `turn`: a run goes on to the next group or block."""
    layer, direction, block, group, stage = operation.place
    blocks, groups = (turn, 0) if block_order == "column" else (0, turn)
    return Place(layer, direction, step, stage, block + blocks), group + groups


def _check_contexts(scenario: Scenario, trace: Trace) -> None:
    """A thread holds one job at a time, and none before it has arrived."""
    held: dict[tuple[int, int], int] = {}
    columns = ("admitted", "core", "context", "finish")
    rows = zip(*(trace.task(name).tolist() for name in columns), range(len(trace.tasks)), strict=True)
    for admitted, core, context, finish, task in sorted(rows):
        name = scenario.jobs[task].name
        if admitted < scenario.jobs[task].arrival:
            raise ReplayError(f"job {name} is admitted at cycle {admitted}, before it arrives")
        if admitted < held.get((core, context), 0):
            raise ReplayError(f"job {name} enters thread {context} of core {core} at {admitted}, which holds another")
        held[core, context] = finish
