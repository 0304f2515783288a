"""What kinds of jobs certainly ask of the cores that they may use, and how long a queue of such jobs remembers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import gcd, inf, lcm, pi
from typing import NamedTuple

from lstmsim.model.scenario import Offer

#: Sets of cores of which all unions are looked at; of more, each by itself and all together.
MOST_SETS = 8


class Demand(NamedTuple):
    """What a job takes that is alone on a chip, in cycles.

    units: of the main units.
    threads: of threads.
    memory: of each memory that cores share, wherever the job runs; then of the average memory.
    """

    units: float
    threads: float
    memory: tuple[float, ...]

    def towards(self, other: Demand, part: float) -> Demand:
        """Give what lies on a line between this and the other.

        >>> Demand(10.0, 20.0, (4.0,)).towards(Demand(30.0, 60.0, (8.0,)), 0.25)
        Demand(units=15.0, threads=30.0, memory=(5.0,))
        """
        one, two = (self.units, self.threads, *self.memory), (other.units, other.threads, *other.memory)
        units, threads, *memory = (least + (most - least) * part for least, most in zip(one, two, strict=True))
        return Demand(units, threads, tuple(memory))


class Kind(NamedTuple):
    """Jobs that are alike on a chip.

    rate: how many come in a cycle.
    variability: how irregularly they come.
    cores: the cores that they may use.
    alone: what each of them takes.
    room: how many of them may wait at most; infinite: they wait as long as it takes.
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
    """Give the worst part of each resource, the cores that it concerns (if not all), and the longest relaxation of any
    set.

    kinds: the jobs.
    threads: of each core.
    units: what people call all main units, as a resource.

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

    load: of these kinds.
    servers: how many requests can run at once.

    >>> one = Kind(0.1, 1.0, frozenset({0}), Demand(9.9, 9.9, ()))
    >>> round(relaxation_at([one], 0.99)), relaxation_at([one._replace(room=3)], 0.99), relaxation_at([one], 1.5)
    (10000, 1.6..., inf)
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
