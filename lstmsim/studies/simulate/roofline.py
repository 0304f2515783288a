"""The roofline of a run: how fast each layer was, below the peak of its chip and what the chip's memory allows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.timeline import Timeline
from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.base.units import tops
from lstmsim.machines.registry import target_of
from lstmsim.machines.target import MemoryRate
from lstmsim.report.figures_text import three_digits
from lstmsim.report.pictures.figures import MARKERS, Picture, drawn, job_style, letters, short, write_out
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.simulate.run import Run

_MOST_NAMED = 16
_ROOF = "#333333"
#: Logarithm of the ratio of two rates below which their marks would cover each other.
_NEAR = 0.05
_COLUMNS = ("jobs", "layer", "macs", "cycles", "macs_per_cycle", "macs_per_weight", "macs_per_byte")


@record
class RooflinePoint:
    """A layer of all jobs that have one colour.

    name: of the jobs.
    layer: number of the layer; None: all of them, because the machine's traces do not tell layers apart.
    macs: multiply-accumulates of the run.
    cycles: cycles in which a thread was at work on it, or waited within it; of several jobs the sum.
    macs_per_weight: multiply-accumulates for each weight that is read, if it is read once in a time step.
    """

    name: str
    layer: int | None
    macs: int
    cycles: int
    macs_per_weight: float


def points_of(run: Run) -> list[RooflinePoint]:
    """Give the layers of a run with what they did, in the order of jobs; jobs without work are left out."""
    timeline, jobs = run.timeline, run.scenario.jobs
    names, colour = timeline.coloured
    sums: dict[tuple[int, int], list[int]] = {}
    for job, layer, cycles in _at_work(timeline):
        model = jobs[job].model
        macs = model.macs_per_step if layer < 0 else model.layers[layer].macs_per_step
        own = sums.setdefault((int(colour[job]), layer), [0, 0, jobs[job].batch])
        own[0] += macs * jobs[job].steps * jobs[job].batch
        own[1] += cycles
        own[2] = min(own[2], jobs[job].batch)
    return [
        RooflinePoint(names[group], None if layer < 0 else layer, macs, cycles, float(batch))
        for (group, layer), (macs, cycles, batch) in sorted(sums.items())
    ]


def _at_work(timeline: Timeline) -> list[tuple[int, int, int]]:
    """Job, layer (-1: not known) and cycles in which a thread was at the layer, without cycles counted twice."""
    threads = np.array([row.kind == "thread" for row in timeline.rows], dtype=bool)[timeline.row]
    known = threads & (timeline.job >= 0) & (timeline.layer >= 0)
    # the drain of a thread belongs to no layer: it counts only where no layer is known
    has_layer = np.isin(timeline.job, np.unique(timeline.job[known]))
    counted = threads & (timeline.job >= 0) & ((timeline.layer >= 0) | ~has_layer)
    job, layer, start, end = (getattr(timeline, each)[counted] for each in ("job", "layer", "start", "end"))
    order = np.lexsort((start, layer, job))
    job, layer, start, end = (each[order].astype(np.int64) for each in (job, layer, start, end))
    cuts = np.flatnonzero((np.diff(job) != 0) | (np.diff(layer) != 0)) + 1
    parts = [each for each in np.split(np.arange(len(job)), cuts) if len(each)]
    return [(int(job[each[0]]), int(layer[each[0]]), _union(start[each], end[each])) for each in parts]


def _union(start: NDArray[np.int64], end: NDArray[np.int64]) -> int:
    """Cycles in at least one of the spans, which are sorted by their start."""
    until = np.maximum.accumulate(end)
    before = np.concatenate([start[:1], until[:-1]])
    return int(np.maximum(until - np.maximum(start, before), 0).sum())


def plot_roofline(result: Run, path: str | os.PathLike[str] | None = None, *, look: Look = SCREEN) -> Picture:
    """Draw how many multiply-accumulates a cycle each layer did, below the roofs of its chip.

    The roofs are the peak of all cores and, where the machine times a memory from which weights come, what its rate
    allows if each weight is read once in a time step. A layer above that had its weights nearer.

    result: what `run` gave.
    path: the picture's file (.png, .svg or .pdf), with its numbers beside it as .csv; None: no file.
    look: how wide it is, and what it is made for.

    `InputError` if no thread did anything.

    >>> from lstmsim import plot_roofline, run
    >>> scenario = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]}
    >>> plot_roofline(run(scenario)).caption.partition(",")[0]
    'column-npu-16k: peak 8.52 TOPS'
    """
    points, chip = points_of(result), result.scenario.chip
    if not points:
        raise InputError("nothing to draw: no thread worked on a layer")
    rate = target_of(chip.kind).memory_rate(chip)
    peak = sum(core.peak for core in chip.core_figures)
    with drawn(path, (7, 4.4), numbers=True, look=look) as figure:
        _draw(figure, points, peak, rate)
        figure.head([_said(result, peak, rate)], size=9)
        rows: list[list[Any]] = [
            ["jobs", "layer", "macs", "cycles", "macs_per_cycle", "macs_per_weight", "macs_per_byte"]
        ]
        for each in points:
            per_byte = "" if rate is None else each.macs_per_weight / rate.weight_bytes
            values = [each.macs, each.cycles, each.macs / each.cycles, each.macs_per_weight, per_byte]
            rows.append([each.name, "" if each.layer is None else each.layer, *values])
        figure.numbers = rows
    return figure


def _draw(figure: Picture, points: Sequence[RooflinePoint], peak: int, rate: MemoryRate | None) -> None:
    panel = figure.subplots()
    per = 1.0 if rate is None else rate.weight_bytes
    places = [each.macs_per_weight / per for each in points]
    ridge = max(places) if rate is None else peak / rate.bytes_per_cycle
    low, high = min(*places, ridge) / 4, max(*places, ridge) * 4
    across = np.array(sorted({low, ridge, high}))
    roof = np.full(len(across), float(peak)) if rate is None else np.minimum(peak, across * rate.bytes_per_cycle)
    (line,) = panel.plot(across, roof, color=_ROOF, linewidth=1.4)
    panel.text(high, peak, f"{peak:,} a cycle ", ha="right", va="bottom", fontsize=letters(7), color=_ROOF)
    if rate is not None:
        slope = f"  {rate.bytes_per_cycle:,.4g} bytes a cycle"
        middle = sqrt(low * ridge)
        panel.text(middle, middle * rate.bytes_per_cycle, slope, va="top", fontsize=letters(7), color=_ROOF)
    names = list(dict.fromkeys(each.name for each in points))
    handles = []
    reached = [each.macs / each.cycles for each in points]
    for number, (place, each) in enumerate(zip(places, points, strict=True)):
        marker = MARKERS[(each.layer or 0) % len(MARKERS)]
        colour = job_style(names.index(each.name)).fill
        # of points at one place the first is the largest: the others lie on it
        below = sum(
            abs(log(reached[number] / reached[other])) < _NEAR and place == places[other]
            for other in range(number + 1, len(points))
        )
        look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "", "markersize": 6.5 + 4 * below}
        handles += panel.plot([place], [reached[number]], markeredgecolor="#222222", **look)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(low, high)
    panel.set_ylim(min(*reached, roof.min()) / 2, 2.5 * peak)
    panel.set_xlabel(f"multiply-accumulates for each {'weight' if rate is None else 'byte of weights'} that is read")
    panel.set_ylabel("multiply-accumulates a cycle")
    write_out(panel.xaxis)
    write_out(panel.yaxis)
    panel.grid(color="#DDDDDD", linewidth=0.5)
    panel.set_axisbelow(True)
    said = [short(each.name, 24) + ("" if each.layer is None else f", layer {each.layer}") for each in points]
    if len(said) > _MOST_NAMED:
        said = [*said[: _MOST_NAMED - 1], f"and {len(said) - _MOST_NAMED + 1:,} more (in the CSV)"]
    known = "the weights are on the chip" if rate is None else "slope: each weight is read once in a time step"
    whole = ", the whole job" * any(each.layer is None for each in points)
    figure.name([*handles[: len(said)], line], [*(each + whole for each in said), f"roof ({known})"], below=True)


def _said(result: Run, peak: int, rate: MemoryRate | None) -> str:
    """What the roofs are."""
    chip = result.scenario.chip
    said = f"{short(chip.name, 40)}: peak {three_digits(tops(peak, 1, chip.frequency_mhz))} TOPS"
    if rate is None:
        return f"{said}, no memory roof"
    return f"{said}, memory {three_digits(rate.bytes_per_cycle * chip.frequency_mhz / 1000)} GB/s"
