"""What each thread waits for, cycle by cycle, read off a trace: intervals by cause, for a core's accounted unit.

The next operation of a thread on the unit stands at the head from the cycle after the last issue of the operation
before it. (The first operation stands there from the task's admission, or from the end of a pause.) It stays at the
head until it issues. Before that it lacks what `CAUSES` names, in this order of strength. When it lacks nothing, the
thread is ready and waits for its turn. After its last issue on the unit a thread drains. It also drains from the cycle
in which it was asked to pause until it is paused. A paused task has no thread, and waits for nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.program import Program
from lstmsim.program.stall_reasons import CAUSES
from lstmsim.program.trace import Trace

__all__ = ["CoreSpans", "Intervals", "Stays", "core_spans", "stays_on"]


Column = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals of threads, as columns of equal length.

    start, end: cycles, `start <= cycle < end`.
    context: number of the thread.
    task: number of the task; -1 for none.
    issue: row of `trace.issues`; -1 for none.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    context: NDArray[np.int64]
    task: NDArray[np.int64]
    issue: NDArray[np.int64]

    def kept(self) -> Intervals:
        """The intervals without the empty ones."""
        full = self.end > self.start
        return self.where(full)

    def where(self, kept: NDArray[np.bool_]) -> Intervals:
        """Some of the intervals: those for which `kept` holds, shape (intervals,)."""
        return Intervals(self.start[kept], self.end[kept], self.context[kept], self.task[kept], self.issue[kept])

    def of_way(self, way: int, ways: int) -> Intervals:
        """The intervals of the threads that use one of several ways of a unit."""
        return self if ways == 1 else self.where(self.context % ways == way)


_NOTHING = Intervals(*(np.zeros(0, dtype=np.int64) for _ in range(5)))


@dataclass(frozen=True, eq=False)
class CoreSpans:
    """Everything that happened on the accounted unit of one core.

    busy: its issues.
    switch: its thread switches; `context` is the thread after the switch, `task` is -1.
    waits: each cause, `drain` and `ready` -> intervals of the core's threads.
    """

    busy: Intervals
    switch: Intervals
    waits: dict[str, Intervals]

    def of_way(self, way: int, ways: int) -> CoreSpans:
        """What happened on one of several ways of the unit."""
        waits = {name: each.of_way(way, ways) for name, each in self.waits.items()}
        return CoreSpans(self.busy.of_way(way, ways), self.switch.of_way(way, ways), waits)


@dataclass(frozen=True, eq=False)
class Stays:
    """When tasks had a thread of a core, as columns of equal length, sorted by (context, start).

    start: cycle of the task's admission, or of its return after a pause.
    end: cycle of its pause or finish.
    context: number of the thread.
    task: number of the task.
    """

    start: Column
    end: Column
    context: Column
    task: Column

    def of(self, context: Column, cycle: Column) -> Column:
        """The place of the stay that holds the thread `context` at `cycle`."""
        span = int(self.end.max(initial=0)) + 1
        places: Column = np.searchsorted(self.context * span + self.start, context * span + cycle, side="right") - 1
        return places


def stays_on(trace: Trace, core: int) -> Stays:
    """The stays of all tasks on a core. Split tasks have a stay for each of their threads."""
    tasks = np.flatnonzero(trace.task("core") == core)
    start = trace.task("admitted").copy()
    # after a pause a task has a thread of the same core again
    pauses = np.flatnonzero(trace.pause("core") == core)
    pauses = pauses[np.lexsort((trace.pause("paused")[pauses], trace.pause("task")[pauses]))]
    paused, back = trace.pause("task")[pauses], trace.pause("resumed")[pauses]
    left = start[paused]
    again = np.flatnonzero(paused[1:] == paused[:-1]) + 1
    left[again] = back[again - 1]
    np.maximum.at(start, paused, back)
    seats = np.flatnonzero(trace.seat("core") == core)
    seated = trace.seat("task")[seats]
    task = np.concatenate([tasks, paused, seated])
    context = [trace.task("context")[tasks], trace.pause("context")[pauses], trace.seat("context")[seats]]
    begin = np.concatenate([start[tasks], left, start[seated]])
    end = [trace.task("finish")[tasks], trace.pause("paused")[pauses], trace.task("finish")[seated]]
    where, until = np.concatenate(context), np.concatenate(end)
    # a task that finishes in the cycle of its admission stands before the one that has its thread then
    order = np.lexsort((until, begin, where))
    return Stays(begin[order], until[order], where[order], task[order])


def core_spans(program: Program, trace: Trace, core: int) -> CoreSpans:
    """The intervals of a core. They are in no particular order; a core without an accounted unit has none.

    Of a unit with several ways, each thread is on a way of its own, so intervals of different ways may overlap.

    program, trace: the lowered scenario and its run.
    core: number of the core.

    >>> from lstmsim.engines import run
    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(0, count=3), Operation(0, needs=(Dependence(0, 5),), result_cycles=4)))
    >>> task = Task("t", ((0, (Phase(body, 1),)),), (), (0,))
    >>> program = Program((Core(0, (Unit("array", "coarse"),)),), (task,))
    >>> spans = core_spans(program, run(program), 0)
    >>> {name: list(zip(each.start.tolist(), each.end.tolist())) for name, each in spans.waits.items()}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'dispatch': [], 'hazard': [(3, 7)], 'input': [], 'backpressure': [], 'reload': [], 'weights': [], 'memory': [],
     'contention': [], 'barrier': [], 'dependence': [], 'start': [], 'ready': [], 'drain': [(8, 11)]}
    """
    unit = program.cores[core].accounted
    if unit is None:
        return CoreSpans(_NOTHING, _NOTHING, dict.fromkeys((*CAUSES, "ready", "drain"), _NOTHING))
    stays = stays_on(trace, core)
    rows = np.flatnonzero((trace.issue("core") == core) & (trace.issue("unit") == unit))
    stay = stays.of(trace.issue("context")[rows], trace.issue("start")[rows])
    order = np.lexsort((trace.issue("start")[rows], stay))
    rows, stay = rows[order], stay[order]
    task, start, context = (trace.issue(name)[rows] for name in ("task", "start", "context"))
    end = start + trace.issue("count")[rows] * trace.issue("cycles")[rows]
    busy = Intervals(start, end, context, task, rows)

    first = np.ones(len(rows), dtype=bool)
    first[1:] = stay[1:] != stay[:-1]
    since = np.where(first, stays.start[stay], np.roll(end, 1))
    until = {cause: trace.issue(f"{cause}_until")[rows] for cause in CAUSES}
    waits = _held(since, until, start, busy)

    # a task without any issue on this unit drains from its admission on
    drained = stays.start.copy()
    last = np.flatnonzero(np.roll(first, -1)) if len(rows) else rows
    drained[stay[last]] = end[last]
    halted = np.flatnonzero((trace.halt("core") == core) & (trace.halt("unit") == unit))
    if len(halted):
        asked, thread = trace.halt("asked")[halted], trace.halt("context")[halted]
        stay = stays.of(thread, asked)
        # in the cycle in which a task has waited to its end, its thread may be that of others already
        while (other := stays.task[stay] != trace.halt("task")[halted]).any():
            stay = stay - other
        put_off = Intervals(asked, asked, thread, trace.halt("task")[halted], np.full(len(halted), -1))
        until = {cause: trace.halt(f"{cause}_until")[halted] for cause in CAUSES}
        for name, each in _held(drained[stay], until, asked, put_off).items():
            waits[name] = _both(waits[name], each)
        drained[stay] = asked
    none = np.full(len(drained), -1)
    waits["drain"] = Intervals(drained, stays.end, stays.context, stays.task, none).kept()
    return CoreSpans(busy, _switches(trace, core, unit), waits)


def _held(since: Column, until: dict[str, Column], start: Column, who: Intervals) -> dict[str, Intervals]:
    """Cut the time from `since` to `start` into one interval for each cause, in order, and then `ready`."""
    waits = {}
    for cause, each in until.items():
        held = np.maximum(since, each)
        waits[cause] = Intervals(since, held, who.context, who.task, who.issue).kept()
        since = held
    waits["ready"] = Intervals(since, start, who.context, who.task, who.issue).kept()
    return waits


def _both(one: Intervals, other: Intervals) -> Intervals:
    names = ("start", "end", "context", "task", "issue")
    return Intervals(*(np.concatenate([getattr(one, name), getattr(other, name)]) for name in names))


def _switches(trace: Trace, core: int, unit: int) -> Intervals:
    mine = (trace.switch("core") == core) & (trace.switch("unit") == unit)
    start = trace.switch("start")[mine]
    none = np.full(len(start), -1)
    return Intervals(start, start + trace.switch("cycles")[mine], trace.switch("after")[mine], none, none)
