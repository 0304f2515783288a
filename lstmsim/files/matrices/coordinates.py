"""Entries of a matrix in the order of its file, before they are sorted into rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Coordinates", "mirrored", "sorted_entries"]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A matrix as a list of its entries.

    rows, columns: its size.
    row, column: shape (entries,); the place of each entry, from 0.
    values: shape (entries,); None: the file gives places alone.
    """

    rows: int
    columns: int
    row: NDArray[np.int32]
    column: NDArray[np.int32]
    values: NDArray[np.float64] | None


def mirrored(entries: Coordinates, sign: int) -> Coordinates:
    """The whole matrix of the entries on and below the diagonal.

    sign: 1 for a symmetric matrix, -1 for a skew-symmetric one.

    >>> lower = Coordinates(2, 2, np.array([1], np.int32), np.array([0], np.int32), np.array([3.0]))
    >>> whole = mirrored(lower, -1)
    >>> whole.row.tolist(), whole.column.tolist(), whole.values.tolist()
    ([1, 0], [0, 1], [3.0, -3.0])
    """
    off = entries.row != entries.column
    values = entries.values
    return Coordinates(
        entries.rows,
        entries.columns,
        np.concatenate([entries.row, entries.column[off]]),
        np.concatenate([entries.column, entries.row[off]]),
        None if values is None else np.concatenate([values, sign * values[off]]),
    )


def sorted_entries(entries: Coordinates) -> tuple[NDArray[np.int64], tuple[int, int] | None]:
    """Sort entries by row and column.

    The answer is the places of the entries in this order, and the places of two entries that stand in the same row and
    column, if there are such.

    >>> same = np.array([1, 0, 1], np.int32)
    >>> sorted_entries(Coordinates(2, 2, same, same, None))[1]
    (0, 2)
    """
    key = entries.row.astype(np.int64) * entries.columns + entries.column
    if len(key) < 2 or bool(np.all(key[1:] > key[:-1])):
        return np.arange(len(key)), None
    order = np.argsort(key, kind="stable")
    arranged = key[order]
    twice = np.flatnonzero(arranged[1:] == arranged[:-1])
    if len(twice):
        return order, (int(order[twice[0]]), int(order[twice[0] + 1]))
    return order, None
