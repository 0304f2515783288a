"""Verdicts on bounds: intervals of shares as published, and what happens exactly at a bound."""

from __future__ import annotations

from itertools import permutations
from math import erf, sqrt

import pytest

from lstmsim.studies.serve.saturation import joined, judged, of_interval, of_share
from lstmsim.traffic.intervals import Interval, wilson

#: Newcombe, Two-sided confidence intervals for the single proportion: comparison of seven methods; Statistics in
#: Medicine 17, 1998, table I, method 3: seen, of how many, and the 95 % interval.
NEWCOMBE = [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]


@pytest.mark.parametrize(("seen", "number", "least", "most"), NEWCOMBE)
def test_intervals_of_shares_are_the_published_ones(seen: int, number: int, least: float, most: float) -> None:
    assert wilson(seen / number, number) == pytest.approx((least, most), abs=5e-5)
    # The share of trials without the event has the mirrored interval.
    assert wilson(1 - seen / number, number) == pytest.approx((1 - most, 1 - least), abs=5e-5)


def test_nothing_seen_says_nothing() -> None:
    assert wilson(0.0, 0) == (0.0, 1.0)
    assert wilson(1.0, 5)[1] == 1.0
    assert wilson(0.0, 0.5)[0] == 0.0


def test_twice_as_wide_is_the_interval_of_twice_the_deviation() -> None:
    """95 % are 1.959964 standard deviations; what twice as many hold says the error function."""
    assert wilson(0.3, 100, 0.95, widths=2) == pytest.approx(wilson(0.3, 100, erf(2 * 1.959964 / sqrt(2))), abs=1e-7)


@pytest.mark.parametrize(
    ("bound", "verdict"), [(8.9, "above"), (9.0, "cannot tell"), (10.9, "cannot tell"), (11.0, "below")]
)
def test_a_bound_is_kept_by_what_just_reaches_it(bound: float, verdict: str) -> None:
    """At most the bound is kept: 10 +- 1 ends at 11 and begins at 9, which would still keep a bound of 9."""
    assert of_interval(Interval(10.0, 1.0, 20), bound) == verdict


def test_a_share_rejected_is_judged_by_its_interval() -> None:
    """0 of 20 may be up to 16.11 %; of 15 in 148 the interval is 6.24 to 16.05 %."""
    assert [of_share(0, 20, most) for most in (0.162, 0.160)] == ["below", "cannot tell"]
    assert [of_share(15, 148, most) for most in (0.161, 0.1, 0.0625, 0.062)] == ["below", *["cannot tell"] * 2, "above"]
    # Four requests that meet the same queue tell as much as one.
    assert of_share(0, 80, 0.160, alike=4) == of_share(0, 20, 0.160)
    assert of_share(0, 80, 0.160) == "below"
    assert of_share(0, 20, 0.162, alike=0.1) == "below"
    assert of_share(0, 0, 0.5) == "cannot tell"
    # If all requests may leave, the bound is kept in any case.
    assert of_share(20, 20, 1.0) == "below"


def test_the_worst_verdict_is_that_of_all_in_any_order() -> None:
    order = ["unstable", "above", "too few", "cannot tell", "below"]
    for first in range(len(order)):
        for several in permutations(order[first:]):
            assert joined(several) == order[first]


@pytest.mark.parametrize(
    ("half", "served", "rejected", "may_leave", "verdict", "share"),
    [
        (0.01, 10_000, 0, False, "below", 0.0),
        (0.01, 10_000, 0, True, "below", 0.0),
        # 500 of 10,500 are more than the hundredth that a bound on p99 allows
        (0.01, 10_000, 500, True, "above", 500 / 10_500),
        (0.01, 10_000, 500, False, "below", 500 / 10_500),
        (0.2, 10_000, 0, True, "cannot tell", 0.0),
        (None, 10_000, 0, True, "too few", 0.0),
        (None, 10_000, 500, True, "above", 500 / 10_500),
        (0.01, 0, 0, False, "too few", 0.0),
        (0.01, 0, 7, False, "too few", 1.0),
    ],
)
def test_a_tenants_verdict(
    half: float | None, served: int, rejected: int, may_leave: bool, verdict: str, share: float
) -> None:
    own = judged(Interval(0.4, half, 20), 0.5, 99.0, served=served, rejected=rejected, may_leave=may_leave)
    assert own.verdict == verdict
    assert own == type(own)(0.5, 0.4 if served else None, half, verdict, served, share)
