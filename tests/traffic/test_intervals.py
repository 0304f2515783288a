"""Intervals keep their promise on queues with known means, or there is no interval."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.serving.queueing import md1_wait
from lstmsim.traffic.intervals import (
    BATCHES,
    MEAN_UNITS,
    TAIL_UNITS,
    Spread,
    batch_number,
    forgetting,
    growing,
    mean_interval,
    spreads_of,
    tail_interval,
)
from lstmsim.traffic.latencies import Distribution, Histogram, Series

SERVICE = 10_000


def waits(seed: int, load: float, requests: int) -> NDArray[np.int64]:
    """M/D/1 from empty: Lindley's recursion as a reflected sum."""
    rng = np.random.default_rng(seed)
    steps = SERVICE - rng.exponential(SERVICE / load, requests - 1)
    walk = np.concatenate([[0.0], np.cumsum(steps)])
    return np.rint(walk - np.minimum.accumulate(walk)).astype(np.int64)


def relaxation(load: float) -> float:
    return 1 / (1 - load) ** 2


def distribution(seed: int, load: float, requests: int, known: bool = True, kept: int = 2**20) -> Distribution:
    series, values = Series(kept), waits(seed, load, requests) + SERVICE
    series.add(values[:kept])
    if len(values) > kept:
        series.summarize(kept // 10)
        series.add(values[kept:])
    return series.distribution(requests // 10, relaxation=relaxation(load) if known else None)


@pytest.mark.slow
@pytest.mark.halved
@pytest.mark.parametrize("kept", [2**20, 500])
@pytest.mark.parametrize(("load", "requests"), [(0.3, 1000), (0.7, 3000)])
def test_means_are_covered_as_promised(load: float, requests: int, kept: int) -> None:
    """Nominal 95 %; of 100 runs at least 88 % (three standard deviations below) and not all with ever wider ones."""
    truth = SERVICE + md1_wait(load, SERVICE)
    made = [distribution(seed, load, requests, kept=kept).mean for seed in range(100)]
    reported = [each for each in made if each.half_width is not None]
    assert len(reported) > 0.9 * len(made)
    assert sum(each.holds(truth) for each in reported) >= 0.88 * len(reported)
    assert np.median([each.half_width or 0 for each in reported]) < 0.25 * truth


def test_percentiles_are_covered_as_promised() -> None:
    """Of the wait in M/D/1 at load 0.5: P(wait = 0) = 0.5, and 0.95 from Erlang's series."""
    load, percent = 0.5, 95.0

    def below(t: float) -> float:
        """P(wait <= t services) (Erlang 1909)."""
        total = 0.0
        factor = 1.0
        for k in range(int(t) + 1):
            factor = 1.0 if k == 0 else factor * load * (k - t) / k
            term = 1.0 if k == 0 else (load * (k - t)) ** k / np.prod(np.arange(1, k + 1, dtype=float))
            total += term * exp(-load * (k - t))
        return (1 - load) * total

    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < percent / 100 else (low, middle)
    truth = SERVICE * (1 + low)
    made = [distribution(1000 + seed, load, 3000).percentiles[percent] for seed in range(100)]
    reported = [each for each in made if each.half_width is not None]
    assert len(reported) > 0.9 * len(made)
    assert 0.88 * len(reported) <= sum(each.holds(truth) for each in reported) < len(reported)


@pytest.mark.parametrize("known", [True, False])
def test_short_runs_near_saturation_have_no_interval_however_quiet_they_are(known: bool) -> None:
    for seed in range(200):
        latencies = distribution(seed, 0.95, 300, known)
        assert [each.half_width for each in (latencies.mean, *latencies.percentiles.values())] == [None] * 5


def test_the_gates() -> None:
    """So many units of relaxation, and so many of them beyond a percentile."""
    spread = Spread([0.9, 1.1] * 5, 100)
    enough = int(MEAN_UNITS * 8)
    assert mean_interval(1.0, 0.0, spread, enough, 8.0).half_width is not None
    assert mean_interval(1.0, 0.0, spread, enough - 1, 8.0).half_width is None
    shares = Spread([0.98, 1.0] * 5, 1000)
    enough = int(TAIL_UNITS * 8 * 100)
    assert tail_interval(99, 5.0, shares, enough, 8.0, lambda percent: percent).half_width is not None
    assert tail_interval(99, 5.0, shares, enough - 1, 8.0, lambda percent: percent).half_width is None


def test_no_interval_beyond_the_largest_value_and_none_from_batches_that_are_alike() -> None:
    wild = Spread([1.0] * 9 + [0.9], 1000)
    assert tail_interval(99, 5.0, wild, 10_000, 8.0, lambda percent: percent).half_width is None
    assert tail_interval(1, 5.0, Spread([0.0] * 9 + [0.1], 1000), 10_000, 8.0, lambda at: at).half_width is None
    rising = Spread([float(each) for each in range(BATCHES)], 1000)
    assert mean_interval(4.5, 0.0, rising, 10_000, 1.0).half_width is None


def test_a_mean_interval_by_hand() -> None:
    """Ten batches 1 and 3: standard error sqrt(10 / 9 / 10), t 2.262; a fiftieth of each batch is shared; logarithm."""
    spread = Spread([1.0, 3.0] * 5, 200)
    half = 2.26215716 * sqrt(10 / 9 / 10) / sqrt(1 - 2 * 2 / 200)
    expected = 1.5 * (exp(half / 1.5) - 1)
    assert mean_interval(2.0, 0.5, spread, 2000, 2.0).half_width == pytest.approx(expected)


def test_a_series_is_cut_into_batches_of_twenty_units_of_five_values_or_more() -> None:
    assert [batch_number(1_000, units) for units in (4.0, 1.0, 40.0)] == [12, 30, 10]
    assert [(len(means), size) for means, size in spreads_of(np.arange(100))] == [(10, 10), (20, 5)]


def test_what_batches_show_of_the_relaxation_by_hand() -> None:
    """Means 1 and 2 have a variance of 1/3: 9 / 3 / 1.5 / 2 = 1 request, which counts four times or half."""
    spreads = [Spread([1.0, 2.0, 1.0, 2.0], 9)]
    assert forgetting(spreads, 1.5, relaxation=None) == pytest.approx(4.0)
    assert forgetting([Spread(spreads[0].means, 90)], 1.5, relaxation=2.0) == pytest.approx(5.0)


def test_the_variance_of_a_histogram_by_hand() -> None:
    histogram = Histogram()
    histogram.add(np.array([1, 1, 5, 5]))
    assert histogram.variance == 4.0


def test_a_queue_that_grows_is_told_from_one_that_is_only_slow() -> None:
    overloaded = Series()
    overloaded.add(waits(1, 1.05, 20_000))
    assert overloaded.grows(2_000, relaxation=10.0)
    for seed in range(60):
        stable = Series()
        stable.add(waits(seed, 0.8, 3_000))
        assert not stable.grows(300, relaxation(0.8))


def test_a_percentile_in_a_gap_of_the_latencies_has_no_width_of_zero() -> None:
    """Half of every batch is 1,000, the other half lies far above: the median is anywhere between."""
    series = Series()
    series.add(np.array([1000, 3000] * 2000))
    median = series.distribution(0, relaxation=1.0, percentiles=[50.0]).percentiles[50.0]
    assert median.half_width is None or median.half_width >= 900
    atom = Series()
    atom.add(np.array([1000] * 4000))
    assert atom.distribution(0, relaxation=1.0, percentiles=[50.0]).percentiles[50.0].half_width == 0


def test_a_percentile_is_no_finer_than_one_independent_request_where_all_batches_are_alike() -> None:
    """A pattern that repeats leaves the same share in every batch; one unit more or less still moves the percentile."""
    alike = tail_interval(50, 50.0, Spread([0.5] * 10, 100), 1000, 4.0, percentile=lambda percent: percent)
    assert alike.half_width == pytest.approx(100 * 4 / 1000)
    series = Series()
    series.add(np.tile(np.arange(100), 40))
    p90 = series.distribution(0, relaxation=4.0, percentiles=[90.0]).percentiles[90.0]
    assert 0 < (p90.half_width or 0.0) < 1


def test_a_percentile_that_is_cut_has_the_distance_of_each_side() -> None:
    """At the 99th the values rise far faster above than below: 100 above it is no reason for 100 below."""

    def rising(percent: float) -> float:
        return percent / 10 if percent <= 99 else 9.9 + 100 * (percent - 99)

    around = Spread([0.985, 0.995] * 5, 1000)
    own = tail_interval(99, 9.9, around, 100_000, 1.0, percentile=rising)
    assert own.half_width is not None
    assert own.ends is not None
    assert own.half_width > 9.9
    assert own.ends[1] == pytest.approx(9.9 + own.half_width)
    assert 9.8 < own.ends[0] < 9.9


@pytest.mark.parametrize("percent", [90, 95, 99, 99.9, 5, 1])
def test_a_percentile_has_an_interval_from_the_request_on_that_makes_twelve_units_beyond_it(percent: float) -> None:
    """120 requests with 12 beyond are enough, although 1 - 0.9 has no exact double."""
    least, share = round(TAIL_UNITS / min(percent / 100, 1 - percent / 100)), percent / 100
    around = Spread([share - 0.001, share + 0.001] * 5, 1000)
    for requests, reported in ((least - 1, False), (least, True)):
        own = tail_interval(percent, 5.0, around, requests, 1.0, percentile=lambda at: at)
        assert (own.half_width is not None) == reported


def test_a_queue_grows_only_on_a_line_that_rises_well_above_its_beginning() -> None:
    """Correlation 0.93 is no line; a last third of 2.4 times the first is well above it, one of 1.8 times is not."""
    assert not growing([1, 4, 2, 5, 7, 5, 8, 7, 10, 11])
    assert growing(range(4, 14))
    assert not growing(range(8, 18))
