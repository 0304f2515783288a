"""The timeline picture: which jobs worked when, why threads waited, and how busy the main units were."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from numpy.typing import NDArray

from lstmsim.analysis.spans import Spans, covered_cycles, spans_of, step_edges, use_over_time
from lstmsim.analysis.stall_words import NAMED
from lstmsim.analysis.timeline import MAIN, STATES, Timeline
from lstmsim.base.errors import Mistake, refuse
from lstmsim.base.units import cycles_to_us
from lstmsim.base.wording import counted
from lstmsim.program.unit_names import is_unit
from lstmsim.report.figures_text import three_digits
from lstmsim.report.pictures.figures import Picture, drawn, job_style, letters, set_time, short, unit_of
from lstmsim.report.styles import SCREEN, Look, Style


@dataclass(frozen=True, eq=False)
class View(Spans):
    """Spans to draw."""

    start_cycle: int
    end_cycle: int
    cores: tuple[int, ...]


def view_of(timeline: Timeline, start: int | None, end: int | None, cores: Iterable[int] | None) -> View:
    """Give the part of a timeline to draw; one `InputError` for windows and cores that it does not have."""
    low, high, chosen = _window(timeline, start, end, cores)
    return View(**vars(spans_of(timeline, (low, high), chosen)), start_cycle=low, end_cycle=high, cores=chosen)


def _window(
    timeline: Timeline, start: int | None, end: int | None, cores: Iterable[int] | None
) -> tuple[int, int, tuple[int, ...]]:
    """Start, end and cores of the view; `InputError` for all that is wrong."""
    (first, last), mistakes = timeline.shown, []
    low = first if start is None else start
    high = last if end is None else min(end, last)
    known = sorted({row.core for row in timeline.rows})
    chosen = sorted(set(known if cores is None else cores))
    if last < 1 or not known:
        mistakes.append(Mistake("timeline", "nothing to draw: it has no cycles"))
    elif not first <= low < last:
        mistakes.append(Mistake("start", f"must be a cycle of the timeline, {first} to {last - 1}, got {low}"))
    elif high <= low:
        mistakes.append(Mistake("end", f"must be after the start {low}, got {end}"))
    for core in chosen:
        if core not in known and known:
            mistakes.append(Mistake("cores", f"no core {core} in this timeline, it has {_listed(known)}"))
    if not chosen and known:
        mistakes.append(Mistake("cores", f"choose at least one of {_listed(known)}"))
    refuse(mistakes)
    return low, high, tuple(chosen)


def _listed(cores: list[int]) -> str:
    """Core numbers, as a range where they follow each other."""
    whole = len(cores) > 2 and cores == list(range(cores[0], cores[-1] + 1))
    return f"{cores[0]} to {cores[-1]}" if whole else ", ".join(map(str, cores))


#: Height of a row by its kind; the distance between rows is 0.2.
_HEIGHTS = {MAIN: 0.84, "thread": 0.66}
_UNIT_HEIGHT = 0.34

_BINS = 500
#: Inches of a picture that its rows do not have: their names, and beside it what looks mean.
_BESIDE, _BELOW = 3.2, 0.9
_LABEL_LIMIT = 300


def row_height(kind: str) -> float:
    """Give the height of a row by its kind."""
    return _HEIGHTS.get(kind, _UNIT_HEIGHT)


def axes_inches(figure: Picture) -> float:
    """The width of the rows."""
    return float(figure.get_size_inches()[0]) - (_BESIDE if figure.look == SCREEN else letters(_BELOW))


def rows_inches(heights: list[float]) -> float:
    """Give the height of the upper panel: it grows with the rows, but stays on a page."""
    return min(9.0, max(1.1, 0.30 * sum(height + 0.2 for height in heights)))


def set_rows(axes: Axes, view: View, heights: list[float]) -> NDArray[np.float64]:
    """Write names at the rows and draw a line between cores; give the rows' centres, top row first, shape [rows]."""
    gaps = np.array([0.0, *(0.2 + 0.25 * (a.core != b.core) for a, b in zip(view.rows, view.rows[1:], strict=False))])
    tops = np.cumsum(gaps) + np.concatenate([[0.0], np.cumsum(heights)[:-1]])
    centres: NDArray[np.float64] = tops + np.array(heights) / 2
    size = min(letters(8.0), 0.7 * 72 * rows_inches(heights) / len(heights))
    axes.set_yticks(centres, [row.name for row in view.rows], fontsize=size)
    axes.set_ylim(tops[-1] + heights[-1] + 0.15, -0.15)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for number, (above, below) in enumerate(zip(view.rows, view.rows[1:], strict=False)):
        if above.core != below.core:
            axes.axhline(tops[number + 1] - gaps[number + 1] / 2, color="#BBBBBB", linewidth=0.6)
    return centres


