"""Load-latency curves: a percentile against offered load, the distribution at one load, and what ends in time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import log10
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from lstmsim.errors import InputError, Mistake
from lstmsim.plots.figures import check_name, save, settings
from lstmsim.plots.styles import job_style, short
from lstmsim.serving.load_latency import CDF, Estimate, LoadLatency, Machine, Point

__all__ = ["plot"]

#: Colours of `job_style` in an order in which lines on white are told apart.
_ORDER = (0, 2, 5, 6, 1, 4, 7, 3)
_MARKERS = "osD^vP*X"
_GRID = "#DDDDDD"
_DARK = "#333333"
_GREY = "#777777"
#: Bars of intervals stand so far apart, as a share of the range of loads.
_ASIDE = 0.005
#: Labels at the ends of curves lie at least so far apart, as a share of the panel's height.
_APART = 0.055


def plot(
    found: LoadLatency,
    path: str | os.PathLike[str] | None = None,
    *,
    percentile: float = 99.0,
    cdf_at: float | None = None,
) -> Figure:
    """Draw a curve for each machine: the percentile of latency with its 95 % intervals and the mean (dotted) against
    load; the distribution at load `cdf_at` (the highest at which all are stable unless given); and requests in time.

    Points with too few requests for an interval are hollow; unstable ones are crosses at the upper edge, without a
    number. With `path` the figure is saved as `.png`, `.svg` or `.pdf`. `InputError` for another suffix, and for a load
    or a percentile that is not among the points.
    """
    name = None if path is None else os.fspath(path)
    if name is not None:
        check_name(name)
    at = _cdf_load(found) if cdf_at is None else cdf_at
    if cdf_at is not None and all(point.load != cdf_at for point in found.points):
        raise InputError(Mistake(f"load {cdf_at:g}", "is none of the loads of these curves"))
    if percentile not in CDF:
        raise InputError(Mistake(f"percentile {percentile:g}", f"must be one of {', '.join(f'{p:g}' for p in CDF)}"))
    with settings():
        figure = Figure(figsize=(10, 5.2), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(2, 2, width_ratios=(3, 2))
        main, upper, lower = (figure.add_subplot(part) for part in (grid[:, 0], grid[0, 1], grid[1, 1]))
        _draw_curves(main, found, percentile)
        _draw_cdf(upper, found, at)
        _draw_in_time(lower, found)
        if name is not None:
            save(figure, name)
    return figure


def _looks(found: LoadLatency, machine: Machine) -> dict[str, Any]:
    place = found.machines.index(machine)
    return {"color": job_style(_ORDER[place % len(_ORDER)]).fill, "marker": _MARKERS[place % len(_MARKERS)]}


def _cdf_load(found: LoadLatency) -> float | None:
    """The highest load at which every machine has a distribution; None if there is none."""
    loads = {point.load for point in found.points}
    loads -= {point.load for point in found.points if not point.measured.percentiles}
    return max(loads, default=None)


def _draw_curves(panel: Axes, found: LoadLatency, percentile: float) -> None:
    ends: list[tuple[float, float, str, str]] = []
    span = max(point.load for point in found.points) - min(point.load for point in found.points)
    for machine in found.machines:
        looks, points = _looks(found, machine), found.of(machine)
        known = [point for point in points if percentile in point.measured.percentiles]
        values = [point.measured.percentiles[percentile] for point in known]
        loads, heights = [point.load for point in known], [each.value_ms for each in values]
        means = [point.measured.mean.value_ms for point in known if point.measured.mean is not None]
        colour = looks["color"]
        panel.plot(loads, means, color=colour, linestyle=(0, (1, 1.6)), linewidth=1.0)
        panel.plot(loads, heights, color=colour, linewidth=1.4)
        aside = found.machines.index(machine) - (len(found.machines) - 1) / 2
        _draw_points(panel, loads, values, looks, aside * span * _ASIDE)
        if known:
            ends.append((loads[-1], heights[-1], machine.label, colour))
    panel.set_yscale("log")
    _plain_log(panel)
    panel.set_xlabel("offered load (1: all that the machine can do)")
    panel.set_ylabel("latency (ms)")
    estimates = [each.measured.percentiles[percentile] for each in found.points if each.measured.percentiles]
    few = any(each.half_width_ms is None for each in estimates)
    hollow = "; hollow: too few requests for an interval" if few else ""
    panel.set_title(f"p{percentile:g} with 95 % intervals, mean dotted{hollow}", fontsize=9, loc="left")
    panel.grid(color=_GRID, linewidth=0.5)
    panel.set_axisbelow(True)
    _draw_unstable(panel, found)
    _draw_labels(panel, ends if len(found.machines) > 1 else [])


def _draw_labels(panel: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """The names of the curves beside their ends, pushed apart where these lie together, with a line to each."""
    low, high = panel.get_ylim()
    right = panel.get_xlim()[1]
    places = sorted((log10(height / low) / log10(high / low), *rest) for rest in ends for height in rest[1:2])
    before = -_APART
    for at, (place, load, height, label, colour) in enumerate(places):
        # Those that are still to come need room above.
        place = max(before + _APART, min(place, 1 - _APART * (len(places) - 1 - at)))
        before = place
        panel.annotate(
            short(label, 30),
            (load, height),
            (1.015, place),
            textcoords="axes fraction",
            va="center",
            color=colour,
            fontweight="bold",
            parse_math=False,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.6, "shrinkA": 1, "shrinkB": 4}
            if load < right
            else None,
        )


def _draw_points(
    panel: Axes, loads: Sequence[float], values: Sequence[Estimate], looks: dict[str, Any], aside: float
) -> None:
    """Marks with bars, which stand beside each other; hollow marks without where no interval is known."""
    for load, each in zip(loads, values, strict=True):
        colour, marker, half = looks["color"], looks["marker"], each.half_width_ms
        if half is not None:
            low = max(each.value_ms - half, each.value_ms / 100)
            panel.plot(
                [load + aside] * 2, [low, each.value_ms + half], color=colour, linewidth=2.2, alpha=0.45, zorder=2
            )
        face = "white" if half is None else colour
        panel.plot([load], [each.value_ms], marker, markersize=4.5, color=colour, markerfacecolor=face, zorder=3)


def _draw_unstable(panel: Axes, found: LoadLatency) -> None:
    """Crosses at the upper edge, machines one below the other."""
    seen: dict[float, int] = {}
    for point in found.points:
        if point.measured.verdict != "unstable":
            continue
        row = seen.get(point.load, 0)
        seen[point.load] = row + 1
        colour = _looks(found, point.machine)["color"]
        height = 0.985 - 0.028 * row
        panel.plot(
            [point.load],
            [height],
            marker="x",
            markersize=5,
            color=colour,
            transform=panel.get_xaxis_transform(),
            clip_on=False,
        )
    if seen:
        low, high = panel.get_ylim()
        # Room for the crosses above the curves.
        panel.set_ylim(low, high * (high / low) ** (0.06 + 0.03 * max(seen.values())))
        upper = panel.get_xaxis_transform()
        panel.text(min(seen), 1.0, "unstable ", ha="right", va="top", fontsize=7.5, color=_GREY, transform=upper)


def _draw_cdf(panel: Axes, found: LoadLatency, load: float | None) -> None:
    """How many requests take at most so long, at one load."""
    drawn = False
    for machine in found.machines:
        for point in found.of(machine):
            if point.load == load and point.measured.percentiles:
                percents = sorted(point.measured.percentiles)
                values = [point.measured.percentiles[each].value_ms for each in percents]
                panel.plot(values, percents, color=_looks(found, machine)["color"], linewidth=1.4)
                drawn = True
    panel.set_ylabel("requests (%)")
    panel.set_ylim(0, 100)
    panel.set_yticks((0, 25, 50, 75, 100))
    panel.set_xlabel("latency (ms)")
    panel.grid(color=_GRID, linewidth=0.5)
    panel.set_axisbelow(True)
    if not drawn:
        text = "unstable at every load" if load is None else "unstable at this load"
        panel.text(0.5, 0.5, text, ha="center", transform=panel.transAxes, color=_GREY)
        return
    panel.set_xscale("log")
    _plain_log(panel, along="x")
    panel.set_title(f"distribution at load {load:g}", fontsize=9, loc="left")


def _draw_in_time(panel: Axes, found: LoadLatency) -> None:
    """The share of requests in time where there are deadlines; requests done per second otherwise."""
    for machine in found.machines:
        points = found.of(machine)
        looks = _looks(found, machine)
        values = [_goodput(found, point) for point in points]
        known = [(point.load, value) for point, value in zip(points, values, strict=True) if value is not None]
        panel.plot([load for load, _ in known], [value for _, value in known], **looks, markersize=3.5, linewidth=1.2)
    panel.set_xlabel("offered load")
    if found.deadlines:
        panel.set_title("requests served within their deadline", fontsize=9, loc="left")
        panel.set_ylabel("in time (%)")
        low = panel.get_ylim()[0]
        panel.set_ylim(0 if low < 60 else low, 101)
    else:
        panel.set_title("requests done", fontsize=9, loc="left")
        panel.set_ylabel("throughput (1,000/s)")
        panel.set_ylim(bottom=0)
    panel.grid(color=_GRID, linewidth=0.5)
    panel.set_axisbelow(True)


def _goodput(found: LoadLatency, point: Point) -> float | None:
    if not found.deadlines:
        return point.measured.throughput_per_second / 1000
    share = point.measured.in_time if point.measured.stable else None
    return None if share is None else 100 * share


def _plain_log(panel: Axes, along: str = "y") -> None:
    """Ticks that read as numbers, more of them where the axis is short."""
    axis = panel.yaxis if along == "y" else panel.xaxis
    low, high = panel.get_ylim() if along == "y" else panel.get_xlim()
    decades = log10(high / low)
    steps = (1.0,) if decades > 4 else (1.0, 2.0, 5.0) if decades > 0.8 else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
