"""Bisection for the highest rate: with a known answer, with no answer, and with a broken order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, repeat
from math import ceil, log2, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.studies.serve.saturation import Saturation, Tried, bisect_verdicts, check_search, far_above, limits_text
from lstmsim.traffic.arrivals import Poisson, arrivals
from tests.studies.serve.collecting import Collector
from tests.traffic.lindley import served


def test_percentiles_below_the_one_that_is_searched_by_hand() -> None:
    """The share beyond grows by half each time, from 1 % to the last one below all."""
    assert far_above(99.0) == pytest.approx([100 - 1.5**power for power in range(1, 12)])


def test_limits_are_named_from_the_lowest_on() -> None:
    assert limits_text({"threads": 2000.0, "PE arrays": 1500.0}) == "1,500/s (PE arrays), 2,000/s (threads)"
    assert limits_text({"PE arrays": 2000.0, "threads": 1500.0}) == "1,500/s (threads), 2,000/s (PE arrays)"


def falls(answer: Saturation) -> list[tuple[Tried, Tried]]:
    """Pairs of neighbouring rates whose percentiles are the wrong way round by more than their intervals allow."""

    def end(run: Tried, sign: int) -> float:
        value = run.p99_ms if run.percentile_ms is None else run.percentile_ms
        return (value or 0.0) + sign * (run.half_width_ms or 0.0)

    ordered = sorted((run for run in answer.runs if run.p99_ms is not None), key=lambda run: run.rate)
    return [(low, high) for low, high in pairwise(ordered) if end(low, -1) > end(high, 1)]


def search(
    simulate: Callable[[float], float], low: float, high: float, bound: float, tolerance: float = 0.01, probes: int = 2
) -> Saturation:
    """The bisection where every run is certain: `simulate` gives a percentile in ms."""

    def judge(rate: float) -> Tried:
        p99 = simulate(rate)
        return Tried(rate, p99, p99 <= bound, verdict="below" if p99 <= bound else "above", percentile_ms=p99)

    def close(lower: float, upper: float) -> bool:
        return upper - lower <= tolerance * high

    best, worst, undecided, runs, *_ = bisect_verdicts(judge, low, high, close=close, probes=probes)
    return Saturation(best, worst, bound, runs, undecided)


def test_no_rate_is_tried_twice_where_a_probe_lies_on_a_middle() -> None:
    """Two thirds of the way to three quarters of the bracket is its middle, but for the last digit."""
    high = 733_427.3624823695
    answer = search(lambda rate: rate, high / 100, high, 600_000, tolerance=0.2)
    shown = [f"{run.rate:,.1f}" for run in answer.runs]
    assert len(set(shown)) == len(shown) == 6


@given(st.floats(1, 1000), st.floats(1.01, 1000), st.floats(0, 1.2), st.floats(1e-6, 0.5), st.integers(0, 4))
def test_the_step_is_between_what_was_found(low: float, times: float, place: float, tol: float, probes: int) -> None:
    high = low * times
    step = low + (high - low) * place
    tried: list[float] = []

    def simulate(rate: float) -> float:
        tried.append(rate)
        return 1.0 if rate <= step else 2.0

    answer = search(simulate, low, high, 1.5, tol, probes)
    assert answer.monotone
    assert not falls(answer)
    assert [run.rate for run in answer.runs] == tried
    halvings = max(0, ceil(log2((high - low) / (tol * high))))
    assert len(tried) == len(set(tried)) <= 2 + halvings + probes
    assert answer.rate is not None
    assert answer.rate <= step
    if step >= high:
        assert (answer.rate, answer.fails_from) == (high, None)
    else:
        assert answer.fails_from is not None
        assert step < answer.fails_from
        assert answer.fails_from - answer.rate <= tol * high


def test_nothing_keeps_the_bound() -> None:
    answer = search(lambda rate: rate, 10, 20, 5)
    assert (answer.rate, answer.fails_from, len(answer.runs), answer.monotone) == (None, 10, 1, True)


def test_a_broken_order_is_seen_by_the_probes() -> None:
    answer = search(lambda rate: 9 if 300 < rate < 500 else rate / 1000, 100, 1000, 0.8, probes=2)
    assert answer.rate is not None
    assert 790 < answer.rate <= 800
    assert not answer.monotone
    assert [low.p99_ms for low, _ in falls(answer)] == [9]


def test_runs_that_grow_are_not_spent_below_the_bracket() -> None:
    """Each would be as long as the longest: what is left of an effort is for rates that draw the answer closer."""
    sizes, tried = [1], list[tuple[float, int]]()

    def judge(rate: float) -> Tried:
        tried.append((rate, sizes[-1]))
        known = abs(rate - 800) * sizes[-1] > 100
        return Tried(rate, rate, rate <= 800 if known else None, verdict="below" if rate <= 800 else "above")

    def more() -> bool:
        sizes.append(2 * sizes[-1])
        return sizes[-1] <= 64

    found = bisect_verdicts(judge, 100, 1000, close=lambda lower, upper: upper - lower <= 10, more=more)
    assert found.best is not None
    assert found.ended == "done"
    assert found.best > 780
    assert all(rate > found.best / 2 for rate, size in tried if size > 1)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"low": 0}, "low"),
        ({"high": 5}, "high: must be above the lowest rate"),
        ({"high": nan}, "high"),
        ({"bound_ms": -1}, "bound_ms"),
        ({"tolerance": 1e-12}, "tolerance"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, float], sentence: str) -> None:
    values = {"low": 10.0, "high": 20.0, "tolerance": 0.01, "bound_ms": 5.0} | changes
    with pytest.raises(InputError, match=sentence):
        check_search(values["low"], values["high"], values["tolerance"], {"bound_ms": values["bound_ms"]})


@pytest.mark.slow
def test_a_queue_whose_arrivals_share_a_key_is_monotone() -> None:
    """M/D/1 with service of 1 ms: its 99th percentile passes 10 ms between loads 0.8 and 0.9."""

    def simulate(rate: float) -> float:
        collector = Collector(1)
        for row in served(arrivals(Poisson(rate), 8_000, 1, (5, "sat")), repeat(1000)):
            collector.add(*row)
        return collector.figures().latency.p99.value / 1000

    answer = search(simulate, 100, 990, 10, tolerance=0.005)
    assert answer.monotone
    assert not falls(answer)
    assert answer.rate is not None
    assert 750 < answer.rate < 900
