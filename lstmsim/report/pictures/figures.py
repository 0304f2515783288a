"""What pictures share: looks of jobs, an axis of time, files written whole, and the picture of blocks over time."""

from __future__ import annotations

import io
import os
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import sqrt
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from lstmsim.base.csv_table import CsvWriter
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import refuse_if_read, whole_file
from lstmsim.report.figures_text import cut
from lstmsim.report.styles import GROUP_HATCHES, JOB_STYLES, SCREEN, Look, Style

#: Colours of `job_style` in an order in which lines on white are distinct, and marks of points.
_LINES, MARKERS = (0, 2, 5, 6, 1, 4, 7, 3), "osD^vP*X"


def line_look(number: int) -> dict[str, Any]:
    """Give colour and marker of a curve by its number.

    >>> line_look(0) == line_look(8) == {"color": "#0072B2", "marker": "o"}
    True
    """
    return {"color": job_style(_LINES[number % len(_LINES)]).fill, "marker": MARKERS[number % len(MARKERS)]}


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


#: Units of an axis: the size of each, from which span on it is used (in units of it), and its name.
_CYCLES = ((1e6, 20.0, "Mcycles"), (1e3, 20.0, "kcycles"), (1.0, 0.0, "cycles"))
_TIMES = ((1e6, 2.0, "s"), (1e3, 2.0, "ms"), (1.0, 2.0, "µs"), (1e-3, 0.0, "ns"))


def unit_of(span: float, units: Sequence[tuple[float, float, str]] = _TIMES) -> tuple[float, str]:
    """Give size and name of the unit that suits a span, by default of microseconds.

    >>> unit_of(63_622), unit_of(0.5), unit_of(140, _CYCLES)
    ((1000.0, 'ms'), (0.001, 'ns'), (1.0, 'cycles'))
    """
    return next((size, name) for size, least, name in units if span >= least * size)


def set_time(upper: Axes, lower: Axes, start: int, end: int, frequency_mhz: float) -> None:
    """Show cycles from `start` to `end` below the lower panel, time above the upper one, each in a unit that suits."""
    set_cycles(lower, start, end)
    size, name = unit_of((end - start) / frequency_mhz)
    scale = frequency_mhz * size

    def times(cycles: Any) -> Any:
        return cycles / scale

    def cycles(times: Any) -> Any:
        return times * scale

    above = upper.secondary_xaxis("top", functions=(times, cycles))
    above.set_xlabel(f"time ({name} at {frequency_mhz:g} MHz)")
    above.xaxis.set_major_locator(MaxNLocator(**ticks(upper)))
    # Ten digits: no tick of a run that can be drawn is written as a power of ten.
    above.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def set_cycles(axes: Axes, start: int, end: int) -> None:
    """Make the lower axis one of cycles from `start` to `end`, in a unit that suits."""
    size, name = unit_of(end - start, _CYCLES)
    axes.set_xlim(start, end)
    axes.set_xlabel(f"time ({name})")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, **ticks(axes)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / size:,.10g}"))


def ticks(axes: Axes) -> Any:
    """Give the arguments of a `MaxNLocator` below a panel as wide as the picture, whose numbers must not touch."""
    room = axes.get_figure().get_size_inches()[0] / letters(1)  # type: ignore[union-attr]
    return {"nbins": max(3, min(10, int(1.5 * room))), "steps": [1, 2, 5, 10]}


def write_out(axis: Axis) -> None:
    """Write the numbers of an axis out, with commas; a short logarithmic one has some between powers of ten."""
    if axis.get_scale() == "log":
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < _SHORT * low else (1.0,)))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


#: Up to this ratio of its ends a logarithmic axis has ticks between powers of ten.
_SHORT = 1000
#: From this ratio of the largest to the smallest value on, an axis of objectives is logarithmic.
WIDE = 8
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
#: What styles have of their own. Both fonts come with matplotlib, so that pictures are the same everywhere.
_STYLES: dict[str, Any] = {
    "screen": {},
    "paper": {"font.family": ["STIXGeneral", "DejaVu Sans"], "mathtext.fontset": "stix", "axes.linewidth": 0.6},
    "slides": {"font.size": 13, "axes.linewidth": 1.2, "hatch.linewidth": 0.9, "lines.linewidth": 2.2},
}


