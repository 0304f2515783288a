"""The sections on where the cycles and the PE-cycles went, core by core, and on latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from lstmsim.analysis.measure import latency_statistics
from lstmsim.analysis.report import CoreReport, Report
from lstmsim.analysis.report_text import meaning, part_cycles, remedy, shown_accounts
from lstmsim.base.units import cycles_to_ms
from lstmsim.report.html.markup import Markup, Section, element, joined, percent, region, short, table
from lstmsim.report.html.svg import Scale, bottom_axis, circle, line, picture, rectangle, round_ticks, swatch, words
from lstmsim.studies.simulate.page.style import state_class

#: More cores than this are not drawn; the table has as many as `_TABLE_CORES`, closed above `_OPEN_CORES`.
_BARS, _TABLE_CORES, _OPEN_CORES = 48, 256, 8
_WIDTH, _LEFT, _RIGHT = 480, 52, 458
#: A bar shorter than this has no room for its share.
_ROOM = 38


def accounts_section(report: Report) -> Section:
    """Make the section: bars for every core, what each name means and how to get less of it, and a table."""
    pe_names = tuple(report.losses)
    bars = element(
        "div",
        _bars(f"{part_cycles(report)}: what the multipliers did", report, pe_names, pe=True),
        _bars(f"Cycles: what the {report.unit.name} did", report, report.accounts, pe=False),
        class_="pair",
    )
    numbers = _core_table(report)
    if len(report.cores) > _OPEN_CORES:
        numbers = element("details", element("summary", "Every core in numbers"), numbers)
    return Section("cycles", "Where the cycles went", joined([bars, _names(report), _busy_note(report), numbers]))


def _counts(core: CoreReport, pe: bool) -> Mapping[str, int]:
    return core.pe_cycles if pe else core.cycles


def _bars(title: str, report: Report, names: tuple[str, ...], pe: bool) -> Markup:
    shown = report.cores[:_BARS]
    height = 26 if len(shown) <= 8 else 13
    scale = Scale(0, 100, _LEFT, _RIGHT)
    parts = []
    for number, core in enumerate(shown):
        top, counts = 4 + number * (height + 5), _counts(core, pe)
        total, before = max(1, sum(counts.values())), 0
        parts.append(words(_LEFT - 6, top + height / 2 + 4, f"core {core.index}", "tick", "end"))
        for name in names:
            count = counts.get(name, 0)
            left, right = scale(100 * before / total), scale(100 * (before + count) / total)
            before += count
            if not count:
                continue
            share = f"{name}: {percent(count, total)}"
            text = f"core {core.index}, {share} ({count:,} {part_cycles(report) if pe else 'cycles'})"
            parts.append(
                rectangle(round(left, 2), top, round(right - left, 2), height, f"{state_class(name)} edge", text)
            )
            if name in ("useful", "busy", "padding") and right - left > _ROOM and height > 20:
                ink = "t0" if name != "padding" else "ink"
                place = (round((left + right) / 2, 1), top + height / 2 + 4)
                parts.append(words(*place, percent(count, total), f"{ink} on", "middle"))
    base = 4 + len(shown) * (height + 5)
    parts.append(bottom_axis(scale, base, "", [0, 25, 50, 75, 100], unit=" %"))
    drawn = picture(
        _WIDTH, base + 20, f"{title}, as bars for {len(shown)} cores; the table below has the numbers", *parts
    )
    hidden = len(report.cores) - len(shown)
    note = [element("p", f"and {hidden:,} more cores, in the table below", class_="note")] if hidden else []
    return element("figure", element("figcaption", title), drawn, *note)


def _names(report: Report) -> Markup:
    losses = report.losses
    total = sum(losses.values())
    rows = []
    for name, count in losses.items():
        if count:
            sample = joined([swatch(state_class(name)), name], "&nbsp;")
            text = meaning(name, report)
            advice = remedy(name, report)
            cell = joined([text, element("span", advice, class_="muted")], "<br>") if advice else text
            rows.append([sample, f"{count:,}", percent(count, total), cell])
    where = "all cores" if len(report.cores) > 1 else "the core"
    head = ["name", part_cycles(report), "share", "what it means, and what would lessen it"]
    return table(
        head, rows, left=(0, 3), caption=f"{part_cycles(report)} of {where}: a multiplier in a cycle, useful or not"
    )


def _busy_note(report: Report) -> Markup:
    text = f"In cycles, busy means that the {report.unit.name} issues work; its {part_cycles(report)} are useful"
    text += " and padding." if not report.losses.get("unmapped") else ", padding and unmapped."
    return element("p", text, class_="note")


def _core_table(report: Report) -> Markup:
    names, sizes = shown_accounts(report), report.columns
    rows = []
    for core in report.cores[:_TABLE_CORES]:
        values = (f"{core.columns[each]:,}" if each in core.columns else "–" for each in sizes)
        shape = [f"core {core.index}", *values, f"{100 * core.utilization:.1f} %"]
        counts = (core.cycles.get(name, 0) for name in names)
        whole = report.makespan_cycles * core.figures.ways
        cells = [joined([f"{count:,}", percent(count, whole)], "<br>") for count in counts]
        rows.append([*shape, *cells])
    head = ["core", *sizes, "useful", *names]
    hidden = len(report.cores) - len(rows)
    note = element("p", f"and {hidden:,} more cores", class_="note") if hidden else Markup("")
    return region("Cores in numbers", "scroll", table(head, rows, caption="Cycles by name, and their share"), note)


#: Up to so many jobs each is a dot; more make a histogram of so many columns.
_DOTS, _COLUMNS = 60, 40
#: More tenants than this have no row.
_TENANTS = 100
_WIDTH_latency, _LEFT_latency, _RIGHT_latency = 1000, 52, 960
_ROW = 15


def latency_section(report: Report, tenants: Sequence[str] = ()) -> Section:
    """Make the section: every job as a dot, or a histogram; mean and percentiles as lines and in a table."""
    values = [cycles_to_ms(job.latency, report.frequency_mhz) for job in report.jobs]
    low, high = _ends(min(values), max(values))
    scale = Scale(low, high, _LEFT_latency, _RIGHT_latency)
    marks = asdict(report.latency_ms)
    top = 10 + _ROW * len(marks)
    height = 46 if len(values) <= _DOTS else 150
    body = _dots(report, values, scale, top, height) if len(values) <= _DOTS else _columns(values, scale, top, height)
    base = top + height
    parts = [body, *_marks(marks, scale, base), bottom_axis(scale, base, "ms", round_ticks(low, high))]
    label = f"Latencies of {len(values)} jobs, {min(values):.4g} to {max(values):.4g} ms"
    drawn = region("Latencies", "wide", picture(_WIDTH_latency, base + 34, label, *parts))
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
        parts.append(line(_LEFT_latency, upright(tick), _RIGHT_latency, upright(tick), "grid"))
        parts.append(words(_LEFT_latency - 6, upright(tick) + 4, f"{tick:,}", "tick", "end"))
    parts.append(words(_LEFT_latency - 6, top - 4, "jobs", "tick", "end"))
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
        near = at > (_LEFT_latency + _RIGHT_latency) / 2
        parts.append(line(at, height - 8, at, base, "mark mean" if "mean" in equal else "mark"))
        text = f"{name} {value:.4g}"
        parts.append(words(at - 4 if near else at + 4, height, text, "tick halo", "end" if near else "start"))
    return parts
