"""What a run of many requests amounts to: frozen numbers, in cycles and whole requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lstmsim.serving.latencies import Distribution
from lstmsim.serving.load import Load
from lstmsim.serving.population import Window
from lstmsim.serving.statistics import Warmup, jain

__all__ = ["Little", "Serving", "Tenant"]


@dataclass(frozen=True)
class Little:
    """Both sides of Little's law L = lambda W, times the cycles of the run, counted independently.

    `area`: requests in the system summed over all cycles, by going through arrivals and finishes in the order of time.
    `sojourn`: finish - arrival summed over all requests. Whole numbers: the law holds exactly or something is wrong.
    (Little: A proof for the queuing formula L = lambda W; Operations Research 9, 1961.)

    >>> law = Little(area=30, sojourn=30, requests=3, span_cycles=20)
    >>> law.inside, law.arrival_rate * law.time_inside == law.inside, law.difference
    (1.5, True, 0)
    """

    area: int
    sojourn: int
    requests: int
    span_cycles: int

    @property
    def inside(self) -> float:
        """L: requests in the system on average."""
        return self.area / self.span_cycles if self.span_cycles else 0.0

    @property
    def arrival_rate(self) -> float:
        """Lambda: requests per cycle."""
        return self.requests / self.span_cycles if self.span_cycles else 0.0

    @property
    def time_inside(self) -> float:
        """W: cycles from arrival to finish on average."""
        return self.sojourn / self.requests

    @property
    def difference(self) -> int:
        """The one side less the other; 0."""
        return self.area - self.sojourn


@dataclass(frozen=True)
class Tenant:
    """One tenant's requests: how many were served, how many of these in time, their cycles in the system and with
    threads; and how many more were turned away.

    >>> Tenant("a", requests=2, in_time=1, sojourn=30, service=20).slowdown
    1.5
    """

    name: str
    requests: int
    in_time: int
    sojourn: int
    service: int
    turned_away: int = 0

    @property
    def slowdown(self) -> float:
        """All its time in the system / all its service; 1 where nothing ever waits."""
        return self.sojourn / self.service if self.service else 1.0


@dataclass(frozen=True)
class Serving:
    """A run from its first arrival to its last finish.

    `latency` (arrival to finish) and `wait` (arrival to start) are without the `warmup`; all else is of the whole run.
    `requests`: those that finish; `misses`: of these, those that finish after they were due. `turned_away`: those that
    never start, who are in the system until then. `waiting`, `inside`: see `Little`, for the queue and the system; a
    request that is paused waits again. `service_cycles`: of all servers.
    `memory_requests`: the most requests that had to be remembered at once because an earlier one was not finished.
    `load`: what was asked of the machine; None where requests do not come by themselves (clients ask, or all come at
    once), or where nobody has said. `verdict`: a key of `lstmsim.serving.load.VERDICTS`.
    """

    frequency_mhz: float
    servers: int
    requests: int
    misses: int
    first_arrival: int
    last_finish: int
    service_cycles: int
    warmup: Warmup
    latency: Distribution
    wait: Distribution
    little: Little
    little_waiting: Little
    most_waiting: int
    most_inside: int
    windows: tuple[Window, ...]
    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    memory_requests: int = 0
    turned_away: int = 0
    load: Load | None = None
    verdict: str = "too few"

    @property
    def span_cycles(self) -> int:
        """Cycles from the first arrival to the last finish."""
        return self.last_finish - self.first_arrival

    def per_second(self, requests: int) -> float:
        """So many requests in this run, as a rate."""
        return requests * self.frequency_mhz * 1e6 / self.span_cycles if self.span_cycles else 0.0

    @property
    def throughput_per_second(self) -> float:
        """Requests that finish per second."""
        return self.per_second(self.requests)

    @property
    def goodput_per_second(self) -> float:
        """Requests that finish in time per second; those without a due time always do."""
        return self.per_second(self.requests - self.misses)

    @property
    def utilization(self) -> float:
        """Server cycles spent on requests / server cycles of the run."""
        return self.service_cycles / (self.servers * self.span_cycles) if self.span_cycles else 0.0

    @property
    def fairness_goodput(self) -> float:
        """Jain's index over the tenants' requests in time, each as a share of what the tenant asked for."""
        return jain([each.in_time / (each.requests + each.turned_away) for each in self.tenants.values()])

    @property
    def fairness_slowdown(self) -> float:
        """Jain's index over the tenants' slowdowns."""
        return jain([each.slowdown for each in self.tenants.values() if each.requests])

    @property
    def fairness_throughput(self) -> float:
        """Jain's index over the requests that each tenant got done in time, whatever it asked for."""
        return jain([each.in_time for each in self.tenants.values()])

    def ms(self, cycles: float) -> float:
        """Milliseconds on this run's clock."""
        return cycles / self.frequency_mhz / 1000
