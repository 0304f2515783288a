"""Differences of latencies at open arrivals: paired, combined, and where nothing can be told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.studies.diff.arrivals import verdict_of
from lstmsim.studies.diff.result import Arrivals
from lstmsim.traffic.intervals import Interval, batch_interval
from lstmsim.traffic.paired import in_pairs


def requests(count: int = 300, **keys: Any) -> dict[str, Any]:
    arrival = {"kind": "poisson", "rate_per_second": 4e5}
    job = {"name": "q", "model": "lstm-256", "steps": 1, "count": count, "arrival": arrival, **keys}
    return {"chip": "column-npu-16k", "jobs": [job]}


def test_a_latency_is_seen_in_pairs() -> None:
    found = lstmsim.diff(requests(), overrides=["chip.cores.0.latency.writeback=6"])
    arrivals = found.arrivals
    assert arrivals is not None
    assert (arrivals.same, arrivals.compared, found.verdict) == (True, 270, "slower")
    mean = arrivals.difference_ms["mean"]
    # two cycles at least, in each of the requests; of two independent runs nothing could be told
    assert mean.half_width is not None
    assert 0 < mean.half_width < mean.value
    assert mean.value >= 2 / 260e3
    assert arrivals.mean_ms == tuple(each.report.latency_ms.mean for each in found.runs)
    assert "hazard" not in found.to_text().split("\n\n")[0] or "over all requests" in found.to_text()


def test_other_requests_are_not_paired() -> None:
    found = lstmsim.diff(requests(600), overrides=["jobs.0.arrival.seed=5"])
    assert found.arrivals is not None
    assert (found.arrivals.same, found.verdict) == (False, "cannot tell")
    assert found.changed[0].key == "jobs.0.arrival.seed"
    assert found.changed[0].values == (0, 5)
    assert "so that the intervals of the sides are combined" in found.to_text().replace("\n", " ")


def test_few_requests_tell_nothing() -> None:
    found = lstmsim.diff(requests(30), overrides=["chip.cores.0.latency.writeback=6"])
    assert found.verdict == "cannot tell"
    assert found.arrivals is not None
    assert found.arrivals.reason == "27 requests are too few for an interval"


def test_an_unstable_queue_tells_nothing() -> None:
    found = lstmsim.diff(
        requests(), overrides=["jobs.0.arrival.rate_per_second=9e6"], overrides_a=["jobs.0.arrival.rate_per_second=9e6"]
    )
    assert found.verdict == "same"
    found = lstmsim.diff(
        requests(arrival={"kind": "poisson", "rate_per_second": 9e6}), overrides=["chip.cores.0.latency.writeback=6"]
    )
    assert found.verdict == "cannot tell"
    assert found.arrivals is not None
    assert "more comes than the machine can do" in found.arrivals.reason


def test_arrivals_at_given_times_are_all_there_is() -> None:
    late = requests(3, arrival=[0, 5000, 5010])
    found = lstmsim.diff(late, overrides=["chip.cores.0.latency.writeback=6"])
    assert found.arrivals is not None
    assert (found.arrivals.drawn, found.verdict) == (False, "slower")
    # early ones are judged by the makespan
    assert lstmsim.diff(requests(2, arrival=[0, 5]), overrides=["chip.cores.0.latency.writeback=6"]).arrivals is None


def verdict(value: float, half: float | None, only_a: int = 0, only_b: int = 0) -> str:
    return verdict_of(Arrivals(True, True, 99, only_a, only_b, (1.0, 1.0), {"mean": Interval(value, half)}))


def test_who_serves_fewer_is_not_called_faster() -> None:
    assert verdict(-1.0, 0.5) == verdict(-1.0, 0.5, only_b=3) == "faster"
    assert verdict(1.0, 0.5) == verdict(1.0, 0.5, only_a=3) == "slower"
    assert verdict(-1.0, 0.5, only_a=3) == verdict(1.0, 0.5, only_b=3) == "cannot tell"
    assert verdict(-1.0, 1.5) == verdict(-1.0, None) == "cannot tell"
    assert verdict(0.0, 0.0) == "same"


def test_the_interval_of_pairs_holds_what_it_promises() -> None:
    """Of 200 pairs of runs whose requests differ by one number and noise, 95 % of the intervals hold the number."""
    draw, found = np.random.default_rng(1), []
    for _ in range(200):
        common = draw.exponential(1.0, 1000)
        ms = np.stack([common, common + 0.01 + draw.normal(0, 0.05, 1000)], axis=1)
        found.append(in_pairs(ms, 1.0)["mean"])
    # batches that look alike by chance have none
    known = [each for each in found if each.half_width is not None]
    assert len(known) > 180
    assert 0.9 * len(known) <= sum(each.holds(0.01) for each in known)
    mean = sum(each.half_width or 0.0 for each in known) / len(known)
    assert mean == pytest.approx(0.05 * 2 / 1000**0.5, rel=0.15)


def test_a_few_large_differences_do_not_make_the_interval_too_narrow() -> None:
    """Without them the mean and its interval are too small at once: of plain intervals 7.7 % miss the truth."""
    draw, missed, plain_missed, known = np.random.default_rng(3), 0, 0, 0
    for _ in range(300):
        more = draw.lognormal(0, 1.3, 540)
        found = in_pairs(np.stack([np.zeros(540), more], axis=1), 1.0)["mean"]
        truth, batches = np.exp(1.3**2 / 2), more.reshape(27, 20).mean(axis=1)
        known += found.half_width is not None
        missed += found.half_width is not None and not found.holds(truth)
        plain_missed += not batch_interval(float(more.mean()), batches.tolist()).holds(truth)
    assert plain_missed > 0.07 * 300, plain_missed
    assert missed < 0.055 * known, (missed, known)
