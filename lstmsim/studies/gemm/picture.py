"""What threads of a product do over time: a row for each thread, how many do what, and how busy the memories are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from lstmsim.analysis.spans import covered_cycles, window_edges
from lstmsim.analysis.timeline import MAIN, STATES, Timeline
from lstmsim.program.unit_names import MEMORY
from lstmsim.report.pictures.figures import Picture, drawn, letters, set_time, short
from lstmsim.report.styles import SCREEN, Look, Style
from lstmsim.studies.gemm.result import GemmReport

#: What a thread does, in the order in which it is stacked, with its look.
LOOKS = {
    "works on a step": Style("#0072B2"),
    "waits for a piece of C": Style("#D55E00", "xxxx", "#5A2700"),
    "waits for memory": Style("#F0C75E", "////", "#7A5A00"),
    "has done its part": Style("#D6D6D6"),
    "is in the barrier": Style("#CC79A7", "....", "#5E2A49"),
}
_WORKS, _C, _MEMORY, _DONE, _BARRIER = LOOKS
_STATES = {"busy": _WORKS, "contention": _C, "barrier": _BARRIER}
_WINDOWS = 300
_MEMORY_LINE = "#333333"

_Spans = dict[str, NDArray[np.int64]]


def activities(timeline: Timeline, finish: Sequence[int]) -> _Spans:
    """What threads do, by the names of `LOOKS`: for each a table of shape (spans, 3), of thread, start and end."""
    places = [place for place, row in enumerate(timeline.rows) if row.kind == MAIN and row.core < len(finish)]
    cores = np.full(len(timeline.rows), -1)
    cores[places] = [timeline.rows[place].core for place in places]
    spans: dict[str, list[NDArray[np.int64]]] = {name: [] for name in LOOKS}
    thread = cores[timeline.row]
    ends, last = np.append(np.asarray(finish, dtype=np.int64), 0)[thread], max(finish, default=0)
    for state in np.unique(timeline.state[thread >= 0]):
        mine = (timeline.state == state) & (thread >= 0)
        # the lines of a thread's last step are still on their way when nothing is left to issue
        for name, low, high in (
            (_STATES.get(STATES[state], _MEMORY), 0, ends[mine]),
            (_DONE, ends[mine], last),
            (_BARRIER, last, timeline.makespan_cycles),
        ):
            start, end = np.maximum(timeline.start[mine], low), np.minimum(timeline.end[mine], high)
            table = np.stack([thread[mine], start, end], axis=1)
            spans[name].append(table[end > start])
    return {name: np.concatenate(each) if each else np.zeros((0, 3), np.int64) for name, each in spans.items()}


def plot_threads(report: GemmReport, path: str | os.PathLike[str] | None = None, *, look: Look = SCREEN) -> Picture:
    """Draw the activity of each thread over time: compute, wait for C, for the memory, for the others.

    path: the picture's file (.png, .svg or .pdf); None: no file.
    look: how wide it is, and what it is made for.

    >>> from lstmsim import plot_threads, run_gemm
    >>> plot_threads(run_gemm(8, 64, 512, threads=8)).caption
    '8 x 64 x 512 (M x N x K) by MN 4x2x1 on epyc-7742, warm caches: 3,406 cycles'
    """
    sizes = f"{report.product.m:,} x {report.product.n:,} x {report.product.k:,} (M x N x K)"
    cycles = f"{report.caches} caches: {report.figures.makespan:,} cycles"
    relief = "" if report.relief == "plan" else f", relief {report.relief},"
    title = f"{sizes} by {report.division.cut.short}{relief} on {report.chip.name}, {cycles}"
    timeline, finish = report.timeline, report.figures.finish
    spans, threads = activities(timeline, finish), len(finish)
    inches = max(1.0, min(7.0, 0.25 + 0.13 * threads))
    with drawn(path, (11, inches + 3.4), look=look) as figure:
        upper, middle, lower = figure.subplots(3, 1, sharex=True, height_ratios=(inches, 1.1, 0.7))
        _draw_threads(upper, spans, threads)
        edges = window_edges(0, timeline.makespan_cycles, _WINDOWS)
        _draw_counts(middle, spans, threads, edges)
        _draw_memories(lower, timeline, edges)
        set_time(upper, lower, 0, max(1, timeline.makespan_cycles), timeline.frequency_mhz)
        figure.head([short(title, 130)], upper, loc="left")
        used = [each for each in LOOKS if len(spans[each])]
        patches = [Patch(**_filled(each)) for each in used]
        figure.name(patches, used, below=True)
    return figure


def _filled(name: str) -> dict[str, Any]:
    look = LOOKS[name]
    return {"facecolor": look.fill, "edgecolor": look.ink, "hatch": look.hatch or None, "linewidth": 0}


def _draw_threads(axes: Axes, spans: _Spans, threads: int) -> None:
    """A row for each thread, thread 0 at the top."""
    for name, table in spans.items():
        thread, start, end = table.T
        low, high = thread - 0.42, thread + 0.42
        corners = [(start, low), (end, low), (end, high), (start, high)]
        shapes = np.stack([np.stack(each, axis=1) for each in corners], axis=1).astype(np.float64)
        # snapped to pixels, spans below a pixel would vanish or grow
        axes.add_collection(PolyCollection(list(shapes), snap=False, **_filled(name)))
    axes.set_ylim(threads - 0.5, -0.5)
    axes.set_ylabel("thread")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_counts(axes: Axes, spans: _Spans, threads: int, edges: NDArray[np.int64]) -> None:
    """How many threads do what, on average over windows of time, stacked."""
    bottom = np.zeros(len(edges) - 1)
    for name, table in spans.items():
        part = np.zeros(len(edges) - 1)
        for thread in np.unique(table[:, 0]):
            _, start, end = table[table[:, 0] == thread].T
            part += covered_cycles(start, end, edges) / np.diff(edges)
        low, high = (np.append(each, each[-1]) for each in (bottom, bottom + part))
        axes.fill_between(edges, low, high, step="post", **_filled(name))
        bottom = bottom + part
    axes.set_ylim(0, threads)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
    axes.set_ylabel("threads")


def _draw_memories(axes: Axes, timeline: Timeline, edges: NDArray[np.int64]) -> None:
    """How busy the memories are on average, and the busiest and the least busy one."""
    rows = [place for place, row in enumerate(timeline.rows) if row.kind == MEMORY]
    busy = []
    for place in rows:
        mine = timeline.row == place
        busy.append(100 * covered_cycles(timeline.start[mine], timeline.end[mine], edges) / np.diff(edges))
    every = np.array(busy) if busy else np.zeros((1, len(edges) - 1))
    axes.stairs(every.max(axis=0), edges, baseline=every.min(axis=0), fill=True, color="#CCCCCC")
    axes.stairs(every.mean(axis=0), edges, color=_MEMORY_LINE, linewidth=0.9)
    axes.set_ylim(0, 105)
    axes.set_yticks([0, 50, 100])
    axes.set_ylabel("memory\nbusy (%)")
    if not any(map(np.any, busy)):
        axes.text(0.5, 0.5, "no line of memory", transform=axes.transAxes, ha="center", va="center", color="#555555")
    elif len(rows) > 1:
        reported = f"mean of {len(rows)} memories; grey: from the least to the most busy one"
        figure = axes.get_figure()
        assert isinstance(figure, Picture)
        axes.set_title(figure.folded(reported, 7, 0.8), loc="right", fontsize=letters(7), color="#555555", pad=2)
