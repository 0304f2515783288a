"""Intervals stay within what is possible, and hold the truth where a queue limit keeps the machine busy."""

from __future__ import annotations

from typing import Any

import pytest

from lstmsim.base.errors import InputError
from lstmsim.studies.serve.load_latency import load_latency
from lstmsim.studies.serve.run import serve
from lstmsim.studies.serve.saturate import saturate
from lstmsim.studies.serve.saturation import Saturation, Tried, judged, latency_text
from lstmsim.traffic.intervals import Interval
from lstmsim.traffic.rates import Rates, no_surer

pytestmark = pytest.mark.needs_core

ONE_THREAD = {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 16384, "ep": 16, "vp": 1024, "threads": 1}]}
#: 1.2 times what the machine can do.
OVERLOAD = {"kind": "poisson", "rate_per_second": 1.2 * 1_641_414}
LIMITED = {"model": "lstm-256", "steps": 2, "count": 300, "queue_limit": 4}


def test_an_interval_ends_at_what_is_possible() -> None:
    assert Interval(0.9978, 0.028).within(0, 1).ends == pytest.approx((0.9698, 1))
    assert Interval(0.5, 0.1).within(0, 1).ends is None
    assert Interval(0.5).within(0, 1).ends is None
    assert Interval(2.0, 9.0).within(1.5).scaled(10).ends == pytest.approx((15, 110))


@pytest.mark.slow
def test_a_share_near_1_has_both_ends_in_text_and_json() -> None:
    bursts = {"kind": "bursty", "on_rate_per_second": 600_000, "mean_on_ms": 0.1, "mean_off_ms": 0.4}
    job = {"name": "ticks", "model": "lstm-256", "steps": 8, "count": 30_000, "deadline": 2600, "arrival": bursts}
    served = serve({"chip": "column-npu-16k", "jobs": [job]})
    text, data = " ".join(served.to_text().split()), served.to_dict()
    assert text.startswith("SERVING: 30,000 requests on 2 threads, 0.2 % of those with a deadline late throughput")
    assert "in time 99.78 [96.99, 100] % of those with a deadline" in text
    kept = data["intervals"]["attainment"]
    assert kept["ends"] == pytest.approx([kept["value"] - kept["half_width"], 1])
    assert data["latency_cycles"]["mean"]["ends"] is None


@pytest.mark.parametrize(("half", "text"), [(2.0, "2.5 +- 2"), (8.9, "2.5 [0, 11.4]")])
def test_a_latency_is_not_below_0(half: float, text: str) -> None:
    assert latency_text(2.5, half) == text


def test_a_searched_percentile_is_not_below_the_least_latency() -> None:
    own = judged(Interval(2.5, 0.2, 20, ends=(2.5, 2.7)), 3.0, 99.0, served=9000, rejected=0, may_leave=False)
    assert own.ends_ms == (2.5, 2.7)
    run = Tried(5.0, 2.5, True, 0.0, "below", 9000, None, 2.5, 0.2, {"voice": own}, ends_ms=own.ends_ms)
    text = Saturation.to_text(Saturation(5.0, None, 3.0, (run,), bounds_ms={"voice": 3.0}))
    assert text.count("2.5 [2.5, 2.7]") == 2


@pytest.mark.slow
def test_where_requests_may_be_rejected_none_that_is_served_is_faster_than_alone() -> None:
    short = LIMITED | {"name": "short", "count": 50, "arrival": OVERLOAD}
    long = short | {"name": "long", "steps": 60}
    few = {"most_requests": 500, "tolerance": 0.9}
    one = saturate({"chip": ONE_THREAD, "jobs": [short]}, 1e-4, **few)
    assert one.to_text().startswith("no rate can keep a p99 of 0.0001 ms: one request alone takes ")
    both = saturate({"chip": ONE_THREAD, "jobs": [short, long]}, None, bounds_ms={"long": 1e-4}, **few)
    assert " ms for long: one request of long alone takes " in " ".join(both.to_text().split())
    # all that are long may be rejected
    mixed = saturate({"chip": ONE_THREAD, "jobs": [short, long]}, 0.01, **few)
    assert mixed.alone_ms is None


