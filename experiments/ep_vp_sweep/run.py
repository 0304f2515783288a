"""Which (EP, VP) is best for an array and a model, and how much does a wrong choice cost?

The column-wise LSTM patent states (paragraphs 99 to 101): the best EP lies in 4 to 16 for NPE = 16384 and in 16 to 64
for NPE = 65536; for vectors of 512, (EP, VP) = (32, 2048) beats (16, 4096), for 1024 it is the other way round; beyond
the optimum the cycles rise slowly. Here LSTMs of 256, 512 and 1024 (input = hidden, 25 steps) run alone on one thread,
for EP = 1 to 256 and VP = min(4 * hidden, NPE // EP), with default latencies.

Run `python experiments/ep_vp_sweep/run.py`; `--write` refreshes expected.md beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from experiments.holds import as_it_is, held_paragraph
from lstmsim import ColumnCore, ColumnNpu, Job, Layer, Model, Scenario, cell, simulate
from lstmsim.report.stability import Conclusions
from lstmsim.studies.shared.stability import Vary

STEPS = 25
ARRAYS = (16384, 65536)
HIDDEN = (256, 512, 1024)
EPS = tuple(2**k for k in range(9))

#: Range of the best EP that the patent states for each NPE.
STATED = {16384: (4, 16), 65536: (16, 64)}


@dataclass(frozen=True)
class Point:
    """One simulated pair."""

    npe: int
    hidden: int
    ep: int
    vp: int
    cycles: int
    utilization: float


def point(npe: int, hidden: int, ep: int, vp: int, banks: int = 2, vary: Vary = as_it_is) -> Point:
    """Run one LSTM alone on one thread of an array of `npe` multipliers."""
    model = Model("lstm", (Layer(cell("lstm"), hidden, hidden),))
    chip = ColumnNpu("array", 260, (ColumnCore(npe=npe, ep=ep, vp=vp, accumulator_banks=banks),))
    report = simulate(Scenario(vary(chip), (Job("job", model, STEPS),)))
    return Point(npe, hidden, ep, vp, report.makespan_cycles, report.utilization)


def sweep(npe: int, hidden: int, vary: Vary = as_it_is) -> list[Point]:
    """Run all EP for one array and one model, VP as wide as the patent's two constraints allow."""
    return [point(npe, hidden, ep, min(4 * hidden, npe // ep), vary=vary) for ep in EPS]


def results(small: bool = False) -> dict[tuple[int, int], list[Point]]:
    """The sweeps by (npe, hidden); `small`: hidden 512 only."""
    return {(npe, hidden): sweep(npe, hidden) for npe in ARRAYS for hidden in (HIDDEN[1:2] if small else HIDDEN)}


def orderings(vary: Vary = as_it_is) -> dict[int, tuple[Point, Point]]:
    """Per hidden size (32, 2048) and (16, 4096) at NPE = 65536."""
    wide, deep = (32, 2048), (16, 4096)
    return {
        hidden: (point(65536, hidden, *wide, vary=vary), point(65536, hidden, *deep, vary=vary))
        for hidden in (512, 1024)
    }


def ahead(pair: tuple[Point, Point]) -> str:
    """The pair with fewer cycles."""
    wide, deep = pair
    return "(32, 2048)" if wide.cycles < deep.cycles else "(16, 4096)"


def conclusions(vary: Vary = as_it_is) -> Conclusions:
    """Whether the best EP is one that the patent states, and which of its two pairs is ahead."""
    found = {f"NPE {npe}, hidden {hidden}: best EP": sweep(npe, hidden, vary) for npe in ARRAYS for hidden in HIDDEN}
    stated = {name: "stated" if inside(best(points)) else "not stated" for name, points in found.items()}
    return stated | {f"ahead at hidden {hidden}": ahead(pair) for hidden, pair in orderings(vary).items()}


def inside(top: Point) -> bool:
    """Whether a best EP lies in the range that the patent states."""
    low, high = STATED[top.npe]
    return low <= top.ep <= high


def holds() -> str:
    """Whether these conclusions hold, as a paragraph."""
    return held_paragraph([ColumnNpu("array", 260, (ColumnCore(npe=65536, ep=32, vp=2048),))], conclusions)


def best(points: list[Point]) -> Point:
    """Fewest cycles; among equals the smallest EP."""
    return min(points, key=lambda each: (each.cycles, each.ep))


def verdict(points: list[Point]) -> str:
    """Say whether the best EP lies in the stated range; if not, by how much the best EP inside the range is slower."""
    low, high = STATED[points[0].npe]
    top = best(points)
    if low <= top.ep <= high:
        return f"inside {low} to {high}"
    inside = best([each for each in points if low <= each.ep <= high])
    more = inside.cycles / top.cycles - 1
    return f"outside {low} to {high}; EP {inside.ep} inside it takes {100 * more:.2f} % more"


def rise(points: list[Point]) -> str:
    """Cycles gained by each doubling of EP beyond the optimum, in percent."""
    beyond = [each.cycles for each in points if each.ep >= best(points).ep]
    steps = [100 * (after / before - 1) for before, after in pairwise(beyond)]
    return ", ".join(f"{each:+.1f}" for each in steps) or "-"


def summary(spaces: dict[tuple[int, int], list[Point]]) -> str:
    """The tables as Markdown."""
    lines = ["# Best EP and VP", "", f"LSTM alone on one thread, {STEPS} steps; cycles, and utilization in %.", ""]
    for (npe, hidden), points in spaces.items():
        lines += [
            f"## NPE {npe}, hidden {hidden}",
            "",
            "| EP | VP | cycles | utilization |",
            "| ---: | ---: | ---: | ---: |",
        ]
        lines += [f"| {each.ep} | {each.vp} | {each.cycles} | {100 * each.utilization:.1f} |" for each in points]
        lines += [""]
    lines += ["## Optima", "", "| NPE | hidden | best (EP, VP) | stated by the patent | % per doubling beyond it |"]
    lines += ["| ---: | ---: | --- | --- | --- |"]
    for (npe, hidden), points in spaces.items():
        top = best(points)
        lines.append(f"| {npe} | {hidden} | ({top.ep}, {top.vp}) | {verdict(points)} | {rise(points)} |")
    lines += ["", "## Stated orderings at NPE 65536", "", "| hidden | (32, 2048) | (16, 4096) | ahead |"]
    lines += ["| ---: | ---: | ---: | --- |"]
    for hidden, pair in orderings().items():
        lines.append(f"| {hidden} | {pair[0].cycles} | {pair[1].cycles} | {ahead(pair)} |")
    lines += [
        "",
        "(16, 4096) at hidden 512 breaks the patent's own VP <= 4 * hidden and is simulated as it is printed.",
    ]
    lines += ["", "## What binds far beyond the optimum", ""]
    lines += ["NPE 16384, hidden 256, EP 256, VP 64: 16 row blocks of 2 tiles each wait for accumulator banks.", ""]
    lines += ["| accumulator banks | cycles |", "| ---: | ---: |"]
    lines += [f"| {banks} | {point(16384, 256, 256, 64, banks).cycles} |" for banks in (2, 4, 16)]
    return "\n".join([*lines, ""])


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    return summary(results(small)) + ("" if small else holds())


if __name__ == "__main__":
    from experiments.run import main

    main("ep_vp_sweep")
