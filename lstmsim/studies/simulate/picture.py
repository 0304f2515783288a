"""The timeline picture: which jobs worked when, the causes of waits, and how busy the main units were."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from lstmsim.analysis.binning import busy_windows, window_edges
from lstmsim.analysis.cycle_names import NAMED
from lstmsim.analysis.timeline import STATES, Timeline
from lstmsim.base.units import cycles_to_us
from lstmsim.report.figures_text import three_digits
from lstmsim.report.looks import Style
from lstmsim.report.pictures.figures import SUFFIXES, Picture, check_name, save, settings
from lstmsim.report.pictures.styles import job_style, short
from lstmsim.report.pictures.time_axis import set_time
from lstmsim.studies.simulate.picture_rows import (
    draw_fractions,
    draw_labels,
    draw_spans,
    row_height,
    rows_inches,
    set_rows,
)
from lstmsim.studies.simulate.picture_view import View, view_of

__all__ = ["SPAN_LIMIT", "SUFFIXES", "plot"]

#: Above this many visible spans the picture shows fractions of time instead of single spans.
SPAN_LIMIT = 20_000

_WINDOWS = 200
_LEGEND_NAMES = 16


def plot(
    timeline: Timeline,
    path: str | os.PathLike[str] | None = None,
    *,
    start: int | None = None,
    end: int | None = None,
    cores: Iterable[int] | None = None,
) -> Picture:
    """Draw a timeline: colour is the job, hatching on grey the cause of a wait.

    Above `SPAN_LIMIT` visible spans each row shows fractions of time per column instead, and the picture says so.

    path: a file that ends in `.png`, `.svg` or `.pdf`, written whole or not at all: equal timelines give equal bytes.
    start, end: cycles; None: all that the timeline shows, which of a window is the window.
    cores: their numbers; None: all of them.
    `InputError` for a window, a core or a suffix that is not possible.
    """
    name = None if path is None else os.fspath(path)
    if name is not None:
        check_name(name)
    view = view_of(timeline, start, end, cores)
    with settings():
        figure = _draw(timeline, view)
        if name is not None:
            save(figure, name)
    return figure


def _draw(timeline: Timeline, view: View) -> Picture:
    heights = [row_height(row.kind) for row in view.rows]
    upper_inches = rows_inches(heights)
    figure = Picture(figsize=(12, upper_inches + 2.6), layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[upper_inches, 1.2])
    centres = set_rows(upper, view, heights)
    if len(view) > SPAN_LIMIT:
        draw_fractions(upper, view, centres, heights)
    else:
        draw_spans(upper, view, centres, heights)
        draw_labels(upper, timeline, view, centres)
    busy = _draw_utilization(lower, timeline, view)
    set_time(upper, lower, view.start_cycle, view.end_cycle, timeline.frequency_mhz)
    _set_title(figure, timeline, view, busy)
    _set_legend(figure, timeline, view)
    return figure


def _draw_utilization(axes: Axes, timeline: Timeline, view: View) -> float:
    """Draw the busy fraction of the shown cores' main units per window; give that of the whole view in percent."""
    edges = window_edges(view.start_cycle, view.end_cycle, _WINDOWS)
    by_core = {core: values for core, values in busy_windows(timeline, edges).items() if core in view.cores}
    mean = 100 * np.mean(list(by_core.values()), axis=0) if by_core else np.zeros(len(edges) - 1)
    axes.stairs(mean, edges, fill=True, color="#B8C4CC")
    axes.stairs(mean, edges, color="#33434D", linewidth=0.9)
    axes.set_ylim(0, 105)
    axes.set_yticks([0, 50, 100])
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)
    what = (
        f"{timeline.unit} busy (%)" if len(by_core) < 2 else f"{timeline.unit}s busy (%),\nmean of {len(by_core)} cores"
    )
    axes.set_ylabel(what)
    window = int(edges[1] - edges[0])
    axes.set_title(f"windows of {window:,} cycle{'s' * (window > 1)}", loc="right", fontsize=7, color="#555555", pad=2)
    return float(np.average(mean, weights=np.diff(edges)))


def _set_title(figure: Figure, timeline: Timeline, view: View, busy: float) -> None:
    makespan = timeline.makespan_cycles
    total, part = f"{makespan:,} cycles ({three_digits(cycles_to_us(makespan, timeline.frequency_mhz))} µs)", ""
    if (view.start_cycle, view.end_cycle) != (0, makespan):
        total = f"window of cycles {view.start_cycle:,} to {view.end_cycle:,} of {total}"
        part = " of the window"
    units = f"{timeline.unit}{'s' * (len(view.cores) > 1)}"
    lines = [f"{short(timeline.chip, 60)}: {total}, {units} busy {busy:.1f} %{part}"]
    if len(view) > SPAN_LIMIT:
        lines.append(f"{len(view):,} spans: each column shows fractions of its time, not single spans")
    if view.left_out:
        lines.append(f"not shown: {view.left_out} (choose fewer cores to see them)")
    figure.suptitle("\n".join(lines), fontsize=10, parse_math=False)


def _set_legend(figure: Figure, timeline: Timeline, view: View) -> None:
    colours = view.colours()
    shown = colours if len(colours) <= _LEGEND_NAMES else colours[:8]
    counts = np.bincount(view.colour[np.unique(view.job[view.job >= 0])], minlength=len(view.names))
    entries = [(_named(view.names[each], int(counts[each]), timeline), job_style(each)) for each in shown]
    if len(colours) > len(shown):
        entries.append((f"+ {len(colours) - len(shown):,} more (looks repeat)", Style("#FFFFFF", ink="#FFFFFF")))
    present = set(np.unique(view.state).tolist())
    waits = {name: named for name, named in NAMED.items() if name in STATES and name != "busy"}
    for name, named in waits.items():
        if STATES.index(name) in present:
            entries.append((named.legend or name, named.style))
    patches = [
        Patch(
            facecolor=style.fill,
            edgecolor=style.ink,
            hatch=style.hatch or None,
            linewidth=0.4 * any(style == named.style for named in waits.values()),
        )
        for _, style in entries
    ]
    if not patches:
        return
    # Names are set afterwards: a legend swallows labels that begin with an underscore, and reads $ as mathematics.
    legend = figure.legend(patches, ["-"] * len(patches), loc="outside right upper", frameon=False, handleheight=1.1)
    for text, (label, _) in zip(legend.get_texts(), entries, strict=True):
        text.set_parse_math(False)
        text.set_text(label)


def _named(name: str, jobs: int, timeline: Timeline) -> str:
    """What a colour stands for: a job, or how many jobs of an entry are shown."""
    return (
        f"{short(name, 24)} ({jobs:,} {'request' if jobs == 1 else 'requests'})" if timeline.groups else short(name, 30)
    )
