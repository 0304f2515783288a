"""The front of two objectives of a sweep: points that no other point beats are joined, all other points are pale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lstmsim.plots.points import Row, curve_look, grouped, legend, titled
from lstmsim.sweeps.costs import PREFIX
from lstmsim.sweeps.export import judge, work_of
from lstmsim.sweeps.objectives import Objective, described, worth
from lstmsim.sweeps.store import Store

__all__ = ["draw_front"]

#: From this ratio of the largest to the smallest value on, an axis is logarithmic.
_WIDE = 8


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
    judged = judge(store, pair)
    work = work_of(store)
    done = [row for row in rows if row["status"] == "done"]
    shown = [row for row in done if worth(row[x]) == worth(row[x]) and worth(row[y]) == worth(row[y])]
    figure.set_size_inches(7, 4.4)
    panel = figure.subplots()
    drawn = [each.column for each in pair]
    numbers: list[list[Any]] = [["point", *work, *drawn, "front", "knee", "pareto"]]
    groups = grouped(shown, work)
    for number, members in enumerate(groups.values()):
        colour, marker, dashes = curve_look(number)
        best = sorted((row for row in members if row["point"] in judged.front), key=lambda row: _place(row, x, y))
        panel.plot(*_places(members, x, y), color=colour, marker=marker, linestyle="", markersize=3.5, alpha=0.3)
        # A step, not a slope: between two points nothing is better than the cheaper point.
        step = {"linestyle": dashes, "drawstyle": "steps-pre" if pair[0].maximise else "steps-post"}
        look: Any = step if len(pair) > 1 else {"linestyle": ""}
        panel.plot(*_places(best, x, y), color=colour, marker=marker, linewidth=0.8, markersize=5, **look)
        too_large = [row for row in best if _too_large(row)]
        panel.scatter(*_places(too_large, x, y), marker=marker, facecolor="#FFFFFF", edgecolor=colour, s=25, zorder=3)
        for row in members:
            flags = (int(row["point"] in judged.front), int(row["point"] in judged.knees))
            numbers.append([row["point"], *(row[each] for each in (*work, *drawn)), *flags, row["pareto"]])
            if row["point"] in judged.knees:
                panel.plot(*_places([row], x, y), marker="o", markersize=12, fillstyle="none", color="#D55E00")
    _label(panel, x, y, pair, shown)
    lines = _title(pair, objectives, len(done) - len(shown), circled=bool(judged.knees))
    if any(_too_large(row) for row in shown if row["point"] in judged.front):
        lines.append("hollow: does not fit the device")
    panel.set_title("\n".join(lines), fontsize=9, parse_math=False)
    legend(figure, panel, [titled(work, values) for values in groups if work], every=2)
    return numbers


def _too_large(row: Row) -> bool:
    """Whether the chip of a point is known not to fit the sweep's device."""
    return any(row.get(name) == "false" for name in ("fits", f"{PREFIX}fits"))


def _place(row: Row, x: str, y: str) -> tuple[float, float]:
    return worth(row[x]), worth(row[y])


def _places(rows: Sequence[Row], x: str, y: str) -> tuple[list[float], list[float]]:
    return [worth(row[x]) for row in rows], [worth(row[y]) for row in rows]


def _label(panel: Axes, x: str, y: str, pair: Sequence[Objective], rows: Sequence[Row]) -> None:
    """Names of the axes, which way is better, and logarithms where values lie far apart."""
    better = {each.column: "more" if each.maximise else "less" for each in pair}
    for name, label, scale in ((x, panel.set_xlabel, panel.set_xscale), (y, panel.set_ylabel, panel.set_yscale)):
        label(f"{name} ({better[name]} is better)" if name in better else name, parse_math=False)
        values = [worth(row[name]) for row in rows]
        if name in better and values and min(values) > 0 and max(values) >= _WIDE * min(values):
            scale("log")


def _title(pair: Sequence[Objective], objectives: Sequence[Objective], lacking: int, *, circled: bool) -> list[str]:
    """Lines that say which points are joined, and what is not drawn."""
    joined = "points that none beats joined" if len(pair) > 1 else "best points filled"
    joined += ", knee circled" if circled else ""
    lines = [f"{described(pair[::-1])}: {joined}"]
    others = [each for each in objectives if each not in pair]
    if others:
        lines.append(f"the front of these two alone; not drawn: {described(others)}")
    if lacking:
        count = (
            "1 point without a number there is" if lacking == 1 else f"{lacking:,} points without a number there are"
        )
        lines.append(f"{count} not drawn")
    return lines
