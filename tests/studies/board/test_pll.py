"""The PLL of boards: its model alone at every setting that boards use, and a whole board after synthesis behind it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import IO, Any

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.base.processes import ending_child, run_program
from lstmsim.studies.board import run
from lstmsim.studies.board.boards import Pll, board_files, board_named, pll_for
from lstmsim.studies.rtl.simulators import compile_command
from lstmsim.studies.rtl.synthesis import models_folder, netlist_models, yosys_program
from tests.studies.board.scenarios import TINY
from tests.studies.rtl.needed import needs_icarus, needs_yosys

MODEL = files("lstmsim.studies.rtl") / "ecp5_pll.v"
#: Clocks of designs, in MHz.
CLOCKS = (*range(20, 160, 5), 36, 48, 66, 72, 96, 99, 132, 144)


def settings() -> list[tuple[float, Pll]]:
    """The oscillators of all boards with the dividers of all clocks that they make, each once."""
    found = set[tuple[float, Pll]]()
    boards = [board for board in map(board_named, board_files()) if not board.die]
    for board, mhz in product(boards, CLOCKS):
        with suppress(InputError):
            pll = pll_for(board, mhz)
            if pll is not None:
                found.add((board.clock.mhz, pll))
    return sorted(found, key=lambda each: (each[0], each[1].mhz))


def simulated(text: str, folder: Path) -> list[str]:
    """What a testbench prints."""
    (folder / "bench.v").write_text(f"`timescale 1ns / 1ps\n{text}")
    subprocess.run(["iverilog", "-g2005", "-o", "bench.vvp", str(MODEL), "bench.v"], cwd=folder, check=True)
    done = subprocess.run(["vvp", "-n", "bench.vvp"], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


#: Counts the edges of both clocks and measures CLKOP from the time on at which LOCK rises, over 200 periods of CLKI.
_MEASURED = """
module measured #(parameter I = 1, parameter F = 1, parameter O = 8, parameter NUMBER = 0, parameter real HALF = 20.0);
  reg clock = 1'b0;
  always #(HALF) clock = !clock;
  wire out, lock;
  EHXPLLL #(.CLKI_DIV(I), .CLKFB_DIV(F), .CLKOP_DIV(O), .CLKOP_CPHASE(O / 2)) pll (
    .CLKI(clock), .CLKFB(out), .CLKOP(out), .LOCK(lock)
  );
  integer given = 0, made = 0, apart = 0, uneven = 0;
  realtime locked, last;
  always @(posedge lock) locked = $realtime;
  always @(posedge out) begin
    // all periods are alike, within the resolution of simulated time
    if (lock && ($realtime - last - 2.0 * HALF * I / F > 0.002 || last + 2.0 * HALF * I / F - $realtime > 0.002))
      uneven = uneven + 1;
    last = $realtime;
    if (lock) made = made + 1;
  end
  // every I-th edge of CLKI is one of CLKOP, from the one at which LOCK rises
  always @(posedge clock)
    #0.002 if (lock) begin
      if (given % I == 0 && $realtime - last > 0.003) apart = apart + 1;
      if (given == 200) $display("%0d %0d %0d %0d %0.4f", NUMBER, made, apart, uneven, locked / (2.0 * HALF * I));
      given = given + 1;
    end
endmodule
"""


@pytest.mark.slow
@needs_icarus
def test_the_model_makes_the_clock_of_every_setting_of_a_board(tmp_path: Path) -> None:
    all_of_them = settings()
    assert len(all_of_them) > 60
    parts = [
        f"measured #(.I({pll.input}), .F({pll.feedback}), .O({pll.output}), .NUMBER({number}), .HALF({500 / mhz:.6f}))"
        f" m{number} ();"
        for number, (mhz, pll) in enumerate(all_of_them)
    ]
    longest = max(300 * 1000 / mhz for mhz, _ in all_of_them)
    bench = f"module bench;\n{chr(10).join(parts)}\ninitial #({longest + 5000:.0f}) $finish;\nendmodule\n"
    said = simulated(_MEASURED + bench, tmp_path)
    assert len(said) == len(all_of_them)
    for line in said:
        number, made, apart, uneven, locked = line.split()
        mhz, pll = all_of_them[int(number)]
        # as many edges as the dividers say, of which one stands at each edge that the phase detector sees
        assert abs(int(made) - 200 * pll.feedback / pll.input) <= pll.feedback
        assert (int(apart), int(uneven)) == (0, 0)
        assert 8 <= float(locked) <= 11
        assert mhz * pll.feedback / pll.input == pytest.approx(pll.mhz)


#: A PLL of 25 MHz in, which is to say when LOCK changes.
_ONE = """
module bench;
  reg clock = 1'b0;
  real half = 20.0;
  always #(half) clock = !clock;
  wire out, lock;
  EHXPLLL #(@PARAMETERS) pll (.CLKI(clock), .CLKFB(@FEEDBACK), .CLKOP(out), .LOCK(lock));
  always @(lock) $display("LOCK %b", lock);
  initial begin
    #4000 half = @HALF;
    #4000 $finish;
  end
