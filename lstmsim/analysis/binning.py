"""Spans summed exactly into equal windows of time: counter tracks and crowded pictures are made of these sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.timeline import MAIN, STATES, Timeline

__all__ = ["busy_windows", "covered_cycles", "window_edges"]

_BUSY = STATES.index("busy")


def window_edges(start: int, end: int, windows: int) -> NDArray[np.int64]:
    """Cut the cycles from `start` to `end` into about `windows` windows of equal whole length; the last may be shorter.

    Returns the edges of the windows, in cycles.

    >>> window_edges(0, 10, 4)
    array([ 0,  3,  6,  9, 10])
    """
    length = max(1, -(-(end - start) // windows))
    return np.append(np.arange(start, end, length, dtype=np.int64), np.int64(end))


def covered_cycles(start: NDArray[np.int64], end: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the cycles of each window that lie inside a span. Their sum is the total length of the spans.

    start, end: cycles of the spans; the spans are sorted and do not overlap.
    edges: cycles at which windows begin and end.

    >>> covered_cycles(np.array([0, 5]), np.array([2, 9]), np.array([0, 4, 8, 12]))
    array([2, 3, 1])
    """
    if not len(start):
        return np.zeros(len(edges) - 1, dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(end - start)])
    last = np.searchsorted(start, edges, side="right") - 1
    inside = np.minimum(edges, end[last]) - start[last]
    covered: NDArray[np.int64] = np.diff(np.where(last < 0, 0, before[last] + inside))
    return covered


def busy_windows(timeline: Timeline, edges: NDArray[np.int64]) -> dict[int, NDArray[np.float64]]:
    """For each core the fraction of each window, 0 to 1, in which the core's main unit issued.

    Of a unit with several ways it is the mean of the ways.
    """
    lengths = np.diff(edges)
    ways: dict[int, list[NDArray[np.float64]]] = {}
    for number, row in enumerate(timeline.rows):
        if row.kind == MAIN:
            mine = (timeline.row == number) & (timeline.state == _BUSY)
            own = covered_cycles(timeline.start[mine], timeline.end[mine], edges) / lengths
            ways.setdefault(row.core, []).append(own)
    return {core: own[0] if len(own) == 1 else np.mean(own, axis=0) for core, own in ways.items()}
