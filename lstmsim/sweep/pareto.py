"""Which points nothing else beats, and where more hardware stops to pay."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["OBJECTIVES", "front", "knee", "marks"]

#: What a front makes small, all at once.
OBJECTIVES = ("makespan_cycles", "pes_used", "adders", "latency_ms_mean")


def front(costs: ArrayLike) -> NDArray[np.bool_]:
    """Which rows no other row beats: none is at most as large in every column and smaller in one.

    >>> front([[1, 5], [2, 2], [2, 3], [5, 1], [2, 2]]).tolist()
    [True, True, False, True, True]
    """
    table = np.asarray(costs, dtype=float)
    found = np.zeros(len(table), dtype=bool)
    if not len(table):
        return found
    distinct, inverse = np.unique(table, axis=0, return_inverse=True)
    # Sorted by columns: a row can only be beaten by one above it. Each kept row clears what it beats.
    best = np.zeros(len(distinct), dtype=bool)
    rest = np.arange(len(distinct))
    while len(rest):
        head, rest = rest[0], rest[1:]
        best[head] = True
        rest = rest[(distinct[rest] < distinct[head]).any(axis=1)]
    found[:] = best[inverse.reshape(-1)]
    return found


def knee(x: ArrayLike, y: ArrayLike) -> int | None:
    """The place of the knee of the front of (x, y): the point farthest below the line between the front's ends.

    Both axes are scaled to 0..1 between the ends. None if the front has no point below that line, or fewer than
    three points.

    >>> knee([1, 2, 3, 10], [10, 5, 2, 1])
    2
    >>> knee([1, 2], [2, 1]) is None
    True
    """
    points = np.column_stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
    chosen = np.flatnonzero(front(points))
    if not len(chosen):
        return None
    ends = points[chosen]
    low, span = ends.min(axis=0), np.ptp(ends, axis=0)
    if len(np.unique(ends, axis=0)) < 3 or not span.all():
        return None
    # Scaled, the line joins (0, 1) and (1, 0): the distance below it grows with 1 - x - y.
    # Rounded, so that of equally deep points the first is taken and not one that a last bit favours.
    depth = np.round(1 - ((ends - low) / span).sum(axis=1), 12)
    best = int(np.argmax(depth))
    return int(chosen[best]) if depth[best] > 0 else None


def marks(costs: Sequence[Sequence[float]], groups: Sequence[Hashable]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows on the front of `OBJECTIVES` and rows that are a knee (cycles against PEs), each within its group.

    >>> on_front, knees = marks([[9, 1, 1, 9], [3, 2, 2, 3], [2, 9, 9, 2], [5, 3, 3, 5]], ["a"] * 4)
    >>> on_front.tolist(), knees.tolist()
    ([True, True, True, False], [False, True, False, False])
    """
    table = np.asarray(costs, dtype=float).reshape(len(groups), len(OBJECTIVES))
    on_front, knees = np.zeros(len(table), dtype=bool), np.zeros(len(table), dtype=bool)
    members: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    for rows in members.values():
        own = np.array(rows)
        on_front[own] = front(table[own])
        best = knee(table[own, 1], table[own, 0])
        if best is not None:
            knees[own[best]] = True
    return on_front, knees
