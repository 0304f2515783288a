"""Boards, one YAML file for each: the FPGA, its pins, and where each number comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key, keys_of
from lstmsim.base.records import record
from lstmsim.base.wording import nearest, show
from lstmsim.files.scenario.request_schema import Name
from lstmsim.files.scenario.schema import Text, check
from lstmsim.files.yaml.source import read_document

Mhz = Annotated[float, Key(above=0, high=1000)]
Count = Annotated[int, Key(low=1, high=1_000_000)]


@dataclass(frozen=True)
class Clock:
    """The oscillator of a board."""

    pin: Annotated[Name, Key("pin of the FPGA")]
    mhz: Annotated[Mhz, Key("its clock in MHz")]


@dataclass(frozen=True)
class Uart:
    """The serial line of a board, as the FPGA sees it."""

    rx: Annotated[Name, Key("pin on which the FPGA hears")]
    tx: Annotated[Name, Key("pin on which the FPGA speaks")]
    baud: Annotated[int, Key("bits a second", low=1200, high=12_000_000)]


@dataclass(frozen=True)
class Board:
    """A board, as a file describes it."""

    name: Annotated[Name, Key("the board's name")]
    device: Annotated[Name, Key("its FPGA, as nextpnr takes it: an option of nextpnr-ecp5 without dashes, or a part")]
    package: Annotated[Name, Key("the FPGA's package")]
    speed: Annotated[int, Key("its speed grade", low=6, high=8)]
    clock: Annotated[Clock, Key("the oscillator")]
    uart: Annotated[Uart, Key("the serial line")]
    leds: Annotated[tuple[Name, ...], Key("pins of LEDs: a schedule runs, it has ended", high=8)]
    load: Annotated[Text, Key("command that loads a bitstream, before the name of its file")]
    logic: Annotated[Count, Key("LUTs of four inputs")]
    memories: Annotated[Count, Key("memory blocks of 18 Kbit")]
    multipliers: Annotated[Count, Key("multipliers of 18 x 18 bits")]
    leds_low: Annotated[bool, Key("an LED is on when its pin is low")] = False
    leds_standard: Annotated[Name, Key("standard of the LEDs' pins")] = "LVCMOS33"
    die: Annotated[Literal["", "GW1N-9C"], Key("what is in the part, for an FPGA of Gowin; empty: an ECP5")] = ""
    sources: Annotated[Mapping[str, Text], Key("where each number comes from", high=100)] = field(default_factory=dict)


_WITH_SOURCE = ("device", "clock", "uart", "leds", "load", "logic", "memories", "multipliers")


def board_files() -> Mapping[str, Path]:
    """The boards that come with lstmsim, by name."""
    return {each.stem: each for each in sorted(Path(__file__).with_name("data").glob("*.yaml"))}


def board_named(name: str) -> Board:
    """The board of that name, or of a file; `InputError` with the nearest name, or with every mistake of the file."""
    known = board_files()
    if name not in known and not name.endswith((".yaml", ".yml", ".json")):
        raise InputError(
            Mistake("--board", f"no board called {show(name)}{nearest(name, known)}; there are: {', '.join(known)}")
        )
    document = read_document(known.get(name, name))
    made, _ = check(Board, document)
    if made is not None:
        for key in _WITH_SOURCE:
            if not made.sources.get(key, "").strip():
                document.blame(("sources", key), "required key is missing (where the number comes from)")
        for key in made.sources:
            if key not in keys_of(Board):
                document.blame(("sources", key), f"unknown key{nearest(key, keys_of(Board))}", key=True)
    if document.mistakes or made is None:
        raise InputError(document.mistakes)
    return made


@record
class Pll:
    """Dividers of a PLL whose output is fed back (EHXPLLL of an ECP5, rPLL of Gowin), and the clock that they make."""

    input: int  # input, feedback, output: what each divider divides by
    feedback: int
    output: int
    mhz: float


@record
class _Bounds:
    """What a PLL can do, in MHz: its phase detector, its oscillator, where that is best, and dividers."""

    detector: tuple[float, float]
    oscillator: tuple[float, float]
    middle: float
    most: int  # input and feedback divide by 1 to this
    outputs: tuple[int, ...] = ()  # what the output is divided by; none: by 1 to `most`

    def output(self, exact: float) -> int:
        """The divider of the output that is nearest to a quotient."""
        if not self.outputs:
            return min(self.most, max(1, round(exact)))
        return min(self.outputs, key=lambda each: abs(each - exact))


#: By die. ECP5: YosysHQ/prjtrellis, libtrellis/tools/ecppll.cpp. GW1NR-9 C6/I5: YosysHQ/apicula, apycula/gowin_pll.py,
#: after Gowin's data sheet DS117E.
_BOUNDS: Mapping[str, _Bounds] = {
    "": _Bounds((3.125, 400), (400, 800), 600, 128),
    "GW1N-9C": _Bounds((3, 400), (400, 1200), 800, 64, (2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128)),
}
#: A clock is made if it is met within a part in ten thousand, as people write them.
_NEAR = 1e-4


def pll_for(board: Board, mhz: float) -> Pll | None:
    """Dividers for a clock; None: it is the oscillator's. `InputError` with the nearest clock, if it cannot be made.

    >>> pll_for(board_named("ulx3s-85f"), 60)
    Pll(input=5, feedback=12, output=10, mhz=60.0)
    """
    start, bounds = board.clock.mhz, _BOUNDS[board.die]
    if mhz == start:
        return None
    found = []
    for divider in range(1, bounds.most + 1):
        if not bounds.detector[0] <= start / divider <= bounds.detector[1]:
            continue
        for feedback in range(1, bounds.most + 1):
            made = start * feedback / divider
            output = bounds.output(bounds.middle / made)
            if bounds.oscillator[0] <= made * output <= bounds.oscillator[1]:
                found.append(Pll(divider, feedback, output, made))
    best = min(found, key=lambda each: (abs(each.mhz - mhz), each.input))
    if abs(best.mhz - mhz) > _NEAR * mhz:
        text = f"the PLL of {board.name} cannot make {mhz:g} MHz from {start:g}; the nearest is {best.mhz:.6g}"
        raise InputError(Mistake("--clock", text))
    return best
