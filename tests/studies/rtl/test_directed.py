"""Directed scenarios: Verilog and simulator are equal in every cycle, and in every bit."""

from __future__ import annotations

from pathlib import Path

import pytest

import lstmsim
from tests.studies.rtl.directed import DIRECTED
from tests.studies.rtl.needed import long_run, needs_icarus


@needs_icarus
@pytest.mark.parametrize("name", DIRECTED)
def test_cycles(name: str, tmp_path: Path) -> None:
    report = lstmsim.run_rtl(DIRECTED[name], tmp_path / "out", verify=True, timing_only=True)
    assert report.verified is not None
    assert report.verified.equal, report.to_text()


@long_run
@needs_icarus
@pytest.mark.parametrize("name", DIRECTED)
def test_bits(name: str, tmp_path: Path) -> None:
    report = lstmsim.run_rtl(DIRECTED[name], tmp_path / "out", verify=True, random_weights=3)
    assert report.verified is not None
    assert report.verified.equal, report.to_text()
