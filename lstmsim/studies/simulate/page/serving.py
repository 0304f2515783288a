"""The sections on serving over time and on tenants: who waits, what each got, and who holds others up."""

from __future__ import annotations

from lstmsim.report.figures_text import four_digits
from lstmsim.report.html.markup import Markup, Section, element, joined, region, short, table
from lstmsim.report.html.svg import Scale, bottom_axis, line, path, picture, rectangle, round_ticks, steps, words
from lstmsim.report.renderings import text
from lstmsim.studies.serve.report import document, interval_texts
from lstmsim.studies.serve.result import Serving, Tenant
from lstmsim.traffic.intervals import Interval

_WIDTH, _LEFT, _RIGHT = 1000, 52, 960
_HEIGHT, _GAP = 100, 34


def serving_section(serving: Serving) -> Section:
    """Make the section."""
    edges = [serving.ms(each.start_cycle) for each in serving.windows]
    edges.append(
        serving.ms(serving.windows[-1].start_cycle + serving.windows[-1].width_cycles) if serving.windows else 1.0
    )
    scale = Scale(edges[0], max(edges[-1], edges[0] + 1e-12), _LEFT, _RIGHT)
    waiting, taken = [each.queue_length for each in serving.windows], [each.taken for each in serving.windows]
    upper = _levels("requests that wait", edges, waiting, scale, 20)
    lower = _levels(f"threads taken, of {serving.servers}", edges, taken, scale, 20 + _HEIGHT + _GAP)
    base = 20 + 2 * _HEIGHT + _GAP
    axis = bottom_axis(scale, base, "ms", round_ticks(scale.low, scale.high))
    label = f"At most {max(waiting, default=0):.3g} requests wait and {max(taken, default=0):.3g} threads are taken"
    drawn = region("Serving over time", "wide", picture(_WIDTH, base + 34, label, upper, lower, axis))
    window = serving.windows[0].width_cycles if serving.windows else 0
    note = element("p", f"Means over windows of {window:,} cycle{'s' * (window != 1)}.", class_="note")
    figures = element("pre", text(document(serving, tenants=False)), tabindex="0")
    return Section("serving", "Serving", joined([note, drawn, figures]))


def _levels(name: str, edges: list[float], levels: list[float], scale: Scale, top: float) -> Markup:
    """One quantity over time as columns from zero."""
    upright = Scale(0, max(1.0, *levels, 0.0), top + _HEIGHT, top + 8)
    parts = []
    for tick in round_ticks(0, upright.high, 4):
        parts.append(line(_LEFT, upright(tick), _RIGHT, upright(tick), "grid"))
        parts.append(words(_LEFT - 6, upright(tick) + 4, f"{tick:,.6g}", "tick", "end"))
    tops = [round(upright(level), 2) for level in levels]
    parts.append(path(steps([scale(edge) for edge in edges], tops, [upright(0)] * len(tops)), "area"))
    parts.append(words(_LEFT, top, name, "tick"))
    return joined(parts)


#: More tenants than this are not drawn; no more than `_ROWS` are listed.
_BARS, _ROWS = 24, 200
_WIDTH_tenants, _LEFT_tenants, _RIGHT_tenants = 1000, 210, 960
_ROW = 22


def tenants_section(serving: Serving) -> Section:
    """Make the section: latencies from the median to p99, deadlines kept, rates and slowdowns of each tenant."""
    tenants = list(serving.tenants.values())
    what = (
        "A tenant is an entry of the scenario's jobs. Bars go from the median to p95, thin lines on to p99.9; upright "
        "lines are means. Slowdown: latency / latency of the same job alone on the chip, the mean over requests."
    )
    parts = [element("p", what, class_="note"), *(element("p", each, class_="answer") for each in serving.remarks)]
    drawn = [each for each in tenants if each.latency is not None][:_BARS]
    if drawn:
        parts.append(_bars(serving, drawn))
    if len(drawn) < len(tenants):
        parts.append(element("p", f"Drawn: {len(drawn):,} of {len(tenants):,} tenants.", class_="note"))
    listed = tenants[:_ROWS]
    parts.append(region("Requests of each tenant", "scroll", _counts(listed)))
    parts.append(region("Latencies of each tenant", "scroll", _latencies(serving, listed)))
    if len(listed) < len(tenants):
        more = f"and {len(tenants) - len(listed):,} more tenants, in the JSON of the run"
        parts.append(element("p", more, class_="note"))
    if serving.antt is not None and serving.stp is not None:
        text = f"ANTT (the mean of the slowdowns) {serving.antt:.4g}, STP (the sum of progress) {serving.stp:.4g}; "
        text += f"Jain's index of slowdowns {serving.fairness_slowdown:.3f}, of goodput {serving.fairness_goodput:.3f}."
        parts.append(element("p", text))
    return Section("tenants", "Tenants", joined(parts))


def _bars(serving: Serving, tenants: list[Tenant]) -> Markup:
    most = max(serving.ms(value) for each in tenants for value in _places(each))
    scale = Scale(0, max(most, 1e-12) * 1.04, _LEFT_tenants, _RIGHT_tenants)
    parts = []
    for number, tenant in enumerate(tenants):
        assert tenant.latency is not None
        middle = 8 + number * _ROW + _ROW / 2
        mean, p50, p95, last = (scale(serving.ms(value)) for value in _places(tenant))
        parts.append(words(_LEFT_tenants - 8, middle + 4, short(tenant.name, 28), "tick", "end"))
        parts.append(line(p95, middle, max(p95, last), middle, "axis"))
        title = f"{short(tenant.name)}: {_sentence(tenant, serving)}"
        parts.append(rectangle(p50, middle - 6, max(1.0, p95 - p50), 12, "area", title))
        parts.append(line(mean, middle - 8, mean, middle + 8, "mark mean"))
    base = 8 + len(tenants) * _ROW + 4
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


def _counts(tenants: list[Tenant]) -> Markup:
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
