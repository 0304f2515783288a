"""Offered load: what a mix of requests asks of a chip per second, against what the chip can do.

Two kinds of parts. Bounds that hold for certain, from each kind of job alone on the idle chip: cycles of the PE arrays
(no tile issues twice as fast in company), cycles of threads (no job ends sooner in company), cycles of the memory's
transfers. Jobs that may not use all cores are counted against those that they may use, for each union of such sets of
cores; the worst one counts. And one measurement, `saturated`: requests of the same mix, all there at once, and how
fast they start while there is a queue. What threads lose to each other and models that take turns cost is in there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, islice
from math import inf

import numpy as np

from lstmsim import engines, targets
from lstmsim.program.totals import CYCLE_NAMES
from lstmsim.serving.load import Load
from lstmsim.serving.streams import below
from lstmsim.workload.offer import Offer, estimated_offer
from lstmsim.workload.scenario import Chip, Job, Scenario

__all__ = ["Traffic", "traffic_of"]

#: Fewest and most requests of the measurement; between them a quarter of those that are asked about.
LEAST_MEASURED, MOST_MEASURED = 64, 2000
#: Sets of cores of which all unions are looked at; of more, each by itself and all together.
MOST_SETS = 8
#: Lengths of one kind of job that are simulated alone; of more, the shortest and the longest, and a line between.
MOST_LENGTHS = 4
_BUSY = CYCLE_NAMES.index("busy")


@dataclass(frozen=True)
class Traffic:
    """What comes to a machine.

    `load`: None where no rate can be said. `clients`: how many ask in a closed loop. `steady`: whether anything comes
    as a process that goes on.
    """

    load: Load | None
    clients: int
    steady: bool


@dataclass(frozen=True)
class _Kind:
    """Jobs that are alike: how many a cycle, how irregularly, on which cores; each one's cycles of arrays, of threads,
    of the memory, and its latency."""

    job: Job
    rate: float
    variability: float
    cores: frozenset[int]
    arrays: float
    threads: float
    memory: float


def traffic_of(scenario: Scenario, requests: int | None = None) -> Traffic:
    """What comes to the chip of a scenario, by the rates of its entries; `requests`: how many are asked about (all).

    Where entries have no rates, because the scenario is not from a file, they are estimated from the arrivals.

    >>> from lstmsim.loading import load_scenario
    >>> job = {"model": "lstm-512", "steps": 20, "arrival": {"kind": "poisson", "rate_per_second": 203_125}}
    >>> found = traffic_of(load_scenario({"chip": "column-npu-64k", "jobs": [job]})).load
    >>> found.parts["PE arrays"], found.bound_per_second <= 406_250
    (0.5, True)
    """
    offers = dict(scenario.offers) or _estimated(scenario)
    clients = sum(each.clients for each in offers.values())
    steady = any(each.is_process for each in offers.values())
    if clients or not steady:
        return Traffic(None, clients, steady)
    rated = [job for job in scenario.jobs if _offer(offers, job).rate_per_second > 0]
    number = Counter(job.tenant for job in rated)
    shapes = Counter(_bare(job) for job in rated)
    each = {job.tenant: _offer(offers, job) for job in rated}
    mix = tuple((job, each[job.tenant].rate_per_second * times / number[job.tenant]) for job, times in shapes.items())
    load = _load(
        scenario.chip,
        mix,
        tuple(each[job.tenant].variability for job, _ in mix),
        min(MOST_MEASURED, max(LEAST_MEASURED, (len(scenario.jobs) if requests is None else requests) // 4)),
    )
    bounded = all(job.may_leave for job in rated)
    estimated = any(offer.estimated for offer in each.values())
    return Traffic(replace(load, estimated=estimated, bounded=bounded), 0, True)


def _offer(offers: Mapping[str, Offer], job: Job) -> Offer:
    return offers.get(job.tenant, Offer())


def _estimated(scenario: Scenario) -> dict[str, Offer]:
    """By tenant, of jobs that stand for themselves."""
    if any(job.after is not None for job in scenario.jobs):
        roots = Counter(job.tenant for job in scenario.jobs if job.after is None)
        return {tenant: Offer(clients=number) for tenant, number in roots.items()}
    cycles: dict[str, list[int]] = {}
    for job in scenario.jobs:
        cycles.setdefault(job.tenant, []).append(job.arrival)
    clock = scenario.chip.frequency_mhz
    return {tenant: estimated_offer(sorted(each), clock) for tenant, each in cycles.items()}


def _bare(job: Job) -> Job:
    """The job without what only tells it from others like it, or ranks it among them, or turns it away."""
    plain = replace(job, name=job.tenant or job.model.name, arrival=0, after=None, dispatch="fcfs", priority=0)
    return replace(plain, deadline=None, preempts=False, queue_limit=None, patience=None)


@lru_cache(maxsize=64)
def _load(chip: Chip, mix: tuple[tuple[Job, float], ...], variability: tuple[float, ...], measured: int) -> Load:
    program = targets.lower(chip, tuple(job for job, _ in mix[:1]))
    threads = [core.contexts for core in program.cores if not core.shared]
    kinds = [_kind(chip, threads, *each) for each in _alone(chip, mix, variability)]
    parts, relaxation = _bounds(kinds, threads)
    certain = max(parts.values())
    rate = sum(each for _, each in mix)
    asked = sum(kind.rate for kind in kinds)
    parts["saturated"] = asked / _capacity(chip, kinds, len(threads), max(measured, 8 * sum(threads)))
    offered = max(parts.values())
    if offered > certain and offered < 1:
        relaxation = max(relaxation, _relaxation(kinds, offered, [kind.threads for kind in kinds]))
    return Load(
        offered,
        parts,
        rate_per_second=rate,
        bound_per_second=rate / certain,
        relaxation=max(1.0, relaxation) if offered < 1 else inf,
    )


def _alone(
    chip: Chip, mix: Sequence[tuple[Job, float]], variability: Sequence[float]
) -> Iterator[tuple[Job, float, float, tuple[float, float, float]]]:
    """Each job of the mix with its cycles alone; of many lengths of one kind only some are simulated."""
    lengths: dict[Job, list[int]] = {}
    for job, _ in mix:
        lengths.setdefault(replace(job, steps=1), []).append(job.steps)
    for (job, rate), own in zip(mix, variability, strict=True):
        steps = lengths[replace(job, steps=1)]
        if len(steps) <= MOST_LENGTHS:
            yield job, rate, own, _demand(chip, job)
            continue
        short, long = min(steps), max(steps)
        share = (job.steps - short) / (long - short)
        one, two = (_demand(chip, replace(job, steps=each)) for each in (short, long))
        arrays, latency, memory = (least + (most - least) * share for least, most in zip(one, two, strict=True))
        yield job, rate, own, (arrays, latency, memory)


@lru_cache(maxsize=1024)
def _demand(chip: Chip, job: Job) -> tuple[float, float, float]:
    """Cycles of arrays, latency, cycles of the memory of a job alone: the least of those cores that it may choose."""
    cores, arrays = job.allowed(len(chip.array_cores)), chip.array_cores
    unlike = {arrays.index(arrays[core]): core for core in reversed(cores)}
    choices = [job] if job.split or len(unlike) == 1 else [replace(job, cores=(core,)) for core in unlike.values()]
    each = []
    for choice in choices:
        found = engines.totals(targets.lower(chip, (choice,)), check=False)
        busy = found.cycles[:, _BUSY]
        each.append((float(busy[: len(arrays)].sum()), float(found.makespan_cycles), float(busy[len(arrays) :].sum())))
    return min(one[0] for one in each), min(one[1] for one in each), min(one[2] for one in each)


def _kind(
    chip: Chip, threads: Sequence[int], job: Job, rate: float, variability: float, alone: tuple[float, float, float]
) -> _Kind:
    per_cycle = rate / (chip.frequency_mhz * 1e6)
    members = max(1, len(job.together(len(threads))))
    arrays, latency, memory = alone
    cores = frozenset(job.allowed(len(threads)))
    return _Kind(job, per_cycle, variability, cores, arrays, latency * members, memory)


def _bounds(kinds: Sequence[_Kind], threads: Sequence[int]) -> tuple[dict[str, float], float]:
    """The worst part of each resource, and the longest relaxation of any set of cores; rates are per cycle."""
    worst = {"PE arrays": (0.0, ""), "threads": (0.0, "")}
    longest = 1.0
    for cores in _unions({kind.cores for kind in kinds}):
        inside = [kind for kind in kinds if kind.cores <= cores]
        named = "" if len(cores) == len(threads) else f" of core{'s' * (len(cores) > 1)} {_listed(cores)}"
        seats = sum(threads[core] for core in cores)
        asked = {
            "PE arrays": (sum(kind.rate * kind.arrays for kind in inside), len(cores)),
            "threads": (sum(kind.rate * kind.threads for kind in inside), seats),
        }
        for name, (work, capacity) in asked.items():
            worst[name] = max(worst[name], (work / capacity, named))
        load = max(work / capacity for work, capacity in asked.values())
        share = sum(kind.rate for kind in inside) / sum(kind.rate for kind in kinds)
        longest = max(longest, _relaxation(inside, load, [kind.threads for kind in inside]) / share)
    parts = {name + where: load for name, (load, where) in worst.items()}
    memory = sum(kind.rate * kind.memory for kind in kinds)
    return (parts | {"memory": memory} if memory else parts), longest


def _unions(sets: set[frozenset[int]]) -> Iterator[frozenset[int]]:
    listed = sorted(sets, key=sorted)
    many = len(listed) > MOST_SETS
    for number in (1, len(listed)) if many else range(1, len(listed) + 1):
        for some in combinations(listed, number):
            yield frozenset().union(*some)


def _listed(cores: frozenset[int]) -> str:
    return ", ".join(str(core) for core in sorted(cores))


def _relaxation(kinds: Sequence[_Kind], load: float, work: Sequence[float]) -> float:
    """(ca^2 + cs^2) / (1 - load)^2 requests of these kinds."""
    if load >= 1:
        return inf
    rate = sum(kind.rate for kind in kinds)
    gaps = sum(kind.rate * kind.variability for kind in kinds) / rate
    mean = sum(kind.rate * each for kind, each in zip(kinds, work, strict=True)) / rate
    square = sum(kind.rate * each**2 for kind, each in zip(kinds, work, strict=True)) / rate
    return (gaps + max(0.0, square / mean**2 - 1)) / (1 - load) ** 2


def _capacity(chip: Chip, kinds: Sequence[_Kind], cores: int, requests: int) -> float:
    """Requests of this mix per cycle that start while there is a queue: that of the cores that are done last."""
    drawn = _drawn([kind.rate for kind in kinds], requests)
    tasks = engines.totals(targets.lower(chip, tuple(kinds[one].job for one in drawn)), check=False).tasks
    started = tasks[:, 2]
    last = int(started.argmax())
    group = _reached(kinds[drawn[last]].cores, [kind.cores for kind in kinds])
    inside = np.array([kinds[one].cores <= group for one in drawn])
    share = sum(kind.rate for kind in kinds if kind.cores <= group) / sum(kind.rate for kind in kinds)
    # the first ones of all threads start at once
    counted = int((inside & (started > 0)).sum())
    work = [kind.threads for kind in kinds]
    own = np.array([work[one] for one in drawn])[inside & (started < started[last])].mean() if counted else 1.0
    usual = _mean(work, kinds, group) if counted else 1.0
    return counted / max(1, int(started[last])) / share * float(own) / usual if counted else inf


def _mean(work: Sequence[float], kinds: Sequence[_Kind], group: frozenset[int]) -> float:
    pairs = [(kind.rate, each) for kind, each in zip(kinds, work, strict=True) if kind.cores <= group]
    return sum(rate * each for rate, each in pairs) / sum(rate for rate, _ in pairs)


def _reached(cores: frozenset[int], sets: Sequence[frozenset[int]]) -> frozenset[int]:
    """All cores that share jobs with these, directly or through others."""
    found = cores
    while any(each & found and not each <= found for each in sets):
        found = found.union(*(each for each in sets if each & found))
    return found


def _drawn(rates: Sequence[float], requests: int) -> list[int]:
    """So many places in `rates`, each as often as its rate is large, in an order that is mixed and always the same."""
    total, counts = sum(rates), [0] * len(rates)
    places = []
    for number in range(1, requests + 1):
        # the one that is most behind its share
        place = max(range(len(rates)), key=lambda each: rates[each] / total * number - counts[each])
        counts[place] += 1
        places.append(place)
    if len(rates) > 1:
        for at, other in zip(
            range(requests - 1, 0, -1), islice(below(("offered load",), 2**32), requests), strict=False
        ):
            swap = other % (at + 1)
            places[at], places[swap] = places[swap], places[at]
    return places
