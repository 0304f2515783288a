"""Pictures of a sweep: a heat map of EP and VP, utilization against the array's size, or cost against cycles."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.csv_table import CsvWriter
from lstmsim.formats.files import whole_file
from lstmsim.plots.figures import check_name, save, settings
from lstmsim.plots.styles import job_style, short
from lstmsim.sweep.export import columns, table
from lstmsim.sweep.spec import Axis
from lstmsim.sweep.store import Store

__all__ = ["MAX_PANELS", "kind_of", "plot"]

#: More heat maps than this on one page cannot be read; the first ones are drawn.
MAX_PANELS = 12

Row = Mapping[str, Any]
_MOST_CELLS = 900
_MARKERS = "osD^vP*X"
_HATCHES = {"infeasible": "////", "failed": "xxxx"}
_MOST_NAMED = 16


def kind_of(axes: Sequence[Axis]) -> str:
    """Which picture the axes of a sweep allow: `heat map`, `utilization` or `scatter`.

    >>> kind_of([Axis("e", ("chip.cores.0.ep",), ()), Axis("v", ("chip.cores.0.vp",), ())])
    'heat map'
    """
    keys = {axis.key for axis in axes}
    if {"ep", "vp"} <= keys:
        return "heat map"
    return "utilization" if "npe" in keys else "scatter"


def plot(store: Store, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the table of a sweep: a heat map for axes EP and VP, utilization for an axis NPE, else the Pareto front.

    A map has no place for points whose EP or VP is no number (`vp: null`, computed from the others); it says how many.

    With `path` the figure is saved as `.png`, `.svg` or `.pdf`, and its numbers as `.csv` beside it, each whole or not
    at all. `InputError` for another suffix, or if no point was simulated.
    """
    name = None if path is None else os.fspath(path)
    if name is not None:
        check_name(name, os.path.splitext(name)[0] + ".csv")
    derived = store.derived()
    axes = [Axis(each, paths, ()) for each, paths in store.axes() if each not in derived]
    names = columns(store)
    rows = [dict(zip(names, row, strict=True)) for row in table(store)]
    if not any(row["status"] == "done" for row in rows):
        raise InputError(Mistake(store.path, "nothing to draw: no point could be simulated"))
    kind = kind_of(axes)
    if kind == "heat map" and not any(row["status"] == "done" and _placed(row, axes) for row in rows):
        kind = "scatter"
    draw = {"heat map": _draw_heat_maps, "utilization": _draw_utilization, "scatter": _draw_scatter}[kind]
    with settings():
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        numbers = draw(figure, axes, rows)
        if name is not None:
            save(figure, name)
    if name is not None:
        with whole_file(os.path.splitext(name)[0] + ".csv") as file:
            CsvWriter(file).writerows(numbers)
    return figure


def _named(axes: Sequence[Axis], key: str) -> str:
    return next(axis.name for axis in axes if axis.key == key)


def _placed(row: Row, axes: Sequence[Axis]) -> bool:
    """Whether a map has a place for the row: nothing and text are no EP or VP that it could stand at."""
    return all(isinstance(row[_named(axes, key)], int | float) for key in ("ep", "vp"))