#: Widths of letters over their size, on average.
_LETTER = {"screen": 0.5, "paper": 0.42, "slides": 0.5}


def letters(size: float) -> float:
    """Give a size of letters in the style of the picture that is drawn; `size`: where most letters have 8 points."""
    return size * float(matplotlib.rcParams["font.size"]) / float(_SETTINGS["font.size"])


@contextmanager
def settings(style: str = "screen") -> Iterator[None]:
    """Set the looks of lstmsim's pictures inside the block, whatever the user's matplotlibrc says.

    No warning is given for letters of a job's name that the font lacks.
    """
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_SETTINGS, **_STYLES[style]})
        yield


class Picture(Figure):
    """A figure that a notebook shows as a picture, though it was made without pyplot.

    numbers: what it shows, as rows of a table with names on top.
    look: how wide it is, and what it is made for.
    caption: the lines of its title, which the style `paper` leaves out.
    """

    numbers: Iterable[Iterable[Any]] = ()
    look: Look = SCREEN
    caption: str = ""
    _saved = False

    def fit(self, width: float, height: float, fixed: float = 0.0) -> None:
        """Give the picture its size: so many inches, or the width of its look, and then less high too.

        fixed: the part of the height that does not depend on the width.
        """
        own = self.look.inches or width
        part = min(1.0, sqrt(own / width))
        self.set_size_inches(own, sqrt(letters(1)) * (fixed + part * (height - fixed)))

    def head(self, lines: Sequence[str], axes: Axes | None = None, size: float = 10, loc: Any = "center") -> None:
        """Write a title above the picture, or above a panel; on paper the caption says it."""
        self.caption = "; ".join(lines)
        if self.look.style == "paper":
            return
        text = self.folded("\n".join(lines), size)
        self._grow(text.count("\n") * letters(size))
        look: Any = {"fontsize": letters(size), "parse_math": False}
        if axes is None:
            self.suptitle(text, **look)
        else:
            axes.set_title(text, loc=loc, **look)

    def folded(self, text: str, size: float, part: float = 1.0) -> str:
        """Fold lines of a title that are longer than a part of the width; on screens callers see to it."""
        if self.look == SCREEN:
            return text
        letter = 1.25 * _LETTER[self.look.style] * letters(size)
        most = max(20, int(part * self.get_size_inches()[0] * 72 / letter))
        return "\n".join(part for line in text.split("\n") for part in textwrap.wrap(line, most))

    def _grow(self, points: float) -> None:
        """Make a picture of a given width higher by lines that have so many points together."""
        if self.look != SCREEN:
            width, height = self.get_size_inches()
            self.set_size_inches(width, height + 1.4 * points / 72)

    def name(self, handles: Sequence[Any], names: Sequence[str], *, below: bool = False, **look: Any) -> None:
        """Say what looks mean: at the right on screens, else below the picture.

        handles, names: looks as matplotlib's legends take them, and the name of each.
        look: arguments of the legend.
        """
        if not handles:
            return
        place: Any = {"loc": "outside right upper"}
        if below or self.look != SCREEN:
            wide = letters(8) * (_LETTER[self.look.style] * max(map(len, names)) + 4.5)
            columns = max(1, min(len(names), int(self.get_size_inches()[0] * 72 / wide)))
            place = {"loc": "outside lower center", "ncols": columns}
            self._grow(letters(8) * -(-len(names) // columns) + 6)
        # Names are set afterwards: a legend swallows labels that begin with an underscore, and reads $ as mathematics.
        box = self.legend(handles, ["-"] * len(names), frameon=False, **{**place, **look})
        for text, name in zip(box.get_texts(), names, strict=True):
            text.set_parse_math(False)
            text.set_text(name)

    def savefig(self, *place: Any, **given: Any) -> None:
        """Write the picture as matplotlib does, with the same bytes.

        matplotlib draws a picture twice: first for its layout alone, into nothing. Here it is only laid out then.
        """
        self._saved = True
        try:
            super().savefig(*place, **given)
        finally:
            self._saved = False

    def draw(self, renderer: Any) -> None:
        """Draw the picture; `renderer`: of matplotlib. A call for the layout alone, on writing, draws nothing."""
        engine = self.get_layout_engine()
        if self._saved and isinstance(engine, ConstrainedLayoutEngine):
            engine.execute(self)
        else:
            super().draw(renderer)

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        with settings(self.look.style):
            self.savefig(content, format="png", dpi=100)
        return content.getvalue()

    def to_svg(self) -> str:
        """Give the picture as SVG, for a page."""
        content = io.BytesIO()
        with settings(self.look.style):
            self.savefig(content, format="svg", metadata={"Date": None})
        return content.getvalue().decode()


@contextmanager
def drawn(
    path: str | os.PathLike[str] | None = None,
    size: tuple[float, float] = (6.4, 4.8),
    *,
    numbers: bool = False,
    look: Look = SCREEN,
    **others: Any,
) -> Iterator[Picture]:
    """Give an empty picture, which is written when the block has drawn it.

    path: a file that ends in one of `SUFFIXES`; None: no file.
    size: width and height in inches, as `Picture.fit` takes them.
    numbers: whether the picture's `numbers` are written beside it as .csv.
    look: how wide it is, and what it is made for.
    others: arguments of the figure.

    `InputError` for another suffix, and if one of the files was read as an input.
    """
    name = None if path is None else os.fspath(path)
    table = f"{os.path.splitext(name)[0]}.csv" if numbers and name is not None else None
    if name is not None and not name.lower().endswith(SUFFIXES):
        raise InputError(Mistake(name, f"not a picture's name: expected it to end in {', '.join(SUFFIXES)}"))
    for each in (name, table):
        if each is not None:
            refuse_if_read(each)
    with settings(look.style):
        figure = Picture(**{"layout": "constrained", **others})
        figure.look = look
        figure.fit(*size)
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
    look: Look = SCREEN,
) -> Picture:
    """Draw blocks (core, placing, end) over time, in lanes where they are there together, and how busy each core was.

    Cores without a block have no row.

    path: a file that ends in `.png`, `.svg` or `.pdf`; None: no file.
    """
    used = sorted({core for core, _, _ in blocks} | {core for core, cycles in enumerate(busy) if cycles})
    empty, row = len(busy) - len(used), {core: row for row, core in enumerate(used)}
    with drawn(path, (10, max(2.5, min(9.0, 0.9 + 0.18 * len(used)))), look=look) as figure:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3 if look.width == "column" else 4, 1))
        shapes = _shapes([(row[core], start, end) for core, start, end in blocks], len(used))
        edge = _EDGE if len(shapes) <= _MOST_EDGED else "none"
        left.add_collection(PolyCollection(shapes, facecolors=_FILL, edgecolors=edge, linewidths=0.3, alpha=0.75))
        # from 0, for the launch of the first kernel is part of the time
        set_cycles(left, 0, max((each[2] for each in blocks), default=1))
        left.set_ylim(len(used) - 0.5, -0.5)
        left.set_ylabel("core")
        some = range(0, len(used), -(-len(used) // 16) or 1)
        left.set_yticks(some, [f"{used[at]:,}" for at in some])
        said = [f"{empty:,} of {len(busy):,} cores run no block, and have no row"] * bool(empty)
        figure.head([short(title, 110), *said], left, loc="left")
        right.barh(range(len(used)), [busy[core] for core in used], color=_BAR)
        right.axvline(sum(busy) / max(1, len(busy)), color=_MEAN, linewidth=0.8, linestyle="--")
        right.set_xlabel(figure.folded("issue cycles (dashed: mean of all)", 8, 0.2))
        right.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=3 if look == SCREEN else 2))
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
