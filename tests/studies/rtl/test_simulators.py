"""Programs of others: looked for, run, ended; simulators that are too old or write nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lstmsim.base.errors import InputError, LstmsimError
from lstmsim.base.keys import keys_of
from lstmsim.base.processes import run_program
from lstmsim.studies.board.request import BoardRequest
from lstmsim.studies.rtl.request import RtlRequest
from lstmsim.studies.rtl.simulators import Simulator, simulate_rtl, simulator_of


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose programs are the only ones, beside the shell's."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("sh", "sleep", "cat"):
        (folder / name).symlink_to(
            next(path for path in map(Path, ("/bin", "/usr/bin")) if (path / name).exists()) / name
        )
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_a_design_and_its_board_have_one_default() -> None:
    own, board = (keys_of(each)["simulator"] for each in (RtlRequest, BoardRequest))
    assert (own.default, own.key.choices) == (board.default, board.key.choices) == ("icarus", ("icarus", "verilator"))


def test_a_simulator_that_is_not_known() -> None:
    with pytest.raises(InputError, match=r"^--simulator: must be .*icarus.*verilator.*, got 'icarsu'"):
        simulator_of("icarsu")


def test_each_missing_program_is_named_with_its_package(programs: Path) -> None:
    with pytest.raises(InputError) as caught:
        simulator_of("verilator")
    assert [each.sentence for each in caught.value.mistakes] == [
        f"there is no program {name}; install {name} (apt install {name})" for name in ("verilator", "make", "g++")
    ]


@pytest.mark.parametrize(("version", "fits"), [("4.228", False), ("5.001", False), ("5.002", True), ("6.1", True)])
def test_verilator_must_know_delays(programs: Path, version: str, fits: bool) -> None:
    for name in ("make", "g++"):
        program(programs, name, "exit 1")
    program(programs, "verilator", f"echo Verilator {version} 2022-10-01")
    if fits:
        assert simulator_of("verilator").version == f"Verilator {version} 2022-10-01"
        return
    with pytest.raises(InputError, match=r"must be Verilator 5.002 or newer, got Verilator"):
        simulator_of("verilator")


def test_a_testbench_that_writes_nothing(programs: Path, tmp_path: Path) -> None:
    program(programs, "iverilog", "exit 0")
    program(programs, "vvp", "echo nothing to do")
    (tmp_path / "events.txt").write_text("F 0 0\n")
    with pytest.raises(LstmsimError, match=r"bench has written no events.txt; it said: nothing to do"):
        simulate_rtl(Simulator("icarus", ""), str(tmp_path), [], "bench", 10)


def test_a_program_that_fails_says_why(programs: Path) -> None:
    program(programs, "fails", "echo first; echo the reason >&2; exit 3")
    with pytest.raises(LstmsimError, match=r"(?s)^fails failed with code 3\n  the reason$"):
        run_program(["fails"])


@pytest.mark.slow
def test_what_a_program_has_started_ends_with_it(programs: Path, tmp_path: Path) -> None:
    program(programs, "starts", f"sleep 60 & echo $! > {tmp_path}/child; wait")
    with pytest.raises(LstmsimError, match=r"starts was ended after 0.5 seconds"):
        run_program(["starts"], seconds=0.5)
    child = int((tmp_path / "child").read_text())
    for _ in range(100):
        try:
            # nobody may have waited for it yet
            if Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.02)
    pytest.fail("it still runs")
