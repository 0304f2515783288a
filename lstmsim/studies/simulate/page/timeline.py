"""The timeline of a page as a drawing for paper and browsers without scripts: jobs, causes of waits, busy shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.spans import Spans, Use, covered_cycles, spans_of, window_edges
from lstmsim.analysis.stall_words import meaning_of
from lstmsim.analysis.timeline import MAIN, STATES, Row, Timeline
from lstmsim.base.units import cycles_to_us
from lstmsim.base.wording import counted, ranged
from lstmsim.model.figures import Words
from lstmsim.report.html import markup as draw
from lstmsim.report.html.markup import Markup, Section, element, joined, percent, region, short
from lstmsim.report.page.frame import shown
from lstmsim.studies.simulate.page.looks import LOOKS, job_class, state_class

#: Windows times rows of a picture of fractions; fewer rows get more windows.
_CELLS, _FEWEST_WINDOWS, _MOST_WINDOWS = 12_000, 60, 400
_WIDTH, _LEFT, _RIGHT, _TOP = 1000, 118, 970, 34
_HEIGHTS = {MAIN: 22, "thread": 16}
_UNIT_HEIGHT = 11


def timeline_sections(
    timeline: Timeline, use: Use, words: Mapping[str, Words] = MappingProxyType({}), missing: str = ""
) -> list[Section]:
    """Make the sections on the timeline and on the main units' use; `missing`: what scripts cannot draw, in words."""
    spans = spans_of(timeline)
    names = spans.colours()
    alike = len(names) > LOOKS
    if alike:
        # Columns of many hatches would tell nothing but that there are many.
        spans = replace(spans, job=np.full(len(spans), -1))
    first, last = timeline.shown
    scale = draw.Scale(first, max(first + 1, last), _LEFT, _RIGHT)
    tops = _tops(spans.rows)
    height = tops[-1] if tops else _TOP
    parts = [_lanes(spans.rows, tops), _fractions(timeline, spans, scale, tops)]
    ticks = draw.round_ticks(first, last, 8, whole=True)
    parts.append(draw.bottom_axis(scale, height, "cycles", ticks))
    start, end = (cycles_to_us(each, timeline.frequency_mhz) for each in (first, max(first + 1, last)))
    times = draw.Scale(start, end, _LEFT, _RIGHT), _TOP - 4, f"µs at {timeline.frequency_mhz:g} MHz"
    parts.append(draw.bottom_axis(*times, draw.round_ticks(start, end, 8), above=True))
    label = f"Timeline of {len(spans.rows)} rows over {timeline.shown_text or f'{last:,} cycles'}"
    drawn = draw.picture(_WIDTH, height + 34, label, *parts)
    notes = [f"{len(spans):,} spans: each column shows fractions of its time."]
    notes += [f"Work of all {len(names):,} jobs has one colour."] if alike else []
    notes += [f"Not shown: {spans.left_out}."] if spans.left_out else []
    figure = element("figure", region("Timeline", "wide", drawn), _legend(timeline, spans, words), class_="timeline")
    window = f"A window: {timeline.shown_text}." if timeline.window else ""
    # scripts draw single spans in place of the drawing
    note = element("p", " ".join(notes), class_="note paper")
    content = shown(element("div", id="explorer"), missing, figure, window, note)
    return [Section("timeline", "Timeline", content), _use_section(timeline, use)]


def _height(row: Row) -> int:
    return _HEIGHTS.get(row.kind, _UNIT_HEIGHT)


def _tops(rows: Sequence[Row]) -> list[float]:
    """Upper edges of the rows, and the lower end of all."""
    tops, at = [], float(_TOP)
    for number, row in enumerate(rows):
        at += 6 if number and rows[number - 1].core != row.core else 0
        tops.append(at)
        at += _height(row) + 3
    return [*tops, at]


def _lanes(rows: Sequence[Row], tops: list[float]) -> Markup:
    """A pale lane for every row with its name, a line between cores."""
    parts = []
    for row, top in zip(rows, tops, strict=False):
        height = _height(row)
        parts.append(draw.rectangle(_LEFT, top, _RIGHT - _LEFT, height, "lane"))
        parts.append(draw.words(_LEFT - 6, top + height / 2 + 4, row.name, "tick", "end"))
    for (above, below), top in zip(pairwise(rows), tops[1:], strict=False):
        if above.core != below.core:
            parts.append(draw.line(4, top - 4.5, _RIGHT, top - 4.5, "grid"))
    return joined(parts)


