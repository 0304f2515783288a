"""What kinds of jobs certainly ask of the cores that they may use, and how long a queue of such jobs remembers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import gcd, inf, lcm
from typing import NamedTuple

from lstmsim.workload.offer import Offer

__all__ = ["Demand", "Kind", "beat", "bounds", "relaxation_at"]

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
    """

    rate: float
    variability: float
    cores: frozenset[int]
    alone: Demand


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
        longest = max(longest, relaxation_at(inside, max(loads.values())) / share)
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


def relaxation_at(kinds: Sequence[Kind], load: float) -> float:
    """Give (ca^2 + cs^2) / (1 - load)^2: the relaxation of these kinds in requests."""
    if load >= 1:
        return inf
    rate = sum(kind.rate for kind in kinds)
    gaps = sum(kind.rate * kind.variability for kind in kinds) / rate
    mean = sum(kind.rate * kind.alone.threads for kind in kinds) / rate
    square = sum(kind.rate * kind.alone.threads**2 for kind in kinds) / rate
    return (gaps + max(0.0, square / mean**2 - 1)) / (1 - load) ** 2


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
