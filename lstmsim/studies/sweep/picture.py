"""Pictures of a sweep: a heat map of EP and VP, utilization against the array's size, or two objectives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from lstmsim.base.csv_table import CsvWriter
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import whole_file
from lstmsim.base.wording import listed
from lstmsim.report.pictures.figures import Picture, check_name, save, settings
from lstmsim.report.pictures.styles import short
from lstmsim.studies.sweep.about import about_of, fitting
from lstmsim.studies.sweep.export import chip_names, columns, objectives_of, table, varied, work_of
from lstmsim.studies.sweep.objectives import default_objectives, drawn_pair
from lstmsim.studies.sweep.picture_fronts import draw_front
from lstmsim.studies.sweep.picture_heat_maps import draw_heat_maps, placed
from lstmsim.studies.sweep.picture_points import Row, curve_look, grouped, legend, named, titled
from lstmsim.studies.sweep.spec import Axis
from lstmsim.studies.sweep.store import Store

__all__ = ["KINDS", "check_kind", "kind_of", "plot"]

#: What can be drawn: cycles over EP and VP, utilization over the multipliers, the front of two objectives.
KINDS = ("heatmap", "utilization", "pareto")

#: More curves than this nobody can tell apart by colour.
_MOST_CURVES = 8
#: Most sizes of arrays that are all written out below the curves; of more, powers of two are.
_MOST_SIZES = 12


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
            numbers = (draw_heat_maps if chosen == "heatmap" else _draw_utilization)(figure, store, axes, rows)
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
    lstmsim.InputError: --plot-kind utilization: needs an axis for npe; this sweep varies h
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
    if chosen == "heatmap" and not any(row["status"] == "done" and placed(row, axes) for row in rows):
        if wanted:
            raise InputError(Mistake(f"--plot-kind {wanted}", "no simulated point has numbers for both ep and vp"))
        return "pareto"
    return chosen


def _draw_utilization(figure: Figure, store: Store, axes: Sequence[Axis], rows: Sequence[Row]) -> list[list[Any]]:
    """Draw curves over the multipliers; where there are too many, each is the best over some of the axes."""
    npe = named(axes, "npe")
    others = [axis.name for axis in axes if axis.name != npe]
    done = [row for row in rows if row["status"] == "done" and row[npe] is not None]
    kept = _told_apart(axes, done, work_of(store))
    figure.set_size_inches(7, 4)
    panel = figure.subplots()
    numbers: list[list[Any]] = [[*others, "npe", "utilization", "best"]]
    curves, handles = grouped(done, kept), []
    for number, members in enumerate(curves.values()):
        colour, marker, dashes = curve_look(number)
        best = [max(here, key=lambda row: row["utilization"]) for here in grouped(members, [npe]).values()]
        best.sort(key=lambda row: row[npe])
        look: Any = {"color": colour, "marker": marker, "markersize": 4}
        if len(best) < len(members):
            panel.plot(*_shares(members, npe), linestyle="", alpha=0.25, **look)
        handles += panel.plot(*_shares(best, npe), linestyle=dashes, linewidth=1.2, **look)
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
    scenario, counted = about_of(store).scenario, fitting(store)
    lines = [f"{short(scenario, 40)}: utilization of each size" if scenario else "utilization of each size"]
    lines += [f"lines: the best of all {listed(joined, 'and')}; pale: the other points"] if joined else []
    lines += [counted.text] if counted is not None else []
    panel.set_title("\n".join(lines), fontsize=9, parse_math=False)
    legend(figure, panel, handles, [titled(kept, values) for values in curves if kept])
    return numbers


def _shares(rows: Sequence[Row], npe: str) -> tuple[list[Any], list[float]]:
    return [row[npe] for row in rows], [100 * row["utilization"] for row in rows]


def _told_apart(axes: Sequence[Axis], rows: Sequence[Row], work: Sequence[str]) -> list[str]:
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
