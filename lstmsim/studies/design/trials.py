"""Designs of spaces that are too large for a walk: Optuna chooses some, and bounds of all say what that is worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import counted
from lstmsim.studies.design.measure import Measure
from lstmsim.studies.design.space import Box, Broken, Space
from lstmsim.studies.design.walk import INFEASIBLE, LEFT, SIMULATED, TOO_LARGE, Found, Known, Labels, beaten

#: Points that are chosen before the numbers of the next ones are known: so many on any number of processes.
_BATCH = 16
#: Of the sampler: the same command chooses the same designs.
_SEED = 0
#: Most designs of a space, and most that are bounded: about 20 minutes of one processor.
MOST, _BOUNDED = 2**62, 1_000_000_000


@dataclass
class Tally:
    """How many points have each label, by what it is due to: of a space whose points have no rows.

    size: points of the space; those without a label are left.
    looked: points that were chosen.
    least: the least bound of those that are left.
    """

    size: int
    looked: int
    numbers: Counter[tuple[int, str]] = field(default_factory=Counter)
    least: float = -inf

    def counts(self, label: int) -> dict[str, int]:
        """How many points have a label, by what it is due to, the most first."""
        return {name: number for (own, name), number in self.numbers.most_common() if own == label}

    def count(self, label: int) -> int:
        """How many points have a label."""
        if label == LEFT:
            return self.size - self.numbers.total()
        return sum(self.counts(label).values())

    def remarks(self) -> Iterator[str]:
        """What the reader must know, in sentences."""
        known = "nothing is known" if self.size > _BOUNDED else "only bounds are known"
        yield f"Optuna chose {counted(self.looked, 'design')} (TPE, seed {_SEED}); of the others {known}."
        if self.least == -inf:
            unknown = f"more than {_BOUNDED:,} designs" if self.size > _BOUNDED else "some designs have no bounds"
            yield f"How far the best is from a bound is not known: {unknown}."


def optuna_study() -> Any:
    """Optuna's study, which is asked for points; `InputError` where the package is missing."""
    try:
        import optuna
    except ImportError:
        raise InputError(Mistake("trials", "needs the package optuna: pip install 'lstmsim[optuna]'")) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(sampler=optuna.samplers.TPESampler(seed=_SEED))


def chosen(
    space: Space, measure: Measure, study: Any, trials: int, tick: Callable[[int, int], None]
) -> tuple[Found, dict[int, tuple[int, str]]]:
    """Simulate the points that a study asks for; give what was found, and the label of each point.

    Places of values on their axes are asked for, so that what lies between is known to lie between.
    """
    found, labels = Found(Labels.of(0)), dict[int, tuple[int, str]]()
    for start in range(0, trials, _BATCH):
        asked = [study.ask() for _ in range(min(_BATCH, trials - start))]
        axes = list(zip(space.axes, space.strides, strict=True))
        points = [
            sum(stride * each.suggest_int(axis.name, 0, len(axis.values) - 1) for axis, stride in axes)
            for each in asked
        ]
        wanted = []
        for point in dict.fromkeys(points):
            if point not in labels:
                out, _ = measure.judged(point)
                labels[point] = (TOO_LARGE, out) if out else (SIMULATED, "")
                wanted += [] if out else [point]
        best = np.array(list(found.points.values())).reshape(-1, 1)
        for each in measure.simulated(wanted, best) if wanted else ():
            if each.values is None:
                labels[each.point] = INFEASIBLE, each.reason
                found.failed += [each.point] * each.failed
            else:
                found.note(each, np.array(-inf))
        for trial, point in zip(asked, points, strict=True):
            known = point in found.points
            # what cannot be chosen is, to the sampler, no better than any other
            study.tell(trial, found.points[point][0] if known else inf)
        tick(start + len(asked), trials)
    return found, labels


def tallied(space: Space, found: Found, labels: dict[int, tuple[int, str]], known: Callable[[Box], Known]) -> Tally:
    """Label all points of a space, box by box, as far as rules, multiplier blocks and bounds tell.

    known: bounds the points of a box, which are numbered from 0.
    """
    tally = Tally(space.size, len(labels))
    if space.size > _BOUNDED:
        tally.numbers.update(labels.values())
        return tally
    best = np.array([found.points[point] for point in found.front()[:1]]).reshape(-1, 1)
    tally.least = inf
    looked, bounded = np.array(sorted(labels), np.int64), 0
    for box in space.boxes():
        own = Labels.of(len(box.points))
        bounds = None
        if isinstance(box, Broken):
            own.mark(np.arange(len(box.points)), INFEASIBLE, box.reason)
            bounded += len(box.points)
        else:
            part = known(replace(box, points=np.arange(len(box.points))))
            own, bounds = part.labels, part.bounds
            bounded += len(box.points) if part.complete else 0
            part.mark_too_large(own)
        for place in np.flatnonzero(np.isin(box.points, looked)).tolist():
            own.label[place], name = labels[int(box.points[place])]
            own.why[place] = own.code(name)
        if bounds is not None:
            left = np.flatnonzero(own.label == LEFT)
            bounds.prune(own, left[beaten(bounds.least[left], best)])
            tally.least = min(tally.least, bounds.least[own.label == LEFT, 0].min(initial=inf))
        for label in range(LEFT + 1, SIMULATED + 1):
            tally.numbers.update({(label, name): number for name, number in own.counts(label).items()})
    if bounded < space.size or found.failed:
        # without bounds, or too large to be simulated: nobody knows how good they are
        tally.least = -inf
    return tally
