"""Offered load: what a mix of requests asks of a chip per second, against what the chip can do (docs/serving.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from math import inf
from typing import Any, NamedTuple

import numpy as np

from lstmsim import engines, machines
from lstmsim.base.errors import InputError, Mistake
from lstmsim.files.scenario.requests import load_requests, place_of_jobs, rate_overrides, rates_of
from lstmsim.machines.pools import in_company
from lstmsim.model.scenario import DISPATCH, Chip, Job, Offer, Scenario, cores_at_once, estimated_offer
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.unit_names import MEMORY, beside_cores
from lstmsim.studies.serve import demands
from lstmsim.studies.serve.programs import alone, bare, one_by_one, serving_program
from lstmsim.studies.shared.loading import Path
from lstmsim.traffic.arrivals import Bursty
from lstmsim.traffic.load import Load, Preemption, Traffic


def apart(scenario: Scenario) -> list[Scenario]:
    """Give the parts of a scenario whose jobs meet no job of another part: on no core, in no memory, in no chain."""
    groups = demands.meeting((cores, name) for name, cores in _cores(scenario).items())
    if len(groups) < 2 or _shares_apart(scenario, groups):
        return [scenario]
    parts = []
    for _, names in groups:
        jobs = tuple(job for job in scenario.jobs if _entry(scenario, job) in names)
        offers = {tenant: each for tenant, each in scenario.offers.items() if (each.entry or tenant) in names}
        parts.append(replace(scenario, jobs=jobs, offers=offers))
    return parts


def _entry(scenario: Scenario, job: Job) -> str:
    """The entry that the job belongs to."""
    offer = scenario.offers.get(job.tenant)
    return (offer.entry if offer is not None else "") or job.tenant


def _cores(scenario: Scenario) -> dict[str, set[int]]:
    """The cores that each entry may use."""
    number = len(scenario.chip.core_figures)
    cores: dict[str, set[int]] = {}
    for job in scenario.jobs:
        cores.setdefault(_entry(scenario, job), set()).update(job.allowed(number))
    return cores


def _shares_apart(scenario: Scenario, groups: list[tuple[frozenset[int], list[str]]]) -> bool:
    """Whether groups of entries meet elsewhere than on a core: in a memory, or because one waits for another."""
    for job in scenario.jobs:
        if job.after is not None:
            own, other = _entry(scenario, job), _entry(scenario, scenario.jobs[job.after])
            if not any({own, other} <= {*names} for _, names in groups):
                return True
    first = {_entry(scenario, job): replace(job, after=None) for job in reversed(scenario.jobs)}
    program = serving_program(scenario.chip, tuple(first.values()), templates=True)
    return any(core.shared for core in program.cores)


#: Fewest and most requests of the measurement; between them a quarter of those that are asked about.
LEAST_MEASURED, MOST_MEASURED = 200, 2000
#: Lengths of one kind of job that are simulated alone; of more, the shortest and the longest, and a line between.
MOST_LENGTHS = 4
#: An entry ends early if its last request comes before this share of the time until the last one of all has passed.
EARLY = 0.8
_BUSY = CYCLE_NAMES.index("busy")


class _Share(NamedTuple):
    """Jobs that are alike, without and with (`ranked`) the keys that rank and reject them; so many come per second."""

    job: Job
    rate: float
    variability: float
    memory_seconds: float
    process: Any
    ranked: Job


def traffic_of(scenario: Scenario, requests: int | None = None) -> Traffic:
    """Give the traffic to the chip of a scenario, by the rates of its entries, which may have to be estimated."""
    whole, parts = _traffic_of(scenario, requests), apart(scenario)
    if len(parts) < 2 or not whole.steady:
        return whole
    rates = [sum(_rates(part).values()) for part in parts]
    own: dict[str, Traffic] = {}
    for part, rate in zip(parts, rates, strict=True):
        share = None if requests is None or not sum(rates) else max(1, round(requests * rate / sum(rates)))
        own |= dict.fromkeys([*part.offers, *(job.tenant for job in part.jobs)], _traffic_of(part, share))
    return replace(whole, apart=own)


def _rates(scenario: Scenario) -> dict[str, float]:
    """Requests per second of each entry."""
    known = ((job, _offer(scenario.offers, job)) for job in scenario.jobs)
    return {offer.entry or job.tenant: offer.rate_per_second for job, offer in known}


def _traffic_of(scenario: Scenario, requests: int | None) -> Traffic:
    """Say what comes, whatever it shares."""
    offers = dict(scenario.offers) or _estimated(scenario)
    clients = sum(each.clients for each in offers.values())
    steady = any(each.is_process for each in offers.values())
    if not any(_offer(offers, job).rate_per_second > 0 for job in scenario.jobs):
        return Traffic(None, clients, steady, all(each.clients and not each.memory_seconds for each in offers.values()))
    groups = _groups(scenario, offers)
    asked = len(scenario.jobs) if requests is None else requests
    early = _ending_early([_offer(offers, jobs[0]) for jobs in groups.values()], asked)
    measured = min(MOST_MEASURED, max(LEAST_MEASURED, asked // 4))
    ordered = any(job.dispatch != "fcfs" or job.affinity for job in scenario.jobs)
    load, lasting = _load(scenario.chip, _mix(groups, offers), measured, ordered), None
    staying = {key: jobs for key, jobs in groups.items() if key[0] not in early and not jobs[0].may_leave}
    if (load.offered >= 1 or load.unsure) and len(staying) < len(groups):
        rest = _load(scenario.chip, _mix(staying, offers), measured, ordered) if staying else None
        lasting = rest.offered if rest else 0.0
        load = replace(load, unsure=rest.unsure if rest else "")
    moves = _moves(scenario, offers)
    if moves and load.offered < 1 <= load.offered + moves and not load.unsure:
        text = f"moves of states may bring the load to {load.offered + moves:.3g}"
        load = replace(load, unsure=f"{text}, and how much less they bring is not known", relaxation=None)
    beats = demands.beat({_offer(offers, jobs[0]) for jobs in groups.values()}, scenario.chip.frequency_mhz)
    return Traffic(
        replace(
            load,
            relaxation=None if clients or early or load.relaxation is None else max(load.relaxation, beats),
            lasting=lasting,
            estimated=any(_offer(offers, jobs[0]).estimated for jobs in groups.values()),
            not_counted=(
                *_not_counted(scenario, offers, early, clients),
                *[f"moves of states (at most {moves:.3g})"] * bool(moves),
            ),
        ),
        clients,
    )


def _moves(scenario: Scenario, offers: Mapping[str, Offer]) -> float:
    """The most that moves of states add to the load: if each request moves, as on cores of one thread."""
    figures, clock = scenario.chip.core_figures, scenario.chip.frequency_mhz * 1e6
    if one_by_one(scenario.chip) or len(figures) == 1:
        return 0.0
    own = {_offer(offers, job).entry or job.tenant: job for job in scenario.jobs if job.session is not None}
    return sum(
        _offer(offers, job).rate_per_second * job.move_cycles / clock / len(job.allowed(len(figures)))
        for job in own.values()
    )


def _groups(scenario: Scenario, offers: Mapping[str, Offer]) -> dict[tuple[Any, ...], list[Job]]:
    """Group jobs that come at a rate: jobs of one entry that run alike. Each key begins with the entry's name."""
    groups: dict[tuple[Any, ...], list[Job]] = {}
    for job in scenario.jobs:
        offer = _offer(offers, job)
        if offer.rate_per_second > 0:
            entry = offer.entry or job.tenant
            # jobs of one entry differ in their steps only, and how often each comes may be known better than from them
            groups.setdefault((entry,) if offer.lengths else (entry, *demands.kind_of(job)), []).append(job)
    return groups


