"""Designs that may be no worse than the best one: paired runs at drawn arrivals, with more and more requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.jobs import build_scenario
from lstmsim.files.scenario.scenario_file import checked_scenario
from lstmsim.files.yaml.source import copied
from lstmsim.studies.design.measure import Measure
from lstmsim.studies.design.result import Alike, Choice
from lstmsim.studies.design.space import Space
from lstmsim.studies.design.walk import Found
from lstmsim.studies.sweep.evaluate import simulated
from lstmsim.studies.sweep.resolve import override
from lstmsim.traffic.intervals import batch_interval

#: What is minimised -> its percentile; batches of a run, and the fewest requests of one.
_PERCENT = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}
_BATCHES, _OF_A_BATCH = 20, 5
#: So many designs in a row that are told apart end the comparison.
_TOLD = 5


class Alikes:
    """Compares designs with the best one, in the order of what is minimised.

    until: most requests of a run.
    runs: simulations so far.
    """

    def __init__(self, space: Space, minimise: str, until: int) -> None:
        self.space, self.percent, self.until = space, _PERCENT[minimise], until
        self.runs = 0
        self._known: dict[tuple[int, int], NDArray[np.float64]] = {}

    def of(self, found: Found, best: Choice, measure: Measure) -> tuple[Alike, ...]:
        """Give the designs of which it cannot be told at 95 % that they are worse than the best one."""
        alike, told = [], 0
        for point in sorted(found.points, key=lambda each: (found.points[each], each)):
            if point == best.point or told >= _TOLD:
                continue
            one = self._compared(best.point, point)
            told = 0 if one else told + 1
            if one is not None:
                own = Choice(point, self.space.values(point), found.points[point])
                alike.append(Alike(own, one[0], one[1]))
        return tuple(alike)

    def _compared(self, best: int, other: int) -> tuple[tuple[float, float], int] | None:
        """Between what a difference lies, and the requests of the runs; None if the other is surely worse."""
        factor = 1
        while True:
            one, two = self._latencies(best, factor), self._latencies(other, factor)
            interval = self._interval(one, two)
            more = len(one) * 2 <= self.until and self._grows(best, factor)
            if interval is not None and (interval[0] > 0 or interval[1] < 0):
                return None if interval[0] > 0 else (interval, len(one))
            if interval == (0.0, 0.0) or not more:
                return interval or (-np.inf, np.inf), len(one)
            factor *= 2

    def _interval(self, one: NDArray[np.float64], two: NDArray[np.float64]) -> tuple[float, float] | None:
        """The 95 % interval of the difference of a percentile, of batches of the same requests on both sides."""
        if len(one) != len(two) or len(one) < _BATCHES * _OF_A_BATCH:
            return None
        size = len(one) // _BATCHES
        cut = [side[: size * _BATCHES].reshape(_BATCHES, size) for side in (one, two)]
        each = [np.percentile(side, self.percent, axis=1) for side in cut]
        whole = np.percentile(two, self.percent) - np.percentile(one, self.percent)
        made = batch_interval(float(whole), (each[1] - each[0]).tolist())
        half = made.half_width or 0.0
        return made.value - half, made.value + half

    def _latencies(self, point: int, factor: int) -> NDArray[np.float64]:
        """The latencies of the requests of a point in ms, in the order of the list; rejected ones are left out."""
        if (point, factor) not in self._known:
            self.runs += 1
            scenario = self._scenario(point, factor)
            rows = simulated(scenario.chip, scenario.jobs).tasks[: len(scenario.jobs)]
            order = np.argsort(rows[:, 4], kind="stable")
            served = rows[order][rows[order, 0] >= 0]
            self._known[point, factor] = (served[:, 3] - served[:, 4]) / scenario.chip.frequency_mhz / 1000
        return self._known[point, factor]

    def _grows(self, point: int, factor: int) -> bool:
        """Whether there are more requests to draw."""
        try:
            return len(self._scenario(point, 2 * factor).jobs) > len(self._scenario(point, factor).jobs)
        except InputError:
            return False

    def _scenario(self, point: int, factor: int) -> Any:
        setup = self.space.setup
        document = copied(setup.document)
        jobs: Sequence[Any] = document.data.get("jobs") or []
        dicts = [(number, job) for number, job in enumerate(jobs) if isinstance(job, dict)]
        drawn = [number for number, job in dicts if isinstance(job.get("arrival"), dict)]
        counts = [override(f"jobs.{number}.count", factor * int(jobs[number].get("count", 1))) for number in drawn]
        texts = [override(key, value) for key, value in self.space.values(point).items()]
        more = counts if factor > 1 else []
        return build_scenario(checked_scenario(document, [*setup.overrides, *texts, *more], setup.scenario_name))
