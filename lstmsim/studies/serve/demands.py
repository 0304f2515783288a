"""The cycles of jobs alone on a chip, the demand of a mix, and the load that preemption adds (docs/serving.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, combinations, pairwise, zip_longest
from math import ceil, gcd, inf, lcm, pi
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lstmsim import engines
from lstmsim.files.scenario.requests import MAX_REQUESTS
from lstmsim.model.scenario import DISPATCH, Chip, Job, Offer, cores_at_once
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.program import Program, Task
from lstmsim.program.trace import TASKS
from lstmsim.program.unit_names import MEMORY
from lstmsim.studies.serve.programs import Alone, alone, serving_program
from lstmsim.traffic.arrivals import Stream, arrival_arrays
from lstmsim.traffic.intervals import batch_interval
from lstmsim.traffic.load import Preemption
from lstmsim.traffic.streams import below


def kind_of(job: Job) -> tuple[Any, ...]:
    """Give a key that jobs share if they run alike."""
    return (*job.identity, job.affinity)


class Alones:
    """Jobs by themselves on one chip, each kind simulated once: 100,000 jobs of one entry cost one run."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self._known: dict[tuple[Any, ...], Alone] = {}

    def __call__(self, job: Job) -> Alone:
        """Give the cycles of the job by itself."""
        kind = kind_of(job)
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = alone(self.chip, job)
        return known

    @property
    def simulated(self) -> int:
        """How many kinds of jobs were simulated."""
        return len(self._known)


Ints = NDArray[np.int64]
T = TypeVar("T")

_OPERATIONS = FLAT_TABLES["operations"]


def memory_cycles(program: Program, task: Task) -> Ints:
    """Count the cycles that a task takes the units of shared cores at least, shape (placements, units of these).

    Loads of weights that may be there already are left out, and so are extra cycles of single iterations.
    """
    cores = program.cores
    shared = {number: len(core.units) for number, core in enumerate(cores) if core.shared}
    first = dict(zip(shared, accumulate(shared.values(), initial=0), strict=False))
    loading = 0 if task.weight_set is None else task.weight_set.loading
    taken: dict[int, Ints] = {}
    made = np.zeros((len(task.places), sum(shared.values())), dtype=np.int64)
    for number, place in enumerate(task.places):
        kind = program.cores[place[0]].kind
        if kind not in taken:
            taken[kind] = _by_member(task, kind, loading, [len(cores[core].units) for core in place])
        for member, core in enumerate(place):
            if core in shared:
                made[number, first[core] : first[core] + shared[core]] += taken[kind][member, : shared[core]]
    return made


def _by_member(task: Task, kind: int, loading: int, units: Sequence[int]) -> Ints:
    """The cycles that operations take each unit of each rank of a task, which has so many units."""
    cycles = np.zeros((len(units), max(units)), dtype=np.int64)
    for phase in task.phases(kind)[loading:]:
        rows = phase.body.rows.operations.reshape(-1, _OPERATIONS.width)
        each, number, member, unit = (
            rows[:, _OPERATIONS.place(name)] for name in ("cycles", "count", "member", "unit")
        )
        np.add.at(cycles, (member, unit), phase.repeat * each * number)
    return cycles


def meet_beside(program: Program) -> bool:
    """Whether jobs that have no core in common may use a unit of a shared core at once: a memory, or a link."""
    cores = program.cores
    users: dict[int, set[frozenset[int]]] = {}
    for task in program.tasks:
        # weights that take turns are no part of these cycles, and a moldable job chooses its cores anew each time
        any_of_them = task.weight_set is not None or bool(task.moldable)
        for place, taken in zip(task.places, memory_cycles(program, task), strict=True):
            own = frozenset(core for core in place if not cores[core].shared)
            for unit in np.flatnonzero((taken > 0) | any_of_them).tolist():
                users.setdefault(unit, set()).add(own)
    return any(not one & other for sets in users.values() for one, other in combinations(sets, 2))


#: Sets of cores of which all unions are looked at; of more, each by itself and all together.
MOST_SETS = 8


class Demand(NamedTuple):
    """Cycles of units, threads and each shared memory (then of the average one) that a job alone on a chip takes."""

    units: float
    threads: float
    memory: tuple[float, ...]

    def towards(self, other: Demand, part: float) -> Demand:
        """Give a point on the line between this and the other."""
        one, two = (self.units, self.threads, *self.memory), (other.units, other.threads, *other.memory)
        units, threads, *memory = (least + (most - least) * part for least, most in zip(one, two, strict=True))
        return Demand(units, threads, tuple(memory))


