"""What the pictures of a sweep share: rows of its table in groups, and names of the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from lstmsim.report.pictures.styles import job_style, short
from lstmsim.studies.sweep.spec import Axis as Varied

__all__ = ["Row", "curve_look", "grouped", "legend", "named", "titled", "write_out"]

#: A row of a sweep's table by the names of its columns.
Row = Mapping[str, Any]

_MARKERS = "osD^vP*X"
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
#: More names than this nobody can tell apart by colour.
_MOST_NAMED = 8


def curve_look(number: int) -> tuple[str, str, Any]:
    """Give colour, marker and line style of a curve by its place.

    64 curves differ in colour or marker, 32 in their lines alone.

    >>> curve_look(0), curve_look(8)
    (('#0072B2', 'o', '-'), ('#0072B2', 's', (0, (5, 2))))
    """
    again = number // len(_MARKERS)
    marker = _MARKERS[(number + again) % len(_MARKERS)]
    return job_style(number).fill, marker, _DASHES[again % len(_DASHES)]


def named(axes: Sequence[Varied], key: str) -> str:
    """Give the name of the axis that varies `key`.

    >>> named([Varied("wide", ("chip.cores.0.vp",), ())], "vp")
    'wide'
    """
    return next(axis.name for axis in axes if axis.key == key)


def grouped(rows: Sequence[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Group rows by the values of some columns, in the order in which they come.

    >>> list(grouped([{"a": 2}, {"a": 1}, {"a": 2}], ["a"]))
    [(2,), (1,)]
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def titled(names: Sequence[str], values: Sequence[Any]) -> str:
    """Write names and their values in a line that fits above a panel.

    >>> titled(["hidden", "ep"], [512, 4])
    'hidden 512, ep 4'
    """
    return short(", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True)), 60)


def legend(figure: Figure, panel: Axes, handles: Sequence[Line2D], names: Sequence[str]) -> None:
    """Name the first curves of a panel beside it, and say how many more there are.

    handles: what stands for each curve.
    names: of the curves; empty: no legend.
    """
    panel.grid(color="#DDDDDD", linewidth=0.5)
    panel.set_axisbelow(True)
    shown, lines = list(names[:_MOST_NAMED]), list(handles[: min(len(names), _MOST_NAMED)])
    if not lines:
        return
    if len(names) > len(shown):
        lines.append(Line2D([], [], linestyle=""))
        shown.append(f"and {len(names) - len(shown):,} more (in the CSV)")
    box = figure.legend(lines, ["-"] * len(lines), loc="outside right upper", frameon=False, handlelength=3)
    for text, name in zip(box.get_texts(), shown, strict=True):
        text.set_parse_math(False)
        text.set_text(name)


def write_out(axis: Axis) -> None:
    """Write the numbers of an axis out, with commas; a logarithmic one has some between powers of ten."""
    if axis.get_scale() == "log":
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
