"""The result of a run of many requests: frozen numbers, in cycles and whole requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import fsum

from lstmsim.analysis.batches import BatchFigures
from lstmsim.report.results import Table
from lstmsim.traffic.intervals import Warmup, jain
from lstmsim.traffic.latencies import Distribution
from lstmsim.traffic.load import Load
from lstmsim.traffic.population import Window
from lstmsim.traffic.rates import Rates


@dataclass(frozen=True)
class Little:
    """Both sides of Little's law L = lambda W, times the cycles of the run, counted independently.

    The law holds exactly, in whole numbers, or something is wrong. (Little: A proof for the queuing formula L = lambda
    W; Operations Research 9, 1961.)

    area: requests in the system summed over all cycles, by going through arrivals and finishes in the order of time.
    sojourn: finish - arrival summed over all requests, in cycles.
    requests, span_cycles: number of requests, length of the run.

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
        """The area less the sojourn; 0."""
        return self.area - self.sojourn


@dataclass(frozen=True)
class Entry:
    """An entry of a scenario as a tenant; with 0 clients its requests come by themselves."""

    name: str
    model: str
    clients: int = 0


@dataclass(frozen=True)
class ClosedWindow:
    """The part of a run in which all clients of its closed loops are active.

    It ends when the first client has its last answer. It begins when a tenth of the requests that were served until
    then, the warm-up, have their answers.
    """

    clients: int
    start_cycle: int
    end_cycle: int

    @property
    def span_cycles(self) -> int:
        """The window's length."""
        return self.end_cycle - self.start_cycle


@dataclass(frozen=True)
class Tenant:
    """Figures of one tenant. Rates and the counts for them are of `Serving.window`, or of the whole run without one.

    requests, in_time: numbers of requests that were served, and served in time.
    sojourn, service: their cycles in the system, and with threads.
    rejected: number of requests that were rejected.
    model: the name of the tenant's model.
    clients: number of clients in its closed loop; 0: its requests come by themselves.
    with_deadline: requests that have a deadline, rejected ones included.
    attained: number of the requests with a deadline that were served in time.
    counted, counted_in_time: requests served, and served in time, in the part of the run that rates are of.
    throughput_per_second, goodput_per_second: these two as rates.
    latency, wait: in cycles, without the tenant's own warm-up, its first tenth; None if none was served.
    slowdown: the mean over its served requests of latency / latency of the same job alone on the chip, the normalized
        turnaround time; None if no time alone is known.
    progress: the mean over its requests of the inverse, 0 for rejected ones; None if no time alone is known.
    verdict: a key of `lstmsim.traffic.load.VERDICTS`: that of the run, or of the tenant's part of the machine where
        it shares nothing with others.
    rates: throughput, goodput and attainment with intervals; None: of several tenants together.
    batching: the batches in which its requests ran; None without any.
    """

    name: str
    requests: int
    in_time: int
    sojourn: int
    service: int
    rejected: int = 0
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
    verdict: str = "too few"
    rates: Rates | None = None
    batching: BatchFigures | None = None

    @property
    def misses(self) -> int:
        """Requests that were served after they were due."""
        return self.requests - self.in_time

    @property
    def attainment(self) -> float | None:
        """The share of the requests with a deadline that were served in time; None if none has a deadline."""
        return self.attained / self.with_deadline if self.with_deadline else None


