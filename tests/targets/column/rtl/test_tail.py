"""The tail in Verilog, fed with the blocks of a trace, says what the trace says: turns, writes, free banks, ends."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.engines.reference.run import run
from lstmsim.targets import lower
from lstmsim.targets.column.rtl.planning import design
from lstmsim.targets.column.rtl.tables import config
from lstmsim.workload.cells import CELLS
from lstmsim.workload.precision import Precision
from lstmsim.workload.scenario import Scenario
from tests.strategies import scenarios
from tests.targets.column.rtl.tail_work import TailWork

HERE = Path(__file__).parent
VERILOG = Path(__file__).parents[4] / "lstmsim/targets/column/rtl/verilog"


def said(folder: Path, core: int, tokens: list[str], limit: int) -> list[str]:
    """Run the bench in a folder that has the design's tables; the lines that the tail gives, sorted."""
    (folder / "tokens.txt").write_text("".join(f"{line}\n" for line in tokens))
    sources = [HERE / "tail_bench.v", *sorted(VERILOG.glob("npu_tail*.v"))]
    compile_ = ["iverilog", "-g2005", f"-Ptail_bench.CORE={core}", "-I", folder, "-o", folder / "bench", *sources]
    subprocess.run(compile_, check=True, timeout=60)
    subprocess.run(["vvp", "bench", f"+limit={limit}"], cwd=folder, check=True, timeout=60, stdout=subprocess.DEVNULL)
    return sorted((folder / "log.txt").read_text().splitlines())


def check(scenario: Scenario, folder: Path) -> None:
    """Compare the tail of every core of a scenario."""
    made = design(scenario, Precision())
    (folder / "npu_config.vh").write_text(config(made))
    program = lower(scenario.chip, scenario.jobs)
    trace = run(program)
    for core in range(len(made.cores)):
        work = TailWork.of(made, core)
        blocks = work.blocks(program, trace)
        if blocks:
            lines = said(folder, core, list(work.tokens(blocks)), trace.makespan_cycles + 5)
            assert lines == work.lines(blocks, trace)
