"""A reset of one cycle in the middle of a run: everything begins anew, and the memories keep what a host wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.studies.rtl.needed import long_run, needs_icarus
from tests.studies.rtl.scenarios import drawn
from tests.studies.rtl.verified import verify, written

#: Behind the clock of the testbench: once, in the middle of a cycle, log and host begin anew; the next cycle is -1.
_CLOCK = "  always #1 clock = !clock;\n"
_RESET = """
  reg again = 1'b0;
  reg down = 1'b0;
  always @(negedge clock)
    if (!down && cycle == {cycle}) begin
      again = 1'b1;
      down = 1'b1;
      cycle = -2;
      ended_jobs = 0;
      $fclose(log_file);
      log_file = $fopen("events.txt", "w");
      host.now = -1;
      host.due = 0;
      host.settled = 0;
      host.posted = 0;
      host.counts = 0;
    end
  always @(posedge clock)
    if (again) begin
      reset <= 1'b1;
      again <= 1'b0;
    end
"""


def compared(step: int, seed: int, folder: Path) -> None:
    scenario = drawn(seed, step)
    design = written(scenario, folder)
    bench = design / "sim/npu_tb.v"
    text = bench.read_text(encoding="utf-8")
    assert text.count(_CLOCK) == 1
    # somewhere in the middle, another place for each scenario
    last = int((design / "golden/events.txt").read_text().splitlines()[-1].split()[1])
    cycle = max(1, last * (seed % 7 + 1) // 8)
    bench.write_text(text.replace(_CLOCK, _CLOCK + _RESET.format(cycle=cycle)), encoding="utf-8")
    report = verify(scenario, folder)
    assert any("npu_tb.v" in each for each in report.remarks), "the changed testbench is what is simulated"
    assert report.verified is not None
    assert report.verified.equal, report.to_text()


@needs_icarus
@pytest.mark.parametrize(("step", "seed"), [(2, 9002), pytest.param(3, 9003, marks=pytest.mark.long)])
def test_a_reset_begins_anew(step: int, seed: int, tmp_path: Path) -> None:
    compared(step, seed, tmp_path / "out")


@long_run
@needs_icarus
@pytest.mark.parametrize("seed", range(9010, 9020))
@pytest.mark.parametrize("step", [1, 2, 3])
def test_resets_of_many_scenarios_begin_anew(step: int, seed: int, tmp_path: Path) -> None:
    compared(step, seed, tmp_path / "out")
