"""The upper panel of the timeline picture: one row for each main unit, thread and other unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from lstmsim.analysis.binning import covered_cycles, window_edges
from lstmsim.analysis.cycle_names import NAMED
from lstmsim.analysis.timeline import MAIN, STATES, Timeline, is_unit
from lstmsim.report.looks import Style
from lstmsim.report.pictures.styles import job_style, short
from lstmsim.studies.simulate.picture_view import View

__all__ = ["draw_fractions", "draw_labels", "draw_spans", "row_height", "rows_inches", "set_rows", "stacked_fractions"]

#: Height of a row by its kind; the distance between rows is 0.2.
_HEIGHTS = {MAIN: 0.84, "thread": 0.66}
_UNIT_HEIGHT = 0.34

_BINS = 500
_AXES_INCHES = 8.8
_HATCH_INCHES = 0.02
_LABEL_LIMIT = 300


def row_height(kind: str) -> float:
    """Give the height of a row by its kind.

    >>> row_height("array") > row_height("tail")
    True
    """
    return _HEIGHTS.get(kind, _UNIT_HEIGHT)


def rows_inches(heights: list[float]) -> float:
    """Give the height of the upper panel: it grows with the rows, but stays on a page."""
    return min(9.0, max(1.1, 0.30 * sum(height + 0.2 for height in heights)))


def set_rows(axes: Axes, view: View, heights: list[float]) -> NDArray[np.float64]:
    """Write names at the rows and draw a line between cores; give the rows' centres, top row first, shape [rows]."""
    gaps = np.array([0.0, *(0.2 + 0.25 * (a.core != b.core) for a, b in zip(view.rows, view.rows[1:], strict=False))])
    tops = np.cumsum(gaps) + np.concatenate([[0.0], np.cumsum(heights)[:-1]])
    centres: NDArray[np.float64] = tops + np.array(heights) / 2
    size = min(8.0, 0.7 * 72 * rows_inches(heights) / len(heights))
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
    """Draw the spans, one collection for each row and look; spans too short to show a hatch have none."""
    bars: dict[tuple[int, Style], list[tuple[int, int]]] = {}
    shortest = _HATCH_INCHES * (view.end_cycle - view.start_cycle) / _AXES_INCHES
    for row, state, job, indices in view.kinds():
        style = _style(view, state, job)
        for start, end in zip(view.start[indices].tolist(), view.end[indices].tolist(), strict=True):
            look = style if end - start >= shortest else replace(style, hatch="")
            bars.setdefault((row, look), []).append((start, end - start))
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


def stacked_fractions(view: View, row: int, edges: NDArray[np.int64]) -> dict[Style, NDArray[np.float64]]:
    """Give by look, work first, the fraction of each window that the row's spans of that look cover.

    The sum of fraction * window length is exactly the spans' cycles, so nothing short is lost and nothing grows.

    row: its number.
    edges: of the windows, in cycles, shape [windows + 1].
    """
    fractions: dict[Style, NDArray[np.float64]] = {}
    lengths = np.diff(edges)
    for number, state, job, indices in view.kinds():
        if number == row:
            style = _style(view, state, job)
            part = covered_cycles(view.start[indices], view.end[indices], edges) / lengths
            fractions[style] = fractions[style] + part if style in fractions else part
    return fractions


def draw_fractions(axes: Axes, view: View, centres: NDArray[np.float64], heights: list[float]) -> None:
    """Draw each row as a stack of fractions of time: work at the bottom, waits above."""
    edges = window_edges(view.start_cycle, view.end_cycle, _BINS)
    for row in range(len(view.rows)):
        bottom, base = np.zeros(len(edges) - 1), centres[row] + heights[row] / 2
        for style, part in stacked_fractions(view, row, edges).items():
            low, high = base - heights[row] * bottom, base - heights[row] * (bottom + part)
            axes.fill_between(
                edges,
                np.append(low, low[-1]),
                np.append(high, high[-1]),
                step="post",
                facecolor=style.fill,
                edgecolor=style.ink,
                hatch=style.hatch or None,
                linewidth=0,
            )
            bottom = bottom + part


def draw_labels(axes: Axes, timeline: Timeline, view: View, centres: NDArray[np.float64]) -> None:
    """Write a job's name on the longest span of its work in each row, where it fits."""
    inches_per_cycle = _AXES_INCHES / (view.end_cycle - view.start_cycle)
    placed = 0
    for row, _, job, indices in view.kinds():
        if job < 0 or placed >= _LABEL_LIMIT or is_unit(view.rows[row].kind) or len(view.rows) > 40:
            continue
        length = view.end[indices] - view.start[indices]
        widest = indices[np.argmax(length)]
        text, style = short(timeline.jobs[job]), job_style(view.colour_of(job))
        if length.max() * inches_per_cycle < 0.075 * len(text) + 0.08:
            continue
        axes.text(
            (view.start[widest] + view.end[widest]) / 2,
            centres[row],
            text,
            color=style.ink,
            ha="center",
            va="center_baseline",
            fontsize=7,
            parse_math=False,
            bbox={"facecolor": style.fill, "edgecolor": "none", "pad": 1.0} if style.hatch else None,
        )
        placed += 1
