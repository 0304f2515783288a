"""What held the slowest requests up: where their time went, and that of all requests (docs/traces.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.explanations.company import closings, unripe
from lstmsim.analysis.explanations.stints import Stints, stints_of
from lstmsim.analysis.stall_words import NAMED
from lstmsim.analysis.timeline import owners
from lstmsim.model.figures import Words
from lstmsim.model.scenario import Job, arriving
from lstmsim.program.accounts import CoreSpans, Intervals, Stays, core_spans, named_cycles, stays_on
from lstmsim.program.program import Program
from lstmsim.program.stall_reasons import CYCLE_NAMES, CYCLES
from lstmsim.program.trace import Trace

Places = tuple[tuple[int, ...], ...]

#: The name of cycles in which the request's own work issues. Outputs show the name of the main unit in its place.
WORK = "work"

#: Names that are no cycle names of a machine -> what goes on in such a cycle of a request, and the end of the sentence
#: "they spent 71 % of their time ...". `queue, weights`: a thread is free, but not the room for the request's weights;
#: or all cores that the request may use do nothing but load. `queue, kept`: the free thread is kept for an earlier
#: request that needs several threads at once.
_OTHERS = {
    "queue": ("no thread is free", "in the queue, with no thread free"),
    "batch": ("its window is open, or its pool is not ripe", "in their pools, waiting for company"),
    "queue, weights": (
        "weights are loaded before it can begin",
        "in the queue, held up by weights that were loaded (reload)",
    ),
    "queue, kept": (
        "a free thread is kept for another request",
        "in the queue, beside threads kept for other requests",
    ),
    "paused": ("another request has its thread", "paused, while others had the thread"),
    WORK: ("the unit issues its work", "at work in the unit"),
    "other threads": ("it could issue, the unit serves others", "behind other threads' work"),
}
_WORDS = _OTHERS | {name: (NAMED[name].share, NAMED[name].spent) for name in CYCLE_NAMES if NAMED[name].share}

#: Name -> what goes on in such a cycle. `drain` also comes before a pause.
SHARES: Mapping[str, str] = {name: share for name, (share, _) in _WORDS.items()}

#: The same names -> where time goes, as the end of the sentence "they spent 71 % of their time ...".
SPENT: Mapping[str, str] = {name: spent for name, (_, spent) in _WORDS.items()}

_NAMES = tuple(SHARES)


def share_words(name: str, own: Mapping[str, Words]) -> tuple[str, str]:
    """What goes on in a cycle of a request, and the end of the sentence "they spent 71 % of their time ..."."""
    mine = own.get(name, Words())
    return mine.share or SHARES[name], mine.spent or SPENT[name]


def latency_shares(program: Program, trace: Trace, jobs: int | None = None) -> Numbers:
    """Count the cycles of each task by name, or of each job where further tasks do the work of jobs."""
    shares = np.zeros((len(program.tasks), len(_NAMES)), dtype=np.int64)
    spans = {number: core_spans(program, trace, number) for number, core in enumerate(program.cores) if not core.shared}
    _queue(program, trace, spans, shares)
    pauses = trace.pause("resumed") - trace.pause("paused")
    np.add.at(shares[:, _NAMES.index("paused")], trace.pause("task"), pauses)
    whose = owners(program, len(program.tasks) if jobs is None else jobs)
    if program.pools:
        stints = stints_of(program, trace)
        spans = {number: _of_members(trace, stints, each) for number, each in spans.items()}
    _threads(program, trace, spans, shares, whose)
    if jobs is not None and jobs < len(program.tasks):
        served = trace.task("core") >= 0
        latencies = np.where(served, trace.task("finish") - trace.task("arrived"), 0)
        shares[:jobs, _NAMES.index("start")] += (latencies - shares.sum(axis=1))[:jobs]
    return shares


@dataclass(frozen=True, eq=False)
class _Condition:
    """In which cycles a condition holds: from `edges[i]` on as `holds[i]` says, and never before the first edge."""

    edges: Numbers
    holds: NDArray[np.bool_]

    def at(self, cycles: Numbers) -> NDArray[np.bool_]:
        """Whether the condition holds in these cycles."""
        place = np.searchsorted(self.edges, cycles, side="right")
        return np.concatenate([[False], self.holds])[place]

    def before(self, cycles: Numbers) -> Numbers:
        """In how many cycles before each of `cycles` the condition holds."""
        place = np.searchsorted(self.edges, cycles, side="right") - 1
        whole = np.concatenate([[0], np.cumsum(np.diff(self.edges) * self.holds[:-1])])
        within = (cycles - self.edges[place]) * self.holds[place]
        counts: Numbers = np.where(place >= 0, whole[place] + within, 0)
        return counts

    def without(self, other: _Condition) -> _Condition:
        """The condition in those cycles in which the other one does not hold."""
        joint = np.unique(np.concatenate([self.edges, other.edges]))
        return _Condition(joint, self.at(joint) & ~other.at(joint))

    def within(self, start: Numbers, end: Numbers) -> Numbers:
        """In how many cycles of each interval `start <= cycle < end` the condition holds."""
        return self.before(end) - self.before(start)


def _queue(program: Program, trace: Trace, spans: Mapping[int, CoreSpans], shares: Numbers) -> None:
    """Count the cycles before admission, in place in `shares`."""
    alike: dict[tuple[Places, bool, int | None], list[int]] = {}
    served = trace.task("core") >= 0
    for number in np.flatnonzero(served & (trace.task("admitted") > trace.task("arrived"))).tolist():
        task = program.tasks[number]
        alike.setdefault((task.places, task.weight_set is not None, task.pool), []).append(number)
    stays = {number: stays_on(trace, number) for number in range(len(program.cores))} if alike else {}
    loading = {}
    if any(weight_set for _, weight_set, _ in alike):
        loading = {number: _loading(program, trace, number, each) for number, each in spans.items()}
    for (places, weight_set, pool), tasks in alike.items():
        rows = np.array(tasks, dtype=np.int64)
        arrived, admitted = trace.task("arrived")[rows], trace.task("admitted")[rows]
        free = _free(program, stays, places)
        arrived, waits = _after_company(program, trace, pool, rows, arrived)
        company = arrived - trace.task("arrived")[rows] + waits.within(arrived, admitted)
        shares[rows, _NAMES.index("batch")] = company
        free = free.without(waits)
        beside = free.within(arrived, admitted)
        if weight_set:
            cores = {place[0] for place in places}
            edges = np.unique(np.concatenate([free.edges, *(loading[core].edges for core in cores)]))
            alone = ~free.at(edges) & np.logical_and.reduce([loading[core].at(edges) for core in cores])
            beside += _Condition(edges, alone).without(waits).within(arrived, admitted)
        shares[rows, _NAMES.index("queue, weights" if weight_set else "queue, kept")] = beside
        shares[rows, _NAMES.index("queue")] = admitted - trace.task("arrived")[rows] - company - beside


def _after_company(
    program: Program, trace: Trace, pool: int | None, rows: Numbers, arrived: Numbers
) -> tuple[Numbers, _Condition]:
    """From when on tasks of a pool were in no open window, and when their pool was not ripe after that."""
    never = _Condition(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool))
    if pool is None or program.pools[pool].policy == "continuous":
        return arrived, never
    if program.pools[pool].policy == "window":
        closed = closings(program, trace, pool)
        return np.array([closed[number] for number in rows.tolist()], dtype=np.int64), never
    own = np.array([number for number, task in enumerate(program.tasks) if task.pool == pool], dtype=np.int64)
    came, left = trace.task("arrived")[own].tolist(), trace.task("admitted")[own].tolist()
    edges, holds = unripe(program.pools[pool], came, left)
    return arrived, _Condition(np.array(edges, dtype=np.int64), np.array(holds, dtype=bool))


def _of_members(trace: Trace, stints: Stints, spans: CoreSpans) -> CoreSpans:
    """The intervals of the threads of batches as those of each of their members, up to its own finish."""
    company = [stints.company(number) for number in range(len(stints.task))]
    counts = np.array([len(each) for each in company], dtype=np.int64)
    first = np.cumsum(counts) - counts
    members = np.array([each for own in company for each in own], dtype=np.int64)
    of = np.repeat(np.arange(len(company)), counts)
    ends = np.where(stints.last[members] == of, trace.task("finish")[members], stints.end[of])
    # stints stand in order of tasks, and those of a task in order of time
    span = int(max(stints.begin.max(initial=0), stints.end.max(initial=0))) + 1
    keys = stints.task * span + stints.begin

    def each(one: Intervals) -> Intervals:
        stint = np.searchsorted(keys, one.task * span + one.start, side="right") - 1
        row = np.repeat(np.arange(len(one.start)), counts[stint])
        number = np.arange(len(row)) - np.repeat(np.cumsum(counts[stint]) - counts[stint], counts[stint])
        place = first[stint[row]] + number
        end = np.minimum(one.end[row], ends[place])
        return Intervals(one.start[row], end, one.context[row], members[place], one.issue[row]).kept()

    waits = {name: each(intervals) for name, intervals in spans.waits.items()}
    return CoreSpans(each(spans.busy), spans.switch, waits)


def _free(program: Program, stays: Mapping[int, Stays], places: Places) -> _Condition:
    """Whether the threads of any of these places are free, after the admissions of the cycle."""
    own = {core: stays[core] for place in places for core in place}
    edges = np.unique(np.concatenate([[0], *(array for each in own.values() for array in (each.start, each.end))]))
    free = {
        core: program.cores[core].contexts
        - np.searchsorted(np.sort(each.start), edges, side="right")
        + np.searchsorted(np.sort(each.end), edges, side="right")
        for core, each in own.items()
    }
    any_place = np.zeros(len(edges), dtype=bool)
    for place in places:
        any_place |= np.logical_and.reduce([free[core] >= place.count(core) for core in set(place)])
    return _Condition(edges, any_place)


def _loading(program: Program, trace: Trace, core: int, spans: CoreSpans) -> _Condition:
    """Whether a core can do nothing because the weights of a model are being loaded."""
    named = named_cycles(program, trace, core, spans)
    loads = [named.names.index(each.name) for each in CYCLES if each.before_work]
    holds = np.append(np.isin(named.name, loads), [False])
    return _Condition(named.edges, holds)


def _threads(program: Program, trace: Trace, spans: Mapping[int, CoreSpans], shares: Numbers, whose: Numbers) -> None:
    """Count the cycles with a thread, in place in `shares`; those of a task as those of the one that `whose` names."""
    several = np.zeros(len(program.tasks), dtype=bool)
    arrays = np.array([not core.shared for core in program.cores])
    several[trace.thread_slot("task")[arrays[trace.thread_slot("core")]]] = True
    # the threads of a batch are those of its first member, whose cycles all of them have
    leads = trace.task("batch")
    several |= several[leads] & (leads >= 0)
    several[whose[whose != np.arange(len(whose))]] = True
    several = several[whose]
    of_several: list[tuple[int, Intervals]] = []
    for each in _each_way(program, spans):
        ready, switch = _between(each.waits["ready"], each.switch)
        named = {**each.waits, WORK: each.busy, "other threads": ready, "switch": switch}
        for name, intervals in named.items():
            if name == "ready":
                continue
            place, alone = _NAMES.index(name), ~several[intervals.task]
            np.add.at(shares[:, place], intervals.task[alone], (intervals.end - intervals.start)[alone])
            beside = intervals.where(~alone)
            of_several.append((place, replace(beside, task=whose[beside.task])))
    if several.any():
        _several(trace, of_several, shares)


def _each_way(program: Program, spans: Mapping[int, CoreSpans]) -> Iterator[CoreSpans]:
    """The intervals of each instance of each main unit."""
    for number, each in spans.items():
        core = program.cores[number]
        if core.accounted is not None:
            count = core.units[core.accounted].instances
            yield from (each.of_instance(number, count) for number in range(count))


def _between(ready: Intervals, switch: Intervals) -> tuple[Intervals, Intervals]:
    """Cut the intervals of threads that could issue where the unit begins or ends a switch."""
    edges = np.stack([np.sort(switch.start), np.sort(switch.end)], axis=1).reshape(-1)
    # switches do not overlap; where one ends and the next begins at once there are two equal edges
    first = np.searchsorted(edges, ready.start, side="right")
    last = np.searchsorted(edges, ready.end, side="left")
    pieces = last - first + 1
    row = np.repeat(np.arange(len(pieces)), pieces)
    number = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    padded = np.concatenate([edges, [0]])
    start = np.where(number == 0, ready.start[row], padded[first[row] + number - 1])
    end = np.where(number == pieces[row] - 1, ready.end[row], padded[first[row] + number])
    inside = (first[row] + number) % 2 == 1
    cut = Intervals(start, end, ready.context[row], ready.task[row], ready.issue[row])
    return cut.where(~inside), cut.where(inside)


def _several(trace: Trace, named: list[tuple[int, Intervals]], shares: Numbers) -> None:
    """Count the cycles of tasks with several threads. All tasks share one axis of cycles, each has a stretch of it."""
    span = trace.makespan_cycles + 1
    tables = [(place, each.task * span + each.start, each.task * span + each.end) for place, each in named]
    edges = np.unique(np.concatenate([array for _, start, end in tables for array in (start, end)]))
    name = np.full(len(edges), -1, dtype=np.int64)
    for place, start, end in sorted(tables, key=lambda each: -each[0]):
        change = np.zeros(len(edges) + 1, dtype=np.int64)
        np.add.at(change, np.searchsorted(edges, start), 1)
        np.add.at(change, np.searchsorted(edges, end), -1)
        name[np.cumsum(change)[:-1] > 0] = place
    lengths = np.diff(edges, append=edges[-1:])
    known = name >= 0
    np.add.at(shares, (edges[known] // span, name[known]), lengths[known])


Numbers = NDArray[np.int64]

#: How many of the slowest requests are listed one by one.
MAX_LISTED = 10
#: One request of so many is among the slowest, rounded up.
_ONE_OF = 100


@dataclass(frozen=True)
class LatencyShare:
    """Cycles of a request of one name, the means over the slowest requests and over all that were served."""

    name: str
    slowest: float
    all: float


@dataclass(frozen=True)
class RequestCycles:
    """A request that was served; its cycles by name add up to the latency, names of 0 cycles are left out."""

    job: str
    arrival: int
    latency_cycles: int
    cycles: dict[str, int]


#: The name of cycles of a task that is at work in units whose cycles have no names.
OTHER = "other"


def cycles_by_request(
    jobs: Sequence[str], program: Program, trace: Trace, unit: str = WORK
) -> tuple[RequestCycles | None, ...]:
    """Say for each job of which cycles its latency consists; None for a job that was rejected.

    jobs: the names of the first tasks of the program; further tasks do their work.
    unit: the name of cycles in which a job's own work issues.
    """
    shares = latency_shares(program, trace, len(jobs))[: len(jobs)]
    names = [*(unit if each == WORK else each for each in SHARES), OTHER]
    core, arrived, finish = (trace.task(name)[: len(jobs)] for name in ("core", "arrived", "finish"))
    latencies = finish - arrived
    # only a program that no machine made has a job on a core without an accounted unit
    table = np.append(shares, (latencies - shares.sum(axis=1))[:, None], axis=1)
    rows = zip(jobs, core.tolist(), arrived.tolist(), latencies.tolist(), table.tolist(), strict=True)
    return tuple(
        RequestCycles(job, came, latency, {name: count for name, count in zip(names, counts, strict=True) if count})
        if place >= 0
        else None
        for job, place, came, latency, counts in rows
    )


@dataclass(frozen=True)
class TailLatency:
    """Mean latency in cycles of all requests that were served, and of the slowest."""

    mean: float
    slowest: float


@dataclass(frozen=True)
class Slowest:
    """The slowest 1 % of the requests of a run (rounded up, at least one) against all of them.

    count, from_cycles: how many are among the slowest, and the least latency of these.
    shares: what the mean latencies consist of, the largest share of the slowest first; each column adds up to its mean.
    listed: the slowest requests one by one, at most `MAX_LISTED`.
    way: how jobs come, a key of `lstmsim.model.scenario.ARRIVING`.
    split: whether any request has threads on several cores.
    unit: the name of cycles in which a request's own work issues: that of the main unit.
    """

    requests: int
    count: int
    from_cycles: int
    rejected: int
    latency: TailLatency
    shares: tuple[LatencyShare, ...]
    listed: tuple[RequestCycles, ...]
    way: str
    split: bool = False
    unit: str = WORK
    words: Mapping[str, Words] = field(default_factory=dict)

    def described(self, name: str) -> tuple[str, str]:
        """What goes on in cycles of that name, and the end of the sentence "they spent 71 % of their time ..."."""
        return share_words(WORK if name == self.unit else name, self.words)


def slowest_of(latencies: Numbers) -> Numbers:
    """Choose the slowest 1 % of latencies, rounded up. Returns their places, the slowest first; ties by place."""
    count = -(-len(latencies) // _ONE_OF)
    places: Numbers = np.argsort(-latencies, kind="stable")[:count]
    return places


def tail_latency(latencies: Numbers) -> TailLatency:
    """The mean of all latencies, and the mean of the slowest 1 %."""
    return TailLatency(float(latencies.mean()), float(latencies[slowest_of(latencies)].mean()))


def slowest(
    jobs: Sequence[Job],
    program: Program,
    trace: Trace,
    unit: str = WORK,
    words: Mapping[str, Words] | None = None,
    requests: Sequence[RequestCycles | None] | None = None,
) -> Slowest | None:
    """Say what held the slowest requests of a run up; None if all come in one cycle or fewer than two were served.

    requests: what `cycles_by_request` gives for the jobs, if it is known.
    """
    way = arriving(jobs)
    if way == "at once":
        return None
    if requests is None:
        requests = cycles_by_request([job.name for job in jobs], program, trace, unit)
    served = [each for each in requests if each is not None]
    if len(served) < 2:
        return None
    latencies = np.array([each.latency_cycles for each in served], dtype=np.int64)
    last = slowest_of(latencies)
    names = [unit if each == WORK else each for each in SHARES]
    means = [(each, np.array([one.cycles.get(each, 0) for one in served], dtype=np.int64)) for each in names]
    columns = [LatencyShare(name, float(column[last].mean()), float(column.mean())) for name, column in means]
    arrays = np.array([not core.shared for core in program.cores])
    return Slowest(
        requests=len(served),
        count=len(last),
        from_cycles=int(latencies[last[-1]]),
        rejected=len(jobs) - len(served),
        latency=tail_latency(latencies),
        shares=tuple(sorted((each for each in columns if each.slowest or each.all), key=lambda each: -each.slowest)),
        listed=tuple(served[row] for row in last[:MAX_LISTED].tolist()),
        way=way,
        split=bool(arrays[trace.thread_slot("core")].any()),
        unit=unit,
        words=words or {},
    )
