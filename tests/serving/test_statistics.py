"""Student's t against tables, batch means against their promise, warm-up and fairness."""

from __future__ import annotations

from fractions import Fraction
from math import pi, sqrt, tan
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.errors import InputError
from lstmsim.serving.statistics import MSER_LEAST, Interval, Warmup, batch_interval, jain, mser5, student_t, warmup_of
from lstmsim.serving.streams import words

#: Abramowitz and Stegun, table 26.10.
TABLE = [
    (0.95, 1, 12.706),
    (0.95, 2, 4.303),
    (0.95, 4, 2.776),
    (0.95, 9, 2.262),
    (0.95, 15, 2.131),
    (0.95, 19, 2.093),
    (0.95, 30, 2.042),
    (0.95, 120, 1.980),
    (0.90, 5, 2.015),
    (0.99, 1, 63.657),
    (0.99, 10, 3.169),
    (0.99, 29, 2.756),
]


@pytest.mark.parametrize(("confidence", "degrees", "t"), TABLE)
def test_t_is_that_of_the_tables(confidence: float, degrees: int, t: float) -> None:
    assert student_t(confidence, degrees) == pytest.approx(t, abs=0.0006)


@given(st.floats(0.01, 0.999))
def test_t_where_it_has_a_closed_form(confidence: float) -> None:
    assert student_t(confidence, 1) == pytest.approx(tan(pi * confidence / 2), rel=1e-9)
    assert student_t(confidence, 2) == pytest.approx(confidence * sqrt(2 / (1 - confidence**2)), rel=1e-9)
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    assert student_t(confidence, 10_000_000) == pytest.approx(normal, rel=1e-5)


@pytest.mark.parametrize(("confidence", "degrees"), [(0, 5), (1, 5), (float("nan"), 5), (0.9, 0)])
def test_no_t_without_confidence(confidence: float, degrees: int) -> None:
    with pytest.raises(InputError, match="degree of freedom"):
        student_t(confidence, degrees)


def test_intervals_hold_the_mean_as_often_as_they_say() -> None:
    """2,000 samples of 16 numbers: 95 % of the intervals, within four standard deviations."""
    numbers = np.concatenate([block for block, _ in zip(words((1, "normal")), range(8), strict=False)])[:32_000]
    normal = [NormalDist().inv_cdf((int(word) + 0.5) / 2**64) for word in numbers]
    held = sum(
        batch_interval(sum(sample) / 16, sample).holds(0.0)
        for sample in (normal[start : start + 16] for start in range(0, 32_000, 16))
    )
    assert abs(held / 2000 - 0.95) < 4 * sqrt(0.95 * 0.05 / 2000)


def test_interval_by_hand() -> None:
    found = batch_interval(5.0, [1.0, 2.0, 3.0, 4.0])
    assert found.value == 5.0
    assert found.half_width == pytest.approx(3.182446 * sqrt(5 / 3 / 4), rel=1e-6)
    assert found.correlation == pytest.approx(0.25)
    assert found.scaled(2).half_width == pytest.approx(2 * found.half_width)
    assert batch_interval(5.0, [1.0]) == Interval(5.0)
    assert not Interval(5.0).holds(5.0)
    assert batch_interval(5.0, [5.0] * 3) == Interval(5.0, 0.0, 3, 0.0)


def reference_mser5(values: list[int]) -> int:
    means = [Fraction(sum(values[start : start + 5]), 5) for start in range(0, len(values) - len(values) % 5, 5)]
    errors = []
    for dropped in range(len(means) - 5):
        rest = means[dropped:]
        mean = sum(rest) / len(rest)
        errors.append(sum((each - mean) ** 2 for each in rest) / len(rest) ** 2)
    return 5 * errors.index(min(errors))


@given(st.lists(st.integers(0, 10**6), min_size=MSER_LEAST, max_size=200))
def test_warmup_is_that_of_the_definition(values: list[int]) -> None:
    expected, found = reference_mser5(values), mser5(np.array(values))
    if expected <= 5 * (len(values) // 5 // 2):
        assert found == expected
    else:
        assert found is None


def test_a_slow_start_is_cut_off() -> None:
    noise = (next(words((1, "noise"), 5000)) >> np.uint64(54)).astype(np.int64)
    start = (50_000 * np.exp(-np.arange(5000) / 100)).astype(np.int64)
    slow, steady = warmup_of(noise + start), warmup_of(noise)
    assert slow.mser5 is not None
    assert 300 <= slow.mser5 <= 800
    assert slow.requests == steady.requests == 500
    assert slow.settled == (slow.mser5 <= 500)
    assert steady.settled
    assert warmup_of(noise, given=0) == Warmup("given", 0, steady.mser5)


def test_a_run_that_only_grows_never_settles() -> None:
    assert mser5(np.arange(10_000)) is None
    assert mser5(np.arange(MSER_LEAST - 1) % 2) is None
    assert mser5(np.arange(MSER_LEAST) % 2) is not None
    assert not warmup_of(np.arange(10_000)).settled


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20))
def test_jain_lies_between_one_of_n_and_one(shares: list[float]) -> None:
    assert 1 / len(shares) - 1e-9 <= jain(shares) <= 1 + 1e-9
    assert jain([3 * each for each in shares]) == pytest.approx(jain(shares))


def test_jain_by_hand() -> None:
    """Of n users, k share alike: k / n (Jain, Chiu, Hawe 1984)."""
    assert jain([5, 5, 5, 0]) == 0.75
    assert jain([1, 2, 3]) == pytest.approx(36 / 42)
    assert jain([0, 0]) == 1.0
