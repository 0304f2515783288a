"""Test data that anyone can draw again: matrices from a small generator, and a checksum of results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.sparse.csr import Csr

__all__ = ["checksum", "drawn_dense", "drawn_lengths", "drawn_matrix", "drawn_rows"]

_FACTOR, _STEP, _MASK = 1103515245, 12345, 2**31 - 1
#: The remainder of checksums is by this prime.
_PRIME = 1000003
_SKEWED = (1, 1, 2, 4)


def drawn_matrix(rows: int, columns: int, permille: int, seed: int, skew: bool = False) -> Csr:
    """A random matrix of whole numbers from -4 to 5 without 0.

    rows, columns: its size.
    permille: how many of 1000 places have an entry.
    seed: where the generator starts.
    skew: whether rows are unlike: half of them have half as many entries, a quarter of them twice as many.

    >>> drawn_matrix(2, 4, 500, 3).dense()
    array([[-3,  0,  2,  0],
           [-4,  0, -1, -2]])
    """
    # of each place up to two draws, of each row one
    draws = _states(seed, rows * (2 * columns + 1)).tolist()
    at = 0
    row_ptr, cols, values = [0], [], []
    for _ in range(rows):
        share = permille
        if skew:
            share = permille * _SKEWED[draws[at] % 4] // 2
            at += 1
        for column in range(columns):
            at += 1
            if draws[at - 1] % 1000 < share:
                cols.append(column)
                values.append(draws[at] % 9 - 4 or 5)
                at += 1
        row_ptr.append(len(cols))
    return Csr(rows, columns, np.array(row_ptr), np.array(cols, np.int64), np.array(values, np.int64))


def drawn_lengths(rows: int, columns: int, mean: int, deviation: float, seed: int) -> NDArray[np.int64]:
    """Lengths of rows, normally distributed, that add up to rows * mean.

    rows, columns: of the matrix.
    mean: entries of a row, at most `columns`.
    deviation: standard deviation of the lengths over their mean, before they are rounded and cut.
    seed: of the generator.

    >>> lengths = drawn_lengths(100, 40, 10, 0.3, 2)
    >>> int(lengths.sum()), bool(2 < lengths.std() < 4)
    (1000, True)
    """
    draw = np.random.default_rng(seed)
    lengths = np.clip(np.rint(draw.normal(mean, deviation * mean, rows)), 0, columns).astype(np.int64)
    while (left := rows * mean - int(lengths.sum())) != 0:
        row, step = int(draw.integers(rows)), 1 if left > 0 else -1
        if 0 <= lengths[row] + step <= columns:
            lengths[row] += step
    return lengths


def drawn_rows(lengths: NDArray[np.int64], columns: int, seed: int) -> Csr:
    """A matrix of ones whose rows have these lengths; columns uniformly random.

    lengths: shape (rows,).
    columns: of the matrix.
    seed: of the generator.

    >>> drawn_rows(np.array([2, 0, 1]), 4, 1).lengths.tolist()
    [2, 0, 1]
    """
    draw = np.random.default_rng(seed)
    chosen = [np.sort(draw.choice(columns, each, replace=False)) for each in lengths.tolist()]
    cols = np.concatenate([np.zeros(0, np.int64), *chosen])
    return Csr(len(lengths), columns, np.append(0, np.cumsum(lengths)), cols, np.ones(len(cols), np.int64))


def drawn_dense(rows: int, columns: int, seed: int) -> NDArray[np.int64]:
    """A random matrix of whole numbers from -4 to 4, shape (rows, columns).

    >>> drawn_dense(1, 4, 5)
    array([[ 1,  1, -3, -1]])
    """
    return (_states(seed, rows * columns) % 9 - 4).reshape(rows, columns)


def checksum(values: NDArray[Any]) -> int:
    """The checksum of a result of whole numbers: sum of (index + 1) * value in row-major order, mod 1000003.

    values: any shape and type; each must be a whole number.

    >>> checksum(np.array([[1.0, 2.0], [0.0, -1.0]]))
    1
    """
    flat = np.asarray(values).reshape(-1).astype(np.int64) % _PRIME
    weights = np.arange(1, len(flat) + 1, dtype=np.int64) % _PRIME
    return int((weights * flat % _PRIME).sum() % _PRIME)


def _states(seed: int, count: int) -> NDArray[np.int64]:
    """What the generator gives in its first steps, before a draw takes a remainder of it."""
    states = np.empty(max(1, count), np.uint64)
    states[0] = (_FACTOR * seed + _STEP) & _MASK
    factor, step, known = _FACTOR, _STEP, 1
    while known < count:
        # `factor` and `step` go `known` steps at once
        more = min(known, count - known)
        states[known : known + more] = (states[:more] * np.uint64(factor) + np.uint64(step)) & np.uint64(_MASK)
        factor, step, known = factor * factor & _MASK, (factor * step + step) & _MASK, known + more
    return (states[:count] >> np.uint64(8)).astype(np.int64)
