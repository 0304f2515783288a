"""Load-latency curves: a percentile against offered load, the distribution at one load, and requests in time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import log10
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from lstmsim.base.errors import InputError, Mistake
from lstmsim.report.pictures.figures import Picture, drawn, letters, line_look, short, unit_of
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.serve.curves import CDF, Estimate, LoadLatency, Machine, Point

_GRID = "#DDDDDD"
_DARK = "#333333"
_GREY = "#777777"
#: Bars of intervals stand so far apart, as a share of the range of loads.
_ASIDE = 0.005
#: Labels at the ends of curves lie at least so far apart: lines of their letters.
_APART = 1.5
#: Curves that end so far to the right have their label beside the panel, others at their last point.
_BESIDE = 0.8
#: Where the axis of requests in time may begin, in %.
_FLOORS = (0, 50, 80, 90, 95, 99)
_NEVER = "unstable at every load"


def plot_load_latency(
    curves: LoadLatency,
    path: str | os.PathLike[str] | None = None,
    *,
    percentile: float = 99.0,
    cdf_at: float | None = None,
    look: Look = SCREEN,
) -> Picture:
    """Draw latency against load, a curve for each machine, the distribution at one load, and requests in time.

    curves: what `load_latency` gave.
    path: the picture's file; None: no file.
    percentile: the percentile of the latencies that is drawn.
    cdf_at: the load whose distribution is drawn; None: the highest load at which all machines are stable.
    look: how wide it is, and what it is made for.

    `InputError` for a percentile or a load that was not measured.

    >>> from lstmsim import load_latency, plot_load_latency
    >>> arrival = {"kind": "poisson", "rate_per_second": 1e5}
    >>> jobs = [{"model": "lstm-256", "steps": 1, "count": 40, "arrival": arrival}]
    >>> scenario = {"chip": "column-npu-16k", "jobs": jobs}
    >>> plot_load_latency(load_latency(scenario, loads=[0.2, 0.4], requests=300, jobs=1))
    <Picture size 1000x520 with 3 Axes>
    """
    narrow = look.width == "column"
    # panels of a column stand one below the other
    with drawn(path, (3.5, 6.4) if narrow else (10, 5.2), look=look) as figure:
        at = _cdf_load(curves) if cdf_at is None else cdf_at
        if cdf_at is not None and all(point.load != cdf_at for point in curves.points):
            raise InputError(Mistake(f"load {cdf_at:g}", "is none of the loads of these curves"))
        if percentile not in CDF:
            raise InputError(
                Mistake(f"percentile {percentile:g}", f"must be one of {', '.join(f'{p:g}' for p in CDF)}")
            )
        if narrow:
            main, upper, lower = figure.subplots(3, 1, height_ratios=(2, 1, 1))
        else:
            grid = figure.add_gridspec(2, 2, width_ratios=(3, 2))
            main, upper, lower = (figure.add_subplot(part) for part in (grid[:, 0], grid[0, 1], grid[1, 1]))
        _draw_curves(main, curves, percentile)
        loads = "offered load (1: all that the machine can do)"
        main.set_xlabel(figure.folded(loads, 9, 0.8 if narrow else 0.5))
        _draw_cdf(upper, curves, at)
        _draw_in_time(lower, curves)
        for panel in (main, lower):
            panel.set_xlim(_range(curves))
        _draw_labels(main, curves, percentile)
    return figure


def _looks(curves: LoadLatency, machine: Machine) -> dict[str, Any]:
    """Colour and marker of a machine's curve."""
    return line_look(curves.machines.index(machine))


def _cdf_load(curves: LoadLatency) -> float | None:
    """The highest load at which every machine has a distribution; None if there is none."""
    loads = {point.load for point in curves.points}
    loads -= {point.load for point in curves.points if not point.measured.percentiles}
    return max(loads, default=None)


def _range(curves: LoadLatency) -> tuple[float, float]:
    """The ends of the axis of loads, loads included at which nothing is drawn."""
    low, high = min(point.load for point in curves.points), max(point.load for point in curves.points)
    margin = 0.05 * (high - low) or 0.1 * high
    return low - margin, high + margin


def _say(panel: Axes, curves: LoadLatency, along: str, load: float | None = None) -> None:
    """Write words in place of curves, and no numbers along axes that measure nothing."""
    some = any(point.measured.percentiles for point in curves.points)
    text = ("no load at which all are stable" if load is None else "unstable at this load") if some else _NEVER
    words = panel.text(0.5, 0.5, text, ha="center", va="center", transform=panel.transAxes, color=_GREY)
    words.set_in_layout(False)
    if "x" in along:
        panel.set_xticks([])
    if "y" in along:
        panel.set_yticks([])
        panel.minorticks_off()


