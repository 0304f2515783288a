"""The same scenario gives the same files, and the same log in all simulators."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.studies.rtl.directed_bits import BITS
from tests.studies.rtl.needed import long_run, needs_icarus, needs_verilator
from tests.studies.rtl.verified import verify, written


@pytest.mark.slow
def test_files_are_the_same_whatever_the_order_of_sets_is(tmp_path: Path) -> None:
    first = written(BITS["beyond_calibration"], tmp_path)
    again = tmp_path / "again"
    words = [sys.executable, "-m", "lstmsim", "rtl", str(tmp_path / "scenario.yaml"), "--out", str(again)]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run([*words, "--random-weights", "1"], check=True, env=environment, stdout=subprocess.DEVNULL)
    files = {each.relative_to(first): each.read_bytes() for each in first.rglob("*") if each.is_file()}
    assert {each.relative_to(again): each.read_bytes() for each in again.rglob("*") if each.is_file()} == files


@long_run
@needs_icarus
@needs_verilator
@pytest.mark.parametrize("name", BITS)
def test_both_simulators_write_the_same_log(name: str, tmp_path: Path) -> None:
    report = verify(BITS[name], tmp_path)
    assert report.verified is not None
    design = tmp_path / "design"
    log = (design / "events.txt").read_bytes()
    assert log == (design / "golden" / "events.txt").read_bytes()
    flags = [
        "--binary",
        "--timing",
        "-Wno-fatal",
        "-Wno-lint",
        "-Wno-style",
        "--top-module",
        "npu_tb",
        "-CFLAGS",
        "-O0",
    ]
    sources = sorted(str(each) for each in design.glob("*/*.v"))
    built = str(tmp_path / "built")
    random = ["--x-assign", "unique", "--x-initial", "unique"]
    words = [
        "verilator",
        *flags,
        *random,
        f"-I{design}/rtl",
        f"-I{design}/sim",
        "--Mdir",
        built,
        "-o",
        "simulation",
        *sources,
    ]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    # Verilator knows no x: whatever stands in registers and memories at the start, the log is the same
    for seed in (1, 2, 3):
        words = [f"{built}/simulation", "+verilator+rand+reset+2", f"+verilator+seed+{seed}", "+limit=5000"]
        subprocess.run(words, cwd=design, check=True, stdout=subprocess.DEVNULL, timeout=120)
        assert (design / "events.txt").read_bytes() == log, seed