def _style(view: View, state: int, job: int) -> Style:
    """The look of a span."""
    return job_style(view.colour_of(job)) if STATES[state] == "busy" else NAMED[STATES[state]].style


def draw_spans(axes: Axes, view: View, centres: NDArray[np.float64], heights: list[float]) -> None:
    """Draw the spans, one collection for each row and look."""
    bars: dict[tuple[int, Style], list[tuple[int, int]]] = {}
    for row, state, job, indices in view.kinds():
        lengths = (view.end[indices] - view.start[indices]).tolist()
        bar = bars.setdefault((row, _style(view, state, job)), [])
        bar += zip(view.start[indices].tolist(), lengths, strict=True)
    for (row, style), ranges in bars.items():
        axes.broken_barh(
            ranges,
            (centres[row] - heights[row] / 2, heights[row]),
            facecolors=style.fill,
            # The edge colour is the hatch's; edges themselves would widen short spans.
            edgecolors=style.ink,
            hatch=style.hatch or None,
            linewidth=0,
            # Snapped to pixels, spans below a pixel would vanish or grow.
            snap=False,
        )


def stacked_fractions(view: View, edges: NDArray[np.int64]) -> list[dict[Style, NDArray[np.float64]]]:
    """Give for each row by look, work first, the fraction of each window that the row's spans of that look cover."""
    stacks: list[dict[Style, NDArray[np.float64]]] = [{} for _ in view.rows]
    lengths = np.diff(edges)
    for row, state, job, indices in view.kinds():
        style = _style(view, state, job)
        part = covered_cycles(view.start[indices], view.end[indices], edges) / lengths
        stacks[row][style] = stacks[row].get(style, 0.0) + part
    return stacks


def draw_fractions(
    axes: Axes, timeline: Timeline, view: View, centres: NDArray[np.float64], heights: list[float]
) -> None:
    """Draw each row as a stack of fractions of time: work at the bottom, waits above."""
    edges, _ = step_edges(timeline, view.start_cycle, view.end_cycle, _BINS)
    for row, fractions in enumerate(stacked_fractions(view, edges)):
        bottom, base = np.zeros(len(edges) - 1), centres[row] + heights[row] / 2
        for style, part in fractions.items():
            low, high = base - heights[row] * bottom, base - heights[row] * (bottom + part)
            colours: Any = {"facecolor": style.fill, "edgecolor": style.ink}
            sides = np.append(low, low[-1]), np.append(high, high[-1])
            axes.fill_between(edges, *sides, step="post", hatch=style.hatch or None, linewidth=0, **colours)
            bottom = bottom + part


def draw_labels(axes: Axes, timeline: Timeline, view: View, centres: NDArray[np.float64], inches: float) -> None:
    """Write a job's name on the longest span of its work in each row, where it fits."""
    inches_per_cycle = inches / (view.end_cycle - view.start_cycle)
    placed = 0
    for row, _, job, indices in view.kinds():
        if job < 0 or placed >= _LABEL_LIMIT or is_unit(view.rows[row].kind) or len(view.rows) > 40:
            continue
        length = view.end[indices] - view.start[indices]
        widest = indices[np.argmax(length)]
        text, style = short(timeline.jobs[job]), job_style(view.colour_of(job))
        if length.max() * inches_per_cycle < letters(0.075) * len(text) + 0.08:
            continue
        axes.text(
            (view.start[widest] + view.end[widest]) / 2,
            centres[row],
            text,
            color=style.ink,
            ha="center",
            va="center_baseline",
            fontsize=letters(7),
            parse_math=False,
            bbox={"facecolor": style.fill, "edgecolor": "none", "pad": 1.0} if style.hatch else None,
        )
        placed += 1


#: Above this many visible spans the picture shows fractions of time instead of single spans.
SPAN_LIMIT = 20_000

#: Most windows of the strip, and of an inch of it.
_WINDOWS, _WINDOWS_OF_INCH = 200, 25


