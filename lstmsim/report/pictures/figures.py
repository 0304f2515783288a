"""What pictures share: looks of jobs, an axis of time, files written whole, and the picture of blocks over time."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from lstmsim.base.csv_table import CsvWriter
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import refuse_if_read, whole_file
from lstmsim.report.figures_text import cut
from lstmsim.report.styles import GROUP_HATCHES, JOB_STYLES, Style


def job_style(number: int) -> Style:
    """Give the style of a job by its place in the scenario: first eight colours, then hatches too."""
    base = JOB_STYLES[number % len(JOB_STYLES)]
    group = number // len(JOB_STYLES) % len(GROUP_HATCHES)
    return base if group == 0 else Style(base.fill, GROUP_HATCHES[group], base.ink)


def grey(fill: str) -> float:
    """Give the lightness of a colour on a grey printer, 0 to 1 (luma of ITU-R BT.601)."""
    red, green, blue = (int(fill[at : at + 2], 16) for at in (1, 3, 5))
    return round((0.299 * red + 0.587 * green + 0.114 * blue) / 255, 4)


def short(text: str, length: int = 26) -> str:
    """Cut text to one line of at most `length` characters."""
    line = "".join(char if char.isprintable() else " " for char in text)
    return cut(line, length)


_TICKS: Any = {"nbins": 10, "steps": [1, 2, 5, 10]}


def set_time(upper: Axes, lower: Axes, start: int, end: int, frequency_mhz: float) -> None:
    """Show cycles from `start` to `end` below the lower panel, microseconds above the upper one."""
    lower.set_xlim(start, end)
    lower.set_xlabel("time (cycles)")
    lower.xaxis.set_major_locator(MaxNLocator(integer=True, **_TICKS))
    lower.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))

    def microseconds(cycles: Any) -> Any:
        return cycles / frequency_mhz

    def cycles(microseconds: Any) -> Any:
        return microseconds * frequency_mhz

    micro = upper.secondary_xaxis("top", functions=(microseconds, cycles))
    micro.set_xlabel(f"time (µs at {frequency_mhz:g} MHz)")
    micro.xaxis.set_major_locator(MaxNLocator(**_TICKS))
    # Ten digits: no tick of a run that can be drawn is written as a power of ten.
    micro.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


SUFFIXES = (".png", ".svg", ".pdf")

_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "lstmsim",
    "pdf.fonttype": 42,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@contextmanager
def settings() -> Iterator[None]:
    """Set the looks of lstmsim's pictures inside the block, whatever the user's matplotlibrc says.

    No warning is given for letters of a job's name that the font lacks.
    """
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


class Picture(Figure):
    """A figure that a notebook shows as a picture, though it was made without pyplot.

    numbers: what it shows, as rows of a table with names on top.
    """

    numbers: Iterable[Iterable[Any]] = ()

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        with settings():
            self.savefig(content, format="png", dpi=100)
        return content.getvalue()


@contextmanager
def drawn(path: str | os.PathLike[str] | None, *, numbers: bool = False, **look: Any) -> Iterator[Picture]:
    """Give an empty picture, which is written when the block has drawn it.

    path: a file that ends in one of `SUFFIXES`; None: no file.
    numbers: whether the picture's `numbers` are written beside it as .csv.
    look: arguments of the figure.

    `InputError` for another suffix, and if one of the files was read as an input.
    """
    name = None if path is None else os.fspath(path)
    table = f"{os.path.splitext(name)[0]}.csv" if numbers and name is not None else None
    if name is not None and not name.lower().endswith(SUFFIXES):
        raise InputError(Mistake(name, f"not a picture's name: expected it to end in {', '.join(SUFFIXES)}"))
    for each in (name, table):
        if each is not None:
            refuse_if_read(each)
    with settings():
        figure = Picture(**{"layout": "constrained", **look})
        FigureCanvasAgg(figure)
        yield figure
        if name is not None:
            save(figure, name)
    if table is not None:
        with whole_file(table) as file:
            CsvWriter(file).writerows(figure.numbers)


def save(figure: Figure, path: str) -> None:
    """Write the picture, whole or not at all; equal pictures give equal bytes."""
    suffix = os.path.splitext(path)[1].lower().lstrip(".")
    # Dates would make equal pictures differ.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[suffix]
    content = io.BytesIO()
    figure.savefig(content, format=suffix, dpi=150, metadata=metadata)
    with whole_file(path, "wb") as file:
        file.write(content.getvalue())


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
    """Draw blocks (core, placing, end) over time, in lanes where they are there together, and how busy each core was.

    path: a file that ends in `.png`, `.svg` or `.pdf`; None: no file.
    """
    with drawn(path, figsize=(10, max(2.5, min(9.0, 0.9 + 0.18 * len(busy))))) as figure:
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
