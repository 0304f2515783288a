"""The front of two objectives of a sweep: points that no other point beats are joined, all other points are pale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from lstmsim.report.pictures.styles import short
from lstmsim.studies.sweep.about import about_of, fits, fitting
from lstmsim.studies.sweep.export import judge, work_of
from lstmsim.studies.sweep.objectives import Objective, described, worth
from lstmsim.studies.sweep.picture_points import Row, curve_look, grouped, legend, titled, write_out
from lstmsim.studies.sweep.store import Store

__all__ = ["draw_front"]

#: From this ratio of the largest to the smallest value on, an axis is logarithmic.
_WIDE = 8
#: Most places of fronts that bear the number of their point.
_MOST_NUMBERED = 12
#: How points look that do not fit, of which nobody can tell, and that fit (or where there is no device). Of points at
#: one place the last is seen: whether one of them fits is what the picture is asked for.
_FILLS = {False: "none", None: "bottom", True: "full"}


def draw_front(
    figure: Figure, store: Store, rows: Sequence[Row], pair: Sequence[Objective], objectives: Sequence[Objective]
) -> list[list[Any]]:
    """Draw one or two objectives into the figure, and give the numbers of the picture, with names on top.

    store: the sweep's file.
    rows: its table.
    pair: the objectives on the axes (x, y); of a single one, x is the number of the point.
    objectives: all that the sweep is judged by.
    """
    x, y = (pair[0].column if len(pair) > 1 else "point"), pair[-1].column
    judged, counted = judge(store, pair), fitting(store)
    work = work_of(store)
    done = [row for row in rows if row["status"] == "done"]
    shown = [row for row in done if worth(row[x]) == worth(row[x]) and worth(row[y]) == worth(row[y])]
    figure.set_size_inches(7, 4.4)
    panel = figure.subplots()
    drawn = [each.column for each in pair]
    numbers: list[list[Any]] = [["point", *work, *drawn, "front", "knee", "pareto"]]
    groups, handles = grouped(shown, work), []
    for number, members in enumerate(groups.values()):
        best = [row for row in members if row["point"] in judged.front]
        handles.append(_draw_group(panel, number, members, best, (x, y), pair, on_device=counted is not None))
        for row in members:
            flags = (int(row["point"] in judged.front), int(row["point"] in judged.knees))
            numbers.append([row["point"], *(row[each] for each in (*work, *drawn)), *flags, row["pareto"]])
            if row["point"] in judged.knees:
                panel.plot(*_places([row], x, y), marker="o", markersize=12, fillstyle="none", color="#D55E00")
    _label(panel, x, y, pair, shown)
    _number(panel, [row for row in shown if row["point"] in judged.front], x, y)
    lines = _title(pair, objectives, len(done) - len(shown), circled=bool(judged.knees))
    scenario = about_of(store).scenario
    lines[0] = f"{short(scenario, 40)}: {lines[0]}" if scenario else lines[0]
    lines += [counted.drawn("hollow", "half filled")] if counted is not None else []
    panel.set_title("\n".join(lines), fontsize=9, parse_math=False)
    legend(figure, panel, handles, [titled(work, values) for values in groups if work])
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
    colour, marker, dashes = curve_look(number)
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
    """Write the numbers of points beside them, if there are few; equal points bear that of one and how many.

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
            fontsize=7,
            color="#444444",
            parse_math=False,
        )


def _label(panel: Axes, x: str, y: str, pair: Sequence[Objective], rows: Sequence[Row]) -> None:
    """Names of the axes, which way is better, and logarithms where values lie far apart."""
    better = {each.column: "more" if each.maximise else "less" for each in pair}
    for name, label, scale in ((x, panel.set_xlabel, panel.set_xscale), (y, panel.set_ylabel, panel.set_yscale)):
        label(f"{name} ({better[name]} is better)" if name in better else name, parse_math=False)
        values = [worth(row[name]) for row in rows]
        if name in better and values and min(values) > 0 and max(values) >= _WIDE * min(values):
            scale("log")
    if x == "point":
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    write_out(panel.xaxis)
    write_out(panel.yaxis)


def _title(pair: Sequence[Objective], objectives: Sequence[Objective], lacking: int, *, circled: bool) -> list[str]:
    """Lines that say which points are joined, and what is not drawn."""
    joined = "points that none beats joined" if len(pair) > 1 else "best points large"
    joined += ", knee circled" if circled else ""
    lines = [described(pair[::-1]), joined]
    others = [each for each in objectives if each not in pair]
    if others:
        lines.append(f"the front of these two alone; not drawn: {described(others)}")
    if lacking:
        count = (
            "1 point without a number there is" if lacking == 1 else f"{lacking:,} points without a number there are"
        )
        lines.append(f"{count} not drawn")
    return lines