def plot(
    timeline: Timeline,
    path: str | os.PathLike[str] | None = None,
    *,
    start: int | None = None,
    end: int | None = None,
    cores: Iterable[int] | None = None,
    look: Look = SCREEN,
) -> Picture:
    """Draw a timeline: full colours are jobs, pale hatched ones causes of waits."""
    with drawn(path, look=look) as figure:
        _draw(figure, timeline, view_of(timeline, start, end, cores))
    return figure


def _draw(figure: Picture, timeline: Timeline, view: View) -> None:
    heights = [row_height(row.kind) for row in view.rows]
    upper_inches = rows_inches(heights)
    figure.fit(12, upper_inches + 2.6, fixed=upper_inches + 1.2)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[upper_inches, 1.2])
    centres = set_rows(upper, view, heights)
    if len(view) > SPAN_LIMIT:
        draw_fractions(upper, timeline, view, centres, heights)
    else:
        draw_spans(upper, view, centres, heights)
        draw_labels(upper, timeline, view, centres, axes_inches(figure))
    busy = _draw_utilization(lower, timeline, view, axes_inches(figure))
    set_time(upper, lower, view.start_cycle, view.end_cycle, timeline.frequency_mhz)
    _set_title(figure, timeline, view, busy)
    set_legend(figure, timeline, view)


def _draw_utilization(axes: Axes, timeline: Timeline, view: View, inches: float) -> float:
    """Draw the busy fraction of the shown cores' main units per window; give that of the whole view in percent."""
    start, end, most = view.start_cycle, view.end_cycle, min(_WINDOWS, int(_WINDOWS_OF_INCH * inches))
    use = use_over_time(timeline, (start, end), most, view.cores)
    axes.stairs(100 * use.share, use.edges, fill=True, color="#B8C4CC")
    axes.stairs(100 * use.share, use.edges, color="#33434D", linewidth=0.9)
    axes.set_ylim(0, 105)
    axes.set_yticks([0, 50, 100])
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)
    several = f"{timeline.unit}s busy (%),\nmean of {use.cores} cores"
    axes.set_ylabel(f"{timeline.unit} busy (%)" if use.cores < 2 else several)
    said = f"windows of whole time steps, at least {use.window}" if use.on_steps else f"windows of {use.window}"
    figure = axes.get_figure()
    assert isinstance(figure, Picture)
    axes.set_title(figure.folded(said, 7, 0.8), loc="right", fontsize=letters(7), color="#555555", pad=2)
    return 100 * use.mean


def _set_title(figure: Picture, timeline: Timeline, view: View, busy: float) -> None:
    makespan = timeline.makespan_cycles
    time = cycles_to_us(makespan, timeline.frequency_mhz)
    size, unit = unit_of(time)
    total, part = f"{makespan:,} cycles ({three_digits(time / size)} {unit})", ""
    if (view.start_cycle, view.end_cycle) != (0, makespan):
        total = f"window of cycles {view.start_cycle:,} to {view.end_cycle:,} of {total}"
        part = " of the window"
    units = f"{timeline.unit}{'s' * (len(view.cores) > 1)}"
    lines = [f"{short(timeline.chip, 60)}: {total}, {units} busy {busy:.1f} %{part}"]
    if len(view) > SPAN_LIMIT:
        lines.append(f"{len(view):,} spans: each column shows fractions of its time, not single spans")
    if view.left_out:
        lines.append(f"not shown: {view.left_out} (choose fewer cores to see them)")
    figure.head(lines)


def set_legend(figure: Picture, timeline: Timeline, view: View) -> None:
    """Write what colours and hatches of a view stand for, right of the panels."""
    known, hidden = view.legend()
    entries = [(_named(name, jobs, timeline), job_style(place)) for place, name, jobs in known]
    if hidden:
        entries.append((f"+ {hidden:,} more (looks repeat)", Style("#FFFFFF", ink="#FFFFFF")))
    waits = {name: named for name, named in NAMED.items() if name in view.waits}
    entries += [(named.legend or name, named.style) for name, named in waits.items()]
    patches = [
        Patch(
            facecolor=style.fill,
            edgecolor=style.ink,
            hatch=style.hatch or None,
            linewidth=0.4 * any(style == named.style for named in waits.values()),
        )
        for _, style in entries
    ]
    figure.name(patches, [label for label, _ in entries], handleheight=1.1)


def _named(name: str, jobs: int, timeline: Timeline) -> str:
    """What a colour stands for: a job, or how many jobs of an entry are shown."""
    return f"{short(name, 24)} ({counted(jobs, 'request')})" if timeline.groups else short(name, 30)