def _mix(groups: Mapping[tuple[Any, ...], list[Job]], offers: Mapping[str, Offer]) -> tuple[_Share, ...]:
    number: Counter[str] = Counter()
    for (entry, *_), jobs in groups.items():
        number[entry] += len(jobs)
    return tuple(
        each
        for (entry, *_), jobs in groups.items()
        for each in _shares(jobs[0], _offer(offers, jobs[0]), len(jobs) / number[entry])
    )


def _not_counted(scenario: Scenario, offers: Mapping[str, Offer], early: set[str], clients: int) -> tuple[str, ...]:
    """Name the requests that come but are in no part of the load."""
    once = dict.fromkeys(
        _offer(offers, job).entry or job.tenant or job.model.name
        for job in scenario.jobs
        if not _offer(offers, job).is_process
    )
    words = [f"{name}, which comes once" for name in once]
    words += [f"that {name} ends early" for name in sorted(early)]
    return (*words, *[f"{clients:,} clients, who ask when they are answered"] * bool(clients))


def _ending_early(offers: Sequence[Offer], requests: int) -> set[str]:
    """List the entries whose last request comes long before the last one of all: their load is not the whole run's."""
    ends = {each.entry: each.requests / each.rate_per_second for each in offers if each.requests}
    whole = len(ends) < len({each.entry for each in offers})
    last = requests / sum({each.entry: each.rate_per_second for each in offers}.values())
    return {entry for entry, end in ends.items() if end < EARLY * (last if whole else max(ends.values()))}


