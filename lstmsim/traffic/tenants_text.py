"""What each tenant got, as tables for the terminal and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lstmsim.traffic.latencies import Distribution
from lstmsim.traffic.result import Serving, Tenant
from lstmsim.traffic.statistics import Interval

__all__ = ["SHOWN", "interval_texts", "plain", "shares_json", "shown_tenants", "tenant_lines", "window_json"]

#: So many tenants are shown; of more, those with the largest slowdown.
SHOWN = 12
_NAME = 22
_NONE = "-"


def shown_tenants(found: Serving) -> tuple[list[Tenant], str]:
    """The tenants that are shown, and a sentence that says which these are if there are more.

    Of more than `SHOWN`, those with the largest slowdown; of equal ones, those with more turned away.
    """
    tenants = list(found.tenants.values())
    if len(tenants) <= SHOWN:
        return tenants, ""
    worst = sorted(tenants, key=lambda each: (-(each.slowdown or 0.0), -each.turned_away))[:SHOWN]
    text = f"the {SHOWN} of {len(tenants):,} with the largest slowdown; {len(tenants) - SHOWN:,} more are in the JSON"
    return worst, text


def tenant_lines(found: Serving) -> list[str]:
    """Tables, at most 100 columns wide: what was served, late and turned away; latencies with their intervals.

    An interval is written as +- and its half width in percent of the value.
    """
    tenants, which = shown_tenants(found)
    title = f"TENANTS ({which})" if which else "TENANTS"
    counts = [
        [
            _short(each.name),
            f"{each.requests:,}",
            f"{each.turned_away:,}",
            f"{each.misses:,}",
            _NONE if each.attainment is None else f"{100 * each.attainment:.4g} %",
            f"{each.throughput_per_second:.4g}",
            f"{each.goodput_per_second:.4g}",
            _NONE if each.slowdown is None else f"{each.slowdown:.4g}",
        ]
        for each in tenants
    ]
    heads = ["", "requests", "turned away", "late", "in time", "/s", "good /s", "slowdown"]
    percents = [f"p{percent:g}" for percent in found.latency.percentiles]
    times = [["latency in ms", "mean", *percents, "wait, mean"]]
    times += [_times(each, found) for each in tenants]
    # as many columns as fit beside each other, with the names again
    halves = [[[row[0], *row[1:4]] for row in times], [[row[0], *row[4:]] for row in times]]
    return [title, *_table([heads, *counts]), *(line for half in halves for line in _table(half))]


def _times(tenant: Tenant, found: Serving) -> list[str]:
    if tenant.latency is None or tenant.wait is None:
        return [_short(tenant.name), "none served"]
    each = [tenant.latency.mean, *tenant.latency.percentiles.values(), tenant.wait.mean]
    return [_short(tenant.name), *(" ".join(interval_texts(one, found)) for one in each)]


def interval_texts(each: Interval, found: Serving) -> tuple[str, str]:
    """Milliseconds, and the half width of the interval in percent: or the words that say that there is none, empty
    where more requests would not help, for there is nothing to settle to.

    >>> from lstmsim.traffic.metrics import Collector
    >>> collector = Collector(250)
    >>> collector.add(0, arrival=0, start=0, finish=250)
    >>> found = collector.result()
    >>> interval_texts(Interval(250.0, 5.0, 10), found), interval_texts(Interval(250.0), found)[0]
    (('0.001', '+-2%'), '0.001')
    """
    value = f"{found.ms(each.value):.4g}"
    if each.half_width is None:
        return value, "too few" if found.verdict in ("settled", "too few") else ""
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


def window_json(found: Serving) -> dict[str, int] | None:
    """The part of a run in which all clients are active, as plain data."""
    if found.window is None:
        return None
    return {
        "clients": found.window.clients,
        "start_cycle": found.window.start_cycle,
        "end_cycle": found.window.end_cycle,
        "requests": found.requests_inside,
    }


def shares_json(found: Serving) -> dict[str, Any]:
    """What models and tenants got, and how fair that is, as plain data."""
    return {
        "models": {
            name: {
                "requests": each.requests,
                "in_time": each.in_time,
                "turned_away": each.turned_away,
                "slowdown": each.slowdown,
            }
            for name, each in found.models.items()
        },
        "tenants": _tenants_json(found),
        "antt": found.antt,
        "stp": found.stp,
        "fairness": {
            "slowdown": found.fairness_slowdown,
            "goodput": found.fairness_goodput,
            "throughput": found.fairness_throughput,
        },
    }


def _tenants_json(found: Serving) -> list[dict[str, Any]]:
    """All of them in their order; times in cycles."""
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
        }
        for each in found.tenants.values()
    ]


def plain(found: Distribution) -> dict[str, Any]:
    """A distribution as plain data; `half_width` is None where there are too few requests to tell."""
    named = {"mean": found.mean, **{f"p{percent:g}": each for percent, each in found.percentiles.items()}}
    values = {name: {"value": each.value, "half_width": each.half_width} for name, each in named.items()}
    return {**values, "max": found.max, "exact": found.exact}
