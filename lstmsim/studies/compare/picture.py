"""Bars of a comparison: TOPS and utilization, or latencies of requests that come over time; published ones hatched."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.container import BarContainer

from lstmsim.base.errors import InputError, Mistake
from lstmsim.report.pictures.figures import Picture, drawn, grey, job_style, letters, short, unit_of, write_out
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.compare.report import comparison_rows
from lstmsim.studies.compare.result import PERCENTILES, Comparison
from lstmsim.traffic.intervals import Interval

#: More bars than this in a panel are too thin to be distinguished.
MAX_BARS = 400

#: Most bars with a number above each: more numbers could not be read.
_MOST_NUMBERS = 120
#: Where so many numbers have room, in inches.
_INCHES_NUMBERED = 12.0
#: Largest / smallest value from which on a linear axis would hide the small ones: bars are then ratios.
_LOG_FROM = 20
_BAR_INCHES = 0.16
_LETTER_INCHES = 0.065
_DARK = "#333333"
#: Longest precision that a legend has room for: the name of a format, or the bytes of an element.
_PRECISION = 19

#: Row and column of an entry -> its value in the panel's unit, None where it is not known.
Value = Callable[[int, int], float | None]


def plot_comparison(
    comparison: Comparison, path: str | os.PathLike[str] | None = None, *, look: Look = SCREEN
) -> Picture:
    """Draw a comparison: a group of bars for each workload (of a single workload, a bar for each machine).

    comparison: what `compare` gave.
    path: the picture's file (.png, .svg or .pdf), with its numbers beside it as .csv; None: no file.
    look: how wide it is, and what it is made for.

    TOPS stand above, and utilization in % below. Where latencies are compared, mean and percentiles are drawn, with
    95 % intervals as far as they are known. Where values differ much, bars are ratios to the first machine, around 1.

    `InputError` for another suffix, or for more than `MAX_BARS` bars.

    >>> from lstmsim import compare, plot_comparison
    >>> compared = compare({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]}, "column-npu-64k")
    >>> plot_comparison(compared)
    <Picture size 500x560 with 2 Axes>
    """
    with drawn(path, numbers=True, look=look) as figure:
        bars = len(comparison.workloads) * len(comparison.machines)
        if bars > MAX_BARS:
            text = f"{len(comparison.workloads)} workloads on {len(comparison.machines)} machines are {bars} bars"
            raise InputError(Mistake(os.fspath(path or "plot"), f"{text}, at most {MAX_BARS} can be drawn"))
        if comparison.by_latency:
            _draw_latencies(figure, comparison)
        else:
            _draw(figure, comparison)
        figure.numbers = comparison_rows(comparison)
    return figure


def _utilization(comparison: Comparison) -> Value:
    def value(row: int, column: int) -> float | None:
        share = comparison.entries[row][column].utilization
        return None if share is None else 100 * share

    return value


def _draw(figure: Picture, comparison: Comparison) -> None:
    rows, machines = len(comparison.workloads), len(comparison.machines)
    figure.fit(min(24.0, max(5.0, 1.2 + rows * (machines + 1.2) * _BAR_INCHES)), 5.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))

    def value(row: int, column: int) -> float | None:
        return comparison.entries[row][column].tops

    base = _bases(comparison, value, rows)
    drawn = _draw_bars(upper, comparison, value, ".3g", rows, base=base)
    _draw_bars(lower, comparison, _utilization(comparison), ".1f", rows)
    _scale(upper, comparison, value, rows, base)
    upper.set_ylabel(_ratio(comparison, "TOPS", "TOPS", base))
    _percent_axis(lower)
    prefix = _common_prefix([each.name for each in comparison.workloads])
    names = [short(each.name[len(prefix) :], 24) for each in comparison.workloads]
    for panel in (upper, lower):
        _groups(panel, rows)
    lower.set_xticks(range(rows), names)
    room = 0.9 * figure.get_size_inches()[0] / rows
    for label in lower.get_xticklabels():
        label.set_parse_math(False)
        if max(map(len, names)) * letters(_LETTER_INCHES) > room:
            label.set(rotation=20 if room > 0.4 else 90, ha="right", rotation_mode="anchor")
    if prefix:
        lower.set_xlabel(f"{prefix}...", parse_math=False)
    figure.align_ylabels()
    _legend(figure, comparison, drawn)


def _draw_latencies(figure: Picture, comparison: Comparison) -> None:
    """A group of bars for the mean and each percentile, and another group for the utilization of each machine."""
    names = ["mean", *(f"p{each}" for each in PERCENTILES)]
    machines = len(comparison.machines)
    inches = min(24.0, max(6.5, 2.4 + (len(names) + 1) * (machines + 1.2) * 2 * _BAR_INCHES))
    figure.fit(inches, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=(len(names), 1.4))

    def interval(row: int, column: int) -> Interval | None:
        own = comparison.entries[0][column].latencies
        return None if own is None else own.mean if row == 0 else own.percentiles[PERCENTILES[row - 1]]

    places = [(row, column) for row in range(len(names)) for column in range(machines)]
    size, unit = unit_of(max((1000 * each.value for place in places if (each := interval(*place))), default=1000))
    scale = 1000 / size

    def top(row: int, column: int) -> float | None:
        each = interval(row, column)
        return None if each is None else scale * (each.value + (each.half_width or 0.0))

    def value(row: int, column: int) -> float | None:
        each = interval(row, column)
        return None if each is None else scale * each.value

    base = _bases(comparison, value, len(names))
    drawn = _draw_bars(left, comparison, value, ".3g", len(names), top, base)
    _draw_bars(right, comparison, _utilization(comparison), ".1f", 1)
    few: list[int] = []
    for row, column in places:
        known = interval(row, column)
        if known is not None and known.half_width is not None:
            middle, size = _place(row, column, machines), scale / (base[row] if base else 1.0)
            left.errorbar(middle, size * known.value, size * known.half_width, ecolor=_DARK, elinewidth=0.8, capsize=2)
        elif known is not None:
            few.append(row)
    _scale(left, comparison, top, len(names), base)
    left.set_ylabel(_ratio(comparison, "latency", unit, base))
    _percent_axis(right)
    _groups(left, len(names))
    _groups(right, 1)
    words = {0: "", machines: "\n(too few)"}
    labels = [name + words.get(few.count(row), "\n(some: too few)") for row, name in enumerate(names)]
    left.set_xticks(range(len(names)), labels)
    right.set_xticks([])
    _legend(figure, comparison, drawn)


def _percent_axis(panel: Axes) -> None:
    panel.set_ylabel("utilization (%)")
    panel.set_ylim(0, 119)
    panel.set_yticks(range(0, 101, 25))


def _groups(panel: Axes, rows: int) -> None:
    """Limits and lines of a panel with so many groups of bars."""
    panel.set_xlim(-0.6, rows - 0.4)
    panel.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    panel.set_axisbelow(True)
    panel.tick_params(axis="x", length=0)


def _place(row: int, column: int, machines: int) -> float:
    """The middle of a bar."""
    return row - 0.42 + (column + 0.5) * 0.84 / machines


def _bases(comparison: Comparison, value: Value, rows: int) -> list[float]:
    """What the bars of each group are ratios to, if values differ much: its first known value. Else nothing."""
    known = [
        [each for column, _ in enumerate(comparison.machines) if (each := value(row, column))] for row in range(rows)
    ]
    every = [each for group in known for each in group]
    differ = bool(every) and max(every) > _LOG_FROM * min(every)
    return [group[0] if group else 1.0 for group in known] if differ else []


def _ratio(comparison: Comparison, what: str, unit: str, base: Sequence[float]) -> str:
    """The label of the axis of a quantity, or of its ratios."""
    plain = what if what == unit else f"{what} ({unit})"
    return f"{what}, ratio to {short(comparison.machines[0].name, 24)}\n(numbers: {unit})" if base else plain


def _draw_bars(
    panel: Axes,
    comparison: Comparison,
    value: Value,
    form: str,
    rows: int,
    top: Value | None = None,
    base: Sequence[float] = (),
) -> list[BarContainer]:
    """The bars of all machines in so many groups, one container a machine; numbers stand above `top`, or the bars."""
    machines = len(comparison.machines)
    width = 0.84 / machines
    containers = []
    for column, machine in enumerate(comparison.machines):
        style = job_style(column)
        places = [_place(row, column, machines) for row in range(rows)]
        values = [value(row, column) for row in range(rows)]
        # a logarithmic axis has no zero: bars begin at the ratio 1
        foot = 1.0 if base else 0.0
        high = [each / own - foot if each else 0.0 for each, own in zip(values, base or [1.0] * rows, strict=True)]
        bars = panel.bar(places, high, 0.9 * width, bottom=foot, color=style.fill, linewidth=0)
        for bar in bars:
            if machine.published:
                bar.set(facecolor=_lighter(style.fill), edgecolor=_DARK, hatch="//////", linewidth=0.5)
            elif style.hatch:
                bar.set(edgecolor=style.ink, hatch=style.hatch)
        containers.append(bars)
        inches = panel.get_figure().get_size_inches()[0]  # type: ignore[union-attr]
        if rows * machines <= _MOST_NUMBERS * min(1.0, inches / letters(_INCHES_NUMBERED)):
            texts = ["–" if each is None else format(each, form) for each in values]
            tops = values if top is None else [top(row, column) for row in range(rows)]
            tops = [each and max(1.0, each / own) for each, own in zip(tops, base, strict=True)] if base else tops
            _write_numbers(panel, places, tops, texts, 90 if rows * machines > 8 else 0)
    return containers


def _write_numbers(
    panel: Axes, places: Sequence[float], values: Sequence[float | None], texts: Sequence[str], turned: int
) -> None:
    """A text above each bar, turned by some degrees; a dash for an unknown value is not turned."""
    for place, value, text in zip(places, values, texts, strict=True):
        panel.annotate(
            text,
            (place, value) if value else (place, 0),
            xycoords="data" if value else ("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            rotation=turned if value is not None else 0,
            fontsize=letters(6),
            color="#000000" if value is not None else "#888888",
        )


def _scale(panel: Axes, comparison: Comparison, value: Value, rows: int, base: Sequence[float]) -> None:
    """A logarithmic axis of ratios; room for the numbers above the bars."""
    places = ((row, column) for row in range(rows) for column, _ in enumerate(comparison.machines))
    values = [each / (base[row] if base else 1.0) for row, column in places if (each := value(row, column))]
    if base:
        panel.set_yscale("log")
        panel.set_ylim(0.5 * min(values), 4 * max(values))
        panel.axhline(1, color=_DARK, linewidth=0.8)
        write_out(panel.yaxis)
    else:
        panel.set_ylim(0, 1.18 * max(values, default=1.0))


def _common_prefix(names: Sequence[str]) -> str:
    """The beginning that all names share, up to a hyphen: it need not be repeated below every group."""
    if len(names) < 2:
        return ""
    # In sorted order, what the first and the last name share, all names between them share too.
    first, last = min(names), max(names)
    length = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    return first[: first.rfind("-", 0, length) + 1]


def _lighter(fill: str) -> str:
    """The colour mixed with white, so that a dark hatch shows on it."""
    share = 0.25 + 0.5 * grey(fill)
    mixed = (round(share * int(fill[at : at + 2], 16) + (1 - share) * 255) for at in (1, 3, 5))
    return "#" + "".join(f"{each:02X}" for each in mixed)


def _remark(comparison: Comparison, column: int) -> str:
    machine = comparison.machines[column]
    precision = machine.precision if len(machine.precision) <= _PRECISION else ""
    if machine.published:
        return f" (published, {precision})" if precision else " (published)"
    if precision and any(each.published for each in comparison.machines):
        return f" ({precision})"
    latencies = comparison.entries[0][column].latencies if comparison.by_latency else None
    return " (unstable)" if latencies is not None and latencies.unstable else ""


def _legend(figure: Picture, comparison: Comparison, drawn: Sequence[BarContainer]) -> None:
    names = [f"{short(each.name, 30)}{_remark(comparison, number)}" for number, each in enumerate(comparison.machines)]
    lines = -(-len(names) // max(1, int(figure.get_size_inches()[0] / 2.4)))
    across = -(-len(names) // lines)
    # A container of bars is no artist, yet legends take it.
    handles: list[Any] = list(drawn)
    above: dict[str, Any] = {"loc": "outside upper center"} | ({} if figure.look.width else {"ncols": across})
    figure.name(handles, names, **above)