def _shares(job: Job, offer: Offer, share: float) -> list[_Share]:
    """Give the kinds of jobs that it stands for; `share` is the part of an entry's requests that are such jobs."""
    ranked = replace(job, tenant=offer.entry or job.tenant, arrival=0, after=None)
    # a backlog is not kept waiting for company
    batching = None if ranked.batching is None else replace(ranked.batching, max_wait_cycles=0)
    plain = replace(bare(ranked), name=ranked.tenant or ranked.model.name, batching=batching)
    rate = offer.rate_per_second * share
    how = offer.variability, offer.memory_seconds, offer.process
    return [
        _Share(replace(plain, steps=steps), rate * part, *how, replace(ranked, steps=steps))
        for steps, part in offer.lengths or ((job.steps, 1.0),)
    ]


def _offer(offers: Mapping[str, Offer], job: Job) -> Offer:
    return offers.get(job.tenant, Offer())


def _estimated(scenario: Scenario) -> dict[str, Offer]:
    """Estimate the offers of jobs that stand for themselves, by tenant."""
    if any(job.after is not None for job in scenario.jobs):
        roots = Counter(job.tenant for job in scenario.jobs if job.after is None)
        return {tenant: Offer(clients=number) for tenant, number in roots.items()}
    cycles: dict[str, list[int]] = {}
    for job in scenario.jobs:
        cycles.setdefault(job.tenant, []).append(job.arrival)
    clock = scenario.chip.frequency_mhz
    return {
        tenant: replace(estimated_offer(sorted(each), clock), entry=tenant, requests=len(each))
        for tenant, each in cycles.items()
    }


@lru_cache(maxsize=64)
def _load(chip: Chip, mix: tuple[_Share, ...], measured: int, ordered: bool) -> Load:
    """Put the load of a mix together."""
    program = serving_program(chip, tuple(share.job for share in mix), templates=True)
    threads = [core.contexts for core in program.cores if not core.shared]
    kinds = [_kind(chip, threads, share, alone) for share, alone in _alone(chip, mix)]
    beside = {beside_cores(unit.name) for core in program.cores if core.shared for unit in core.units}
    shared = beside.pop() if len(beside) == 1 else MEMORY
    parts, cores, relaxation = demands.bounds(kinds, threads, chip.core_figures[0].unit.bound, shared)
    rate = sum(share.rate for share in mix)
    bursts = [(share.rate, share.process) for share in mix if isinstance(share.process, Bursty)]
    peak = rate + sum(own * each.mean_off_ms / each.mean_on_ms for own, each in bursts)
    measured = max(measured, 8 * sum(threads))
    jobs = tuple(share.job for share in mix)
    total = sum(kind.rate for kind in kinds)
    shares = tuple(round(kind.rate / total, 9) for kind in kinds)
    pools = [job.batching for job in jobs if job.batching is not None]
    if pools:
        measured *= max(batching.max_batch_size for batching in pools)
    # the batches of windows are small at any backlog, if the windows are short
    windows = any(batching.policy == "window" for batching in pools)
    certain = max(parts.values())
    saturated = total / _capacity(chip, jobs, shares, tuple(kind.alone.threads for kind in kinds), measured)
    preemption = _preemption(chip, mix, kinds, threads) if certain < 1 else None
    stopped = (preemption.load if preemption and preemption.exact else None) or 0.0
    whole = preemption is not None and stopped > 0 and len(preemption.cores) == len(threads)
    # In another order models that take turns may do so less often, and ranks that stop others are measured by
    # themselves: the measurement is no limit then.
    other = whole or windows or (ordered and any(task.weight_set is not None for task in program.tasks))
    if not other:
        parts["saturated"] = saturated
    offered = max(*parts.values(), stopped)
    together = certain < 1 <= saturated and demands.meet_beside(program)
    where = "in the memory that cores share" if shared == MEMORY else f"on the {shared}s that cores share"
    unsure = _unsure(parts, preemption, certain if together else offered, where)
    unknown = other and not whole and saturated >= 1
    worst = max(parts.get(shared, 0.0), 0.0 if unknown or whole else saturated)
    if preemption is not None and preemption.load is not None:
        worst = max(worst, preemption.most)
    if worst >= certain and not unsure:
        relaxation = max(relaxation, demands.relaxation_at(kinds, worst, sum(threads)))
    return Load(
        offered,
        parts,
        rate_per_second=rate,
        bound_per_second=rate / certain,
        relaxation=None if unsure or (unknown and certain < 1) else max(1.0, relaxation),
        saturated_fcfs=saturated if other and not windows else None,
        windows=windows,
        cores=cores,
        measured=measured,
        preemption=preemption,
        unsure=unsure,
        peak_per_second=peak if bursts else 0.0,
    )