def _look(spans: Spans, state: int, job: int) -> str:
    return job_class(spans.colour_of(job)) if STATES[state] == "busy" else state_class(STATES[state])


def _name(timeline: Timeline, state: int, job: int) -> str:
    if STATES[state] != "busy":
        return STATES[state]
    return short(timeline.jobs[job]) if job >= 0 else "work"


def _fractions(timeline: Timeline, spans: Spans, scale: draw.Scale, tops: list[float]) -> Markup:
    """Each row a stack of fractions of time: work at the bottom, waits above. Nothing short is lost, nothing grows."""
    windows = min(_MOST_WINDOWS, max(_FEWEST_WINDOWS, _CELLS // max(1, len(spans.rows))))
    first, last = timeline.shown
    edges = window_edges(first, last, windows)
    lengths, places = np.diff(edges), [scale(edge) for edge in edges.tolist()]
    stacks: dict[int, dict[str, tuple[NDArray[np.int64], str, int]]] = {}
    for row, state, job, indices in spans.kinds():
        part = covered_cycles(spans.start[indices], spans.end[indices], edges)
        looks, look = stacks.setdefault(row, {}), _look(spans, state, job)
        before, name, jobs = looks.get(look, (0, _name(timeline, state, job), 0))
        looks[look] = (before + part, name, jobs + 1)
    parts = []
    for row, looks in stacks.items():
        height, bottom = _height(spans.rows[row]), np.zeros(len(lengths))
        base = tops[row] + height
        for look, (cycles, name, jobs) in looks.items():
            top = np.minimum(bottom + cycles / lengths, 1.0)
            more = f" and {jobs - 1} more" if jobs > 1 else ""
            title = f"{spans.rows[row].name}, {name}{more}: {percent(int(cycles.sum()), last - first)}"
            # Tenths: heights that differ by less look the same, and their columns join.
            high, low = ((base - height * each).round(1).tolist() for each in (top, bottom))
            parts.append(draw.path(draw.steps(places, high, low), look, title))
            bottom = top
    return joined(parts, "\n")


def _legend(timeline: Timeline, spans: Spans, own: Mapping[str, Words]) -> Markup:
    (known, hidden), entries = spans.legend(), []
    for place, name, jobs in known:
        requests = f" ({counted(jobs, 'request')})" if timeline.groups else ""
        entries.append(element("li", draw.swatch(job_class(place)), " ", f"{short(name)}{requests}"))
    if hidden:
        entries.append(element("li", f"and {hidden:,} more{' jobs' * (not timeline.groups)}, whose looks repeat"))
    if not known and STATES.index("busy") in spans.state:
        entries.append(element("li", draw.swatch(job_class(0)), " work"))
    for name in spans.waits:
        meaning = f": {meaning_of(name, own)}"
        entries.append(element("li", draw.swatch(state_class(name)), " ", element("b", name), meaning))
    return element("ul", *entries, class_="legend")


def _use_section(timeline: Timeline, use: Use) -> Section:
    first, last = timeline.shown
    edges, mean = use.edges, use.share
    scale, base = draw.Scale(first, int(edges[-1]), _LEFT, _RIGHT), 130.0
    upright = draw.Scale(0, 100, base, 20)
    parts = [draw.level_lines(scale, upright, (0, 25, 50, 75, 100), " %")]
    parts.append(draw.area(scale, upright, edges.tolist(), (100 * mean).tolist()))
    parts.append(draw.bottom_axis(scale, base, "cycles", draw.round_ticks(first, last, 8, whole=True)))
    what = f"the {timeline.unit}" if use.cores < 2 else f"the {use.cores} {timeline.unit}s (mean)"
    window = f"at least {use.window}, of whole time steps where they are short," if use.on_steps else use.window
    text = f"Share of each window of {window} in which {what} issued work: "
    over = f"over {timeline.shown_text}" if timeline.window else "on the whole"
    least, most = (f"{100 * each:.0f}" for each in (mean.min(), mean.max()))
    text += f"{100 * use.mean:.1f} % {over}, {ranged(least, most)} % in a window. "
    text += "Work on padding counts as busy here; the utilization above does not count it."
    drawn = draw.picture(_WIDTH, base + 34, f"Busy share over time, {100 * use.mean:.1f} % {over}", *parts)
    return Section("use", "Busy over time", shown(region("Busy over time", "wide", drawn), text))
