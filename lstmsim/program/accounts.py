"""Accounts: every cycle of every core, or of every instance of its main unit, has exactly one name.

A cycle is `busy` or `switch` if the core's array issued or switched. Otherwise it bears the first of the names of
`PRIORITY` that any thread has, else it is `idle`. The next operation of a thread on the unit stands at the head from
the cycle after the last issue before it (or from its admission, or the end of a pause). Until it issues it lacks what
`CAUSES` names, in this order of strength; when it lacks nothing, the thread is `ready`. After its last issue, and from
the cycle in which it is asked to pause, a thread drains. A paused task has no thread, and waits for nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ProgramError
from lstmsim.program.operations import Operation
from lstmsim.program.program import Phase, Program
from lstmsim.program.runs import in_rounds, runs_of
from lstmsim.program.stall_reasons import CAUSES, CYCLE_NAMES
from lstmsim.program.trace import Totals, Trace

Column = NDArray[np.int64]
#: The numbers and phases of runs.
_Ran = list[tuple[int, tuple[Phase, ...]]]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals of threads, columns of equal length: `start <= cycle < end`; task and row of `issues` may be -1."""

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

    def of_instance(self, instance: int, instances: int) -> Intervals:
        """The intervals of the threads that use one of several instances of a unit."""
        return self if instances == 1 else self.where(self.context % instances == instance)


_NOTHING = Intervals(*(np.zeros(0, dtype=np.int64) for _ in range(5)))


@dataclass(frozen=True, eq=False)
class CoreSpans:
    """Everything that happened on the accounted unit of one core: issues, switches, and waits of threads by cause.

    switch: `context` is the thread after the switch, `task` is -1; waits: each cause, `drain` and `ready`.
    """

    busy: Intervals
    switch: Intervals
    waits: dict[str, Intervals]

    def of_instance(self, instance: int, instances: int) -> CoreSpans:
        """What happened on one of several instances of the unit."""
        waits = {name: each.of_instance(instance, instances) for name, each in self.waits.items()}
        return CoreSpans(
            self.busy.of_instance(instance, instances), self.switch.of_instance(instance, instances), waits
        )


@dataclass(frozen=True, eq=False)
class Stays:
    """When tasks had a thread of a core, from admission or return to pause or finish, sorted by (context, start)."""

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
    runs = runs_of(trace.tasks, trace.pauses)
    # the others of a batch are on the thread of the one that leads it
    runs = runs.where((runs.core == core) & runs.leads)
    thread_slots = np.flatnonzero(trace.thread_slot("core") == core)
    placed = trace.thread_slot("task")[thread_slots]
    task = np.concatenate([runs.task, placed])
    context = [runs.context, trace.thread_slot("context")[thread_slots]]
    begin = np.concatenate([runs.start, trace.task("admitted")[placed]])
    end = [runs.end, trace.task("finish")[placed]]
    where, until = np.concatenate(context), np.concatenate(end)
    # a task that finishes in the cycle of its admission stands before the one that has its thread then
    order = np.lexsort((until, begin, where))
    return Stays(begin[order], until[order], where[order], task[order])


def core_spans(program: Program, trace: Trace, core: int) -> CoreSpans:
    """The intervals of a core. They are in no particular order; a core without an accounted unit has none.

    Of a unit with several instances, each thread is on one of them, so intervals of different instances may overlap.
    """
    unit = program.cores[core].accounted
    if unit is None:
        return CoreSpans(_NOTHING, _NOTHING, dict.fromkeys((*CAUSES, "ready", "drain"), _NOTHING))
    stays = stays_on(trace, core)
    rows = trace.issues_on(core, unit)
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


def _per_phase(program: Program, ran: _Ran, fill: int) -> NDArray[np.int64]:
    """A row for each run, wide enough for what ran: a batch may have more phases than its tasks alone."""
    width = max((len(phases) for _, phases in ran), default=1)
    return np.full((max(len(program.tasks), len(ran)), width), fill, dtype=np.int64)


def phases_that_ran(program: Program, trace: Trace) -> tuple[_Ran, Column, Column]:
    """The phases of all runs that were not a part of another one, which run each row of issues is of, and its step.

    The runs: each a number and phases, of a task that led a batch those of its size. In rounds, each is one step.
    """
    kinds = [each.kind for each in program.cores]
    if in_rounds(trace):
        runs = runs_of(trace.tasks, trace.pauses)
        sizes = runs.sizes[runs.leads]
        steps, runs = np.where(runs.batch >= 0, runs.numbers, 0)[runs.leads], runs.where(runs.leads)
        own = zip(runs.task.tolist(), runs.core.tolist(), sizes.tolist(), strict=True)
        each = [program.tasks[task].phases(kinds[core], trace.spread(task), size) for task, core, size in own]
        rounds = np.array([program.tasks[task].in_rounds(program.pools) for task in runs.task.tolist()], dtype=bool)
        of = runs.of(trace.issue("task"), trace.issue("start"))
        return list(enumerate(each)), of, np.where(rounds, steps, 0)[of]
    ran = [
        (number, program.tasks[number].phases(kinds[core], trace.spread(number), trace.size(number)))
        for number, core in enumerate(trace.task("core").tolist())
        if core >= 0
    ]
    return ran, trace.issue("task"), np.zeros(len(trace.issues), dtype=np.int64)


