"""Verdicts on queues that are stable, or not, for other reasons than their offered load alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

import lstmsim
import lstmsim as api
from lstmsim.studies.serve.offered import traffic_of
from lstmsim.studies.serve.result import Serving
from lstmsim.studies.shared.loading import load_scenario

#: `lstm-512`, 20 steps, on one thread.
SERVICE, MHZ = 1423, 260
MOST = MHZ * 1e6 / SERVICE


def job(load: float, **keys: Any) -> dict[str, Any]:
    arrival = {"kind": "poisson", "rate_per_second": load * MOST}
    return {"model": "lstm-512", "steps": 20, "count": 2000, "arrival": arrival} | keys


def chip(cores: int = 1) -> dict[str, Any]:
    core = {"npe": 65536, "ep": 32, "vp": 2048, "threads": 1}
    return {"kind": "column-npu", "frequency_mhz": MHZ, "cores": [core] * cores}


def served(jobs: list[dict[str, Any]], requests: int = 4000, cores: int = 1) -> Serving:
    return lstmsim.serve({"chip": chip(cores), "jobs": jobs}, requests=requests).serving


def simulated(jobs: list[dict[str, Any]]) -> Serving:
    return api.serving(api.run({"chip": chip(), "jobs": jobs}))


@pytest.mark.slow
def test_an_order_that_reloads_less_often_is_stable_where_the_order_of_arrival_is_not() -> None:
    core = {"npe": 65536, "ep": 32, "vp": 2048, "threads": 1, "weight_kib": 2100}
    machine = {"kind": "column-npu", "frequency_mhz": MHZ, "cores": [core], "memory": {"gb_per_s": 76.8}}
    layers = {"layers": [{"cell": "lstm", "hidden": 512, "input": 512}]}
    jobs = [
        job(1.05 * 26_000 / MOST, model={"name": name} | layers, steps=steps) for name, steps in (("a", 20), ("b", 21))
    ]
    verdicts = {}
    for dispatch in ("fcfs", "sjf"):
        result = lstmsim.serve({"chip": machine, "dispatch": dispatch, "jobs": jobs}, requests=6000).serving
        assert result.load is not None
        verdicts[dispatch] = result.verdict, result.load.offered >= 1, result.load.saturated_fcfs
    assert verdicts["fcfs"] == ("unstable", True, None)
    verdict, over, measured = verdicts["sjf"]
    assert (verdict, over) == ("too few", False) or (verdict, over) == ("settled", False)
    assert measured is not None
    assert measured > 1


def test_clients_beside_an_overload_do_not_hide_it() -> None:
    clients = {"kind": "closed", "clients": 2, "think_ms": 0.1}
    result = simulated([job(1.2, count=1500), job(0, count=100, name="asking", arrival=clients)])
    assert result.verdict == "unstable"
    assert result.load is not None
    assert result.load.offered == pytest.approx(1.2, rel=0.01)
    assert any("clients" in each for each in result.load.not_counted)


def test_clients_beside_a_load_that_is_no_overload_leave_it_open() -> None:
    clients = {"kind": "closed", "clients": 2, "think_ms": 0.1}
    result = simulated([job(0.3, count=500), job(0, count=100, name="asking", arrival=clients)])
    assert result.verdict != "unstable"


@pytest.mark.parametrize(
    ("limited", "free", "unstable"), [(0.7, 0.5, False), (0.1, 1.05, True), (1.05, 0.2, False), (1.2, None, False)]
)
def test_what_counts_is_the_load_of_those_that_are_never_rejected(
    limited: float, free: float | None, unstable: bool
) -> None:
    jobs = [job(limited, name="limited", queue_limit=5)]
    result = served(jobs if free is None else [*jobs, job(free, name="free")])
    assert (result.verdict == "unstable") == unstable


@pytest.mark.slow
def test_an_overload_on_one_core_is_seen_beside_a_queue_that_ends_on_the_other() -> None:
    jobs = [job(1.05, name="a", cores=[0], queue_limit=5), job(0.2, name="b", cores=[1])]
    assert served(jobs, cores=2).verdict != "unstable"
    jobs = [job(0.2, name="a", cores=[0], queue_limit=5), job(1.05, name="b", cores=[1])]
    assert served(jobs, cores=2).verdict == "unstable"


@pytest.mark.slow
def test_what_ends_early_is_no_load_of_the_whole_run() -> None:
    jobs = [job(0.6, name="short", count=50), job(0.6, name="long", count=3000)]
    result = simulated(jobs)
    assert result.verdict != "unstable"
    assert result.load is not None
    assert any("short ends early" in each for each in result.load.not_counted)
    assert served(jobs).verdict == "unstable"


def test_streams_of_almost_one_rate_remember_how_they_lie() -> None:
    def stream(interval: int) -> dict[str, Any]:
        return job(0, arrival={"kind": "periodic", "interval_cycles": interval, "jitter_cycles": 600})

    result = served([stream(3000), stream(3001)], requests=300)
    assert result.verdict == "too few"
    assert all(each.half_width is None for each in [result.latency.mean, *result.latency.percentiles.values()])
    twice = [stream(3000), stream(6000) | {"count": 1000}]
    load = traffic_of(load_scenario({"chip": chip(), "jobs": twice})).load
    assert load is not None
    assert load.relaxation == 1.0


@pytest.mark.parametrize(("load", "limit"), [(0.7, 1), (0.95, 2), (1.0, 1), (1.5, 1), (2.5, 3)])
def test_the_number_that_it_takes_is_enough_or_the_run_says_what_else_is_wrong(load: float, limit: int) -> None:
    asked, reported = [60], ""
    for _ in range(3):
        served = lstmsim.serve({"chip": chip(), "jobs": [job(load, queue_limit=limit)]}, requests=asked[-1])
        reported = " ".join(next(each for each in served.to_text().split("\n\n") if "verdict:" in each).split())
        number = re.search(r"takes about ([\d,]+)", reported)
        if number is None:
            break
        asked.append(int(number[1].replace(",", "")))
    assert len(asked) > 1, reported
    assert asked == sorted(set(asked)), reported
    assert "verdict: settled" in reported


def test_a_machine_that_hardly_idles_is_not_said_to_be_taken_for_certain() -> None:
    truth = 1 - 1e-5  # where so much is turned away, no run of this length is likely to show an idle cycle
    for seed in range(4):
        arrival = {"kind": "poisson", "rate_per_second": 1.5 * MOST, "seed": seed}
        rates = served([job(0, arrival=arrival, queue_limit=10)], requests=1500).rates
        assert rates is not None
        assert rates.utilization is not None
        assert rates.utilization.holds(truth)
