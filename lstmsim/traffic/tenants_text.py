"""What each tenant got, as tables for the terminal and as plain data."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from lstmsim.report.figures_text import four_digits
from lstmsim.traffic.latencies import Distribution
from lstmsim.traffic.rates import Rates
from lstmsim.traffic.result import Serving, Tenant
from lstmsim.traffic.statistics import Interval

__all__ = [
    "SHOWN",
    "interval_texts",
    "plain",
    "rates_json",
    "shares_json",
    "shown_tenants",
    "tenant_lines",
    "window_json",
]

#: So many tenants are shown; of more, those with the largest slowdown.
SHOWN = 12
_NAME = 22
_WIDTH = 100
_NONE = "-"


def shown_tenants(serving: Serving) -> tuple[list[Tenant], str]:
    """Give the tenants that are shown, and a sentence that says which these are if there are more.

    Of more than `SHOWN`, those with the largest slowdown are shown; of equal slowdowns, those with more turned away.
    """
    tenants = list(serving.tenants.values())
    if len(tenants) <= SHOWN:
        return tenants, ""
    worst = sorted(tenants, key=lambda each: (-(each.slowdown or 0.0), -each.turned_away))[:SHOWN]
    text = f"the {SHOWN} of {len(tenants):,} with the largest slowdown; {len(tenants) - SHOWN:,} more are in the JSON"
    return worst, text


def tenant_lines(serving: Serving) -> list[str]:
    """Give tables of at most 100 columns: what was served, late and turned away; latencies with their intervals.

    An interval is written as +- and its half width in percent of the value.
    """
    tenants, which = shown_tenants(serving)
    title = f"TENANTS ({which})" if which else "TENANTS"
    counts = [
        [
            _short(each.name),
            f"{each.requests:,}",
            f"{each.turned_away:,}",
            f"{each.misses:,}",
            _NONE if each.slowdown is None else four_digits(each.slowdown),
        ]
        for each in tenants
    ]
    heads = ["", "requests", "turned away", "late", "slowdown"]
    rates = [["rates", "in time", "/s", "good /s"], *([_short(each.name), *_rates(each)] for each in tenants)]
    percents = [f"p{percent:g}" for percent in serving.latency.percentiles]
    times = [["latency in ms", "mean", *percents, "wait, mean"]]
    times += [_times(each, serving) for each in tenants]
    # as many columns as fit beside each other, with the names again
    halves = [[[row[0], *row[1:4]] for row in times], [[row[0], *row[4:]] for row in times]]
    lines = [title, *_table([heads, *counts]), *_table(rates), *(line for half in halves for line in _table(half))]
    verdicts = dict.fromkeys(each.verdict for each in serving.tenants.values())
    if len(verdicts) > 1:
        told = [f"{each}: {', '.join(_short(one.name) for one in tenants if one.verdict == each)}" for each in verdicts]
        text = f"  verdicts, as these tenants share nothing of the machine: {'; '.join(told)}"
        lines.append(textwrap.fill(text, _WIDTH, subsequent_indent="    "))
    return lines


def _rates(tenant: Tenant) -> list[str]:
    """The share in time, throughput and goodput, each with the half width of its interval in percent."""
    kept = tenant.attainment
    texts = [_NONE if kept is None else f"{100 * kept:.4g} %"]
    texts += [four_digits(each) for each in (tenant.throughput_per_second, tenant.goodput_per_second)]
    if tenant.rates is None:
        return texts
    known = tenant.rates.attainment, tenant.rates.throughput, tenant.rates.goodput
    return [f"{text}{_percent(each, tenant.verdict)}" for text, each in zip(texts, known, strict=True)]


def _percent(each: Interval | None, verdict: str) -> str:
    if each is None or (each.half_width is None and verdict not in ("settled", "too few")):
        return ""
    if each.half_width is None:
        return " too few"
    return f" +-{100 * each.half_width / each.value:.2g}%" if each.value else ""


def _times(tenant: Tenant, serving: Serving) -> list[str]:
    if tenant.latency is None or tenant.wait is None:
        return [_short(tenant.name), "none served"]
    each = [tenant.latency.mean, *tenant.latency.percentiles.values(), tenant.wait.mean]
    return [_short(tenant.name), *(" ".join(interval_texts(one, serving, tenant.verdict)) for one in each)]


def interval_texts(each: Interval, serving: Serving, verdict: str) -> tuple[str, str]:
    """Give a time in milliseconds, and the half width of its interval in percent; `verdict`: the tenant's.

    Without an interval the second text says so; it is empty where more requests would not help, because there is no
    steady state.

    >>> from lstmsim.traffic.metrics import Collector
    >>> collector = Collector(250)
    >>> collector.add(0, arrival=0, start=0, finish=250)
    >>> serving = collector.result()
    >>> interval_texts(Interval(250.0, 5.0, 10), serving, "settled")
    ('0.001', '+-2%')
    >>> interval_texts(Interval(250.0), serving, "too few"), interval_texts(Interval(250.0), serving, "unstable")
    (('0.001', 'too few'), ('0.001', ''))
    """
    value = four_digits(serving.ms(each.value))
    if each.half_width is None:
        return value, "too few" if verdict in ("settled", "too few") else ""
    share = 100 * each.half_width / each.value if each.value else 0.0
    return value, f"+-{share:.2g}%" if share < 100 else f"+-{share:.0f}%"


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 3]}..."


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns of equal width, the first one to the left; a row may end early."""
    widths = [max(len(row[at]) for row in rows if at < len(row)) for at in range(max(map(len, rows)))]
    return [
        "  "
        + "  ".join(
            text.rjust(width) if at else text.ljust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip()
        for row in rows
    ]


def window_json(serving: Serving) -> dict[str, int] | None:
    """Give the part of a run in which all clients are active as plain data; None without clients."""
    if serving.window is None:
        return None
    return {
        "clients": serving.window.clients,
        "start_cycle": serving.window.start_cycle,
        "end_cycle": serving.window.end_cycle,
        "requests": serving.requests_inside,
    }


def shares_json(serving: Serving) -> dict[str, Any]:
    """Give what models and tenants got, and how fair that is, as plain data."""
    return {
        "models": {
            name: {
                "requests": each.requests,
                "in_time": each.in_time,
                "turned_away": each.turned_away,
                "slowdown": each.slowdown,
            }
            for name, each in serving.models.items()
        },
        "tenants": _tenants_json(serving),
        "antt": serving.antt,
        "stp": serving.stp,
        "fairness": {
            "slowdown": serving.fairness_slowdown,
            "goodput": serving.fairness_goodput,
            "throughput": serving.fairness_throughput,
        },
    }


def _tenants_json(serving: Serving) -> list[dict[str, Any]]:
    """All tenants in their order; times in cycles."""
    return [
        {
            "tenant": each.name,
            "model": each.model,
            "clients": each.clients,
            "requests": each.requests,
            "turned_away": each.turned_away,
            "in_time": each.in_time,
            "misses": each.misses,
            "with_deadline": each.with_deadline,
            "attainment": each.attainment,
            "throughput_per_second": each.throughput_per_second,
            "goodput_per_second": each.goodput_per_second,
            "latency_cycles": None if each.latency is None else plain(each.latency),
            "wait_cycles": None if each.wait is None else plain(each.wait),
            "slowdown": each.slowdown,
            "progress": each.progress,
            "verdict": each.verdict,
            "intervals": rates_json(each.rates),
        }
        for each in serving.tenants.values()
    ]


def rates_json(rates: Rates | None) -> dict[str, Any]:
    """Give throughput, goodput, attainment and utilization as plain data; `half_width` is None where there is none."""
    named = {} if rates is None else rates.named()
    return {name: {"value": each.value, "half_width": each.half_width} for name, each in named.items()}


def plain(distribution: Distribution) -> dict[str, Any]:
    """Give a distribution as plain data; `half_width` is None where there are too few requests to tell."""
    named = {"mean": distribution.mean, **{f"p{percent:g}": each for percent, each in distribution.percentiles.items()}}
    values = {name: {"value": each.value, "half_width": each.half_width} for name, each in named.items()}
    return {**values, "max": distribution.max, "exact": distribution.exact}