def _groups(rows: Sequence[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by the values of some axes, in the order in which they come."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def _title(names: Sequence[str], values: Sequence[Any]) -> str:
    return short(", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True)), 60)


def _draw_heat_maps(figure: Figure, axes: Sequence[Axis], rows: Sequence[Row]) -> list[list[Any]]:
    ep, vp = _named(axes, "ep"), _named(axes, "vp")
    others = [axis.name for axis in axes if axis.name not in (ep, vp)]
    left_out = sum(not _placed(row, axes) for row in rows)
    rows = [row for row in rows if _placed(row, axes)]
    panels = _groups(rows, others)
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
        panel.set_title(_title(others, values), fontsize=8, parse_math=False)
    for panel in grid[len(drawn) :]:
        panel.set_visible(False)
    more = f"; {len(panels) - len(drawn)} more maps are not drawn" if len(panels) > len(drawn) else ""
    if left_out:
        more += f"\n{left_out:,} points whose {ep} or {vp} is no number are not drawn"
    figure.suptitle(f"cycles (best cell outlined, infeasible hatched){more}", fontsize=9)
    return numbers


def _draw_heat_map(panel: Axes, rows: Sequence[Row], ep: str, vp: str) -> list[list[Any]]:
    """One map; its numbers as (ep, vp, status, cycles, best)."""
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
    npe = _named(axes, "npe")
    others = [axis.name for axis in axes if axis.name != npe]
    figure.set_size_inches(7, 4)
    panel = figure.subplots()
    numbers: list[list[Any]] = [[*others, "npe", "utilization"]]
    curves = _groups([row for row in rows if row["status"] == "done" and row[npe] is not None], others)
    for number, (values, members) in enumerate(curves.items()):
        members = sorted(members, key=lambda row: row[npe])
        numbers += [[*values, row[npe], row["utilization"]] for row in members]
        panel.plot(
            [row[npe] for row in members],
            [100 * row["utilization"] for row in members],
            color=job_style(number).fill,
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=4,
            linewidth=1.2,
        )
    panel.set_xscale("log", base=2)
    panel.set_ylim(0, 104)
    panel.set_xlabel("multipliers (NPE)")
    panel.set_ylabel("utilization (%)")
    _legend(figure, panel, [_title(others, values) for values in curves if others])
    return numbers


def _draw_scatter(figure: Figure, axes: Sequence[Axis], rows: Sequence[Row]) -> list[list[Any]]:
    work = [axis.name for axis in axes if axis.of_workload]
    figure.set_size_inches(7, 4.4)
    panel = figure.subplots()
    numbers: list[list[Any]] = [["point", *work, "pes_used", "makespan_cycles", "pareto", "knee"]]
    groups = _groups([row for row in rows if row["status"] == "done"], work)
    for number, members in enumerate(groups.values()):
        numbers += [[row["point"], *(row[each] for each in work), *_spot(row)] for row in members]
        colour, marker = job_style(number).fill, _MARKERS[number % len(_MARKERS)]
        front = sorted(
            (row for row in members if row["pareto"]), key=lambda row: (row["pes_used"], -row["makespan_cycles"])
        )
        panel.plot(*_places(members), color=colour, marker=marker, linestyle="", markersize=3.5, alpha=0.35)
        panel.plot(*_places(front), color=colour, marker=marker, linestyle="-", linewidth=0.8, markersize=5)
        for row in members:
            if row["knee"]:
                panel.plot(*_places([row]), marker="o", markersize=12, fillstyle="none", color="#D55E00", linestyle="")
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xlabel("PEs used (EP x VP, all cores)")
    panel.set_ylabel("cycles")
    panel.set_title("Pareto front joined, knee circled", fontsize=9)
    handles = [_title(work, values) for values in groups if work]
    _legend(figure, panel, handles, every=2)
    return numbers


def _spot(row: Row) -> list[Any]:
    return [row["pes_used"], row["makespan_cycles"], row["pareto"], row["knee"]]


def _places(rows: Sequence[Row]) -> tuple[list[int], list[int]]:
    return [row["pes_used"] for row in rows], [max(1, row["makespan_cycles"]) for row in rows]


def _legend(figure: Figure, panel: Axes, names: Sequence[str], every: int = 1) -> None:
    """Names of the first curves; `every`: lines that belong to a curve."""
    panel.grid(color="#DDDDDD", linewidth=0.5)
    panel.set_axisbelow(True)
    lines = [line for line in panel.get_lines() if line.get_fillstyle() != "none"]
    handles = lines[every - 1 :: every][: min(len(names), _MOST_NAMED)]
    if not handles:
        return
    legend = figure.legend(handles, ["-"] * len(handles), loc="outside right upper", frameon=False)
    for text, name in zip(legend.get_texts(), names, strict=False):
        text.set_parse_math(False)
        text.set_text(name)
