"""Student's t against tables, batch means against their promise, warm-up and fairness."""

from __future__ import annotations

from math import pi, sqrt, tan
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.traffic.intervals import Interval, Warmup, batch_interval, jain, student_t, warmup_of
from lstmsim.traffic.streams import words

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
    interval = batch_interval(5.0, [1.0, 2.0, 3.0, 4.0])
    assert interval.value == 5.0
    assert interval.half_width == pytest.approx(3.182446 * sqrt(5 / 3 / 4), rel=1e-6)
    assert interval.correlation == pytest.approx(0.25)
    assert interval.scaled(2).half_width == pytest.approx(2 * interval.half_width)
    assert batch_interval(5.0, [1.0]) == Interval(5.0)
    assert not Interval(5.0).holds(5.0)
    assert batch_interval(5.0, [5.0] * 3) == Interval(5.0, 0.0, 3, 0.0)


def test_the_first_tenth_is_left_out_unless_something_else_is_given() -> None:
    assert warmup_of(5009) == Warmup("the first tenth of 5,009", 500)
    assert warmup_of(5009, given=0) == Warmup("given", 0)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20))
def test_jain_lies_between_one_of_n_and_one(shares: list[float]) -> None:
    assert 1 / len(shares) - 1e-9 <= jain(shares) <= 1 + 1e-9
    assert jain([3 * each for each in shares]) == pytest.approx(jain(shares))


def test_jain_by_hand() -> None:
    """Of n users, k share alike: k / n (Jain, Chiu, Hawe 1984)."""
    assert jain([5, 5, 5, 0]) == 0.75
    assert jain([1, 2, 3]) == pytest.approx(36 / 42)
    assert jain([0, 0]) == 1.0
