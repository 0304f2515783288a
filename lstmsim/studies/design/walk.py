"""The walk over a space: points in the order of their bounds, each with one label, until no other can be better.

Points are taken in batches whose sizes do not depend on who computes them, so that labels and counts are the same on
one process and on many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lstmsim.studies.design.space import Numbers
from lstmsim.studies.fit.device import Device
from lstmsim.studies.sweep.table import front

#: What becomes of a point.
LEFT, INFEASIBLE, TOO_LARGE, INACCURATE, UNTIMED, PRUNED, SIMULATED = range(7)
#: Labels of points that cannot be chosen whatever they simulate.
OUT = INFEASIBLE, TOO_LARGE, INACCURATE, UNTIMED
#: Points that are looked at together.
_LOOKED_AT = 65_536


class Simulated(NamedTuple):
    """A point that was simulated.

    values: what is minimised; None where it breaks a rule that only a simulation finds, or cannot be simulated.
    reason: why there are no values.
    failed: whether it is no fault of the design, so that nobody knows how good it is.
    kept: whether it keeps the bound on latencies.
    hope: values that it may have at best, where `values` or `kept` are not certain; empty: they are.
    """

    point: int
    values: tuple[float, ...] | None
    reason: str = ""
    failed: bool = False
    kept: bool = True
    hope: tuple[float, ...] = ()


class Walker(Protocol):
    """What the walk asks; `batches`: how many points it simulates together at first, and at most."""

    batches: tuple[int, int]

    def judged(self, point: int) -> tuple[str, tuple[float, ...]]:
        """Why a point is out (empty: it is not), and values that are known before a simulation (others: -inf)."""

    def simulated(self, points: Sequence[int], best: NDArray[np.float64] | None = None) -> list[Simulated]:
        """Simulate points, in their order; best: values that are reached already."""


@dataclass
class Labels:
    """One label for each point, and what it is due to.

    label, why: codes, one for each point.
    names: the names that `why` counts.
    """

    label: NDArray[np.int8]
    why: NDArray[np.int16]
    names: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, size: int) -> Labels:
        """Give labels of points of which nothing is known."""
        return cls(np.zeros(size, np.int8), np.zeros(size, np.int16))

    def code(self, name: str) -> int:
        """The number of a name."""
        return self.names.setdefault(name, len(self.names))

    def mark(self, points: Any, label: int, name: str = "") -> None:
        """Give points a label; those that have one keep it."""
        points = np.asarray(points)
        free = points[self.label[points] == LEFT]
        self.label[free] = label
        self.why[free] = self.code(name)

    def count(self, label: int) -> int:
        """How many points have a label."""
        return int((self.label == label).sum())

    def counts(self, label: int) -> dict[str, int]:
        """How many points have a label, by what it is due to, the most first."""
        numbers = np.bincount(self.why[self.label == label], minlength=len(self.names)).tolist()
        named = Counter({name: numbers[code] for name, code in self.names.items() if numbers[code]})
        return dict(named.most_common())

    def copy(self) -> Labels:
        """A copy that changes alone."""
        return Labels(self.label.copy(), self.why.copy(), dict(self.names))


@dataclass(frozen=True)
class Bounds:
    """Numbers that points cannot beat.

    least: a column of each objective, by points.
    which: for each point what its first bound is due to, a number of `names`.
    """

    least: NDArray[np.float64]
    which: NDArray[np.int8]
    names: tuple[str, ...]

    def prune(self, labels: Labels, points: Numbers) -> None:
        """Label points that a bound rules out."""
        for number, name in enumerate(self.names):
            labels.mark(points[self.which[points] == number], PRUNED, name)


@dataclass(frozen=True)
class Known:
    """What is known of all points before one is simulated.

    device: what they must fit; None: nothing.
    blocks: multiplier blocks that each needs at least.
    complete: whether all of them have bounds.
    """

    device: Device | None
    labels: Labels
    bounds: Bounds
    blocks: NDArray[np.int64]
    complete: bool

    def mark_too_large(self, labels: Labels) -> None:
        """Label the points that need more multiplier blocks than the device has."""
        if self.device is not None and self.device.multipliers is not None:
            labels.mark(np.flatnonzero(self.blocks > self.device.multipliers), TOO_LARGE, self.device.multiplier)


@dataclass
class Found:
    """What the walk found.

    labels: of all points.
    points: those that were simulated, keep the bound on latencies and have values.
    failed: points that could not be simulated.
    hopes: values that points may have at best, of which that is not certain.
    """

    labels: Labels
    points: dict[int, tuple[float, ...]] = field(default_factory=dict)
    failed: list[int] = field(default_factory=list)
    hopes: dict[int, tuple[float, ...]] = field(default_factory=dict)

    def note(self, each: Simulated, least: NDArray[np.float64]) -> None:
        """Note a point that has values; least: its bounds."""
        if each.kept and each.values is not None:
            self.points[each.point] = each.values
        if each.hope:
            self.hopes[each.point] = tuple(np.maximum(each.hope, least).tolist())

    def front(self) -> list[int]:
        """The points that no other beats, the best first; with one objective the best and those equal to it."""
        if not self.points:
            return []
        values = np.array(list(self.points.values()))
        own = [point for point, on in zip(self.points, front(values), strict=True) if on]
        return sorted(own, key=lambda point: (self.points[point], point))

    def unsure(self) -> list[int]:
        """The points that may be better than the best one, or that may change the front."""
        on = self.front()
        judged = on[:1] if on and len(self.points[on[0]]) == 1 else on
        rows = {point: np.array([self.points[point]]) for point in judged}
        unsure = []
        for point, hope in self.hopes.items():
            own = np.array([hope])
            out = point in on or any(beaten(own, row)[0] for row in rows.values())
            if not out or any(beaten(row, own)[0] for other, row in rows.items() if other != point):
                unsure.append(point)
        return unsure


def beaten(least: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say which points cannot be better than one of some values, nor equal to it.

    least: a row of bounds for each point.
    values: a row for each simulated point.
    """
    out = np.zeros(len(least), bool)
    for row in values:
        out |= (row <= least).all(axis=1) & (row < least).any(axis=1)
    return out