def _preemption(
    chip: Chip, mix: Sequence[_Share], kinds: Sequence[demands.Kind], threads: Sequence[int]
) -> Preemption | None:
    """Measure what the mix asks for with what preemption adds."""
    ranked = tuple(
        demands.Ranked(
            share.ranked, share.ranked.tenant or share.job.name, kind.rate, kind.alone.threads, share.process
        )
        for share, kind in zip(mix, kinds, strict=True)
    )
    return demands.preemption_of(chip, ranked, tuple(threads))


def _unsure(parts: Mapping[str, float], preemption: Preemption | None, least: float, shared: str) -> str:
    """Say what is missing to know whether the load is below 1; nothing if it is known. `shared`: where jobs meet."""
    if least < 1 <= parts.get("saturated", 0.0):
        return (
            f"the load is below that of a backlog, whose requests begin together and meet {shared}, for those that "
            "come at random may not: how much below is not known"
        )
    if preemption is None or max(parts.values()) >= 1 or preemption.most < 1 or preemption.least >= 1:
        return ""
    if preemption.load is None:
        return preemption.missing
    if preemption.exact:
        return f"with preemption the load is {preemption.load:.4f} +- {preemption.half_width:.4f}, which may be 1"
    return f"preemption may bring the load to {preemption.most:.3g}, and how much less it brings is not known"


def _alone(chip: Chip, mix: Sequence[_Share]) -> Iterator[tuple[_Share, demands.Demand]]:
    """Give each kind of the mix with its cycles alone; of many lengths of one job only some are simulated."""
    lengths: dict[Job, list[int]] = {}
    for share in mix:
        lengths.setdefault(replace(share.job, steps=1), []).append(share.job.steps)
    for share in mix:
        job, steps = share.job, lengths[replace(share.job, steps=1)]
        if len(steps) <= MOST_LENGTHS:
            yield share, _demand(chip, job)
            continue
        short, long = min(steps), max(steps)
        part = (job.steps - short) / (long - short)
        one, two = (_demand(chip, replace(job, steps=each)) for each in (short, long))
        yield share, one.towards(two, part)


