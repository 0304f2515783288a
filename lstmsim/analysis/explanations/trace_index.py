"""An index of a trace: from an operation to its rows, from a row to the row before it on its unit, gates to openers.

All columns are numpy arrays, made in time linear in the rows: a trace has millions of rows, of which a path passes few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.accounts import issued_operations
from lstmsim.program.operations import Operation
from lstmsim.program.program import Phase, Program
from lstmsim.program.stall_reasons import CAUSES
from lstmsim.program.trace import Trace


class Opener(NamedTuple):
    """The last arrival at a gate: end of a row (`issues`), or finish (`ends`) or admission (`starts`) of a task."""

    cycle: int
    kind: str
    number: int


def openers(
    program: Program, trace: Trace, operations: list[Operation], numbers: NDArray[np.int64], end: NDArray[np.int64]
) -> dict[int, Opener]:
    """The opener of each gate of a run."""
    known: dict[int, Opener] = {}
    for gate, opener in (*_tasks(program, trace), *_rows(program, trace, operations, numbers, end)):
        if gate not in known or opener.cycle >= known[gate].cycle:
            known[gate] = opener
    return known


def _tasks(program: Program, trace: Trace) -> Iterator[tuple[int, Opener]]:
    admitted, finish = (trace.task(name).tolist() for name in ("admitted", "finish"))
    for number, task in enumerate(program.tasks):
        if task.starts is not None:
            yield task.starts, Opener(admitted[number], "starts", number)
        if task.ends is not None:
            yield task.ends, Opener(finish[number], "ends", number)


def _rows(
    program: Program, trace: Trace, operations: list[Operation], numbers: NDArray[np.int64], end: NDArray[np.int64]
) -> Iterator[tuple[int, Opener]]:
    arrives = np.array([-1 if each.arrives is None else each.arrives for each in operations], dtype=np.int64)
    kinds = [core.kind for core in program.cores]
    for row in np.flatnonzero(arrives[numbers] >= 0).tolist() if len(arrives) else ():
        task, phase, iteration = trace.issues[row, 4:7].tolist()
        phases = program.tasks[task].phases(kinds[int(trace.task("core")[task])], trace.spread(task))
        gate = phases[phase].gate(iteration, int(arrives[numbers[row]]))
        yield gate, Opener(int(end[row]), "issues", row)


Numbers = NDArray[np.int64]


class TraceIndex:
    """What the walk back through a trace asks for.

    Columns with one number for each row of `trace.issues`:

    start: cycle at which the row starts.
    end: cycle at which its last issue ends.
    last: cycle at which its last issue starts.
    task: its task.
    ready: cycle from which its operation lacked nothing.
    position: place of the row in `order`.

    Columns with one number for each position:

    order: the rows, unit by unit, in order of time.
    head: position of the first row of those that follow each other without a gap up to this position.
    """

    def __init__(self, program: Program, trace: Trace) -> None:
        self.program, self.trace = program, trace
        self.start, self.task = trace.issue("start"), trace.issue("task")
        self.cycles = trace.issue("cycles")
        self.end = self.start + trace.issue("count") * self.cycles
        # results and dependences count from here, also where the issue takes extra cycles
        self.last = self.end - np.array([each.cycles for each in self.operations], dtype=np.int64)[self.numbers]
        until = [trace.issue(f"{cause}_until") for cause in CAUSES]
        self.ready = np.maximum.reduce([trace.task("admitted")[self.task], *until])
        for task, resumed in zip(trace.pause("task").tolist(), trace.pause("resumed").tolist(), strict=True):
            later = (self.task == task) & (self.start >= resumed)
            self.ready[later] = np.maximum(self.ready[later], resumed)
        self.unit = self._way(trace.issue("core"), trace.issue("unit"), trace.issue("context"))
        # few units: 16 bits where they suffice, which numpy sorts by digits
        small = self.unit.astype(np.int16) if self.unit.max(initial=0) < 1 << 15 else self.unit
        self.order = np.argsort(small, kind="stable")
        self.position = np.empty_like(self.order)
        self.position[self.order] = np.arange(len(self.order))
        self.head = self._heads()

    @cached_property
    def _ways(self) -> Numbers:
        """How many ways each unit of each core has, shape (cores, units)."""
        cores = self.program.cores
        ways = np.ones((len(cores), max((len(core.units) for core in cores), default=1)), dtype=np.int64)
        for number, core in enumerate(cores):
            ways[number, : len(core.units)] = [unit.ways for unit in core.units]
        return ways

    def _way(self, core: Numbers, unit: Numbers, context: Numbers) -> Numbers:
        """Numbers for ways of units: each way issues one operation at a time."""
        ways = self._ways
        numbers: Numbers = (core * ways.shape[1] + unit) * ways.max(initial=1) + context % ways[core, unit]
        return numbers

    @cached_property
    def gates(self) -> dict[int, Opener]:
        """Who opened each gate."""
        return openers(self.program, self.trace, self.operations, self.numbers, self.end)

    def _heads(self) -> Numbers:
        unit, start, end = self.unit[self.order], self.start[self.order], self.end[self.order]
        first = np.ones(len(unit), dtype=bool)
        first[1:] = (unit[1:] != unit[:-1]) | (start[1:] != end[:-1])
        heads: Numbers = np.maximum.accumulate(np.where(first, np.arange(len(unit)), 0)) if len(unit) else self.order
        return heads

    def phases(self, task: int) -> tuple[Phase, ...]:
        """The phases that the task ran."""
        return self.program.tasks[task].phases(self.kind(task), self.trace.spread(task))

    def kind(self, task: int) -> int:
        """The kind of the core that the task ran on."""
        return self.program.cores[int(self.trace.task("core")[task])].kind

    @cached_property
    def _issued(self) -> tuple[list[Operation], Numbers]:
        return issued_operations(self.program, self.trace)

    @property
    def operations(self) -> list[Operation]:
        """All operations of the bodies that ran."""
        return self._issued[0]

    @property
    def numbers(self) -> Numbers:
        """For each row the place of its operation in `operations`."""
        return self._issued[1]

    def operation(self, row: int) -> Operation:
        """The operation that a row issued."""
        return self.operations[int(self.numbers[row])]

    @cached_property
    def _first(self) -> tuple[Numbers, Numbers, int]:
        """Numbers of operations."""
        tasks = self.program.tasks
        width = max((len(phases) for task in tasks for _, phases in task.variants), default=1)
        # over several cores a task may have more phases than on one
        width = max(width, *(len(each.phases) for task in tasks for each in task.wide), 1)
        first, size = (np.zeros((len(tasks), width), dtype=np.int64) for _ in range(2))
        total = 0
        for number in range(len(tasks)):
            if self.trace.task("core")[number] < 0:
                continue
            for index, phase in enumerate(self.phases(number)):
                first[number, index], size[number, index] = total, len(phase.body.operations)
                total += len(phase.body.operations) * phase.repeat
        return first, size, total

    @cached_property
    def _last_rows(self) -> Numbers:
        first, size, total = self._first
        where = self.task, self.trace.issue("phase")
        number = first[where] + self.trace.issue("iteration") * size[where] + self.trace.issue("operation")
        rows = np.full(total, -1, dtype=np.int64)
        # rows are in order of time, and of equal places the last assignment stays
        rows[number] = np.arange(len(number))
        return rows

    def last_row(self, task: int, phase: int, iteration: int, operation: int) -> int:
        """The row that holds the last issue of an operation; -1 if it was left out (nothing had to be loaded)."""
        first, size, _ = self._first
        return int(self._last_rows[first[task, phase] + iteration * size[task, phase] + operation])

    @cached_property
    def _result_cycles(self) -> Numbers:
        """For each row the cycles from the start of its last issue until its results are there."""
        return np.array([each.result_cycles for each in self.operations], dtype=np.int64)[self.numbers]

    @cached_property
    def _finishers(self) -> Numbers:
        result = self._result_cycles
        finish = self.trace.task("finish")
        rows = np.flatnonzero(self.last + result == finish[self.task])
        finishers = np.full(len(finish), -1, dtype=np.int64)
        # a task that only waits in the end, but for no gate, is ended by the last of its results
        lasts = np.array([task.until is not None for task in self.program.tasks], dtype=bool)
        order = np.argsort(self.last + result, kind="stable")
        order = order[~lasts[self.task[order]]]
        finishers[self.task[order]] = order
        finishers[self.task[rows]] = rows
        return finishers

    def finisher(self, task: int) -> int:
        """The row whose results end the task; of several the row that started last, then that of the highest unit."""
        return int(self._finishers[task])

    @cached_property
    def _switches(self) -> dict[int, tuple[Numbers, Numbers]]:
        trace = self.trace
        unit = self._way(trace.switch("core"), trace.switch("unit"), trace.switch("after"))
        end = trace.switch("start") + trace.switch("cycles")
        cycles = trace.switch("cycles")
        return {int(each): (end[unit == each], cycles[unit == each]) for each in np.unique(unit)}

    def switch_before(self, row: int, cycle: int) -> int:
        """How many cycles the switch took that ended on the row's unit at `cycle`; 0 if there was none."""
        known = self._switches.get(int(self.unit[row]))
        if known is None:
            return 0
        ends, cycles = known
        place = int(np.searchsorted(ends, cycle))
        return int(cycles[place]) if place < len(ends) and ends[place] == cycle else 0

    @cached_property
    def _left(self) -> dict[tuple[int, int, int], int]:
        core, context, finish, admitted = (
            self.trace.task(name).tolist() for name in ("core", "context", "finish", "admitted")
        )
        columns = enumerate(zip(core, context, finish, strict=True))
        return {key: number for number, key in columns if finish[number] > admitted[number]}

    def entered(self, task: int, cycle: int) -> bool:
        """Whether a task got a thread at `cycle`, because it was admitted or went on after a pause."""
        trace = self.trace
        resumed = (trace.pause("task") == task) & (trace.pause("resumed") == cycle)
        return bool(trace.task("admitted")[task] == cycle or resumed.any())

    def gave_up(self, cycle: int) -> bool:
        """Whether a task that had waited was turned away at `cycle`."""
        trace = self.trace
        away = (trace.task("core") < 0) & (trace.task("admitted") == cycle)
        return bool((away & (trace.task("arrived") < cycle)).any())

    def leaver(self, task: int, cycle: int) -> int | None:
        """The task that left the context of a task at `cycle`, or else one that left elsewhere."""
        trace = self.trace
        before = self._left.get((int(trace.task("core")[task]), int(trace.task("context")[task]), cycle))
        if before is not None:
            return before
        left = np.flatnonzero((trace.task("finish") == cycle) & (trace.task("admitted") < cycle))
        return min(left.tolist(), key=lambda each: (self.finisher(each) < 0, each), default=None)

    def room_for(self, task: int, cycle: int) -> int | None:
        """The row that made room for a task at `cycle` although no task left then; None if there is no such row."""
        trace = self.trace
        paused = trace.pause("task")[trace.pause("paused") == cycle]
        rows = np.flatnonzero(np.isin(self.task, paused) & (self.end <= cycle))
        if len(rows):
            return int(rows[np.argmax(self.end[rows])])
        # the last row that loaded a content which was on its way
        content = self.program.tasks[task].content
        same = [number for number, each in enumerate(self.program.tasks) if content and each.content == content]
        loads = np.isin(self.task, same) & (trace.issue("phase") < (content.loading if content else 0))
        rows = np.flatnonzero(loads & (self.last + self._result_cycles == cycle))
        return int(rows[-1]) if len(rows) else None

    def freer(self, task: int, phase: int, iteration: int, operation: int) -> tuple[int, int, int] | None:
        """(phase, iteration, operation) that freed the slot which an operation takes; None if a slot was free."""
        phases = self.phases(task)
        buffer = phases[phase].body.operations[operation].takes
        assert buffer is not None
        slots = self.program.tasks[task].slots(self.kind(task), self.trace.spread(task))[buffer].slots
        takers = [_places([each.takes for each in one.body.operations], buffer) for one in phases]
        before = sum(len(takers[number]) * phases[number].repeat for number in range(phase))
        number = before + iteration * len(takers[phase]) + takers[phase].index(operation) - slots
        if number < 0:
            return None
        for earlier, one in enumerate(phases):
            freers = _places([each.frees for each in one.body.operations], buffer)
            if number < len(freers) * one.repeat:
                return earlier, number // len(freers), freers[number % len(freers)]
            number -= len(freers) * one.repeat
        return None


def _places(values: Sequence[int | None], wanted: int) -> list[int]:
    return [index for index, value in enumerate(values) if value == wanted]
