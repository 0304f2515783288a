"""The critical path of a run, the chain of operations and waits that fixed its makespan, and an index of its trace.

docs/traces.md says how the path is found. Columns are numpy arrays: a trace has millions of rows, a path passes few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.program.accounts import issued_operations
from lstmsim.program.operations import Dependence, Operation
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
    task: its task.
    ready: cycle from which its operation lacked nothing.
    position: place of the row in `order`.

    Columns with one number for each position:

    order: the rows, unit by unit, in order of time.
    head: position of the first row of those that follow each other without a gap up to this position.
    """

    def __init__(self, program: Program, trace: Trace) -> None:
        if program.pools:
            raise InputError(Mistake("batching", "runs with batches of requests are not explained or compared yet"))
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
        width = max(width, *(len(each.phases) for task in tasks for each in task.moldable), 1)
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
    def _ending(self) -> Numbers:
        """The rows whose results are there when their task ends."""
        return np.flatnonzero(self.last + self._result_cycles == self.trace.task("finish")[self.task])

    @cached_property
    def many_finish(self) -> NDArray[np.bool_]:
        """For each task whether several rows end it."""
        return np.bincount(self.task[self._ending], minlength=len(self.program.tasks)) > 1

    @cached_property
    def _finishers(self) -> Numbers:
        result, rows = self._result_cycles, self._ending
        finish = self.trace.task("finish")
        finishers = np.full(len(finish), -1, dtype=np.int64)
        # a task that only waits in the end, but not for its barrier, is ended by the last of its results
        openers = (self.barriers.get(-1 if task.until is None else task.until) for task in self.program.tasks)
        pairs = zip(openers, finish.tolist(), strict=True)
        lasts = np.array([opener is not None and opener.cycle == end for opener, end in pairs], dtype=bool)
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
        """Whether a task that had waited was rejected at `cycle`."""
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
        # the last row that loaded a weight set which was on its way
        weight_set = self.program.tasks[task].weight_set
        same = [
            number for number, each in enumerate(self.program.tasks) if weight_set and each.weight_set == weight_set
        ]
        loads = np.isin(self.task, same) & (trace.issue("phase") < (weight_set.loading if weight_set else 0))
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


#: What a segment is. `busy`: issue time of a unit. `turn`: issue time of a unit, while the path's next operation, of
#: another task, was ready and waited for its turn. `latency`: results are in a pipeline. `switch`: a unit switches
#: threads. `input`: a frame is on its way. `arrival`: the job has not come yet. `behind`: nor has a task behind an
#: open barrier.
KINDS = ("busy", "turn", "latency", "switch", "input", "arrival", "behind")
#: Why the next operation on the path waited for a segment: a cause of the program, or `order` (it comes next on the
#: unit), `turn` (another task had the unit), `switch`, `thread` (a free context), `after` (the end of the task that it
#: comes after), `behind` (the opening of the barrier that it comes behind), `arrival`, `result` (the end of the run).
HELD_BY = (*CAUSES, "order", "turn", "switch", "thread", "after", "behind", "arrival", "result")

_BUSY, _TURN, _LATENCY, _SWITCH, _INPUT, _ARRIVAL, _BEHIND = range(len(KINDS))


@dataclass(frozen=True, eq=False)
class CriticalPath:
    """Segments of the path in order of time, as columns of equal length. They have no gap from 0 to the makespan.

    kind, held_by: indices of `KINDS` and `HELD_BY`.
    row: row of `trace.issues` that the time belongs to; for `switch`, `input` and `arrival` the operation that waited.
    handovers: how often the path goes from one task to the task that got its context.
    several: whether there are other paths as long: something on the path waited for two things that ended together.
    """

    start: Numbers
    end: Numbers
    kind: Numbers
    held_by: Numbers
    row: Numbers
    handovers: int = 0
    several: bool = False

    @property
    def cycles(self) -> Numbers:
        """The length of each segment."""
        return self.end - self.start


#: A link of the path: the method that adds it, and its arguments.
_Way = tuple[Callable[..., tuple[int, int] | None], tuple[Any, ...]]


