"""Directed scenarios for traps of the numbers: Verilog and simulator are equal in every cycle and every bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.studies.rtl.directed_bits import BITS, WORKED
from tests.studies.rtl.needed import needs_icarus
from tests.studies.rtl.verified import all_compared, verify


@needs_icarus
@pytest.mark.parametrize("name", BITS)
def test_bits(name: str, tmp_path: Path) -> None:
    report = verify(BITS[name], tmp_path)
    assert report.verified is not None
    assert report.verified.equal, report.to_text()
    # nothing is equal for want of anything to compare
    assert all_compared(report)
    if name == "worked_115":
        assert [each.cycle for each in report.verified.log if each.kind == "F"] == [115]


# docs/timing.md section 6: 1423 and 1471; section 8: 139 + 19 * 116 = 2343. The tree of `ep` 4 instead of 32 has three
# levels less, so each of the 20 steps is 3 cycles shorter, and those of the two products of `gru-lbr0` 6.
@needs_icarus
@pytest.mark.parametrize(
    ("name", "makespan"), [("one_lstm", 1423 - 20 * 3), ("two_lstm", 1471 - 20 * 3), ("gru_lbr0", 2343 - 20 * 6)]
)
def test_worked_examples_with_an_eighth_of_everything(name: str, makespan: int, tmp_path: Path) -> None:
    report = verify(WORKED[name], tmp_path, timing_only=True)
    assert report.verified is not None
    assert report.verified.equal, report.to_text()
    assert max(each.cycle for each in report.verified.log if each.kind == "F") == makespan