def _draw_curves(panel: Axes, curves: LoadLatency, percentile: float) -> None:
    span = max(point.load for point in curves.points) - min(point.load for point in curves.points)
    for machine in curves.machines:
        looks, points = _looks(curves, machine), curves.of(machine)
        known = [point for point in points if percentile in point.measured.percentiles]
        values = [point.measured.percentiles[percentile] for point in known]
        loads, heights = [point.load for point in known], [each.value_ms for each in values]
        means = [point.measured.mean.value_ms for point in known if point.measured.mean is not None]
        colour = looks["color"]
        panel.plot(loads, means, color=colour, linestyle=(0, (1, 1.6)), linewidth=1.0)
        panel.plot(loads, heights, color=colour, linewidth=1.4)
        aside = curves.machines.index(machine) - (len(curves.machines) - 1) / 2
        _draw_points(panel, loads, values, looks, aside * span * _ASIDE)
    estimates = [each.measured.percentiles[percentile] for each in curves.points if each.measured.percentiles]
    few = any(each.half_width_ms is None for each in estimates)
    hollow = "; hollow: too few requests for an interval" if few else ""
    intervals = f" with 95 % intervals, mean dotted{hollow}" if estimates else ""
    _entitle(panel, f"p{percentile:g}{intervals}")
    panel.grid(color=_GRID, linewidth=0.5)
    panel.set_axisbelow(True)
    if estimates:
        panel.set_yscale("log")
    _draw_unstable(panel, curves)
    if estimates:
        panel.set_ylabel(f"latency ({_plain_log(panel)})")
    else:
        panel.set_ylabel("latency")
        _say(panel, curves, "y")


def _ends(curves: LoadLatency, percentile: float) -> list[tuple[float, float, str, str]]:
    """The last point of each curve: load, latency, name and colour."""
    ends = []
    for machine in curves.machines:
        known = [point for point in curves.of(machine) if percentile in point.measured.percentiles]
        if known:
            last = known[-1]
            height = last.measured.percentiles[percentile].value_ms
            ends.append((last.load, height, machine.label, _looks(curves, machine)["color"]))
    return ends


def _draw_labels(panel: Axes, curves: LoadLatency, percentile: float) -> None:
    """Write the names of several curves beside their last points, pushed apart where the points lie together."""
    ends = _ends(curves, percentile) if len(curves.machines) > 1 else []
    low, high = panel.get_ylim()
    left, right = panel.get_xlim()
    places = sorted((log10(height / low) / log10(high / low), *rest) for rest in ends for height in rest[1:2])
    figure = panel.get_figure()
    assert isinstance(figure, Picture)
    apart = _APART * letters(8) / (72 * panel.get_position().height * figure.get_figheight())
    before = -apart
    for at, (place, load, height, label, colour) in enumerate(places):
        # The labels that follow need room above.
        place = max(before + apart, min(place, 1 - apart * (len(places) - 1 - at)))
        before = place
        share = (load - left) / (right - left)
        panel.annotate(
            short(label, 30),
            (load, height),
            (1.015 if share > _BESIDE else share + 0.04, place),
            textcoords="axes fraction",
            va="center",
            color=colour,
            fontweight="bold",
            parse_math=False,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.6, "shrinkA": 1, "shrinkB": 4},
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
        )


def _draw_points(
    panel: Axes, loads: Sequence[float], values: Sequence[Estimate], looks: dict[str, Any], aside: float
) -> None:
    """Draw marks with bars, which stand beside each other; hollow marks without bars where no interval is known."""
    for load, each in zip(loads, values, strict=True):
        colour, marker, half = looks["color"], looks["marker"], each.half_width_ms
        if half is not None:
            low = max(each.value_ms - half, each.value_ms / 100)
            panel.plot(
                [load + aside] * 2, [low, each.value_ms + half], color=colour, linewidth=2.2, alpha=0.45, zorder=2
            )
        face = "white" if half is None else colour
        panel.plot([load], [each.value_ms], marker, markersize=4.5, color=colour, markerfacecolor=face, zorder=3)


def _draw_unstable(panel: Axes, curves: LoadLatency) -> None:
    """Draw crosses at the upper edge, machines one below the other."""
    seen: dict[float, int] = {}
    for point in curves.points:
        if point.measured.stable:
            continue
        row = seen.get(point.load, 0)
        seen[point.load] = row + 1
        colour = _looks(curves, point.machine)["color"]
        height = 0.985 - 0.028 * row
        looks = {"color": colour, "clip_on": False}
        panel.plot([point.load], [height], "x", markersize=5, transform=panel.get_xaxis_transform(), **looks)
        curve = curves.of(point.machine)
        if len(curves.machines) > 1 and point == curve[-1] and not any(each.measured.percentiles for each in curve):
            # Without a curve the name stands beside the last cross.
            name = short(point.machine.label, 30)
            panel.text(1.015, height, name, va="center", fontsize=letters(7), transform=panel.transAxes, **looks)
    if seen and any(point.measured.percentiles for point in curves.points):
        low, high = panel.get_ylim()
        # Room for the crosses above the curves, and for the word below them.
        rows = max(seen.values())
        panel.set_ylim(low, high * (high / low) ** (0.1 + 0.03 * rows))
        (left, right), upper = _range(curves), panel.get_xaxis_transform()
        share = (min(seen) - left) / (right - left)
        # Left of the crosses if there is room, otherwise below them.
        at, height, side = (min(seen), 1.0, "right") if share > 0.15 else (left, 0.97 - 0.028 * rows, "left")
        word = "unstable" if all(each.measured.verdict != "cannot tell" for each in curves.points) else "unstable?"
        panel.text(at, height, f" {word} ", ha=side, va="top", fontsize=letters(7.5), color=_GREY, transform=upper)


