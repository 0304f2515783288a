"""How do array size, parallelism, model size and threads play together, over a whole design space?

LSTMs of six sizes (input = hidden, 25 steps), as many of them as there are threads, on arrays of NPE = 4096 to 131072
multipliers, for EP = 1 to 256 and VP = min(4 * hidden, NPE // EP), with default latencies: 1,296 points, each
simulated exactly, as `lstmsim sweep` does it.

Run `python experiments/design_space/run.py`; `--write` refreshes expected.md beside it; pictures.py draws a map
and writes the table.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.holds import SHARE, as_it_is, paragraph
from lstmsim import load_scenario
from lstmsim.report.stability import Conclusions
from lstmsim.studies.shared.stability import Vary, stability
from lstmsim.studies.sweep.run import sweep as run_sweep

STEPS = 25
ARRAYS = tuple(4096 * 2**k for k in range(6))
HIDDEN = (256, 512, 768, 1024, 1536, 2048)
THREADS = (1, 2, 3, 4)
#: Keys of cores that the sweep varies itself.
VARIED = ("npe", "ep", "threads", "vp")
#: An EP that takes so much more cycles than the best is as good for most.
NEAR = 0.05


def spec(arrays: Sequence[int] = ARRAYS, hidden: Sequence[int] = HIDDEN) -> dict[str, Any]:
    """The sweep, laid out like its file."""
    core = "chip.cores.0"
    layer = "jobs.0.model.layers.0"
    return {
        "name": "design_space",
        "scenario": {
            "chip": {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 65536, "ep": 32, "vp": 2048}]},
            "jobs": [{"model": {"layers": [{"cell": "lstm", "hidden": 512, "input": 512}]}, "steps": STEPS}],
        },
        "axes": {
            "npe": {"path": f"{core}.npe", "values": list(arrays)},
            "hidden": {"path": [f"{layer}.hidden", f"{layer}.input"], "values": list(hidden)},
            "ep": {"path": f"{core}.ep", "from": 1, "to": 256, "factor": 2},
            "threads": {"path": [f"{core}.threads", "jobs.0.count"], "values": list(THREADS)},
            "vp": {"path": f"{core}.vp", "expression": "min(4 * hidden, npe // ep)"},
        },
    }


@dataclass(frozen=True)
class Point:
    """One simulated point."""

    npe: int
    hidden: int
    ep: int
    threads: int
    cycles: int
    utilization: float


def points(table: Path) -> list[Point]:
    """The points of a sweep's table that could be simulated."""
    with table.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["status"] == "done"]
    return [
        Point(
            npe=int(row["npe"]),
            hidden=int(row["hidden"]),
            ep=int(row["ep"]),
            threads=int(row["threads"]),
            cycles=int(row["makespan_cycles"]),
            utilization=float(row["utilization"]),
        )
        for row in rows
    ]


def results(small: bool = False, vary: Vary = as_it_is) -> list[Point]:
    """All points, on changed chips; `small`: two arrays and two models."""
    wanted = spec(ARRAYS[2:5:2], HIDDEN[1:4:2]) if small else spec()
    scenario = load_scenario(wanted["scenario"])
    wanted["scenario"] = replace(scenario, chip=vary(scenario.chip))
    with tempfile.TemporaryDirectory() as place:
        run_sweep(wanted, place, jobs=1 if small else None)
        return points(Path(place, "sweep.csv"))


def best(rows: Iterable[Point]) -> Mapping[tuple[int, int, int], Point]:
    """The fastest EP of each (npe, hidden, threads); the smallest of equals."""
    chosen: dict[tuple[int, int, int], Point] = {}
    for each in sorted(rows, key=lambda point: (point.cycles, point.ep)):
        chosen.setdefault((each.npe, each.hidden, each.threads), each)
    return chosen


def holds() -> str:
    """Whether the best EPs stay the best, or near it, as a paragraph."""
    chosen = best(results())

    def conclusions(vary: Vary) -> Conclusions:
        rows = results(vary=vary)
        now, cycles = best(rows), {(each.npe, each.hidden, each.threads, each.ep): each.cycles for each in rows}
        answers = {}
        for key, each in sorted(chosen.items()):
            least, place = now[key].cycles, f"NPE {each.npe:,}, hidden {each.hidden:,}, threads {each.threads}"
            near = cycles[*key, each.ep] <= (1 + NEAR) * least
            answers[f"EP {each.ep} at {place}"] = (
                f"{'at most' if near else 'more than'} {100 * NEAR:g} % above the best"
            )
            answers[f"the best EP at {place}"] = f"{now[key].ep}"
        return answers

    chips = [load_scenario(spec()["scenario"]).chip]
    found = stability(chips, conclusions, SHARE, [f"cores.{each}" for each in VARIED])
    exact = sum(each.startswith("the best") for each in found.flipping)
    near = replace(
        found,
        conclusions={name: each for name, each in found.conclusions.items() if name.startswith("EP")},
        flips=tuple(each for each in found.flips if each.question.startswith("EP")),
    )
    return paragraph(f"{near.sentence}. Which EP is the very best flips in {exact} of {len(chosen)}.")


def summary(rows: Sequence[Point]) -> str:
    """The best EP of every array, model and number of threads, and its utilization."""
    chosen = best(rows)
    lines = [
        "# Design space of the column-wise NPU",
        "",
        "Best EP (power of two; VP = min(4 * hidden, NPE // EP)) and the utilization there; as many LSTMs as threads.",
        "",
        "| NPE | hidden | 1 thread | 2 threads | 3 threads | 4 threads |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for npe, hidden in sorted({(each.npe, each.hidden) for each in rows}):
        row = [chosen[npe, hidden, threads] for threads in THREADS]
        cells = " | ".join(f"EP {each.ep}: {100 * each.utilization:.1f} %" for each in row)
        lines.append(f"| {npe:,} | {hidden:,} | {cells} |")
    gains = {key: chosen[key].utilization / chosen[*key[:2], 1].utilization for key in chosen}
    second = [(gain, key) for key, gain in gains.items() if key[2] == 2]
    most, least = max(second), min(second)
    lines += [
        "",
        f"A second thread buys most at NPE {most[1][0]:,} for hidden {most[1][1]:,} ({most[0]:.2f} times the",
        f"utilization) and least at NPE {least[1][0]:,} for hidden {least[1][1]:,} ({least[0]:.2f} times).",
        f"Points simulated: {len(rows):,}.",
        "",
    ]
    return "\n".join(lines)


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    return summary(results(small)) + ("" if small else holds())


if __name__ == "__main__":
    from experiments.run import main

    main("design_space")
