"""Blocks of kernels over time, a row for each core, and beside them how much each core has issued."""

from __future__ import annotations

import os
from collections.abc import Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.ticker import MaxNLocator

from lstmsim.report.pictures.figures import Picture, check_name, save, settings
from lstmsim.report.pictures.styles import short

_FILL, _EDGE, _BAR, _MEAN = "#0072B2", "#003E63", "#56B4E9", "#333333"
#: Most blocks whose edges are drawn.
_MOST_EDGED = 4000


def plot(
    blocks: Sequence[tuple[int, int, int]],
    busy: Sequence[int],
    path: str | os.PathLike[str] | None = None,
    *,
    title: str = "",
) -> Picture:
    """Draw blocks over time, and how busy each core was.

    Blocks of a core that are there together stand in lanes above each other.

    blocks: core, placing and end of each.
    busy: issue cycles of each core.
    path: a file that ends in `.png`, `.svg` or `.pdf`; None: no file.
    title: of the picture.
    """
    name = None if path is None else os.fspath(path)
    if name is not None:
        check_name(name)
    with settings():
        figure = Picture(figsize=(10, max(2.5, min(9.0, 0.9 + 0.18 * len(busy)))), layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(4, 1))
        shapes = _shapes(blocks, len(busy))
        edge = _EDGE if len(shapes) <= _MOST_EDGED else "none"
        left.add_collection(PolyCollection(shapes, facecolors=_FILL, edgecolors=edge, linewidths=0.3, alpha=0.75))
        # from 0, for the launch of the first kernel is part of the time
        left.set_xlim(0, max((each[2] for each in blocks), default=1))
        left.set_ylim(len(busy) - 0.5, -0.5)
        left.set_xlabel("cycle")
        left.set_ylabel("core")
        left.yaxis.set_major_locator(MaxNLocator(integer=True))
        left.set_title(short(title, 110), loc="left", parse_math=False)
        right.barh(range(len(busy)), list(busy), color=_BAR)
        right.axvline(sum(busy) / max(1, len(busy)), color=_MEAN, linewidth=0.8, linestyle="--")
        right.set_xlabel("issue cycles (dashed: mean)")
        if name is not None:
            save(figure, name)
    return figure


def _shapes(blocks: Sequence[tuple[int, int, int]], cores: int) -> list[list[tuple[float, float]]]:
    """The rectangle of each block: cores are rows, blocks that are there together share the row's height."""
    lanes: list[list[int]] = [[] for _ in range(cores)]
    placed = []
    for core, start, end in sorted(blocks, key=lambda each: (each[1], each[0])):
        ends = lanes[core]
        lane = next((place for place, until in enumerate(ends) if until <= start), len(ends))
        ends[lane : lane + 1] = [end]
        placed.append((core, lane, start, end))
    shapes: list[list[tuple[float, float]]] = []
    for core, lane, start, end in placed:
        height = 0.84 / len(lanes[core])
        top = core - 0.42 + lane * height
        shapes.append([(start, top), (end, top), (end, top + height), (start, top + height)])
    return shapes
