"""The section on latencies: from arrival to the last result, for all jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from lstmsim.analysis.measure import latency_statistics
from lstmsim.analysis.report import Report
from lstmsim.base.units import cycles_to_ms
from lstmsim.report.html.markup import Markup, Section, element, joined, region, short, table
from lstmsim.report.html.svg import Scale, bottom_axis, circle, line, picture, rectangle, round_ticks, words

__all__ = ["latency_section"]

#: Up to so many jobs each is a dot; more make a histogram of so many columns.
_DOTS, _COLUMNS = 60, 40
#: More tenants than this have no row.
_TENANTS = 100
_WIDTH, _LEFT, _RIGHT = 1000, 52, 960
_ROW = 15


def latency_section(report: Report, tenants: Sequence[str] = ()) -> Section:
    """Make the section: every job as a dot, or a histogram; mean and percentiles as lines and in a table.

    tenants: for each job the entry of the scenario that it belongs to; each of several tenants has a row of the table.
    """
    values = [cycles_to_ms(job.latency, report.frequency_mhz) for job in report.jobs]
    low, high = _ends(min(values), max(values))
    scale = Scale(low, high, _LEFT, _RIGHT)
    marks = asdict(report.latency_ms)
    top = 10 + _ROW * len(marks)
    height = 46 if len(values) <= _DOTS else 150
    body = _dots(report, values, scale, top, height) if len(values) <= _DOTS else _columns(values, scale, top, height)
    base = top + height
    parts = [body, *_marks(marks, scale, base), bottom_axis(scale, base, "ms", round_ticks(low, high))]
    label = f"Latencies of {len(values)} jobs, {min(values):.4g} to {max(values):.4g} ms"
    drawn = region("Latencies", "wide", picture(_WIDTH, base + 34, label, *parts))
    what = "From a job's arrival to its last visible result."
    if low > 0:
        what += " The axis does not begin at zero."
    rows = [["all", f"{len(values):,}", *(f"{value:.4g}" for value in marks.values())]]
    rows += _tenant_rows(values, tenants)
    numbers = region("Latencies in numbers", "scroll", table(["latency in ms", "jobs", *marks], rows))
    notes = [element("p", what, class_="note"), drawn, numbers]
    more = len(set(tenants)) - _TENANTS
    if more > 0:
        notes.append(element("p", f"and {more:,} more tenants", class_="note"))
    return Section("latency", "Latency", joined(notes))


def _tenant_rows(values: list[float], tenants: Sequence[str]) -> list[list[str]]:
    """A row for each of the first tenants, if there are several."""
    by_tenant: dict[str, list[float]] = {}
    for tenant, value in zip(tenants, values, strict=False):
        by_tenant.setdefault(tenant, []).append(value)
    if len(by_tenant) < 2:
        return []
    return [
        [tenant, f"{len(own):,}", *(f"{value:.4g}" for value in asdict(latency_statistics(own)).values())]
        for tenant, own in list(by_tenant.items())[:_TENANTS]
    ]


def _ends(least: float, most: float) -> tuple[float, float]:
    """The ends of the axis: from zero, unless all values are far from it and close together."""
    if most <= 0:
        return 0.0, 1.0
    if least > 0.6 * most and least < most:
        margin = 0.06 * (most - least)
        return least - margin, most + margin
    return 0.0, 1.06 * most


def _dots(report: Report, values: list[float], scale: Scale, top: float, height: float) -> Markup:
    """Dots in three lanes, so that equal latencies do not hide each other."""
    parts = []
    for number, (job, value) in enumerate(zip(report.jobs, values, strict=True)):
        title = f"{short(job.name)}: {value:.4g} ms ({job.latency:,} cycles)"
        lane = top + height * (1 + number % 3) / 4
        parts.append(circle(round(scale(value), 2), lane, 5, "dot", title))
    return joined(parts)


def _columns(values: list[float], scale: Scale, top: float, height: float) -> Markup:
    low, width = scale.low, (scale.high - scale.low) / _COLUMNS
    counts = [0] * _COLUMNS
    for value in values:
        counts[min(_COLUMNS - 1, max(0, int((value - low) / width)))] += 1
    upright = Scale(0, max(counts), top + height, top + 6)
    parts = []
    for tick in round_ticks(0, max(counts), 4, whole=True):
        parts.append(line(_LEFT, upright(tick), _RIGHT, upright(tick), "grid"))
        parts.append(words(_LEFT - 6, upright(tick) + 4, f"{tick:,}", "tick", "end"))
    parts.append(words(_LEFT - 6, top - 4, "jobs", "tick", "end"))
    for number, count in enumerate(counts):
        if count:
            begin, end = low + number * width, low + (number + 1) * width
            title = f"{count:,} job{'s' * (count > 1)} from {begin:.4g} to {end:.4g} ms"
            left, right = scale(begin), scale(end)
            parts.append(
                rectangle(left + 0.5, upright(count), right - left - 1, upright(0) - upright(count), "j0", title)
            )
    return joined(parts)


def _marks(marks: dict[str, float], scale: Scale, base: float) -> list[Markup]:
    """A line for each figure with its name at its own height; equal figures share a line."""
    names: dict[float, list[str]] = {}
    for name, value in marks.items():
        names.setdefault(value, []).append(name)
    parts = []
    for number, (value, equal) in enumerate(names.items()):
        name = ", ".join(equal)
        at, height = scale(value), 12 + _ROW * number
        near = at > (_LEFT + _RIGHT) / 2
        parts.append(line(at, height - 8, at, base, "mark mean" if "mean" in equal else "mark"))
        text = f"{name} {value:.4g}"
        parts.append(words(at - 4 if near else at + 4, height, text, "tick halo", "end" if near else "start"))
    return parts
