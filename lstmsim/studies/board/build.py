"""Bitstreams by the tools of others: run for several seeds of placement, and what their reports say."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from lstmsim.base.bounds import MAX_FREQUENCY_MHZ
from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.files import readable_file, whole_file
from lstmsim.base.processes import run_program
from lstmsim.base.records import record
from lstmsim.machines.registry import capability
from lstmsim.report.stamp import CLOCK_ASKED, CLOCK_BUILT, CLOCK_TOLD
from lstmsim.studies.board.boards import Board
from lstmsim.studies.board.top import BITSTREAM, TOOLS

if TYPE_CHECKING:
    from lstmsim.machines.rtl import ClockModel
    from lstmsim.model.scenario import Scenario

#: By die (empty: an ECP5): cells that a report counts, and their names in it.
_CELLS: Mapping[str, Mapping[str, str]] = {
    "": {"LUT4": "TRELLIS_COMB", "registers": "TRELLIS_FF", "MULT18X18D": "MULT18X18D", "memory blocks": "DP16KD"},
    "GW1N-9C": {"LUT4": "LUT4", "ALU": "ALU", "registers": "DFF", "MULT18X18": "MULT18X18", "memory blocks": "BSRAM"},
}
_LIMIT_SECONDS = 4 * 3600
#: The format of `build/clock.json`, which `simulate --clock` reads.
CLOCK_FORMAT = "lstmsim/clock/1"


@record
class Build:
    """Bitstreams of a design.

    mhz: by seed of placement, the clock that the placed design reaches.
    cells: by kind, how many of the FPGA are used, and how many there are; of the last seed.
    path: the longest path of the worst seed in words.
    advice: what would shorten it.
    tools: the programs and their versions.
    bitstream: the file in the folder of the design, of the last seed.
    """

    mhz: Mapping[int, float]
    cells: Mapping[str, tuple[int, int]]
    path: str
    advice: str = ""
    tools: str = ""
    bitstream: str = "build/npu.bit"

    @property
    def worst(self) -> float:
        """The clock of the worst seed, in MHz."""
        return min(self.mhz.values())

    @property
    def median(self) -> float:
        """The median of the clocks, in MHz."""
        return median(self.mhz.values())

    @property
    def best(self) -> float:
        """The clock of the best seed, in MHz."""
        return max(self.mhz.values())


def _places() -> str:
    """Where programs are looked for: the path, and beside this Python."""
    return os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])


def refuse_tools(board: Board) -> None:
    """`InputError` with each program that a board's bitstream needs and that is not there, and its package."""
    gone = {
        name: package
        for name, package in TOOLS[board.die].values()
        if not any(shutil.which(each, path=_places()) for each in (name, f"yowasp-{name}"))
    }
    if gone:
        text = f"there is no {', '.join(gone)}: pip install {' '.join(dict.fromkeys(gone.values()))}"
        raise InputError(Mistake("--build", text))


#: Gives the words of a path by its cells, and what would shorten it.
PathWords = Callable[[Sequence[str]], tuple[str, str]]


def build(folder: str, board: Board, seeds: int, words: PathWords) -> Build:
    """Run `board/build.sh` for seeds from 1 on, and write `build/clock.json`; `LstmsimError` if a tool fails."""
    mhz: dict[int, float] = {}
    path, advice = "", ""
    for seed in range(1, seeds + 1):
        run_program(["env", f"PATH={_places()}", f"SEED={seed}", "sh", "board/build.sh"], folder, _LIMIT_SECONDS)
        report = _report(folder)
        mhz[seed] = min(float(each["achieved"]) for each in report["fmax"].values())
        if mhz[seed] == min(mhz.values()):
            path, advice = path_said(report["critical_paths"], words)
    used = report["utilization"]
    cells = {name: (int(used[cell]["used"]), int(used[cell]["available"])) for name, cell in _CELLS[board.die].items()}
    done = Build(mhz, cells, path, advice, _versions(board), BITSTREAM[board.die])
    data = {"format": CLOCK_FORMAT, "mhz": {str(seed): each for seed, each in mhz.items()}, "tools": done.tools}
    text = json.dumps({**data, "path": path, "advice": advice}, indent=1) + "\n"
    with whole_file(os.path.join(folder, "build", "clock.json")) as file:
        file.write(text)
    return done