@lru_cache(maxsize=1024)
def _demand(chip: Chip, job: Job) -> demands.Demand:
    """Give the cycles of arrays, threads and each memory that a job alone takes: the least over its choices."""
    if job.batching is not None:
        return _least_in_company(chip, job)
    if one_by_one(chip):
        # nothing else runs meanwhile: what a job takes of anything is bounded by its time
        own = alone(chip, job)
        return demands.Demand(own.array_share * own.latency_cycles, float(own.latency_cycles), ())
    each = []
    for choice in _choices(chip, job):
        program = machines.lower(chip, (choice,))
        totals = engines.totals(program, check=False)
        busy, members = totals.cycles[: len(chip.core_figures), _BUSY], max(1, len(cores_at_once(chip, choice)))
        memories = demands.memory_cycles(program, program.tasks[0])
        least = *memories.min(axis=0).tolist(), memories.sum(axis=1).min() / max(1, memories.shape[1])
        each.append((float(busy.sum()), float(totals.makespan_cycles * members), *least))
    units, threads, *memory = (min(numbers) for numbers in zip_longest(*each, fillvalue=0.0))
    return demands.Demand(units, threads, tuple(memory))


def _least_in_company(chip: Chip, job: Job) -> demands.Demand:
    """Give what a member of a batch takes, in the best of all sizes: a row-wise NPU may take least in one between."""
    assert job.batching is not None, "only such jobs have company"
    each = []
    for size in range(1, job.batching.max_batch_size + 1):
        own = _demand(chip, replace(in_company(job), batch=size))
        part = (job.steps if job.batching.in_rounds else 1) / size
        each.append((own.units * part, own.threads * part, *(cycles * part for cycles in own.memory)))
    units, threads, *memory = (min(numbers) for numbers in zip_longest(*each, fillvalue=0.0))
    return demands.Demand(units, threads, tuple(memory))


def least_latency(chip: Chip, job: Job) -> int:
    """Give the cycles that a job takes at least, in any company: alone on its best cores, in a batch of any size."""
    if job.batching is None:
        choices = [job] if one_by_one(chip) else _choices(chip, bare(job))
        return min(alone(chip, choice).latency_cycles for choice in choices)
    sizes = (replace(in_company(job), batch=size) for size in range(1, job.batching.max_batch_size + 1))
    return min(least_latency(chip, one) for one in sizes) * (job.steps if job.batching.in_rounds else 1)


def _choices(chip: Chip, job: Job) -> list[Job]:
    """List the choices of cores on which a job may run.

    It runs on each of its cores that is unlike the others, or on all that it takes at once, which are alike wherever a
    job is spread over its neighbours. A moldable job runs on each number of its cores.
    """
    cores, arrays = job.allowed(len(chip.core_figures)), chip.core_figures
    if arrays[0].spreads:
        return [job]
    unlike = {arrays.index(arrays[core]): core for core in reversed(cores)}
    single = [replace(job, cores=(core,), split="") for core in unlike.values()]
    if not job.split or len(cores) == 1:
        return single
    if job.split != "auto":
        return [job]
    for number in range(2, len(cores) + 1):
        way = replace(job, split="rows", cores=cores[:number])
        with suppress(InputError):
            machines.lower(chip, (way,))
            single.append(way)
    return single


def _kind(chip: Chip, threads: Sequence[int], share: _Share, alone: demands.Demand) -> demands.Kind:
    cores, clock = frozenset(share.job.allowed(len(threads))), chip.frequency_mhz * 1e6
    limit, patience = share.ranked.queue_limit, share.ranked.patience
    room = inf if limit is None else float(limit)
    if patience is not None:
        room = min(room, patience * sum(threads[core] for core in cores) / alone.threads)
    return demands.Kind(share.rate / clock, share.variability, cores, alone, room, share.memory_seconds * clock)


@lru_cache(maxsize=64)
def _capacity(
    chip: Chip, jobs: tuple[Job, ...], shares: tuple[float, ...], work: tuple[float, ...], requests: int
) -> float:
    """Give the requests of this mix per cycle that start while there is a queue: that of the cores done last."""
    drawn = np.array(demands.drawn_places(shares, requests))
    started = engines.totals(serving_program(chip, tuple(jobs[one] for one in drawn)), check=False).task("admitted")
    sets = [frozenset(job.allowed(len(chip.core_figures))) for job in jobs]
    groups = demands.meeting(zip(sets, range(len(sets)), strict=True))
    own = next(sorted(places) for _, places in groups if drawn[started.argmax()] in places)
    inside, share = np.isin(drawn, own), sum(shares[place] for place in own)
    # the first ones of all threads start at once
    counted = int((inside & (started > 0)).sum())
    if not counted:
        return inf
    each = np.array(work)
    usual = sum(shares[place] * work[place] for place in own) / share
    return counted / int(started.max()) / share * float(each[drawn[inside]].mean()) / usual


