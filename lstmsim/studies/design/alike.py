"""Designs that may be no worse than the best one: paired runs at drawn arrivals, with more and more requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.jobs import build_scenario
from lstmsim.files.scenario.scenario_file import checked_scenario
from lstmsim.files.yaml.source import copied
from lstmsim.studies.design.measure import Measure
from lstmsim.studies.design.request import PERCENT_OF
from lstmsim.studies.design.result import Alike, Choice
from lstmsim.studies.design.space import Space
from lstmsim.studies.design.walk import Found, beaten
from lstmsim.studies.sweep.evaluate import simulated
from lstmsim.studies.sweep.resolve import override
from lstmsim.traffic.intervals import CONFIDENCE, student_t
from lstmsim.traffic.paired import in_pairs

_FEW = "too few requests"
#: So many designs in a row that are told apart end the comparison.
_TOLD = 5


def _wider(batches: int, looks: int) -> float:
    """How much wider an interval is that has only a part of the 5 %, by the t distribution (Bonferroni)."""
    return (
        student_t(1 - (1 - CONFIDENCE) / looks, batches - 1) / student_t(CONFIDENCE, batches - 1)
        if batches > 1
        else 1.0
    )


class Alikes:
    """Compares designs with the best one, in the order of what is minimised.

    until: most requests of a run.
    runs: simulations so far.
    """

    def __init__(self, space: Space, minimise: str, until: int) -> None:
        self.space, self.percent, self.until = space, PERCENT_OF[minimise], until
        self.runs = 0
        self._known: dict[tuple[int, int], NDArray[np.float64]] = {}

    def of(self, found: Found, best: Choice, measure: Measure) -> tuple[Alike, ...]:
        """Give the designs of which it cannot be told at 95 % that they are worse than the best one."""
        alike, told = [], 0
        for point in sorted(found.points, key=lambda each: (found.points[each], each)):
            if point == best.point or told >= _TOLD:
                continue
            one = self._compared(best.point, point)
            if one is None:
                told += 1
            elif one.difference != (0.0, 0.0):
                told = 0
                alike.append(replace(one, choice=replace(one.choice, objective=found.points[point])))
        return tuple(alike)

    def _compared(self, best: int, other: int) -> Alike | None:
        """How far the other may be from the best, 0 to 0 if every request takes as long; None if it is surely worse."""
        looks, factor = self._looks(best), 1
        while True:
            one, two = self._latencies(best, factor), self._latencies(other, factor)
            difference, reason = self._difference(one, two, looks)
            low, high = difference
            if low > 0:
                return None
            if high < 0 or low == high == 0 or reason not in ("", _FEW) or not self._grows(best, factor):
                return Alike(Choice(other, self.space.values(other), ()), difference, len(one), reason)
            factor *= 2

    def _looks(self, point: int) -> int:
        """How often two designs are compared at most: each look has its part of the 5 %."""
        looks = 1
        while self._grows(point, 2 ** (looks - 1)):
            looks += 1
        return looks

    def _difference(
        self, one: NDArray[np.float64], two: NDArray[np.float64], looks: int
    ) -> tuple[tuple[float, float], str]:
        """The interval of the difference of a percentile over the same requests, or why there is none."""
        unknown = -np.inf, np.inf
        lost = np.isnan(one).sum(), np.isnan(two).sum()
        if lost[0] != lost[1]:
            return unknown, f"they reject {lost[0]:,} and {lost[1]:,}"
        both = np.stack([one, two], axis=1)[len(one) // 10 :]
        both = both[~np.isnan(both).any(axis=1)]
        if not len(both):
            return unknown, _FEW
        found = in_pairs(both, None)[f"p{self.percent}"]
        if found.half_width is None:
            return unknown, _FEW
        half = found.half_width * _wider(found.batches, looks)
        return (found.value - half, found.value + half), ""

    def _latencies(self, point: int, factor: int) -> NDArray[np.float64]:
        """The latencies of the requests of a point in ms, in the order in which they come; not a number: rejected."""
        if (point, factor) not in self._known:
            self.runs += 1
            scenario = self._scenario(point, factor)
            rows = simulated(scenario.chip, scenario.jobs).tasks[: len(scenario.jobs)]
            latencies = (rows[:, 3] - rows[:, 4]) / scenario.chip.frequency_mhz / 1000
            latencies[rows[:, 0] < 0] = np.nan
            order = np.argsort([job.arrival for job in scenario.jobs], kind="stable")
            self._known[point, factor] = latencies[order]
        return self._known[point, factor]

    def _grows(self, point: int, factor: int) -> bool:
        """Whether there are more requests to draw, of which a run may have so many."""
        try:
            more = len(self._scenario(point, 2 * factor).jobs)
            return len(self._scenario(point, factor).jobs) < more <= self.until
        except InputError:
            return False

    def _scenario(self, point: int, factor: int) -> Any:
        setup = self.space.setup
        document = copied(setup.document)
        jobs: Sequence[Any] = document.data.get("jobs") or []
        dicts = [(number, job) for number, job in enumerate(jobs) if isinstance(job, dict)]
        drawn = [number for number, job in dicts if isinstance(job.get("arrival"), dict)]
        counts = [override(f"jobs.{number}.count", factor * int(jobs[number].get("count", 1))) for number in drawn]
        texts = [*setup.overrides, *self.space.settings(point), *(counts if factor > 1 else ())]
        return build_scenario(checked_scenario(document, texts, setup.scenario_name))


def unsure_times(found: Found, measure: Measure) -> tuple[tuple[Alike, ...], tuple[int, ...]]:
    """What the error of the clock model keeps open.

    Gives the designs that may be better than the best one, or may be on the front, the most likely first; and, of a
    front, the points on it that others may put off it.
    """
    on = found.front()
    judged = on if len(measure.names) > 1 else on[:1]
    rows, alike = np.array([found.points[each] for each in judged]).reshape(-1, len(measure.names)), []
    for point in sorted(found.points, key=lambda each: (found.points[each], each)):
        own, hope = found.points[point], found.hopes[point]
        if point in judged or beaten(np.array([hope]), rows)[0]:
            continue
        ends = hope[0] - rows[0, 0], own[0] * own[0] / hope[0] - rows[0, 0] if hope[0] else 0.0
        alike.append(Alike(measure.choice(point, own), ends, 0))
    if len(measure.names) == 1:
        return tuple(alike), ()
    shaky = [
        point
        for point in judged
        for others in [np.array([hope for each, hope in found.hopes.items() if each != point])]
        if len(others) and beaten(np.array([found.points[point]]), others)[0]
    ]
    return tuple(alike), tuple(shaky)


def unsure_of(found: Found, best: Choice, measure: Measure) -> tuple[Alike, ...]:
    """Give the designs that may be better than the best one, as far as runs of its rates tell."""
    alike, rates = [], measure.rates
    if rates is None:
        return ()
    least = found.hopes.get(best.point, found.points[best.point])[0]
    for point in sorted(found.unsure(), key=lambda each: found.hopes[each]):
        (hope,) = found.hopes[point]
        (value,) = found.points.get(point, (0.0,) if rates.question.searched else (hope,))
        reason = "" if point in found.points else "it is not certain that it keeps the bound"
        ends = abs(value) - abs(least), abs(hope) - best.objective[0]
        alike.append(Alike(measure.choice(point, (value,)), ends, rates.question.requests, reason))
    return tuple(alike)
