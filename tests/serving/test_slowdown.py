"""Slowdown is against the job alone on the chip: ANTT and STP as published, and who keeps others out."""

from __future__ import annotations

from typing import Any

import pytest

from lstmsim import serve
from lstmsim.api import run, serving
from lstmsim.html.page import report_page
from lstmsim.loading import load_scenario
from lstmsim.serving.metrics import Collector
from lstmsim.serving.text import serving_json, serving_text
from lstmsim.traffic.alone import Alones, alone

#: Three jobs without hazards on four threads, and one that has some: it comes when the first is about to end.
KEPT_OUT: dict[str, Any] = {
    "chip": "column-npu-64k",
    "jobs": [
        {"model": "deepbench-lstm-2048-25", "steps": 25, "count": 3},
        {"model": "lstm-512", "steps": 25, "arrival": 12_790},
    ],
}
COARSE = ["chip.cores.0.threads=4"]
FINE = [*COARSE, "chip.cores.0.thread_policy=fine"]


def test_coarse_threads_that_wait_are_slow() -> None:
    result = run(KEPT_OUT, overrides=COARSE)
    assert [job.latency for job in result.report.jobs if job.name == "lstm-512"] == [27_383]
    assert alone(result.scenario.chip, result.scenario.jobs[-1]).latency_cycles == 1_773
    found = serving(result)
    small = found.tenants["lstm-512"]
    assert small.slowdown == pytest.approx(27_383 / 1_773, rel=1e-12)
    assert small.progress == pytest.approx(1_773 / 27_383, rel=1e-12)
    assert found.fairness_slowdown < 0.7
    listed = serving_json(found)
    assert listed["models"]["lstm-512"]["slowdown"] == listed["tenants"][1]["slowdown"] == small.slowdown


def test_who_keeps_others_out_is_named() -> None:
    result = run(KEPT_OUT, overrides=COARSE)
    found = serving(result)
    (remark,) = found.remarks
    assert remark.startswith("deepbench-lstm-2048-25 never stalls: on core 0, whose 4 threads are coarse-grained")
    assert "There lstm-512 takes 15.4 times as long" in remark
    assert "`thread_policy: fine`" in remark
    assert "remark: deepbench-lstm-2048-25 never stalls" in serving_text(found)
    assert serving_json(found)["remarks"] == [remark]
    assert "There lstm-512 takes 15.4 times as long" in report_page(result, serving=found)
    assert serve(KEPT_OUT, overrides=COARSE).serving.remarks == (remark,)


def test_fine_threads_share() -> None:
    found = serving(run(KEPT_OUT, overrides=FINE))
    assert found.remarks == ()
    small = found.tenants["lstm-512"]
    assert small.slowdown is not None
    assert 1.5 < small.slowdown < 2


@pytest.mark.parametrize("model", ["deepbench-lstm-1536-50", "deepbench-lstm-2048-25"])
def test_nobody_is_named_where_shares_are_fair(model: str) -> None:
    """Jobs that all want the whole array take as many times longer as there are threads, whatever the policy."""
    jobs = [{"model": model, "steps": 5, "count": 6}, {"model": model, "steps": 5, "count": 6}]
    found = serving(run({"chip": "column-npu-64k", "jobs": jobs}, overrides=COARSE))
    assert found.remarks == ()
    assert all((each.slowdown or 0) > 2 for each in found.tenants.values())


def test_one_request_a_tenant_is_the_published_definition() -> None:
    jobs = [{"model": "lstm-512", "steps": 20}, {"model": "lstm-256", "steps": 30}, {"model": "gru-512", "steps": 10}]
    result = run({"chip": "column-npu-16k", "jobs": jobs})
    single = [alone(result.scenario.chip, job).latency_cycles for job in result.scenario.jobs]
    ratios = [job.latency / cycles for job, cycles in zip(result.report.jobs, single, strict=True)]
    found = serving(result)
    assert found.antt == pytest.approx(sum(ratios) / 3, rel=1e-12)
    assert found.stp == pytest.approx(sum(1 / ratio for ratio in ratios), rel=1e-12)
    assert found.antt is not None
    assert found.antt > 1
    plain = serving_json(found)
    assert (plain["antt"], plain["stp"]) == (found.antt, found.stp)


def test_of_many_requests_the_mean_counts() -> None:
    collector = Collector(100)
    collector.add(0, 0, 0, 10, tenant="a", alone=10)
    collector.add(1, 0, 10, 20, tenant="a", alone=5)
    collector.add(2, 0, 20, 30, tenant="b", alone=10)
    collector.turn_away(3, 0, 30, tenant="b", alone=10)
    found = collector.result()
    a, b = found.tenants.values()
    assert (a.slowdown, a.progress) == (2.5, 0.625)
    assert b.slowdown == 3
    assert b.progress == pytest.approx(1 / 6, rel=1e-12), "one that is turned away gets nowhere"
    assert found.antt == 2.75
    assert found.stp == pytest.approx(0.625 + 1 / 6, rel=1e-12)


def test_nothing_is_claimed_where_no_time_alone_is_known() -> None:
    collector = Collector(100)
    collector.add(0, 0, 0, 10)
    found = collector.result()
    assert (found.antt, found.stp, found.tenants[""].slowdown) == (None, None, None)
    assert "slowdown" not in serving_text(found)


def test_jobs_alone_are_simulated_once_a_kind() -> None:
    jobs = [
        {"model": "lstm-512", "steps": 3, "count": 500, "arrival": list(range(500)), "deadline": 50, "priority": 2},
        {"model": "lstm-512", "steps": 4, "count": 2, "queue_limit": 0},
    ]
    scenario = load_scenario({"chip": "column-npu-64k", "jobs": jobs})
    alones = Alones(scenario.chip)
    found = [alones(job) for job in scenario.jobs]
    assert alones.simulated == 2
    assert found[0] == alone(scenario.chip, scenario.jobs[0])
    assert found[-1] == alone(scenario.chip, scenario.jobs[-1])
