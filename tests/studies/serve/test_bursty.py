"""Bursty arrivals: all rates are those of the long run, and the rate while on has a column of its own."""

from __future__ import annotations

from typing import Any

import pytest

from lstmsim.studies.serve.load_latency import load_latency
from lstmsim.studies.serve.offered import capacity_of
from lstmsim.studies.serve.run import serve
from lstmsim.studies.serve.saturate import saturate

pytestmark = pytest.mark.needs_core

BURSTY = {"kind": "bursty", "on_rate_per_second": 600_000, "mean_on_ms": 0.1, "mean_off_ms": 0.4}
JOB: dict[str, Any] = {"name": "ticks", "model": "lstm-256", "steps": 8, "count": 3000, "deadline": 2600}
SCENARIO = {"chip": "column-npu-16k", "jobs": [JOB | {"arrival": BURSTY}]}
POISSON = JOB | {"name": "even", "arrival": {"kind": "poisson", "rate_per_second": 120_000}}


def test_the_machines_bound_is_the_same_in_serve_and_saturate_and_that_of_even_arrivals() -> None:
    served = serve(SCENARIO).serving
    assert served.load is not None
    own, even = (capacity_of({"chip": "column-npu-16k", "jobs": [job]}) for job in (SCENARIO["jobs"][0], POISSON))
    assert served.load.bound_per_second == pytest.approx(own.bound_per_second) == pytest.approx(even.bound_per_second)
    assert own.limits_per_second == pytest.approx(even.limits_per_second)
    assert served.load.rate_per_second == pytest.approx(120_000)
    assert served.load.peak_per_second == pytest.approx(600_000)
    assert "120,000 requests/s arrive in the long run, 600,000 /s while bursts are on" in " ".join(
        served.to_text().split()
    )


def test_a_mix_has_the_rate_while_all_bursts_are_on() -> None:
    both = {"chip": "column-npu-16k", "jobs": [SCENARIO["jobs"][0], POISSON]}
    load = serve(both, requests=300).serving.load
    assert load is not None
    assert (load.rate_per_second, load.peak_per_second) == (pytest.approx(240_000), pytest.approx(720_000))
    even = serve({"chip": "column-npu-16k", "jobs": [POISSON]}, requests=300).serving
    assert even.load is not None
    assert even.load.peak_per_second == 0
    assert "while bursts" not in even.to_text()


def test_curves_have_rates_of_the_long_run_and_a_column_of_their_peaks() -> None:
    curves = load_latency(SCENARIO, loads=[0.3, 0.9], requests=2000)
    for point in curves.points:
        assert point.rate_per_second == pytest.approx(point.load * curves.capacity_per_second)
        assert point.rate_per_second < curves.bound_per_second
        assert point.measured.offered == pytest.approx(point.load, rel=0.02)
    assert curves.peak_ratio == pytest.approx(5)
    assert "while on/s" in curves.to_text()
    rows = curves.to_records()
    assert [row["peak_per_second"] for row in rows] == [5 * row["requests_per_second"] for row in rows]
    assert "while on/s" not in load_latency({**SCENARIO, "jobs": [POISSON]}, loads=[0.3], requests=300).to_text()


@pytest.mark.slow
def test_saturate_searches_rates_of_the_long_run() -> None:
    answer = saturate(SCENARIO, 0.02, tolerance=0.3, most_requests=5000, low=20_000)
    assert answer.bound_per_second is not None
    assert answer.bound_per_second < 920_000
    # what it judges is what `serve` serves: the run of the file's own rates is one of the search
    tried = next(run for run in answer.runs if run.rate == 20_000)
    assert tried.load == pytest.approx(20_000 / min(answer.limits_per_second.values()))
    assert answer.peak_ratio == pytest.approx(5)
    assert "while on/s" in answer.to_text()
    assert max(run.rate for run in answer.runs) <= answer.bound_per_second
