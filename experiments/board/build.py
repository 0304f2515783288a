"""Builds the bitstreams of the designs, and writes what the tools say into built.csv beside it.

Run `python experiments/board/build.py FOLDER`; `--only NAME` builds one, `--seeds N` places N times. It needs the tools
of the extra `board` and minutes of processor time for each design. What it writes is what run.py reads.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import lstmsim

TABLE = Path(__file__).with_name("built.csv")
#: Of a design in `TABLE`: its name, seeds of placement, MHz (worst, median, best), what is used of the FPGA.
COLUMNS = (
    "design",
    "seeds",
    "worst_mhz",
    "median_mhz",
    "best_mhz",
    "lut4",
    "registers",
    "multipliers",
    "memories",
    "longest_path",
)
_CELLS = {"lut4": "LUT4", "registers": "registers", "multipliers": "MULT18X18D", "memories": "memory blocks"}


def rows() -> dict[str, dict[str, str]]:
    """What was measured, by design."""
    if not TABLE.exists():
        return {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row["design"]: row for row in csv.DictReader(file)}


def measured(design: Any, folder: Path, seeds: int) -> dict[str, str]:
    """Build a design; its row."""
    from experiments.board.designs import BOARD, CLOCK_MHZ

    report = lstmsim.run_rtl(
        design.scenario,
        folder / design.name,
        board=BOARD,
        clock=CLOCK_MHZ,
        build=True,
        seeds=seeds,
        replace=True,
        **design.options,
    )
    made = report.build
    assert made is not None
    mhz = {"worst_mhz": made.worst, "median_mhz": made.median, "best_mhz": made.best}
    return {
        "design": design.name,
        "seeds": str(seeds),
        **{name: f"{value:.1f}" for name, value in mhz.items()},
        **{name: str(made.cells[cell][0]) for name, cell in _CELLS.items()},
        "longest_path": made.path,
    }


def main() -> None:
    """Build what the command line names; a row is written as soon as it is there."""
    from experiments.board.designs import DESIGNS

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where the designs are built")
    parser.add_argument("--only", choices=[each.name for each in DESIGNS], help="build one design")
    parser.add_argument("--seeds", type=int, default=1, help="placements of each design")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for design in DESIGNS:
        if arguments.only not in (None, design.name):
            continue
        row = measured(design, arguments.folder, arguments.seeds)
        # read after the build, which takes long: another may have written its row meanwhile
        table = rows() | {design.name: row}
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(table[each.name] for each in DESIGNS if each.name in table)
        print(f"built {design.name}: {row['median_mhz']} MHz")


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
