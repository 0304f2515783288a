"""How much is asked of a machine against what it can do, and what a run's statistics may therefore promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["VERDICTS", "Load"]

#: What may be said of a run, and what it means.
VERDICTS = {
    "settled": "the queue has a steady state, and the run is long enough to show its mean latency",
    "too few": "the queue may have a steady state, but the run has too few requests to tell its mean latency",
    "unstable": "more is asked for than the machine can do, or the queue grows: latencies depend on the run's length",
    "no steady state": "requests do not come as a process that goes on, so that there is nothing to settle to",
}


@dataclass(frozen=True)
class Load:
    """What a mix of requests asks of a machine.

    `offered`: the load, the largest of the parts; at 1 or above no queue is stable.
    `parts`: for each resource of the machine, by its name, the work asked for per second / the most that it can do.
    `rate_per_second`: requests of all kinds that come per second in the long run.
    `bound_per_second`: the highest rate of this mix at which no part is above 1; no machine of this kind does more.
    `estimated`: the rate is that of the arrivals of this run, because they do not come as a process with a known rate.
    `relaxation`: about how many requests pass until the queue has forgotten its past (at least 1).
    `not_counted`: what else limits the machine, that the parts leave out.

    >>> Load(0.5, {"PE arrays": 0.5, "threads": 0.2}, rate_per_second=100.0, bound_per_second=200.0).stable
    True
    """

    offered: float
    parts: Mapping[str, float]
    rate_per_second: float
    bound_per_second: float
    estimated: bool = False
    relaxation: float = 1.0
    not_counted: tuple[str, ...] = ()

    @property
    def stable(self) -> bool:
        """Is less asked for than the machine can do?"""
        return self.offered < 1
