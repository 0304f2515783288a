"""The slowest requests in the forms that people and scripts read: text for the terminal, JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lstmsim.analysis.explanations.slowest import Slowest
from lstmsim.analysis.explanations.slowest_answer import slowest_answer, who
from lstmsim.analysis.explanations.what_if import WhatIf
from lstmsim.report.figures_text import percent, short_name
from lstmsim.report.tables import table

__all__ = ["heading", "latencies_what_if", "slowest_json", "slowest_tables"]

_LISTED = 5
_LONGEST_NAME = 20


def slowest_tables(slow: Slowest) -> list[str]:
    """Two tables as lines: the time of the slowest requests beside the time of all, and some slow requests in full."""
    rows = [["cycles of a request, on average", "slowest", "", "all", "", ""]]
    whole, mean = slow.latency.slowest, slow.latency.mean
    for each in slow.shares:
        shares = [f"{each.slowest:,.0f}", percent(each.slowest, whole), f"{each.all:,.0f}", percent(each.all, mean)]
        rows.append([each.name, *shares, slow.described(each.name)[0]])
    rows.append(["latency", f"{whole:,.0f}", "", f"{mean:,.0f}", "", "the sum"])
    lines = table(rows, left=(0, 5))
    rows = [["job", "arrival", "latency", "most of it"]]
    for one in slow.listed[:_LISTED]:
        name = max(one.cycles, key=lambda each: one.cycles[each], default=slow.unit)
        most = f"{name} {percent(one.cycles.get(name, 0), one.latency_cycles)}"
        rows.append([short_name(one.job, _LONGEST_NAME), f"{one.arrival:,}", f"{one.latency_cycles:,}", most])
    return [*lines, "", *table(rows, left=(0, 3))]


def latencies_what_if(slow: Slowest, what_if: WhatIf) -> list[str]:
    """A table as lines: the latency of all requests and of the slowest with each change; no lines if none was tried."""
    known = [each for each in what_if.alternatives if each.latency is not None]
    if not known:
        return []
    rows = [["change", "", "mean latency", "of the slowest", "less"]]
    rows.append(["as it is", "", f"{slow.latency.mean:,.0f}", f"{slow.latency.slowest:,.0f}", ""])
    for each in sorted(known, key=lambda one: one.latency.slowest if one.latency else 0.0):
        assert each.latency is not None
        less = 100 * (slow.latency.slowest - each.latency.slowest) / slow.latency.slowest
        shown = f"{less:.1f} %" if abs(less) >= 0.05 else "no effect" if not less else "<0.1 %"
        rows.append([each.name, each.detail, f"{each.latency.mean:,.0f}", f"{each.latency.slowest:,.0f}", shown])
    title = "WHAT WOULD HELP THE SLOWEST: the same requests, one change at a time, each simulated; cycles"
    return [title, *table(rows, left=(0, 1))]


def slowest_json(slow: Slowest, what_if: WhatIf) -> dict[str, Any]:
    """The slowest requests as plain data. Times are in cycles, shares go from 0 to 1."""
    whole, mean = slow.latency.slowest, slow.latency.mean
    return {
        "requests": slow.requests,
        "slowest": slow.count,
        "from_cycles": slow.from_cycles,
        "turned_away": slow.turned_away,
        "mean_latency_cycles": {"slowest": whole, "all": mean},
        "answer": slowest_answer(slow, what_if),
        "shares": [
            {
                "name": each.name,
                "meaning": slow.described(each.name)[0],
                "slowest": {"cycles": each.slowest, "share": each.slowest / whole if whole else 0.0},
                "all": {"cycles": each.all, "share": each.all / mean if mean else 0.0},
            }
            for each in slow.shares
        ],
        "listed": [asdict(each) for each in slow.listed],
        "arriving": slow.way,
        "split": slow.split,
    }


def heading(slow: Slowest) -> str:
    """The title of the section on the slowest requests."""
    return f"WHAT HELD THE SLOWEST UP: {who(slow)}"
