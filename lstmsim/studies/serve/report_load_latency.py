"""Load-latency curves as a table for the terminal, as rows, and as plain data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from lstmsim.report.results import Forms
from lstmsim.report.tables import table
from lstmsim.studies.serve.curves import CDF, Estimate, LoadLatency, Point
from lstmsim.studies.serve.report_saturation import limits_text

LOAD_LATENCY_SCHEMA = "lstmsim/load-latency/1"

#: The table has to fit into the width of a terminal; files have all percentiles.
_SHOWN = (99.0,)
_WIDTH = 100


def load_latency_text(curves: LoadLatency) -> str:
    """Say what load 1 is, give a row for each machine and load, and then what a reader has to know."""
    several = len(curves.machines) > 1
    away = any(point.measured.turned_away for point in curves.points)
    head = ["machine"] * several + ["load", "requests/s", "mean ms", *(f"p{each:g} ms" for each in _SHOWN)]
    head += ["in time/s", "late"] * curves.deadlines + ["away"] * away + ["verdict"]
    rows = [head]
    for point in curves.points:
        each = point.measured
        latencies = [each.mean, *(each.percentiles.get(percent) for percent in _SHOWN)]
        row = [point.machine.label] * several + [f"{point.load:.3g}", f"{point.rate_per_second:,.0f}"]
        row += ["-" if latency is None else _latency(latency) for latency in latencies]
        came = each.requests + each.turned_away
        in_time = [f"{each.goodput_per_second:,.0f}", _share(each.misses, each.requests)]
        row += (in_time if each.stable else ["-", "-"]) * curves.deadlines
        row += [_share(each.turned_away, came)] * away + [each.verdict]
        rows.append(row)
    base, limits = curves.machines[0], limits_text(curves.limits_per_second)
    first_used = min(curves.limits_per_second, key=lambda name: curves.limits_per_second[name], default="")
    done = "does of a backlog" if first_used == "saturated" else "can do"
    first = (
        f"LOAD AND LATENCY: {curves.scenario}; load 1 is {curves.capacity_per_second:,.0f} requests/s, all that "
        f"{base.chip} {done} of this mix{' without preemption' * base.preemption}; used up at {limits}"
    )
    return "\n".join([textwrap.fill(first, _WIDTH), *table(rows, left=[0] if several else []), *_remarks(curves)])


def _latency(each: Estimate) -> str:
    """The latency to the fourth figure, with the half width of its 95 % interval as a share, which is short.

    >>> _latency(Estimate(0.0052031, 0.000038)), _latency(Estimate(12.5, 2.0)), _latency(Estimate(12.5, None))
    ('0.005203 +- 0.7%', '12.5 +- 16%', '12.5 too few')
    """
    if each.half_width_ms is None:
        return f"{each.value_ms:.4g} too few"
    percent = 100 * (each.half_share or 0.0)
    told = "0%" if not percent else "<0.1%" if percent < 0.1 else f"{percent:.{0 if percent >= 10 else 1}f}%"
    return f"{each.value_ms:.4g} +- {told}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "-"


def _remarks(curves: LoadLatency) -> list[str]:
    """Sentences that the reader needs to understand the table."""
    lines = []
    if any(point.measured.turned_away for point in curves.points):
        lines.append("away: turned away or left before they were served")
    if any(point.measured.mean is not None for point in curves.points):
        lines.append("+-: half width of the 95 % interval; --csv and --json have more percentiles")
    chips = {machine.chip for machine in curves.machines}
    if len(chips) > 1:
        base = curves.machines[0].chip
        lines.append(f"all chips have the same requests per second at a load: shares of what {base} can do")
    points = [point for point in curves.points if point.measured.verdict == "unstable"]
    if points:
        lines.append(
            "unstable: more work comes than is done, so that latencies and what is late depend on how long the run is"
        )
    unsure = [point for point in curves.points if point.measured.verdict == "cannot tell"]
    if unsure:
        lines.append(
            "cannot tell: whether the machine keeps up is not known; `serve` of that point says what is missing"
        )
    if any(_few(point) for point in curves.points):
        lines.append("too few: not enough requests for a 95 % interval; more with --requests, or --until-half-width")
    return [line for each in lines for line in textwrap.wrap(each, _WIDTH, subsequent_indent="  ")]


def _few(point: Point) -> bool:
    """Whether a latency that is shown has no interval."""
    shown = [point.measured.mean, *(point.measured.percentiles.get(percent) for percent in _SHOWN)]
    return any(each is not None and each.half_width_ms is None for each in shown)


def load_latency_rows(curves: LoadLatency) -> list[list[Any]]:
    """Give a head and a row for each point, for a CSV file; unknown figures are left empty.

    The columns `p1_ms` ... `p99.9_ms` are the distribution of latencies, with the half widths of their intervals.
    """
    head = ["machine", "chip", "dispatch", "preemption", "placement", "load", "requests_per_second", "verdict"]
    head += ["offered_load", "requests", "turned_away", "misses", "throughput_per_second", "goodput_per_second"]
    head += ["mean_ms", "mean_half_width_ms"]
    head += [f"p{percent:g}{unit}" for percent in CDF for unit in ("_ms", "_half_width_ms")]
    rows: list[list[Any]] = [head]
    for point in curves.points:
        each, machine = point.measured, point.machine
        row: list[Any] = [machine.label, machine.chip, machine.dispatch, int(machine.preemption), machine.placement]
        row += [point.load, point.rate_per_second, each.verdict, each.offered, each.requests, each.turned_away]
        row += [each.misses, each.throughput_per_second, each.goodput_per_second]
        for latency in (each.mean, *(each.percentiles.get(percent) for percent in CDF)):
            row += [None, None] if latency is None else [latency.value_ms, latency.half_width_ms]
        rows.append(row)
    return rows


def load_latency_json(curves: LoadLatency) -> dict[str, Any]:
    """Give the curves as plain data of schema `lstmsim/load-latency/1`.

    The key `latency_ms` holds mean and percentiles by name.
    """
    return {
        "schema": LOAD_LATENCY_SCHEMA,
        "scenario": curves.scenario,
        "capacity_per_second": curves.capacity_per_second,
        "bound_per_second": curves.bound_per_second,
        "limits_per_second": dict(curves.limits_per_second),
        "deadlines": curves.deadlines,
        "machines": [asdict(machine) for machine in curves.machines],
        "points": [
            {
                "machine": point.machine.label,
                "load": point.load,
                "requests_per_second": point.rate_per_second,
                **point.measured.plain(),
            }
            for point in curves.points
        ],
    }


def _records(curves: LoadLatency) -> Iterator[dict[str, Any]]:
    """The rows of the CSV by the names of its columns."""
    head, *rows = load_latency_rows(curves)
    return (dict(zip(head, row, strict=True)) for row in rows)


FORMS = Forms(load_latency_json, load_latency_text, _records)
