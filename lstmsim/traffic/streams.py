"""Streams of random numbers that are the same on every machine, with every numpy, in however many processes.

A stream belongs to a key: whole numbers and words, such as (seed, job, number of the stream). SHA-256 of the key is
the key of the counter-based generator Philox4x64-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as
1, 2, 3; SC 2011). So no stream depends on another one, on the order in which numbers are drawn, or on the code that
draws them.

Of numpy only `Philox.random_raw` is used, whose 64-bit words are fixed by that publication (numpy's own
distributions may change with its version). Everything after the words is done here with whole numbers and with
additions, multiplications and divisions of IEEE 754 doubles, one at a time, which have one correct result each; the
logarithm is a series of such operations, because the last bit of a library's logarithm differs between libraries.

Floors of their multiples are exact, whatever the length of the numbers on the way: a floor is computed in doubles where
their error cannot change it, and in whole numbers where it could, which is about one of a billion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake

#: What names a stream: a seed and whatever tells this stream from the others of that seed.
StreamKey = tuple[int | str, ...]

#: Words that are drawn at a time; no result depends on it.
CHUNK = 4096

#: Exponential numbers are whole multiples of 1 / UNIT.
UNIT = 1 << 52

_LN2 = 0.6931471805599453
_SQRT_HALF = sqrt(0.5)
#: ln m = 2 (s + s^3 / 3 + s^5 / 5 + ...), s = (m - 1) / (m + 1). With m between sqrt(1/2) and sqrt(2), s^2 is below
#: 0.0295 and the first term left out below 2^-58 of the sum.
_TERMS = 11


def stream_words(key: StreamKey) -> tuple[int, int]:
    """Give the two 64-bit words that key the generator of a stream: the first 16 bytes of SHA-256, little-endian.

    Each part of the key goes in with its type and length, so that no two keys read alike.
    `InputError` for a key that holds anything else than whole numbers and words.
    """
    # imported here, so that code that draws no numbers need not load it
    from hashlib import sha256

    digest = sha256()
    for part in key:
        if isinstance(part, bool) or not isinstance(part, int | str):
            raise InputError(Mistake("key of a random stream", f"must hold whole numbers and words, got {part!r}"))
        text = str(part).encode("utf-8", "surrogatepass")
        kind = "s" if isinstance(part, str) else "i"
        digest.update(f"{kind}{len(text)}:".encode("ascii") + text)
    first = digest.digest()
    return int.from_bytes(first[:8], "little"), int.from_bytes(first[8:16], "little")


def words(key: StreamKey, chunk: int = CHUNK) -> Iterator[NDArray[np.uint64]]:
    """Give the words of a stream, endlessly, in arrays of shape [chunk]."""
    from numpy.random import Philox

    generator = Philox(counter=0, key=np.array(stream_words(key), dtype=np.uint64))
    while True:
        yield generator.random_raw(chunk)


def exponentials(key: StreamKey, chunk: int = CHUNK) -> Iterator[int]:
    """Draw independent exponential numbers of mean 1, in units of 1 / `UNIT`: -ln U, rounded down.

    U is an odd multiple of 2^-53 made of a word's upper 52 bits, so never 0 or 1. The largest number is 36.7.
    """
    for block in exponential_arrays(key, chunk):
        yield from block.tolist()


def exponential_arrays(key: StreamKey, chunk: int = CHUNK) -> Iterator[NDArray[np.int64]]:
    """Draw the same numbers as `exponentials`, in arrays of shape [chunk]."""
    for block in words(key, chunk):
        yield _negative_logs(block)


def below(key: StreamKey, bound: int, chunk: int = CHUNK) -> Iterator[int]:
    """Draw independent whole numbers 0 ... `bound` - 1, equally likely but for a bias of at most `bound` / 2^64.

    bound: from 1 to 2^63.
    """
    for block in below_arrays(key, bound, chunk):
        yield from block.tolist()


def below_arrays(key: StreamKey, bound: int, chunk: int = CHUNK) -> Iterator[NDArray[np.int64]]:
    """Draw the same numbers as `below`, in arrays of shape [chunk]."""
    for block in words(key, chunk):
        yield _upper_half(block, bound)


def _upper_half(block: NDArray[np.uint64], bound: int) -> NDArray[np.int64]:
    """Each word times `bound`, without the lower 64 bits of the 128: as products of halves, which fit into a word."""
    half, lower = np.uint64(32), np.uint64(2**32 - 1)
    high, low = block >> half, block & lower
    upper, under = np.uint64(bound >> 32), np.uint64(bound & (2**32 - 1))
    middle = high * under + (low * under >> half)
    other = low * upper + (middle & lower)
    result: NDArray[np.int64] = (high * upper + (middle >> half) + (other >> half)).astype(np.int64)
    return result


def _negative_logs(block: NDArray[np.uint64]) -> NDArray[np.int64]:
    """-ln U of each word in units of 1 / `UNIT`, as `exponentials` describes."""
    odd = (block >> np.uint64(12)) * np.uint64(2) + np.uint64(1)
    mantissa, exponent = np.frexp(odd.astype(np.float64))  # 53 bits: exact
    low = mantissa < _SQRT_HALF
    mantissa = np.where(low, 2 * mantissa, mantissa)
    s = (mantissa - 1) / (mantissa + 1)
    square = s * s
    series = np.full_like(s, 1 / (2 * _TERMS - 1))
    for term in range(_TERMS - 2, -1, -1):
        series = series * square
        series = series + 1 / (2 * term + 1)
    halvings = (53 - exponent + low).astype(np.float64)
    result: NDArray[np.int64] = ((halvings * _LN2 - 2 * s * series) * UNIT).astype(np.int64)
    return result


Ints = NDArray[np.int64]

#: Numbers are taken apart into high and low bits, so that sums of them stay within 64 bits.
_LOW_BITS = 26
#: Six roundings of at most 2^-53 of a value each lie between the double and the true value.
_ERROR = 2.0**-50
#: Doubles tell floors up to here from each other; what lies above is computed in whole numbers.
_MOST = 2.0**48
_MOST_START = 2**61


def floors(values: Ints, ratio: Fraction, start: int = 0) -> Ints:
    """Give start + floor(ratio * value) of each value from 0 below 2^62; ratio and start are at least 0.

    The results are an array of Python's whole numbers if they may be too long for 64 bits.
    """
    low = (1 << _LOW_BITS) - 1
    return _floors(values >> _LOW_BITS, values & low, ratio, start, 0)


def floors_of_sums(blocks: Iterable[Ints], ratio: Fraction) -> Iterator[Ints]:
    """Give floor(ratio * the sum of all values so far) of each value, block by block of at most 2^26 values."""
    before = 0
    for block in blocks:
        high, low = np.cumsum(block >> _LOW_BITS), np.cumsum(block & ((1 << _LOW_BITS) - 1))
        whole, rest = divmod(before * ratio.numerator, ratio.denominator)
        before += (int(high[-1]) << _LOW_BITS) + int(low[-1])
        made = _floors(high, low, ratio, whole, rest)
        # of a thousand streams all that lives until the next block is much
        del block, high, low
        yield made


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
