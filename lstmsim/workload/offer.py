"""What an entry of a scenario offers in the long run: a rate of requests and how irregularly they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["LEAST_ESTIMATED", "Offer", "estimated_offer"]

#: Arrivals from which a rate may be estimated: with fewer it is off by a fifth or more, even where they come evenly.
LEAST_ESTIMATED = 20


@dataclass(frozen=True)
class Offer:
    """How the requests of one entry come.

    `rate_per_second`: in the long run; 0 where there is none, because they come once (all together, or too few to be a
    process) or because clients ask. `variability`: the squared coefficient of variation of the gaps between them, in
    the long run (0: evenly, 1: Poisson). `clients`: of a closed loop, how many ask. `estimated`: from the arrivals,
    because they are a list. `lengths`: numbers of steps and the share of the requests that has each, where there is
    more than one. `entry`: what its jobs are called together, where they are of several tenants.

    >>> Offer(1000.0, variability=1.0).is_process, Offer(clients=4).is_process, Offer().is_process
    (True, True, False)
    """

    rate_per_second: float = 0.0
    variability: float = 0.0
    clients: int = 0
    estimated: bool = False
    lengths: tuple[tuple[int, float], ...] = ()
    entry: str = ""

    @property
    def is_process(self) -> bool:
        """Do requests go on coming?"""
        return self.rate_per_second > 0 or self.clients > 0


def estimated_offer(cycles: Sequence[int], frequency_mhz: float) -> Offer:
    """What these arrivals, in the order of time, amount to; nothing where they are few or come all at once.

    >>> estimated_offer(range(0, 25_000, 1000), frequency_mhz=250)
    Offer(rate_per_second=250000.0, variability=0.0, clients=0, estimated=True, ...)
    """
    span = cycles[-1] - cycles[0] if cycles else 0
    if len(cycles) < LEAST_ESTIMATED or span <= 0:
        return Offer()
    mean = span / (len(cycles) - 1)
    squares = sum((two - one - mean) ** 2 for one, two in pairwise(cycles))
    return Offer(frequency_mhz * 1e6 / mean, squares / (len(cycles) - 1) / mean**2, estimated=True)
