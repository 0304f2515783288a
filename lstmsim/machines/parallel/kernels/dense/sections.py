"""Matrices whose rows come in sections with columns that are all zero: what a product need not read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sections", "columns_of_rows", "span_of_rows"]

#: Rows one behind the other: how many, and from and to which column they are not all zero.
Sections = tuple[tuple[int, int, int], ...]

Ints = NDArray[np.int64]


def columns_of_rows(sections: Sections) -> tuple[Ints, Ints]:
    """From and to which column each row is not all zero, shape (rows,) each.

    >>> low, high = columns_of_rows(((2, 0, 8), (1, 4, 8)))
    >>> low.tolist(), high.tolist()
    ([0, 0, 4], [8, 8, 8])
    """
    counts = [count for count, _, _ in sections]
    low, high = (np.repeat(np.array([each[place] for each in sections], dtype=np.int64), counts) for place in (1, 2))
    return low, high


def span_of_rows(sections: Sections, first: int, stop: int) -> tuple[int, int]:
    """From and to which column some rows are not all zero.

    first, stop: the rows from `first` to before `stop`.

    >>> span_of_rows(((2, 0, 8), (2, 4, 8)), 2, 9), span_of_rows(((2, 0, 8), (2, 4, 8)), 1, 3)
    ((4, 8), (0, 8))
    """
    at, lows, highs = 0, [], []
    for count, low, high in sections:
        if at < stop and at + count > first:
            lows.append(low)
            highs.append(high)
        at += count
    return min(lows, default=0), max(highs, default=0)
