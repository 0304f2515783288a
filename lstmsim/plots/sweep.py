"""Pictures of a sweep: a heat map of EP and VP, utilization against the array's size, or two objectives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.files import whole_file
from lstmsim.formats.tables.csv_table import CsvWriter
from lstmsim.plots.figures import Picture, check_name, save, settings
from lstmsim.plots.fronts import draw_front
from lstmsim.plots.points import Row, curve_look, grouped, legend, named, titled
from lstmsim.sweeps.export import chip_names, columns, objectives_of, table, varied
from lstmsim.sweeps.objectives import default_objectives, drawn_pair
from lstmsim.sweeps.spec import Axis
from lstmsim.sweeps.store import Store

__all__ = ["KINDS", "MAX_PANELS", "check_kind", "kind_of", "plot"]

#: More heat maps than this on one page cannot be read; the first ones are drawn.
MAX_PANELS = 12

#: What can be drawn: cycles over EP and VP, utilization over the multipliers, the front of two objectives.
KINDS = ("heatmap", "utilization", "pareto")

_MOST_CELLS = 900
_HATCHES = {"infeasible": "////", "failed": "xxxx"}


def kind_of(axes: Sequence[Axis]) -> str:
    """Choose the picture that shows most of the axes of a sweep, one of `KINDS`.

    >>> kind_of([Axis("e", ("chip.cores.0.ep",), ()), Axis("v", ("chip.cores.0.vp",), ())])
    'heatmap'
    """
    keys = {axis.key for axis in axes}
    if {"ep", "vp"} <= keys:
        return "heatmap"
    return "utilization" if "npe" in keys else "pareto"


def plot(
    store: Store,
    path: str | os.PathLike[str] | None = None,
    *,
    kind: str | None = None,
    objectives: Sequence[str] = (),
) -> Picture:
    """Draw the table of a sweep.

    A map has no place for points whose EP or VP is no number (`vp: null`, computed from the others); it says how many.

    store: the sweep's file.
    path: a file that ends in `.png`, `.svg` or `.pdf`; the numbers go into a `.csv` beside it, each file whole or not
        at all.
    kind: one of `KINDS`. None: the front if the sweep has other objectives than the usual ones or `objectives` are
        given; otherwise a heat map for axes EP and VP, utilization for an axis NPE, and the front for all other axes.
    objectives: the two of the sweep's objectives that a front is drawn of, (x, y); empty: the first two, the second one
        on the x axis. Only points that no point beats in these two are joined.
    `InputError` for another suffix, if no point was simulated, or if the sweep has no axes for that kind.
    """
    name = None if path is None else os.fspath(path)
    if name is not None:
        check_name(name, os.path.splitext(name)[0] + ".csv")
    derived = store.derived()
    axes = [axis for axis in varied(store) if axis.name not in derived]
    pair = drawn_pair(objectives_of(store), objectives)
    names = columns(store)
    rows = [dict(zip(names, row, strict=True)) for row in table(store)]
    if not any(row["status"] == "done" for row in rows):
        raise InputError(Mistake(store.path, "nothing to draw: no point could be simulated"))
    chosen = _kind(store, axes, rows, kind, front_wanted=bool(objectives))
    with settings():
        figure = Picture(layout="constrained")
        FigureCanvasAgg(figure)
        if chosen == "pareto":
            numbers = draw_front(figure, store, rows, pair, objectives_of(store))
        else:
            numbers = (_draw_heat_maps if chosen == "heatmap" else _draw_utilization)(figure, axes, rows)
        if name is not None:
            save(figure, name)
    if name is not None:
        with whole_file(os.path.splitext(name)[0] + ".csv") as file:
            CsvWriter(file).writerows(numbers)
    return figure


def check_kind(axes: Sequence[Axis], kind: str | None) -> None:
    """Raise `InputError` if the axes of a sweep do not allow that kind of picture.

    >>> check_kind([Axis("h", ("jobs.0.model.layers.0.hidden",), ())], "utilization")
    Traceback (most recent call last):
    lstmsim.errors.InputError: --plot-kind utilization: needs an axis for npe; this sweep varies h
    """
    keys = {axis.key for axis in axes}
    needed = {"heatmap": ({"ep", "vp"}, "axes for ep and for vp"), "utilization": ({"npe"}, "an axis for npe")}
    if kind in needed and not needed[kind][0] <= keys:
        varied_names = ", ".join(axis.name for axis in axes)
        raise InputError(Mistake(f"--plot-kind {kind}", f"needs {needed[kind][1]}; this sweep varies {varied_names}"))


def _kind(store: Store, axes: Sequence[Axis], rows: Sequence[Row], wanted: str | None, *, front_wanted: bool) -> str:
    """The kind of picture to draw; `InputError` if the axes do not allow the kind that is wanted."""
    check_kind(axes, wanted)
    usual = objectives_of(store) == default_objectives(chip_names(store))
    chosen = wanted or ("pareto" if front_wanted or not usual else kind_of(axes))
    if chosen == "heatmap" and not any(row["status"] == "done" and _placed(row, axes) for row in rows):
        if wanted:
            raise InputError(Mistake(f"--plot-kind {wanted}", "no simulated point has numbers for both ep and vp"))
        return "pareto"
    return chosen


def _placed(row: Row, axes: Sequence[Axis]) -> bool:
    """Whether a map has a place for the row: it has none for an EP or VP that is nothing or text."""
    return all(isinstance(row[named(axes, key)], int | float) for key in ("ep", "vp"))


def _draw_heat_maps(figure: Figure, axes: Sequence[Axis], rows: Sequence[Row]) -> list[list[Any]]:
    ep, vp = named(axes, "ep"), named(axes, "vp")
    others = [axis.name for axis in axes if axis.name not in (ep, vp)]
    left_out = sum(not _placed(row, axes) for row in rows)
    rows = [row for row in rows if _placed(row, axes)]
    panels = grouped(rows, others)
    drawn = list(panels.items())[:MAX_PANELS]
    across = min(len(drawn), 1 if len(drawn) == 1 else 2 if len(drawn) <= 4 else 3)
    down = -(-len(drawn) // across)
    counts = [len({row[name] for row in rows}) for name in (ep, vp)]
    size = (min(20, across * (1.6 + 0.62 * counts[0])), min(24, down * (1.1 + 0.3 * counts[1])))
    figure.set_size_inches(max(size[0], 4.5), max(size[1], 2.6))
    numbers: list[list[Any]] = [[*others, "ep", "vp", "status", "makespan_cycles", "best"]]
    grid = figure.subplots(down, across, squeeze=False).reshape(-1)
    for panel, (values, members) in zip(grid, drawn, strict=False):
        numbers += [[*values, *line] for line in _draw_heat_map(panel, members, ep, vp)]
        panel.set_title(titled(others, values), fontsize=8, parse_math=False)
    for panel in grid[len(drawn) :]:
        panel.set_visible(False)
    more = f"; maps not drawn: {len(panels) - len(drawn)}" if len(panels) > len(drawn) else ""
    if left_out:
        more += f"\n{left_out:,} points whose {ep} or {vp} is no number are not drawn"
    figure.suptitle(f"cycles (best cell outlined, infeasible hatched){more}", fontsize=9)
    return numbers


def _draw_heat_map(panel: Axes, rows: Sequence[Row], ep: str, vp: str) -> list[list[Any]]:
    """Draw one map; its numbers as (ep, vp, status, cycles, best)."""
    cells = {(row[ep], row[vp]): row for row in rows}
    places = [sorted({pair[at] for pair in cells}) for at in (0, 1)]
    cycles = np.full((len(places[1]), len(places[0])), np.nan)
    for y, height in enumerate(places[1]):
        for x, width in enumerate(places[0]):
            row = cells.get((width, height))
            if row is not None and row["status"] == "done":
                cycles[y, x] = row["makespan_cycles"]
    done = np.isfinite(cycles)
    shades = np.log(np.where(done, np.maximum(cycles, 1), np.nan))
    panel.imshow(np.ma.masked_invalid(shades), cmap="cividis_r", origin="lower", aspect="auto")
    best = float(np.nanmin(cycles)) if done.any() else None
    middle = float(np.nanmin(shades) + np.nanmax(shades)) / 2 if done.any() else 0.0
    numbers: list[list[Any]] = []
    for y, height in enumerate(places[1]):
        for x, width in enumerate(places[0]):
            row = cells.get((width, height))
            if row is None:
                continue
            is_best = bool(done[y, x]) and cycles[y, x] == best
            numbers.append([width, height, row["status"], row["makespan_cycles"], int(is_best)])
            corner = (x - 0.5, y - 0.5)
            if not done[y, x]:
                panel.add_patch(
                    Rectangle(
                        corner,
                        1,
                        1,
                        facecolor="#F4F4F4",
                        edgecolor="#999999",
                        hatch=_HATCHES.get(row["status"], "////"),
                        linewidth=0,
                    )
                )
            elif cycles.size <= _MOST_CELLS:
                ink = "#FFFFFF" if shades[y, x] > middle else "#000000"
                panel.text(x, y, f"{cycles[y, x]:.0f}", ha="center", va="center", fontsize=6.5, color=ink)
            if is_best:
                panel.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="#D55E00", linewidth=2, zorder=3))
    panel.set_xticks(range(len(places[0])), [str(each) for each in places[0]])
    panel.set_yticks(range(len(places[1])), [str(each) for each in places[1]])
    panel.set_xlabel(ep, parse_math=False)
    panel.set_ylabel(vp, parse_math=False)
    return numbers


def _draw_utilization(figure: Figure, axes: Sequence[Axis], rows: Sequence[Row]) -> list[list[Any]]:
    npe = named(axes, "npe")
    others = [axis.name for axis in axes if axis.name != npe]
    figure.set_size_inches(7, 4)
    panel = figure.subplots()
    numbers: list[list[Any]] = [[*others, "npe", "utilization"]]
    curves = grouped([row for row in rows if row["status"] == "done" and row[npe] is not None], others)
    for number, (values, members) in enumerate(curves.items()):
        members = sorted(members, key=lambda row: row[npe])
        colour, marker, dashes = curve_look(number)
        numbers += [[*values, row[npe], row["utilization"]] for row in members]
        panel.plot(
            [row[npe] for row in members],
            [100 * row["utilization"] for row in members],
            color=colour,
            marker=marker,
            linestyle=dashes,
            markersize=4,
            linewidth=1.2,
        )
    panel.set_xscale("log", base=2)
    panel.set_ylim(0, 104)
    panel.set_xlabel("multipliers (NPE)")
    panel.set_ylabel("utilization (%)")
    legend(figure, panel, [titled(others, values) for values in curves if others])
    return numbers
