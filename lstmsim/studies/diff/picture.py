"""The picture of a diff, the waterfall of its critical path above two aligned timelines, and its page."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from lstmsim.analysis.timeline import COLUMNS, MAIN, Timeline, named_groups
from lstmsim.base.files import whole_file
from lstmsim.report.document import Document
from lstmsim.report.page.frame import result_page
from lstmsim.report.pictures.figures import Picture, drawn, letters, set_cycles, short, ticks
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.diff.report import FORMS, headline, piece
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
_LESS, _MORE, _ALL, _MARK = "#0072B2", "#D55E00", "#33434D", "#B0420A"


def plot_diff(diff: Diff, path: Path | None = None, *, look: Look = SCREEN) -> Picture:
    """Draw a diff: the waterfall of the critical path above both runs over time, the parting cycle marked.

    diff: what `diff` gave.
    path: the picture's file (.png, .svg or .pdf); None: no file.
    look: how wide it is, and what it is made for.

    Rows of the waterfall are differences: it begins at 0 and ends at the difference of the makespans.
    """
    with drawn(path, look=look) as figure:
        _draw(figure, diff)
    return figure


def save_diff(diff: Diff, path: Path) -> None:
    """Write a diff as one self-contained page (`.html`), whole or not at all: all sections, and the picture.

    diff: what `diff` gave.
    path: the page's file.
    """
    said = FORMS.document(diff)
    document = Document.of(headline(diff), said) if isinstance(said, str) else said
    title = f"{diff.names[0]} and {diff.names[1]}"
    page = result_page(document, title, picture=plot_diff(diff).to_svg())
    with whole_file(path) as file:
        file.write(page)


def _draw(figure: Picture, diff: Diff) -> None:
    timelines = _aligned(diff)
    end = max(*diff.makespan_cycles, 1)
    # both on one axis, also where names must fit
    views = [replace(_view(each, diff), end_cycle=end) for each in timelines]
    heights = [[row_height(row.kind) for row in view.rows] for view in views]
    bars = min(sum(row.cycles[0] != row.cycles[1] for row in diff.path), _BARS) + 1
    inches = [0.24 * bars + 0.5, *(rows_inches(each) for each in heights)]
    figure.fit(12, sum(inches) + 1.8, fixed=sum(inches))
    width = axes_inches(figure)
    waterfall, *panels = figure.subplots(3, 1, height_ratios=inches)
    _waterfall(waterfall, diff)
    for side, (axes, timeline, view, rows) in enumerate(zip(panels, timelines, views, heights, strict=True)):
        centres = set_rows(axes, view, rows)
        if len(view) > SPAN_LIMIT:
            draw_fractions(axes, timeline, view, centres, rows)
        else:
            draw_spans(axes, view, centres, rows, width)
            draw_labels(axes, timeline, view, centres, width)
        left_out = f"; not shown: {view.left_out}" if view.left_out else ""
        name = f"{'AB'[side]}: {short(diff.names[side], 70)}, {diff.makespan_cycles[side]:,} cycles{left_out}"
        axes.set_title(name, loc="left", fontsize=letters(8), parse_math=False)
        set_cycles(axes, 0, end)
        if diff.parts_at is not None:
            axes.axvline(diff.parts_at.cycle, color=_MARK, linewidth=1.2, linestyle="--")
    if diff.parts_at is not None:
        cycle = diff.parts_at.cycle
        text = f"they part at cycle {cycle:,} "
        panels[0].set_title(text, loc="right", fontsize=letters(8), color=_MARK)
    panels[0].set_xlabel("")
    said = short(headline(diff), 400)
    figure.head([textwrap.fill(said, 120) if figure.look == SCREEN else said])
    job, state = (np.concatenate([getattr(each, name) for each in views]) for name in ("job", "state"))
    set_legend(figure, timelines[0], replace(views[0], job=job, state=state))


def _waterfall(axes: Axes, diff: Diff) -> None:
    """Bars from A's makespan on: each begins where the one before ends."""
    rows = [(piece(diff, row), row.cycles[1] - row.cycles[0]) for row in diff.path if row.cycles[0] != row.cycles[1]]
    if len(rows) > _BARS:
        rest = rows[_BARS - 1 :]
        rows = [*rows[: _BARS - 1], (f"{len(rest)} more rows", sum(change for _, change in rest))]
    total = diff.makespan_cycles[1] - diff.makespan_cycles[0]
    level, starts = 0, []
    for _, change in rows:
        starts.append(level)
        level += change
    changes = [*(change for _, change in rows), total]
    colours = [*(_LESS if change < 0 else _MORE for _, change in rows), _ALL]
    axes.barh(range(len(changes)), changes, left=[*starts, 0], color=colours, height=0.7)
    for place, (start, change) in enumerate(zip([*starts, 0], changes, strict=True)):
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
    axes.set_yticks(range(len(changes)), [*(short(name, 48) for name, _ in rows), "makespan"], fontsize=letters(7))
    axes.set_ylim(len(changes) - 0.5, -0.5)
    axes.use_sticky_edges = False
    axes.margins(x=0.06)
    axes.set_title("The critical path: B - A in cycles", loc="left", fontsize=letters(8))
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
