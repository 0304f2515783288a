"""Slowdown is against the job alone on the chip: ANTT and STP as published, and remarks on who keeps others out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lstmsim
from lstmsim import machines, run, serve, serving
from lstmsim.model.figures import CoreFigures
from lstmsim.studies.serve.demands import Alones, alone
from lstmsim.studies.serve.metrics import coarse_cores
from lstmsim.studies.serve.result import Serving
from lstmsim.studies.serve.tenants import Coarse, Rows, Sharing
from lstmsim.studies.shared.loading import load_scenario
from lstmsim.studies.simulate.page.page import report_page
from tests.studies.serve.collecting import Collector

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
    served = serving(result)
    small = served.tenants["lstm-512"]
    assert small.slowdown == pytest.approx(27_383 / 1_773, rel=1e-12)
    assert small.progress == pytest.approx(1_773 / 27_383, rel=1e-12)
    assert served.fairness_slowdown < 0.7
    listed = Serving.to_dict(served)
    assert listed["models"]["lstm-512"]["slowdown"] == listed["tenants"][1]["slowdown"] == small.slowdown


def test_who_keeps_others_out_is_named() -> None:
    result = run(KEPT_OUT, overrides=COARSE)
    served = serving(result)
    (remark,) = served.remarks
    assert remark.startswith("deepbench-lstm-2048-25 never stalls: on core 0, whose 4 threads are coarse-grained")
    assert "There lstm-512 takes 15.4 times as long" in remark
    assert "`thread_policy: fine`" in remark
    assert "remark: deepbench-lstm-2048-25 never stalls" in Serving.to_text(served)
    assert Serving.to_dict(served)["remarks"] == [remark]
    assert "There lstm-512 takes 15.4 times as long" in report_page(result, serving=served)
    assert serve(KEPT_OUT, overrides=COARSE).serving.remarks == (remark,)


def test_fine_threads_share() -> None:
    served = serving(run(KEPT_OUT, overrides=FINE))
    assert served.remarks == ()
    small = served.tenants["lstm-512"]
    assert small.slowdown is not None
    assert 1.5 < small.slowdown < 2


@pytest.mark.parametrize("model", ["deepbench-lstm-1536-50", "deepbench-lstm-2048-25"])
def test_nobody_is_named_where_shares_are_fair(model: str) -> None:
    """Jobs that all want the whole array take as many times longer as there are threads, whatever the policy."""
    jobs = [{"model": model, "steps": 5, "count": 6}, {"model": model, "steps": 5, "count": 6}]
    served = serving(run({"chip": "column-npu-64k", "jobs": jobs}, overrides=COARSE))
    assert served.remarks == ()
    assert all((each.slowdown or 0) > 2 for each in served.tenants.values())


def test_nobody_is_named_for_what_the_memory_does() -> None:
    """Jobs take 20 times as long as alone on cores with two coarse threads, but because weights are loaded."""
    many = Path(lstmsim.__file__).parents[1] / "experiments" / "scenarios" / "many.yaml"
    if not many.is_file():
        pytest.skip("the scenarios are not part of the installed package")
    served = serving(run(many))
    assert served.tenants["lstm-512"].slowdown is not None
    assert served.tenants["lstm-512"].slowdown > 10
    assert served.remarks == ()


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40), st.integers(0, 2), st.booleans()), max_size=25),
    st.integers(1, 5),
)
def test_cycles_kept_out_are_those_of_a_count(drawn: list[tuple[int, int, int, bool]], size: int) -> None:
    """Each job that never stalls has the array for as long as it takes alone, at its end."""
    # The jobs run one after another, because they share the array.
    end, runs = 0, []
    for start, alone_cycles, tenant, stalls in drawn:
        end += alone_cycles
        runs.append((min(start, end - alone_cycles), end, alone_cycles, tenant, stalls))
    sharing = Sharing({0: Coarse(2)})
    for first in range(0, len(runs), size):
        chunk = np.array(runs[first : first + size], dtype=np.int64).T
        none, one = np.zeros(chunk.shape[1], dtype=np.int64), np.ones(chunk.shape[1], dtype=np.int64)
        rows = Rows(chunk[0], chunk[0], chunk[1], none, one, chunk[2], none, chunk[4], none)
        sharing.take(chunk[3], rows)
    for tenant in range(3):
        kept = 0
        for start, finish, alone_cycles, own, _ in runs:
            busy = {
                cycle
                for _, ended, took, other, stalls in runs
                for cycle in range(ended - took, ended)
                if not stalls and other != tenant and ended < finish and cycle >= start
            }
            kept += min(len(busy), finish - start - alone_cycles) if own == tenant else 0
        assert sharing._sums.get((tenant, 0), [0, 0, 0, 0])[3] == kept


def test_one_request_a_tenant_is_the_published_definition() -> None:
    jobs = [{"model": "lstm-512", "steps": 20}, {"model": "lstm-256", "steps": 30}, {"model": "gru-512", "steps": 10}]
    result = run({"chip": "column-npu-16k", "jobs": jobs})
    single = [alone(result.scenario.chip, job).latency_cycles for job in result.scenario.jobs]
    ratios = [job.latency / cycles for job, cycles in zip(result.report.jobs, single, strict=True)]
    served = serving(result)
    assert served.antt == pytest.approx(sum(ratios) / 3, rel=1e-12)
    assert served.stp == pytest.approx(sum(1 / ratio for ratio in ratios), rel=1e-12)
    assert served.antt is not None
    assert served.antt > 1
    plain = Serving.to_dict(served)
    assert (plain["antt"], plain["stp"]) == (served.antt, served.stp)


def test_of_many_requests_the_mean_counts() -> None:
    collector = Collector(100, entries="ab")
    collector.add(0, 0, 0, 10, tenant="a", alone=10)
    collector.add(1, 0, 10, 20, tenant="a", alone=5)
    collector.add(2, 0, 20, 30, tenant="b", alone=10)
    collector.turn_away(3, 0, 30, tenant="b", alone=10)
    served = collector.figures()
    a, b = served.tenants.values()
    assert (a.slowdown, a.progress) == (2.5, 0.625)
    assert b.slowdown == 3
    assert b.progress == pytest.approx(1 / 6, rel=1e-12), "one that is turned away gets nowhere"
    assert served.antt == 2.75
    assert served.stp == pytest.approx(0.625 + 1 / 6, rel=1e-12)


def test_nothing_is_claimed_where_no_time_alone_is_known() -> None:
    collector = Collector(100)
    collector.add(0, 0, 0, 10)
    served = collector.figures()
    assert (served.antt, served.stp, served.tenants[""].slowdown) == (None, None, None)
    assert "slowdown" not in Serving.to_text(served)


def test_jobs_alone_are_simulated_once_a_kind() -> None:
    jobs = [
        {"model": "lstm-512", "steps": 3, "count": 500, "arrival": list(range(500)), "deadline": 50, "priority": 2},
        {"model": "lstm-512", "steps": 4, "count": 2, "queue_limit": 0},
    ]
    scenario = load_scenario({"chip": "column-npu-64k", "jobs": jobs})
    alones = Alones(scenario.chip)
    cycles = [alones(job) for job in scenario.jobs]
    assert alones.simulated == 2
    assert cycles[0] == alone(scenario.chip, scenario.jobs[0])
    assert cycles[-1] == alone(scenario.chip, scenario.jobs[-1])


@pytest.mark.parametrize(("paused", "times"), [(0, "10 times"), (700, "3 times"), (800, None), (900, None)])
def test_while_it_is_paused_a_request_is_not_kept_out(paused: int, times: str | None) -> None:
    """Of 1,000 cycles 100 are its own; on two threads it could take twice as long with equal shares."""
    sharing = Sharing({0: Coarse(2)})
    none, own = np.zeros(2, dtype=np.int64), np.array([0, 1])
    finish, alone_cycles, one = np.array([900, 1000]), np.array([900, 100]), np.ones(2, dtype=np.int64)
    sharing.take(own, Rows(none, none, finish, none, one, alone_cycles, none, own, np.array([0, paused])))
    remarks = sharing.remarks(["long", "short"])
    assert len(remarks) == (times is not None)
    assert all(f"There short takes {times} as long" in each for each in remarks)


@pytest.mark.parametrize(("alone_cycles", "slowdown"), [(0, None), (1, 6.0), (2, 3.0)])
def test_a_job_that_takes_one_cycle_alone_is_known_and_none_is_not(alone_cycles: int, slowdown: float | None) -> None:
    collector = Collector(100, entries="a")
    collector.add(0, 4, 5, 10, tenant="a", alone=alone_cycles)
    assert collector.figures().tenants["a"].slowdown == slowdown


def test_coarse_cores_are_known_by_the_program_whatever_a_machine_shows() -> None:
    scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 1}]})
    program = machines.lower(scenario.chip, scenario.jobs)
    silent: Any = SimpleNamespace(core_figures=(CoreFigures(1, 1),))
    assert coarse_cores(silent, program) == {0: Coarse(2)}
    assert (
        coarse_cores(scenario.chip, program)[0].remedy
        == "`thread_policy: fine` shares the array among the threads (what that gives was not simulated)"
    )
    fine = load_scenario(
        {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 1}]},
        overrides=["chip.cores.0.thread_policy=fine"],
    )
    assert coarse_cores(fine.chip, machines.lower(fine.chip, fine.jobs)) == {}
