"""How many steps each request takes: descriptions of distributions, and the numbers that are drawn from them.

The numbers of an entry belong to its own stream (`lstmsim.traffic.streams`): its k-th request has the same number
whatever the chip, the rate and the other entries are, and whichever code draws. All is done in whole numbers, so it is
the same on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, count, cycle, repeat

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.traffic.arrivals import exact, positive
from lstmsim.traffic.streams import CHUNK, UNIT, StreamKey, below_arrays, exponential_arrays, floors

Ints = NDArray[np.int64]

#: Weights are shares of this many parts; a share below half a part is never drawn.
_PARTS = 1 << 63
#: Decimal digits of the scale that makes an exponential number a geometric one.
_DIGITS = 40


@record
class InOrder:
    """Known numbers come one after another, and again from the beginning where more are asked for.

    >>> from itertools import islice
    >>> list(islice(drawn_lengths(InOrder((10, 20))), 3))
    [10, 20, 10]
    """

    values: Sequence[int]

    def __post_init__(self) -> None:
        if not len(self.values):
            raise InputError(Mistake("list: values", "must hold at least one number"))


@record
class Weighted:
    """One of `values` is drawn each time, independent of earlier ones, in proportion to its weight.

    A value that is listed twice has the sum of its weights. Shares are kept in 63 bits.

    values: the numbers.
    weights: one for each value, not all 0; empty: all values are equally likely.
    bounds: sums of the weights as shares of 2^63; computed.

    >>> from itertools import islice
    >>> sorted(set(islice(drawn_lengths(Weighted((10, 20, 40), (3, 2, 0))), 100)))
    [10, 20]
    """

    values: Sequence[int]
    weights: tuple[float, ...] = ()
    bounds: tuple[int, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not len(self.values):
            raise InputError(Mistake("list: values", "must hold at least one number"))
        if self.weights and len(self.weights) != len(self.values):
            text = f"must hold as many numbers as values ({len(self.values)}), got {len(self.weights)}"
            raise InputError(Mistake("list: weights", text))
        wrong = [each for each in self.weights if not 0 <= each < float("inf")]
        if wrong:
            raise InputError(Mistake("list: weights", f"must be finite numbers of at least 0, got {wrong[0]}"))
        if self.weights and not any(self.weights):
            raise InputError(Mistake("list: weights", "must not all be 0"))
        sums = list(accumulate(exact(each) for each in self.weights))
        total = sums[-1] if sums else Fraction(1)
        object.__setattr__(self, "bounds", tuple(round(each / total * _PARTS) for each in sums))


@record
class Uniform:
    """A whole number from `low` to `high`, both included, is drawn: all equally likely, independent of earlier ones.

    >>> Uniform(5, 4)
    Traceback (most recent call last):
    lstmsim.InputError: uniform: high: must be at least low (5), got 4
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.high < self.low:
            raise InputError(Mistake("uniform: high", f"must be at least low ({self.low}), got {self.high}"))


@record
class Geometric:
    """A number 1, 2, ... `most` is drawn, each 1 - 1 / `mean` times as likely as the one below; draws are independent.

    This is the geometric distribution on 1, 2, ... whose mean is `mean`, given that the number is at most `most`; the
    mean of the drawn numbers is therefore below `mean`. (A geometric number has no memory: the remainder of N - 1 by
    `most` is distributed as N - 1 given N <= `most`, so nothing is drawn twice.)

    >>> from itertools import islice
    >>> numbers = list(islice(drawn_lengths(Geometric(20, 10_000), (1, "a")), 10_000))
    >>> min(numbers), round(sum(numbers) / len(numbers))
    (1, 20)
    """

    mean: float
    most: int

    def __post_init__(self) -> None:
        positive("geometric", mean=self.mean)
        if self.mean < 1:
            raise InputError(Mistake("geometric: mean", f"must be at least 1, got {self.mean}"))


#: How the steps of the requests of one entry are chosen.
Lengths = InOrder | Weighted | Uniform | Geometric


def drawn_lengths(description: Lengths, key: StreamKey = (0,)) -> Iterator[int]:
    """Give the numbers of one entry, endlessly; random numbers are those of the stream `key`."""
    if isinstance(description, InOrder):
        return cycle(description.values)
    return (number for block in length_arrays(description, key) for number in block.tolist())


def length_arrays(description: Lengths, key: StreamKey = (0,), chunk: int = CHUNK) -> Iterator[Ints]:
    """Give the same numbers as `drawn_lengths` in arrays of shape [chunk]."""
    match description:
        case InOrder(values):
            known = np.array(values, dtype=np.int64)
            return (known[np.arange(first, first + chunk) % len(known)] for first in count(0, chunk))
        case Uniform(low, high):
            return (low + more for more in below_arrays(key, high - low + 1, chunk))
        case Geometric(mean, most):
            return _geometric(mean, most, key, chunk)
        case Weighted(values, weights):
            known = np.array(values, dtype=np.int64)
            if not weights:
                return (known[places] for places in below_arrays(key, len(known), chunk))
            bounds = np.array(description.bounds, dtype=np.uint64)
            parts = (part.astype(np.uint64) for part in below_arrays(key, _PARTS, chunk))
            return (known[np.searchsorted(bounds, part, side="right")] for part in parts)


def possible(description: Lengths) -> Sequence[int]:
    """List the numbers that may come, each once, ascending."""
    match description:
        case Uniform(low, high):
            return range(low, high + 1)
        case Geometric(mean, most):
            return range(1, most + 1 if mean > 1 else 2)
        case InOrder(values) | Weighted(values):
            return sorted(set(values))


def shares(description: Lengths) -> dict[int, float]:
    """Give the share of all requests that has each number, by number, ascending.

    >>> shares(Weighted((40, 10, 40))), shares(Geometric(2, 2))
    ({10: 0.3333333333333333, 40: 0.6666666666666666}, {1: 0.6666666666666666, 2: 0.3333333333333333})
    """
    numbers = possible(description)
    match description:
        case Uniform():
            return dict.fromkeys(numbers, 1 / len(numbers))
        case Geometric(mean):
            weights = [(1 - 1 / mean) ** (number - 1) for number in numbers]
        case InOrder(values):
            weights = [float(times) for _, times in sorted(Counter(values).items())]
        case Weighted(values, given):
            sums = dict.fromkeys(numbers, 0.0)
            for value, weight in zip(values, given or repeat(1.0), strict=False):
                sums[value] += weight
            weights = list(sums.values())
    total = sum(weights)
    return {number: weight / total for number, weight in zip(numbers, weights, strict=True) if weight}


def _geometric(mean: float, most: int, key: StreamKey, chunk: int) -> Iterator[Ints]:
    """Draw floor(E / -ln q) of an exponential E of mean 1: it is k with probability q^k (1 - q), q = 1 - 1 / mean."""
    share = exact(mean)
    if share == 1:
        yield from repeat(np.ones(chunk, dtype=np.int64))
    with localcontext() as context:
        # a decimal logarithm is correctly rounded, so the same everywhere
        context.prec = _DIGITS
        tail = Decimal(share.numerator - share.denominator) / Decimal(share.numerator)
        scale = Fraction(-1 / tail.ln())
    for block in exponential_arrays(key, chunk):
        yield (floors(block, scale / UNIT) % most).astype(np.int64) + 1
