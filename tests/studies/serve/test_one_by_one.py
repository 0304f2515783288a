"""Serving on machines that run one job after the other: whole jobs, equal to a simulation of all jobs."""

from collections.abc import Mapping
from typing import Any

import pytest

import lstmsim
from lstmsim import engines
from lstmsim.studies.serve.metrics import served
from lstmsim.studies.serve.offered import traffic_of
from lstmsim.studies.serve.programs import alone, serving_program
from lstmsim.studies.serve.request import Row
from lstmsim.studies.shared.loading import load_scenario


def _model(cell: str, hidden: int) -> dict[str, Any]:
    return {"name": f"{cell}{hidden}", "layers": [{"cell": cell, "hidden": hidden, "input": 16}]}


def _scenario(chip: Any, **more: Any) -> dict[str, Any]:
    both = [
        {"model": _model("lstm", 16), "steps": 2, "rate": 5e3, "deadline": 60_000},
        {"model": _model("gru", 40), "steps": {"kind": "uniform", "low": 1, "high": 3}, "rate": 4e3, "priority": 1},
    ]
    jobs = []
    for each in both:
        rate = each.pop("rate")
        jobs.append({**each, "weights": "warm", "count": 15, "arrival": {"kind": "poisson", "rate_per_second": rate}})
    return {"chip": chip, "jobs": jobs, **more}


@pytest.mark.parametrize(
    ("chip", "dispatch"),
    [
        # in the usual run each order has one of the two machines
        pytest.param(chip, dispatch, marks=() if number % 2 == at else pytest.mark.long)
        for at, chip in enumerate(("v100", "edge"))
        for number, dispatch in enumerate(("fcfs", "sjf", "edf", "priority"))
    ],
)
def test_served_to_the_cycle_as_simulated(chip: str, dispatch: str) -> None:
    rows: list[Row] = []
    served = lstmsim.serve(_scenario(chip, dispatch=dispatch), rows=rows.extend)
    report = lstmsim.simulate(_scenario(chip, dispatch=dispatch))
    mine = sorted((each.arrival, each.start, each.finish) for each in rows)
    assert mine == sorted((each.arrival, each.start, each.finish) for each in report.jobs)
    assert served.makespan_cycles == report.makespan_cycles
    assert served.utilization == report.utilization
    assert any(each.start > each.arrival for each in rows)


def test_both_engines_serve_alike() -> None:
    scenario = load_scenario(_scenario("edge"))
    program = serving_program(scenario.chip, scenario.jobs)
    fast, reference = (engines.totals(program, engine) for engine in ("fast", "reference"))
    assert fast.tasks.tolist() == reference.tasks.tolist()


def test_a_batch_is_one_job() -> None:
    job = {"model": _model("lstm", 16), "steps": 1, "arrival": {"kind": "poisson", "rate_per_second": 1e3}}
    rows: list[Row] = []
    lstmsim.serve({"chip": "v100", "jobs": [{**job, "batch": 4}]}, requests=20, rows=rows.extend)
    scenario = load_scenario(
        {"chip": "v100", "jobs": [{"model": job["model"], "steps": 1, "batch": 4, "weights": "warm"}]}
    )
    assert {each.finish - each.start for each in rows} == {alone(scenario.chip, scenario.jobs[0]).latency_cycles}


def test_the_load_is_rate_times_cycles_of_a_job() -> None:
    job = {"model": _model("lstm", 16), "steps": 1, "count": 50, "weights": "warm"}
    scenario = load_scenario(
        {"chip": "v100", "jobs": [{**job, "arrival": {"kind": "poisson", "rate_per_second": 2e4}}]}
    )
    load = traffic_of(scenario).load
    assert load is not None
    cycles = alone(scenario.chip, scenario.jobs[0]).latency_cycles
    assert load.parts["threads"] == pytest.approx(2e4 * cycles / (scenario.chip.frequency_mhz * 1e6))
    # a backlog starts a job as soon as the one before it is done
    assert load.parts["saturated"] == pytest.approx(load.parts["threads"])
    assert 0 < load.parts["schedulers"] < load.parts["threads"]


def _small(count: int, **chip: Any) -> Mapping[str, Any]:
    device = {"kind": "parallel-device", "name": "d", "frequency_mhz": 1000, "cores": [{"count": count}], **chip}
    arrival = {"kind": "poisson", "rate_per_second": 1e3}
    return {"chip": device, "jobs": [{"model": _model("gru", 100), "steps": 2, "arrival": arrival}]}


@pytest.mark.slow
def test_what_schedulers_remember_from_job_to_job_is_said() -> None:
    one = {"cores": [{"count": 1, "schedulers": 2}], "fusion": "on", "launch": 100}
    said = lstmsim.serve(_small(1, **one), requests=20).remarks
    assert any("Schedulers remember from job to job" in each for each in said)
    assert not any("Schedulers" in each for each in lstmsim.serve(_scenario("v100"), requests=20).remarks)


@pytest.mark.slow
def test_saturate_and_curves() -> None:
    job = {"model": _model("lstm", 16), "steps": 2, "arrival": {"kind": "poisson", "rate_per_second": 1e3}}
    scenario = {"chip": "v100", "jobs": [job]}
    found = lstmsim.saturate(scenario, bound_ms=0.2, tolerance=0.2, most_requests=20_000)
    assert found.rate is not None
    assert 0 < found.rate < found.bound_per_second


def test_a_job_of_a_device_takes_one_thread() -> None:
    model = {"name": "m", "layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}
    arrival = {"kind": "fixed", "interval_cycles": 100}
    scenario = {
        "chip": "edge",
        "jobs": [{"model": model, "steps": 1, "count": 5, "weights": "cold", "arrival": arrival}],
    }
    made = lstmsim.run(scenario)
    simulated = served(made.scenario, made.program, made.report, made.totals)
    assert simulated.utilization == lstmsim.serve(scenario).serving.utilization
    assert 0 < simulated.utilization <= 1
