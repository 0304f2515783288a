"""Arrivals: whole cycles that never go back, exact on paper, with the gaps that their description promises."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction
from itertools import islice, pairwise
from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.traffic.arrivals import (
    MAX_CYCLE,
    Bursty,
    Fixed,
    OpenArrivals,
    Periodic,
    Poisson,
    Stream,
    Timestamps,
    arrival_arrays,
    arrivals,
)
from lstmsim.traffic.streams import UNIT, exponentials
from tests.traffic.clients import deadlines

numbers = st.floats(1e-3, 1e6)
descriptions = st.one_of(
    st.builds(Fixed, st.integers(0, 10**9), st.integers(0, 10**9)),
    st.integers(1, 10**9).flatmap(lambda most: st.builds(Periodic, st.just(most), st.integers(0, most))),
    st.builds(Poisson, numbers),
    st.builds(Bursty, st.floats(1, 1e6), st.floats(1, 1e3), st.floats(1e-3, 1e3)),
    st.builds(Stream, numbers, st.integers(0, 10**9)),
    st.builds(lambda cycles: Timestamps(tuple(sorted(cycles))), st.lists(st.integers(0, MAX_CYCLE), min_size=60)),
)


@given(descriptions, st.floats(0.1, 1e4), st.integers(0, 9))
def test_arrivals_never_go_back_and_are_the_same_again(description: OpenArrivals, mhz: float, seed: int) -> None:
    cycles = list(arrivals(description, 60, mhz, (seed, "job")))
    assert len(cycles) == 60
    assert cycles == sorted(cycles)
    assert cycles[0] >= 0
    assert all(type(cycle) is int for cycle in cycles)
    assert list(arrivals(description, 40, mhz, (seed, "job"))) == cycles[:40]


@given(st.floats(1e-3, 1e6), st.floats(1, 1e4))
def test_poisson_is_the_floor_of_an_exact_sum(rate: float, mhz: float) -> None:
    per_unit = Fraction(str(mhz)) * 1_000_000 / Fraction(str(rate)) / UNIT
    sums = np.cumsum(np.array(list(islice(exponentials((1, "gap")), 20)), dtype=object))
    assert list(arrivals(Poisson(rate), 20, mhz, (1,))) == [int(total * per_unit) for total in sums]


@given(st.floats(1, 1e5), st.floats(1, 3))
def test_no_arrival_is_later_at_a_higher_rate(rate: float, faster: float) -> None:
    slow, fast = (list(arrivals(Poisson(each), 50, 260, (4,))) for each in (rate, rate * faster))
    assert all(late >= early for late, early in zip(slow, fast, strict=True))


@pytest.mark.slow
@given(descriptions, st.integers(1, 25))
def test_arrays_hold_the_same_arrivals(description: OpenArrivals, chunk: int) -> None:
    blocks = list(arrival_arrays(description, 60, 260, (1, "job"), chunk))
    assert {len(block) for block in blocks[:-1]} <= {chunk}
    assert np.concatenate(blocks).tolist() == list(arrivals(description, 60, 260, (1, "job")))


def test_an_arrival_too_late_ends_the_arrays_behind_those_in_time() -> None:
    blocks = arrival_arrays(Fixed(MAX_CYCLE // 5), 9, 260, chunk=4)
    assert [len(next(blocks)) for _ in range(2)] == [4, 2]
    with pytest.raises(InputError, match=f"would go on to cycle {MAX_CYCLE // 5 * 6}"):
        next(blocks)


def test_other_keys_give_other_arrivals() -> None:
    keys = [(1, "a"), (2, "a"), (1, "b"), (1, "a", 1)]
    for description in (Poisson(1000), Periodic(1000, 500), Bursty(1000, 5, 5)):
        assert len({tuple(arrivals(description, 20, 260, key)) for key in keys}) == len(keys)


def test_frames_do_not_drift() -> None:
    """0.3 ms at 260 MHz are 78,000 cycles; the double 0.3 is a little less."""
    cycles = list(arrivals(Stream(0.3, start_cycle=5), 100_001, 260))
    assert cycles[1] == 78_005
    assert cycles[-1] == 5 + 78_000 * 100_000
    thirds = list(arrivals(Stream(1 / 3), 4, 0.01))
    assert thirds == [0, 3, 6, 9]


def test_a_frame_is_due_when_the_next_one_arrives() -> None:
    stream = Stream(10, 7)
    frames = list(arrivals(stream, 6, 250))
    assert list(deadlines(stream, 5, 250)) == frames[1:]


def test_jitter_is_spread_evenly_and_does_not_add_up() -> None:
    cycles = np.array(list(arrivals(Periodic(100, 9, 50), 50_000, 260, (1,))))
    late = cycles - 50 - 100 * np.arange(50_000)
    counts = np.bincount(late, minlength=10)
    assert len(counts) == 10
    # Pearson's statistic, 9 degrees of freedom: above 27.9 once in a thousand
    assert float(((counts - 5000) ** 2 / 5000).sum()) < 27.9


def test_jitter_of_a_whole_interval_keeps_the_order() -> None:
    cycles = list(arrivals(Periodic(3, 3), 10_000, 260))
    assert cycles == sorted(cycles)
    assert {later - earlier for earlier, later in pairwise(cycles)} == set(range(7))


def test_poisson_gaps_are_exponential() -> None:
    """Kolmogorov and Smirnov: 1.95 / sqrt(n) is passed once in a thousand."""
    cycles = np.array([0, *arrivals(Poisson(100), 100_000, 260, (8, "ks"))])
    gaps = np.sort(np.diff(cycles)) / 2_600_000
    steps = np.arange(len(gaps)) / len(gaps)
    assert float(np.abs(1 - np.exp(-gaps) - steps).max()) < 1.95 / sqrt(len(gaps))
    neighbours = np.diff(cycles).astype(float)
    assert abs(float(np.corrcoef(neighbours[1:], neighbours[:-1])[0, 1])) < 3.3 / sqrt(len(gaps))


@pytest.mark.parametrize(("rate", "on", "off"), [(2000.0, 5.0, 20.0), (500.0, 1.0, 3.0), (10_000.0, 0.5, 0.1)])
def test_bursts_have_the_gaps_of_an_interrupted_poisson_process(rate: float, on: float, off: float) -> None:
    """Gaps are independent (each begins on), of the mean and variance in Kuczura (1973)."""
    count, leaves, comes = 50_000, 1000 / on, 1000 / off
    cycles = np.array(list(arrivals(Bursty(rate, on, off), count + 1, 1000, (2, "ipp"))))
    gaps = np.diff(cycles) / 1e9
    mean = (leaves + comes) / (rate * comes)
    squared_variation = 1 + 2 * rate * leaves / (leaves + comes) ** 2
    assert abs(gaps.mean() / mean - 1) < 4 * sqrt(squared_variation / count)
    spread = gaps.var() / gaps.mean() ** 2
    # The variance of a variance follows from the gaps' own fourth moment.
    fourth = ((gaps - gaps.mean()) ** 4).mean() / gaps.var() ** 2
    assert abs(spread / squared_variation - 1) < 4 * sqrt((fourth + 3) / count)


def test_bursts_are_silent_in_between() -> None:
    gaps = np.diff(list(arrivals(Bursty(1e6, 1, 1000), 20_000, 1000, (2,)))) / 1e6
    # about 1000 requests a burst: gaps are microseconds, or a second or so
    long = gaps[gaps > 1]
    assert 5 < len(long) < 60
    assert long.mean() > 300


@pytest.mark.parametrize(
    "description",
    [Bursty(2000, 5, 20), *(pytest.param(each, marks=pytest.mark.long) for each in (Poisson(100), Periodic(10, 10)))],
)
def test_memory_does_not_grow_with_the_number_of_arrivals(description: OpenArrivals) -> None:
    def peak(count: int) -> int:
        tracemalloc.start()
        last = 0
        for cycle in arrivals(description, count, 260):
            last = cycle
        assert last > 0
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(3_000)  # imports and caches are filled on the way
    assert peak(8_000) < 1.2 * peak(3_000)


WRONG = [
    (lambda: Fixed(-1), "interval_cycles.*from 0 .*got -1"),
    (lambda: Fixed(1, 2**63), "start_cycle.*got 9223372036854775808"),
    (lambda: Periodic(0, 0), "interval_cycles.*from 1"),
    (lambda: Periodic(5, 6), "jitter_cycles.*overtake"),
    (lambda: Poisson(0), "rate_per_second.*above 0, got 0"),
    (lambda: Poisson(float("nan")), "rate_per_second.*got nan"),
    (lambda: Poisson(float("inf")), "rate_per_second.*got inf"),
    (lambda: Bursty(1, 0, -1), "mean_on_ms.*\n.*mean_off_ms"),
    (lambda: Bursty(1, 0.5, 1), "mean_on_ms: an on period holds 0.0005 requests"),
    (lambda: Stream(-10), "frame_ms.*got -10"),
    (lambda: Timestamps((-1,)), "got -1"),
    (lambda: Timestamps((0, 3, 2)), "must not go back in time, got 2 after 3 .number 3 of 3."),
    (lambda: Timestamps((2**62 + 1,)), "number 1 of 1"),
    (lambda: Timestamps((1, 5, 4)), "got 4 after 5"),
    (lambda: arrivals(Fixed(1), 1, 0), "frequency_mhz"),
    (lambda: arrivals(Fixed(1), -1, 1), "count"),
    (lambda: arrivals(Timestamps((1,)), 2, 1), "holds 1 arrivals, expected 2"),
    (lambda: list(arrivals(Fixed(2**61), 4, 1)), "would go on to cycle"),
    (lambda: list(arrivals(Poisson(1e-300), 1, 1)), "would go on to cycle"),
]


@pytest.mark.parametrize(("make", "sentence"), WRONG)
def test_what_is_wrong_is_said(make: object, sentence: str) -> None:
    with pytest.raises(InputError, match=f"(?s){sentence}"):
        make()  # type: ignore[operator]


def test_the_tail_of_the_gaps_is_there() -> None:
    """One gap in e^7 is longer than 7 means."""
    count = 200_000
    long = sum(each > 7 * UNIT for each in islice(exponentials((6,)), count))
    assert abs(long - count * exp(-7)) < 4 * sqrt(count * exp(-7))