class _Walk:
    """The walk back. `links` are single segments, `runs` are blocks of rows of one unit without a gap.

    `tied` is set where more than one thing ended in the cycle for which the path waited; then nobody looks any more.
    """

    def __init__(self, index: TraceIndex) -> None:
        self.index = index
        self.links: list[tuple[int, int, int, int, int]] = []
        self.runs: list[tuple[int, int]] = []
        self.handovers, self.tied = 0, False

    def add(self, start: int, end: int, kind: int, held_by: str, row: int) -> None:
        if end > start:
            self.links.append((start, end, kind, HELD_BY.index(held_by), row))

    def result(self, row: int, cycle: int, held_by: str) -> tuple[int, int]:
        """Add the way from `cycle`, when results of a row's last issue are there, back to the start of the issue."""
        operation, start = self.index.operation(row), int(self.index.last[row])
        # the last result comes `late` cycles after the unit's last cycle, each earlier result one cycle sooner
        late = operation.result_cycles - operation.cycles
        own = start + min(max(cycle - start - late, 1), operation.cycles, cycle - start)
        self.add(start, own, _BUSY, held_by, row)
        self.add(own, cycle, _LATENCY, held_by, row)
        return row, start

    def walk(self) -> None:
        """Walk from the makespan to cycle 0."""
        index = self.index
        finish = index.trace.task("finish")
        makespan = index.trace.makespan_cycles
        if not makespan:
            return
        self.tied = len({self.ender(task) for task in np.flatnonzero(finish == makespan).tolist()}) > 1
        step = self.ended(int(np.argmax(finish)), makespan, "result")
        while step is not None:
            row, cycle = step
            self.add(int(index.start[row]), cycle, _BUSY, "order", row)
            position = int(index.position[row])
            head = int(index.head[position])
            if head < position:
                self.runs.append((head, position))
                self.tied = self.tied or self.tied_within(head, position)
            row = int(index.order[head])
            step = self.before(row, head)

    def before(self, row: int, position: int) -> tuple[int, int] | None:
        """What held the start of a row that does not directly follow another row; None at the beginning."""
        index, cycle = self.index, int(self.index.start[row])
        if cycle == 0:
            return None
        switch = index.switch_before(row, cycle)
        if not switch:
            return self.held(row, cycle)
        self.add(cycle - switch, cycle, _SWITCH, "switch", row)
        cycle -= switch
        if cycle == 0:
            return None
        earlier = int(index.order[position - 1]) if position else row
        if index.unit[earlier] != index.unit[row] or index.end[earlier] != cycle or earlier == row:
            return self.held(row, cycle)
        self.tied = self.tied or bool(index.ready[row] == cycle)
        turn = max(int(index.start[earlier]), min(int(index.ready[row]), cycle))
        if index.task[earlier] == index.task[row]:
            turn = cycle
        self.add(turn, cycle, _TURN, "turn", earlier)
        return earlier, turn

    def held(self, row: int, cycle: int) -> tuple[int, int] | None:
        """What an operation waited for until `cycle`; None where nothing on the machine held the operation."""
        ways = self.ways(row, cycle)
        add, arguments = first = next(ways, (self.admitted, (row, int(self.index.task[row]), cycle)))
        self.tied = self.tied or any(each != first for each in ways)
        return add(*arguments)

    def ways(self, row: int, cycle: int) -> Iterator[_Way]:
        """All that ended at `cycle` of what an operation waits for, first what the path follows."""
        index = self.index
        task, phase, iteration, number = index.trace.issues[row, 4:8].tolist()
        phases, job = index.phases(task), index.program.tasks[task]
        operation = phases[phase].body.operations[number]
        for need in operation.needs:
            if need.barrier:
                opener = index.barriers.get(phases[phase].barrier(iteration, need.operation))
                if opener is not None and opener.cycle + need.delay == cycle:
                    yield self.opened, (opener, row, cycle, need.cause)
                continue
            source = self.source(task, phase, iteration, need)
            if source >= 0 and index.last[source] + need.delay == cycle:
                yield self.result, (source, cycle, need.cause)
        step = phases[phase].step(iteration, operation.ahead)
        arrived = int(index.trace.task("arrived")[task])
        late = operation.frame - 1
        if late >= 0 and (job.frame_interval or late) and arrived + step * job.frame_interval + late == cycle:
            yield self.came, (row, task, cycle)
        if operation.takes is not None:
            place = index.freer(task, phase, iteration, number)
            freer = index.last_row(task, *place) if place is not None else -1
            if freer >= 0 and index.end[freer] == cycle:
                buffer = job.slots(index.kind(task), index.trace.spread(task))[operation.takes]
                yield self.freed, (freer, cycle, buffer.cause)
        if index.entered(task, cycle):
            yield self.admitted, (row, task, cycle)

    def tied_within(self, head: int, position: int) -> bool:
        """Whether a row of a block was ready just when the row before it had ended, by something else than that row."""
        index = self.index
        rows = index.order[head : position + 1]
        for place in np.flatnonzero(index.ready[rows[1:]] == index.start[rows[1:]]).tolist():
            before, row = rows[place : place + 2].tolist()
            for add, arguments in self.ways(row, int(index.start[row])):
                number = arguments[0].number if add == self.opened else arguments[0]
                if number != before or add not in (self.opened, self.result, self.freed):
                    return True
        return False

    def ender(self, task: int) -> tuple[str, int]:
        """What ended a task: a row, or another task."""
        row, until = self.index.finisher(task), self.index.program.tasks[task].until
        opener = None if row >= 0 or until is None else self.index.barriers.get(until)
        if opener is None:
            return ("issues", row) if row >= 0 else ("starts", task)
        return self.ender(opener.number) if opener.kind == "ends" else (opener.kind, opener.number)

    def came(self, row: int, task: int, cycle: int) -> tuple[int, int] | None:
        """What was before a frame of input that came at `cycle`."""
        arrived = int(self.index.trace.task("arrived")[task])
        self.add(arrived, cycle, _INPUT, "input", row)
        return self.arrived(row, task, arrived)

    def ended(self, task: int, cycle: int, held_by: str) -> tuple[int, int] | None:
        """What was before the end of a task at `cycle`: its last result, else the barrier until which it lasted."""
        index = self.index
        row, until = index.finisher(task), index.program.tasks[task].until
        if row >= 0:
            self.tied = self.tied or bool(index.many_finish[task])
            return self.result(row, cycle, held_by)
        opener = None if until is None else index.barriers.get(until)
        if opener is not None and opener.cycle == cycle:
            return self.opened(opener, 0, cycle, held_by)
        return self.admitted(0, task, int(index.trace.task("admitted")[task]))

    def opened(self, opener: Opener, row: int, cycle: int, held_by: str) -> tuple[int, int] | None:
        """What was before an operation that may issue at `cycle` because a barrier opened."""
        self.tied = self.tied or (opener.tied and opener.cycle > 0)
        if opener.kind == "issues":
            self.add(opener.cycle, cycle, _LATENCY, held_by, opener.number)
            return self.freed(opener.number, opener.cycle, held_by)
        self.add(opener.cycle, cycle, _BEHIND, held_by, row)
        if opener.kind == "ends":
            return self.ended(opener.number, opener.cycle, "behind" if opener.cycle < cycle else held_by)
        return self.admitted(row, opener.number, opener.cycle)

    def source(self, task: int, phase: int, iteration: int, need: Dependence) -> int:
        """The row of the last issue that `need` points to; -1 where it holds nothing back."""
        if need.phase is None:
            earlier = iteration - need.lag
            return -1 if earlier < 0 else self.index.last_row(task, phase, earlier, need.operation)
        repeat = self.index.phases(task)[need.phase].repeat
        earlier = repeat - 1 - iteration if need.mirrored else iteration
        return self.index.last_row(task, need.phase, earlier, need.operation) if 0 <= earlier < repeat else -1

    def freed(self, row: int, cycle: int, cause: str) -> tuple[int, int]:
        """Add the last issue of a row, whose end (`cycle`) freed a slot. Returns the row and the start of the issue."""
        start = int(self.index.last[row])
        self.add(start, cycle, _BUSY, cause, row)
        return row, start

    def admitted(self, row: int, task: int, cycle: int) -> tuple[int, int] | None:
        """What let a task start or go on at `cycle`: its own arrival, or another task that left its context."""
        index = self.index
        if not index.entered(task, cycle):
            raise ValueError(f"the trace is not one of this program: nothing ends at cycle {cycle} (row {row})")
        if index.trace.task("arrived")[task] == cycle:
            return self.arrived(row, task, cycle)
        leaver = index.leaver(task, cycle)
        if leaver is not None:
            self.handovers += 1
            self.tied = self.tied or bool(np.count_nonzero(index.trace.task("finish") == cycle) > 1)
            return self.ended(leaver, cycle, "thread")
        before = index.room_for(task, cycle)
        if before is None and not (index.trace.pause("paused") == cycle).any() and not index.gave_up(cycle):
            raise ValueError(f"the trace is not one of this program: no context becomes free at cycle {cycle}")
        self.handovers += 1
        if before is None:
            # the task that paused for this one had issued nothing yet, or a task that waited before this one gave up
            arrived = int(index.trace.task("arrived")[task])
            self.add(arrived, cycle, _ARRIVAL, "thread", row)
            return self.arrived(row, task, arrived)
        return self.result(before, cycle, "thread")

    def arrived(self, row: int, task: int, cycle: int) -> tuple[int, int] | None:
        """What was before the arrival of a task at `cycle`: the task that it comes after, or who opened its barrier."""
        job = self.index.program.tasks[task]
        if job.behind is not None:
            return self.opened(self.index.barriers[job.behind], row, cycle, "behind")
        if job.after is None:
            self.add(0, cycle, _ARRIVAL, "arrival", row)
            return None
        self.add(cycle - job.release, cycle, _ARRIVAL, "arrival", row)
        came = cycle - job.release
        if self.index.trace.task("core")[job.after] >= 0:
            return self.ended(job.after, came, "after")
        # that task was rejected when it came (the queue was full), or it reneged
        earlier = int(self.index.trace.task("arrived")[job.after])
        self.add(earlier, came, _ARRIVAL, "after", row)
        return self.arrived(row, job.after, earlier)


