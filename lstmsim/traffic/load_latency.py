"""Latency against offered load, for several policies or chips: frozen numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lstmsim.results import Table
from lstmsim.traffic.result import Serving
from lstmsim.traffic.statistics import Interval

__all__ = ["CDF", "Estimate", "LoadLatency", "Machine", "Measured", "Point", "measured"]

#: Percentiles at which the distribution of latencies is known.
CDF = (1.0, 2.0, 5.0, 10.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9)


@dataclass(frozen=True)
class Estimate:
    """A latency in ms and the half width of its 95 % interval; None where there are too few requests for one."""

    value_ms: float
    half_width_ms: float | None

    @property
    def half_share(self) -> float | None:
        """The half width as a share of the value.

        >>> Estimate(2.0, 0.1).half_share
        0.05
        """
        return None if self.half_width_ms is None or not self.value_ms else self.half_width_ms / self.value_ms


@dataclass(frozen=True)
class Measured:
    """What a run came to.

    `verdict`: a key of `lstmsim.traffic.load.VERDICTS`. `offered`: the load of this machine, as far as it is known.
    `requests`: those that were served; `turned_away`: those that were not; `misses`: those served after they were due.
    `throughput_per_second`, `goodput_per_second`: requests that ended, and those that ended in time.
    `mean`, `percentiles` (by percent): latencies; None and empty where the machine is unstable, for then they depend on
    how long the run is.
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
        """Does the machine keep up? Otherwise latencies, and who is late, depend on how long the run is."""
        return self.verdict != "unstable"

    @property
    def in_time(self) -> float | None:
        """The share of requests that came and were served in time; None if none came."""
        came = self.requests + self.turned_away
        return (self.requests - self.misses) / came if came else None

    def plain(self) -> dict[str, Any]:
        """The same as plain data.

        >>> Measured("unstable", 1.2, 10, 0, 0, 5.0, 5.0).plain()["latency_ms"]
        {}
        """
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
        """Back from plain data.

        >>> one = Measured("settled", 0.5, 10, 0, 0, 5.0, 5.0, Estimate(1.0, None), {99.0: Estimate(2.0, 0.1)})
        >>> Measured.from_plain(one.plain()) == one
        True
        """
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


def measured(found: Serving) -> Measured:
    """What a curve shows of a run."""

    def ms(each: Interval) -> Estimate:
        scaled = each.scaled(found.ms(1))
        return Estimate(scaled.value, scaled.half_width)

    stable = found.verdict != "unstable"
    return Measured(
        found.verdict,
        None if found.load is None else found.load.offered,
        found.requests,
        found.turned_away,
        found.misses,
        found.throughput_per_second,
        found.goodput_per_second,
        ms(found.latency.mean) if stable else None,
        {percent: ms(each) for percent, each in found.latency.percentiles.items()} if stable else {},
    )


@dataclass(frozen=True)
class Machine:
    """One curve: `label` tells it from the others; `chip`, `dispatch`, `preemption` and `placement` are what it is."""

    label: str
    chip: str
    dispatch: str
    preemption: bool
    placement: str


@dataclass(frozen=True)
class Point:
    """One machine at one load: `load` is a share of what the base machine can do, at `rate_per_second` requests."""

    machine: Machine
    load: float
    rate_per_second: float
    measured: Measured


@dataclass(frozen=True)
class LoadLatency(Table, forms="lstmsim.traffic.load_latency_text"):
    """Points of all machines, in their order and then that of the loads.

    `scenario`: its name. `machines`: the first is the base. `capacity_per_second`: the rate that is load 1, at which
    the base machine has no time left; `bound_per_second`: the rate that it certainly cannot exceed.
    `limits_per_second`: rates at which each of its resources is used up, by name; `saturated` is measured.
    `deadlines`: whether any job has one, without which every request is in time.
    """

    scenario: str
    machines: tuple[Machine, ...]
    capacity_per_second: float
    bound_per_second: float
    limits_per_second: Mapping[str, float]
    deadlines: bool
    points: tuple[Point, ...]

    def of(self, machine: Machine) -> tuple[Point, ...]:
        """The points of one machine."""
        return tuple(point for point in self.points if point.machine == machine)