@pytest.mark.slow
def test_where_all_are_rejected_curves_and_searches_say_so() -> None:
    pool = {"max_batch_size": 4, "max_wait_cycles": 5000}
    job: dict[str, Any] = {"model": "lstm-256", "steps": 10, "patience": 10, "batching": pool}
    scenario = {"chip": "column-npu-16k", "jobs": [job | {"arrival": {"kind": "poisson", "rate_per_second": 1000}}]}
    (point,) = load_latency(scenario, loads=[0.01], requests=300).points
    assert (point.measured.mean, point.measured.rejected) == (None, 300)
    answer = saturate(scenario, 0.1, tolerance=0.5, most_requests=500)
    assert (answer.rate, answer.runs[0].p99_ms, answer.runs[0].rejected) == (None, None, 1.0)


def test_advice_is_taken() -> None:
    job = {"name": "kws", "model": {"layers": [{"cell": "gru", "hidden": 128, "input": 64}]}, "steps": 8, "count": 20}
    job["arrival"] = {"kind": "stream", "frame_ms": 10}
    with pytest.raises(InputError, match=r"^job kws: .* or give it a `density` like \{x: 0\.2, h: 0\.2\}"):
        serve({"chip": "edgedrnn-8", "jobs": [job]})
    assert serve({"chip": "edgedrnn-8", "jobs": [job | {"density": {"x": 0.2, "h": 0.2}}]}).serving.requests == 20


def test_a_throughput_is_no_surer_than_the_share_of_time_that_limits_it() -> None:
    plain = Rates(Interval(95.0, 1.0), Interval(95.0, 1.0))
    assert no_surer(plain, Interval(0.95)) == plain
    shares = (0.2, 0.02), (0.99, 0.02), (0.9999, 0.02)
    idle, busy, full = (no_surer(plain, Interval(*share)).throughput.half_width for share in shares)
    assert idle == pytest.approx(1.0, rel=0.01)
    assert busy == pytest.approx(1.761, abs=0.001)  # 95 / 99 * (exp(99 / 95) - 1)
    assert full == pytest.approx(95 * 0.02 / 0.9999)


def test_a_rate_whose_batches_are_all_equal_is_not_certain() -> None:
    """Threads that were never seen to idle idled for up to a fiftieth of the time; goodput is no surer either."""
    made = no_surer(Rates(Interval(95.0, 0.0), Interval(19.0, 0.0)), Interval(1.0, 0.02), alike=True)
    assert made.throughput.ends == pytest.approx((95 * 0.98, 95.0))
    assert made.goodput.ends is None
    assert made.goodput.half_width == pytest.approx(19 * 0.02)
    several = no_surer(Rates(Interval(95.0, 0.0), Interval(95.0, 0.0)), Interval(1.0, 0.02))
    assert several.throughput.ends is None
    assert several.throughput.half_width == pytest.approx(95 * 0.02)
    unknown = no_surer(Rates(Interval(95.0, 0.0), Interval(95.0, 0.0)), Interval(1.0))
    assert (unknown.throughput.half_width, unknown.goodput.half_width) == (None, None)


@pytest.mark.slow
def test_the_throughput_of_an_overloaded_machine_with_a_queue_limit_is_covered() -> None:
    """185 of 200 runs had one before it took the idle time into account, of which 168 held the truth."""

    def throughput(seed: int, requests: int) -> Interval:
        job = LIMITED | {"arrival": OVERLOAD | {"seed": seed}}
        rates = serve({"chip": ONE_THREAD, "jobs": [job]}, requests=requests).serving.rates
        assert rates is not None
        return rates.throughput

    truth = throughput(999, 100_000).value
    made = [each for each in (throughput(seed, 300) for seed in range(60)) if each.half_width is not None]
    assert len(made) >= 45
    assert sum(each.holds(truth) for each in made) >= 0.95 * len(made)
