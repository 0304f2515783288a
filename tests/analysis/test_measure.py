"""Figures of a report by hand, from what the contract's worked examples state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lstmsim import run
from lstmsim.analysis.report import latency_statistics, measure
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.trace import Totals

#: docs/timing.md, section 6: one job takes 1423 cycles, utilization 44.98 %.
CORE = ColumnCore(npe=65536, ep=32, vp=2048)
MODEL = Model("m", (Layer(cell("lstm"), 512, 512),))
MACS = 20 * 4 * 512 * (512 + 512)


def scenario(cores: int = 1, jobs: int = 1) -> Scenario:
    return Scenario(ColumnNpu("c", 260, (CORE,) * cores), tuple(Job(f"j{i}", MODEL, 20) for i in range(jobs)))


@pytest.mark.parametrize("cores", [1, 2])
def test_utilization_and_tops_of_the_worked_example(cores: int) -> None:
    """As many jobs as cores, each alone on its own: the time of one, the work of all."""
    report = run(scenario(cores, cores)).report
    assert report.makespan_cycles == 1423
    assert report.utilization == pytest.approx(MACS / (65536 * 1423))
    # a multiplication and an addition each, in 1423 cycles of 1 / 260 us
    assert report.tops == pytest.approx(cores * 2 * MACS / (1423 / 260e6) / 1e12)
    assert [job.number for job in report.jobs] == list(range(cores))
    assert [core.index for core in report.cores] == list(range(cores))
    milliseconds = 1423 / 260e3
    latency = report.latency_ms
    assert [latency.mean, latency.p50, latency.p95, latency.p99, latency.max] == pytest.approx([milliseconds] * 5)
    assert report.memory_busy_cycles is None
    assert report.rejected == ()


def test_a_run_of_no_cycles_has_no_rates() -> None:
    whole = run(scenario()).totals
    tasks = whole.tasks.copy()
    tasks[:, 2:5] = 0
    nothing = Totals(0 * whole.cycles, 0 * whole.work, 0 * whole.issues, tasks)
    report = measure(scenario(), nothing, "fast")
    assert (report.makespan_cycles, report.utilization, report.tops) == (0, 0, 0)


def test_percentiles_are_interpolated_between_ranks() -> None:
    """Rank p % of n - 1, from 0: of 0, 10, ..., 100 the p-th percentile is p; of two values it lies between them."""
    values = latency_statistics([10.0 * number for number in reversed(range(11))], 0.001)
    assert [values.mean, values.p50, values.p95, values.p99, values.max] == pytest.approx([50, 50, 95, 99, 100])
    two = latency_statistics([3.0, 1.0], 0.001)
    assert [two.p50, two.p95, two.p99] == pytest.approx([2.0, 2.9, 2.98])
    one = latency_statistics([7.0], 0.001)
    assert (one.mean, one.p50, one.p95, one.p99, one.max) == (7, 7, 7, 7, 7)


def test_a_job_that_was_rejected_is_listed_with_its_number_and_when() -> None:
    """One thread, no place in the queue: who comes while it is taken goes at once."""
    first, late = Job("first", MODEL, 20), Job("late", MODEL, 20, arrival=100)
    refused = replace(late, name="refused", arrival=50, queue_limit=0)
    report = run(Scenario(ColumnNpu("c", 260, (CORE,)), (first, refused, late))).report
    assert [job.name for job in report.jobs] == ["first", "late"]
    assert [job.number for job in report.jobs] == [0, 2]
    assert [(each.name, each.number, each.arrival, each.at) for each in report.rejected] == [("refused", 1, 50, 50)]


@pytest.mark.parametrize(
    ("arrival", "requests"),
    [
        (3, False),
        ({"kind": "poisson", "rate_per_second": 1000}, True),
        ({"kind": "closed", "clients": 1, "think_ms": 1}, True),
    ],
)
def test_jobs_of_one_entry_that_come_one_after_another_are_requests(arrival: object, requests: bool) -> None:
    entry = {"model": "lstm-256", "steps": 1, "count": 3, "arrival": arrival}
    given = {"chip": "column-npu-16k", "jobs": [entry, {"model": "lstm-256", "steps": 1, "arrival": 9}]}
    assert run(given).report.requests is requests
