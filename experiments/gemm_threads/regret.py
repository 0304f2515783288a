"""How much longer plans take than the best cut, by the parameters of the planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.gemm_threads.study import Ran, plan_of
from lstmsim.machines.gemm import CACHES, CONDITIONS

__all__ = ["SIX", "Regret", "Searched", "regret_of", "searched"]

#: The conditions of section 2 of docs/multicore.md, and the weights that a search tries.
SIX = CONDITIONS[:6]
WEIGHTS = (0, 0.25, 0.5, 1, 2, 4, 8, 16)

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Regret:
    """Makespans over the best ones, less 1.

    values: of each case.
    ranks: of the plans: how many candidates were rejected before the one that was taken.
    """

    values: tuple[float, ...]
    ranks: tuple[int, ...] = ()

    @property
    def mean(self) -> float:
        """On average."""
        return sum(self.values) / len(self.values)

    @property
    def high(self) -> float:
        """What one case in twenty exceeds."""
        return float(np.quantile(self.values, 0.95))

    @property
    def right(self) -> float:
        """Part of the cases in which nothing is faster."""
        return sum(each <= 0 for each in self.values) / len(self.values)


def regret_of(
    rows: Sequence[Ran], settings: Mapping[str, Any], caches: str, every: bool = True, planned: str | None = None
) -> Regret:
    """The regret of plans.

    settings: of the planner.
    caches: in which state they are.
    every: whether plans are measured against every pair of rows and columns, or only BLIS's; and against all cuts of K.
    planned: in which state the planner takes them to be; None: as they are.
    """
    values, ranks = [], []
    for row in rows:
        plan = plan_of(row.case, planned or caches, **settings)
        values.append(row.cycles(plan.ranked[plan.chosen].cut, caches) / row.best(caches, every) - 1)
        ranks.append(plan.chosen)
    return Regret(tuple(values), tuple(ranks))


@dataclass(frozen=True)
class Searched:
    """Weights of the six conditions that were the best of many on a set.

    weights: by condition.
    tried: how many were tried.
    means: mean regret on the set, by state of the caches.
    """

    weights: dict[str, float]
    tried: int
    means: dict[str, float]


def searched(rows: Sequence[Ran], tries: int, mn: str, seed: int = 0) -> Searched:
    """The weights of the six conditions with the least larger one of the mean regrets for cold and for warm caches.

    rows: the set.
    tries: half of them at random, half of them near the best so far.
    mn: which pairs are candidates, as in the planner's parameters.
    """
    tables = [_Table(rows, caches, mn) for caches in CACHES]
    draw = np.random.default_rng(seed)
    best = (np.inf, np.ones(len(SIX)))
    for number in range(tries):
        if number < tries // 2:
            weights = draw.choice(WEIGHTS, len(SIX))
        else:
            weights = best[1] * np.where(draw.random(len(SIX)) < 0.3, draw.choice([0, 0.5, 0.8, 1.25, 2], len(SIX)), 1)
        if weights.any():
            worse = max(table.regret(weights) for table in tables)
            best = min(best, (worse, weights), key=lambda each: each[0])
    found = {name: round(float(weight), 3) for name, weight in zip(SIX, best[1], strict=True)}
    means = {caches: table.regret(best[1]) for caches, table in zip(CACHES, tables, strict=True)}
    return Searched(found, tries, means)


class _Table:
    """Candidates of many cases as arrays, for quick looks at many weights."""

    def __init__(self, rows: Sequence[Ran], caches: str, mn: str) -> None:
        plans = [sorted(plan_of(row.case, caches, mn=mn).ranked, key=lambda each: each.cut.p_k) for row in rows]
        shape = len(plans), max(map(len, plans))
        self._conditions = np.zeros((*shape, len(SIX)))
        self._regret = np.zeros(shape)
        self._open = np.zeros(shape, dtype=bool)
        for at, (row, plan) in enumerate(zip(rows, plans, strict=True)):
            for place, each in enumerate(plan):
                self._conditions[at, place] = [each.normalised[name] for name in SIX]
                self._regret[at, place] = row.cycles(each.cut, caches) / row.best(caches) - 1
                self._open[at, place] = not each.why_not

    def regret(self, weights: Numbers) -> float:
        """The mean regret of plans with these weights."""
        fitness = np.round(self._conditions @ weights / weights.sum(), 9)
        chosen = np.where(self._open, fitness, -1).argmax(axis=1)
        return float(np.take_along_axis(self._regret, chosen[:, None], axis=1).mean())