def _versions(board: Board) -> str:
    """The programs that choose and place cells, with their versions."""
    said = []
    for name in (TOOLS[board.die][each][0] for each in ("yosys", "place")):
        found = next(each for each in (name, f"yowasp-{name}") if shutil.which(each, path=_places()))
        ran = run_program(["env", f"PATH={_places()}", found, "--version"])
        match = re.search(r"(?:Yosys |nextpnr-)(\d[\w.+-]*)", ran.output + ran.errors)
        said.append(f"{name} {match[1] if match else '(version unknown)'}")
    return ", ".join(said)


def clock_of(value: str) -> tuple[float, str]:
    """A clock in MHz, and where it comes from: a number that is asked for, or a file that a build has written.

    value: MHz, `build/clock.json`, or what `lstmsim rtl --build --json` wrote. Of several seeds the worst counts.

    `InputError` if it is neither.

    >>> clock_of("120")
    (120.0, 'asked for')
    """
    try:
        mhz = float(value)
    except ValueError:
        pass
    else:
        if not 0 < mhz <= MAX_FREQUENCY_MHZ:
            raise InputError(
                Mistake("clock", f"must be a clock above 0 and at most {MAX_FREQUENCY_MHZ:,} MHz, got {value}")
            )
        return mhz, CLOCK_ASKED
    if not os.path.isfile(value):
        raise InputError(Mistake("clock", f"{value!r} is neither MHz nor a file"))
    try:
        with readable_file(value) as file:
            data = json.load(file)
        data = data.get("build") or data
        found = [float(each) for each in data["mhz"].values()]
        if not found or not all(0 < each <= MAX_FREQUENCY_MHZ for each in found):
            raise ValueError("no clock above 0")
        tools = str(data.get("tools") or "tools not named")
    except (ValueError, KeyError, AttributeError, TypeError, OverflowError, RecursionError):
        text = f"{value}: expected what a build writes, build/clock.json, with the MHz of each seed"
        raise InputError(Mistake("clock", text)) from None
    count = f"worst of {len(found)} seeds" if len(found) > 1 else "one seed"
    return min(found), f"{CLOCK_BUILT}{count}; {tools})"


def clock_model(kind: str) -> ClockModel:
    """The model of the clock of generated hardware that a machine has; `InputError` if it has none.

    >>> clock_model("row-npu")
    Traceback (most recent call last):
        ...
    lstmsim.InputError: clock: there is no clock model of row-npu: name MHz, or the file of a build
    """
    machine = capability(kind, "clock")
    if machine is None:
        raise InputError(Mistake("clock", f"there is no clock model of {kind}: name MHz, or the file of a build"))
    own: ClockModel = machine.model()
    return own


def clock_told(scenario: Scenario) -> tuple[float, str]:
    """The clock of a scenario's chip in MHz as the model of its machine tells it, and where it comes from.

    `InputError` for a design that is unlike those from which the model was made.
    """
    own, chip = clock_model(scenario.chip.kind), scenario.chip
    mhz, why = capability(chip.kind, "clock").clock(scenario)
    if why:
        text = f"cannot tell: {why}; the model was made from {own.fitted} designs that differ from this one in that"
        raise InputError(Mistake("clock", text))
    return mhz, f"{CLOCK_TOLD}{own.name}; {own.judged})"


def _report(folder: str) -> Any:
    try:
        with open(os.path.join(folder, "build", "report.json"), encoding="utf-8") as file:
            report = json.load(file)
        if not report["fmax"]:
            raise KeyError
    except (OSError, ValueError, KeyError):
        raise LstmsimError("nextpnr has written no report with a clock: build/place.log says why") from None
    return report


def path_said(paths: Any, words: PathWords) -> tuple[str, str]:
    """Say what the longest path within the clock is, by modules, and what would shorten it.

    paths: as nextpnr reports them.
    words: what the machine says of a path by its cells.

    >>> hop = {"type": "routing", "delay": 2.0, "from": {"cell": "a.q_LUT4"}, "to": {"cell": "b.c.d"}}
    >>> path_said([{"from": "posedge x", "to": "posedge x", "path": [hop]}], lambda cells: (" to ".join(cells), "none"))
    ('a.q_LUT4 to b.c.d: 2.0 ns, 2.0 of them routing', 'none')
    """
    within = [each for each in paths if each["from"] == each["to"] and each["path"]]
    if not within:
        return "no path within the clock", ""
    hops = max(within, key=lambda each: sum(hop["delay"] for hop in each["path"]))["path"]
    whole = sum(hop["delay"] for hop in hops)
    routing = sum(hop["delay"] for hop in hops if hop["type"] == "routing")
    said, advice = words([hops[0]["from"]["cell"], *(hop["to"]["cell"] for hop in hops)])
    return f"{said}: {whole:.1f} ns, {routing:.1f} of them routing", advice