class Kind(NamedTuple):
    """Jobs that are alike on a chip; `rate` of them come in a cycle.

    room: number of them that may wait at most; infinite: they wait as long as it takes.
    memory: cycles after which their arrivals have forgotten their past.
    """

    rate: float
    variability: float
    cores: frozenset[int]
    alone: Demand
    room: float = inf
    memory: float = 0.0


def bounds(
    kinds: Sequence[Kind], threads: Sequence[int], units: str, shared: str = MEMORY
) -> tuple[dict[str, float], dict[str, tuple[int, ...]], float]:
    """Give the worst part of each resource, its cores (if not all), and the longest relaxation of a set of cores.

    Of several memories, or links, the busiest counts: `shared` is what they are called. `units` is the name of all main
    units as a resource.
    """
    parts = {units: 0.0, "threads": 0.0}
    where: dict[str, tuple[int, ...]] = {}
    longest, total = 1.0, sum(kind.rate for kind in kinds)
    for cores in _unions({kind.cores for kind in kinds}):
        inside = [kind for kind in kinds if kind.cores <= cores]
        loads = {
            units: sum(kind.rate * kind.alone.units for kind in inside) / len(cores),
            "threads": sum(kind.rate * kind.alone.threads for kind in inside) / sum(threads[core] for core in cores),
        }
        for name, load in loads.items():
            if load > parts[name]:
                parts[name], where[name] = load, tuple(sorted(cores))
        share = sum(kind.rate for kind in inside) / total
        servers = sum(threads[core] for core in cores)
        longest = max(longest, relaxation_at(inside, max(loads.values()), servers) / share)
    loads_of_memories = ([kind.rate * cycles for cycles in kind.alone.memory] for kind in kinds)
    # a job whose weights all fit has no memory
    memory = max(map(sum, zip_longest(*loads_of_memories, fillvalue=0.0)), default=0.0)
    where = {name: cores for name, cores in where.items() if len(cores) < len(threads)}
    return (parts | {shared: memory} if memory else parts), where, longest


def _unions(sets: set[frozenset[int]]) -> Iterator[frozenset[int]]:
    listed = sorted(sets, key=sorted)
    many = len(listed) > MOST_SETS
    for number in (1, len(listed)) if many else range(1, len(listed) + 1):
        for some in combinations(listed, number):
            yield frozenset().union(*some)


def relaxation_at(kinds: Sequence[Kind], load: float, servers: int = 1) -> float:
    """Give the relaxation of these kinds in requests: s^2 / (1 - load)^2 with s^2 = ca^2 + cs^2, or less.

    A queue in which at most b requests may be is a Brownian motion between two walls. It forgets at any load, at the
    rate d^2 / s^2 + pi^2 s^2 / b^2 with the drift d = 1 - load, above load 1 1 - 1 / load (Linetsky: On the transition
    densities for reflected diffusions; Advances in Applied Probability 37, 2005), but not before its arrivals do.
    Bursts are no part of the s^2 by which it walks from wall to wall. Requests that wait as long as it takes have a
    queue of their own beyond such a b.
    """
    gaps, spread, rate = _variation(kinds)
    free = (gaps + spread) / (1 - load) ** 2 if load < 1 else inf
    staying = [kind for kind in kinds if kind.room == inf]
    places = servers + max((kind.room for kind in kinds if kind.room < inf), default=inf)
    local = min(gaps, 1.0) + spread
    if places == inf or not local:
        return free
    rest = 0.0
    if staying:
        share = sum(kind.rate * kind.alone.threads for kind in staying) / sum(
            kind.rate * kind.alone.threads for kind in kinds
        )
        rest = relaxation_at(staying, load * share, servers) * rate / sum(kind.rate for kind in staying)
    drift = abs(1 - load) / max(1.0, load)
    # rejected requests tell nothing: the served ones have to be as many
    between = max(1.0, load) / (drift**2 / (gaps + spread) + pi**2 * local / places**2)
    return min(free, max(between, rate * max(kind.memory for kind in kinds)) + rest)


