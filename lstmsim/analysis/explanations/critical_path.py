"""The critical path of a run, the chain of operations and waits that fixed its makespan.

docs/traces.md says how the path is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.explanations.trace_index import Opener, TraceIndex
from lstmsim.program.operations import Dependence
from lstmsim.program.program import Program
from lstmsim.program.stall_reasons import CAUSES
from lstmsim.program.trace import Trace

Numbers = NDArray[np.int64]

#: What a segment is. `busy`: issue time of a unit. `turn`: issue time of a unit, while the path's next operation, of
#: another task, was ready and waited for its turn. `latency`: results are in a pipeline. `switch`: a unit switches
#: threads. `input`: a frame is on its way. `arrival`: the job has not come yet. `behind`: nor has a task behind an
#: open barrier. `company`: a request waits in its pool for others.
KINDS = ("busy", "turn", "latency", "switch", "input", "arrival", "behind", "company")
#: Why the next operation on the path waited for a segment: a cause of the program, or `order` (it comes next on the
#: unit), `turn` (another task had the unit), `switch`, `thread` (a free context), `after` (the end of the task that it
#: comes after), `behind` (the opening of the barrier that it comes behind), `company` (its pool was ripe), `arrival`,
#: `result` (the end of the run).
HELD_BY = (*CAUSES, "order", "turn", "switch", "thread", "after", "behind", "company", "arrival", "result")

_BUSY, _TURN, _LATENCY, _SWITCH, _INPUT, _ARRIVAL, _BEHIND, _COMPANY = range(len(KINDS))


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
        stints, makespan = index.stints, index.trace.makespan_cycles
        finish = np.where(stints.real, stints.end, -1)
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
        if index.stint[earlier] == index.stint[row]:
            turn = cycle
        self.add(turn, cycle, _TURN, "turn", earlier)
        return earlier, turn

    def held(self, row: int, cycle: int) -> tuple[int, int] | None:
        """What an operation waited for until `cycle`; None where nothing on the machine held the operation."""
        ways = self.ways(row, cycle)
        add, arguments = first = next(ways, (self.admitted, (row, int(self.index.stint[row]), cycle)))
        self.tied = self.tied or any(each != first for each in ways)
        return add(*arguments)

    def ways(self, row: int, cycle: int) -> Iterator[_Way]:
        """All that ended at `cycle` of what an operation waits for, first what the path follows."""
        index = self.index
        task, phase, iteration, number = index.trace.issues[row, 4:8].tolist()
        stint, job = int(index.stint[row]), index.program.tasks[task]
        phases = index.phases(stint)
        operation = phases[phase].body.operations[number]
        for need in operation.needs:
            if need.barrier:
                opener = index.barriers.get(phases[phase].barrier(iteration, need.operation))
                if opener is not None and opener.cycle + need.delay == cycle:
                    yield self.opened, (opener, row, cycle, need.cause)
                continue
            source = self.source(stint, phase, iteration, need)
            if source >= 0 and index.last[source] + need.delay == cycle:
                yield self.result, (source, cycle, need.cause)
        step = phases[phase].step(iteration, operation.ahead)
        arrived = int(index.trace.task("arrived")[task])
        late = operation.frame - 1
        if late >= 0 and (job.frame_interval or late) and arrived + step * job.frame_interval + late == cycle:
            yield self.came, (row, task, cycle)
        began = int(index.stints.begin[stint])
        moves = job.session is not None and began < began + job.move_cycles == cycle
        # it did move if the row says so
        if moves and index.trace.issue("input_until")[row] == cycle:
            yield self.moved, (row, stint, cycle)
        if operation.takes is not None:
            place = index.freer(row, phase, iteration, number)
            freer = index.last_row(stint, *place) if place is not None else -1
            if freer >= 0 and index.end[freer] == cycle:
                buffer = job.slots(index.kind(task), index.trace.spread(task))[operation.takes]
                yield self.freed, (freer, cycle, buffer.cause)
        if index.entered(stint, cycle):
            yield self.admitted, (row, stint, cycle)

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

    def ender(self, stint: int) -> tuple[str, int]:
        """What ended a stint: a row, or another task."""
        task = int(self.index.stints.task[stint])
        row, until = self.index.finisher(stint), self.index.program.tasks[task].until
        opener = None if row >= 0 or until is None else self.index.barriers.get(until)
        if opener is None:
            return ("issues", row) if row >= 0 else ("starts", task)
        return self.ender(opener.number) if opener.kind == "ends" else (opener.kind, opener.number)

    def came(self, row: int, task: int, cycle: int) -> tuple[int, int] | None:
        """What was before a frame of input that came at `cycle`."""
        arrived = int(self.index.trace.task("arrived")[task])
        self.add(arrived, cycle, _INPUT, "input", row)
        return self.arrived(row, task, arrived)

    def moved(self, row: int, stint: int, cycle: int) -> tuple[int, int] | None:
        """What was before the states of a task's session were on its core at `cycle`."""
        began = int(self.index.stints.begin[stint])
        self.add(began, cycle, _INPUT, "input", row)
        return self.admitted(row, stint, began)

    def ended(self, stint: int, cycle: int, held_by: str) -> tuple[int, int] | None:
        """What was before the end of a stint at `cycle`: its last result, else the barrier until which it lasted."""
        index = self.index
        row, until = index.finisher(stint, cycle), index.program.tasks[int(index.stints.task[stint])].until
        if row >= 0:
            self.tied = self.tied or bool(index.many_finish[stint])
            return self.result(row, cycle, held_by)
        opener = None if until is None else index.barriers.get(until)
        if opener is not None and opener.cycle == cycle:
            return self.opened(opener, 0, cycle, held_by)
        return self.admitted(0, stint, int(index.stints.begin[stint]))

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

    def source(self, stint: int, phase: int, iteration: int, need: Dependence) -> int:
        """The row of the last issue that `need` points to; -1 where it holds nothing back."""
        if need.phase is None:
            earlier = iteration - need.lag
            return -1 if earlier < 0 else self.index.last_row(stint, phase, earlier, need.operation)
        repeat = self.index.phases(stint)[need.phase].repeat
        earlier = repeat - 1 - iteration if need.mirrored else iteration
        return self.index.last_row(stint, need.phase, earlier, need.operation) if 0 <= earlier < repeat else -1

    def freed(self, row: int, cycle: int, cause: str) -> tuple[int, int]:
        """Add the last issue of a row, whose end (`cycle`) freed a slot. Returns the row and the start of the issue."""
        start = int(self.index.last[row])
        self.add(start, cycle, _BUSY, cause, row)
        return row, start

    def admitted(self, row: int, stint: int, cycle: int) -> tuple[int, int] | None:
        """What let a stint start or go on at `cycle`: an arrival, another one that left its context, or its pool."""
        index = self.index
        if not index.entered(stint, cycle):
            raise ValueError(f"the trace is not one of this program: nothing ends at cycle {cycle} (row {row})")
        task, arrivals = int(index.stints.task[stint]), index.trace.task("arrived")
        came = next((each for each in index.stints.company(stint) if arrivals[each] == cycle), None)
        if came is not None:
            return self.arrived(row, came, cycle)
        leaver = index.leaver(stint, cycle)
        if leaver is not None:
            self.handovers += 1
            ended = np.count_nonzero(index.stints.real & (index.stints.end == cycle))
            self.tied = self.tied or bool(ended > 1)
            return self.ended(leaver, cycle, "thread")
        if index.program.tasks[task].pool is not None:
            # the first of the batch had waited long enough
            first = min(index.stints.company(stint), key=lambda each: (arrivals[each], each))
            self.add(int(arrivals[first]), cycle, _COMPANY, "company", row)
            return self.arrived(row, first, int(arrivals[first]))
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
            return self.ended(int(self.index.stints.last[job.after]), came, "after")
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
    same = index.stint[row] == index.stint[following]
    turn[same] = end[same]
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