def _of_runs(index: TraceIndex, runs: Sequence[tuple[int, int]]) -> Numbers:
    """The segments of blocks of rows, laid out as `_Walk.links`. The last row of each block is left out."""
    heads, lasts = np.array(runs, dtype=np.int64).reshape(-1, 2).T
    lengths = lasts - heads
    # 0, 1, 2 ... within each block
    inner = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    position = np.repeat(heads, lengths) + inner
    row, following = index.order[position], index.order[position + 1]
    start, end = index.start[row], index.end[row]
    turn = np.maximum(start, np.minimum(index.ready[following], end))
    turn[index.task[row] == index.task[following]] = end[index.task[row] == index.task[following]]
    tables = []
    for first, last, kind, held_by in ((start, turn, _BUSY, "order"), (turn, end, _TURN, "turn")):
        table = np.empty((len(row), 5), dtype=np.int64)
        for column, values in enumerate((first, last, kind, HELD_BY.index(held_by), row)):
            table[:, column] = values
        tables.append(table[last > first])
    return np.concatenate(tables)


def critical_path(program: Program, trace: Trace, index: TraceIndex | None = None) -> CriticalPath:
    """The critical path of a run. Ties are broken as docs/traces.md says."""
    index = index or TraceIndex(program, trace)
    walk = _Walk(index)
    walk.walk()
    links = np.array(walk.links, dtype=np.int64).reshape(-1, 5)
    table = np.concatenate([links, _of_runs(index, walk.runs)])
    start, end, kind, held_by, row = table[np.argsort(table[:, 0], kind="stable")].T
    return CriticalPath(start, end, kind, held_by, row, walk.handovers, bool(walk.tied))
