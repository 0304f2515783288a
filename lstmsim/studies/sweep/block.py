"""Many points of a sweep at once, column by column: the values of each name, and which points are wanted.

A column is the values that occur and the places of the points' values among them. An expression is computed once for
each combination of the values that it reads, by the rules of `lstmsim.studies.sweep.expressions`, so that nothing is
rounded or too large in another way than at one point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.operations import Ints
from lstmsim.studies.sweep.expressions import ExpressionError
from lstmsim.studies.sweep.spec import Group, Sweep, Value, kept

#: Numbers of combinations below this are joined with a further column without being counted anew.
_ROOM = 2**31


class Column(NamedTuple):
    """The values that occur, and for each point the place of its own among these. Equal values may have two places."""

    values: Sequence[Any]
    places: Ints

    def at(self, point: int) -> Any:
        """The value of a point, by its place in the block."""
        return self.values[self.places[point]]

    def every(self) -> list[Any]:
        """The values of all points."""
        return list(map(self.values.__getitem__, self.places.tolist()))

    def each(self, make: Callable[[Any], Any]) -> NDArray[Any]:
        """What is made of the values, for all points."""
        return np.array([make(value) for value in self.values])[self.places]

    def of(self, points: Ints | NDArray[np.bool_]) -> Column:
        """The column of some points, with the values that these have; the same one where every point is marked."""
        if points.dtype == bool and points.all():
            return self
        used, places = np.unique(self.places[points], return_inverse=True)
        return Column([self.values[each] for each in used.tolist()], places)


Columns = dict[str, Column]


def distinct(columns: Sequence[Ints], points: int) -> tuple[Ints, Ints]:
    """The first point of each combination of the columns' numbers, and for each point the number of its combination."""
    joined = np.zeros(points, np.int64)
    for column in columns:
        if points and joined.max() >= _ROOM:
            joined = np.unique(joined, return_inverse=True)[1]
        joined = joined * (column.max(initial=0) + 1) + column
    _, firsts, numbers = np.unique(joined, return_index=True, return_inverse=True)
    return firsts, numbers


def block(sweep: Sweep, points: Ints) -> tuple[Columns, NDArray[np.bool_]]:
    """The columns of some points, and which of these break no constraint."""
    found: Columns = {}
    rest = points
    for group in reversed(sweep.groups):
        rest, combination = np.divmod(rest, group.size)
        found |= _axes(group, combination)
    columns = {axis.name: found[axis.name] for axis in sweep.axes}
    wanted = np.ones(len(points), bool)
    derived, constraints = sweep.rules
    for each, rule in zip(sweep.derived, derived, strict=True):
        columns[each.name], good = _computed(columns, rule.names, partial(kept, each, rule), points)
        wanted &= good
    for rule in constraints:
        true, good = _computed(columns, rule.names, rule, points)
        wanted &= good & np.array(list(map(bool, true.values)), bool)[true.places]
    return columns, wanted


def _axes(group: Group, combination: Ints) -> Columns:
    """The columns of the axes of a group."""
    if group.combine == "zip":
        return {axis.name: Column(axis.values, combination) for axis in group.axes}
    found: Columns = {}
    for axis in reversed(group.axes):
        combination, places = np.divmod(combination, len(axis.values))
        found[axis.name] = Column(axis.values, places)
    return found


def _computed(
    columns: Columns, names: Sequence[str], rule: Callable[[Mapping[str, Value]], Any], points: Ints
) -> tuple[Column, NDArray[np.bool_]]:
    """What a rule gives of the values of some names, None where it gives nothing; and where it gives something."""
    firsts, numbers = distinct([columns[name].places for name in names], len(points))
    values: list[Any] = []
    good = np.ones(len(firsts), bool)
    for place, first in enumerate(firsts.tolist()):
        try:
            values.append(rule({name: columns[name].at(first) for name in names}))
        except ExpressionError:
            values.append(None)
            good[place] = False
    return Column(values, numbers), good[numbers]