def issued_operations(program: Program, trace: Trace) -> tuple[list[Operation], NDArray[np.int64]]:
    """List all operations of the bodies that ran, and for each row of `trace.issues` the place of its operation."""
    operations: list[Operation] = []
    first: dict[int, list[int]] = {}
    ran, run, _ = phases_that_ran(program, trace)
    base = _per_phase(program, ran, 0)
    for number, phases in ran:
        if id(phases) not in first:
            first[id(phases)] = []
            for phase in phases:
                first[id(phases)].append(len(operations))
                operations.extend(phase.body.operations)
        base[number, : len(phases)] = first[id(phases)]
    return operations, base[run, trace.issue("phase")] + trace.issue("operation")


def issued_steps(program: Program, trace: Trace) -> NDArray[np.int64]:
    """The time step of each row of `trace.issues`, in rounds that of the task that leads (`Phase.step`)."""
    ran, run, step = phases_that_ran(program, trace)
    first, sign = _per_phase(program, ran, 0), _per_phase(program, ran, 1)
    for number, phases in ran:
        first[number, : len(phases)] = [phase.step(0) for phase in phases]
        sign[number, : len(phases)] = [-1 if phase.mirrored else 1 for phase in phases]
    operations, index = issued_operations(program, trace)
    ahead = np.array([operation.ahead for operation in operations], dtype=np.int64)[index]
    where = run, trace.issue("phase")
    steps: NDArray[np.int64] = step + first[where] + sign[where] * (trace.issue("iteration") + ahead)
    return steps


#: The order in which a core looks for the name of a cycle.
PRIORITY = CYCLE_NAMES[:-1]


@dataclass(frozen=True, eq=False)
class NamedCycles:
    """The cycles of a core's main unit, or of one of its instances, from 0 to the makespan, as named segments.

    edges, name: segment i covers `edges[i] <= cycle < edges[i+1]` and has the name at `name[i]` in `names`.
    """

    names: tuple[str, ...]
    edges: NDArray[np.int64]
    name: NDArray[np.int8]

    def each(self) -> tuple[str, ...]:
        """The name of every cycle from 0 on."""
        return tuple(self.names[index] for index in np.repeat(self.name, np.diff(self.edges)).tolist())

    def totals(self) -> dict[str, int]:
        """Cycles by name; they add up to the makespan."""
        lengths = np.diff(self.edges)
        return {name: int(lengths[self.name == index].sum()) for index, name in enumerate(self.names)}


def named_cycles(
    program: Program, trace: Trace, core: int, spans: CoreSpans | None = None, instance: int = 0
) -> NamedCycles:
    """Name every cycle of a core, or of one instance of its unit; a core without an accounted unit has no names."""
    described = program.cores[core]
    if described.accounted is None:
        return NamedCycles(CYCLE_NAMES, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int8))
    spans = (spans or core_spans(program, trace, core)).of_instance(
        instance, described.units[described.accounted].instances
    )
    by_name: Mapping[str, Intervals] = {"busy": spans.busy, "switch": spans.switch, **spans.waits}
    ends = [array for each in by_name.values() for array in (each.start, each.end)]
    edges = np.sort(np.concatenate([*ends, np.array([0, trace.makespan_cycles])]))
    edges = edges[np.diff(edges, prepend=-1) > 0]
    names = CYCLE_NAMES
    name = np.full(max(len(edges) - 1, 0), names.index("idle"), dtype=np.int8)
    for index in reversed(range(len(PRIORITY))):
        each = by_name[PRIORITY[index]]
        change = np.zeros(len(edges), dtype=np.int64)
        np.add.at(change, np.searchsorted(edges, each.start), 1)
        np.add.at(change, np.searchsorted(edges, each.end), -1)
        name[np.cumsum(change)[:-1] > 0] = index
    return NamedCycles(names, edges, name)


def useful_work(program: Program, trace: Trace) -> list[int]:
    """Count the useful multiply-accumulates that each core issued."""
    operations, index = issued_operations(program, trace)
    work = np.array([operation.work for operation in operations], dtype=np.int64)
    done = work[index] * trace.issue("count")
    if done.sum(dtype=float) >= 2**63:
        raise ProgramError("a sum does not fit into 64 bits")
    return [int(done[trace.issue("core") == core].sum()) for core in range(len(program.cores))]


def totals_of(program: Program, trace: Trace) -> Totals:
    """The totals of a run, read off its trace."""
    rows = []
    for core, described in enumerate(program.cores):
        spans = core_spans(program, trace, core)
        instances = 1 if described.accounted is None else described.units[described.accounted].instances
        named = [named_cycles(program, trace, core, spans, instance).totals() for instance in range(instances)]
        rows.append([sum(each[name] for each in named) for name in CYCLE_NAMES])
    cycles = np.array(rows, dtype=np.int64)
    issues = np.bincount(trace.issue("core"), weights=trace.issue("count"), minlength=len(program.cores))
    work = np.array(useful_work(program, trace), dtype=np.int64)
    return Totals(cycles.reshape(-1, len(CYCLE_NAMES)), work, issues.astype(np.int64), trace.tasks, trace.pauses)
