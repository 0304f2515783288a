"""Load-latency curves as people and programs read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lstmsim.report.document import Column, Document, Grid, Section, remark
from lstmsim.report.results import Forms, picked
from lstmsim.studies.serve.curves import CDF, Estimate, LoadLatency, Point
from lstmsim.studies.serve.report_saturation import limits_text

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
    rejects = any(point.measured.turned_away for point in curves.points)
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
        rejected = [_share(run.turned_away, run.requests + run.turned_away)] * rejects
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
    if any(run.turned_away for run in runs):
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


_COUNTS = "requests turned_away misses throughput_per_second goodput_per_second"


def _point_data(point: Point) -> dict[str, Any]:
    return {**picked(point, "machine=machine.label load requests_per_second=rate_per_second"), **point.measured.plain()}


def _data(curves: LoadLatency) -> dict[str, Any]:
    """Plain data of schema `lstmsim/load-latency/1`; `latency_ms` holds mean and percentiles by name."""
    names = "scenario capacity_per_second bound_per_second limits_per_second deadlines machines"
    points = [_point_data(point) for point in curves.points]
    return {"schema": "lstmsim/load-latency/1", **picked(curves, names), "points": points}


FORMS = Forms(_data, document, _records)
