"""How many requests there are, where nobody says it, and what it would take, where there are too few."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lstmsim.studies.serve import load_latency as points
from lstmsim.studies.serve import run
from lstmsim.studies.serve.load_latency import load_latency
from lstmsim.studies.serve.run import serve
from lstmsim.traffic.intervals import Interval

pytestmark = pytest.mark.needs_core

POISSON = {"kind": "poisson", "rate_per_second": 100_000}
JOB: dict[str, Any] = {"name": "a", "model": "lstm-256", "steps": 10, "arrival": POISSON}


def scenario(*jobs: dict[str, Any]) -> dict[str, Any]:
    return {"chip": "column-npu-16k", "jobs": list(jobs)}


def test_a_tenant_without_a_count_is_served_until_its_intervals_are_settled() -> None:
    served = serve(scenario(JOB), percentiles=(50.0, 95.0))
    assert (served.ended, served.until_half_width) == ("half width", 0.05)
    for each in (served.serving.latency.mean, served.serving.latency.percentiles[95.0]):
        assert each.half_width is not None
        assert each.half_width <= 0.06 * each.value
    assert 1000 < served.serving.requests < 50_000
    assert "intervals within 5 % after" in served.to_text()


def test_a_count_or_a_number_of_requests_is_kept_to() -> None:
    assert serve(scenario(JOB | {"count": 7})).serving.requests == 7
    assert serve(scenario(JOB), requests=9).serving.requests == 9
    mixed = scenario(JOB | {"count": 7}, JOB | {"name": "b"})
    assert serve(mixed).serving.requests == 8
    assert serve(scenario(JOB | {"arrival": {"kind": "fixed", "interval_cycles": 700}})).serving.requests == 1


def test_intervals_that_never_settle_end_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "UNCOUNTED_REQUESTS", 3000)
    served = serve(scenario(JOB | {"arrival": POISSON | {"rate_per_second": 600_000}}))
    assert (served.ended, served.serving.requests) == ("limit", 3000)
    assert "intervals not within 5 % at the limit of 3,000 requests" in served.to_text()


def test_too_few_says_how_many_it_takes() -> None:
    """A p99.9 takes 12 / 0.001 relaxations, and a tenth is left out."""
    short = serve(scenario(JOB), requests=1500)
    relaxation = short.serving.relaxation
    assert relaxation is not None
    assert short.serving.latency.percentiles[99.9].half_width is None
    needed = 12_000 * relaxation / 0.9
    text = " ".join(short.to_text().split())
    said = int(text.partition("p99.9 ")[2].partition("(too few, takes about ")[2].partition(")")[0].replace(",", ""))
    assert needed <= said < 1.1 * needed


def test_enough_requests_whose_batches_do_not_settle_are_not_called_too_few() -> None:
    served = serve(scenario(JOB), requests=1500)
    known = served.serving
    assert known.rates is not None
    assert "no interval" not in known.to_text()
    rates = replace(known.rates, throughput=Interval(known.throughput_per_second))
    latency = replace(known.latency, mean=Interval(known.latency.mean.value))
    text = " ".join(replace(known, latency=latency, rates=rates).to_text().split())
    assert text.count("(no interval, batches vary too much or are alike), p50 ") == 1
    assert " /s (no interval), goodput " in text


def test_the_first_sentence_says_that_a_machine_is_overloaded_and_where_the_run_was_cut() -> None:
    twice = JOB | {"arrival": POISSON | {"rate_per_second": 2e6}}
    served = serve(scenario(twice), requests=300)
    load = served.serving.load
    assert load is not None
    first = " ".join(served.to_text().split("\n\n")[0].split())
    assert first == f"SERVING: 300 requests on 2 threads; unstable at a load of {load.offered:.4g}"
    full = replace(served, ended="full", window=300, full_at=9)
    assert " ".join(full.to_text().split("\n\n")[0].split()) == f"{first}, cut with 300 in the machine"
    assert "unstable" not in serve(scenario(JOB), requests=300).to_text().split("\n\n")[0]


@pytest.mark.slow
def test_points_have_as_many_requests_as_a_p99_takes_at_their_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "_LEAST", 500)
    monkeypatch.setattr(points, "_MOST", 4000)
    low, middle, high = (each.measured for each in load_latency(scenario(JOB), loads=[0.1, 0.4, 0.9]).points)
    assert low.requests < middle.requests < high.requests == 4000
    for each in (low, middle):
        assert each.percentiles[99.0].half_width_ms is not None
    assert high.percentiles[99.0].half_width_ms is None
    assert load_latency(scenario(JOB), loads=[0.4], requests=600).points[0].measured.requests == 600
