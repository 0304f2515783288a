"""What jobs take that are alone on an idle chip, and what a mix of them certainly asks of the cores that it may use.

One job alone is the measure of every slowdown and of every bound on a load.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import gcd, inf, lcm, pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim import engines, machines
from lstmsim.model.scenario import Chip, Job, Offer, cores_at_once
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.program import Program, Task
from lstmsim.program.stall_reasons import CYCLE_NAMES, CYCLES

#: Names of cycles in which a thread lets another one have the array.
_GIVEN_UP = tuple(CYCLE_NAMES.index(each.name) for each in CYCLES if each.kind == "wait" and not each.before_work)

#: What a job is among others, and what stands for it when there are none.
_AMONG_OTHERS: dict[str, Any] = {
    "arrival": 0,
    "after": None,
    "priority": 0,
    "deadline": None,
    "dispatch": "fcfs",
    "preempts": False,
    "queue_limit": None,
    "patience": None,
}


@dataclass(frozen=True)
class Alone:
    """The cycles of a job that has the chip to itself.

    latency_cycles: from its arrival to its finish.
    array_cycles: cycles in which the PE arrays of its cores issue for it, summed over the cores.
    cores: number of cores on which it runs at once.
    stalls: whether there is a cycle between its first tile and its last in which it cannot issue; a coarse-grained core
        turns to another thread only then.
    """

    latency_cycles: int
    array_cycles: int
    cores: int
    stalls: bool


def alone(chip: Chip, job: Job) -> Alone:
    """Simulate the job by itself, where it would run on an idle chip. Keys that rank it among others are left out.

    >>> from lstmsim.studies.shared.loading import load_scenario
    >>> scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 20}]})
    >>> alone(scenario.chip, scenario.jobs[0])
    Alone(latency_cycles=1423, array_cycles=640, cores=1, stalls=True)
    """
    totals = engines.totals(machines.lower(chip, (bare(job),)), check=False)
    arrays = totals.cycles[: len(chip.core_figures)]
    return Alone(
        totals.makespan_cycles,
        int(arrays[:, CYCLE_NAMES.index("busy")].sum()),
        max(1, len(cores_at_once(chip, job, taken=int(totals.task("taken")[0])))),
        bool(arrays[:, _GIVEN_UP].sum()),
    )


def bare(job: Job) -> Job:
    """Give the job without the keys that rank it among others, reject it, or say when it comes."""
    return replace(job, **_AMONG_OTHERS)


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

_OPERATIONS = FLAT_TABLES["operations"]


def memory_cycles(program: Program, task: Task) -> Ints:
    """Count the cycles that a task takes each shared core on each of its placements, shape (placements, shared cores).

    Loads of weights that may be there already are left out, and so are extra cycles of single iterations: a task takes
    at least so many.
    """
    shared = [number for number, core in enumerate(program.cores) if core.shared]
    loading = 0 if task.content is None else task.content.loading
    taken: dict[int, Ints] = {}
    made = np.zeros((len(task.places), len(shared)), dtype=np.int64)
    for number, place in enumerate(task.places):
        kind = program.cores[place[0]].kind
        if kind not in taken:
            taken[kind] = _by_member(task, kind, loading, len(place))
        for member, core in enumerate(place):
            if program.cores[core].shared:
                made[number, shared.index(core)] += taken[kind][member]
    return made


def _by_member(task: Task, kind: int, loading: int, members: int) -> Ints:
    """The cycles that operations take the units of each rank of a task."""
    cycles = np.zeros(members, dtype=np.int64)
    for phase in task.phases(kind)[loading:]:
        rows = phase.body.rows.operations.reshape(-1, _OPERATIONS.width)
        each, number, member = (rows[:, _OPERATIONS.place(name)] for name in ("cycles", "count", "member"))
        np.add.at(cycles, member, phase.repeat * each * number)
    return cycles


#: Sets of cores of which all unions are looked at; of more, each by itself and all together.
MOST_SETS = 8


class Demand(NamedTuple):
    """Cycles that a job takes that is alone on a chip.

    units, threads: of the main units, and of threads.
    memory: of each memory that cores share, wherever the job runs; then of the average memory.
    """

    units: float
    threads: float
    memory: tuple[float, ...]

    def towards(self, other: Demand, part: float) -> Demand:
        """Give a point on the line between this and the other."""
        one, two = (self.units, self.threads, *self.memory), (other.units, other.threads, *other.memory)
        units, threads, *memory = (least + (most - least) * part for least, most in zip(one, two, strict=True))
        return Demand(units, threads, tuple(memory))


class Kind(NamedTuple):
    """Jobs that are alike on a chip.

    rate: number of them that come in a cycle.
    variability: how irregularly they come.
    cores: the cores that they may use.
    alone: the demand of each of them.
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
    kinds: Sequence[Kind], threads: Sequence[int], units: str
) -> tuple[dict[str, float], dict[str, tuple[int, ...]], float]:
    """Give the worst part of each resource, its cores (if not all), and the longest relaxation of a set of cores.

    threads: of each core.
    units: the name of all main units as a resource.

    Of several memories the busiest counts.
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
    memory = max(map(sum, zip(*loads_of_memories, strict=True)), default=0.0)
    where = {name: cores for name, cores in where.items() if len(cores) < len(threads)}
    return (parts | {"memory": memory} if memory else parts), where, longest


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
    # what is turned away tells nothing: the served ones have to be as many
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
