"""Builds the drawn designs out of context for an ECP5-85 of speed 6; built.csv beside it gets a row for each.

Run `python experiments/clock/build.py FOLDER`; `--lane 0/2` and `--lane 1/2`, at the same time, each build a half. What
is in the table is not built again. It needs the tools of the extra `board` (`--tools DIR` says where, if not on the
path or beside this Python), and about a minute of processor time for each design.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("built.csv")
_CELLS = {"lut4": "TRELLIS_COMB", "registers": "TRELLIS_FF", "multipliers": "MULT18X18D", "memories": "DP16KD"}
#: ECP5-85, speed grade 6, pins left out; the clock that is asked for is above what any of the designs reaches.
_DEVICE = ["--85k", "--package", "CABGA381", "--speed", "6", "--out-of-context"]
_PLACE = [*_DEVICE, "--freq", "125", "--timing-allow-fail", "-q"]
#: As boards are synthesized (`board/synth.ys`).
_SYNTH = "read_verilog -D NPU_ECP5 -I rtl rtl/*.v; synth_ecp5 -top npu_top -json npu.json"


def columns() -> list[str]:
    """The columns of the table: the design, the seed of placement, then what the build came to."""
    from experiments.clock.draw import VALUES

    return ["design", "seed", "cell", *VALUES, "mhz", *_CELLS, "cycles", "verilog", "tools"]


def rows(table: Path = TABLE) -> list[dict[str, str]]:
    """What was built, by number of the design and seed."""
    if not table.exists():
        return []
    with table.open(encoding="utf-8", newline="") as file:
        return sorted(csv.DictReader(file), key=lambda row: (int(row["design"]), int(row["seed"])))


def wanted(lane: int, lanes: int) -> Iterator[tuple[int, int]]:
    """Designs with seeds of placement in the order in which a lane builds them."""
    from experiments.clock.draw import FIT, HELD_OUT, SEEDS, repeated

    every = [(number, 1) for number in range(FIT)]
    every += [(number, seed) for number in repeated() for seed in SEEDS]
    every += [(number, 1) for number in range(FIT, FIT + HELD_OUT)]
    # a design is built by one lane only, whatever its seeds
    yield from ((number, seed) for number, seed in every if number % lanes == lane)


class Tools:
    """Yosys and nextpnr, by their usual names or as `yowasp-...`."""

    def __init__(self, folder: Path | None) -> None:
        places = [str(folder)] if folder else [os.path.dirname(sys.executable), os.environ.get("PATH", "")]
        found = {
            name: next((w for each in (name, f"yowasp-{name}") if (w := shutil.which(each, path=":".join(places)))), "")
            for name in ("yosys", "nextpnr-ecp5")
        }
        if not all(found.values()):
            raise SystemExit(f"not found: {', '.join(name for name, place in found.items() if not place)}")
        self.yosys, self.nextpnr = found.values()
        said = [subprocess.run([each, "--version"], capture_output=True, text=True) for each in found.values()]
        texts = [re.search(r"(?:Yosys |nextpnr-)(\d[\w.+-]*)", each.stdout + each.stderr) for each in said]
        self.said = "; ".join(f"{name} {text[1]}" for name, text in zip(found, texts, strict=True) if text)

    def placed(self, folder: Path, seed: int) -> dict[str, Any]:
        """What nextpnr reports of the design in a folder, which is synthesized if it was not before."""
        if not (folder / "npu.json").exists():
            subprocess.run([self.yosys, "-q", "-p", _SYNTH], cwd=folder, check=True)
        own = [self.nextpnr, *_PLACE, "--json", "npu.json", "--report", "report.json", "--seed", str(seed)]
        subprocess.run(own, cwd=folder, check=True, stderr=subprocess.DEVNULL)
        report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        return report


def built(number: int, seed: int, folder: Path, tools: Tools) -> dict[str, Any]:
    """Build a design; its row."""
    import lstmsim
    from experiments.clock.draw import drawn, scenario_of
    from lstmsim.machines.column.clock import modules

    keys, own, verilog = drawn()[number], folder / f"{number}-{modules()}", modules()
    scenario = scenario_of(keys)
    if not (own / "npu.json").exists():
        lstmsim.run_rtl(scenario, own, random_weights=0, replace=True)
    report = tools.placed(own, seed)
    mhz = min(float(each["achieved"]) for each in report["fmax"].values())
    used = {name: report["utilization"][cell]["used"] for name, cell in _CELLS.items()}
    cycles = lstmsim.run(scenario).report.makespan_cycles
    done = {"mhz": f"{mhz:.2f}", **used, "cycles": cycles, "verilog": verilog, "tools": tools.said}
    return {"design": number, "seed": seed, **keys, **done}


def main() -> None:
    """Build what is not in the table yet; a row is added as soon as it is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where the designs are built")
    parser.add_argument("--lane", default="0/1", help="which part of the designs, like 0/2")
    parser.add_argument("--most", type=int, default=1000, help="builds after which it ends")
    parser.add_argument("--table", type=Path, default=TABLE, help="another table than built.csv")
    parser.add_argument("--tools", type=Path, help="folder of the tools")
    arguments = parser.parse_args()
    lane, lanes = map(int, arguments.lane.split("/"))
    tools, done = Tools(arguments.tools), 0
    for number, seed in wanted(lane, lanes):
        there = {(row["design"], row["seed"]) for row in rows(arguments.table)}
        if (str(number), str(seed)) in there or done >= arguments.most:
            continue
        row = built(number, seed, arguments.folder, tools)
        new = not arguments.table.exists()
        with arguments.table.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns(), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
        done += 1
        print(f"design {number}, seed {seed}: {row['mhz']} MHz", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
