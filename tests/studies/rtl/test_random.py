"""Random scenarios, of two authors: Verilog and simulator are equal in every cycle and every bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.studies.rtl.drawn import mappings, seeded
from tests.studies.rtl.needed import long_run, needs_icarus, needs_verilator
from tests.studies.rtl.scenarios import drawn, split, step_of, streamed
from tests.studies.rtl.verified import all_compared, verify

#: Who draws: the steps of docs/rtl.md section 3 one by one, anything of the whole section, jobs on several cores,
#: or weights that are streamed.
DRAWN: dict[str, Callable[[int], dict[str, Any]]] = {
    "step": lambda seed: drawn(seed, step_of(seed)),
    "whole": seeded,
    "split": split,
    "streamed": streamed,
}

#: The draw that the usual run takes of each: one whose simulation is short. Long runs take all of them.
USUAL = {"step": 0, "whole": 0, "split": 2, "streamed": 5}


def compared(scenario: Mapping[str, Any], folder: Path, simulator: str = "icarus") -> None:
    report = verify(scenario, folder, simulator=simulator)
    assert report.verified is not None
    assert report.verified.equal, report.to_text()
    # every group has events, so that nothing is equal for want of anything to compare
    assert all_compared(report)


@needs_icarus
@pytest.mark.parametrize("who", DRAWN)
def test_random_scenarios_are_equal(who: str, tmp_path: Path) -> None:
    compared(DRAWN[who](USUAL[who]), tmp_path)


@long_run
@needs_icarus
@pytest.mark.parametrize("first", range(0, 250, 10))
@pytest.mark.parametrize("who", DRAWN)
def test_many_random_scenarios_are_equal(who: str, first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 10):
        compared(DRAWN[who](seed), tmp_path / str(seed))


@long_run
@needs_icarus
@given(mappings())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_new_random_scenarios_are_equal(tmp_path: Path, scenario: dict[str, Any]) -> None:
    compared(scenario, tmp_path)


@long_run
@needs_verilator
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("who", DRAWN)
def test_random_scenarios_are_equal_under_verilator(who: str, seed: int, tmp_path: Path) -> None:
    compared(DRAWN[who](seed), tmp_path, "verilator")
