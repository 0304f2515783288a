"""The result of a comparison: frozen numbers of workloads on machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import exp, fsum, log

from lstmsim.analysis.report import JobReport, Report
from lstmsim.base.units import cycles_to_ms
from lstmsim.model.figures import MainUnit
from lstmsim.model.scenario import ARRIVING
from lstmsim.report.results import Table
from lstmsim.report.stability import Stability
from lstmsim.report.stamp import NO_SILICON, Stamp
from lstmsim.studies.compare.device_fits import DeviceFit
from lstmsim.studies.serve.result import Serving
from lstmsim.traffic.intervals import Interval

#: The percentiles that are compared.
PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class Latencies:
    """Latencies of the requests that a machine served, in milliseconds of its clock.

    requests: how many were served.
    rejected: the numbers, among the jobs, of the requests that were not served.
    misses: how many served requests finished after their deadlines; None where no request has a deadline.
    mean: without the warm-up, with its interval (`half_width` None: too few requests to tell).
    percentiles: the same for each of `PERCENTILES`.
    offered_load: work that comes / work that the machine can do; None: unknown.
    threads_taken: the share of the threads' time in which a request had them.
    verdict: a key of `lstmsim.traffic.load.VERDICTS`.
    last_arrival_ms: when the last request came.
    sooner: how many requests, one by one, had a shorter latency than on the base; None for the base itself, and where
        the two machines served different requests.
    """

    requests: int
    rejected: frozenset[int]
    misses: int | None
    mean: Interval
    percentiles: Mapping[int, Interval]
    offered_load: float | None
    threads_taken: float
    verdict: str
    last_arrival_ms: float
    sooner: int | None = None

    @property
    def unstable(self) -> bool:
        """Whether the queue grows: then a latency says how long the run was, not how fast the machine is."""
        return self.verdict == "unstable"


def latencies(serving: Serving, report: Report) -> Latencies:
    """Pick the latencies of a run from its serving figures and its report."""
    to_ms = 1 / serving.frequency_mhz / 1000
    came = [job.arrival for job in report.jobs] + [job.arrival for job in report.rejected]
    return Latencies(
        requests=serving.requests,
        rejected=frozenset(job.number for job in report.rejected),
        misses=serving.misses if any(job.deadline is not None for job in report.jobs) else None,
        mean=serving.latency.mean.scaled(to_ms),
        percentiles={each: serving.latency.percentiles[float(each)].scaled(to_ms) for each in PERCENTILES},
        offered_load=None if serving.load is None else serving.load.offered,
        threads_taken=serving.utilization,
        verdict=serving.verdict,
        last_arrival_ms=cycles_to_ms(max(came), serving.frequency_mhz),
    )


def not_comparable(base: Latencies, other: Latencies) -> str:
    """Say why a ratio of these latencies would mean nothing; empty if it means something."""
    if base.unstable or other.unstable:
        return "a queue is unstable: its latencies only say how long the run is"
    if "cannot tell" in (base.verdict, other.verdict):
        return "whether a queue keeps up with what comes is not known"
    if base.rejected != other.rejected or base.requests != other.requests:
        return "they served different requests: a machine that rejects more has shorter queues"
    return ""


def not_told(one: Latencies, other: Latencies) -> str:
    """Say why the means of two machines do not tell which one answers faster; empty if they do."""
    if "no steady state" in (one.verdict, other.verdict):
        return "requests do not come as a process that goes on, so that their means have no intervals"
    if one.mean.half_width is None or other.mean.half_width is None:
        return "there are too few requests"
    if abs(one.mean.value - other.mean.value) <= one.mean.half_width + other.mean.half_width:
        return "the intervals of the means overlap"
    return ""


def sooner(base: Sequence[JobReport], other: Sequence[JobReport], base_mhz: float, other_mhz: float) -> int | None:
    """Count the jobs with a shorter latency on the other machine; None if the two did not serve the same jobs."""
    if [job.number for job in base] != [job.number for job in other]:
        return None
    pairs = zip(base, other, strict=True)
    return sum(cycles_to_ms(two.latency, other_mhz) < cycles_to_ms(one.latency, base_mhz) for one, two in pairs)


#: From this share of a makespan on, that passes before the last job comes, a ratio of makespans says too little
#: (an assumption; the share is always shown).
LATE = 0.5


def geometric_mean(values: Sequence[float]) -> float | None:
    """Give the geometric mean of positive numbers; None of no numbers."""
    return exp(fsum(map(log, values)) / len(values)) if values else None


@dataclass(frozen=True)
class Machine:
    """A column: a simulated chip, or a design of which only published figures are known.

    name: unique among the machines.
    published: whether the figures are published and not simulated.
    pes: its multipliers; None: not published.
    frequency_mhz: its clock; None: not published.
    peak_tops: two operations a PE and cycle.
    source: of published figures.
    part: what people call one of its multipliers.
    begins_cold: whether the first time step of a job loads weights that later steps have near.
    precision: of a published machine as its source words it; of a simulated one the elements that are timed.
    stands_for: name of the published machine that a simulated chip describes; empty: of none here.
    changed: keys in which such a chip differs from its preset, those of clock and precision left out.
    """

    name: str
    published: bool
    pes: int | None
    frequency_mhz: float | None
    peak_tops: float | None = None
    source: str = ""
    part: str = "PE"
    begins_cold: bool = False
    precision: str = ""
    stands_for: str = ""
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workload:
    """A row: jobs that run together, named after the model or scenario, and their useful multiply-accumulates."""

    name: str
    jobs: int
    macs: int


@dataclass(frozen=True)
class Entry:
    """A workload on a machine; None stands for an unknown figure.

    cycles: the makespan.
    ms: the makespan in milliseconds.
    mean_latency_ms, p99_latency_ms: of all jobs.
    tops: two operations for each multiply-accumulate.
    utilization: useful multiply-accumulates per PE and cycle, 0 to 1.
    losses: shares of the PE-cycles by name, `useful` included; they add up to 1.
    reason: why there are no figures.
    remarks: what to know about the figures.
    latencies: of jobs that come over time, without warm-up and with intervals.
    first_cycles: the makespan of the same jobs with one time step each; None: not measured, because no machine begins
        cold, jobs come over time, or none has a later step.
    """

    cycles: int | None = None
    ms: float | None = None
    mean_latency_ms: float | None = None
    p99_latency_ms: float | None = None
    tops: float | None = None
    utilization: float | None = None
    losses: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    remarks: tuple[str, ...] = ()
    latencies: Latencies | None = None
    first_cycles: int | None = None

    @property
    def later_cycles(self) -> int | None:
        """What the later time steps add to the makespan: the steady steps. None: not measured."""
        return None if self.cycles is None or self.first_cycles is None else self.cycles - self.first_cycles

    @property
    def later_ms(self) -> float | None:
        """`later_cycles` in milliseconds; None: not measured."""
        later = self.later_cycles
        return None if later is None or self.ms is None or not self.cycles else self.ms * later / self.cycles

    @property
    def known(self) -> bool:
        """Whether the machine ran the workload."""
        return self.ms is not None

    @property
    def main_loss(self) -> str | None:
        """The name under which most PE-cycles were lost; None if none were lost, or it is unknown."""
        lost = {name: share for name, share in self.losses.items() if name != "useful" and share > 0}
        return max(lost, key=lambda name: lost[name]) if lost else None


@dataclass(frozen=True)
class Comparison(Table, forms="lstmsim.studies.compare.report"):
    """Workloads (rows) on machines (columns); the first machine is the base of every speed-up.

    scenario, engine: what was simulated, and how.
    each: whether a row is one model alone; otherwise the one row is the scenario as a whole.
    machines: the columns.
    workloads: the rows.
    entries: `entries[row][column]`.
    way: how the jobs come, a key of `lstmsim.model.scenario.ARRIVING`.
    device_fits: whether the simulated chips fit the devices of the machines that they are compared with.
    stamps: what the cycles of each simulated chip are exact against, and which of its keys are assumptions.
    stability: which conclusions hold whatever its assumptions are; None: nobody asked.

    >>> machines = Machine("a", False, 100, 250.0), Machine("b", False, 400, 250.0)
    >>> comparison = Comparison("s", "fast", False, machines, (Workload("s", 1, 9),), ((Entry(ms=3.0), Entry(ms=1.5)),))
    >>> comparison.speedup(0, 1), comparison.speedup_at_equal_pes(0, 1)
    (2.0, 0.5)
    """

    scenario: str
    engine: str
    each: bool
    machines: tuple[Machine, ...]
    workloads: tuple[Workload, ...]
    entries: tuple[tuple[Entry, ...], ...]
    way: str = next(iter(ARRIVING))
    device_fits: tuple[DeviceFit, ...] = ()
    stamps: tuple[Stamp, ...] = field(default=(), compare=False, repr=False)
    stability: Stability | None = None

    def compared_with(self) -> list[str]:
        """Say of which chips silicon stands behind nothing; a row of the table has what each was compared with."""
        named = [one.name for one, stamp in zip(self.machines, self.stamps, strict=False) if not stamp.silicon]
        return [f"{NO_SILICON.capitalize()}: {', '.join(named)}. More: --stamp."] if named else []

    @property
    def part(self) -> str:
        """What people call a multiplier of the simulated machines; `multiplier` if they call it differently."""
        parts = {each.part for each in self.machines if not each.published} or {Machine.part}
        return parts.pop() if len(parts) == 1 else MainUnit().part

    @cached_property
    def reasons(self) -> dict[str, int]:
        """Why simulated machines have no figures of a workload, machine by machine; equal reasons share a number."""
        columns = zip(self.machines, zip(*self.entries, strict=True), strict=True)
        simulated = [(machine.name, own) for machine, own in columns if not machine.published]
        texts = dict.fromkeys(f"{name}: {each.reason}" for name, own in simulated for each in own if each.reason)
        return {text: number for number, text in enumerate(texts, start=1)}

    @property
    def by_latency(self) -> bool:
        """Whether latencies are compared, and not makespans.

        That is so where jobs come at times of their own, and the last one so late that on some machine at least half of
        the makespan is over by then: no chip could be twice as fast.
        """
        return self.way == "open" and max(self.before_last_arrival, default=0.0) >= LATE

    @property
    def before_last_arrival(self) -> list[float]:
        """Of each machine that ran jobs over time, the share of its makespan that is over when the last job comes."""
        known = [(each.latencies, each.ms) for row in self.entries for each in row]
        return [latencies.last_arrival_ms / ms for latencies, ms in known if latencies is not None and ms]

    def latency_ratio(self, row: int, column: int, percentile: int | None = None) -> float | None:
        """Give latency of the base / latency of the machine, in milliseconds; above 1 the machine is faster."""
        base, own = self.entries[row][0].latencies, self.entries[row][column].latencies
        if base is None or own is None or not_comparable(base, own):
            return None
        one, two = (each.mean if percentile is None else each.percentiles[percentile] for each in (base, own))
        return one.value / two.value if two.value else None

    def speedup(self, row: int, column: int) -> float | None:
        """Give time of the base / time of the machine; above 1 the machine is faster. None: unknown."""
        base, own = self.entries[row][0].ms, self.entries[row][column].ms
        return None if base is None or own is None else base / own

    def later_speedup(self, row: int, column: int) -> float | None:
        """Give the speed-up by steady steps: of what later time steps add to each makespan. None: not measured."""
        base, own = self.entries[row][0].later_ms, self.entries[row][column].later_ms
        return base / own if base is not None and own is not None and base > 0 and own > 0 else None

    def speedup_at_equal_pes(self, row: int, column: int) -> float | None:
        """Give the speed-up times PEs of the base / PEs of the machine: the speed-up if time fell as PEs rise.

        Time falls less, above all for small models; so this figure says which design makes more of a PE, not what a
        chip of another size would do. None: unknown.
        """
        base, own, speedup = self.machines[0].pes, self.machines[column].pes, self.speedup(row, column)
        return None if base is None or own is None or speedup is None else speedup * base / own

    def tops_per_1000_pes(self, row: int, column: int) -> float | None:
        """Give the TOPS of a thousand of the machine's PEs: utilization times clock. None: unknown."""
        tops, pes = self.entries[row][column].tops, self.machines[column].pes
        return None if tops is None or pes is None else 1000 * tops / pes

    def mean_speedup(self, column: int) -> float | None:
        """Give the geometric mean of the speed-ups over all rows that both machines ran; None without such a row."""
        speedups = [self.speedup(row, column) for row in range(len(self.workloads))]
        return geometric_mean([each for each in speedups if each is not None])

    def mean_later_speedup(self, column: int) -> float | None:
        """Give the geometric mean of `later_speedup` over all rows that have it; None without such a row."""
        speedups = [self.later_speedup(row, column) for row in range(len(self.workloads))]
        return geometric_mean([each for each in speedups if each is not None])
