"""What serving came to, in words and as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lstmsim.report.figures_text import four_digits
from lstmsim.report.results import Forms
from lstmsim.studies.serve.report import serving_json, serving_text
from lstmsim.studies.serve.run import Served
from lstmsim.studies.simulate.run import about


def served_json(served: Served) -> dict[str, Any]:
    """Give the serving as plain data of schema `lstmsim/serving/1`, with figures of the whole run."""
    made_of = {} if served.scenario is None else about(served.scenario, jobs=False)
    return serving_json(served.serving) | {
        "makespan_cycles": served.makespan_cycles,
        "utilization_of_pes": served.utilization,
        "tops": served.tops,
        "ended": served.ended,
        "full_at_cycle": served.full_at,
        "until_half_width": served.until_half_width,
        "chip_remarks": list(served.remarks),
        **made_of,
    }


def served_text(served: Served) -> str:
    """Give rates, latencies and queues as text, with how long the run took and why it ended."""
    ms = served.serving.ms(served.makespan_cycles)
    useful = f"utilization {100 * served.utilization:.1f} %, {served.tops:.4g} TOPS"
    lines = [
        serving_text(served.serving),
        f"makespan {served.makespan_cycles:,} cycles = {four_digits(ms)} ms, {useful}",
    ]
    if served.ended == "full":
        lines.append(_full(served))
    elif served.until_half_width is not None:
        lines.append(_reached(served))
    return "\n".join(lines)


def _full(served: Served) -> str:
    """Why serving could not go on, and what has been counted."""
    at = served.full_at or 0
    word = "unstable" if served.serving.verdict == "unstable" else "cannot go on"
    came = served.serving.requests + served.serving.turned_away
    return (
        f"{word}: more requests than there is room for ({served.window:,}) were in the machine at once, "
        f"at cycle {at:,} = {served.serving.ms(at):.4g} ms; the {came:,} that came until then are finished "
        "and counted, the others are not"
    )


def _reached(served: Served) -> str:
    share = f"{100 * (served.until_half_width or 0):g} %"
    came = served.serving.requests + served.serving.turned_away
    if served.ended == "half width":
        return f"intervals within {share} after {came:,} requests"
    return f"intervals not within {share} at the limit of {came:,} requests"


def _records(served: Served) -> list[Mapping[str, Any]]:
    """A row for each tenant."""
    tenants: list[Mapping[str, Any]] = serving_json(served.serving)["tenants"]
    return tenants


FORMS = Forms(served_json, served_text, _records)
