"""Sections of a run's page: where the cycles went, latencies, serving, tenants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby

from lstmsim.analysis import report_text
from lstmsim.analysis.report import Report, latency_statistics
from lstmsim.base.units import cycles_to_ms
from lstmsim.base.wording import counted
from lstmsim.report.document import Grid, grid
from lstmsim.report.html import markup as draw
from lstmsim.report.html.markup import Markup, Section, element, joined, percent, region, short
from lstmsim.report.page.frame import shown
from lstmsim.report.renderings import html, html_of
from lstmsim.studies.serve.report import document, tenants_grid
from lstmsim.studies.serve.result import Serving, Tenant
from lstmsim.studies.simulate.page.looks import state_class

#: More bars than this are not drawn; the table has as many as `_TABLE_CORES`, closed above `_OPEN_CORES`.
_BARS, _TABLE_CORES, _OPEN_CORES = 16, 256, 8
#: A bar shorter than this has no room for its share.
_ROOM = 38
#: Up to so many jobs each is a dot; more make a histogram of so many columns.
_DOTS, _COLUMNS = 60, 40
#: The fewest jobs for which a percentile is given: one of them is beyond it. With fewer than the least, none is drawn.
ENOUGH = {"p95": 20, "p99": 100}
#: More tenants than these are not listed with their latencies; not drawn; not listed with their requests.
_TENANTS, _DRAWN, _LISTED = 100, 24, 200
#: Width of wide pictures, and the ends of their axes.
_WIDTH, _LEFT, _RIGHT = 1000, 52, 960
#: Height of a line of text, of a level over time and the gap between two, of a tenant's bar.
_ROW, _HEIGHT, _GAP, _BAR = 15, 100, 34, 22


def accounts_section(report: Report) -> Section:
    """Make the section: bars for every core, what each name means and how to get less of it, and a table."""
    unit, part = report.unit.name, report_text.part_cycles(report)
    pe_cycles = [core.pe_cycles for core in report.cores]
    bars = element(
        "div",
        _bars(f"{part}: what the multipliers did", tuple(report.losses), pe_cycles, part),
        _bars(f"Cycles: what the {unit} did", report.accounts, [core.cycles for core in report.cores], "cycles"),
        class_="pair",
    )
    names = report_text.shown_accounts(report)
    rows = (row for core in report.cores for row in report_text.core_rows(report, f"core {core.index}", [core], names))
    head = ["core", *report.columns, "useful", *names]
    numbers = shown(grid(head, rows, "Cycles by name, and their share", limit=2 * _TABLE_CORES, more="rows of cores"))
    if len(report.cores) > _OPEN_CORES:
        numbers = element("details", element("summary", "Every core in numbers"), numbers)
    busy = f"In cycles, busy means that the {unit} issues work; its {part} are useful"
    busy += " and padding." if not report.losses.get("unmapped") else ", padding and unmapped."
    return Section("cycles", "Where the cycles went", shown(bars, html_of(_losses(report)), busy, numbers))


def _bars(title: str, names: Sequence[str], cores: Sequence[Mapping[str, int]], what: str) -> Markup:
    alike = _alike(cores)
    height, drawn = 26 if len(alike) <= 8 else 13, alike[:_BARS]
    scale, parts = draw.Scale(0, 100, _LEFT, 458), []
    for number, (core, counts) in enumerate(drawn):
        top, total, before = 4 + number * (height + 5), max(1, sum(counts.values())), 0
        parts.append(draw.words(_LEFT - 6, top + height / 2 + 4, core, "tick", "end"))
        for name in names:
            count = counts.get(name, 0)
            left, right = scale(100 * before / total), scale(100 * (before + count) / total)
            before += count
            if not count:
                continue
            each = "" if core.startswith("core ") else " each"
            text = f"{core}, {name}: {percent(count, total)} ({count:,} {what}{each})"
            look = f"{state_class(name)} edge"
            parts.append(draw.rectangle(round(left, 2), top, round(right - left, 2), height, look, text))
            if name in ("useful", "busy", "padding") and right - left > _ROOM and height > 20:
                ink = "t0" if name != "padding" else "ink"
                middle = round((left + right) / 2, 1)
                parts.append(draw.words(middle, top + height / 2 + 4, percent(count, total), f"{ink} on", "middle"))
    base = 4 + len(drawn) * (height + 5)
    parts.append(draw.bottom_axis(scale, base, "", [0, 25, 50, 75, 100], unit=" %"))
    label = f"{title}, as {len(drawn)} bars for {len(cores)} cores; the table below has the numbers"
    hidden = len(alike) - len(drawn)
    note = shown(f"and {hidden:,} more bars, in the table below" if hidden else None)
    return element("figure", element("figcaption", title), draw.picture(480, base + 20, label, *parts), note)


def _alike(cores: Sequence[Mapping[str, int]]) -> list[tuple[str, Mapping[str, int]]]:
    """Neighbours with equal counts as one: their numbers, and the counts of each."""
    made: list[tuple[str, Mapping[str, int]]] = []
    for counts, members in groupby(enumerate(cores), key=lambda pair: dict(pair[1])):
        numbers = [number for number, _ in members]
        made.append((f"core {numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}", counts))
    return made


def _losses(report: Report) -> Grid:
    part, rows = report_text.part_cycles(report), []
    for name, *cells in report_text.loss_rows(report):
        named = element("span", name, data_reason=name, id=loss_id(name))
        rows.append([joined([draw.swatch(state_class(name)), "\N{NO-BREAK SPACE}", named]), *cells])
    where = "all cores" if len(report.cores) > 1 else "the core"
    title = f"{part} of {where}: a multiplier in a cycle, useful or not"
    return grid(["<name", part, "share", "<what it means"], rows, title)


def loss_id(name: str) -> str:
    """The id of the row that says how many PE-cycles have a name."""
    return f"loss-{name.replace(' ', '-')}"


def latency_section(report: Report, tenants: Sequence[str] = ()) -> Section:
    """Make the section: a table of means and percentiles; of enough jobs a drawing: dots, or a histogram, and lines."""
    values = [cycles_to_ms(job.latency, report.frequency_mhz) for job in report.jobs]
    least, most = min(values), max(values)
    low, high = 0.0, 1.06 * most if most > 0 else 1.0
    if most > least > 0.6 * most:
        # all values are far from zero and close together
        low, high = least - 0.06 * (most - least), most + 0.06 * (most - least)
    scale, marks = draw.Scale(low, high, _LEFT, _RIGHT), _given(asdict(report.latency_ms), len(values))
    top, single = 10 + _ROW * len(marks), len(values) <= _DOTS
    base = top + (46 if single else 150)
    body = _dots(report, values, scale, top) if single else _columns(values, scale, top, base)
    parts = [body, *_marks(marks, scale, base), draw.bottom_axis(scale, base, "ms", draw.round_ticks(low, high))]
    label = f"Latencies of {len(values)} jobs, {least:.4g} to {most:.4g} ms"
    by_tenant: dict[str, list[int]] = {}
    for tenant, job in zip(tenants, report.jobs, strict=False):
        by_tenant.setdefault(tenant, []).append(job.latency)
    listed, rows = [*by_tenant.items()][: _TENANTS if len(by_tenant) > 1 else 0], []
    for name, own in [("all", [job.latency for job in report.jobs]), *listed]:
        figures = _given(asdict(latency_statistics(own, report.frequency_mhz)), len(own))
        rows.append([name, len(own), *(None if each not in figures else f"{figures[each]:.4g}" for each in marks)])
    more, drawn = len(by_tenant) - _TENANTS, len(values) >= min(ENOUGH.values())
    content = shown(
        "From a job's arrival to its last visible result." + " The axis does not begin at zero." * (drawn and low > 0),
        region("Latencies", "wide", draw.picture(_WIDTH, base + 34, label, *parts)) if drawn else None,
        grid(["<latency in ms", "jobs", *marks], rows),
        f"and {more:,} more tenants" if more > 0 else None,
    )
    return Section("latency", "Latency", content)


def _given(figures: Mapping[str, float], jobs: int) -> dict[str, float]:
    """The figures that so many jobs are enough for."""
    return {name: value for name, value in figures.items() if jobs >= ENOUGH.get(name, 0)}


def _dots(report: Report, values: list[float], scale: draw.Scale, top: float) -> Markup:
    """Dots in three lanes, so that equal latencies do not hide each other."""
    parts = []
    for number, (job, value) in enumerate(zip(report.jobs, values, strict=True)):
        title = f"{short(job.name)}: {value:.4g} ms ({job.latency:,} cycles)"
        parts.append(draw.circle(round(scale(value), 2), top + 46 * (1 + number % 3) / 4, 5, "dot", title))
    return joined(parts)


def _columns(values: list[float], scale: draw.Scale, top: float, base: float) -> Markup:
    low, width = scale.low, (scale.high - scale.low) / _COLUMNS
    counts = [0] * _COLUMNS
    for value in values:
        counts[min(_COLUMNS - 1, max(0, int((value - low) / width)))] += 1
    upright = draw.Scale(0, max(counts), base, top + 6)
    parts = [draw.level_lines(scale, upright, draw.round_ticks(0, max(counts), 4, whole=True))]
    parts.append(draw.words(_LEFT - 6, top - 4, "jobs", "tick", "end"))
    for number, count in enumerate(counts):
        if count:
            begin, end = low + number * width, low + (number + 1) * width
            title = f"{count:,} job{'s' * (count > 1)} from {begin:.4g} to {end:.4g} ms"
            left, right, height = scale(begin), scale(end), upright(0) - upright(count)
            parts.append(draw.rectangle(left + 0.5, upright(count), right - left - 1, height, "j0", title))
    return joined(parts)


def _marks(marks: dict[str, float], scale: draw.Scale, base: float) -> list[Markup]:
    """A line for each figure with its name at its own height; equal figures share a line."""
    names: dict[float, list[str]] = {}
    for name, value in marks.items():
        names.setdefault(value, []).append(name)
    parts = []
    for number, (value, equal) in enumerate(names.items()):
        at, height = scale(value), 12 + _ROW * number
        near = at > (_LEFT + _RIGHT) / 2
        parts.append(draw.line(at, height - 8, at, base, "mark mean" if "mean" in equal else "mark"))
        text = f"{', '.join(equal)} {value:.4g}"
        parts.append(draw.words(at - 4 if near else at + 4, height, text, "tick halo", "end" if near else "start"))
    return parts


def serving_section(serving: Serving) -> Section:
    """Make the section: who waits and runs over time, and the figures of all requests."""
    windows = serving.windows
    edges = [serving.ms(each.start_cycle) for each in windows]
    edges.append(serving.ms(windows[-1].start_cycle + windows[-1].width_cycles) if windows else 1.0)
    scale = draw.Scale(edges[0], max(edges[-1], edges[0] + 1e-12), _LEFT, _RIGHT)
    waiting, taken = [each.queue_length for each in windows], [each.taken for each in windows]
    upper = _levels("requests that wait", edges, waiting, scale, 20)
    lower = _levels(f"threads taken, of {serving.servers}", edges, taken, scale, 20 + _HEIGHT + _GAP)
    base = 20 + 2 * _HEIGHT + _GAP
    axis = draw.bottom_axis(scale, base, "ms", draw.round_ticks(scale.low, scale.high))
    label = f"At most {max(waiting, default=0):.3g} requests wait and {max(taken, default=0):.3g} threads are taken"
    drawn = region("Serving over time", "wide", draw.picture(_WIDTH, base + 34, label, upper, lower, axis))
    width = windows[0].width_cycles if windows else 0
    note = f"Means over windows of {counted(width, 'cycle')}."
    return Section("serving", "Serving", shown(note, drawn, Markup(html(document(serving, tenants=False)))))


def _levels(name: str, edges: list[float], levels: list[float], scale: draw.Scale, top: float) -> Markup:
    """One quantity over time as columns from zero."""
    upright = draw.Scale(0, max(1.0, *levels, 0.0), top + _HEIGHT, top + 8)
    lines = draw.level_lines(scale, upright, draw.round_ticks(0, upright.high, 4))
    return joined([lines, draw.area(scale, upright, edges, levels), draw.words(_LEFT, top, name, "tick")])


def tenants_section(serving: Serving) -> Section:
    """Make the section: latencies from the median to p99, deadlines kept, rates and slowdowns of each tenant."""
    tenants = list(serving.tenants.values())
    drawn = [each for each in tenants if each.latency is not None][:_DRAWN]
    content = shown(
        "A tenant is an entry of the scenario's jobs. Bars go from the median to p95, thin lines on to p99.9; upright "
        "lines are means. Slowdown: latency / latency of the same job alone on the chip, the mean over requests.",
        *(element("p", each, class_="answer") for each in serving.remarks),
        _tenant_bars(serving, drawn) if drawn else None,
        f"Drawn: {len(drawn):,} of {len(tenants):,} tenants." if len(drawn) < len(tenants) else None,
        tenants_grid(serving, tenants, _LISTED),
    )
    return Section("tenants", "Tenants", content)


def _tenant_bars(serving: Serving, tenants: list[Tenant]) -> Markup:
    most = max(each for tenant in tenants for each in _times(tenant, serving))
    scale, parts = draw.Scale(0, max(most, 1e-12) * 1.04, 210, _RIGHT), []
    for number, tenant in enumerate(tenants):
        middle, times = 8 + number * _BAR + _BAR / 2, _times(tenant, serving)
        mean, p50, p95, _, last = map(scale, times)
        named = zip(("mean", "p50", "p99"), (times[0], times[1], times[3]), strict=True)
        title = f"{short(tenant.name)}: {', '.join(f'{name} {value:.4g} ms' for name, value in named)}"
        parts.append(draw.words(202, middle + 4, short(tenant.name, 28), "tick", "end"))
        parts.append(draw.line(p95, middle, max(p95, last), middle, "axis"))
        parts.append(draw.rectangle(p50, middle - 6, max(1.0, p95 - p50), 12, "area", title))
        parts.append(draw.line(mean, middle - 8, mean, middle + 8, "mark mean"))
    base = 8 + len(tenants) * _BAR + 4
    parts.append(draw.bottom_axis(scale, base, "ms", draw.round_ticks(0, scale.high)))
    label = f"Latencies of {len(tenants)} tenants, up to {most:.4g} ms; the table below has the numbers"
    return region("Latencies of tenants", "wide", draw.picture(_WIDTH, base + 34, label, *parts))


def _times(tenant: Tenant, serving: Serving) -> list[float]:
    """Mean, median, p95, p99 and the last percentile, in ms."""
    latency = tenant.latency
    assert latency is not None
    last = latency.percentiles[max(latency.percentiles)]
    return [serving.ms(each.value) for each in (latency.mean, latency.p50, latency.p95, latency.p99, last)]
