"""The tail in Verilog, fed with the blocks of a trace, says what the trace says: turns, writes, free banks, ends."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings

import lstmsim
from lstmsim.engines.reference.run import run
from lstmsim.machines import lower
from lstmsim.machines.column import generated
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.rtl.planning import design
from lstmsim.model.cells import CELLS, cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.scenario import Job, Scenario
from tests.conftest import EXAMPLES
from tests.machines.column.rtl.own_cells import OWN_CELLS
from tests.machines.column.rtl.tail_work import TailWork
from tests.strategies import scenarios
from tests.studies.rtl.needed import needs_icarus

HERE = Path(__file__).parent
VERILOG = Path(lstmsim.__file__).parent / "machines/column/rtl/verilog"


def said(folder: Path, core: int, tokens: list[str], limit: int, stamp_bits: int) -> list[str]:
    """Run the bench in a folder that has the design's tables; the lines that the tail gives, sorted."""
    (folder / "tokens.txt").write_text("".join(f"{line}\n" for line in tokens))
    sources = [HERE / "tail_bench.v", VERILOG / "npu_lib.v", *sorted(VERILOG.glob("npu_tail*.v"))]
    given = [f"-Ptail_bench.CORE={core}", f"-Ptail_bench.W_STAMP={stamp_bits}"]
    words = [
        "iverilog",
        "-g2005",
        "-s",
        "tail_bench",
        *given,
        "-I",
        str(folder),
        "-o",
        str(folder / "bench"),
        *map(str, sources),
    ]
    subprocess.run(words, check=True, timeout=60)
    subprocess.run(["vvp", "bench", f"+limit={limit}"], cwd=folder, check=True, timeout=60, stdout=subprocess.DEVNULL)
    return sorted((folder / "log.txt").read_text().splitlines())


def check(scenario: Scenario, folder: Path, stamp_bits: int = 16) -> None:
    """Compare the tail of every core of a scenario."""
    made = design(scenario, Precision())
    for path, text in generated.files(made, None, "1.2.3").items():
        if path.endswith(".vh"):
            (folder / Path(path).name).write_text(text)
    program = lower(scenario.chip, scenario.jobs)
    trace = run(program)
    for core in range(len(made.cores)):
        work = TailWork.of(made, core)
        blocks = work.blocks(program, trace)
        if blocks:
            lines = said(folder, core, list(work.tokens(blocks)), trace.makespan_cycles + 5, stamp_bits)
            assert lines == work.lines(blocks, trace)


@pytest.mark.slow
@needs_icarus
# the examples of the generated hardware as a whole go through the tail too
@settings(max_examples=max(2, EXAMPLES // 13))
@given(made=scenarios([*CELLS, *OWN_CELLS, *OWN_CELLS]))
def test_random_blocks(made: Scenario, tmp_path_factory: pytest.TempPathFactory) -> None:
    check(made, tmp_path_factory.mktemp("tail"))


@needs_icarus
@pytest.mark.parametrize("interval", [pytest.param(2200, marks=pytest.mark.long), 4090])
def test_a_long_wait_for_a_frame_makes_stamps_old(interval: int, tmp_path: Path) -> None:
    chip = ColumnNpu("chip", 260, (ColumnCore(npe=16, ep=4, vp=4, threads=2, tail_width=2),))
    model = Model("m", (Layer(cell("mingru"), 5, 3),))
    jobs = tuple(Job(name, model, 3, frame_interval=interval) for name in "ab")
    check(Scenario(chip, jobs), tmp_path, stamp_bits=12)
