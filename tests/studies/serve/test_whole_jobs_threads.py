"""A job that has the whole device takes the one thread that there is, in `simulate` as in `serve`."""

from __future__ import annotations

from lstmsim import run, serve
from lstmsim.studies.serve.metrics import served


def test_a_job_of_a_device_takes_one_thread() -> None:
    model = {"name": "m", "layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}
    arrival = {"kind": "fixed", "interval_cycles": 100}
    scenario = {
        "chip": "edge",
        "jobs": [{"model": model, "steps": 1, "count": 5, "weights": "cold", "arrival": arrival}],
    }
    made = run(scenario)
    simulated = served(made.scenario, made.program, made.report, made.totals)
    assert simulated.utilization == serve(scenario).serving.utilization
    assert 0 < simulated.utilization <= 1
