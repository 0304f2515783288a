"""Sums as lanes make them: term by term, each addition rounded on its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["add_in_order", "tree"]

Values = NDArray[Any]
Ints = NDArray[np.int64]
#: With fewer sums than this still going on, each is finished on its own.
_FEW = 24
_AT_ONCE = 1 << 14


def add_in_order(sums: Values, first: Ints, term: Callable[[Ints], Values]) -> None:
    """Add to each sum its terms, one after the other.

    sums: shape (n,) or (n, width); changed in place.
    first: shape (n + 1,); sum i gets the terms from `first[i]` to `first[i + 1]`.
    term: gives the terms of some numbers, shape (numbers,) or (numbers, width), of the type of the sums.

    >>> sums, terms = np.zeros(2, np.float32), np.array([1e8, 1, -1e8, 2], np.float32)
    >>> add_in_order(sums, np.array([0, 3, 4]), lambda numbers: terms[numbers])
    >>> sums
    array([0., 2.], dtype=float32)
    """
    lengths = np.diff(first)
    order = np.argsort(-lengths, kind="stable")
    begins, falling = first[:-1][order], -lengths[order]
    # so many sums have more than k terms, k = 0, 1, ..
    longest = int(-falling[0]) if len(falling) else 0
    work = sums[order]
    step = 0
    while step < longest:
        going = int(np.searchsorted(falling, -step, "left"))
        if going < _FEW:
            break
        work[:going] += term(begins[:going] + step)
        step += 1
    for which in range(int(np.searchsorted(falling, -step, "left")) if step < longest else 0):
        end = int(begins[which] - falling[which])
        for start in range(int(begins[which]) + step, end, _AT_ONCE):
            terms = term(np.arange(start, min(start + _AT_ONCE, end), dtype=np.int64))
            terms[0] += work[which]
            # unlike a sum, what accumulates gives every sum on the way, and so adds in order
            work[which] = np.add.accumulate(terms, axis=0)[-1]
    sums[order] = work


def tree(lanes: Values) -> Values:
    """The sum that lanes side by side make by halves: lane l gets that of lane l + h, for h = half, quarter, .. 1.

    lanes: shape (.., L), L a power of two; kept as it is.

    Gives shape (..,).

    >>> tree(np.array([[1, 2, 3, 4]])).tolist()
    [10]
    """
    half = lanes.shape[-1] // 2
    while half:
        lanes = lanes[..., :half] + lanes[..., half : 2 * half]
        half //= 2
    result: Values = lanes[..., 0]
    return result
