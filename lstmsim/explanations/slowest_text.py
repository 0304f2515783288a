"""The slowest requests in the forms that people and scripts read: text for the terminal, JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lstmsim.explanations.latency_shares import SHARES
from lstmsim.explanations.slowest import Slowest
from lstmsim.explanations.slowest_answer import slowest_answer, who
from lstmsim.explanations.what_if import WhatIf
from lstmsim.metrics.figures_text import percent, short_name
from lstmsim.metrics.tables import table

__all__ = ["heading", "latencies_what_if", "slowest_json", "slowest_tables"]

_LISTED = 5
_LONGEST_NAME = 20


def slowest_tables(found: Slowest) -> list[str]:
    """Lines: where the time of the slowest went beside that of all, and some of them one by one."""
    rows = [["cycles of a request, on average", "slowest", "", "all", "", ""]]
    whole, mean = found.latency.slowest, found.latency.mean
    for each in found.shares:
        shares = [f"{each.slowest:,.0f}", percent(each.slowest, whole), f"{each.all:,.0f}", percent(each.all, mean)]
        rows.append([each.name, *shares, SHARES[each.name]])
    rows.append(["latency", f"{whole:,.0f}", "", f"{mean:,.0f}", "", "the sum"])
    lines = table(rows, left=(0, 5))
    rows = [["job", "arrival", "latency", "most of it"]]
    for one in found.listed[:_LISTED]:
        name = max(one.cycles, key=lambda each: one.cycles[each], default="array")
        most = f"{name} {percent(one.cycles.get(name, 0), one.latency_cycles)}"
        rows.append([short_name(one.job, _LONGEST_NAME), f"{one.arrival:,}", f"{one.latency_cycles:,}", most])
    return [*lines, "", *table(rows, left=(0, 3))]


def latencies_what_if(found: Slowest, what_if: WhatIf) -> list[str]:
    """Lines: the latencies of all and of the slowest with each change; none where nothing was tried."""
    known = [each for each in what_if.alternatives if each.latency is not None]
    if not known:
        return []
    rows = [["change", "", "mean latency", "of the slowest", "less"]]
    rows.append(["as it is", "", f"{found.latency.mean:,.0f}", f"{found.latency.slowest:,.0f}", ""])
    for each in sorted(known, key=lambda one: one.latency.slowest if one.latency else 0.0):
        assert each.latency is not None
        less = 100 * (found.latency.slowest - each.latency.slowest) / found.latency.slowest
        shown = f"{less:.1f} %" if abs(less) >= 0.05 else "no effect" if not less else "<0.1 %"
        rows.append([each.name, each.detail, f"{each.latency.mean:,.0f}", f"{each.latency.slowest:,.0f}", shown])
    title = "WHAT WOULD HELP THE SLOWEST: the same requests, one change at a time, each simulated; cycles"
    return [title, *table(rows, left=(0, 1))]


def slowest_json(found: Slowest, what_if: WhatIf) -> dict[str, Any]:
    """The slowest requests as plain data; cycles, shares 0 to 1."""
    whole, mean = found.latency.slowest, found.latency.mean
    return {
        "requests": found.requests,
        "slowest": found.count,
        "from_cycles": found.from_cycles,
        "turned_away": found.turned_away,
        "mean_latency_cycles": {"slowest": whole, "all": mean},
        "answer": slowest_answer(found, what_if),
        "shares": [
            {
                "name": each.name,
                "meaning": SHARES[each.name],
                "slowest": {"cycles": each.slowest, "share": each.slowest / whole if whole else 0.0},
                "all": {"cycles": each.all, "share": each.all / mean if mean else 0.0},
            }
            for each in found.shares
        ],
        "listed": [asdict(each) for each in found.listed],
        "arriving": found.way,
        "split": found.split,
    }


def heading(found: Slowest) -> str:
    """The title of the section."""
    return f"WHAT HELD THE SLOWEST UP: {who(found)}"
