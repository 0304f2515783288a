"""What serving came to, in words and as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lstmsim.api.serving.stream import Served
from lstmsim.results import Forms
from lstmsim.traffic.text import serving_json, serving_text

__all__ = ["FORMS", "served_json", "served_text"]


def served_json(found: Served) -> dict[str, Any]:
    """The serving as plain data of schema `lstmsim/serving/1`, and what the whole run did."""
    return serving_json(found.serving) | {
        "makespan_cycles": found.makespan_cycles,
        "utilization_of_pes": found.utilization,
        "tops": found.tops,
        "ended": found.ended,
        "full_at_cycle": found.full_at,
        "until_half_width": found.until_half_width,
        "chip_remarks": list(found.remarks),
    }


def served_text(found: Served) -> str:
    """Rates, latencies and queues, how long it took, and why it ended there."""
    ms = found.serving.ms(found.makespan_cycles)
    useful = f"utilization {100 * found.utilization:.1f} %, {found.tops:.4g} TOPS"
    lines = [serving_text(found.serving), f"makespan {found.makespan_cycles:,} cycles = {ms:.4g} ms, {useful}"]
    if found.ended == "full":
        lines.append(_full(found))
    elif found.until_half_width is not None:
        lines.append(_reached(found))
    return "\n".join(lines)


def _full(found: Served) -> str:
    """Why serving could not go on, and what has been counted."""
    at = found.full_at or 0
    word = "unstable" if found.serving.verdict == "unstable" else "cannot go on"
    came = found.serving.requests + found.serving.turned_away
    return (
        f"{word}: more requests than there is room for (8,192) were in the machine at once, at cycle {at:,} = "
        f"{found.serving.ms(at):.4g} ms; the {came:,} that came until then are finished and counted, the others are not"
    )


def _reached(found: Served) -> str:
    share = f"{100 * (found.until_half_width or 0):g} %"
    came = found.serving.requests + found.serving.turned_away
    if found.ended == "half width":
        return f"intervals within {share} after {came:,} requests"
    return f"intervals not within {share} at the limit of {came:,} requests"


def _records(found: Served) -> list[Mapping[str, Any]]:
    """A row for each tenant."""
    tenants: list[Mapping[str, Any]] = serving_json(found.serving)["tenants"]
    return tenants


FORMS = Forms(served_json, served_text, _records)
