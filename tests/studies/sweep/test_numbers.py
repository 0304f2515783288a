"""The numbers of a row are those of the report of the same run, to the last bit, though no report is made for them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim import engines, load_scenario, machines
from lstmsim.analysis.report import measure
from lstmsim.model.scenario import Scenario
from lstmsim.studies.sweep import evaluate
from lstmsim.studies.sweep.columns import NUMBERS, numbers_of
from tests.strategies import scenarios
from tests.studies.sweep.specs import numbers_of_report

#: 500 and more by LSTMSIM_EXAMPLES=500; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "14"))

LSTM = {"layers": [{"cell": "lstm", "hidden": 64, "input": 64}]}


def agree(scenario: Scenario) -> dict[str, int | float]:
    totals = engines.totals(machines.lower(scenario.chip, scenario.jobs))
    numbers = numbers_of(scenario, totals)
    assert repr(numbers) == repr(numbers_of_report(scenario, measure(scenario, totals, "fast")))
    assert numbers_of(scenario, evaluate.simulated(scenario.chip, scenario.jobs)) == numbers
    return dict(zip(NUMBERS, numbers, strict=True))


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(scenarios(), st.sampled_from([None, 0, 1]), st.sampled_from([None, 5]))
def test_random_scenarios(scenario: Scenario, queue_limit: int | None, patience: int | None) -> None:
    jobs = tuple(replace(job, queue_limit=queue_limit, patience=patience) for job in scenario.jobs)
    agree(replace(scenario, jobs=jobs, chip=replace(scenario.chip, frequency_mhz=273.3)))  # type: ignore[type-var]


@pytest.mark.parametrize("chip", ["intel-npu-rtl", "brainwave-s10"])
def test_a_row_wise_machine(chip: str) -> None:
    assert agree(load_scenario({"chip": chip, "jobs": [{"model": "gru-512", "steps": 3}]}))["dispatch"] > 0


def test_a_memory_beside_the_chip_is_no_core() -> None:
    core = {"npe": 256, "ep": 8, "vp": 32, "weight_kib": 33}
    chip = {"kind": "column-npu", "frequency_mhz": 260, "cores": [core], "memory": {"gb_per_s": 1}}
    job: dict[str, Any] = {"steps": 3, "model": LSTM}
    numbers = agree(load_scenario({"chip": chip, "jobs": [job, {**job, "model": {**LSTM, "name": "other"}}]}))
    assert numbers["reload"] > 0
    assert sum(numbers[name] for name in ("busy", "reload")) < numbers["makespan_cycles"]


def test_jobs_that_are_rejected_have_no_latency() -> None:
    jobs = [{"model": LSTM, "steps": 9, "count": 4, "queue_limit": 1}]
    chip = {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 256, "ep": 8, "vp": 32}]}
    assert agree(load_scenario({"chip": chip, "jobs": jobs}))["turned_away"] == 2
