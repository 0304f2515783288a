"""Measures designs: simulates points in bulk, keeps what was simulated, and gives what is minimised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError
from lstmsim.machines.registry import capability
from lstmsim.machines.rtl import ClockModel
from lstmsim.model.scenario import Scenario
from lstmsim.studies.design.judge import DOUBT, Judge, energy_of
from lstmsim.studies.design.rates import Borne, Rates
from lstmsim.studies.design.request import BEARS, MAKESPAN, OBJECTIVES
from lstmsim.studies.design.result import Choice
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

    names: what is sought; of what is maximised values are below 0.
    limit: (column, most ms) that a latency may be.
    results: simulates points.
    rates: what designs bear; None: nobody asked.
    clock: the model that tells the clock of each design; None: all have that of the chip.
    """

    def __init__(
        self,
        space: Space,
        judge: Judge,
        names: Sequence[str],
        limit: tuple[str, float] | None,
        store: Store | None,
        results: Callable[[Sequence[int]], Iterable[Rows]],
        rates: Rates | None = None,
        clock: ClockModel | None = None,
    ) -> None:
        self.space, self.judge, self.names = space, judge, tuple(names)
        self.limit, self.store, self.results, self.rates, self.clock = limit, store, results, rates, clock
        # a search of a rate takes seconds: the next ones are to know what it found
        self.batches = (16, 8192) if rates is None else (4, 16)
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
        plain = (-inf,) * len(self.names)
        if self.judge.device is None and all(OBJECTIVES.get(each, BEARS) for each in self.names):
            return "", plain
        try:
            scenario = self.scenario(point)
        except InputError:
            # the simulation says which rule it breaks
            return "", plain
        out = self.judge.out(scenario)
        if not out and "share" in self.names and self.judge.judged(scenario).share is None:
            out = f"{DOUBT}how much of the device it takes"
        return out, plain if out else tuple(self._static(each, scenario) for each in self.names)

    def _static(self, name: str, scenario: Scenario) -> float:
        """What is known of a design before a simulation; nothing: it may be any number."""
        if name == "npe":
            return float(sum(each.peak for each in scenario.chip.core_figures))
        if name == "energy_j":
            return energy_of(scenario)
        return self.judge.judged(scenario).share or 0.0 if name == "share" else -inf

    def choice(self, point: int, objective: tuple[float, ...]) -> Choice:
        """A design with what it takes of the device."""
        fit = self.judge.fit(self.scenario(point))
        mhz = self._mhz(self.scenario(point)) if self.clock else None
        return Choice(point, self.space.values(point), tuple(map(abs, objective)), fit.verdict if fit else "", mhz)

    def rejected(self, point: int) -> int:
        """How many requests a point rejects that was simulated."""
        numbers = self.known[point][0]
        return 0 if numbers is None else int(numbers[NUMBERS.index("turned_away")])

    def simulated(self, points: Sequence[int], best: NDArray[np.float64] | None = None) -> list[Simulated]:
        """Simulate points that were not yet, and keep what comes out; best: values that are reached already.

        With one objective no rate is searched that is surely not above the best one.
        """
        missing = [each for each in points if each not in self.known]
        self.asked.update(points)
        for rows in self.results(missing) if missing else ():
            if self.store is not None:
                self.store.record(rows)
            for (_, status, *numbers, reason), (point, *_) in zip(rows.results, rows.points, strict=True):
                self.known[point] = self._known(status, tuple(numbers), reason)
        if self.rates is not None:
            reached = best is not None and len(best) and self.names == (BEARS,)
            beat = float(-best.min()) if best is not None and reached else None
            self.rates.ask([each for each in points if self.known[each][0] is not None], beat)
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
        borne = None if self.rates is None else self.rates.known[point][1]
        values = [float(self._value(each, point, scenario, named, borne)) for each in self.names]
        if self.clock is not None:
            near = [self.clock.pairs if name in MAKESPAN else 1 for name in self.names]
            hope = tuple(value / each for value, each in zip(values, near, strict=True))
            return Simulated(point, tuple(values), kept=kept, hope=hope)
        if self.rates is None or borne is None:
            return Simulated(point, tuple(values), kept=kept)
        hope = tuple(-borne.hope if name == BEARS else value for name, value in zip(self.names, values, strict=True))
        asked = self.rates.question
        bears = not asked.searched or borne.rate is not None
        keeps = borne.keeps if asked.at_rate is not None else True
        certain = keeps is False or (keeps and not asked.searched)
        return Simulated(point, tuple(values), kept=bears and keeps is True, hope=() if certain else hope)

    def _value(
        self, name: str, point: int, scenario: Scenario | None, named: Mapping[str, Any], borne: Borne | None
    ) -> float:
        """What is sought of a point; `named`: its numbers by column."""
        if name == BEARS:
            return -(borne.rate or 0.0) if borne else 0.0
        if not OBJECTIVES[name]:
            return self._static(name, scenario or self.scenario(point))
        value: float = named[OBJECTIVES[name]]
        if name not in MAKESPAN:
            return value
        return value / self._mhz(scenario or self.scenario(point)) / MAKESPAN[name]

    def _mhz(self, scenario: Scenario) -> float:
        """The clock of a design: that of its chip, or as the model tells it."""
        if self.clock is None:
            return scenario.chip.frequency_mhz
        mhz: float = capability(scenario.chip.kind, "clock").clock(scenario)[0]
        return mhz
