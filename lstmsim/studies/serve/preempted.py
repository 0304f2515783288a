"""The load of jobs that stop others: what stopping and going on costs is measured, for no key says it.

A job that is stopped waits for its last results, and issues nothing meanwhile. How often that happens depends on who
comes while whom runs. So it is measured: requests of all ranks but the lowest come as they do in the scenario, beside
a queue of jobs of the lowest rank that never ends, and the cycles of threads that each request takes are counted,
pauses left out. Times the rates of the requests they are the load.

* With fixed ranks a queue of the lowest rank grows beyond all bounds if and only if this load is 1 or more.
* Ranks by deadlines (`edf`) protect who has waited for long. So fewer jobs are stopped than in the measurement, in
  which those of the longest deadline give way to all others, and the load is at most the measured one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim import engines, machines
from lstmsim.files.scenario.requests import MAX_REQUESTS
from lstmsim.model.scenario import DISPATCH, Chip, Job, cores_at_once
from lstmsim.program.trace import TASKS
from lstmsim.traffic.arrivals import Stream, arrival_arrays
from lstmsim.traffic.intervals import batch_interval
from lstmsim.traffic.load import Preemption
from lstmsim.traffic.streams import below

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Requests of a first measurement, and of the last one where the load may be 1 for all that is known; by steps of this.
_FIRST, _LAST, _TIMES = 20_000, 320_000, 4
#: A measurement that could go on is ended only by a load that is this many half widths away from 1.
_EARLY = 2.0
#: Fewest jobs of the lowest rank that tell what a job takes, and into how many batches they are put at most.
_LEAST, _BATCHES = 30, 20
#: So many standard deviations away is certain.
_CERTAIN = 4.0
#: What is drawn of arrivals may differ from their rate by this share; more says that bursts are longer than the run.
_OFF = 0.1


class Ranked(NamedTuple):
    """Requests of one entry that are alike, with their rank.

    rate: number of them that come in a cycle.
    threads: cycles of threads that one of them takes alone.
    process: arrivals of the entry, as in `Offer.process`.
    """

    job: Job
    entry: str
    rate: float
    threads: float
    process: Any

    @property
    def rank(self) -> int:
        """The larger it is, the sooner the job is stopped."""
        return DISPATCH[self.job.dispatch](self.job)[0]


@lru_cache(maxsize=64)
def preemption_of(chip: Chip, kinds: tuple[Ranked, ...], contexts: tuple[int, ...]) -> Preemption | None:
    """Measure the load with preemption, of the cores where it is largest; None where no job can stop another."""
    kinds = tuple(each._replace(job=_due(chip, each)) for each in kinds)
    found = []
    for cores, inside in _apart(kinds, len(contexts)):
        if not inside[0].job.preempts or len({each.rank for each in inside}) == 1:
            continue
        if any(each.process is None for each in inside):
            return Preemption(None, missing="what preemption costs is not known: nobody has said how requests come")
        if not _comparable(cores, inside):
            text = "what preemption costs is not known where jobs of several ranks share some of their cores, not all"
            return Preemption(None, missing=text)
        threads = sum(contexts[core] for core in cores)
        told = _told(chip, inside, threads)
        found.append(replace(told, cores=tuple(sorted(cores)), shared=threads > len(cores)))
    return max(found, key=lambda each: each.most, default=None)


def _due(chip: Chip, kind: Ranked) -> Job:
    """The job with the deadline that frames of a stream have, and without the limits that reject it."""
    job = replace(kind.job, queue_limit=None, patience=None)
    if job.deadline is None and isinstance(kind.process, Stream):
        return replace(job, deadline=ceil(kind.process.frame_ms * chip.frequency_mhz * 1000))
    return job


def _apart(kinds: Sequence[Ranked], cores: int) -> list[tuple[frozenset[int], list[Ranked]]]:
    """Sets of cores that share no jobs, each with its jobs."""
    sets: list[tuple[frozenset[int], list[Ranked]]] = []
    for kind in kinds:
        own = frozenset(kind.job.allowed(cores))
        meeting = [each for each in sets if each[0] & own]
        sets = [each for each in sets if not each[0] & own]
        sets.append((own.union(*(each[0] for each in meeting)), [*(one for each in meeting for one in each[1]), kind]))
    return sets


def _comparable(cores: frozenset[int], kinds: Sequence[Ranked]) -> bool:
    """Whether a queue of the lowest rank keeps all threads taken, and tells all that preemption costs."""
    low = max(each.rank for each in kinds)
    own = {each.rank: set[frozenset[int]]() for each in kinds}
    for each in kinds:
        own[each.rank].add(frozenset(each.job.allowed(max(cores) + 1)) & cores)
    above = [sets for rank, sets in own.items() if rank != low]
    return own[low] == {cores} and (len(above) == 1 or all(sets == {cores} for sets in above))


def _told(chip: Chip, kinds: Sequence[Ranked], threads: int) -> Preemption:
    """Measure with more and more requests until the load is certainly below 1, or is not."""
    requests = _FIRST
    while True:
        found = _measured(chip, kinds, threads, requests)
        widths = _EARLY if requests < _LAST else 1.0
        if requests >= _LAST or (found.load is not None and abs(found.load - 1) > widths * found.half_width):
            return found
        requests *= _TIMES


def _measured(chip: Chip, kinds: Sequence[Ranked], threads: int, requests: int) -> Preemption:
    """Measure the load with about so many requests."""
    ranks, rates, alone = (
        np.array(each) for each in zip(*((one.rank, one.rate, one.threads) for one in kinds), strict=True)
    )
    low = ranks == ranks.max()
    loads = [float((rates * alone)[some].sum()) / threads for some in (~low, low)]
    coming = float(rates[~low].sum())
    most = (1 - loads[0]) * float(rates[low].sum()) / loads[1]  # of the lowest rank that may be done in a cycle
    span = ceil(requests / (most + coming))
    if coming * span < _LEAST:
        # stopping a job and going on takes no longer than all of it
        return Preemption(sum(loads) + coming * float(alone.max()) / threads, exact=False)
    came = _coming(chip, kinds, low, span)
    if abs(came.shape[1] / (coming * span) - 1) > max(_OFF, _CERTAIN / (coming * span) ** 0.5):
        return Preemption(None, missing=_missing(requests, "come at the rate of their entries"))
    places = np.flatnonzero(low)[drawn_places(rates[low].tolist(), ceil(most * span) + threads)]
    releases = np.concatenate([np.zeros(len(places), dtype=np.int64), came[0]])
    run = _run(chip, kinds, low, releases, np.concatenate([places, came[1]]))
    last = kinds[int(low.argmax())].job
    exact = last.dispatch != "edf" or last.deadline is None
    end = min(span, int(run.start[low[run.kind]].max()))
    return _estimated(run, low, alone, loads, end, float(rates[low].sum()), Preemption(None, exact=exact))


def _estimated(
    run: _Run, low: NDArray[np.bool_], alone: Floats, loads: Sequence[float], end: int, rate: float, made: Preemption
) -> Preemption:
    """Put the load together from what requests took that were done until cycle `end`, without the first tenth."""
    lowest, own = low[run.kind], alone[run.kind]
    counted = (run.finish > end // 10) & (run.finish <= end)

    def load(inside: NDArray[np.bool_]) -> float:
        parts = zip(loads, (inside & ~lowest, inside & lowest), strict=True)
        return sum(each * (float(run.taken[part].sum() / own[part].sum()) if part.any() else 1) for each, part in parts)

    number = int((counted & lowest).sum())
    made = replace(made, load=load(counted), requests=int(counted.sum()))
    if number >= _LEAST:
        edges = np.linspace(end // 10, end, min(_BATCHES, number // 3) + 1)
        batches = [load(counted & (run.finish > since) & (run.finish <= until)) for since, until in pairwise(edges)]
        return replace(made, half_width=batch_interval(made.load or 0.0, batches).half_width or 0.0)
    if number + _CERTAIN * (number + 1) ** 0.5 < (1 - _OFF) * rate * (end - end // 10):
        # far fewer of the lowest rank are done than come, for the others leave no time
        return replace(made, load=max(1.0, made.load or 0.0))
    return Preemption(None, missing=_missing(len(run.kind), f"hold {_LEAST} of the lowest rank that are done"))


def _missing(requests: int, what: str) -> str:
    return f"what preemption costs could not be measured: {requests:,} requests do not {what}"


def _coming(chip: Chip, kinds: Sequence[Ranked], low: NDArray[np.bool_], span: int) -> Ints:
    """What comes within so many cycles and is not of the lowest rank: its cycles, and its places among the kinds."""
    columns = [np.zeros((2, 0), dtype=np.int64)]
    for entry in dict.fromkeys(each.entry for each in kinds):
        own = np.array([number for number, each in enumerate(kinds) if each.entry == entry])
        rates = [kinds[number].rate for number in own.tolist()]
        cycles = _cycles(chip, entry, kinds[own[0]].process, sum(rates), span)
        places = own[drawn_places(rates, len(cycles))]
        columns.append(np.stack([cycles, places])[:, ~low[places]])
    came = np.concatenate(columns, axis=1)
    return came[:, np.argsort(came[0], kind="stable")]


def _cycles(chip: Chip, entry: str, process: Any, rate: float, span: int) -> Ints:
    """The arrivals of an entry within so many cycles; those of a list begin again and again."""
    if isinstance(process, tuple):
        known = np.array(process, dtype=np.int64) - process[0]
        turns = np.arange(ceil(rate * span / len(known)) + 1) * round(len(known) / rate)
        cycles = (turns[:, None] + known).ravel()
    else:
        blocks: list[Ints] = []
        for block in arrival_arrays(process, MAX_REQUESTS, chip.frequency_mhz, (entry, 1)):
            blocks.append(block.astype(np.int64))
            if blocks[-1][-1] - blocks[0][0] >= span:
                break
        cycles = np.concatenate(blocks)
        # a stream that begins late comes as it does from then on
        late = int(int(cycles[0]) * rate) / rate if getattr(process, "start_cycle", 0) else 0
        cycles = cycles - int(late)
    within: Ints = cycles[cycles < span]
    return within


class _Run(NamedTuple):
    """Figures of each request that is done: its kind, cycles, and cycles of threads that it took."""

    kind: Ints
    start: Ints
    finish: Ints
    taken: Ints


def _run(chip: Chip, kinds: Sequence[Ranked], low: NDArray[np.bool_], releases: Ints, numbers: Ints) -> _Run:
    """Simulate requests of these kinds; those of the lowest rank give way to all others."""
    jobs = tuple(
        replace(each.job, deadline=None) if lowest else each.job
        for each, lowest in zip(kinds, low.tolist(), strict=True)
    )
    keys = np.array([DISPATCH[job.dispatch](job)[0] for job in jobs])[numbers]
    program = machines.lower(chip, jobs, templates=True)
    feed = engines.feed(program, [np.stack([releases, numbers, keys], axis=1)], window=len(numbers))
    groups, paused = [], np.zeros(len(numbers), dtype=np.int64)
    for group in feed.results():
        groups.append(group)
        task, _, _, since, until = feed.pauses().T
        np.add.at(paused, task, until - since)
    number, kind, table = (np.concatenate(each) for each in zip(*groups, strict=True))
    seats = np.array([max(1, len(cores_at_once(chip, job))) for job in jobs])[kind]
    start, finish = TASKS.of(table, "admitted"), TASKS.of(table, "finish")
    servers = np.maximum(seats, np.bitwise_count(TASKS.of(table, "taken")))
    return _Run(kind, start, finish, (finish - start - paused[number]) * servers)


def drawn_places(shares: Sequence[float], requests: int) -> list[int]:
    """Draw so many indices of `shares`, each as often as its share says, in a mixed order that is always the same."""
    if len(shares) == 1:
        return [0] * requests
    ends = np.cumsum(shares) / sum(shares)
    ends[-1] = 1.0
    places: list[int] = np.searchsorted(ends, (np.arange(requests) + 0.5) / requests).tolist()
    for at, other in zip(range(requests - 1, 0, -1), below(("offered load",), 2**32), strict=False):
        swap = other % (at + 1)
        places[at], places[swap] = places[swap], places[at]
    return places
