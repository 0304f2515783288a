"""Maps of cycles over EP and VP: one for each combination of the other axes, all in the same colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lstmsim.report.pictures.styles import short
from lstmsim.studies.sweep.about import about_of, fits, fitting
from lstmsim.studies.sweep.export import work_of
from lstmsim.studies.sweep.front_text import best_of, set_to
from lstmsim.studies.sweep.objectives import Objective
from lstmsim.studies.sweep.picture_points import Row, grouped, named, titled
from lstmsim.studies.sweep.spec import Axis
from lstmsim.studies.sweep.store import Store

__all__ = ["MAX_PANELS", "draw_heat_maps", "placed"]

#: More heat maps than this on one page cannot be read; the first ones are drawn.
MAX_PANELS = 12

_COLOURS = "cividis_r"
_CYCLES = "makespan_cycles"
_MOST_CELLS = 900
_HATCHES = {"infeasible": "////", "failed": "xxxx"}
_BEST, _BEST_OF_ALL = "#D55E00", "#CC0000"


def placed(row: Row, axes: Sequence[Axis]) -> bool:
    """Whether a map has a place for the row: it has none for an EP or VP that is nothing or text."""
    return all(isinstance(row[named(axes, key)], int | float) for key in ("ep", "vp"))


def draw_heat_maps(figure: Figure, store: Store, axes: Sequence[Axis], rows: Sequence[Row]) -> list[list[Any]]:
    """Draw the maps into the figure, and give the numbers of the picture, with names on top.

    store: the sweep's file.
    axes: what the sweep varies.
    rows: its table; at least one of them was simulated and has a place.
    """
    ep, vp = named(axes, "ep"), named(axes, "vp")
    others = [axis.name for axis in axes if axis.name not in (ep, vp)]
    left_out = sum(not placed(row, axes) for row in rows)
    rows = [row for row in rows if placed(row, axes)]
    least = _least(rows, work_of(store))
    panels = grouped(rows, others)
    drawn = _drawn(panels, least)
    norm = _norm([row for _, members in drawn for row in members])
    grid = _grid(figure, len(drawn), [len({row[name] for row in rows}) for name in (ep, vp)])
    numbers: list[list[Any]] = [[*others, "ep", "vp", "status", _CYCLES, "best", "best_of_all"]]
    for panel, (values, members) in zip(grid, drawn, strict=False):
        numbers += [[*values, *line] for line in _draw_map(panel, members, (ep, vp), norm, least)]
        panel.set_title(titled(others, values), fontsize=8, parse_math=False)
    bar = figure.colorbar(ScalarMappable(norm, _COLOURS), ax=list(grid[: len(drawn)]), label="cycles", pad=0.01)
    ticks = sorted({round(float(norm.inverse(part))) for part in np.linspace(0, 1, 6)})
    bar.set_ticks(ticks, labels=[f"{each:,}" for each in ticks])
    bar.ax.minorticks_off()
    lines = _title(store, axes, rows, least, len(panels))
    if len(panels) > len(drawn):
        lines.append(f"maps not drawn: {len(panels) - len(drawn):,}")
    if left_out:
        lines.append(f"{left_out:,} points whose {ep} or {vp} is no number are not drawn")
    figure.suptitle("\n".join(lines), fontsize=9, parse_math=False)
    return numbers


def _least(rows: Sequence[Row], work: Sequence[str]) -> Mapping[Any, float]:
    """The least cycles of all that do the same work, by the number of each point that has them."""
    least: dict[Any, float] = {}
    for members in grouped([row for row in rows if row["status"] == "done"], work).values():
        best = min(row[_CYCLES] for row in members)
        least |= {row["point"]: best for row in members if row[_CYCLES] == best}
    return least


def _drawn(
    panels: Mapping[tuple[Any, ...], list[Row]], least: Mapping[Any, float]
) -> list[tuple[tuple[Any, ...], list[Row]]]:
    """The maps to draw: the first ones, and where there are too many, one with a best point in place of the last."""
    every = list(panels.items())
    shown = every[:MAX_PANELS]
    if not any(row["point"] in least for _, members in shown for row in members):
        best = next(each for each in every if any(row["point"] in least for row in each[1]))
        shown = [*shown[:-1], best]
    return shown


def _norm(rows: Sequence[Row]) -> LogNorm:
    """The colours of cycles, the same on all maps. A single value gets a span, or there would be no scale."""
    cycles = [max(row[_CYCLES], 1) for row in rows if row["status"] == "done"] or [1]
    low, high = min(cycles), max(cycles)
    return LogNorm(low, high if high > low else low * 1.01)


def _grid(figure: Figure, count: int, cells: Sequence[int]) -> Any:
    """Axes for the maps, so large that the numbers of all cells can be read; those too many are hidden."""
    across = min(count, 1 if count == 1 else 2 if count <= 4 else 3)
    down = -(-count // across)
    size = (min(20, across * (1.6 + 0.62 * cells[0]) + 1.0), min(24, down * (1.1 + 0.3 * cells[1]) + 0.4))
    figure.set_size_inches(max(size[0], 6.0), max(size[1], 3.0))
    grid = figure.subplots(down, across, squeeze=False).reshape(-1)
    for panel in grid[count:]:
        panel.set_visible(False)
    return grid


def _title(store: Store, axes: Sequence[Axis], rows: Sequence[Row], least: Mapping[Any, float], maps: int) -> list[str]:
    """What is drawn, which point is the best, and which points fit the device."""
    scenario, counted, work = about_of(store).scenario, fitting(store), work_of(store)
    marks = "red: the best of all" if maps == 1 else "orange: the best of a map; red: of all"
    marks += f" with the same {', '.join(work)}" if work else ""
    hatched = "; hatched: infeasible" + "; crossed: failed" * any(row["status"] == "failed" for row in rows)
    lines = [f"{f'{short(scenario, 40)}: ' if scenario else ''}cycles ({marks}{hatched})"]
    if not work:
        best = [row for row in rows if row["point"] in least]
        equal = f", and {len(best) - 1:,} equal" if len(best) > 1 else ""
        names = [axis.name for axis in axes]
        lines.append(short(f"best: {best[0][_CYCLES]:,} cycles with {set_to(best[0], names)}{equal}", 110))
        fitting_best = best_of([row for row in rows if row["status"] == "done" and fits(row)], [Objective(_CYCLES)])
        if fitting_best is not None and not any(map(fits, best)):
            text = f"best that fits: {fitting_best[_CYCLES]:,} cycles with {set_to(fitting_best, names)}"
            lines.append(short(text, 110))
    if counted is not None:
        lines.append(counted.drawn("in brackets", "with a question mark"))
    return lines


def _draw_map(
    panel: Axes, rows: Sequence[Row], names: tuple[str, str], norm: LogNorm, least: Mapping[Any, float]
) -> list[list[Any]]:
    """Draw one map; its numbers as (ep, vp, status, cycles, best of the map, best of all)."""
    cells = {(row[names[0]], row[names[1]]): row for row in rows}
    places = [sorted({pair[at] for pair in cells}) for at in (0, 1)]
    cycles = np.full((len(places[1]), len(places[0])), np.nan)
    at = {pair: (places[0].index(pair[0]), places[1].index(pair[1])) for pair in cells}
    for pair, row in cells.items():
        if row["status"] == "done":
            cycles[at[pair][1], at[pair][0]] = max(row[_CYCLES], 1)
    panel.imshow(np.ma.masked_invalid(cycles), norm=norm, cmap=_COLOURS, origin="lower", aspect="auto")
    best = min((row[_CYCLES] for row in rows if row["status"] == "done"), default=None)
    numbers: list[list[Any]] = []
    for pair in sorted(cells, key=lambda each: at[each][::-1]):
        row, (x, y) = cells[pair], at[pair]
        flags = (row["status"] == "done" and row[_CYCLES] == best, row["point"] in least)
        numbers.append([*pair, row["status"], row[_CYCLES], *map(int, flags)])
        _draw_cell(panel, row, (x, y), norm, flags, numbered=cycles.size <= _MOST_CELLS)
    panel.set_xticks(range(len(places[0])), [str(each) for each in places[0]])
    panel.set_yticks(range(len(places[1])), [str(each) for each in places[1]])
    panel.set_xlabel(names[0], parse_math=False)
    panel.set_ylabel(names[1], parse_math=False)
    return numbers


def _draw_cell(
    panel: Axes, row: Row, place: tuple[int, int], norm: LogNorm, flags: tuple[bool, bool], *, numbered: bool
) -> None:
    """The number of a cell, or a hatch where there is none, and a frame round the best.

    flags: whether it is the best of its map, and of all.
    """
    corner = (place[0] - 0.5, place[1] - 0.5)
    if row["status"] != "done":
        hatch = _HATCHES.get(row["status"], "////")
        panel.add_patch(Rectangle(corner, 1, 1, facecolor="#F4F4F4", edgecolor="#999999", hatch=hatch, linewidth=0))
        return
    if numbered:
        ink = "#FFFFFF" if norm(max(row[_CYCLES], 1)) > 0.5 else "#000000"
        text = f"({row[_CYCLES]:,})" if fits(row) is False else f"{row[_CYCLES]:,}{_doubt(row)}"
        panel.text(*place, text, ha="center", va="center", fontsize=6.5, color=ink)
    if any(flags):
        colour, width = (_BEST_OF_ALL, 3.5) if flags[1] else (_BEST, 2)
        panel.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=colour, linewidth=width, zorder=3 + flags[1]))


def _doubt(row: Row) -> str:
    """A question mark where there is a device and nobody can tell whether the chip fits it."""
    return "?" if fits(row) is None and {"fits", "chip_fits"} & set(row) else ""