#: The part of a load that is measured; the others hold for certain.
_MEASURED = "saturated"
#: Requests of a run, for whose load the measured part is as exact as it becomes.
_MANY = 10_000


@dataclass(frozen=True)
class Capacity:
    """How the parts of a load grow with the rate: `fixed[name] + per_request[name] * rate` of what the machine can do.

    Rates are the sum of the scenario's random rates, in requests per second in the long run.

    fixed: the work of all other arrivals, for each part.
    per_request: the work of one request per second, for each part.
    not_counted: requests that come but are in no part.

    >>> machine = Capacity({"PE arrays": 0.2}, {"PE arrays": 0.001})
    >>> round(machine.load(300), 3), machine.rate(1.0)
    (0.5, 800.0)
    """

    fixed: Mapping[str, float]
    per_request: Mapping[str, float]
    not_counted: tuple[str, ...] = ()

    def parts(self, rate: float) -> dict[str, float]:
        """Give the work that comes at a rate over what the machine can do, for each resource."""
        return {name: self.fixed[name] + each * rate for name, each in self.per_request.items()}

    def load(self, rate: float) -> float:
        """Give the offered load at a rate: the largest part."""
        return max(self.parts(rate).values())

    def rate(self, load: float) -> float:
        """Give the rate at which the offered load is `load`; `InputError` if other arrivals alone are more."""
        return self._rate(load, self.per_request)

    @property
    def bound_per_second(self) -> float:
        """Give the rate at which a certain part is used up: no machine of this kind can keep up with more."""
        return self._rate(1.0, {name: each for name, each in self.per_request.items() if name != _MEASURED})

    @property
    def limits_per_second(self) -> dict[str, float]:
        """Give the rate at which each part of the load would be 1; parts that never reach 1 are left out."""
        return {name: self._rate(1.0, {name: each}) for name, each in self.per_request.items() if each > 0}

    def _rate(self, load: float, parts: Mapping[str, float]) -> float:
        least = max(self.fixed[name] for name in parts)
        if least >= load:
            text = f"arrivals without a rate are a load of {least:.3g} by themselves"
            raise InputError(Mistake(f"load {load:.3g}", f"{text}: expected more"))
        return min((load - self.fixed[name]) / each for name, each in parts.items() if each > 0)


def capacity_of(scenario: Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Capacity:
    """Say how the offered load of a scenario grows with the rates of its poisson and bursty arrivals, in their shares.

    The answer is exact where all arrivals are of these kinds. With other arrivals the measured part is that of the
    scenario's mix. What preemption adds is left out: it does not grow in proportion to the rate.
    """
    rates = rates_of(scenario, overrides)
    own = rates.per_second
    ranks = {DISPATCH[job.dispatch](job) for job in load_requests(scenario, overrides, 1).scenario.jobs if job.preempts}
    overrides = [*overrides, "preemption=false"]
    first, second = (load_of(scenario, [*overrides, *rate_overrides(rates, rate)], _MANY) for rate in (own, 2 * own))
    one, two = first.parts, second.parts
    slopes = {name: (two.get(name, part) - part) / own for name, part in one.items()}
    # A difference of equal parts may leave a last bit.
    slopes = {name: each if each * own > 1e-9 else 0.0 for name, each in slopes.items()}
    rest = {name: part - slopes[name] * own for name, part in one.items()}
    fixed = {name: each if each > 1e-9 else 0.0 for name, each in rest.items()}
    return Capacity(fixed, slopes, (*first.not_counted, *["what preemption costs"] * (len(ranks) > 1)))


def load_of(scenario: Path | Mapping[str, Any], overrides: Sequence[str], requests: int) -> Load:
    """Give the load that so many requests of a scenario with these overrides offer to its chip."""
    load = traffic_of(load_requests(scenario, overrides, requests).scenario, requests).load
    if load is None:
        raise InputError(Mistake(place_of_jobs(scenario), "the load of these arrivals is not known"))
    return load
