"""Formats and shifts that all passes of a kind of cell share, so that a machine can have them as wires."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lstmsim.model.cell import Cell
from lstmsim.model.numerics.calibration import Range

__all__ = ["largest_units", "shared_ranges"]

#: Ranges of a network, `[layer][direction]`.
NetworkRanges = Sequence[Sequence[Mapping[str, Range]]]


def shared_ranges(networks: Sequence[tuple[Sequence[Cell], NetworkRanges]]) -> list[list[list[dict[str, Range]]]]:
    """Give every pass of a kind of cell the widest ranges that any of them reached; x keeps its own.

    The scale of x is folded into the weights of each pass, so a machine need not know it.

    networks: the cell of each layer, and the ranges `[layer][direction]`.

    >>> from lstmsim.model.cells import cell
    >>> rnn = cell("rnn")
    >>> one, other = {"x": (0.0, 9.0), "a": (-1.0, 2.0)}, {"x": (0.0, 1.0), "a": (-3.0, 1.0)}
    >>> shared_ranges([([rnn], [[one]]), ([rnn], [[other]])])[0][0][0]
    {'x': (0.0, 9.0), 'a': (-3.0, 2.0)}
    """
    widest: dict[Cell, dict[str, Range]] = {}
    for cells, ranges in networks:
        for cell, both in zip(cells, ranges, strict=True):
            own = widest.setdefault(cell, {})
            for name, (low, high) in (pair for reached in both for pair in reached.items()):
                least, most = own.get(name, (0.0, 0.0))
                own[name] = min(least, low), max(most, high)
    return [
        [[{**widest[cell], "x": reached["x"]} for reached in both] for cell, both in zip(cells, ranges, strict=True)]
        for cells, ranges in networks
    ]


def largest_units(passes: Iterable[tuple[Cell, Mapping[str, float]]]) -> dict[Cell, dict[str, float]]:
    """For each kind of cell and each of its sums the largest of what one unit of a row's accumulator stands for.

    passes: the cell of each pass, and by sum the largest of its own rows.

    >>> from lstmsim.model.cells import cell
    >>> list(largest_units([(cell("rnn"), {"a": 0.1}), (cell("rnn"), {"a": 0.3})]).values())
    [{'a': 0.3}]
    """
    largest: dict[Cell, dict[str, float]] = {}
    for cell, units in passes:
        own = largest.setdefault(cell, {})
        own.update({name: max(unit, own.get(name, 0.0)) for name, unit in units.items()})
    return largest
