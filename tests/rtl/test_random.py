"""Random scenarios: Verilog and simulator are equal in every cycle and every bit."""

from __future__ import annotations

from pathlib import Path

import pytest

import lstmsim
from tests.rtl.needed import long_run, needs_icarus, needs_verilator
from tests.rtl.scenarios import drawn, step_of


def compared(seed: int, folder: Path, simulator: str = "icarus") -> None:
    scenario = drawn(seed, step_of(seed))
    report = lstmsim.run_rtl(scenario, folder / str(seed), verify=True, simulator=simulator, random_weights=seed)
    assert report.verified is not None
    assert report.verified.equal, report.to_text()
    # every group has events, so that nothing is equal for want of anything to compare
    assert all(report.verified.compared.equal.values())


@needs_icarus
@pytest.mark.parametrize("seed", range(10))
def test_random_scenarios_are_equal(seed: int, tmp_path: Path) -> None:
    compared(seed, tmp_path)


@long_run
@needs_icarus
@pytest.mark.parametrize("first", range(10, 510, 10))
def test_many_random_scenarios_are_equal(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 10):
        compared(seed, tmp_path)


@long_run
@needs_verilator
@pytest.mark.parametrize("seed", range(20))
def test_random_scenarios_are_equal_under_verilator(seed: int, tmp_path: Path) -> None:
    compared(seed, tmp_path, "verilator")