class Walk:
    """One walk.

    most: points that may be simulated; None: as many as it takes.
    tick: called with the points that have labels, and all.
    best: values that are reached already.
    """

    def __init__(
        self,
        bounds: Bounds,
        labels: Labels,
        walker: Walker,
        most: int | None = None,
        tick: Callable[[int, int], None] = lambda done, total: None,
        best: Sequence[tuple[float, ...]] = (),
    ) -> None:
        self.bounds, self.labels, self.walker, self.tick = bounds, labels, walker, tick
        self.rest = len(bounds.least) if most is None else most
        self.found = Found(labels)
        self.reached = list(best)
        self.best = np.array(self.reached).reshape(-1, bounds.least.shape[1])

    def run(self) -> Found:
        """Walk to the end."""
        points = np.flatnonzero(self.labels.label == LEFT)
        least = self.bounds.least[points]
        points = points[np.lexsort((points, *least.T[::-1]))]
        place, (size, most) = 0, self.walker.batches
        while place < len(points) and self.rest:
            looked = points[place : place + _LOOKED_AT]
            hopeful = ~beaten(self.bounds.least[looked], self.best)
            taken = np.flatnonzero(hopeful)[:size]
            end = len(looked) if hopeful.sum() <= size else int(taken[-1]) + 1
            self.bounds.prune(self.labels, looked[:end][~hopeful[:end]])
            self._batch(looked[taken].tolist())
            place, size = place + end, min(2 * size, most)
            self.tick(place, len(points))
        # the last batch may have found what beats those that are left
        left = points[self.labels.label[points] == LEFT]
        self.bounds.prune(self.labels, left[beaten(self.bounds.least[left], self.best)])
        return self.found

    def _batch(self, points: Sequence[int]) -> None:
        """Judge points, and simulate those that may be chosen."""
        wanted = []
        for point in points:
            out, known = self.walker.judged(point)
            least = np.maximum(self.bounds.least[point], known)
            if out:
                self.labels.mark([point], TOO_LARGE, out)
            elif beaten(least[None], self.best)[0]:
                self.labels.mark([point], PRUNED, self.bounds.names[self.bounds.which[point]])
            else:
                wanted.append(point)
        wanted = wanted[: self.rest]
        self.rest -= len(wanted)
        for each in self.walker.simulated(wanted, self.best) if wanted else ():
            self._note(each)
        if self.found.points:
            values = np.array([*self.reached, *self.found.points.values()])
            self.best = np.unique(values[front(values)], axis=0)

    def _note(self, each: Simulated) -> None:
        if each.values is None:
            self.labels.mark([each.point], INFEASIBLE, each.reason)
            if each.failed:
                self.found.failed.append(each.point)
            return
        self.labels.mark([each.point], SIMULATED)
        self.found.note(each, self.bounds.least[each.point])
