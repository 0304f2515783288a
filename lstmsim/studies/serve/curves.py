"""Latency against offered load, for several policies or chips: frozen numbers, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lstmsim.report.document import Column, Document, Grid, Section, remark
from lstmsim.report.results import Baseline, Forms, Table, picked
from lstmsim.report.stamp import Stamp
from lstmsim.studies.serve.result import Serving
from lstmsim.studies.serve.saturation import limits_text
from lstmsim.traffic.intervals import Interval

#: Percentiles at which the distribution of latencies is known.
CDF = (1.0, 2.0, 5.0, 10.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9)


#: Verdicts on runs whose latencies may say no more than how long the run is.
_NO_LATENCY = ("unstable", "cannot tell")


@dataclass(frozen=True)
class Estimate:
    """A latency, and half the width of its 95 % interval; None where there are too few requests for one."""

    value_ms: float
    half_width_ms: float | None

    @property
    def half_share(self) -> float | None:
        """The half width as a share of the value."""
        return None if self.half_width_ms is None or not self.value_ms else self.half_width_ms / self.value_ms


@dataclass(frozen=True)
class Measured:
    """The figures of one run; its verdict is a key of `lstmsim.traffic.load.VERDICTS`.

    mean: the mean latency; None where the machine is not `stable`, for then it may depend on how long the run is.
    percentiles: latencies by percent; empty where there is no mean.
    """

    verdict: str
    offered: float | None
    requests: int
    rejected: int
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
        came = self.requests + self.rejected
        return (self.requests - self.misses) / came if came else None

    def plain(self) -> dict[str, Any]:
        """Give the figures as plain data."""
        named = {} if self.mean is None else {"mean": self.mean}
        named |= {f"p{percent:g}": each for percent, each in self.percentiles.items()}
        latencies = {name: picked(each, "value=value_ms half_width=half_width_ms") for name, each in named.items()}
        return picked(self, _FIGURES) | {"latency_ms": latencies}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Measured:
        """Make the figures from plain data."""
        pairs = (each.partition("=") for each in _FIGURES.split())
        known = {name: Estimate(each["value"], each["half_width"]) for name, each in data["latency_ms"].items()}
        mean = known.pop("mean", None)
        percentiles = {float(name[1:]): each for name, each in known.items()}
        return cls(**{field or key: data[key] for key, _, field in pairs}, mean=mean, percentiles=percentiles)


#: Keys of a kept run, and the fields that they have their values from.
_COUNTS = "requests rejected misses throughput_per_second goodput_per_second"
_FIGURES = f"verdict offered_load=offered {_COUNTS}"


def measured(serving: Serving) -> Measured:
    """Pick from a run the figures that a curve shows."""
    stable = serving.verdict not in _NO_LATENCY

    def ms(each: Interval) -> Estimate:
        scaled = each.scaled(serving.ms(1))
        return Estimate(scaled.value, scaled.half_width)

    return Measured(
        **picked(serving, f"verdict {_COUNTS}"),
        offered=None if serving.load is None else serving.load.offered,
        mean=ms(serving.latency.mean) if stable else None,
        percentiles={percent: ms(each) for percent, each in serving.latency.percentiles.items()} if stable else {},
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
class LoadLatency(Table, forms="lstmsim.studies.serve.curves"):
    """Points of all machines, in the order of the machines and then of the loads.

    scenario: its name.
    machines: the curves; the first machine is the base.
    capacity_per_second: the rate that is load 1, at which the base machine has no time left.
    bound_per_second: the rate that the base machine certainly cannot exceed.
    limits_per_second: rates at which each resource of the base machine is used up, by its name; `saturated` is
        measured.
    deadlines: whether any job has a deadline; if none has, every request is in time.
    stamps: what the cycles of each chip are exact against, the scenario's own first.
    """

    scenario: str
    machines: tuple[Machine, ...]
    capacity_per_second: float
    bound_per_second: float
    limits_per_second: Mapping[str, float]
    deadlines: bool
    points: tuple[Point, ...]
    stamps: tuple[Stamp, ...] = field(default=(), compare=False, repr=False)

    def of(self, machine: Machine) -> tuple[Point, ...]:
        """Give the points of one machine."""
        return tuple(point for point in self.points if point.machine == machine)


#: People are shown this percentile; files have all of them.
_SHOWN = 99.0


def document(curves: LoadLatency) -> Document:
    """Say what load 1 is, give a row for each machine and load, and then what a reader has to know."""
    base, limits = curves.machines[0], curves.limits_per_second
    first_used = min(limits, key=lambda name: limits[name], default="")
    done = "does of a backlog" if first_used == "saturated" else "can do"
    headline = (
        f"LOAD AND LATENCY: {curves.scenario}; load 1 is {curves.capacity_per_second:,.0f} requests/s, all that "
        f"{base.chip} {done} of this mix{' without preemption' * base.preemption}; used up at {limits_text(limits)}"
    )
    remarks = (remark(sentence, 2) for sentence in _remarks(curves))
    return Document.of(headline, _points(curves), Section.of(*remarks))


def _points(curves: LoadLatency) -> Grid:
    several = len(curves.machines) > 1
    rejects = any(point.measured.rejected for point in curves.points)
    columns = [
        *[Column("machine", left=True)] * several,
        Column("load", form=lambda load: f"{load:.3g}"),
        Column("requests/s", digits=0),
        Column("mean ms"),
        Column(f"p{_SHOWN:g} ms"),
        *[Column("in time/s", digits=0), Column("late")] * curves.deadlines,
        *[Column("rejected")] * rejects,
        Column("verdict"),
    ]
    rows = []
    for point in curves.points:
        run = point.measured
        latencies = (None if each is None else _latency(each) for each in (run.mean, run.percentiles.get(_SHOWN)))
        in_time = (run.goodput_per_second, _share(run.misses, run.requests)) if run.stable else (None, None)
        rejected = [_share(run.rejected, run.requests + run.rejected)] * rejects
        label = [point.machine.label] * several
        row = (*label, point.load, point.rate_per_second, *latencies, *in_time * curves.deadlines, *rejected)
        rows.append((*row, run.verdict))
    return Grid(tuple(columns), tuple(rows), repeated=1 + several)


def _latency(estimate: Estimate) -> str:
    """The latency to the fourth figure, with the half width of its 95 % interval as a share, which is short."""
    if estimate.half_width_ms is None:
        return f"{estimate.value_ms:.4g} too few"
    share = 100 * (estimate.half_share or 0.0)
    width = "0%" if not share else "<0.1%" if share < 0.1 else f"{share:.{0 if share >= 10 else 1}f}%"
    return f"{estimate.value_ms:.4g} +- {width}"


def _share(part: int, whole: int) -> str | None:
    return f"{100 * part / whole:.2f} %" if whole else None


def _remarks(curves: LoadLatency) -> Iterator[str]:
    """Sentences that the reader needs to understand the table."""
    runs = [point.measured for point in curves.points]
    verdicts = {run.verdict for run in runs}
    if any(run.rejected for run in runs):
        yield "rejected: as they came, or they left before they were served"
    if any(run.mean is not None for run in runs):
        yield "+-: half width of the 95 % interval; --csv and --json have more percentiles"
    if len({machine.chip for machine in curves.machines}) > 1:
        base = curves.machines[0].chip
        yield f"all chips have the same requests per second at a load: shares of what {base} can do"
    if "unstable" in verdicts:
        yield "unstable: more work comes than is done, so that latencies and lateness depend on how long the run is"
    if "cannot tell" in verdicts:
        yield "cannot tell: whether the machine keeps up is not known; `serve` of that point says what is missing"
    shown = [each for run in runs for each in (run.mean, run.percentiles.get(_SHOWN))]
    if any(each is not None and each.half_width_ms is None for each in shown):
        yield "too few: not enough requests for a 95 % interval; more with --requests, or --until-half-width"


def _records(curves: LoadLatency) -> Iterator[dict[str, Any]]:
    """A row for each point; unknown figures are None.

    The columns `p1_ms` ... `p99.9_ms` are the distribution of latencies, with the half widths of their intervals.
    """
    for point in curves.points:
        run = point.measured
        row = picked(point.machine, "machine=label chip dispatch") | {"preemption": int(point.machine.preemption)}
        row |= picked(
            point, "placement=machine.placement load requests_per_second=rate_per_second verdict=measured.verdict"
        )
        row |= picked(run, f"offered_load=offered {_COUNTS}")
        for name, latency in (
            ("mean", run.mean),
            *((f"p{percent:g}", run.percentiles.get(percent)) for percent in CDF),
        ):
            row[f"{name}_ms"] = None if latency is None else latency.value_ms
            row[f"{name}_half_width_ms"] = None if latency is None else latency.half_width_ms
        yield row


def _data(curves: LoadLatency) -> dict[str, Any]:
    """Plain data of schema `lstmsim/load-latency/2`; `latency_ms` holds mean and percentiles by name."""
    names = "scenario capacity_per_second bound_per_second limits_per_second deadlines machines"
    where = "machine=machine.label load requests_per_second=rate_per_second"
    points = [picked(point, where) | point.measured.plain() for point in curves.points]
    return {"schema": "lstmsim/load-latency/2", **picked(curves, names), "points": points}


def _baseline(curves: LoadLatency) -> Baseline:
    """The curve of the first machine, if there are others."""
    first = curves.machines[0]
    if len(curves.machines) == 1:
        return Baseline("none: there is one machine; chips beside it come from --chip")
    return Baseline(first.label, [number for number, each in enumerate(curves.points) if each.machine == first])


FORMS = Forms(
    _data,
    document,
    _records,
    axes=lambda _: ("load", f"p{_SHOWN:g}_ms", "machine", "line"),
    baseline=_baseline,
    picture="lstmsim.studies.serve.picture:plot_load_latency",
    headed=True,
)
