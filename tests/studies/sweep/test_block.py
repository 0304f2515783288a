"""Columns of many points: the values and the constraints of points one by one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from lstmsim.studies.sweep.block import block
from lstmsim.studies.sweep.spec import Axis, Derived, Group, Sweep

VALUES: list[list[Any]] = [[1, 2, 3], [0, 0.0, -0.0, True], ["a", "", None], [2**62, -(2**63), 7], [1e300, 0.1]]
EXPRESSIONS = [
    "{0} + {1}",
    "{0} * {1}",
    "{0} // {1}",
    "{0} / {1}",
    "{0} if {1} else {2}",
    "min({0}, {1})",
    "{0} < {1} or {2} == 0",
    "{0} ** {1} > 3",
    "17 % 5",
]


def drawn(chance: random.Random) -> Sweep:
    """Axes of all kinds, values computed of them and of each other, and constraints that some points break."""
    axes = [Axis(f"x{number}", (f"a.{number}",), tuple(chance.choice(VALUES))) for number in range(4)]
    short = min(len(axis.values) for axis in axes[:2])
    zipped = tuple(Axis(axis.name, axis.paths, axis.values[:short]) for axis in axes[:2])
    groups = [Group(zipped, "zip"), Group(tuple(axes[2:]))]
    chance.shuffle(groups)
    names = [axis.name for axis in axes]
    derived = []
    for number in range(3):
        text = chance.choice(EXPRESSIONS).format(*chance.choices(names, k=3))
        derived.append(Derived(f"y{number}", (f"b.{number}",), text))
        names.append(f"y{number}")
    rules = tuple(chance.choice(EXPRESSIONS).format(*chance.choices(names, k=3)) for _ in range(2))
    return Sweep(tuple(groups), tuple(derived), rules)


@pytest.mark.parametrize("seed", range(40))
def test_columns_are_the_values_of_points(seed: int) -> None:
    chance = random.Random(seed)
    sweep = drawn(chance)
    points = chance.sample(range(len(sweep)), min(len(sweep), 30))
    columns, wanted = block(sweep, np.array(points, np.int64))
    for place, point in enumerate(points):
        values = sweep.values(point)
        # as texts: equal numbers of other types, and zeros of other signs, are others
        assert repr({name: column.at(place) for name, column in columns.items()}) == repr(values)
        assert wanted[place] == (sweep.broken(values) is None)
    assert {name: len(column.every()) for name, column in columns.items()} == dict.fromkeys(sweep.paths, len(points))