@dataclass(frozen=True)
class Serving(Table, forms="lstmsim.studies.serve.report"):
    """A run from its first arrival to its last finish.

    Latencies and waits are without the `warmup`; all else is of the whole run, unless there is a `window`.

    servers: number of requests that can run at once.
    requests, misses: numbers of requests that finish, and that finish after they were due.
    first_arrival, last_finish: cycles.
    service_cycles: of all servers together.
    latency, wait: from arrival to finish, and to start, in cycles.
    little, little_waiting: Little's law for the system and for the queue; a request that is paused waits again.
    most_waiting, most_inside: the most requests in the queue, and in the system, at one time.
    windows: the run over time.
    tenants: by name, in the order of the scenario's entries.
    rejected: number of requests that never start; they are in the system until they leave.
    load: the offered load; None where requests do not come by themselves (clients ask, or all come at once), or where
        it is unknown how they come.
    verdict: a key of `lstmsim.traffic.load.VERDICTS`.
    models: the tenants' counts by the model's name.
    window: where clients wait for their answers, the part of the run that throughput, goodput and latencies are of;
        slowdowns are of all requests up to its end. None where all requests come by themselves: then all of these
        are of the whole run, latencies without the warm-up.
    remarks: sentences about jobs that keep others out.
    rates: throughput, goodput, attainment and utilization with intervals.
    relaxation: about how many served requests pass until the queue has forgotten its past; None: only the data say.
    batching: the batches in which requests ran; None without any.
    utilization: server cycles spent on requests / server cycles, in the part of the run that rates are of.
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
    rejected: int = 0
    load: Load | None = None
    verdict: str = "too few"
    models: Mapping[str, Tenant] = field(default_factory=dict)
    window: ClosedWindow | None = None
    remarks: tuple[str, ...] = ()
    rates: Rates | None = None
    relaxation: float | None = None
    batching: BatchFigures | None = None
    utilization: float = 0.0

    @property
    def span_cycles(self) -> int:
        """Cycles from the first arrival to the last finish."""
        return self.last_finish - self.first_arrival

    def per_second(self, requests: int) -> float:
        """Give a number of requests in this run as a rate."""
        return requests * self.frequency_mhz * 1e6 / self.span_cycles if self.span_cycles else 0.0

    @property
    def throughput_per_second(self) -> float:
        """Requests that finish per second: while all clients are active where there is a `window`, else of the run."""
        if self.window is None:
            return self.per_second(self.requests)
        return self._inside_per_second(self.requests_inside)

    @property
    def goodput_per_second(self) -> float:
        """Requests that finish in time per second, in the same part as throughput; without a due time all do."""
        if self.window is None:
            return self.per_second(self.requests - self.misses)
        return self._inside_per_second(sum(each.counted_in_time for each in self.tenants.values()))

    @property
    def requests_inside(self) -> int:
        """Requests served in the part of the run that rates are of."""
        return sum(each.counted for each in self.tenants.values())

    def _inside_per_second(self, requests: int) -> float:
        """A number of requests in the window as a rate."""
        span = 0 if self.window is None else self.window.span_cycles
        return requests * self.frequency_mhz * 1e6 / span if span else 0.0

    @property
    def antt(self) -> float | None:
        """Average normalized turnaround time: the mean slowdown of the tenants that have one; the lower the better.

        It is 1 if nobody is ever held up.

        Source: Eyerman, Eeckhout: System-level performance metrics for multiprogram workloads; IEEE Micro 28(3), 2008,
        doi 10.1109/MM.2008.44; a program is a tenant.
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
    def fairness_goodput(self) -> float:
        """Jain's index over the tenants' requests in time, each as a share of what the tenant asked for."""
        asked = [(each.in_time, each.requests + each.rejected) for each in self.tenants.values()]
        return jain([in_time / all_of_them for in_time, all_of_them in asked if all_of_them])

    @property
    def fairness_slowdown(self) -> float:
        """Jain's index over the slowdowns of the tenants that have one."""
        return jain([each.slowdown for each in self.tenants.values() if each.slowdown is not None])

    @property
    def fairness_throughput(self) -> float:
        """Jain's index over the requests that each tenant got done in time, whatever it asked for."""
        return jain([each.in_time for each in self.tenants.values() if each.requests + each.rejected])

    def ms(self, cycles: float) -> float:
        """Give a number of cycles in milliseconds of this run's clock."""
        return cycles / self.frequency_mhz / 1000
