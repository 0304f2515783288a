"""The sections on where the cycles and the PE-cycles went, core by core, and on latencies.

The sections on serving over time and on tenants: who waits, what each got, and who holds others up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from lstmsim.analysis.report import CoreReport, Report, latency_statistics
from lstmsim.analysis.report_text import meaning, part_cycles, remedy, shown_accounts
from lstmsim.base.units import cycles_to_ms
from lstmsim.report.figures_text import four_digits
from lstmsim.report.html.markup import Markup, Section, element, joined, percent, region, short, table
from lstmsim.report.html.svg import (
    Scale,
    bottom_axis,
    circle,
    line,
    path,
    picture,
    rectangle,
    round_ticks,
    steps,
    swatch,
    words,
)
from lstmsim.report.renderings import text
from lstmsim.studies.serve.report import document, interval_texts
from lstmsim.studies.serve.result import Serving, Tenant
from lstmsim.studies.simulate.page.timeline import state_class
from lstmsim.traffic.intervals import Interval

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


_WIDTH_serving, _LEFT_serving, _RIGHT_serving = 1000, 52, 960
_HEIGHT, _GAP = 100, 34


def serving_section(serving: Serving) -> Section:
    """Make the section."""
    edges = [serving.ms(each.start_cycle) for each in serving.windows]
    edges.append(
        serving.ms(serving.windows[-1].start_cycle + serving.windows[-1].width_cycles) if serving.windows else 1.0
    )
    scale = Scale(edges[0], max(edges[-1], edges[0] + 1e-12), _LEFT_serving, _RIGHT_serving)
    waiting, taken = [each.queue_length for each in serving.windows], [each.taken for each in serving.windows]
    upper = _levels("requests that wait", edges, waiting, scale, 20)
    lower = _levels(f"threads taken, of {serving.servers}", edges, taken, scale, 20 + _HEIGHT + _GAP)
    base = 20 + 2 * _HEIGHT + _GAP
    axis = bottom_axis(scale, base, "ms", round_ticks(scale.low, scale.high))
    label = f"At most {max(waiting, default=0):.3g} requests wait and {max(taken, default=0):.3g} threads are taken"
    drawn = region("Serving over time", "wide", picture(_WIDTH_serving, base + 34, label, upper, lower, axis))
    window = serving.windows[0].width_cycles if serving.windows else 0
    note = element("p", f"Means over windows of {window:,} cycle{'s' * (window != 1)}.", class_="note")
    figures = element("pre", text(document(serving, tenants=False)), tabindex="0")
    return Section("serving", "Serving", joined([note, drawn, figures]))


def _levels(name: str, edges: list[float], levels: list[float], scale: Scale, top: float) -> Markup:
    """One quantity over time as columns from zero."""
    upright = Scale(0, max(1.0, *levels, 0.0), top + _HEIGHT, top + 8)
    parts = []
    for tick in round_ticks(0, upright.high, 4):
        parts.append(line(_LEFT_serving, upright(tick), _RIGHT_serving, upright(tick), "grid"))
        parts.append(words(_LEFT_serving - 6, upright(tick) + 4, f"{tick:,.6g}", "tick", "end"))
    tops = [round(upright(level), 2) for level in levels]
    parts.append(path(steps([scale(edge) for edge in edges], tops, [upright(0)] * len(tops)), "area"))
    parts.append(words(_LEFT_serving, top, name, "tick"))
    return joined(parts)


#: More tenants than this are not drawn; no more than `_ROWS` are listed.
_BARS_serving, _ROWS = 24, 200
_WIDTH_tenants, _LEFT_tenants, _RIGHT_tenants = 1000, 210, 960
_ROW_serving = 22


def tenants_section(serving: Serving) -> Section:
    """Make the section: latencies from the median to p99, deadlines kept, rates and slowdowns of each tenant."""
    tenants = list(serving.tenants.values())
    what = (
        "A tenant is an entry of the scenario's jobs. Bars go from the median to p95, thin lines on to p99.9; upright "
        "lines are means. Slowdown: latency / latency of the same job alone on the chip, the mean over requests."
    )
    parts = [element("p", what, class_="note"), *(element("p", each, class_="answer") for each in serving.remarks)]
    drawn = [each for each in tenants if each.latency is not None][:_BARS_serving]
    if drawn:
        parts.append(_bars_serving(serving, drawn))
    if len(drawn) < len(tenants):
        parts.append(element("p", f"Drawn: {len(drawn):,} of {len(tenants):,} tenants.", class_="note"))
    listed = tenants[:_ROWS]
    parts.append(region("Requests of each tenant", "scroll", _counts_serving(listed)))
    parts.append(region("Latencies of each tenant", "scroll", _latencies(serving, listed)))
    if len(listed) < len(tenants):
        more = f"and {len(tenants) - len(listed):,} more tenants, in the JSON of the run"
        parts.append(element("p", more, class_="note"))
    if serving.antt is not None and serving.stp is not None:
        text = f"ANTT (the mean of the slowdowns) {serving.antt:.4g}, STP (the sum of progress) {serving.stp:.4g}; "
        text += f"Jain's index of slowdowns {serving.fairness_slowdown:.3f}, of goodput {serving.fairness_goodput:.3f}."
        parts.append(element("p", text))
    return Section("tenants", "Tenants", joined(parts))


def _bars_serving(serving: Serving, tenants: list[Tenant]) -> Markup:
    most = max(serving.ms(value) for each in tenants for value in _places(each))
    scale = Scale(0, max(most, 1e-12) * 1.04, _LEFT_tenants, _RIGHT_tenants)
    parts = []
    for number, tenant in enumerate(tenants):
        assert tenant.latency is not None
        middle = 8 + number * _ROW_serving + _ROW_serving / 2
        mean, p50, p95, last = (scale(serving.ms(value)) for value in _places(tenant))
        parts.append(words(_LEFT_tenants - 8, middle + 4, short(tenant.name, 28), "tick", "end"))
        parts.append(line(p95, middle, max(p95, last), middle, "axis"))
        title = f"{short(tenant.name)}: {_sentence(tenant, serving)}"
        parts.append(rectangle(p50, middle - 6, max(1.0, p95 - p50), 12, "area", title))
        parts.append(line(mean, middle - 8, mean, middle + 8, "mark mean"))
    base = 8 + len(tenants) * _ROW_serving + 4
    parts.append(bottom_axis(scale, base, "ms", round_ticks(0, scale.high)))
    label = f"Latencies of {len(tenants)} tenants, up to {most:.4g} ms; the table below has the numbers"
    return region("Latencies of tenants", "wide", picture(_WIDTH_tenants, base + 34, label, *parts))


def _places(tenant: Tenant) -> tuple[float, float, float, float]:
    """Mean, median, p95 and the last percentile, in cycles."""
    latency = tenant.latency
    assert latency is not None
    return latency.mean.value, latency.p50.value, latency.p95.value, latency.percentiles[max(latency.percentiles)].value


def _sentence(tenant: Tenant, serving: Serving) -> str:
    assert tenant.latency is not None
    named = {"mean": tenant.latency.mean, "p50": tenant.latency.p50, "p99": tenant.latency.p99}
    return ", ".join(f"{name} {serving.ms(each.value):.4g} ms" for name, each in named.items())


def _counts_serving(tenants: list[Tenant]) -> Markup:
    head = ["tenant", "model", "requests", "turned away", "late", "in time", "per s", "good per s", "slowdown"]
    rows = [
        [
            each.name,
            each.model,
            f"{each.requests:,}",
            f"{each.turned_away:,}",
            f"{each.misses:,}",
            "–" if each.attainment is None else f"{100 * each.attainment:.4g} %",
            four_digits(each.throughput_per_second),
            four_digits(each.goodput_per_second),
            "–" if each.slowdown is None else four_digits(each.slowdown),
        ]
        for each in tenants
    ]
    return table(head, rows, left=(0, 1))


def _latencies(serving: Serving, tenants: list[Tenant]) -> Markup:
    names = [f"p{percent:g}" for percent in serving.latency.percentiles]
    head = ["latency in ms", "mean", *names, "max", "wait, mean"]
    rows: list[list[str]] = []
    for each in tenants:
        if each.latency is None or each.wait is None:
            rows.append([each.name, "none served", *["–"] * (len(head) - 2)])
            continue
        times = each.latency.mean, *each.latency.percentiles.values(), each.wait.mean
        cells = [_cell(one, serving, each.verdict) for one in times]
        rows.append([each.name, *cells[:-1], four_digits(serving.ms(each.latency.max)), cells[-1]])
    return table(head, rows)


def _cell(each: Interval, serving: Serving, verdict: str) -> Markup:
    """A figure with its interval below."""
    value, width = interval_texts(each, serving, verdict)
    return joined([value, element("div", width.replace("+-", "± "), class_="muted")] if width else [value])
