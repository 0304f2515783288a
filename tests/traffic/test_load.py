"""Verdicts on loads, and the offers of each kind of arrivals."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
import pytest

from lstmsim.model.scenario import Offer, estimated_offer
from lstmsim.studies.serve.report import load_lines
from lstmsim.traffic.arrivals import (
    Bursty,
    ClosedLoop,
    Fixed,
    Periodic,
    Poisson,
    Stream,
    Timestamps,
    arrivals,
    offer_of,
)
from lstmsim.traffic.load import Load, Traffic, relaxation_of, verdict_of
from tests.studies.serve.collecting import Collector


def load(offered: float, **more: object) -> Load:
    return Load(offered, {"threads": offered}, 1000 * offered, 1000.0, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "steady", "grows", "reported", "verdict"),
    [
        (load(0.5), True, False, True, "settled"),
        (load(0.5), True, False, False, "too few"),
        (load(0.5), True, True, True, "unstable"),
        (load(1.0), True, False, True, "unstable"),
        (load(1.5, lasting=0.5), True, True, True, "settled"),
        (load(0.5, unsure="what preemption costs"), True, True, True, "cannot tell"),
        (None, True, False, True, "settled"),
        (None, False, False, True, "no steady state"),
    ],
)
def test_verdicts(known: Load | None, steady: bool, grows: bool, reported: bool, verdict: str) -> None:
    assert verdict_of(Traffic(known, steady=steady), grows=grows, known=reported) == verdict


def test_a_run_that_was_cut_off_is_no_evidence() -> None:
    """Whatever its latencies look like: only the load may say that the queue grows."""
    for known in (None, load(0.5)):
        assert verdict_of(Traffic(known), grows=True, known=True, cut=True) == "cannot tell"
    assert verdict_of(Traffic(load(1.0)), grows=False, known=False, cut=True) == "unstable"
    collector = Collector(250)
    collector.add_many(range(5000), range(0, 50_000, 10), range(0, 50_000, 10), range(9, 50_009, 10))
    result = collector.figures(load=load(0.5), cut=True)
    assert (result.verdict, result.latency.mean.half_width) == ("cannot tell", None)
    assert (
        "more requests were in the machine at once than there is room for, where the run ended" in load_lines(result)[1]
    )


def test_what_is_known_of_the_relaxation() -> None:
    assert relaxation_of(Traffic(load(0.5, relaxation=7.0, unsure="what preemption costs")), 9, 0.0) == inf
    assert relaxation_of(Traffic(load(0.5, relaxation=7.0)), 9, 0.0) == 7.0
    assert relaxation_of(Traffic(load(1.0, relaxation=7.0)), 9, 0.0) == inf
    assert relaxation_of(Traffic(load(1.5, lasting=0.5, relaxation=inf)), 9, 1.0) is None
    assert relaxation_of(Traffic(load(1.5, lasting=0.0, relaxation=3.0)), 9, 1.0) == 3.0
    assert relaxation_of(Traffic(steady=False), 9, 0.5) == inf
    assert relaxation_of(Traffic(clients=5), 499, 1.0) == inf
    assert relaxation_of(Traffic(clients=5), 500, 1.0) is None
    assert relaxation_of(Traffic(), 500, 1.0) == inf
    assert relaxation_of(Traffic(), 500, 0.5) == 8.0


def test_what_arrivals_offer() -> None:
    assert offer_of(Poisson(100), 250) == Offer(100, 1.0)
    assert offer_of(Fixed(1000), 250) == offer_of(Periodic(1000, 10), 250) == Offer(250_000.0)
    assert offer_of(Fixed(0), 250) == Offer()
    assert offer_of(Stream(0.5), 250) == Offer(2000.0)
    assert offer_of(ClosedLoop(7, 1.0), 250) == Offer(clients=7)
    assert offer_of(Timestamps(tuple(range(0, 2500, 100))), 250) == Offer(
        2_500_000.0, estimated=True, memory_seconds=inf
    )


def test_the_gaps_of_bursts_vary_as_kuczura_says() -> None:
    bursty = Bursty(20_000, mean_on_ms=0.5, mean_off_ms=1.5)
    offer = offer_of(bursty, 250)
    gaps = np.array([two - one for one, two in pairwise(arrivals(bursty, 100_000, 250, (3, "a")))], dtype=float)
    assert offer.rate_per_second == pytest.approx(250e6 / gaps.mean(), rel=0.03)
    assert offer.variability == pytest.approx(gaps.var() / gaps.mean() ** 2, rel=0.06)


def test_what_bursts_offer_by_hand() -> None:
    """2,000 a second for a fifth of the time; periods end 200 and 50 times a second: 1 + 2 * 2000 * 200 / 250^2."""
    offer = offer_of(Bursty(2000, mean_on_ms=5, mean_off_ms=20), 250)
    assert (offer.rate_per_second, offer.variability) == (400.0, pytest.approx(13.8))
    assert offer.memory_seconds == pytest.approx(1 / 250)


def test_few_arrivals_are_no_process() -> None:
    assert estimated_offer(range(19), 250) == Offer()
    assert estimated_offer([5] * 100, 250) == Offer()
    assert estimated_offer(range(20), 250).rate_per_second == 250e6


def test_overload_is_never_settled_nor_too_short() -> None:
    collector = Collector(250)
    numbers = np.arange(20_000)
    collector.add_many(numbers, numbers * 90, numbers * 100, numbers * 100 + 100)
    result = collector.figures(load=load(100 / 90))
    assert result.verdict == "unstable"
    assert result.latency.mean.half_width is None
    text = "\n".join(load_lines(result))
    assert "offered load 1.111" in text
    assert "unstable" in text
    assert "settled" not in text
    assert "few" not in text


def test_what_comes_evenly_below_load_1_is_settled_with_nothing_to_vary() -> None:
    collector = Collector(250)
    numbers = np.arange(300)
    collector.add_many(numbers, numbers * 110, numbers * 110, numbers * 110 + 100)
    result = collector.figures(load=load(100 / 110))
    assert (result.verdict, result.latency.mean.half_width) == ("settled", 0.0)


def test_busy_and_quiet_times_make_a_list_of_arrivals_irregular() -> None:
    """Bursts of 100 even arrivals and as long a quiet time: the gaps one by one hardly vary."""
    bursts = [10_000 * burst + 50 * place for burst in range(100) for place in range(100)]
    assert estimated_offer(bursts, 250).variability > 20
    even = estimated_offer(range(0, 1_000_000, 100), 250)
    assert even.variability < 0.01
