"""An index of a trace, for the walk back through it: rows by units, who ended whom, who opened which barrier.

Columns are numpy arrays: a trace has millions of rows, a path passes few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.explanations.stints import Stints, stints_of
from lstmsim.program.accounts import issued_operations
from lstmsim.program.operations import Operation
from lstmsim.program.program import Phase, Program
from lstmsim.program.stall_reasons import CAUSES
from lstmsim.program.trace import Trace


class Opener(NamedTuple):
    """The last arrival at a barrier: end of a row (`issues`), or finish (`ends`) or admission (`starts`) of a task.

    tied: whether others arrived in the same cycle.
    """

    cycle: int
    kind: str
    number: int
    tied: bool = False


def openers(
    program: Program, trace: Trace, operations: list[Operation], numbers: NDArray[np.int64], end: NDArray[np.int64]
) -> dict[int, Opener]:
    """The opener of each barrier of a run."""
    known: dict[int, Opener] = {}
    for barrier, opener in (*_tasks(program, trace), *_rows(program, trace, operations, numbers, end)):
        before = known.get(barrier)
        if before is None or opener.cycle >= before.cycle:
            known[barrier] = opener._replace(tied=before is not None and opener.cycle == before.cycle)
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
        barrier = phases[phase].barrier(iteration, int(arrives[numbers[row]]))
        yield barrier, Opener(int(end[row]), "issues", row)


Numbers = NDArray[np.int64]


class TraceIndex:
    """An index of a trace, for the walk back through it.

    Columns with one number for each row of `trace.issues`:

    start: cycle at which the row starts.
    end: cycle at which its last issue ends.
    last: cycle at which its last issue starts.
    task: its task; of a batch the one that led it.
    stint: its place among `stints`.
    ready: cycle from which its operation lacked nothing.
    position: place of the row in `order`.

    Columns with one number for each position:

    order: the rows, unit by unit, in order of time.
    head: position of the first row of those that follow each other without a gap up to this position.
    """

    def __init__(self, program: Program, trace: Trace) -> None:
        self.program, self.trace = program, trace
        self.stints: Stints = stints_of(program, trace)
        self.stint = self.stints.of_row
        self.start, self.task = trace.issue("start"), trace.issue("task")
        self.cycles = trace.issue("cycles")
        self.end = self.start + trace.issue("count") * self.cycles
        # results and dependences count from here, also where the issue takes extra cycles
        self.last = self.end - np.array([each.cycles for each in self.operations], dtype=np.int64)[self.numbers]
        until = [trace.issue(f"{cause}_until") for cause in CAUSES]
        self.ready = np.maximum.reduce([self.stints.begin[self.stint], *until])
        self._put_off = trace.pause("batch") < 0
        pauses = (trace.pause(name)[self._put_off].tolist() for name in ("task", "resumed"))
        for task, resumed in zip(*pauses, strict=True):
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
    def _instances(self) -> Numbers:
        """How many instances each unit of each core has, shape (cores, units)."""
        cores = self.program.cores
        instances = np.ones((len(cores), max((len(core.units) for core in cores), default=1)), dtype=np.int64)
        for number, core in enumerate(cores):
            instances[number, : len(core.units)] = [unit.instances for unit in core.units]
        return instances

    def _way(self, core: Numbers, unit: Numbers, context: Numbers) -> Numbers:
        """Numbers for instances of units: each issues one operation at a time."""
        instances = self._instances
        numbers: Numbers = (core * instances.shape[1] + unit) * instances.max(initial=1) + context % instances[
            core, unit
        ]
        return numbers

    @cached_property
    def barriers(self) -> dict[int, Opener]:
        """Who opened each barrier."""
        return openers(self.program, self.trace, self.operations, self.numbers, self.end)

    def _heads(self) -> Numbers:
        unit, start, end = self.unit[self.order], self.start[self.order], self.end[self.order]
        first = np.ones(len(unit), dtype=bool)
        first[1:] = (unit[1:] != unit[:-1]) | (start[1:] != end[:-1])
        heads: Numbers = np.maximum.accumulate(np.where(first, np.arange(len(unit)), 0)) if len(unit) else self.order
        return heads

    def phases(self, stint: int) -> tuple[Phase, ...]:
        """The phases that a stint ran."""
        return self.stints.phases[stint]

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
        ran = self.stints.phases
        width = max((len(phases) for phases in ran.values()), default=1)
        first, size = (np.zeros((len(self.stints.task), width), dtype=np.int64) for _ in range(2))
        total = 0
        for number, phases in ran.items():
            for index, phase in enumerate(phases):
                first[number, index], size[number, index] = total, len(phase.body.operations)
                total += len(phase.body.operations) * phase.repeat
        return first, size, total

    @cached_property
    def _last_rows(self) -> Numbers:
        first, size, total = self._first
        where = self.stint, self.trace.issue("phase")
        number = first[where] + self.trace.issue("iteration") * size[where] + self.trace.issue("operation")
        rows = np.full(total, -1, dtype=np.int64)
        # rows are in order of time, and of equal places the last assignment stays
        rows[number] = np.arange(len(number))
        return rows

    def last_row(self, stint: int, phase: int, iteration: int, operation: int) -> int:
        """The row that holds the last issue of an operation; -1 if it was left out.

        That is so where nothing had to be loaded, and beyond the steps of a member of a ragged batch.
        """
        first, size, _ = self._first
        return int(self._last_rows[first[stint, phase] + iteration * size[stint, phase] + operation])

    @cached_property
    def _result_cycles(self) -> Numbers:
        """For each row the cycles from the start of its last issue until its results are there."""
        return np.array([each.result_cycles for each in self.operations], dtype=np.int64)[self.numbers]

    @cached_property
    def _ending(self) -> Numbers:
        """The rows whose results are there when their stint ends."""
        return np.flatnonzero(self.last + self._result_cycles == self.stints.end[self.stint])

    @cached_property
    def many_finish(self) -> NDArray[np.bool_]:
        """For each stint whether several rows end it."""
        return np.bincount(self.stint[self._ending], minlength=len(self.stints.task)) > 1

    @cached_property
    def _finishers(self) -> Numbers:
        result, rows = self._result_cycles, self._ending
        finish, tasks = self.stints.end, self.program.tasks
        finishers = np.full(len(finish), -1, dtype=np.int64)
        # a task that only waits in the end, but not for its barrier, is ended by the last of its results
        untils = (tasks[task].until for task in self.stints.task.tolist())
        openers = (self.barriers.get(-1 if until is None else until) for until in untils)
        pairs = zip(openers, finish.tolist(), strict=True)
        lasts = np.array([opener is not None and opener.cycle == end for opener, end in pairs], dtype=bool)
        order = np.argsort(self.last + result, kind="stable")
        order = order[~lasts[self.stint[order]]]
        finishers[self.stint[order]] = order
        finishers[self.stint[rows]] = rows
        return finishers

    def finisher(self, stint: int, cycle: int | None = None) -> int:
        """The row whose results end a stint; of several the row that started last, then that of the highest unit.

        cycle: when a member of a ragged batch finished, before the others; None: when the last of them did.
        """
        if cycle is None or cycle == self.stints.end[stint]:
            return int(self._finishers[stint])
        rows = np.flatnonzero((self.stint == stint) & (self.last + self._result_cycles == cycle))
        return int(rows[-1]) if len(rows) else -1

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
        own = self.stints
        columns = enumerate(zip(own.core.tolist(), own.context.tolist(), own.end.tolist(), strict=True))
        return {key: number for number, key in columns if own.real[number] and own.end[number] > own.begin[number]}

    def entered(self, stint: int, cycle: int) -> bool:
        """Whether a stint got a thread at `cycle`, because it was admitted or went on after a pause."""
        trace, task = self.trace, self.stints.task[stint]
        resumed = (trace.pause("task") == task) & (trace.pause("resumed") == cycle) & self._put_off
        return bool(self.stints.begin[stint] == cycle or resumed.any())

    def gave_up(self, cycle: int) -> bool:
        """Whether a task that had waited was rejected at `cycle`."""
        trace = self.trace
        away = (trace.task("core") < 0) & (trace.task("admitted") == cycle)
        return bool((away & (trace.task("arrived") < cycle)).any())

    def leaver(self, stint: int, cycle: int) -> int | None:
        """The stint that left the context of a stint at `cycle`, or else one that left elsewhere."""
        own = self.stints
        before = self._left.get((int(own.core[stint]), int(own.context[stint]), cycle))
        if before is not None:
            return before
        left = np.flatnonzero(own.real & (own.end == cycle) & (own.begin < cycle))
        return min(left.tolist(), key=lambda each: (self.finisher(each) < 0, each), default=None)

    def room_for(self, task: int, cycle: int) -> int | None:
        """The row that made room for a task at `cycle` although no task left then; None if there is no such row."""
        trace = self.trace
        paused = trace.pause("task")[(trace.pause("paused") == cycle) & self._put_off]
        rows = np.flatnonzero(np.isin(self.task, paused) & (self.end <= cycle))
        if len(rows):
            return int(rows[np.argmax(self.end[rows])])
        # the last row that loaded a weight set which was on its way
        weight_set = self.program.tasks[task].weight_set
        same = [
            number for number, each in enumerate(self.program.tasks) if weight_set and each.weight_set == weight_set
        ]
        loads = np.isin(self.task, same) & (trace.issue("phase") < (weight_set.loading if weight_set else 0))
        rows = np.flatnonzero(loads & (self.last + self._result_cycles == cycle))
        return int(rows[-1]) if len(rows) else None

    def freer(self, row: int, phase: int, iteration: int, operation: int) -> tuple[int, int, int] | None:
        """(phase, iteration, operation) that freed the slot which an operation takes; None if a slot was free."""
        stint, task = int(self.stint[row]), int(self.task[row])
        phases = self.phases(stint)
        buffer = phases[phase].body.operations[operation].takes
        assert buffer is not None
        slots = self.program.tasks[task].slots(self.kind(task), self.trace.spread(task))[buffer].slots
        if self.ragged(stint):
            return self._freer_of_rows(row, buffer, slots)
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

    def ragged(self, stint: int) -> bool:
        """Whether operations of members of a batch are left out."""
        pool = self.program.tasks[int(self.stints.task[stint])].pool
        return pool is not None and self.program.pools[pool].ragged

    def _freer_of_rows(self, row: int, buffer: int, slots: int) -> tuple[int, int, int] | None:
        """The same by what was run: the takes and frees of a stint, in the order of time."""
        rows = np.flatnonzero(self.stint == self.stint[row]).tolist()
        keys = [(phase, step, place) for phase, step, place in self.trace.issues[rows, 5:8].tolist()]
        takes = dict.fromkeys(key for key, at in zip(keys, rows, strict=True) if self.operation(at).takes == buffer)
        frees = dict.fromkeys(key for key, at in zip(keys, rows, strict=True) if self.operation(at).frees == buffer)
        number = list(takes).index(keys[rows.index(row)]) - slots
        return None if number < 0 else list(frees)[number]


def _places(values: Sequence[int | None], wanted: int) -> list[int]:
    return [index for index, value in enumerate(values) if value == wanted]