endmodule
"""


def one(parameters: str, folder: Path, feedback: str = "out", half: float = 20.0) -> list[str]:
    text = _ONE.replace("@PARAMETERS", parameters).replace("@FEEDBACK", feedback).replace("@HALF", str(half))
    return simulated(text, folder)


@needs_icarus
def test_what_a_pll_cannot_do_never_locks(tmp_path: Path) -> None:
    sound = ".CLKI_DIV(1), .CLKFB_DIV(2), .CLKOP_DIV(12)"
    assert one(sound, tmp_path) == ["LOCK 0", "LOCK 1"]
    # an oscillator of 200 MHz, and one of 1,000
    for output, times in ((4, 4), (20, 20)):
        said = one(f".CLKI_DIV(1), .CLKFB_DIV(2), .CLKOP_DIV({output})", tmp_path)
        assert said == ["LOCK 0", f"EHXPLLL: out of bounds: 40.000 ns at the phase detector, times 2 times {times}"]
    said = one(".CLKI_DIV(10), .CLKFB_DIV(20), .CLKOP_DIV(12)", tmp_path)
    assert said[1].startswith("EHXPLLL: out of bounds: 400.000 ns")
    # a feedback from elsewhere; an input that changes, once to a clock that can be made, once to one that cannot
    assert one(sound, tmp_path, feedback="clock") == ["LOCK 0"]
    assert one(sound, tmp_path, half=18.0) == ["LOCK 0", "LOCK 1", "LOCK 0", "LOCK 1"]
    assert one(sound, tmp_path, half=40.0) == [
        "LOCK 0",
        "LOCK 1",
        "LOCK 0",
        "EHXPLLL: out of bounds: 80.000 ns at the phase detector, times 2 times 12",
    ]


@needs_icarus
@pytest.mark.parametrize(
    ("parameter", "reason"),
    [
        ('.FEEDBK_PATH("INT_OP")', "a_feedback_other_than_clkop"),
        ('.CLKOS_ENABLE("ENABLED")', "a_second_output"),
        (".CLKOP_FPHASE(2)", "a_phase"),
        ('.PLLRST_ENA("ENABLED")', "a_reset_or_standby"),
        (".CLKFB_DIV(129)", "divides_by_1_to_128"),
        (".CLKOS_DIV(4)", "CLKOS_DIV"),
    ],
)
def test_modes_that_are_not_modelled_do_not_compile(parameter: str, reason: str, tmp_path: Path) -> None:
    text = _ONE.replace("@PARAMETERS", parameter).replace("@FEEDBACK", "out").replace("@HALF", "20.0")
    (tmp_path / "bench.v").write_text(f"`timescale 1ns / 1ps\n{text}")
    words = ["iverilog", "-g2005", "-o", "bench.vvp", str(MODEL), "bench.v"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert reason in done.stderr
    assert done.returncode != 0 or "warning" in done.stderr


class Pins:
    """A line that is the testbench of the pins itself: each byte in its time, so that slow netlists are never late."""

    def __init__(self, into: IO[bytes], out: IO[bytes]) -> None:
        self.name, self._into, self._from = "netlist", into, out
        self._said = bytearray()
        # until the PLL has locked, and the reset is over
        self._pass(4)

    def clear(self) -> None:
        self._said.clear()

    def write(self, data: bytes) -> None:
        self._into.write(b"".join(bytes((0, each)) for each in data))

    def read(self, count: int) -> bytes:
        for _ in range(100):
            if len(self._said) >= count:
                break
            self._pass(2)
        said = bytes(self._said[:count])
        del self._said[:count]
        return said

    def _pass(self, times: int) -> None:
        self._into.write(bytes((1, times)))
        self._into.flush()
        for line in self._from:
            if line.startswith(b"="):
                return
            assert b"!" not in line
            self._said.append(int(line, 16))
        raise AssertionError("the simulation has ended")


def built(folder: Path) -> list[str]:
    """Synthesize the board's top as its script does; give the files of its netlist."""
    program = yosys_program()
    script = (
        (folder / "board/synth.ys")
        .read_text()
        .replace("-json build/npu.json\n", "\nrename -hide\nwrite_verilog -noattr netlist.v\n")
    )
    (folder / "netlist.ys").write_text(script)
    run_program([program, "-q", "netlist.ys"], str(folder), 1200)
    netlist = (folder / "netlist.v").read_text()
    assert re.search(r"^\s*EHXPLLL\b", netlist, re.MULTILINE)
    assert re.search(r"^\s*MULT18X18D\b", netlist, re.MULTILINE)
    (folder / "cells.v").write_text(netlist_models(netlist, models_folder(program)))
    return ["netlist.v", "cells.v"]


@needs_icarus
@needs_yosys
@pytest.mark.long
def test_a_whole_board_does_after_synthesis_what_lstmsim_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PLL, bridge, schedule, chip and results as a netlist, over pins: some minutes of Icarus, with a fast line."""
    own = board_files()["ulx3s-85f"].read_text().replace("baud: 1000000", "baud: 10000000")
    (tmp_path / "own.yaml").write_text(own)
    design = tmp_path / "design"
    lstmsim.run_rtl(TINY, design, random_weights=1, board=str(tmp_path / "own.yaml"), clock=50)
    assert ".CLOCKS(5)" in (design / "board/top.v").read_text()
    bench = [str(Path(__file__).with_name("netlist_board.v")), "board/sim/npu_board_tb.v"]

    @contextmanager
    def line(request: Any, folder: str, data: Mapping[str, Any]) -> Iterator[Pins]:
        sources = [*bench, *built(design)]
        compiling, running = compile_command("icarus", str(tmp_path), sources, "npu_board_tb", (), {"CLOCKS": 5})
        run_program(compiling, folder)
        with ending_child(running, folder) as pipes:
            yield Pins(*pipes)

    monkeypatch.setattr(run, "_line", line)
    report = lstmsim.run_board(design)
    assert report.equal, report.to_text()
    assert report.compared.equal["job"] == 6
    assert report.compared.equal["h"]
