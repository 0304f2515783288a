"""Which set of a cache a line has: its number mod the sets, or an XOR of many bits (docs/multicore.md, section 9).

A block is as many lines as there are sets. Within a block each set has one line, hashed or not; a hash gives the lines
of each block another order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

#: How a last-level cache finds the set of a line.
HASHES = ("bits", "xor")
#: The polynomial 1, by which every rest is 0: nothing is hashed.
NO_HASH = 1


@lru_cache(maxsize=64)
def polynomial_for(kind: str, sets: int) -> int:
    """A polynomial over GF(2) without divisors, with the power of two in `sets` as its degree; bit i is x**i.

    It is the least from 2**degree times the golden ratio on. So about half of its bits are set, and high bits of a
    line's number reach all bits of its set. With few bits set, runs of lines a power of two apart would share sets.
    """
    degree = (sets & -sets).bit_length() - 1
    if kind == "bits" or not degree:
        return NO_HASH
    polynomial = (1 << degree) + isqrt(5 << 2 * degree) >> 1
    while any(not _rest(polynomial, by) for by in range(2, 1 << degree // 2 + 1)):
        polynomial += 1
    return polynomial


def _rest(number: int, by: int) -> int:
    """The rest of a division of polynomials."""
    degree = by.bit_length()
    while number.bit_length() >= degree:
        number ^= by << number.bit_length() - degree
    return number


def order_of_blocks(polynomial: int, blocks: int) -> NDArray[np.int64]:
    """Of each block of lines what the lowest bits of its sets are XORed with; shape (blocks,).

    It is the rest of x**degree times the block's number, so each bit of it is an XOR of bits of that number.
    """
    order = np.zeros(blocks, dtype=np.int64)
    image, bit = polynomial ^ (1 << polynomial.bit_length() - 1), 1
    while bit < blocks:
        order[bit : 2 * bit] = order[: min(bit, blocks - bit)] ^ image
        image, bit = _rest(image << 1, polynomial), 2 * bit
    return order


def sets_of(kind: str, sets: int, lines: int) -> Callable[[NDArray[np.int64]], NDArray[np.int64]]:
    """What gives the sets of lines."""
    order = order_of_blocks(polynomial_for(kind, sets), lines // sets + 1)

    def found(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        blocks, rest = np.divmod(numbers, sets)
        found: NDArray[np.int64] = rest ^ order[blocks]
        return found

    return found
