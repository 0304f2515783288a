"""What a run of many requests amounts to: frozen numbers, in cycles and whole requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import fsum

from lstmsim.results import Table
from lstmsim.traffic.latencies import Distribution
from lstmsim.traffic.load import Load
from lstmsim.traffic.population import Window
from lstmsim.traffic.statistics import Warmup, jain

__all__ = ["ClosedWindow", "Entry", "Little", "Serving", "Tenant"]


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
class Entry:
    """An entry of a scenario as a tenant: its own name, its model's name, and how many clients it has (0: its requests
    come by themselves)."""

    name: str
    model: str
    clients: int = 0


@dataclass(frozen=True)
class ClosedWindow:
    """The part of a run in which all `clients` of its closed loops are active: the cycles after `start_cycle` up to
    `end_cycle`.

    It ends when the first of them has its last answer, and begins when a tenth of the requests that were served until
    then, the warm-up, have their answers.
    """

    clients: int
    start_cycle: int
    end_cycle: int

    @property
    def span_cycles(self) -> int:
        """Its length."""
        return self.end_cycle - self.start_cycle


@dataclass(frozen=True)
class Tenant:
    """One tenant's requests: how many were served, how many of these in time, their cycles in the system and with
    threads; and how many more were turned away.

    `model`: its model's name; `clients`: how many ask in its closed loop, 0 if its requests come by themselves.
    `with_deadline`: requests that have one, those turned away among them; `attained`: of these, those served in time.
    `counted`, `counted_in_time`: requests served in the part of the run that rates are of (`Serving.window`), and those
    of them in time; `throughput_per_second`, `goodput_per_second`: these as rates.
    `latency`, `wait`: without the tenant's own warm-up, its first tenth; None if none was served.
    `slowdown`: the mean over its served requests of latency / latency of the same job alone on the chip, the
    normalized turnaround time; None if no time alone is known. `progress`: the mean over its requests of the inverse,
    0 for those turned away.

    >>> Tenant("a", requests=2, in_time=1, sojourn=30, service=20, with_deadline=4, attained=1).attainment
    0.25
    """

    name: str
    requests: int
    in_time: int
    sojourn: int
    service: int
    turned_away: int = 0
    model: str = ""
    clients: int = 0
    with_deadline: int = 0
    attained: int = 0
    counted: int = 0
    counted_in_time: int = 0
    throughput_per_second: float = 0.0
    goodput_per_second: float = 0.0
    latency: Distribution | None = None
    wait: Distribution | None = None
    slowdown: float | None = None
    progress: float | None = None

    @property
    def misses(self) -> int:
        """Requests that were served after they were due."""
        return self.requests - self.in_time

    @property
    def attainment(self) -> float | None:
        """The share of its requests with a deadline that were served in time, those turned away counted as not; None
        if none has a deadline."""
        return self.attained / self.with_deadline if self.with_deadline else None


@dataclass(frozen=True)
class Serving(Table, forms="lstmsim.traffic.text"):
    """A run from its first arrival to its last finish.

    `latency` (arrival to finish) and `wait` (arrival to start) are without the `warmup`; all else is of the whole run.
    `requests`: those that finish; `misses`: of these, those that finish after they were due. `turned_away`: those that
    never start, who are in the system until then. `waiting`, `inside`: see `Little`, for the queue and the system; a
    request that is paused waits again. `service_cycles`: of all servers.
    `memory_requests`: the most requests that had to be remembered at once because an earlier one was not finished.
    `load`: what was asked of the machine; None where requests do not come by themselves (clients ask, or all come at
    once), or where nobody has said. `verdict`: a key of `lstmsim.traffic.load.VERDICTS`.
    `tenants`: by name, in the order of the scenario's entries; `models`: their counts by the model's name.
    `window`: where clients wait for their answers, the part of the run that throughput, goodput and latencies are of;
    slowdowns are of all requests up to its end. None where all requests come by themselves: then all of that is of the
    whole run, latencies without the warm-up.
    `remarks`: sentences about what stands in somebody's way.
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
    models: Mapping[str, Tenant] = field(default_factory=dict)
    window: ClosedWindow | None = None
    remarks: tuple[str, ...] = ()

    @property
    def span_cycles(self) -> int:
        """Cycles from the first arrival to the last finish."""
        return self.last_finish - self.first_arrival

    def per_second(self, requests: int) -> float:
        """So many requests in this run, as a rate."""
        return requests * self.frequency_mhz * 1e6 / self.span_cycles if self.span_cycles else 0.0

    @property
    def throughput_per_second(self) -> float:
        """Requests that finish per second: while all clients are active where there is a `window`, else of the run."""
        if self.window is None:
            return self.per_second(self.requests)
        return self._inside_per_second(self.requests_inside)

    @property
    def goodput_per_second(self) -> float:
        """Requests that finish in time per second, in the same part; those without a due time always do."""
        if self.window is None:
            return self.per_second(self.requests - self.misses)
        return self._inside_per_second(sum(each.counted_in_time for each in self.tenants.values()))

    @property
    def requests_inside(self) -> int:
        """Requests served in the part of the run that rates are of."""
        return sum(each.counted for each in self.tenants.values())

    def _inside_per_second(self, requests: int) -> float:
        span = 0 if self.window is None else self.window.span_cycles
        return requests * self.frequency_mhz * 1e6 / span if span else 0.0

    @property
    def antt(self) -> float | None:
        """Average normalized turnaround time: the mean of the tenants' slowdowns, of those that have one.

        Source: Eyerman, Eeckhout: System-level performance metrics for multiprogram workloads; IEEE Micro 28(3), 2008,
        doi 10.1109/MM.2008.44; a program is a tenant. The lower the better, 1 if nobody is ever held up.
        """
        known = [each.slowdown for each in self.tenants.values() if each.slowdown is not None]
        return fsum(known) / len(known) if known else None

    @property
    def stp(self) -> float | None:
        """System throughput: the sum of the tenants' progress; the higher the better, at most about their number.

        Source: as that of `antt`.
        """
        known = [each.progress for each in self.tenants.values() if each.progress is not None]
        return fsum(known) if known else None

    @property
    def utilization(self) -> float:
        """Server cycles spent on requests / server cycles of the run."""
        return self.service_cycles / (self.servers * self.span_cycles) if self.span_cycles else 0.0

    @property
    def fairness_goodput(self) -> float:
        """Jain's index over the tenants' requests in time, each as a share of what the tenant asked for."""
        asked = [(each.in_time, each.requests + each.turned_away) for each in self.tenants.values()]
        return jain([in_time / all_of_them for in_time, all_of_them in asked if all_of_them])

    @property
    def fairness_slowdown(self) -> float:
        """Jain's index over the tenants' slowdowns, of those that have one."""
        return jain([each.slowdown for each in self.tenants.values() if each.slowdown is not None])

    @property
    def fairness_throughput(self) -> float:
        """Jain's index over the requests that each tenant got done in time, whatever it asked for."""
        return jain([each.in_time for each in self.tenants.values() if each.requests + each.turned_away])

    def ms(self, cycles: float) -> float:
        """Milliseconds on this run's clock."""
        return cycles / self.frequency_mhz / 1000
