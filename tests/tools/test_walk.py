"""`tools/walk.py`: how far a reader walks who follows a scenario. Whoever makes the way longer sees it here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.walk import walk

DEMO = Path(__file__).parents[2] / "experiments" / "scenarios" / "demo.yaml"


def _lengths(stays: list[tuple[str, list[str]]]) -> tuple[int, int]:
    return len({module for module, _ in stays}), len(stays)


@pytest.mark.needs_core
@pytest.mark.skipif(not DEMO.is_file(), reason="the example scenarios are not beside the tests")
def test_the_way_of_a_scenario_is_short() -> None:
    """Each pass does one thing to the end. One that asks an earlier module again makes two stays more."""
    stays = walk(str(DEMO))
    made = next(place for place, (_, names) in enumerate(stays, 1) if "Scenario.__post_init__" in names)
    modules, all_stays = _lengths(stays)
    assert modules <= 34
    assert all_stays - modules <= 54
    # of these, from the request to the scenario
    modules, all_stays = _lengths(stays[:made])
    assert modules <= 21
    assert all_stays <= 44
