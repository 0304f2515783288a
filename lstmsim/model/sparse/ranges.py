"""Rows that have several entries each: where a row's entries begin, and how rows are taken or laid in another order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["firsts", "regrouped", "spans"]

Ints = NDArray[np.int64]
Narrow = NDArray[np.int32]


def firsts(counts: NDArray[np.signedinteger]) -> Ints:
    """Where each row's entries begin, and where the last one's end: shape (rows + 1,).

    counts: shape (rows,); entries of each row.

    >>> firsts(np.array([2, 0, 1])).tolist()
    [0, 2, 2, 3]
    """
    first = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=first[1:])
    return first


def spans(starts: Ints, lengths: NDArray[np.signedinteger]) -> Ints:
    """The numbers from each start on, one span behind the other.

    starts, lengths: shape (spans,).

    >>> spans(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    numbers = np.repeat(starts - (ends - lengths), lengths)
    numbers += np.arange(total)
    return numbers


def regrouped(
    rows: Sequence[Ints], counts: Sequence[Narrow], columns: Sequence[Sequence[Narrow]], n: int
) -> tuple[Ints, list[Narrow]]:
    """Entries of rows that come in several parts and in any order, laid out row after row.

    rows: for each part, shape (r,); the rows that it has.
    counts: for each part, shape (r,); how many entries each row has.
    columns: for each column of the entries, for each part, shape (sum of counts,).
    n: rows in all; those that no part has are empty.

    Returns where each row begins (as `firsts`), and the columns.

    >>> first, (column,) = regrouped([np.array([2, 0])], [np.array([1, 2])], [[np.array([7, 8, 9])]], 3)
    >>> first.tolist(), column.tolist()
    ([0, 2, 2, 3], [8, 9, 7])
    """
    every = np.zeros(n, np.int32)
    for row, count in zip(rows, counts, strict=True):
        every[row] = count
    first = firsts(every)
    laid = [np.empty(int(first[-1]), np.int32) for _ in columns]
    for part, (row, count) in enumerate(zip(rows, counts, strict=True)):
        where = spans(first[row], count)
        for column, out in zip(columns, laid, strict=True):
            out[where] = column[part]
    return first, laid
