"""Designs over simulated pins: from a scenario to a verdict, and all that is no verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.base.errors import InputError, LstmsimError
from lstmsim.machines.rtl import Event
from lstmsim.studies.board.lines import simulated_line
from lstmsim.studies.board.protocol import Link
from lstmsim.studies.board.records import events_of
from lstmsim.studies.board.run import _images, _records
from lstmsim.studies.rtl.result import read_log
from lstmsim.studies.rtl.simulators import simulator_of
from tests.cli import runner
from tests.studies.board.scenarios import TINY, board_report, relisted
from tests.studies.rtl.needed import long_run, needs_icarus, needs_verilator
from tests.studies.rtl.scenarios import drawn


def joined(done: Any) -> str:
    """What a command said to its user, without its breaks of lines."""
    return " ".join(done.stderr.split())


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("board") / "design"
    lstmsim.run_rtl(TINY, folder, random_weights=1, board="ulx3s-85f")
    return folder


def run_icarus(folder: Path) -> Any:
    pytest.importorskip("serial", reason="there is no pyserial: pip install 'lstmsim[board]'")
    return lstmsim.run_board(folder, simulator="icarus")


@pytest.mark.slow
@needs_icarus
def test_a_design_runs_over_pins_as_lstmsim_says(design: Path) -> None:
    golden = [each for each in read_log((design / "golden/events.txt").read_text().splitlines()) if each.kind in "HAF"]
    # what lstmsim says is not read off the board: another bit of h is a difference, and the only one
    text, last = (design / "golden/events.txt").read_text(), [each for each in golden if each.kind == "H"][-1]
    other = Event("H", last.cycle, (*last.fields[:-1], f"{int(str(last.fields[-1]), 16) ^ 1:02x}"))
    (design / "golden/events.txt").write_text(text.replace(last.line, other.line))
    relisted(design, "golden/events.txt")
    report = run_icarus(design)
    (design / "golden/events.txt").write_text(text)
    relisted(design, "golden/events.txt")
    assert report.wrong.endswith(f"differs from the simulator, first in cycle {last.cycle}")
    assert report.events == tuple(golden)
    assert report.compared.equal["job"] == 6


@pytest.mark.slow
@needs_icarus
def test_other_jobs_run_on_the_board_of_the_first(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.random.default_rng(0).uniform(-1, 1, (8, 1)))
    precision = {**TINY["precision"], "calibration": {"a": "a.npy"}}
    model = TINY["jobs"][0]["model"]
    # other steps, another order, frames that come one by one, and fewer jobs than the table has room for
    other = [{"model": model, "steps": 1, "arrival": 70}, {"model": model, "steps": 4, "frame_interval": 30}]
    folders = tmp_path / "first", tmp_path / "second"
    for folder, jobs in zip(folders, (TINY["jobs"], other), strict=True):
        path = folder.with_suffix(".yaml")
        path.write_text(json.dumps({**TINY, "precision": precision, "jobs": jobs}))
        lstmsim.run_rtl(path, folder, random_weights=1, board="ulx3s-85f", most_jobs=4, most_steps=4)
    first, second = folders
    # the bitstream is the first one's, host and data are the second one's
    verilog = [each.relative_to(first) for part in ("rtl", "board") for each in (first / part).glob("*.v*")]
    for name in verilog:
        (second / name).write_bytes((first / name).read_bytes())
    relisted(second, *map(str, verilog))
    report = run_icarus(second)
    assert report.equal, report.to_text()
    assert report.compared.equal["job"] == 4


@long_run
@needs_verilator
@pytest.mark.parametrize("seed", range(10))
def test_drawn_scenarios_run_over_pins_as_lstmsim_says(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("serial", reason="there is no pyserial: pip install 'lstmsim[board]'")
    for number in range(seed * 100, seed * 100 + 100):
        scenario: Mapping[str, Any] = drawn(number, 1 + number % 3)
        try:
            lstmsim.run_rtl(scenario, tmp_path / "design", random_weights=1, board="ulx3s-85f")
        except InputError:
            continue
        report = lstmsim.run_board(tmp_path / "design")
        assert report.equal, report.to_text()
        assert report.compared.equal["h"]
        return
    raise AssertionError("no scenario was drawn that fits the board")


def test_what_keeps_a_design_from_a_board_is_said_before_a_file_is_written(tmp_path: Path) -> None:
    large = {**TINY, "chip": "column-npu-64k"}
    tight = {**TINY, "jobs": [{**TINY["jobs"][0], "count": 4, "frame_interval": 3}]}
    wrong = [
        (large, "ulx3s-12f", None, "--board: ulx3s-12f has 28 multipliers"),
        (TINY, "ulx3-85f", None, "did you mean 'ulx3s-85f'"),
        (
            TINY,
            "ulx3s-85f",
            61.37,
            "--clock: the PLL of ulx3s-85f cannot make 61.37 MHz from 25; the nearest is 60.7143",
        ),
        (TINY, "ulx3s-85f", 3.125, "3.125 cycles a bit at 3.125 MHz"),
        (tight, "ulx3s-85f", None, "the schedule memory of a board gives one a cycle"),
    ]
    for scenario, board, clock, text in wrong:
        with pytest.raises(InputError, match=text.replace("(", r"\(")):
            lstmsim.run_rtl(scenario, tmp_path / "out", random_weights=1, board=board, clock=clock)
    assert not (tmp_path / "out").exists()


def test_an_incomplete_run_is_never_equal() -> None:
    lost = board_report(faults=("3 records of results found no place in the board's memory of 2",))
    assert not lost.equal
    assert "INCOMPLETE" in lost.to_text()
    assert lost.wrong == "the run on pins is incomplete"
    assert board_report().equal
    assert board_report(finish=13).wrong == "pins differs from the simulator, first in cycle 12"


def test_seeds_without_a_build_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="seeds: only with build: without it nothing is placed"):
        lstmsim.run_rtl(TINY, tmp_path / "design", random_weights=1, seeds=3)


@pytest.mark.slow
@needs_icarus
def test_a_board_with_another_design_is_refused(design: Path, tmp_path: Path) -> None:
    path = design / "board/board.json"
    text = path.read_text()
    path.write_text(json.dumps({**json.loads(text), "design_id": 1}))
    relisted(design, "board/board.json")
    with pytest.raises(LstmsimError, match="load the bitstream of this folder"):
        run_icarus(design)
    path.write_text(text)
    relisted(design, "board/board.json")


def test_a_folder_without_a_board_is_refused(tmp_path: Path) -> None:
    (tmp_path / "board").mkdir()
    (tmp_path / "board/board.json").write_text("[]")
    done = runner.call("board", "run", str(tmp_path))
    assert done.exit_code == 2
    assert "files.sha256: is missing or empty, expected a list of files; run lstmsim rtl --board again" in joined(done)
    (tmp_path / "files.sha256").write_text("")
    relisted(tmp_path, "board/board.json")
    done = runner.call("board", "run", str(tmp_path))
    assert done.exit_code == 2
    assert "is no file of format lstmsim/board/1: run lstmsim rtl --board" in done.stderr


def test_a_folder_that_was_edited_is_refused_with_the_place(design: Path) -> None:
    path, image = design / "board/board.json", design / "data/edited.hex"
    text = path.read_text()
    data = json.loads(text)
    edited = {"schedule": [[0, 2**40]], "record": {**data["record"], "vector": 5}, "baud": 0, "clock_mhz": 0}
    for name, value in edited.items():
        path.write_text(json.dumps({**data, name: value}))
        relisted(design, "board/board.json")
        with pytest.raises(InputError, match=rf"board\.json: {name} is not what lstmsim rtl --board writes"):
            lstmsim.run_board(design)
    path.write_text(text)
    relisted(design, "board/board.json")
    listed = (design / "files.sha256").read_text()
    for line in ("1", "zz 1", "fffffffff 1"):
        image.write_text(f"0 1\n{line}\n")
        relisted(design, "data/edited.hex")
        with pytest.raises(InputError, match=rf"edited\.hex:2: expected an address and a word.*'{line}'"):
            lstmsim.run_board(design)
    image.unlink()
    (design / "files.sha256").write_text(listed)
    golden = design / "golden/events.txt"
    text = golden.read_text()
    for line in ("Z 1", "F", "F x 0", ""):
        golden.write_text(f"{text}{line}\n")
        relisted(design, "golden/events.txt")
        done = runner.call("board", "run", str(design))
        assert done.exit_code == 2
        assert f"golden/events.txt:{len(text.splitlines()) + 1}: expected an event" in done.stderr.replace("\n", "")
    golden.write_text(text)
    (design / "files.sha256").write_text(listed)


@pytest.mark.parametrize("port", ["sim", "/dev/no-such-port"])
def test_a_folder_with_a_file_that_is_not_as_it_was_written_is_refused_before_a_port_is_opened(
    port: str, design: Path
) -> None:
    """Emptied data never ended their jobs, and a log cut short was called another one."""
    names = sorted(each.name for each in (design / "data").glob("*.hex"))
    for name in (f"data/{names[0]}", f"data/{names[-1]}", "golden/events.txt", "board/board.json"):
        path = design / name
        text = path.read_text()
        digit = text[-2]
        for wrong in ("", text[: len(text) // 2], text[:-2] + ("1" if digit == "0" else "0") + "\n", None):
            path.unlink()
            if wrong is not None:
                path.write_text(wrong)
            done = runner.call("board", "run", str(design), "--port", port)
            expected = f"{name}: was changed or cut short since it was written: expected SHA-256"
            if wrong is None:
                expected = f"{name}: is missing or no regular file, expected the one that was written"
            path.write_text(text)
            assert done.exit_code == 2
            assert expected in joined(done)
            assert f"folder {design}: run lstmsim rtl --board again, with --replace over an edited file" in joined(done)
            assert "cannot be opened" not in joined(done)
    (design / "data/own.hex").write_text("0 1\n")
    done = runner.call("board", "run", str(design), "--port", port)
    (design / "data/own.hex").unlink()
    assert "data/own.hex: is not in files.sha256, expected no such file" in joined(done)
    # of a list that was cut short nothing follows about the files behind
    path = design / "files.sha256"
    text = path.read_text()
    path.write_text("".join(line for line in text.splitlines(keepends=True) if " board/" in line))
    done = runner.call("board", "run", str(design), "--port", port)
    path.write_text(text)
    assert done.exit_code == 2
    assert f"data/{names[0]}: is not in files.sha256, expected no such file" in joined(done)


def test_verilog_that_was_edited_is_refused_where_it_is_simulated(design: Path) -> None:
    path = design / "rtl/npu_top.v"
    text = path.read_text()
    path.write_text("")
    with pytest.raises(InputError, match=r"npu_top\.v: was changed or cut short since it was written"):
        lstmsim.run_board(design)
    # a board has its Verilog in its bitstream
    with pytest.raises(InputError, match=r"no-such-port: cannot be opened|pyserial"):
        lstmsim.run_board(design, port="/dev/no-such-port")
    path.write_text(text)
    # of Verilog that somebody added, a header can stand in for another one
    (design / "rtl/own.vh").write_text("")
    with pytest.raises(InputError, match=r"rtl/own\.vh: is not in files\.sha256, expected no such file"):
        lstmsim.run_board(design)
    (design / "rtl/own.vh").unlink()


def test_a_board_that_there_is_not_is_said_before_what_a_scenario_lacks(tmp_path: Path) -> None:
    for options, text in (
        ({"board": "nosuch"}, "no board called 'nosuch'"),
        ({"board": "ulx3s-85f", "clock": 61.37}, "cannot make 61.37 MHz"),
    ):
        with pytest.raises(InputError, match=text):
            lstmsim.run_rtl(TINY, tmp_path / "out", **options)


@pytest.mark.slow
@needs_icarus
def test_jobs_run_that_are_posted_over_the_wire_and_results_without_a_place_are_counted(tmp_path: Path) -> None:
    pytest.importorskip("serial", reason="there is no pyserial: pip install 'lstmsim[board]'")
    lstmsim.run_rtl(TINY, tmp_path / "design", random_weights=1, board="ulx3s-85f")
    header = tmp_path / "design/board/npu_system.vh"
    header.write_text(header.read_text().replace("RESULTS = 15;", "RESULTS = 4;"))
    data = json.loads((tmp_path / "design/board/board.json").read_text())
    names = [
        f"{part}/{each.name}"
        for part in ("rtl", "board", "board/sim")
        for each in (tmp_path / "design" / part).glob("*.v")
    ]
    names.remove("board/top.v")
    with simulated_line(simulator_of("icarus"), str(tmp_path / "design"), sorted(names), 1_000_000) as line:
        link = Link(line)
        assert link.read(0xA0000002, 2) == [4, len(data["schedule"])]
        for address, words in _images(str(tmp_path / "design")):
            link.write(address, words)
        link.write(0xA0000003, [0])
        link.write(0xA0000000, [1])
        # an empty schedule runs, and nothing happens
        assert link.read(0xA0000004, 1) == [2]
        for job, steps in enumerate((2, 2, 3)):
            link.write(0xA0000002, [job << 16 | steps])
            link.write(0xA0000001, [job + 1])
        state, _, records, lost, ended = link.read(0xA0000004, 5)
        kept = events_of(data["record"], list(_records(link, data["record"], 4)))
    assert (state, records, ended) == (3, 4, 3)
    assert lost > 0
    golden = read_log((tmp_path / "design/golden/events.txt").read_text().splitlines())
    # all but the cycles
    expected = [each.fields for each in golden if each.kind == "H"]
    assert [each.fields for each in kept if each.kind == "H"] == expected[: sum(each.kind == "H" for each in kept)]
    assert sum(each.kind == "H" for each in kept) > 1
