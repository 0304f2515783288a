"""The accuracy picture: signal to quantisation noise over the width of weights and vectors, and words unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from lstmsim.base.errors import InputError
from lstmsim.report.pictures.figures import Picture, drawn, job_style, letters, short
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.accuracy.report import job_title
from lstmsim.studies.accuracy.study import AccuracyReport

#: 20 log10(2): what one more bit gains where rounding is the only error.
DECIBELS_PER_BIT = 6.02

#: A job's name, and its values at each width.
Curve = tuple[str, Sequence[float]]

_MARKERS = "osD^vP*X"
_LINES = ("-", "--", "-.", ":")
_LEGEND_JOBS = 16


def plot(
    bits: Sequence[int],
    sqnr_db: Sequence[Curve],
    words: Sequence[float] | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str = "",
    look: Look = SCREEN,
) -> Picture:
    """Draw the signal to quantisation noise of each job over the width, and below it the share of words unchanged."""
    with drawn(path, (8, 4.2 if words is None else 5.8), numbers=True, look=look) as figure:
        ratios = [2.4, 1][: 1 if words is None else 2]
        panels = figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios, squeeze=False)[:, 0]
        _draw_sqnr(figure, panels[0], bits, sqnr_db)
        if words is not None:
            _draw_words(panels[1], bits, words)
        _set_bits_axis(panels[-1], bits)
        figure.head([short(title, 100)])
        figure.numbers = _numbers(bits, sqnr_db, words)
    return figure


def plot_accuracy(
    report: AccuracyReport, path: str | os.PathLike[str] | None = None, *, look: Look = SCREEN
) -> Picture:
    """Draw the widths of an accuracy report.

    report: with at least one width.
    path: the picture's file (.png, .svg or .pdf), with its numbers beside it as .csv; None: no file.
    look: how wide it is, and what it is made for.
    """
    if not report.by_bits:
        raise InputError("nothing to draw: ask for accuracy(..., bits=range(4, 13))")
    bits = sorted(report.by_bits)
    every = [report.by_bits[each] for each in bits]
    curves = [
        (job_title(job), [study.jobs[number].accuracy.sqnr_db for study in every])
        for number, job in enumerate(every[0].jobs)
    ]
    words = [study.words.unchanged for study in every if study.words is not None]
    title = f"{report.scenario}: fixed point against float64"
    return plot(bits, curves, words or None, path, title=title, look=look)


def _draw_sqnr(figure: Picture, axes: Axes, bits: Sequence[int], sqnr_db: Sequence[Curve]) -> None:
    lines = []
    for number, (_, values) in enumerate(sqnr_db):
        drawn = [value if isfinite(value) else float("nan") for value in values]
        group = number // len(_MARKERS)
        lines += axes.plot(
            bits,
            drawn,
            color=job_style(number).fill,
            marker=_MARKERS[number % len(_MARKERS)],
            linestyle=_LINES[group % len(_LINES)],
            linewidth=1.3,
            markersize=6,
            markeredgecolor="#222222",
            markeredgewidth=0.6,
        )
    names = [short(name, 30) for name, _ in sqnr_db][:_LEGEND_JOBS]
    if len(sqnr_db) > _LEGEND_JOBS:
        names[-1] += f", and {len(sqnr_db) - _LEGEND_JOBS} more"
    handles = lines[: len(names)]
    first = [values[0] for _, values in sqnr_db if isfinite(values[0])]
    if len(bits) > 1 and first:
        # Only the slope of this line has a meaning; it begins amid the jobs.
        start = sorted(first)[len(first) // 2]
        reference = [start + DECIBELS_PER_BIT * (each - bits[0]) for each in bits]
        handles += axes.plot(bits, reference, color="#666666", linestyle=(0, (4, 3)), linewidth=1, zorder=1)
        names.append(f"slope of {DECIBELS_PER_BIT} dB per bit")
    axes.set_ylabel("signal to quantisation noise (dB)")
    axes.grid(color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)
    figure.name(handles, names)


def _draw_words(axes: Axes, bits: Sequence[int], words: Sequence[float]) -> None:
    percent = [100 * each for each in words]
    axes.plot(bits, percent, color="#000000", marker="s", markersize=4, linewidth=1.3)
    # The highest label stands below its point, for there is no room above 100 %.
    for place, value in zip(bits, percent, strict=True):
        below = value > 85
        axes.annotate(
            f"{value:.1f}",
            (place, value),
            xytext=(0, -7 if below else 5),
            textcoords="offset points",
            ha="center",
            va="top" if below else "bottom",
            fontsize=letters(7),
        )
    axes.set_ylim(0, 106)
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.set_ylabel("words unchanged (%)")
    axes.grid(color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)


def _set_bits_axis(axes: Axes, bits: Sequence[int]) -> None:
    axes.set_xlim(bits[0] - 0.4, bits[-1] + 0.4)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=16, integer=True))
    axes.set_xlabel("width of weights and vectors (bits)")


def _numbers(bits: Sequence[int], sqnr_db: Sequence[Curve], words: Sequence[float] | None) -> Iterator[list[Any]]:
    """A row for each width; a number that is not finite is an empty field."""
    yield ["bits", *(f"{name} sqnr_db" for name, _ in sqnr_db), *(["words_unchanged"] if words else [])]
    for number, width in enumerate(bits):
        values = [own[number] for _, own in sqnr_db]
        values += [words[number]] if words else []
        yield [width, *(f"{value:.6g}" if isfinite(value) else "" for value in values)]
