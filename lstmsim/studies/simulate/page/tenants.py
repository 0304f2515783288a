"""The section on tenants: the latencies of each as a bar, tables of what each got, and who holds others up."""

from __future__ import annotations

from lstmsim.report.figures_text import four_digits
from lstmsim.report.html.markup import Markup, Section, element, joined, region, short, table
from lstmsim.report.html.svg import Scale, bottom_axis, line, picture, rectangle, round_ticks, words
from lstmsim.studies.serve.report import interval_texts
from lstmsim.studies.serve.result import Serving, Tenant
from lstmsim.traffic.intervals import Interval

__all__ = ["tenants_section"]

#: More tenants than this are not drawn; no more than `_ROWS` are listed.
_BARS, _ROWS = 24, 200
_WIDTH, _LEFT, _RIGHT = 1000, 210, 960
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
    scale = Scale(0, max(most, 1e-12) * 1.04, _LEFT, _RIGHT)
    parts = []
    for number, tenant in enumerate(tenants):
        assert tenant.latency is not None
        middle = 8 + number * _ROW + _ROW / 2
        mean, p50, p95, last = (scale(serving.ms(value)) for value in _places(tenant))
        parts.append(words(_LEFT - 8, middle + 4, short(tenant.name, 28), "tick", "end"))
        parts.append(line(p95, middle, max(p95, last), middle, "axis"))
        title = f"{short(tenant.name)}: {_sentence(tenant, serving)}"
        parts.append(rectangle(p50, middle - 6, max(1.0, p95 - p50), 12, "area", title))
        parts.append(line(mean, middle - 8, mean, middle + 8, "mark mean"))
    base = 8 + len(tenants) * _ROW + 4
    parts.append(bottom_axis(scale, base, "ms", round_ticks(0, scale.high)))
    label = f"Latencies of {len(tenants)} tenants, up to {most:.4g} ms; the table below has the numbers"
    return region("Latencies of tenants", "wide", picture(_WIDTH, base + 34, label, *parts))


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
