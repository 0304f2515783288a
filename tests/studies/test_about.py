"""A result says what it was made of, so that it can be made again: version, scenario, models, seeds."""

from __future__ import annotations

import json

import lstmsim

SCENARIO = {
    "name": "two",
    "chip": "column-npu-16k",
    "jobs": [
        {
            "model": "lstm-256",
            "steps": 3,
            "count": 4,
            "arrival": {"kind": "poisson", "rate_per_second": 1e5, "seed": 7},
        },
        {"model": "gru-512", "steps": {"kind": "uniform", "low": 1, "high": 3}, "count": 2},
    ],
}


def test_a_simulation_can_be_made_again_of_its_json() -> None:
    first = lstmsim.run(SCENARIO)
    data = json.loads(json.dumps(first.to_dict()))
    assert (data["version"], data["schema"]) == (lstmsim.__version__, "lstmsim/report/2")
    assert data["seeds"] == {"jobs.0.arrival": 7, "jobs.1.steps": 0}
    assert data["scenario"]["jobs"][0]["model"]["layers"] == [
        {"cell": "lstm", "hidden": 256, "input": 256, "bidirectional": False}
    ]
    again = lstmsim.run(data["scenario"]).to_dict()
    assert {key: again[key] for key in again if key != "seeds"} == {key: data[key] for key in data if key != "seeds"}


def test_serving_says_what_was_served_and_the_seeds_of_its_requests() -> None:
    data = json.loads(json.dumps(lstmsim.serve(SCENARIO, requests=20).to_dict()))
    assert data["seeds"] == {"jobs.0.arrival": 7, "jobs.1.steps": 0}
    assert [each["name"] for each in data["scenario"]["models"]] == ["lstm-256", "gru-512"]
    assert data["scenario"]["chip"]["cores"][0]["npe"] == 16384
    assert data["version"] == lstmsim.__version__
