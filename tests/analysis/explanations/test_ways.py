"""Explanations of cores whose main unit consists of several equal units."""

from __future__ import annotations

from typing import Any

import pytest

import lstmsim

SCENARIO: dict[str, Any] = {
    "chip": "v100",
    "jobs": [{"name": "a", "model": {"layers": [{"cell": "lstm", "hidden": 32, "input": 32}]}, "steps": 1}],
}


@pytest.mark.slow
@pytest.mark.needs_core
@pytest.mark.usefixtures("no_other_machines")
def test_useful_work_is_told_of_the_units_that_issue_not_of_the_whole_core() -> None:
    result = lstmsim.run(lstmsim.load_scenario(SCENARIO, ["chip.cores.0.count=1"]))
    lanes = 16  # of one scheduler; the busy cycles of the four schedulers of an SM each count
    busy = sum(core.cycles["busy"] for core in result.report.cores)
    expected = 4 * 32 * 64 / (lanes * busy)
    assert lstmsim.explain(result).array_useful == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.needs_core
@pytest.mark.usefixtures("no_other_machines")
def test_schedulers_are_told_of_in_words_of_their_own() -> None:
    result = lstmsim.run(lstmsim.load_scenario(SCENARIO | {"chip": "edge"}, ["chip.cores.0.count=1"]))
    explanation = lstmsim.explain(result)
    text = explanation.to_text()
    assert "behind others" not in text
    assert next(each for each in explanation.shares if each.kind == "behind").name == "launch"
    assert "Where a scheduler issues, " in text
    assert "padding or unmapped" not in text
    share = 100 * explanation.array_cycles / (4 * explanation.makespan_cycles)
    said = " ".join(text.split())
    assert f"The 4 schedulers issue in {explanation.array_cycles:,} cycles together ({share:.1f} % of the" in said
