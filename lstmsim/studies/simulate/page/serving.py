"""The section on serving: how many requests wait and how many threads are taken, over time, and the figures as text."""

from __future__ import annotations

from lstmsim.report.html.markup import Markup, Section, element, joined, region
from lstmsim.report.html.svg import Scale, bottom_axis, line, path, picture, round_ticks, steps, words
from lstmsim.studies.serve.report import serving_text
from lstmsim.studies.serve.result import Serving

__all__ = ["serving_section"]

_WIDTH, _LEFT, _RIGHT = 1000, 52, 960
_HEIGHT, _GAP = 100, 34


def serving_section(serving: Serving) -> Section:
    """Make the section: queue length and threads taken, averaged over the run's windows, and the text of the figures.

    The text is that of `simulate --serving` without its tenants.
    """
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
    return Section(
        "serving", "Serving", joined([note, drawn, element("pre", serving_text(serving, tenants=False), tabindex="0")])
    )


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
