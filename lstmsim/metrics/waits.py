"""What each thread waits for, cycle by cycle, read off a trace: intervals per cause, for one core's accounted unit.

A thread's next operation on the unit stands at the head from the cycle after its predecessor's last issue
(the first one: from admission) until it issues. In between it lacks, in this order of strength, what `CAUSES` names;
when it lacks nothing it is ready and waits for its turn. After its last issue on the unit it drains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.program import CAUSES, Program
from lstmsim.program.trace import Trace

__all__ = ["CoreSpans", "Intervals", "core_spans"]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Columns of equal length: cycles `start <= cycle < end` of a context, with the task and the row of the trace."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    context: NDArray[np.int64]
    task: NDArray[np.int64]
    issue: NDArray[np.int64]

    def kept(self) -> Intervals:
        """Without the empty ones."""
        full = self.end > self.start
        return Intervals(self.start[full], self.end[full], self.context[full], self.task[full], self.issue[full])


@dataclass(frozen=True, eq=False)
class CoreSpans:
    """Everything that happened on one core's accounted unit: issues, switches, and waits by name.

    `busy` are its issues; `waits` maps each cause, `drain` and `ready` to intervals of its threads; `switch` holds the
    thread switched to as context, and no task (-1). `issue` is a row of `trace.issues`, -1 where there is none.
    """

    busy: Intervals
    switch: Intervals
    waits: dict[str, Intervals]


def core_spans(program: Program, trace: Trace, core: int) -> CoreSpans:
    """Intervals of core number `core`; vectorised, no order among the rows is promised.

    >>> from lstmsim.engines import run
    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(0, count=3), Operation(0, needs=(Dependence(0, 5),), result_cycles=4)))
    >>> task = Task("t", ((0, (Phase(body, 1),)),), (), (0,))
    >>> program = Program((Core(0, (Unit("array", "coarse"),)),), (task,))
    >>> spans = core_spans(program, run(program), 0)
    >>> {name: list(zip(each.start.tolist(), each.end.tolist())) for name, each in spans.waits.items()}
    {'dispatch': [], 'hazard': [(3, 7)], 'input': [], 'backpressure': [], 'ready': [], 'drain': [(8, 11)]}
    """
    unit = program.cores[core].accounted
    rows = np.flatnonzero((trace.issue("core") == core) & (trace.issue("unit") == unit))
    task, start = trace.issue("task")[rows], trace.issue("start")[rows]
    order = np.lexsort((start, task))
    rows, task, start = rows[order], task[order], start[order]
    context = trace.issue("context")[rows]
    end = start + trace.issue("count")[rows] * trace.issue("cycles")[rows]
    busy = Intervals(start, end, context, task, rows)

    first = np.ones(len(rows), dtype=bool)
    first[1:] = task[1:] != task[:-1]
    since = np.where(first, trace.task("admitted")[task], np.roll(end, 1))
    waits = {}
    for cause in CAUSES:
        until = np.maximum(since, trace.issue(f"{cause}_until")[rows])
        waits[cause] = Intervals(since, until, context, task, rows).kept()
        since = until
    waits["ready"] = Intervals(since, start, context, task, rows).kept()

    # a task without any issue on this unit drains from its admission on
    tasks = np.flatnonzero(trace.task("core") == core)
    drained = trace.task("admitted")[tasks].copy()
    last = np.flatnonzero(np.roll(first, -1)) if len(rows) else rows
    drained[np.searchsorted(tasks, task[last])] = end[last]
    finish, where = trace.task("finish")[tasks], trace.task("context")[tasks]
    waits["drain"] = Intervals(drained, finish, where, tasks, np.full(len(tasks), -1)).kept()
    return CoreSpans(busy, _switches(trace, core, unit), waits)


def _switches(trace: Trace, core: int, unit: int) -> Intervals:
    mine = (trace.switch("core") == core) & (trace.switch("unit") == unit)
    start = trace.switch("start")[mine]
    none = np.full(len(start), -1)
    return Intervals(start, start + trace.switch("cycles")[mine], trace.switch("after")[mine], none, none)
