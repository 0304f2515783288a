"""A loaded scenario remembers what it was read from, so that studies draw its requests anew."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim import InputError, Job, Scenario

ARRIVAL = {"kind": "poisson", "rate_per_second": 1e5}
ENTRY = {"model": "lstm-256", "steps": 1, "count": 200, "arrival": ARRIVAL}
DATA: dict[str, Any] = {"chip": "column-npu-16k", "jobs": [ENTRY]}


def saturated(scenario: Any, **keys: Any) -> Any:
    return lstmsim.saturate(scenario, 0.002, tolerance=0.5, most_requests=2_000, **keys).to_dict()


def curve(scenario: Any, **keys: Any) -> Any:
    return lstmsim.load_latency(scenario, loads=[0.3], requests=400, **keys).to_dict()


def served(scenario: Any, **keys: Any) -> Any:
    return lstmsim.serve(scenario, requests=800, **keys).to_dict()


@pytest.mark.slow
@pytest.mark.needs_core
@pytest.mark.parametrize("study", [saturated, curve, served])
def test_a_loaded_scenario_is_the_file_that_it_was_read_from(study: Callable[..., Any], tmp_path: Path) -> None:
    expected = study(DATA)
    assert study(lstmsim.load_scenario(DATA)) == expected
    assert study(Scenario(**DATA)) == expected
    assert study(pickle.loads(pickle.dumps(lstmsim.load_scenario(DATA)))) == expected
    longer = "jobs.0.steps=3"
    assert study(lstmsim.load_scenario(DATA, [longer])) == study(DATA, overrides=[longer]) != expected


@pytest.mark.parametrize("study", [saturated, curve])
def test_a_changed_scenario_says_that_it_is_finished(study: Callable[..., Any]) -> None:
    loaded = lstmsim.load_scenario(DATA)
    for scenario in (
        replace(loaded, jobs=loaded.jobs[:3]),
        Scenario(chip="column-npu-16k", jobs=[Job(model="lstm-256")]),
    ):
        with pytest.raises(InputError, match="scenario: is finished: its jobs come at fixed cycles"):
            study(scenario)


def test_what_was_read_is_no_part_of_what_is_compared() -> None:
    loaded = lstmsim.load_scenario(DATA)
    changed = replace(loaded, jobs=loaded.jobs)
    assert loaded.origin is not None
    assert changed.origin is None
    assert (changed, hash(changed), repr(changed)) == (loaded, hash(loaded), repr(loaded))
