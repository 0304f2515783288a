"""Matrices of the contract's cases, drawn as the contract says, and the checksum of results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.sparse.csr import Csr
from lstmsim.model.sparse.made import generator_states

#: The remainder of checksums is by this prime.
_PRIME = 1000003
_SKEWED = (1, 1, 2, 4)


def drawn_matrix(rows: int, columns: int, permille: int, seed: int, skew: bool = False) -> Csr:
    """A random matrix of whole numbers from -4 to 5 without 0."""
    # of each place up to two draws, of each row one
    draws = generator_states(seed, rows * (2 * columns + 1)).tolist()
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


def checksum(values: NDArray[Any]) -> int:
    """The checksum of a result of whole numbers: sum of (index + 1) * value in row-major order, mod 1000003.

    values: any shape and type; each must be a whole number.

    >>> checksum(np.array([[1.0, 2.0], [0.0, -1.0]]))
    1
    """
    flat = np.asarray(values).reshape(-1).astype(np.int64) % _PRIME
    weights = np.arange(1, len(flat) + 1, dtype=np.int64) % _PRIME
    return int((weights * flat % _PRIME).sum() % _PRIME)
