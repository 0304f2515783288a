"""Which points no other point beats, and where more hardware stops to pay."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["front", "knee", "marks"]

Costs = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Pairs of rows that are compared one by one: smaller parts cost more than they save.
_FEW_PAIRS = 4096


def front(costs: ArrayLike) -> Flags:
    """Say which rows no other row beats: no row is at most as large in every column and smaller in one.

    Equal rows are all on the front or all off it. A row with a NaN is not on it and beats none.

    n rows of c columns take about n * log(n) ** max(1, c - 2) steps: halves are taken apart and compared in fewer
    columns (Kung, Luccio and Preparata, On finding the maxima of a set of vectors, Journal of the ACM 22, 1975).

    costs: rows of numbers to be made small, shape [rows, columns].

    >>> front([[1, 5], [2, 2], [2, 3], [5, 1], [2, 2], [0, float("nan")]]).tolist()
    [True, True, False, True, True, False]
    """
    table = np.asarray(costs, dtype=float)
    chosen = np.zeros(len(table), dtype=bool)
    known = np.flatnonzero(~np.isnan(table).any(axis=1)) if len(table) else chosen.nonzero()[0]
    if not len(known):
        return chosen
    # Sorted by columns, each once: a row can only be beaten by one above it.
    distinct, inverse = np.unique(table[known], axis=0, return_inverse=True)
    best = np.zeros(len(distinct), dtype=bool)
    best[_unbeaten(distinct, np.arange(len(distinct)))] = True
    chosen[known] = best[inverse.reshape(-1)]
    return chosen


def _unbeaten(table: Costs, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows that no other of them beats; `rows` are sorted and distinct."""
    if len(rows) < 2:
        return rows
    if table.shape[1] <= 2:
        last = table[rows, -1]
        least = np.minimum.accumulate(last)
        first = np.concatenate([[True], last[1:] < least[:-1]])
        # Of one column only the very first row is the smallest.
        return rows[first] if table.shape[1] == 2 else rows[:1]
    if len(rows) ** 2 <= _FEW_PAIRS:
        own = table[rows]
        # Every row is as large as itself; any other such row beats it.
        smaller = (own[:, None, :] <= own[None, :, :]).all(axis=2).sum(axis=0)
        return rows[np.flatnonzero(smaller == 1)]
    half = len(rows) // 2
    upper, lower = _unbeaten(table, rows[:half]), _unbeaten(table, rows[half:])
    return np.concatenate([upper, lower[~_reached(table[upper, 1:], table[lower, 1:])]])


def _reached(upper: Costs, lower: Costs) -> Flags:
    """For each row of `lower`, whether some row of `upper` is at most as large in every column."""
    if not len(upper) or not len(lower):
        return np.zeros(len(lower), dtype=bool)
    width = upper.shape[1]
    if width == 1:
        return np.asarray(lower[:, 0] >= upper[:, 0].min())
    if width == 2:
        order = np.lexsort((upper[:, 1], upper[:, 0]))
        least = np.concatenate([[np.inf], np.minimum.accumulate(upper[order, 1])])
        before = np.searchsorted(upper[order, 0], lower[:, 0], side="right")
        return np.asarray((before > 0) & (least[before] <= lower[:, 1]))
    if len(upper) * len(lower) <= _FEW_PAIRS:
        return np.asarray((upper[:, None, :] <= lower[None, :, :]).all(axis=2).any(axis=0))
    return _reached_by_halves(upper, lower)


def _reached_by_halves(upper: Costs, lower: Costs) -> Flags:
    """`_reached` of many rows: split by the last column, which tells nothing more between a low and a high half."""
    values = np.unique(np.concatenate([upper[:, -1], lower[:, -1]]))
    if len(values) == 1:
        return _reached(upper[:, :-1], lower[:, :-1])
    middle = values[(len(values) - 1) // 2]
    high_upper, high_lower = upper[:, -1] > middle, lower[:, -1] > middle
    reached = np.zeros(len(lower), dtype=bool)
    reached[~high_lower] = _reached(upper[~high_upper], lower[~high_lower])
    reached[high_lower] = _reached(upper[high_upper], lower[high_lower])
    left = np.flatnonzero(high_lower & ~reached)
    reached[left] = _reached(upper[~high_upper, :-1], lower[left, :-1])
    return reached


def knee(x: ArrayLike, y: ArrayLike) -> int | None:
    """Find the knee of the front of (x, y): the place of the point farthest below the line between the front's ends.

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
    if len(np.unique(ends, axis=0)) < 3 or not span.all() or not np.isfinite(span).all():
        return None
    # Scaled, the line joins (0, 1) and (1, 0): the distance below it grows with 1 - x - y.
    # Rounded, so that of equally deep points the first is taken and not one that a last bit favours.
    depth = np.round(1 - ((ends - low) / span).sum(axis=1), 12)
    best = int(np.argmax(depth))
    return int(chosen[best]) if depth[best] > 0 else None


def marks(costs: Sequence[Sequence[float]], groups: Sequence[Hashable]) -> tuple[Flags, Flags]:
    """Find the rows on the front of all columns, and the knees of the first two, each within its group.

    The knee is a row of the front. Rows of one column have no knee.

    costs: rows of numbers to be made small.
    groups: the group of each row.

    >>> on_front, knees = marks([[1, 9], [2, 3], [9, 2], [3, 5]], ["a"] * 4)
    >>> on_front.tolist(), knees.tolist()
    ([True, True, True, False], [False, True, False, False])
    """
    table = np.asarray(costs, dtype=float).reshape(len(groups), len(costs[0]) if groups else 0)
    on_front, knees = np.zeros(len(table), dtype=bool), np.zeros(len(table), dtype=bool)
    members: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    for rows in members.values():
        own = np.array(rows)
        on_front[own] = front(table[own])
        best = own[on_front[own]]
        place = knee(table[best, 0], table[best, 1]) if table.shape[1] > 1 and len(best) else None
        if place is not None:
            knees[best[place]] = True
    return on_front, knees
