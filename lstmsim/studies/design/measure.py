"""Measures designs: simulates points in bulk, keeps what was simulated, and gives what is minimised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError
from lstmsim.model.scenario import Scenario
from lstmsim.studies.design.judge import DOUBT, Judge, energy_of
from lstmsim.studies.design.request import OBJECTIVES
from lstmsim.studies.design.space import Space, rule_of, too_many
from lstmsim.studies.design.walk import Simulated
from lstmsim.studies.sweep.columns import NUMBERS
from lstmsim.studies.sweep.evaluate import Rows
from lstmsim.studies.sweep.resolve import Resolver
from lstmsim.studies.sweep.store import Store

#: Numbers of `NUMBERS` of a point, or why there are none; and whether that is no fault of the point.
Known = tuple[tuple[Any, ...] | None, str, bool]


class Measure:
    """The walker of a walk: one for each judge; all share what was simulated.

    rates: the clock of each point in MHz.
    limit: (column, most ms) that a latency may be.
    results: simulates points.
    """

    def __init__(
        self,
        space: Space,
        judge: Judge,
        minimise: Sequence[str],
        rates: NDArray[np.float64],
        limit: tuple[str, float] | None,
        store: Store | None,
        results: Callable[[Sequence[int]], Iterable[Rows]],
    ) -> None:
        self.space, self.judge, self.minimise, self.rates = space, judge, tuple(minimise), rates
        self.limit, self.store, self.results = limit, store, results
        self.resolver = Resolver(space.setup)
        self.known: dict[int, Known] = {}
        #: Points that were asked for, whether or not they had been simulated before.
        self.asked: set[int] = set()
        if store is not None:
            for point, status, *numbers, reason in store.rows(["point", "status", *NUMBERS, "reason"]):
                self.known[point] = self._known(status, tuple(numbers), reason)

    def with_judge(self, judge: Judge) -> Measure:
        """The same measure with another judge; what is simulated is shared."""
        other = object.__new__(Measure)
        other.__dict__.update(self.__dict__, judge=judge)
        return other

    def scenario(self, point: int) -> Scenario:
        """The scenario of a point; `InputError` for one that breaks a rule."""
        return self.resolver.scenario(self.space.setup.sweep.values(point))

    def judged(self, point: int) -> tuple[str, tuple[float, ...]]:
        """Why a point is out, and what is minimised of it as far as it is known without a simulation."""
        plain = (0.0,) * len(self.minimise)
        if self.judge.device is None and all(OBJECTIVES[each] for each in self.minimise):
            return "", plain
        try:
            scenario = self.scenario(point)
        except InputError:
            # the simulation says which rule it breaks
            return "", plain
        out = self.judge.out(scenario)
        if not out and "share" in self.minimise and self.judge.judged(scenario).share is None:
            out = f"{DOUBT}how much of the device it takes"
        return out, plain if out else tuple(self._static(each, scenario) for each in self.minimise)

    def _static(self, name: str, scenario: Scenario) -> float:
        if name == "npe":
            return float(sum(each.peak for each in scenario.chip.core_figures))
        if name == "energy_j":
            return energy_of(scenario)
        return self.judge.judged(scenario).share or 0.0 if name == "share" else 0.0

    def rejected(self, point: int) -> int:
        """How many requests a point rejects that was simulated."""
        numbers = self.known[point][0]
        return 0 if numbers is None else int(numbers[NUMBERS.index("turned_away")])

    def simulated(self, points: Sequence[int]) -> list[Simulated]:
        """Simulate points that were not yet, and keep what comes out."""
        missing = [each for each in points if each not in self.known]
        self.asked.update(points)
        for rows in self.results(missing) if missing else ():
            if self.store is not None:
                self.store.record(rows)
            for (_, status, *numbers, reason), (point, *_) in zip(rows.results, rows.points, strict=True):
                self.known[point] = self._known(status, tuple(numbers), reason)
        return [self._simulated(each) for each in points]

    def _known(self, status: str, numbers: tuple[Any, ...], reason: str | None) -> Known:
        if status == "done":
            return numbers, "", False
        failed = status == "failed" or too_many(str(reason))
        return None, f"cannot be simulated: {rule_of(str(reason))}" if failed else rule_of(str(reason)), failed

    def _simulated(self, point: int) -> Simulated:
        numbers, reason, failed = self.known[point]
        return Simulated(point, None, reason, failed) if numbers is None else self.valued(point, None, numbers)

    def valued(self, point: int, scenario: Scenario | None, numbers: Sequence[Any]) -> Simulated:
        """Give what is minimised of a point.

        scenario: None: that of the point.
        numbers: its `NUMBERS`.
        """
        named = dict(zip(NUMBERS, numbers, strict=True))
        kept = self.limit is None or named[self.limit[0]] <= self.limit[1]
        values = []
        for each in self.minimise:
            if not OBJECTIVES[each]:
                values.append(self._static(each, scenario or self.scenario(point)))
            else:
                value = named[OBJECTIVES[each]]
                values.append(value / self.rates[point] / 1000 if each == "ms" else float(value))
        return Simulated(point, tuple(float(each) for each in values), kept=kept)
