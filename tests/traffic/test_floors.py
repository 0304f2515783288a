"""Floors in arrays are those of fractions, also where doubles cannot tell."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from lstmsim.traffic.streams import floors, floors_of_sums

values = st.lists(st.one_of(st.integers(0, 40), st.integers(0, 2**62 - 1)), min_size=1, max_size=20)
wholes = st.one_of(st.integers(1, 40), st.integers(1, 2**80))
ratios = st.one_of(
    st.builds(Fraction, wholes, wholes), st.sampled_from([Fraction(0), Fraction(1, 2**52), Fraction(2**1100, 3)])
)


@given(values, ratios, st.one_of(st.integers(0, 9), st.integers(0, 2**62)))
@example([1, 2**53, 2**53 + 1], Fraction(1, 3), 0)
@example([3, 2**40, 2**47], Fraction(1, 3), 0)
@example([0, 0], Fraction(2**1100, 3), 0)
def test_floors_are_exact(numbers: list[int], ratio: Fraction, start: int) -> None:
    computed = floors(np.array(numbers), ratio, start)
    assert computed.tolist() == [start + int(ratio * number) for number in numbers]


@given(st.lists(values, min_size=1, max_size=4), ratios)
@example([[2**57] * 3, [1, 0, 5]], Fraction(1000, 2**52))
def test_floors_of_sums_are_exact_over_blocks(blocks: list[list[int]], ratio: Fraction) -> None:
    sums = accumulate(number for block in blocks for number in block)
    computed = floors_of_sums((np.array(block) for block in blocks), ratio)
    assert [number for block in computed for number in block.tolist()] == [int(ratio * total) for total in sums]


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(0, 10**9), st.integers(1, 9))
def test_a_floor_right_at_a_whole_number_is_exact(upper: int, lower: int, whole: int, off: int) -> None:
    """A double of such a number may lie below or above the whole number; these are numbers with and without a rest."""
    numbers = np.array([whole * lower - off, whole * lower, whole * lower + off])
    numbers = numbers[numbers >= 0]
    computed = floors(numbers, Fraction(upper, lower))
    assert computed.tolist() == [number * upper // lower for number in numbers.tolist()]
