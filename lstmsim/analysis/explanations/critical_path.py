"""The critical path of a run: the chain of operations and waits that fixed its makespan.

The walk goes back from the result that came last. Each operation started when the last thing that held it was over.
This last thing is the next link of the path. Where several things ended in that cycle, the path follows the first of:

1. the issue before it on its unit (the unit was taken until then), or a switch of the unit to this thread;
2. a result that it waits for, in the order in which the operation names them;
3. its frame of input; 4. a free slot of its buffer; 5. the admission of its task: the job's arrival (which may follow
   the end of another job, or the opening of a gate), or the end of the job that ran in its thread before.

Each cycle from 0 to the makespan is on exactly one segment. From the start of an operation to the use of its result
there are two segments: first time of its unit, then latency of the pipeline. (The results of an operation leave one
after another. The first result leaves after the operation's first cycle.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.explanations.trace_index import Opener, TraceIndex
from lstmsim.program.operations import Dependence
from lstmsim.program.program import Program
from lstmsim.program.stall_reasons import CAUSES
from lstmsim.program.trace import Trace

#: What a segment is. `busy`: issue time of a unit. `turn`: issue time of a unit, while the path's next operation, of
#: another task, was ready and waited for its turn. `latency`: results are in a pipeline. `switch`: a unit switches
#: threads. `input`: a frame is on its way. `arrival`: the job has not come yet. `behind`: nor has a task behind a gate,
#: though that is open.
KINDS = ("busy", "turn", "latency", "switch", "input", "arrival", "behind")
#: Why the next operation on the path waited for a segment: a cause of the program, or `order` (it comes next on the
#: unit), `turn` (another task had the unit), `switch`, `thread` (a free context), `after` (the end of the task that it
#: comes after), `behind` (the opening of the gate that it comes behind), `arrival`, `result` (the end of the run).
HELD_BY = (*CAUSES, "order", "turn", "switch", "thread", "after", "behind", "arrival", "result")

_BUSY, _TURN, _LATENCY, _SWITCH, _INPUT, _ARRIVAL, _BEHIND = range(len(KINDS))
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CriticalPath:
    """Segments of the path in order of time, as columns of equal length. They have no gap from 0 to the makespan.

    start, end: cycles, `start <= cycle < end`.
    kind: place in `KINDS`.
    held_by: place in `HELD_BY`.
    row: row of `trace.issues` that the time belongs to; for `switch`, `input` and `arrival` the operation that waited.
    handovers: how often the path goes from one task to the task that got its context.
    """

    start: Numbers
    end: Numbers
    kind: Numbers
    held_by: Numbers
    row: Numbers
    handovers: int = 0

    @property
    def cycles(self) -> Numbers:
        """The length of each segment."""
        return self.end - self.start


class _Walk:
    """The walk back. `links` are single segments, `runs` are blocks of rows of one unit without a gap."""

    def __init__(self, index: TraceIndex) -> None:
        self.index = index
        self.links: list[tuple[int, int, int, int, int]] = []
        self.runs: list[tuple[int, int]] = []
        self.handovers = 0

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
        step = self.ended(int(np.argmax(finish)), makespan, "result")
        while step is not None:
            row, cycle = step
            self.add(int(index.start[row]), cycle, _BUSY, "order", row)
            position = int(index.position[row])
            head = int(index.head[position])
            if head < position:
                self.runs.append((head, position))
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
        turn = _waited(int(index.start[earlier]), int(index.ready[row]), cycle)
        if index.task[earlier] == index.task[row]:
            turn = cycle
        self.add(turn, cycle, _TURN, "turn", earlier)
        return earlier, turn

    def held(self, row: int, cycle: int) -> tuple[int, int] | None:
        """What an operation waited for until `cycle`; None where nothing on the machine held the operation."""
        index = self.index
        task, phase, iteration, number = index.trace.issues[row, 4:8].tolist()
        phases, job = index.phases(task), index.program.tasks[task]
        operation = phases[phase].body.operations[number]
        for need in operation.needs:
            if need.gate:
                opener = index.gates.get(phases[phase].gate(iteration, need.operation))
                if opener is not None and opener.cycle + need.delay == cycle:
                    return self.opened(opener, row, cycle, need.cause)
                continue
            source = self.source(task, phase, iteration, need)
            if source >= 0 and index.last[source] + need.delay == cycle:
                return self.result(source, cycle, need.cause)
        step = phases[phase].step(iteration, operation.ahead)
        arrived = int(index.trace.task("arrived")[task])
        if operation.frame and job.frame_interval and arrived + step * job.frame_interval == cycle:
            self.add(arrived, cycle, _INPUT, "input", row)
            return self.arrived(row, task, arrived)
        if operation.takes is not None:
            place = index.freer(task, phase, iteration, number)
            freer = index.last_row(task, *place) if place is not None else -1
            if freer >= 0 and index.end[freer] == cycle:
                buffer = job.slots(index.kind(task), index.trace.spread(task))[operation.takes]
                return self.freed(freer, cycle, buffer.cause)
        return self.admitted(row, task, cycle)

    def ended(self, task: int, cycle: int, held_by: str) -> tuple[int, int] | None:
        """What was before the end of a task at `cycle`: its last result, else the gate until which it lasted."""
        index = self.index
        row, until = index.finisher(task), index.program.tasks[task].until
        if row >= 0:
            return self.result(row, cycle, held_by)
        opener = None if until is None else index.gates.get(until)
        if opener is not None and opener.cycle == cycle:
            return self.opened(opener, 0, cycle, held_by)
        return self.admitted(0, task, int(index.trace.task("admitted")[task]))

    def opened(self, opener: Opener, row: int, cycle: int, held_by: str) -> tuple[int, int] | None:
        """What was before an operation that may issue at `cycle` because a gate opened."""
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
        """What was before the arrival of a task at `cycle`: the task that it comes after, or who opened its gate."""
        job = self.index.program.tasks[task]
        if job.behind is not None:
            return self.opened(self.index.gates[job.behind], row, cycle, "behind")
        if job.after is None:
            self.add(0, cycle, _ARRIVAL, "arrival", row)
            return None
        self.add(cycle - job.release, cycle, _ARRIVAL, "arrival", row)
        came = cycle - job.release
        if self.index.trace.task("core")[job.after] >= 0:
            return self.ended(job.after, came, "after")
        # that task was turned away: when it came (the queue was full), or at the end of its patience
        earlier = int(self.index.trace.task("arrived")[job.after])
        self.add(earlier, came, _ARRIVAL, "after", row)
        return self.arrived(row, job.after, earlier)


def _waited(start: int, ready: int, end: int) -> int:
    """The cycle from which an operation, ready at `ready`, waited for issues of another task from `start` to `end`."""
    return max(start, min(ready, end))


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
    """The critical path of a run. Ties are broken as the module's text says."""
    index = index or TraceIndex(program, trace)
    walk = _Walk(index)
    walk.walk()
    links = np.array(walk.links, dtype=np.int64).reshape(-1, 5)
    table = np.concatenate([links, _of_runs(index, walk.runs)])
    start, end, kind, held_by, row = table[np.argsort(table[:, 0], kind="stable")].T
    return CriticalPath(start, end, kind, held_by, row, walk.handovers)