def _entitle(panel: Axes, text: str) -> None:
    """Write a title above a panel, folded to its width."""
    figure, spec = panel.get_figure(), panel.get_subplotspec()
    assert isinstance(figure, Picture)
    assert spec is not None
    part = 1.0 if spec.get_gridspec().ncols == 1 else 0.6 if spec.rowspan.stop - spec.rowspan.start > 1 else 0.4
    panel.set_title(figure.folded(text, 9, part), fontsize=letters(9), loc="left")


def _draw_cdf(panel: Axes, curves: LoadLatency, load: float | None) -> None:
    """Draw how many requests take at most so long, at one load."""
    drawn = False
    for machine in curves.machines:
        for point in curves.of(machine):
            if point.load == load and point.measured.percentiles:
                percents = sorted(point.measured.percentiles)
                values = [point.measured.percentiles[each].value_ms for each in percents]
                panel.plot(values, percents, color=_looks(curves, machine)["color"], linewidth=1.4)
                drawn = True
    panel.set_ylabel("requests (%)")
    panel.set_ylim(0, 100)
    panel.set_yticks((0, 25, 50, 75, 100))
    panel.set_xlabel("latency")
    panel.grid(color=_GRID, linewidth=0.5)
    panel.set_axisbelow(True)
    if not drawn:
        _entitle(panel, "distribution" if load is None else f"distribution at load {load:g}")
        _say(panel, curves, "xy", load)
        return
    panel.set_xscale("log")
    panel.set_xlabel(f"latency ({_plain_log(panel, along='x')})")
    _entitle(panel, f"distribution at load {load:g}")


def _draw_in_time(panel: Axes, curves: LoadLatency) -> None:
    """Draw the share of requests in time where there are deadlines, and otherwise requests done per second."""
    lowest: list[float] = []
    for machine in curves.machines:
        points = curves.of(machine)
        looks = _looks(curves, machine)
        values = [_goodput(curves, point) for point in points]
        known = [(point.load, value) for point, value in zip(points, values, strict=True) if value is not None]
        if not known:
            # A line without points that is not clipped has no size, and the layout would collapse.
            continue
        shares = [value for _, value in known]
        panel.plot([load for load, _ in known], shares, **looks, markersize=3.5, linewidth=1.2, clip_on=False)
        lowest += shares
    panel.set_xlabel("offered load")
    if curves.deadlines:
        _entitle(panel, "requests served within their deadline")
        panel.set_ylabel("in time (%)")
        panel.set_ylim(max(each for each in _FLOORS if each <= min(lowest, default=0)), 100)
    else:
        _entitle(panel, "requests done")
        panel.set_ylabel("throughput (1,000 requests/s)")
        panel.set_ylim(bottom=0)
    panel.grid(color=_GRID, linewidth=0.5)
    panel.set_axisbelow(True)
    if not lowest:
        _say(panel, curves, "y")


def _goodput(curves: LoadLatency, point: Point) -> float | None:
    """The share of requests in time in %, or thousands of requests per second; None: unknown."""
    if not curves.deadlines:
        return point.measured.throughput_per_second / 1000
    share = point.measured.in_time if point.measured.stable else None
    return None if share is None else 100 * share


def _plain_log(panel: Axes, along: str = "y") -> str:
    """Set ticks that read as numbers, more of them where the axis is short; narrow panels have room for fewer.

    Returns the unit of the numbers, which suits the largest.
    """
    axis = panel.yaxis if along == "y" else panel.xaxis
    low, high = panel.get_ylim() if along == "y" else panel.get_xlim()
    decades = log10(high / low)
    most = 4 if along == "y" else 2.2
    steps = (1.0,) if decades > most else (1.0, 2.0, 5.0) if decades > 0.8 else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    # A third of a decade holds few of these numbers, or none.
    axis.set_major_locator(LogLocator(subs=steps) if decades > 0.33 else MaxNLocator(5))
    size, unit = unit_of(1000 * high)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{1000 * value / size:,.10g}"))
    axis.set_minor_formatter(NullFormatter())
    return unit
