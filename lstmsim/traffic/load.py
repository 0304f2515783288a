"""The offered load of a machine, and what a run's statistics may promise at that load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from lstmsim.traffic.intervals import MEAN_UNITS

#: What may be said of a run, and what it means.
VERDICTS = {
    "settled": "the queue has a steady state, and the run is long enough to show its mean latency",
    "too few": "the queue may have a steady state, but the run has too few requests to tell its mean latency",
    "cannot tell": "whether the machine keeps up with what comes is not known",
    "unstable": "more comes than the machine can do: latencies grow as long as requests come",
    "no steady state": "requests do not come as a process that goes on, so that the queue has no steady state",
}


@dataclass(frozen=True)
class Preemption:
    """The load of jobs that stop others, measured against a queue of the jobs of lowest rank that never ends.

    load: with the costs of stopping and going on; None: it could not be measured.
    half_width: of its 95 % interval.
    exact: whether the queue has this load; False: it has this load at most, because it stops fewer jobs as it grows.
    requests: number of requests measured.
    cores: the cores that it concerns.
    shared: whether threads share these cores, so that what they lose to each other is in the load, too.
    missing: reason for a missing load, in words.
    """

    load: float | None
    half_width: float = 0.0
    exact: bool = True
    requests: int = 0
    cores: tuple[int, ...] = ()
    shared: bool = False
    missing: str = ""

    @property
    def least(self) -> float:
        """What the load certainly is, as far as is known from this."""
        return self.load - self.half_width if self.exact and self.load is not None else 0.0

    @property
    def most(self) -> float:
        """What the load is at most."""
        return inf if self.load is None else self.load + self.half_width


@dataclass(frozen=True)
class Load:
    """The load that a mix of requests offers to a machine.

    offered: the load, the largest of the parts; with preemption as much as is known of it.
    parts: for each resource of the machine, by its name, the work asked for per second / the most that it can do.
    rate_per_second: requests of all kinds that come per second in the long run.
    peak_per_second: the same while all bursty entries are on; 0: no entry is bursty.
    bound_per_second: the highest rate of this mix at which no part is above 1; no machine of this kind does more.
    estimated: whether the rate is that of this run's arrivals, because they do not come as a process with a known rate.
    relaxation: about how many requests pass until the queue has forgotten its past (at least 1); None: unknown;
        infinite: it never does, as long as all of these requests come.
    lasting: the load of those requests alone that go on coming and cannot be rejected; at 1 or above no queue is
        stable. None: that of all requests.
    saturated_fcfs: the part `saturated` of a machine whose order of dispatch may do more than that of arrival, in
        which it is measured; it is then left out of the parts. None: there is no such case.
    cores: for parts that only concern some cores, the numbers of these cores.
    measured: number of requests on which the part `saturated` was measured.
    not_counted: requests that come but are in no part, in words.
    preemption: the load with what preemption adds; None: no job stops another.
    windows: whether requests go in batches of windows, whose sizes depend on the arrivals: no part says how busy the
        machine is then, and a queue has the relaxation of one as busy as the threads of the run, at least.
    unsure: missing knowledge whether the load is below 1, in words; empty: it is known.
    """

    offered: float
    parts: Mapping[str, float]
    rate_per_second: float
    bound_per_second: float
    estimated: bool = False
    relaxation: float | None = 1.0
    lasting: float | None = None
    saturated_fcfs: float | None = None
    cores: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    measured: int = 0
    not_counted: tuple[str, ...] = ()
    preemption: Preemption | None = None
    windows: bool = False
    unsure: str = ""
    peak_per_second: float = 0.0

    @property
    def stable(self) -> bool:
        """Whether less is asked for than the machine can do, or the rest is rejected or ends."""
        return not self.unsure and (self.offered if self.lasting is None else self.lasting) < 1

    @property
    def bounded(self) -> bool:
        """Whether more is asked for than the machine can do, but the excess ends or is rejected."""
        return self.offered >= 1 and self.stable

    @property
    def added(self) -> float:
        """How much more the load is than its parts because of preemption; where that is not exact, at most."""
        known = self.preemption and self.preemption.load
        return max(0.0, known - max(self.parts.values())) if known else 0.0


@dataclass(frozen=True)
class Traffic:
    """Requests that come to a machine.

    load: None where no rate is known.
    clients: number of clients of closed loops.
    steady: whether anything comes as a process that goes on.
    forgets: whether only clients come, who forget with each request how they lay to each other.
    apart: where some tenants share nothing with others, the traffic to the part of the machine that each tenant uses,
        by its name; tenants of one part have the same object.
    """

    load: Load | None = None
    clients: int = 0
    steady: bool = True
    forgets: bool = False
    apart: Mapping[str, Traffic] = field(default_factory=dict)

    def believed(self) -> Traffic:
        """Take the machine to keep up, with a queue as busy as the threads of a run, unless the run itself grows."""
        assert self.load is not None, "only a load may be unsure"
        certain = self.load.rate_per_second / self.load.bound_per_second
        load = replace(self.load, offered=certain, relaxation=1.0, windows=True, unsure="")
        return replace(self, load=load, apart={})


class Round(NamedTuple):
    """A round of a closed loop: all requests until each client is served once; squared variation of service times."""

    requests: float = inf
    variability: float = 1.0


def relaxation_of(traffic: Traffic, requests: int, utilization: float, closed: Round | None = None) -> float | None:
    """Give about how many requests pass until the queue has forgotten its past; None: only the data can say.

    In a closed loop every client's past is forgotten once it has been served, and no later than in a queue of as much
    work to which requests come by themselves (exponential times to think: Poisson arrivals of clients without number).

    requests: number of requests in this run.
    utilization: the share of time in which threads are taken. It stands for the load where that is not known (with gaps
        and work that vary as in M/M/1).
    closed: None: unknown.
    """
    load = traffic.load
    if not traffic.steady or (load is not None and not load.stable):
        return inf
    busy = 2 / (1 - utilization) ** 2 if utilization < 1 else inf
    if load is not None and not traffic.clients:
        known = None if load.relaxation == inf else load.relaxation
        return known if known is None or not load.windows else max(known, busy)
    if traffic.forgets:
        closed = closed or Round()
        return min(closed.requests, (1 + closed.variability) / (1 - utilization) ** 2 if utilization < 1 else inf)
    if traffic.clients:
        return None if requests >= MEAN_UNITS * traffic.clients else inf
    return busy


def verdict_of(traffic: Traffic, *, grows: bool, known: bool, cut: bool = False) -> str:
    """Give the verdict on a run, a key of `VERDICTS`.

    grows, known: whether the run's queue grows, and whether its mean latency has an interval.
    cut: whether the run ended because more requests came than it had room for, which is no sign of what would follow.
    """
    load = traffic.load
    if not traffic.steady:
        return "no steady state"
    if load is not None and not load.unsure and (not load.stable or (grows and not load.bounded and not cut)):
        return "unstable"
    if cut or (load is not None and load.unsure):
        return "cannot tell"
    return "settled" if known else "too few"
