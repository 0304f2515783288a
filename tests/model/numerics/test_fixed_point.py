"""Integer operations against exact rational numbers, up to the widest operands and the farthest formats."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.model.numerics.fixed import multipliers
from lstmsim.model.numerics.fixed_point import LIMIT, QFormat, VectorFormat, combine, floored, saturate, shifted, wrap

HALF = Fraction(1, 2)
#: Raw numbers of the widest tail, with its extremes.
RAW = st.one_of(st.sampled_from([0, 1, -1, 2**23 - 1, -(2**23)]), st.integers(-(2**23), 2**23 - 1))
#: Fractions of formats: usual fractions, and fractions for values like 1e-30 and 1e30.
FRACTION = st.one_of(st.integers(-4, 24), st.integers(-130, 130))
REALS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 1e12, -1e12, 1e-30, -1e-30, 127.5, 255.0, 2.0**-1074]),
    st.floats(-1e12, 1e12, allow_subnormal=True),
)


def units(exact: Fraction, fraction: int) -> Fraction:
    """Give a real number in units of 2**-fraction."""
    return exact * Fraction(2) ** fraction


def stopped(value: int) -> int:
    return max(-LIMIT, min(value, LIMIT))


def rounded(exact: Fraction, fraction: int) -> int:
    """Round half up, and stop at the limit."""
    return stopped(math.floor(units(exact, fraction) + HALF))


def real(raw: int, fraction: int) -> Fraction:
    return raw * Fraction(2) ** -fraction


def array(*raw: int) -> np.ndarray:
    return np.array(raw, np.int64)


@given(st.lists(st.integers(-(2**61) + 1, 2**61 - 1), min_size=1, max_size=5), st.integers(-200, 200))
def test_shifts_are_exact_and_stop_at_the_limit(values: list[int], shift: int) -> None:
    expected = [rounded(Fraction(each), -shift) for each in values]
    assert shifted(array(*values), shift).tolist() == expected
    # Python's integers, and one shift per element, give the same.
    assert shifted(np.array(values, object), shift).tolist() == expected
    assert shifted(array(*values), np.full(len(values), shift)).tolist() == expected
    down = [stopped(math.floor(units(Fraction(each), -shift))) for each in values]
    assert floored(array(*values), shift).tolist() == down


@given(st.integers(-(2**80), 2**80), st.integers(-200, 200))
def test_shifts_of_numbers_beyond_int64(value: int, shift: int) -> None:
    assert shifted(np.array([value], object), shift).tolist() == [rounded(Fraction(value), -shift)]


@given(st.lists(st.integers(-(2**60), 2**60), min_size=1, max_size=8), st.integers(8, 40), st.data())
def test_wrapping_in_any_order_and_grouping_gives_the_same_bits(
    parts: list[int], bits: int, data: st.DataObject
) -> None:
    total = sum(parts) & ((1 << bits) - 1)
    expected = total - (1 << bits) if total >> (bits - 1) else total
    open_ = [wrap(array(each), bits) for each in parts]
    while len(open_) > 1:
        first = open_.pop(data.draw(st.integers(0, len(open_) - 1)))
        second = open_.pop(data.draw(st.integers(0, len(open_) - 1)))
        open_.append(wrap(first + second, bits))
    assert open_[0].tolist() == [expected]


@given(REALS.map(abs), st.integers(4, 24))
def test_a_format_is_the_finest_that_holds_its_largest(largest: float, bits: int) -> None:
    own = QFormat.of(largest, bits)
    raw, lost = own.held([largest, -largest])
    assert lost == 0
    if largest == 0:
        assert (own.fraction, raw.tolist()) == (bits - 1, [0, 0])
    else:
        assert round(units(Fraction(largest), own.fraction + 1)) > own.highest
        assert abs(Fraction(largest) - real(int(raw[0]), own.fraction)) <= real(1, own.fraction + 1)


@given(st.lists(REALS, min_size=1, max_size=4), st.integers(4, 24), FRACTION)
def test_real_numbers_are_held_rounded_half_to_even(values: list[float], bits: int, fraction: int) -> None:
    own = QFormat(bits, fraction)
    exact = [round(units(Fraction(each), fraction)) for each in values]
    raw, lost = own.held(values)
    assert raw.tolist() == [max(own.lowest, min(each, own.highest)) for each in exact]
    assert lost == sum(not own.lowest <= each <= own.highest for each in exact)
    assert [Fraction(each) for each in own.real(raw).tolist()] == [real(int(each), fraction) for each in raw]


@given(st.lists(REALS, min_size=1, max_size=4), st.integers(2, 16))
def test_vectors_use_their_whole_range_symmetrically(values: list[float], bits: int) -> None:
    largest = max(map(abs, values))
    own = VectorFormat.of(largest, bits, 16)
    raw, lost = own.held(values)
    assert lost == 0
    assert -own.lowest == own.highest == 2 ** (bits - 1) - 1
    if largest > 1e-290:
        assert np.abs(raw).max() == own.highest
    assert np.abs(own.real(raw) - values).max() <= float(own.scale) * 0.5000001
    beyond, lost = own.held([2.1 * float(own.scale) * own.highest, 0.0])
    assert (beyond.tolist(), lost) == ([own.highest, 0], 1)


@pytest.mark.parametrize("largest", [0.0, 2.0**-1074, 1e-300])
def test_a_vector_too_small_for_a_reciprocal_counts_as_zero(largest: float) -> None:
    own = VectorFormat.of(largest, 8, 16)
    assert float(own.scale) == 1
    assert own.held([largest])[0].tolist() == [0]


def test_saturation_counts_what_lies_outside() -> None:
    raw, lost = saturate(array(-9, -8, 0, 7, 8), QFormat(4, 0))
    assert (raw.tolist(), lost) == ([-8, -8, 0, 7, 7], 2)
    raw, lost = saturate(array(-8, -7, 7, 8), VectorFormat.of(1.0, 4, 16))
    assert (raw.tolist(), lost) == ([-7, -7, 7, 7], 2)


@given(
    st.one_of(st.floats(1e-60, 1e60), st.sampled_from([1.0, 2.0, 1 - 2**-53, 1e-30, 1e12])),
    FRACTION,
    st.integers(4, 20),
)
def test_multipliers_are_normalised_and_as_near_as_their_bits_allow(scale: float, fraction: int, bits: int) -> None:
    factor, shift = multipliers([scale, 0.0], fraction, bits)
    assert 2 ** (bits - 1) <= factor[0] < 2**bits
    assert factor[1] == 0
    exact = units(Fraction(scale), fraction)
    assert abs(real(int(factor[0]), int(shift[0])) / exact - 1) <= Fraction(1, 2**bits)


@given(RAW, FRACTION, RAW, FRACTION, FRACTION)
def test_two_operands_are_combined_exactly_and_rounded_once(a: int, fa: int, b: int, fb: int, fraction: int) -> None:
    first, second = real(a, fa), real(b, fb)
    exact = {
        "add": first + second,
        "subtract": first - second,
        "maximum": max(first, second),
        "minimum": min(first, second),
        "multiply": first * second,
    }
    for operation, value in exact.items():
        results = combine(operation, [(array(a), fa), (array(b), fb)], fraction)
        assert results.dtype == np.int64
        assert results.tolist() == [rounded(value, fraction)], operation
    results = combine("divide", [(array(a), fa), (array(b), fb)], fraction)
    if b:
        assert results.tolist() == [rounded(first / second, fraction)]
    else:
        assert results.tolist() == [LIMIT * ((a > 0) - (a < 0))]
    assert combine("relu", [(array(a), fa)], fraction).tolist() == [rounded(max(first, Fraction(0)), fraction)]


@given(RAW, FRACTION, FRACTION)
def test_reciprocal_square_roots_are_exactly_rounded(raw: int, own: int, fraction: int) -> None:
    root = int(combine("rsqrt", [(array(raw), own)], fraction)[0])
    if raw <= 0:
        assert root == LIMIT
        return
    square = 1 / units(real(raw, own), -2 * fraction)
    # The nearest integer to a root: half a unit below, its square is not above; half a unit above, it is.
    if root < LIMIT:
        assert (root + HALF) ** 2 > square
    assert root == 0 or (root - HALF) ** 2 <= square


@given(st.lists(st.tuples(st.lists(RAW, min_size=1, max_size=6), FRACTION), min_size=1, max_size=3), FRACTION)
def test_means_are_exact_sums_rounded_once(operands: list[tuple[list[int], int]], fraction: int) -> None:
    numbers = [real(raw, own) for several, own in operands for raw in several]
    given_ = [(array(*several), own) for several, own in operands]
    mean = sum(numbers) / Fraction(len(numbers))
    assert combine("mean", given_, fraction).tolist() == [rounded(mean, fraction)]
    square = sum(each**2 for each in numbers) / Fraction(len(numbers))
    assert combine("mean_square", given_, fraction).tolist() == [rounded(square, fraction)]


def test_the_mean_square_of_very_many_of_the_largest() -> None:
    widest = np.full(3 * 2**16 + 5, -(2**23))
    assert combine("mean_square", [(widest, 23)], 20).tolist() == [2**20]


@pytest.mark.parametrize("operation", ["add", "maximum", "multiply", "divide"])
def test_one_number_meets_many(operation: str) -> None:
    many = array(-7, 0, 12)
    results = combine(operation, [(many, 3), (array(4), 1)], 4)
    each = [int(combine(operation, [(array(own), 3), (array(4), 1)], 4)[0]) for own in many.tolist()]
    assert results.tolist() == each


@pytest.mark.parametrize("operation", ["add", "subtract", "maximum", "minimum", "divide"])
def test_the_widest_operands_of_formats_far_apart(operation: str) -> None:
    """If a shift to the finer format needs more than 64 bits, the result is still exact."""
    exact = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "maximum": max,
        "minimum": min,
        "divide": lambda a, b: a / b,
    }[operation]
    numbers = [(-(2**23), -(2**23)), (2**23 - 1, 2**23 - 1), (-(2**23), 2**23 - 1), (2**23 - 1, 1)]
    for (raw, other), apart in product(numbers, [*range(30, 48), 60, 64]):
        for own, far in [(0, apart), (apart, 0), (-apart, 0)]:
            for fraction in (0, apart // 2 - 20, apart, apart - 40):
                result = combine(operation, [(array(raw), own), (array(other), far)], fraction)
                value = Fraction(exact(real(raw, own), real(other, far)))
                assert result.tolist() == [rounded(value, fraction)], (raw, other, own, far, fraction)
