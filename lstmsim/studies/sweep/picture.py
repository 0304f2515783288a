"""Pictures of a sweep: heat maps of (EP, VP), utilization over multipliers, and fronts of two objectives."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import counted, listed
from lstmsim.report.figures_text import labelled
from lstmsim.report.pictures.figures import WIDE, Picture, drawn, job_style, letters, short, ticks, write_out
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.sweep.best import best_of, set_to
from lstmsim.studies.sweep.run import Merged, SweepResult
from lstmsim.studies.sweep.spec import Axis, Objective, default_objectives, described, drawn_pair, worth
from lstmsim.studies.sweep.spec import Axis as Varied
from lstmsim.studies.sweep.store import Store
from lstmsim.studies.sweep.table import (
    Row,
    about_of,
    chip_names,
    fits,
    fitting,
    grouped,
    judge,
    objectives_of,
    records,
    varied,
    work_of,
)

_MARKERS = "osD^vP*X"
_NO_MARKS: Mapping[str, Any] = MappingProxyType({})
#: What stands in a legend before words that mean no mark.
_NOTHING = Line2D([], [], linestyle="")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
#: More names than this cannot be distinguished by colour.
_MOST_NAMED = 8


def _curve_style(number: int) -> tuple[str, str, Any]:
    """Give colour, marker and line style of a curve: 64 differ in colour or marker, 32 in their lines alone."""
    again = number // len(_MARKERS)
    marker = _MARKERS[(number + again) % len(_MARKERS)]
    return job_style(number).fill, marker, _DASHES[again % len(_DASHES)]


def named(axes: Sequence[Varied], key: str) -> str:
    """Give the name of the axis that varies `key`."""
    return next(axis.name for axis in axes if axis.key == key)


def titled(names: Sequence[str], values: Sequence[Any]) -> str:
    """Write names and their values in a line that fits above a panel."""
    return short(", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True)), 60)


def legend(
    figure: Picture, panel: Axes, handles: Sequence[Line2D], names: Sequence[str], marks: Mapping[str, Any] = _NO_MARKS
) -> None:
    """Name the first curves of a panel, and say how many more there are; `marks`: what else it has, by its words."""
    panel.grid(color="#DDDDDD", linewidth=0.5)
    panel.set_axisbelow(True)
    shown, lines = list(names[:_MOST_NAMED]), list(handles[: min(len(names), _MOST_NAMED)])
    if len(names) > len(shown):
        lines.append(_NOTHING)
        shown.append(f"and {len(names) - len(shown):,} more (in the CSV)")
    figure.name([*lines, *marks.values()], [*shown, *marks], below=bool(marks), handlelength=3)


def _mark(**look: Any) -> Line2D:
    """What stands in a legend for marks of that look."""
    return Line2D([], [], **{"color": "#666666", "marker": "o", "linestyle": "", **look})


#: Most places of fronts that bear the number of their point.
_MOST_NUMBERED = 12
#: How points look that do not fit, of which it is not known, and that fit (or where there is no device). Of points at
#: one place the last is seen: whether one of them fits is what the picture is asked for.
_FILLS = {False: "none", None: "bottom", True: "full"}


def draw_front(
    figure: Picture, store: Store, rows: Sequence[Row], pair: Sequence[Objective], objectives: Sequence[Objective]
) -> list[list[Any]]:
    """Draw one or two objectives into the figure, and give the numbers of the picture, with names on top."""
    x, y = (pair[0].column if len(pair) > 1 else "point"), pair[-1].column
    judged, fit = judge(store, pair), fitting(store)
    work = work_of(store)
    done = [row for row in rows if row["status"] == "done"]
    shown = [row for row in done if worth(row[x]) == worth(row[x]) and worth(row[y]) == worth(row[y])]
    figure.fit(7, 4.4)
    panel = figure.subplots()
    drawn = [each.column for each in pair]
    numbers: list[list[Any]] = [["point", *work, *drawn, "front", "knee", "pareto"]]
    groups, handles = grouped(shown, work), []
    for number, members in enumerate(groups.values()):
        best = [row for row in members if row["point"] in judged.front]
        handles.append(_draw_group(panel, number, members, best, (x, y), pair, on_device=fit is not None))
        for row in members:
            flags = (int(row["point"] in judged.front), int(row["point"] in judged.knees))
            numbers.append([row["point"], *(row[each] for each in (*work, *drawn)), *flags, row["pareto"]])
            if row["point"] in judged.knees:
                panel.plot(*_places([row], x, y), marker="o", markersize=12, fillstyle="none", color="#D55E00")
    _label(panel, x, y, pair, shown)
    _number(panel, [row for row in shown if row["point"] in judged.front], x, y)
    scenario = about_of(store).scenario
    what = " and ".join(labelled(each.column) for each in pair[::-1])
    figure.head([f"{short(scenario, 40)}: {what}" if scenario else what], panel, 9)
    marks = _marks(pair, objectives, len(done) - len(shown), circled=bool(judged.knees))
    marks |= {fit.drawn("hollow", "half filled"): _mark(markerfacecolor="#FFFFFF")} if fit is not None else {}
    legend(figure, panel, handles, [titled(work, values) for values in groups if work], marks)
    return numbers


def _draw_group(
    panel: Axes,
    number: int,
    members: Sequence[Row],
    best: Sequence[Row],
    names: tuple[str, str],
    pair: Sequence[Objective],
    *,
    on_device: bool,
) -> Line2D:
    """Draw the points of one kind of work and join its front; give what stands for them in a legend."""
    colour, marker, dashes = _curve_style(number)
    on_front = {row["point"] for row in best}
    others = [row for row in members if row["point"] not in on_front]
    for some, size, strength in ((others, 3.5, 0.35), (best, 5.0, 1.0)):
        for order, (fit, fill) in enumerate(_FILLS.items()):
            own = [row for row in some if (fits(row) if on_device else True) is fit]
            look: Any = {"fillstyle": fill} if fit is not False else {"markerfacecolor": "#FFFFFF"}
            panel.plot(
                *_places(own, *names),
                color=colour,
                marker=marker,
                linestyle="",
                markersize=size,
                alpha=strength,
                zorder=2 + strength + order / 10,
                **look,
            )
    # A step, not a slope: between two points nothing is better than the cheaper point.
    step: Any = {"linestyle": dashes, "drawstyle": "steps-pre" if pair[0].maximise else "steps-post"}
    if len(pair) > 1:
        place = sorted(best, key=lambda row: (worth(row[names[0]]), worth(row[names[1]])))
        panel.plot(*_places(place, *names), color=colour, linewidth=0.8, **step)
    return Line2D([], [], color=colour, marker=marker, linewidth=0.8, linestyle=dashes if len(pair) > 1 else "")


def _places(rows: Sequence[Row], x: str, y: str) -> tuple[list[float], list[float]]:
    return [worth(row[x]) for row in rows], [worth(row[y]) for row in rows]


def _number(panel: Axes, rows: Sequence[Row], x: str, y: str) -> None:
    """Write the numbers of points next to them, if there are few; equal points bear that of one and how many.

    It is the first that fits; if none does, the first.
    """
    places = grouped([{**row, "x": worth(row[x]), "y": worth(row[y])} for row in rows], "xy")
    if len(places) > _MOST_NUMBERED:
        return
    for (at_x, at_y), here in places.items():
        shown = min(here, key=lambda row: fits(row) is not True)
        more = f" and {len(here) - 1} equal" if len(here) > 1 else ""
        panel.annotate(
            f"{shown['point']}{more}",
            (at_x, at_y),
            xytext=(6, 5),
            textcoords="offset points",
            fontsize=letters(7),
            color="#444444",
            parse_math=False,
        )


def _label(panel: Axes, x: str, y: str, pair: Sequence[Objective], rows: Sequence[Row]) -> None:
    """Names of the axes, which way is better, and logarithms where values lie far apart."""
    better = {each.column: "more" if each.maximise else "less" for each in pair}
    for name, label, scale in ((x, panel.set_xlabel, panel.set_xscale), (y, panel.set_ylabel, panel.set_yscale)):
        label(f"{labelled(name)}, {better[name]} is better" if name in better else name, parse_math=False)
        values = [worth(row[name]) for row in rows]
        if name in better and values and min(values) > 0 and max(values) >= WIDE * min(values):
            scale("log")
    if x == "point":
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    if panel.get_xscale() == "linear" and x != "point":
        panel.xaxis.set_major_locator(MaxNLocator(**ticks(panel)))
    write_out(panel.xaxis)
    write_out(panel.yaxis)


def _marks(
    pair: Sequence[Objective], objectives: Sequence[Objective], lacking: int, *, circled: bool
) -> dict[str, Any]:
    """What marks mean: which points are joined; and what is not drawn."""
    best = "no point beats these in both" if len(pair) > 1 else "the best points"
    marks: dict[str, Any] = {best: _mark(linestyle="-" if len(pair) > 1 else "", markersize=5)}
    marks["other points"] = _mark(alpha=0.35, markersize=3.5)
    if circled:
        marks["knee"] = _mark(color=_BEST, markersize=10, fillstyle="none")
    others = [each for each in objectives if each not in pair]
    if others:
        marks[f"the front of these two alone; not drawn: {described(others)}"] = _NOTHING
    if lacking:
        count = f"{counted(lacking, 'point')} without a number there {'is' if lacking == 1 else 'are'}"
        marks[f"{count} not drawn"] = _NOTHING
    return marks


#: More heat maps than this on one page cannot be read; the first ones are drawn.
MAX_PANELS = 12

_COLOURS = "cividis_r"
_CYCLES = "makespan_cycles"
_MOST_CELLS = 900
#: Inches of a map that its cells do not have, and the smallest letters of a number.
_BESIDE_INCHES, _LEAST_POINTS = 1.3, 4.0
_HATCHES = {"infeasible": "////", "failed": "xxxx"}
#: A line encloses cells with at most so many times the cycles of the best.
_NEAR = 1.05
_BEST, _BEST_OF_ALL = "#D55E00", "#CC0000"


def placed(row: Row, axes: Sequence[Axis]) -> bool:
    """Whether a map has a place for the row: it has none for an EP or VP that is nothing or text."""
    return all(isinstance(row[named(axes, key)], int | float) for key in ("ep", "vp"))


def draw_heat_maps(figure: Picture, store: Store, axes: Sequence[Axis], rows: Sequence[Row]) -> list[list[Any]]:
    """Draw the maps into the figure, and give the numbers of the picture, with names on top."""
    ep, vp = named(axes, "ep"), named(axes, "vp")
    others = [axis.name for axis in axes if axis.name not in (ep, vp)]
    left_out = sum(not placed(row, axes) for row in rows)
    rows = [row for row in rows if placed(row, axes)]
    least = _least(rows, work_of(store))
    panels = grouped(rows, others)
    drawn = _drawn(panels, least)
    # The same colours on all maps. A single value gets a span, or there would be no scale.
    cycles = [max(row[_CYCLES], 1) for _, members in drawn for row in members if row["status"] == "done"] or [1]
    norm = LogNorm(min(cycles), max(cycles) if max(cycles) > min(cycles) else 1.01 * min(cycles))
    grid = _grid(figure, len(drawn), [len({row[name] for row in rows}) for name in (ep, vp)])
    numbers: list[list[Any]] = [[*others, "ep", "vp", "status", _CYCLES, "best", "best_of_all"]]
    for panel, (values, members) in zip(grid, drawn, strict=False):
        numbers += [[*values, *line] for line in _draw_map(panel, members, (ep, vp), norm, least)]
        panel.set_title(titled(others, values), fontsize=letters(8), parse_math=False)
    bar = figure.colorbar(ScalarMappable(norm, _COLOURS), ax=list(grid[: len(drawn)]), label="cycles", pad=0.01)
    ticks = sorted({round(float(norm.inverse(part))) for part in np.linspace(0, 1, 6)})
    bar.set_ticks(ticks, labels=[f"{each:,}" for each in ticks])
    bar.ax.minorticks_off()
    figure.head(_map_title(store, axes, rows, least), size=9)
    marks = _map_marks(store, rows, len(panels))
    if len(panels) > len(drawn):
        marks[f"maps not drawn: {len(panels) - len(drawn):,}"] = _NOTHING
    if left_out:
        marks[f"{left_out:,} points whose {ep} or {vp} is no number are not drawn"] = _NOTHING
    figure.name([*marks.values()], [*marks], below=True)
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


def _grid(figure: Picture, count: int, cells: Sequence[int]) -> Any:
    """Axes for the maps, so large that the numbers of all cells can be read; those too many are hidden."""
    across = min(count, 1 if count == 1 or figure.look.width == "column" else 2 if count <= 4 else 3)
    down = -(-count // across)
    size = (min(12, across * (1.6 + 0.62 * cells[0]) + 1.0), min(24, down * (1.1 + 0.3 * cells[1]) + 0.4))
    figure.fit(max(size[0], 6.0), max(size[1], 3.0))
    grid = figure.subplots(down, across, squeeze=False).reshape(-1)
    for panel in grid[count:]:
        panel.set_visible(False)
    return grid


def _map_marks(store: Store, rows: Sequence[Row], maps: int) -> dict[str, Any]:
    """What frames, lines, hatches and brackets mean, and which points fit the device."""
    same, found = ", ".join(work_of(store)), {row["status"] for row in rows}
    framed: dict[str, Any] = {"facecolor": "none", "linewidth": 2}
    marks: dict[str, Any] = {"the best of a map": Patch(edgecolor=_BEST, **framed)} if maps > 1 else {}
    marks["the best of all" + f" with the same {same}" * bool(same)] = Patch(edgecolor=_BEST_OF_ALL, **framed)
    marks[f"at most {100 * _NEAR - 100:.0f} % more than the best of a map"] = Patch(edgecolor="#000000", **framed)
    for status in sorted(found - {"done"}):
        marks[status] = Patch(facecolor="#F4F4F4", edgecolor="#999999", hatch=_HATCHES.get(status, "////"))
    fit = fitting(store)
    return marks if fit is None else {**marks, fit.drawn("in brackets", "with a question mark"): _NOTHING}


def _map_title(store: Store, axes: Sequence[Axis], rows: Sequence[Row], least: Mapping[Any, float]) -> list[str]:
    """What is drawn, and which point is the best."""
    scenario = about_of(store).scenario
    lines = [f"{f'{short(scenario, 40)}: ' if scenario else ''}makespan (cycles)"]
    if not work_of(store):
        best = [row for row in rows if row["point"] in least]
        equal = f", and {len(best) - 1:,} equal" if len(best) > 1 else ""
        names = [axis.name for axis in axes]
        lines.append(short(f"best: {best[0][_CYCLES]:,} cycles with {set_to(best[0], names)}{equal}", 110))
        fitting_best = best_of([row for row in rows if row["status"] == "done" and fits(row)], [Objective(_CYCLES)])
        if fitting_best is not None and not any(map(fits, best)):
            text = f"best that fits: {fitting_best[_CYCLES]:,} cycles with {set_to(fitting_best, names)}"
            lines.append(short(text, 110))
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
    size, numbers = _number_size(panel, cycles), []
    for pair in sorted(cells, key=lambda each: at[each][::-1]):
        row, (x, y) = cells[pair], at[pair]
        flags = (row["status"] == "done" and row[_CYCLES] == best, row["point"] in least)
        numbers.append([*pair, row["status"], row[_CYCLES], *map(int, flags)])
        _draw_cell(panel, row, (x, y), norm, flags, size)
    _enclose(panel, cycles)
    panel.set_xticks(range(len(places[0])), [str(each) for each in places[0]])
    panel.set_yticks(range(len(places[1])), [str(each) for each in places[1]])
    panel.set_xlabel(labelled(names[0]), parse_math=False)
    panel.set_ylabel(labelled(names[1]), parse_math=False)
    return numbers


def _enclose(panel: Axes, cycles: NDArray[np.float64]) -> None:
    """Draw a line round the cells of a map that take few more cycles than its best one."""
    least = np.min(cycles, initial=np.inf, where=~np.isnan(cycles))
    near = np.pad(np.nan_to_num(cycles, nan=np.inf) <= min(_NEAR * least, 1e300), 1)
    # between two neighbours of which one is near
    below, left = np.nonzero(near[1:] != near[:-1]), np.nonzero(near[:, 1:] != near[:, :-1])
    lines = [[(x - 1.5, y - 0.5), (x - 0.5, y - 0.5)] for y, x in zip(*below, strict=True)]
    lines += [[(x - 0.5, y - 1.5), (x - 0.5, y - 0.5)] for y, x in zip(*left, strict=True)]
    # a white line below it: the darkest cells are nearly black
    for colour, width in (("#FFFFFF", 2.6), ("#000000", 1.2)):
        panel.add_collection(LineCollection(lines, colors=colour, linewidths=width, capstyle="projecting", zorder=2.5))


def _number_size(panel: Axes, cycles: NDArray[np.float64]) -> float:
    """The size of the numbers of cells; 0: there is no room for them."""
    figure, spec = panel.get_figure(), panel.get_subplotspec()
    assert isinstance(figure, Picture)
    assert spec is not None
    inches = figure.get_size_inches()[0] / spec.get_gridspec().ncols - _BESIDE_INCHES
    longest = len(f"{np.nanmax(cycles, initial=0):,.0f}")
    size = min(letters(6.5), 72 * inches / cycles.shape[1] / (0.55 * longest))
    return size if cycles.size <= _MOST_CELLS and size >= _LEAST_POINTS else 0.0


def _draw_cell(
    panel: Axes, row: Row, place: tuple[int, int], norm: LogNorm, flags: tuple[bool, bool], size: float
) -> None:
    """The number of a cell, or a hatch where there is none, and a frame round the best."""
    corner = (place[0] - 0.5, place[1] - 0.5)
    if row["status"] != "done":
        hatch = _HATCHES.get(row["status"], "////")
        panel.add_patch(Rectangle(corner, 1, 1, facecolor="#F4F4F4", edgecolor="#999999", hatch=hatch, linewidth=0))
        return
    if size:
        ink = "#FFFFFF" if norm(max(row[_CYCLES], 1)) > 0.5 else "#000000"
        # A question mark where there is a device and it is not known whether the chip fits it.
        doubt = "?" if fits(row) is None and {"fits", "chip_fits"} & set(row) else ""
        text = f"({row[_CYCLES]:,})" if fits(row) is False else f"{row[_CYCLES]:,}{doubt}"
        panel.text(*place, text, ha="center", va="center", fontsize=size, color=ink)
    if any(flags):
        colour, width = (_BEST_OF_ALL, 3.5) if flags[1] else (_BEST, 2)
        panel.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=colour, linewidth=width, zorder=3 + flags[1]))


#: What can be drawn: cycles over EP and VP, utilization over the multipliers, the front of two objectives.
KINDS = ("heatmap", "utilization", "pareto")

#: More curves than this cannot be distinguished by colour.
_MOST_CURVES = 8
#: Most sizes of arrays that are all written out below the curves; of more, powers of two are.
_MOST_SIZES = 12


def kind_of(axes: Sequence[Axis]) -> str:
    """Choose the picture that shows most of the axes of a sweep, one of `KINDS`."""
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
    look: Look = SCREEN,
) -> Picture:
    """Draw the table of a sweep; arguments and errors as of `lstmsim.plot_sweep`.

    A map shows no points whose EP or VP is no number (`vp: null`, computed from the others); it says how many.
    """
    with drawn(path, numbers=True, look=look) as figure:
        derived = store.derived()
        axes = [axis for axis in varied(store) if axis.name not in derived]
        pair = drawn_pair(objectives_of(store), objectives)
        rows = list(records(store))
        if not any(row["status"] == "done" for row in rows):
            raise InputError(Mistake(store.path, "nothing to draw: no point could be simulated"))
        chosen = _kind(store, axes, rows, kind, front_wanted=bool(objectives))
        if chosen == "pareto":
            figure.numbers = draw_front(figure, store, rows, pair, objectives_of(store))
        else:
            figure.numbers = (draw_heat_maps if chosen == "heatmap" else _draw_utilization)(figure, store, axes, rows)
    return figure


def plot_sweep(
    swept: SweepResult | Merged,
    path: str | os.PathLike[str] | None = None,
    *,
    kind: str | None = None,
    objectives: Sequence[str] = (),
    look: Look = SCREEN,
) -> Picture:
    """Draw the results of a sweep.

    swept: what `sweep` or `merge` gave.
    path: the picture's file, with its numbers beside it as .csv; None: no file.
    kind: `heatmap`, `utilization` or `pareto`; None: what the sweep varies decides.
    objectives: the two that are drawn.
    look: how wide it is, and what it is made for.

    >>> import tempfile
    >>> from lstmsim import plot_sweep, sweep
    >>> axes = {"ep": {"path": "chip.cores.0.ep", "values": [8, 16]}}
    >>> scenario = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]}
    >>> swept = sweep({"scenario": scenario, "axes": axes}, tempfile.mkdtemp(), jobs=1)
    >>> plot_sweep(swept).caption
    'scenario: mean latency (ms) and multipliers (NPE)'
    """
    with Store(swept.path, create=False) as store:
        return plot(store, path, kind=kind, objectives=objectives, look=look)


def check_kind(axes: Sequence[Axis], kind: str | None) -> None:
    """Raise `InputError` if the axes of a sweep do not allow that kind of picture."""
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
    if chosen == "heatmap" and not any(row["status"] == "done" and placed(row, axes) for row in rows):
        if wanted:
            raise InputError(Mistake(f"--plot-kind {wanted}", "no simulated point has numbers for both ep and vp"))
        return "pareto"
    return chosen


def _draw_utilization(figure: Picture, store: Store, axes: Sequence[Axis], rows: Sequence[Row]) -> list[list[Any]]:
    """Draw curves over the multipliers; where there are too many, each is the best over some of the axes."""
    npe = named(axes, "npe")
    others = [axis.name for axis in axes if axis.name != npe]
    done = [row for row in rows if row["status"] == "done" and row[npe] is not None]
    kept = _curve_axes(axes, done, work_of(store))
    figure.fit(7, 4)
    panel = figure.subplots()
    numbers: list[list[Any]] = [[*others, "npe", "utilization", "best"]]
    curves, handles = grouped(done, kept), []

    def shares(rows: Sequence[Row]) -> tuple[list[Any], list[float]]:
        return [row[npe] for row in rows], [100 * row["utilization"] for row in rows]

    for number, members in enumerate(curves.values()):
        colour, marker, dashes = _curve_style(number)
        best = [max(here, key=lambda row: row["utilization"]) for here in grouped(members, [npe]).values()]
        best.sort(key=lambda row: row[npe])
        look: Any = {"color": colour, "marker": marker, "markersize": 4}
        if len(best) < len(members):
            panel.plot(*shares(members), linestyle="", alpha=0.25, **look)
        handles += panel.plot(*shares(best), linestyle=dashes, linewidth=1.2, **look)
        on_line = {row["point"] for row in best}
        for row in sorted(members, key=lambda row: row[npe]):
            values = [row[name] for name in others]
            numbers.append([*values, row[npe], row["utilization"], int(row["point"] in on_line)])
    panel.set_xscale("log", base=2)
    sizes = sorted({row[npe] for row in done})
    if len(sizes) <= _MOST_SIZES:
        panel.set_xticks(sizes)
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    panel.minorticks_off()
    panel.set_ylim(0, 104)
    panel.set_xlabel("multipliers (NPE)")
    panel.set_ylabel("utilization (%)")
    joined = [name for name in others if name not in kept]
    scenario, fit = about_of(store).scenario, fitting(store)
    figure.head(
        [f"{short(scenario, 40)}: utilization of each size" if scenario else "utilization of each size"], panel, 9
    )
    marks = {f"the best of all {listed(joined, 'and')}": _mark(linestyle="-")} if joined else {}
    marks |= {"other points": _mark(alpha=0.25)} if joined else {}
    marks |= {fit.text: _NOTHING} if fit is not None else {}
    legend(figure, panel, handles, [titled(kept, values) for values in curves if kept], marks)
    return numbers


def _curve_axes(axes: Sequence[Axis], rows: Sequence[Row], work: Sequence[str]) -> list[str]:
    """The axes whose values have a curve each: all if these are few curves, always those of the work.

    EP and VP are the first to be taken together: what is asked is how well an array of some size can be used.
    """
    kept = [axis for axis in axes if axis.key != "npe"]
    free = [axis for axis in kept if axis.name not in work]
    shape = [axis for axis in free if axis.key in ("ep", "vp")]
    for some in (shape, *([axis] for axis in reversed(free) if axis not in shape)):
        if len(grouped(rows, [axis.name for axis in kept])) > _MOST_CURVES:
            kept = [axis for axis in kept if axis not in some]
    return [axis.name for axis in kept]
