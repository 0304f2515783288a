"""Dense matrices that are drawn by a seed, and how far their product is from one that numpy computes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[Any]

#: Drawn integers are from -8 to 8: a sum of so many of their products as memory could hold is exact in 53 bits.
_MOST = 8
#: Numbers of B that are compared at once.
_AT_ONCE = 1 << 22


def drawn_matrices(m: int, n: int, k: int, kind: str, seed: int) -> tuple[Matrix, Matrix]:
    """Draw A of shape (m, k) and B of shape (k, n) by a seed.

    kind: numpy's name of the type. Floating point is from the normal distribution, whole numbers are from -8 to 8.
    """
    draw = np.random.default_rng([seed, 17])
    shapes = ((m, k), (k, n))
    if np.dtype(kind).kind == "i":
        left, right = (draw.integers(-_MOST, _MOST, shape, kind, endpoint=True) for shape in shapes)
    else:
        left, right = (draw.standard_normal(shape).astype(kind) for shape in shapes)
    return left, right


def same_integers(a: Matrix, b: Matrix, c: Matrix) -> bool:
    """Whether C is exactly A B, for drawn integers."""
    # whole numbers have no fast product in numpy; in floating point these are exact
    left = a.astype(np.float64)
    return all(np.array_equal(left @ b[:, some].astype(np.float64), c[:, some]) for some in _columns(b))


def largest_error(a: Matrix, b: Matrix, c: Matrix) -> float:
    """The largest difference of C from A B in 64-bit floating point, relative to the sum of the products' sizes."""
    left, worst = a.astype(np.float64), 0.0
    for some in _columns(b):
        right = b[:, some].astype(np.float64)
        sizes = np.abs(left) @ np.abs(right)
        errors = np.abs(c[:, some] - left @ right) / np.where(sizes > 0, sizes, 1.0)
        worst = max(worst, float(errors.max(initial=0)))
    return worst


def _columns(b: Matrix) -> list[slice]:
    """Columns of B, as many at a time as need little room."""
    wide = max(1, _AT_ONCE // b.shape[0])
    return [slice(start, start + wide) for start in range(0, b.shape[1], wide)]


def digest(matrix: Matrix) -> str:
    """The SHA-256 of the bytes of a matrix, row by row: two results are the same bit by bit if it is the same."""
    from hashlib import sha256

    return sha256(np.ascontiguousarray(matrix).tobytes()).hexdigest()
