"""The picture of a design: the front of two objectives, or the bounds of all designs beside what was simulated."""

from __future__ import annotations

import os

import numpy as np
from matplotlib.axes import Axes

from lstmsim.report.figures_text import labelled
from lstmsim.report.pictures.figures import WIDE, Picture, drawn, letters, short, write_out
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.design.result import Design

_BEST, _SEEN, _BOUND = "#D55E00", "#9A9A9A", "#0072B2"
#: Points of a front that bear their numbers.
_NAMED = 12


def plot_design(result: Design, path: str | os.PathLike[str] | None = None, *, look: Look = SCREEN) -> Picture:
    """Draw the front over its first two objectives; of one objective the bounds of all designs, lowest first, and the
    designs that were simulated.

    path: the picture's file (.png, .svg or .pdf); None: no file.
    look: how wide it is, and what it is made for.

    >>> from lstmsim import design, plot_design
    >>> scenario = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]}
    >>> found = design(scenario, "alveo-u250", axes={"chip.cores.0.ep": [8, 16]}, jobs=1)
    >>> plot_design(found).caption
    'scenario on alveo-u250: 2 designs'
    """
    with drawn(path, look=look) as figure:
        figure.fit(8.5, 5)
        axes = figure.subplots()
        if len(result.names) > 1:
            _front(axes, result)
        else:
            _proof(figure, axes, result)
        where = f" on {result.device}" if result.device else ""
        none = "" if result.best else ", none keeps all that is asked"
        figure.head([short(f"{result.scenario}{where}: {result.space:,} designs{none}", 100)])
        axes.grid(color="#E4E4E4", linewidth=0.6)
        axes.set_axisbelow(True)
        if figure.look != SCREEN:
            figure.name(*axes.get_legend_handles_labels())
        elif axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
    return figure


def _front(axes: Axes, result: Design) -> None:
    """Nothing between two points of the front was better: the line is a step. As in sweeps the first objective is y."""
    seen = np.array(result.seen).reshape(-1, len(result.names))
    best = np.array([each.objective for each in result.best]).reshape(-1, len(result.names))
    axes.scatter(seen[:, 1], seen[:, 0], s=10, color=_SEEN, label=f"simulated ({len(seen):,})")
    if len(result.names) == 2:
        step = best[np.lexsort((best[:, 0], best[:, 1]))]
        axes.step(step[:, 1], step[:, 0], where="post", color=_BEST, linewidth=1)
    sure = "" if result.proven else ", not proven"
    axes.scatter(best[:, 1], best[:, 0], s=26, color=_BEST, label=f"front ({len(best):,}{sure})", zorder=3)
    for each in result.best if len(result.best) <= _NAMED else ():
        axes.annotate(
            f"{each.point:,}",
            (each.objective[1], each.objective[0]),
            xytext=(4, 4),
            textcoords="offset points",
            fontsize=letters(8),
        )
    rest = f"; not drawn: {', '.join(map(labelled, result.names[2:]))}" if len(result.names) > 2 else ""
    axes.set_xlabel(labelled(result.names[1]) + rest)
    axes.set_ylabel(labelled(result.names[0]))
    for values, axis, scale in ((seen[:, 1], axes.xaxis, axes.set_xscale), (seen[:, 0], axes.yaxis, axes.set_yscale)):
        if len(values) and values.min() > 0 and values.max() >= WIDE * values.min():
            scale("log")
        write_out(axis)


def _proof(figure: Picture, axes: Axes, result: Design) -> None:
    """The best is proven where the line of the bounds is above it, and all designs before that were simulated."""
    bounds = np.array(result.bounds).reshape(-1, 2)
    if len(bounds) and result.bounded:
        label = "bound that no schedule beats" + (", less the clock model's error" if result.clock else "")
        # the bounds grow: between two places that are kept, the earlier one is never above the truth
        axes.step(bounds[:, 0], bounds[:, 1], where="post", color=_BOUND, linewidth=1.6, label=label)
    seen = np.array(result.seen).reshape(-1, 2)
    axes.scatter(seen[:, 0], seen[:, 1], s=12, color=_SEEN, label=f"simulated ({len(seen):,})")
    if result.best:
        own = result.best[0].objective[0]
        said = f"best: {own:,.4g}" if own < 1000 else f"best: {own:,.0f}"
        axes.axhline(own, color=_BEST, linewidth=1, label=said + ("" if result.proven else ", not proven"))
    axes.set_xlabel(figure.folded("designs that keep the rules and may fit, in the order of their bounds", 9, 0.8))
    axes.set_ylabel(labelled(result.names[0]))
    # the first designs decide
    axes.set_xscale("log")
    if len(bounds) and bounds[0, 1] > 0 and bounds[-1, 1] > 20 * bounds[0, 1]:
        axes.set_yscale("log")
    write_out(axes.xaxis)
    write_out(axes.yaxis)
