"""At which EP and threshold does skipping columns pay on real speech, and what does it cost in decisions?

Silero VAD (one LSTM of 128 units and inputs) on 174 frames of speech, silence and noise, in 8-bit fixed point, on one
core of 512 multipliers of the column-wise NPU. EP from 1 to 32, with VP = 512 / EP, so that a dense step takes 256
tiles on all of them. Thresholds from 0 to 0.5, the same for x and h. Beside them the core without delta columns.

Run `python experiments/delta_columns/run.py`; `--write` refreshes expected.md beside it; pictures.py draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from experiments.holds import as_it_is, held_paragraph
from experiments.precision.run import exact, speech
from lstmsim import engines, machines
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.machines.column.delta import left_out, rule_of
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.model.numerics.delta import sent_run
from lstmsim.model.numerics.jobs import OwnNumbers
from lstmsim.model.scenario import Scenario
from lstmsim.report.stability import Conclusions
from lstmsim.studies.shared.stability import Vary

STEPS, NPE = 174, 512
ARRAYS = (512, 1024, 2048, 4096, 8192)
EPS = (1, 2, 4, 8, 16, 32)
THRESHOLDS = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
#: Cycles from a visible element to a known decision: the assumption, and its ends.
LATENCIES = (0, 4, 8)
#: Said of the tables as a whole; the test of this experiment holds it to be true.
ANSWER = [
    "**Answer.** It pays where EP is small and tiles, not waits for h, make up a step. With 512 multipliers and a",
    "threshold of 0.02, which changes no decision, EP 1 takes 0.48 of the dense cycles, EP 2 0.60, EP 4 0.79; at EP 16",
    "and 32 it takes 0.99 to 1.01 of them, for nearly every group holds a change. With more multipliers at VP 512 the",
    "gain is gone at EP 4, and from EP 8 on the comparison costs more than skipping saves. So skipping is worth a",
    "doubling here: at EP 1 it takes 21,302 cycles, and the dense core of 1,024 multipliers takes 22,323. This is one",
    "network on 174 frames, much of them silence; other data change more or less.",
]


@dataclass(frozen=True)
class Point:
    """A run on these frames.

    ep: elements in parallel.
    threshold: least change that is sent; None: the core without delta columns.
    cycles: of all frames.
    left_out: share of the groups of columns that were not sent.
    changed: frames whose decision (probability above 0.5) is another than in float64 without skipping.
    largest: the largest change of a probability.
    """

    ep: int
    threshold: float | None
    cycles: int
    left_out: float
    changed: int
    largest: float


def scenario(ep: int, threshold: float | None, late: int = 4, npe: int = NPE) -> Scenario:
    core = {"npe": npe, "ep": ep, "vp": npe // ep, "latency": {"delta": late}}
    if threshold is not None:
        core["delta"] = {"x": threshold, "h": threshold}
    return load_scenario(
        {
            "chip": {"kind": "column-npu", "name": "speech", "frequency_mhz": 250, "cores": [core]},
            "jobs": [{"model": "silero-vad-16k", "steps": STEPS, "inputs": "silero-speech.safetensors"}],
            "precision": {"weight_bits": 8},
        }
    )


@cache
def point(ep: int, threshold: float | None, late: int = 4, npe: int = NPE) -> Point:
    own = scenario(ep, threshold, late, npe)
    cycles = engines.totals(machines.lower(own.chip, own.jobs)).makespan_cycles
    if threshold is None:
        return Point(ep, None, cycles, 0.0, 0, 0.0)
    core, numbers = own.chip.cores[0], own.jobs[0].numbers
    assert isinstance(numbers, OwnNumbers)
    assert isinstance(own.chip, ColumnNpu)
    run, _ = sent_run(numbers, rule_of(core), by_step=False)
    ours, theirs = speech(run.output()), speech(exact("silero-vad-16k")[0])
    changed = int(np.count_nonzero((ours > 0.5) != (theirs > 0.5)))
    share = left_out(own.chip, own.jobs)
    return Point(ep, threshold, cycles, share or 0.0, changed, float(np.abs(ours - theirs).max()))


def results(eps: Sequence[int] = EPS, thresholds: Sequence[float] = THRESHOLDS) -> dict[int, list[Point]]:
    """By EP the core without delta columns, then the points at each threshold."""
    return {ep: [point(ep, None), *(point(ep, each) for each in thresholds)] for ep in eps}


def front(points: Sequence[Point]) -> list[Point]:
    """The points of which no other has at most as many cycles and as large a change of a probability."""
    return [
        each
        for each in points
        if not any(
            (other.cycles, other.largest) != (each.cycles, each.largest)
            and other.cycles <= each.cycles
            and other.largest <= each.largest
            for other in points
        )
    ]


def _row(each: Point, dense: Point) -> str:
    ratio = f"{each.cycles / dense.cycles:.3f}"
    share = f"{100 * each.left_out:.1f} %"
    return f"| {each.threshold:g} | {each.cycles:,} | {ratio} | {share} | {each.changed} | {each.largest:.3f} |"


def summary(measured: dict[int, list[Point]], answer: Sequence[str] = ()) -> str:
    """The tables as Markdown."""
    lines = [
        "# Delta columns on real speech",
        "",
        "Silero VAD (LSTM, 128 units, 128 inputs), 174 frames of speech, silence and noise; 8-bit weights and vectors;",
        f"one core of {NPE} multipliers, one thread, `latency.delta` 4 (an assumption). Formats are calibrated on the",
        "same frames: optimistic. A frame is decided by whether its probability of speech is above 0.5: `changed` are",
        "frames decided otherwise than by float64 without skipping, `most` is the largest change of a probability.",
        "`of dense`: cycles against the same core without delta columns. Cycles are those of these very frames.",
        *(["", *answer] if answer else []),
    ]
    for ep, (dense, *points) in measured.items():
        lines += ["", f"## EP {ep}, VP {NPE // ep}: {dense.cycles:,} cycles without delta columns", ""]
        lines += ["| threshold | cycles | of dense | left out | changed | most |", "| ---: " * 6 + "|"]
        lines += [_row(each, dense) for each in points]
    every = [each for points in measured.values() for each in points[1:]]
    lines += ["", "## The front of cycles and the largest change of a probability", ""]
    lines += ["| EP | threshold | cycles | changed | most |", "| ---: " * 5 + "|"]
    lines += [
        f"| {each.ep} | {each.threshold:g} | {each.cycles:,} | {each.changed} | {each.largest:.3f} |"
        for each in sorted(front(every), key=lambda each: each.cycles)
    ]
    return "\n".join([*lines, ""])


def latencies() -> str:
    """What the assumed latency of the comparison does to the verdict at each EP."""
    lines = ["", "## The comparison takes 0, 4 or 8 cycles (an assumption): cycles of dense at threshold 0.02", ""]
    lines += ["| EP | 0 | 4 | 8 |", "| ---: " * 4 + "|"]
    for ep in EPS:
        dense = point(ep, None).cycles
        cells = [f"{point(ep, 0.02, late).cycles / dense:.3f}" for late in LATENCIES]
        lines.append(f"| {ep} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def conclusions(vary: Vary = as_it_is) -> Conclusions:
    """At which EP a threshold of 0.02 takes fewer cycles than the core without delta columns."""
    answers = {}
    for ep in EPS:
        cycles = []
        for threshold in (0.02, None):
            own = scenario(ep, threshold)
            cycles.append(engines.totals(machines.lower(vary(own.chip), own.jobs)).makespan_cycles)
        answers[f"EP {ep}"] = "skipping is shorter" if cycles[0] < cycles[1] else "skipping is not shorter"
    return answers


def holds() -> str:
    """Whether these conclusions hold, as a paragraph."""
    return held_paragraph([scenario(1, 0.02).chip], conclusions)


def arrays() -> str:
    """Larger arrays with VP 512, which is all rows of the network: EP grows, and a step waits more for its results."""
    lines = ["", "## Larger arrays, all with VP 512 (all rows of a step at once)", ""]
    lines += [
        "| multipliers | EP | dense cycles | tiles, % of them | 0.02 of dense | 0.1 of dense |",
        "| ---: " * 6 + "|",
    ]
    for npe in ARRAYS:
        ep = npe // 512
        dense, few, many = (point(ep, each, npe=npe).cycles for each in (None, 0.02, 0.1))
        tiles = 100 * STEPS * 2 * -(-128 // ep) / dense
        lines.append(f"| {npe:,} | {ep} | {dense:,} | {tiles:.0f} | {few / dense:.3f} | {many / dense:.3f} |")
    return "\n".join([*lines, ""])


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    if small:
        return summary(results((4,), (0.0, 0.02)))
    return summary(results(), ANSWER) + arrays() + latencies() + holds()


if __name__ == "__main__":
    from experiments.run import main

    main("delta_columns")
