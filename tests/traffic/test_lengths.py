"""Numbers of steps that are drawn: exact shares, the same everywhere, each entry by itself."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import islice
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.traffic.lengths import (
    Geometric,
    InOrder,
    Lengths,
    Uniform,
    Weighted,
    drawn_lengths,
    length_arrays,
    possible,
)
from lstmsim.traffic.streams import UNIT, exponentials, words

DRAWN = 20_000


def drawn(lengths: Lengths, count: int = DRAWN, key: tuple[int | str, ...] = (0, "a", 0, "steps")) -> list[int]:
    return list(islice(drawn_lengths(lengths, key), count))


def shares(lengths: Lengths) -> dict[int, Fraction]:
    """The probability of each number, worked out from its definition."""
    match lengths:
        case Uniform(low, high):
            weights = {number: Fraction(1) for number in range(low, high + 1)}
        case Geometric(mean, most):
            q = 1 - 1 / Fraction(str(mean))
            weights = {number: q ** (number - 1) for number in range(1, most + 1)}
        case Weighted(values, given_weights):
            weights = {}
            for value, weight in zip(values, given_weights or (1,) * len(values), strict=True):
                weights[value] = weights.get(value, Fraction(0)) + Fraction(str(weight))
        case InOrder():
            raise AssertionError
    total = sum(weights.values())
    return {number: weight / total for number, weight in weights.items()}


@pytest.mark.parametrize(
    "lengths",
    [
        Uniform(10, 14),
        Uniform(3, 3),
        Geometric(3, 8),
        Geometric(1.5, 200),
        Geometric(400, 5),  # nearly uniform: most of the geometric numbers are beyond 5
        Geometric(1, 9),
        Weighted((10, 20, 40), (3, 2, 1)),
        Weighted((40, 10, 20, 10)),
        Weighted((7, 8, 9), (0, 0.25, 0.1)),
    ],
    ids=str,
)
def test_numbers_come_in_their_shares(lengths: Lengths) -> None:
    expected, counts = shares(lengths), Counter(drawn(lengths))
    assert set(counts) <= {number for number, share in expected.items() if share}
    for number, share in expected.items():
        off = abs(counts[number] - DRAWN * share)
        assert off <= 4.5 * sqrt(DRAWN * share * (1 - share)), number
    assert set(counts) <= set(possible(lengths))
    assert (possible(lengths)[0], possible(lengths)[-1]) == (min(possible(lengths)), max(possible(lengths)))


def test_numbers_are_those_of_the_first_version() -> None:
    """A change here changes the results of every scenario with drawn steps."""
    assert drawn(Uniform(10, 50), 6) == [22, 16, 42, 47, 27, 25]
    assert drawn(Geometric(20, 200), 6) == [24, 36, 5, 2, 17, 20]
    assert drawn(Weighted((10, 20, 40), (3, 2, 1)), 6) == [10, 10, 20, 40, 10, 10]
    assert drawn(Weighted((10, 20, 40)), 6) == [10, 10, 40, 40, 20, 20]


@given(st.integers(1, 40), st.integers(0, 200))
def test_no_number_is_outside(most: int, seed: int) -> None:
    assert all(1 <= each <= most for each in drawn(Geometric(1 + seed / 3, most), 40, (seed,)))


def test_known_numbers_begin_again() -> None:
    assert drawn(InOrder([5, 3]), 5) == [5, 3, 5, 3, 5]
    assert possible(InOrder([5, 3, 5])) == [3, 5]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Uniform(5, 4), r"uniform: high: must be at least low \(5\), got 4"),
        (lambda: Geometric(0.5, 9), "geometric: mean: must be at least 1, got 0.5"),
        (lambda: Geometric(float("nan"), 9), "geometric: mean: must be a finite number above 0, got nan"),
        (lambda: Weighted(()), "list: values: must hold at least one number"),
        (lambda: InOrder([]), "list: values: must hold at least one number"),
        (lambda: Weighted((1, 2), (1,)), r"list: weights: must hold as many numbers as values \(2\), got 1"),
        (lambda: Weighted((1, 2), (1, -1)), "list: weights: must be finite numbers of at least 0, got -1"),
        (lambda: Weighted((1, 2), (0, 0)), "list: weights: must not all be 0"),
    ],
)
def test_what_makes_no_sense_is_refused(make: object, sentence: str) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=sentence):
        make()


def test_arrays_hold_the_numbers_that_whole_numbers_give() -> None:
    """Each number is worked out from its word as its description says, in numbers of any length."""
    key = (3, "a", 0, "steps")
    drawn_words = np.concatenate(list(islice(words(key, 500), 4))).tolist()
    times = list(islice(exponentials(key), 2000))
    parts = [word >> 1 for word in drawn_words]
    weighted = Weighted((7, 8, 9), (1, 0.25, 0.1))
    with localcontext() as context:
        context.prec = 40
        scale = Fraction(-1 / (Decimal(19) / Decimal(20)).ln())
    expected = {
        Uniform(5, 5000): [5 + (word * 4996 >> 64) for word in drawn_words],
        Uniform(1, 2**62): [1 + (word >> 2) for word in drawn_words],
        weighted: [weighted.values[bisect_right(weighted.bounds, part)] for part in parts],
        Weighted((7, 8, 9)): [7 + (word * 3 >> 64) for word in drawn_words],
        Geometric(20, 50): [time * scale.numerator // (scale.denominator * UNIT) % 50 + 1 for time in times],
        InOrder((4, 5, 6)): [4 + place % 3 for place in range(2000)],
    }
    for lengths, numbers in expected.items():
        assert drawn(lengths, 2000, key) == numbers
        for chunk in (7, 500):
            blocks = islice(length_arrays(lengths, key, chunk), 2000 // chunk)
            assert np.concatenate(list(blocks)).tolist() == numbers[: 2000 // chunk * chunk]
