"""The long run of a scenario's entry: its rate of requests, and how irregularly the requests come."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from math import inf
from typing import Any

from lstmsim.base.records import record

__all__ = ["LEAST_ESTIMATED", "Offer", "estimated_offer"]

#: Least arrivals to estimate a rate from. With fewer, the rate is off by a fifth or more, even if they come evenly.
LEAST_ESTIMATED = 20
#: Least arrivals of a window, on average. With fewer, their number does not say how irregularly they come.
LEAST_IN_WINDOW = 5


@record
class Offer:
    """How the requests of one entry come.

    rate_per_second: rate in the long run; 0 if there is none, because the requests come once (all together, or too few
        to be a process) or because clients ask.
    variability: squared coefficient of variation of the gaps between requests, in the long run (0: even, 1: Poisson).
    clients: how many clients ask, in a closed loop; else 0.
    estimated: whether the rate was estimated from a list of arrivals.
    lengths: (number of steps, share of the requests that have it), if there is more than one number of steps.
    entry: common name of the entry's jobs, if they belong to several tenants.
    requests: how many requests come in all; 0: as many as the user asks for.
    memory_seconds: after about so long the arrivals have forgotten their past; infinite: not known. Clients forget with
        each request if they think for exponential times (0).
    process: what comes, so that more can be drawn: a description of `lstmsim.traffic.arrivals`, or cycles in order.

    >>> Offer(1000.0, variability=1.0).is_process, Offer(clients=4).is_process, Offer().is_process
    (True, True, False)
    """

    rate_per_second: float = 0.0
    variability: float = 0.0
    clients: int = 0
    estimated: bool = False
    lengths: tuple[tuple[int, float], ...] = ()
    entry: str = ""
    requests: int = 0
    memory_seconds: float = 0.0
    process: Any = field(default=None, compare=False, repr=False)

    @property
    def is_process(self) -> bool:
        """Whether requests go on coming."""
        return self.rate_per_second > 0 or self.clients > 0


def estimated_offer(cycles: Sequence[int], frequency_mhz: float) -> Offer:
    """Estimate the offer of a list of arrivals. It is empty if they are few or come all at once.

    cycles: the arrivals, in order of time.
    frequency_mhz: clock of the chip.

    >>> estimated_offer(range(0, 25_000, 1000), frequency_mhz=250)
    Offer(rate_per_second=250000.0, variability=0.0, clients=0, estimated=True, ...)
    """
    span = cycles[-1] - cycles[0] if cycles else 0
    if len(cycles) < LEAST_ESTIMATED or span <= 0:
        return Offer()
    mean = span / (len(cycles) - 1)
    squares = sum((two - one - mean) ** 2 for one, two in pairwise(cycles))
    variability = max(squares / (len(cycles) - 1) / mean**2, _dispersion(cycles))
    return Offer(frequency_mhz * 1e6 / mean, variability, estimated=True, memory_seconds=inf, process=tuple(cycles))


def _dispersion(cycles: Sequence[int]) -> float:
    """The largest index of dispersion over windows of several lengths: the variance of the counts / their mean.

    Gaps that depend on each other (busy and quiet times) vary little one by one and much together (Cox and Lewis, The
    statistical analysis of series of events, 1966). The index is 0 if no window would hold five arrivals.
    """
    largest, span = 0.0, cycles[-1] - cycles[0]
    for windows in (20, 40, 80, 160, 320):
        if len(cycles) < LEAST_IN_WINDOW * windows:
            break
        edges = [bisect_left(cycles, cycles[0] + span * place // windows) for place in range(windows)]
        counts = [two - one for one, two in pairwise([*edges, len(cycles)])]
        mean = len(cycles) / windows
        largest = max(largest, sum((each - mean) ** 2 for each in counts) / (windows - 1) / mean)
    return largest
