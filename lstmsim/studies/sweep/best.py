"""The best point of a sweep, and what it sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lstmsim.report.figures_text import short_name
from lstmsim.studies.sweep.spec import Objective
from lstmsim.studies.sweep.table import Row


def best_of(rows: Sequence[Row], objectives: Sequence[Objective]) -> Row | None:
    """Give the best point by the first objective, of equal ones by the others; None if none has a number there.

    >>> rows = [{"a": 2, "b": 1}, {"a": 1, "b": 9}, {"a": 1, "b": 3}, {"a": None, "b": 0}]
    >>> best_of(rows, [Objective("a"), Objective("b")])
    {'a': 1, 'b': 3}
    """
    first = objectives[0]
    known = [row for row in rows if first.cost(row[first.column]) == first.cost(row[first.column])]
    return min(known, key=lambda row: order(row, objectives), default=None)


def order(row: Row, objectives: Sequence[Objective]) -> list[tuple[bool, float]]:
    """Give the sorting key of a point: its costs, unknown ones after all numbers."""
    costs = [each.cost(row[each.column]) for each in objectives]
    return [(cost != cost, 0.0 if cost != cost else cost) for cost in costs]


def set_to(row: Row, names: Sequence[str]) -> str:
    """Write what a point sets."""
    return ", ".join(f"{name} {short_text(row[name])}" for name in names)


def short_text(value: Any) -> str:
    """Write a value, shortened where it is long."""
    return short_name(str(value), 24)