def _variation(kinds: Sequence[Kind]) -> tuple[float, float, float]:
    """The squared coefficients of variation of gaps and of work, and how many requests come in a cycle."""
    rate = sum(kind.rate for kind in kinds)
    gaps = sum(kind.rate * kind.variability for kind in kinds) / rate
    mean = sum(kind.rate * kind.alone.threads for kind in kinds) / rate
    square = sum(kind.rate * kind.alone.threads**2 for kind in kinds) / rate
    return gaps, max(0.0, square / mean**2 - 1), rate


def beat(offers: Iterable[Offer], frequency_mhz: float) -> float:
    """Give a tenth of the requests after which streams that come evenly, each at its own rate, meet again as before.

    The streams remember for that long how they lie to each other; a run should hold ten times as much at least.
    """
    even = {each.rate_per_second for each in offers if each.rate_per_second > 0 and not each.variability}
    if len(even) < 2:
        return 1.0
    periods = [Fraction(frequency_mhz * 1e6 / rate).limit_denominator(1000) for rate in even]
    meeting = Fraction(lcm(*(each.numerator for each in periods)), gcd(*(each.denominator for each in periods)))
    return float(sum(meeting / each for each in periods)) / 10


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
    """Requests of one entry that are alike, with their rank; `rate` of them come in a cycle.

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
    for cores, inside in meeting((each.job.allowed(len(contexts)), each) for each in kinds):
        if not inside[0].job.preempts or len({each.rank for each in inside}) == 1:
            continue
        if any(each.process is None for each in inside):
            return Preemption(None, missing="what preemption costs is not known: it is not known how requests come")
        if not _comparable(cores, inside):
            text = "the cost of preemption is not known where jobs of several ranks share only some of their cores"
            return Preemption(None, missing=text)
        threads = sum(contexts[core] for core in cores)
        found_here = _reported(chip, inside, threads)
        found.append(replace(found_here, cores=tuple(sorted(cores)), shared=threads > len(cores)))
    return max(found, key=lambda each: each.most, default=None)


def _due(chip: Chip, kind: Ranked) -> Job:
    """The job with the deadline that frames of a stream have, and without the limits that reject it."""
    job = replace(kind.job, queue_limit=None, patience=None)
    if job.deadline is None and isinstance(kind.process, Stream):
        return replace(job, deadline=ceil(kind.process.frame_ms * chip.frequency_mhz * 1000))
    return job


def meeting(items: Iterable[tuple[Iterable[int], T]]) -> list[tuple[frozenset[int], list[T]]]:
    """Put together what has cores in common, directly or through others; give the cores and what is on them."""
    sets: list[tuple[frozenset[int], list[T]]] = []
    for cores, item in items:
        own = frozenset(cores)
        meets = [each for each in sets if each[0] & own]
        sets = [each for each in sets if not each[0] & own]
        sets.append((own.union(*(each[0] for each in meets)), [*(one for each in meets for one in each[1]), item]))
    return sets


def _comparable(cores: frozenset[int], kinds: Sequence[Ranked]) -> bool:
    """Whether a queue of the lowest rank keeps all threads taken, and tells all that preemption costs."""
    low = max(each.rank for each in kinds)
    own = {each.rank: set[frozenset[int]]() for each in kinds}
    for each in kinds:
        own[each.rank].add(frozenset(each.job.allowed(max(cores) + 1)) & cores)
    above = [sets for rank, sets in own.items() if rank != low]
    return own[low] == {cores} and (len(above) == 1 or all(sets == {cores} for sets in above))


def _reported(chip: Chip, kinds: Sequence[Ranked], threads: int) -> Preemption:
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
    program = serving_program(chip, jobs, templates=True)
    feed = engines.feed(program, [np.stack([releases, numbers, keys], axis=1)], window=len(numbers))
    groups, paused = [], np.zeros(len(numbers), dtype=np.int64)
    for group in feed.results():
        groups.append(group)
        task, _, _, since, until, _ = feed.pauses().T
        np.add.at(paused, task, until - since)
    number, kind, table = (np.concatenate(each) for each in zip(*groups, strict=True))
    slots = np.array([max(1, len(cores_at_once(chip, job))) for job in jobs])[kind]
    start, finish = TASKS.of(table, "admitted"), TASKS.of(table, "finish")
    servers = np.maximum(slots, np.bitwise_count(TASKS.of(table, "taken")))
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
