"""Two further readers of Verilog find nothing wrong with a design."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import lstmsim
from tests.rtl.directed import DIRECTED
from tests.rtl.needed import needs_verilator, needs_yosys

#: Warnings that say nothing here: tables have columns and tokens have fields that a module does not read; their widths
#: are powers of two or those of the largest core; a file has small modules beside its own, all in one space of names.
WAIVED = ("UNUSEDPARAM", "UNUSEDSIGNAL", "WIDTH", "DECLFILENAME", "VARHIDDEN")


def written(name: str, folder: Path) -> list[str]:
    lstmsim.run_rtl(DIRECTED[name], folder, random_weights=1)
    return sorted(str(each) for each in (folder / "rtl").glob("*.v"))


def checked(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr if done.returncode else ""


@needs_verilator
@pytest.mark.parametrize("name", ["pinned", "oldest_first"])
def test_verilator_warns_of_nothing(name: str, tmp_path: Path) -> None:
    files = written(name, tmp_path)
    waived = [f"-Wno-{each}" for each in WAIVED]
    words = ["verilator", "--lint-only", "-Wall", *waived, f"-I{tmp_path}/rtl", "--top-module", "npu_top", *files]
    assert checked(words) == ""


@needs_yosys
def test_yosys_finds_no_loop_and_no_second_driver(tmp_path: Path) -> None:
    files = written("values_across_stages", tmp_path)
    read = f"read_verilog -sv -defer -I{tmp_path}/rtl {' '.join(files)}"
    assert checked(["yosys", "-q", "-p", f"{read}; hierarchy -check -top npu_top; proc; check -assert"]) == ""
