"""Floors of multiples of whole numbers, in arrays: exact, whatever the length of the numbers on the way.

A floor is computed in doubles where their error cannot change it, and in whole numbers where it could: that is about
one of a billion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["floors", "floors_of_sums"]

Ints = NDArray[np.int64]

#: Numbers are taken apart into high and low bits, so that sums of them stay within 64 bits.
_LOW_BITS = 26
#: Six roundings of at most 2^-53 of a value each lie between the double and the true value.
_ERROR = 2.0**-50
#: Doubles tell floors up to here from each other; what lies above is computed in whole numbers.
_MOST = 2.0**48
_MOST_START = 2**61


def floors(values: Ints, ratio: Fraction, start: int = 0) -> Ints:
    """Give start + floor(ratio * value) of each value.

    values: shape [values], from 0 below 2^62.
    ratio: at least 0.
    start: at least 0.
    The results are an array of Python's whole numbers if they may be too long for 64 bits.

    >>> floors(np.array([1, 2, 3]), Fraction(5, 3), start=100).tolist()
    [101, 103, 105]
    """
    low = (1 << _LOW_BITS) - 1
    return _floors(values >> _LOW_BITS, values & low, ratio, start, 0)


def floors_of_sums(blocks: Iterable[Ints], ratio: Fraction) -> Iterator[Ints]:
    """Give floor(ratio * the sum of all values so far) of each value, block by block.

    blocks: arrays of shape [values] with at most 2^26 values, from 0 below 2^62.
    ratio: at least 0.
    The results are arrays of Python's whole numbers if they may be too long for 64 bits.

    >>> [each.tolist() for each in floors_of_sums([np.array([1, 1]), np.array([3])], Fraction(5, 3))]
    [[1, 3], [8]]
    """
    before = 0
    for block in blocks:
        high, low = np.cumsum(block >> _LOW_BITS), np.cumsum(block & ((1 << _LOW_BITS) - 1))
        whole, rest = divmod(before * ratio.numerator, ratio.denominator)
        yield _floors(high, low, ratio, whole, rest)
        before += (int(high[-1]) << _LOW_BITS) + int(low[-1])


def _floors(high: Ints, low: Ints, ratio: Fraction, whole: int, rest: int) -> Ints:
    """whole + floor(ratio * (high and low bits together) + rest / the ratio's denominator) of each number."""
    upper, lower = ratio.numerator, ratio.denominator

    def exact(at: int) -> int:
        return whole + (rest + ((int(high[at]) << _LOW_BITS) + int(low[at])) * upper) // lower

    # what fits into no double takes a ratio that makes all too large for doubles
    scale = upper / lower if upper.bit_length() - lower.bit_length() < 64 else 2.0**64
    near = (high * 2.0**_LOW_BITS + low) * scale + rest / lower
    if whole > _MOST_START or near.max() >= _MOST:
        return np.array([exact(at) for at in range(len(near))], dtype=object)
    floor, error = np.floor(near), (near + 1) * _ERROR
    result: Ints = floor.astype(np.int64) + whole
    for at in np.flatnonzero((np.floor(near - error) != floor) | (np.floor(near + error) != floor)).tolist():
        result[at] = exact(at)
    return result
