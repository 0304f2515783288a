"""Explanations of cores whose main unit consists of several equal units."""

from __future__ import annotations

from typing import Any

import pytest

import lstmsim

SCENARIO: dict[str, Any] = {
    "chip": "v100",
    "jobs": [{"name": "a", "model": {"layers": [{"cell": "lstm", "hidden": 32, "input": 32}]}, "steps": 1}],
}


@pytest.mark.needs_core
def test_useful_work_is_told_of_the_units_that_issue_not_of_the_whole_core() -> None:
    result = lstmsim.run(lstmsim.load_scenario(SCENARIO))
    lanes = 16  # of one scheduler; the busy cycles of the four schedulers of an SM each count
    busy = sum(core.cycles["busy"] for core in result.report.cores)
    expected = 4 * 32 * 64 / (lanes * busy)
    assert lstmsim.explain(result).array_useful == pytest.approx(expected)
