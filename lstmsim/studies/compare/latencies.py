"""Latencies of requests that come over time, on one machine; and whether those of two machines can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lstmsim.analysis.report import JobReport, Report
from lstmsim.base.units import cycles_to_ms
from lstmsim.studies.serve.result import Serving
from lstmsim.traffic.intervals import Interval

__all__ = ["PERCENTILES", "Latencies", "latencies", "not_comparable", "sooner"]

#: The percentiles that are compared.
PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class Latencies:
    """Latencies of the requests that a machine served, in milliseconds of its clock.

    requests: how many were served.
    turned_away: the numbers, among the jobs, of the requests that were not served.
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
    turned_away: frozenset[int]
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
    """Pick the latencies of a run from its serving figures and its report.

    >>> from lstmsim.studies.simulate.run import run, serving
    >>> jobs = [{"model": "lstm-256", "steps": 1, "count": 50, "arrival": {"kind": "poisson", "rate_per_second": 1e5}}]
    >>> result = run({"chip": "column-npu-16k", "jobs": jobs})
    >>> figures = latencies(serving(result), result.report)
    >>> figures.requests, len(figures.turned_away), figures.misses
    (50, 0, None)
    """
    to_ms = 1 / serving.frequency_mhz / 1000
    came = [job.arrival for job in report.jobs] + [job.arrival for job in report.turned_away]
    return Latencies(
        requests=serving.requests,
        turned_away=frozenset(job.number for job in report.turned_away),
        misses=serving.misses if any(job.deadline is not None for job in report.jobs) else None,
        mean=serving.latency.mean.scaled(to_ms),
        percentiles={each: serving.latency.percentiles[float(each)].scaled(to_ms) for each in PERCENTILES},
        offered_load=None if serving.load is None else serving.load.offered,
        threads_taken=serving.utilization,
        verdict=serving.verdict,
        last_arrival_ms=cycles_to_ms(max(came), serving.frequency_mhz),
    )


def not_comparable(base: Latencies, other: Latencies) -> str:
    """Say why a ratio of these latencies would mean nothing; empty if it means something.

    >>> from dataclasses import replace
    >>> one = Latencies(9, frozenset(), None, Interval(1.0), {}, None, 0.5, "settled", 1.0)
    >>> not_comparable(one, one), not_comparable(one, replace(one, verdict="unstable"))
    ('', 'a queue is unstable: its latencies only say how long the run is')
    """
    if base.unstable or other.unstable:
        return "a queue is unstable: its latencies only say how long the run is"
    if "cannot tell" in (base.verdict, other.verdict):
        return "whether a queue keeps up with what comes is not known"
    if base.turned_away != other.turned_away or base.requests != other.requests:
        return "they served different requests: who turns more away has shorter queues"
    return ""


def sooner(base: Sequence[JobReport], other: Sequence[JobReport], base_mhz: float, other_mhz: float) -> int | None:
    """Count the jobs with a shorter latency on the other machine; None if the two did not serve the same jobs.

    base, other: the jobs on both machines.
    base_mhz, other_mhz: the machines' clocks.
    """
    if [job.number for job in base] != [job.number for job in other]:
        return None
    pairs = zip(base, other, strict=True)
    return sum(cycles_to_ms(two.latency, other_mhz) < cycles_to_ms(one.latency, base_mhz) for one, two in pairs)
