"""The picture of a diff: the waterfall of its critical path above two aligned timelines."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from lstmsim.analysis.timeline import COLUMNS, MAIN, Timeline, named_groups
from lstmsim.report.pictures.figures import Picture, drawn, letters, set_cycles, short, ticks
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.diff.report import headline, piece, shortened
from lstmsim.studies.diff.result import Diff
from lstmsim.studies.diff.sides import paired
from lstmsim.studies.shared.request import Path
from lstmsim.studies.simulate.picture import (
    SPAN_LIMIT,
    View,
    axes_inches,
    draw_fractions,
    draw_labels,
    draw_spans,
    row_height,
    rows_inches,
    set_legend,
    set_rows,
    view_of,
)

#: Rows of the waterfall, the last of which is the sum of all others; cores, and rows, of each timeline.
_BARS, _CORES, _ROWS = 10, 2, 14
#: Share of the picture's width that titles of panels have.
_PANEL = 0.7
#: Signs are shades of grey: colours are jobs.
_LESS, _MORE, _ALL, _MARK = "#D0D5D9", "#8A949B", "#33434D", "#B0420A"


def plot_diff(diff: Diff, path: Path | None = None, *, look: Look = SCREEN) -> Picture:
    """Draw a diff: the waterfall of the critical path above both runs over time, the parting cycle marked.

    diff: what `diff` gave.
    path: the picture's file (.png, .svg or .pdf); None: no file.
    look: how wide it is, and what it is made for.

    Rows of the waterfall are differences: it begins at 0 and ends at the difference of the makespans.

    >>> from lstmsim import diff, plot_diff
    >>> scenario = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]}
    >>> longer = diff(scenario, overrides=["jobs.0.steps=4"])
    >>> plot_diff(longer).caption.partition(";")[0]
    'B is slower: 295 cycles, A 226 (30.5 % more)'
    """
    with drawn(path, look=look) as figure:
        _draw(figure, diff)
    return figure


def _draw(figure: Picture, diff: Diff) -> None:
    timelines = _aligned(diff)
    end = max(*diff.makespan_cycles, 1)
    # both on one axis, also where names must fit
    views = [replace(_view(each, diff), end_cycle=end) for each in timelines]
    heights = [[row_height(row.kind) for row in view.rows] for view in views]
    bars = min(sum(row.more != 0 for row in diff.path), _BARS) + 1
    inches = [0.24 * bars + 0.5, *(rows_inches(each) for each in heights)]
    figure.fit(12, sum(inches) + 1.8, fixed=sum(inches))
    width = axes_inches(figure)
    waterfall, *panels = figure.subplots(3, 1, height_ratios=inches)
    # letters of a name in front of a bar: names and bars share the width
    wide = 64 if figure.look == SCREEN else int(0.4 * 72 * figure.get_size_inches()[0] / (0.6 * letters(7)))
    _waterfall(waterfall, diff, wide, _side(figure.look))
    for side, (axes, timeline, view, rows) in enumerate(zip(panels, timelines, views, heights, strict=True)):
        centres = set_rows(axes, view, rows)
        if len(view) > SPAN_LIMIT:
            draw_fractions(axes, timeline, view, centres, rows)
        else:
            draw_spans(axes, view, centres, rows)
            draw_labels(axes, timeline, view, centres, width)
        left_out = f"; not shown: {view.left_out}" if view.left_out else ""
        name = f"{'AB'[side]}: {short(diff.names[side], 70)}, {diff.makespan_cycles[side]:,} cycles{left_out}"
        if side == 0 and diff.parts_at is not None and figure.look != SCREEN:
            name += f"; they part at cycle {diff.parts_at.cycle:,}"
        axes.set_title(figure.folded(name, 8, _PANEL), loc=_side(figure.look), fontsize=letters(8), parse_math=False)
        set_cycles(axes, 0, end)
        if diff.parts_at is not None:
            axes.axvline(diff.parts_at.cycle, color=_MARK, linewidth=1.2, linestyle="--")
    if diff.parts_at is not None and figure.look == SCREEN:
        cycle = diff.parts_at.cycle
        text = f"they part at cycle {cycle:,} "
        panels[0].set_title(text, loc="right", fontsize=letters(8), color=_MARK)
    panels[0].set_xlabel("")
    said = short(headline(diff), 400)
    figure.head([textwrap.fill(said, 104) if figure.look == SCREEN else said])
    job, state = (np.concatenate([getattr(each, name) for each in views]) for name in ("job", "state"))
    set_legend(figure, timelines[0], replace(views[0], job=job, state=state))


def _side(look: Look) -> Any:
    """The side of titles: at the right a long one reaches over the names of rows, and not out of a narrow picture."""
    return "left" if look == SCREEN else "right"


def _waterfall(axes: Axes, diff: Diff, wide: int, side: Any) -> None:
    """Bars from A's makespan on: each begins where the one before ends.

    wide: most letters of their names.
    side: the side at which the title stands.
    """
    rows = shortened([row for row in diff.path if row.more], _BARS, "{} more rows")
    changes = [row.more for row in rows]
    levels = list(accumulate(changes, initial=0))
    colours = [*(_LESS if change < 0 else _MORE for change in changes), _ALL]
    starts, changes = [*levels[:-1], 0], [*changes, levels[-1]]
    axes.barh(range(len(changes)), changes, left=starts, color=colours, height=0.7)
    for place, (start, change) in enumerate(zip(starts, changes, strict=True)):
        axes.annotate(
            f"{change:+,}" if change else "0",
            (max(start, start + change), place),
            xytext=(3, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=letters(7),
        )
        if place + 1 < len(changes) - 1:
            axes.plot([start + change] * 2, [place, place + 1], color="#999999", linewidth=0.5)
    axes.axvline(0, color="#333333", linewidth=0.6)
    axes.set_yticks(
        range(len(changes)), [*(short(piece(diff, row), wide) for row in rows), "makespan"], fontsize=letters(7)
    )
    axes.set_ylim(len(changes) - 0.5, -0.5)
    axes.use_sticky_edges = False
    axes.margins(x=0.06)
    if levels[-1] == max(levels) == min(levels):
        axes.set_xlim(-1, 1)
    axes.set_title("The critical path: B - A in cycles", loc=side, fontsize=letters(8))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, **ticks(axes)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:+,.0f}" if value else "0")


def _aligned(diff: Diff) -> tuple[Timeline, Timeline]:
    """Both timelines with the same jobs, so that a job has one colour."""
    a, b = (each.timeline for each in diff.runs)
    pairs = paired(a.jobs, b.jobs)
    names = tuple(a.jobs[i] if i is not None else b.jobs[j or 0] for i, j in pairs)
    made = []
    for at, timeline in enumerate((a, b)):
        place = np.full(len(timeline.jobs) + 1, -1, dtype=np.int32)
        for number, pair in enumerate(pairs):
            own = pair[at]
            if own is not None:
                place[own] = number
        made.append(replace(timeline, jobs=names, job=place[timeline.job], groups=named_groups(names)))
    return made[0], made[1]


def _view(timeline: Timeline, diff: Diff) -> View:
    """A few cores of a timeline, that of the parting first; of cores with many rows the main units only."""
    cores = sorted({row.core for row in timeline.rows if row.kind == MAIN})
    first = diff.parts_at.core if diff.parts_at is not None else None
    chosen = sorted(cores, key=lambda core: (core != first, core))[:_CORES]
    shown = [row for row in timeline.rows if row.core in chosen]
    if len(shown) > _ROWS:
        kept = np.array([row.kind == MAIN for row in timeline.rows])
        place = np.cumsum(kept) - 1
        own = kept[timeline.row]
        columns = {name: getattr(timeline, name)[own] for name in COLUMNS}
        columns["row"] = place[columns["row"]].astype(np.int32)
        rows = tuple(row for row in timeline.rows if row.kind == MAIN)
        timeline = replace(timeline, rows=rows, **columns)
    return view_of(timeline, None, None, chosen)
