"""What the pictures of a sweep share: rows of its table in groups, and names of the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lstmsim.plots.styles import job_style, short
from lstmsim.sweeps.spec import Axis

__all__ = ["Row", "curve_look", "grouped", "legend", "named", "titled"]

#: A row of a sweep's table by the names of its columns.
Row = Mapping[str, Any]

_MARKERS = "osD^vP*X"
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
_MOST_NAMED = 16


def curve_look(number: int) -> tuple[str, str, Any]:
    """Give colour, marker and line style of a curve by its place.

    64 curves differ in colour or marker, 32 in their lines alone.

    >>> curve_look(0), curve_look(8)
    (('#0072B2', 'o', '-'), ('#0072B2', 's', (0, (5, 2))))
    """
    again = number // len(_MARKERS)
    marker = _MARKERS[(number + again) % len(_MARKERS)]
    return job_style(number).fill, marker, _DASHES[again % len(_DASHES)]


def named(axes: Sequence[Axis], key: str) -> str:
    """Give the name of the axis that varies `key`.

    >>> named([Axis("wide", ("chip.cores.0.vp",), ())], "vp")
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


def legend(figure: Figure, panel: Axes, names: Sequence[str], every: int = 1) -> None:
    """Name the first curves of a panel beside it, and say how many more there are.

    every: how many lines of the panel belong to a curve; the last of them stands for it.
    """
    panel.grid(color="#DDDDDD", linewidth=0.5)
    panel.set_axisbelow(True)
    lines = [line for line in panel.get_lines() if line.get_fillstyle() != "none"]
    handles = lines[every - 1 :: every][: min(len(names), _MOST_NAMED)]
    if not handles:
        return
    shown = list(names[: len(handles)])
    if len(names) > len(shown):
        handles = [*handles, Line2D([], [], linestyle="")]
        shown.append(f"and {len(names) - len(shown):,} more (in the CSV)")
    box = figure.legend(handles, ["-"] * len(handles), loc="outside right upper", frameon=False, handlelength=3)
    for text, name in zip(box.get_texts(), shown, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
