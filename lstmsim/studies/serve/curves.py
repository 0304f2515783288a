"""Latency against offered load, for several policies or chips: frozen numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lstmsim.report.results import Table
from lstmsim.studies.serve.result import Serving
from lstmsim.traffic.intervals import Interval

#: Percentiles at which the distribution of latencies is known.
CDF = (1.0, 2.0, 5.0, 10.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9)


#: Verdicts on runs whose latencies may say no more than how long the run is.
_NO_LATENCY = ("unstable", "cannot tell")


@dataclass(frozen=True)
class Estimate:
    """A latency and its uncertainty.

    value_ms: the latency.
    half_width_ms: half the width of its 95 % interval; None where there are too few requests for one.
    """

    value_ms: float
    half_width_ms: float | None

    @property
    def half_share(self) -> float | None:
        """The half width as a share of the value."""
        return None if self.half_width_ms is None or not self.value_ms else self.half_width_ms / self.value_ms


@dataclass(frozen=True)
class Measured:
    """The figures of one run.

    verdict: a key of `lstmsim.traffic.load.VERDICTS`.
    offered: the load of this machine; None: unknown.
    requests, turned_away, misses: numbers of requests that were served, rejected, and served after they were due.
    mean: the mean latency; None where the machine is not `stable`, for then it may depend on how long the run is.
    percentiles: latencies by percent; empty where there is no mean.
    """

    verdict: str
    offered: float | None
    requests: int
    turned_away: int
    misses: int
    throughput_per_second: float
    goodput_per_second: float
    mean: Estimate | None = None
    percentiles: Mapping[float, Estimate] = field(default_factory=dict)

    @property
    def stable(self) -> bool:
        """Whether the machine may keep up; otherwise latencies, and who is late, may depend on how long the run is."""
        return self.verdict not in _NO_LATENCY

    @property
    def in_time(self) -> float | None:
        """The share of the requests that came and were served in time; None if none came."""
        came = self.requests + self.turned_away
        return (self.requests - self.misses) / came if came else None

    def plain(self) -> dict[str, Any]:
        """Give the figures as plain data."""
        named = {} if self.mean is None else {"mean": self.mean}
        named |= {f"p{percent:g}": each for percent, each in self.percentiles.items()}
        return {
            "verdict": self.verdict,
            "offered_load": self.offered,
            "requests": self.requests,
            "turned_away": self.turned_away,
            "misses": self.misses,
            "throughput_per_second": self.throughput_per_second,
            "goodput_per_second": self.goodput_per_second,
            "latency_ms": {name: {"value": e.value_ms, "half_width": e.half_width_ms} for name, e in named.items()},
        }

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Measured:
        """Make the figures from plain data."""
        known = {name: Estimate(each["value"], each["half_width"]) for name, each in data["latency_ms"].items()}
        mean = known.pop("mean", None)
        return cls(
            data["verdict"],
            data["offered_load"],
            data["requests"],
            data["turned_away"],
            data["misses"],
            data["throughput_per_second"],
            data["goodput_per_second"],
            mean,
            {float(name[1:]): each for name, each in known.items()},
        )


def measured(serving: Serving) -> Measured:
    """Pick from a run the figures that a curve shows."""

    def ms(each: Interval) -> Estimate:
        scaled = each.scaled(serving.ms(1))
        return Estimate(scaled.value, scaled.half_width)

    stable = serving.verdict not in _NO_LATENCY
    return Measured(
        serving.verdict,
        None if serving.load is None else serving.load.offered,
        serving.requests,
        serving.turned_away,
        serving.misses,
        serving.throughput_per_second,
        serving.goodput_per_second,
        ms(serving.latency.mean) if stable else None,
        {percent: ms(each) for percent, each in serving.latency.percentiles.items()} if stable else {},
    )


@dataclass(frozen=True)
class Machine:
    """The machine of one curve; its label tells this curve from the others."""

    label: str
    chip: str
    dispatch: str
    preemption: bool
    placement: str


@dataclass(frozen=True)
class Point:
    """One machine at one load, a share of what the base machine can do."""

    machine: Machine
    load: float
    rate_per_second: float
    measured: Measured


@dataclass(frozen=True)
class LoadLatency(Table, forms="lstmsim.studies.serve.report_load_latency"):
    """Points of all machines, in the order of the machines and then of the loads.

    scenario: its name.
    machines: the curves; the first machine is the base.
    capacity_per_second: the rate that is load 1, at which the base machine has no time left.
    bound_per_second: the rate that the base machine certainly cannot exceed.
    limits_per_second: rates at which each resource of the base machine is used up, by its name; `saturated` is
        measured.
    deadlines: whether any job has a deadline; if none has, every request is in time.
    """

    scenario: str
    machines: tuple[Machine, ...]
    capacity_per_second: float
    bound_per_second: float
    limits_per_second: Mapping[str, float]
    deadlines: bool
    points: tuple[Point, ...]

    def of(self, machine: Machine) -> tuple[Point, ...]:
        """Give the points of one machine."""
        return tuple(point for point in self.points if point.machine == machine)
