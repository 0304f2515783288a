"""Whether the best design, or the front, is the same whatever the assumed latencies and bandwidths of the chips are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lstmsim.base.errors import InputError
from lstmsim.base.wording import counted
from lstmsim.report.stability import Conclusions, Stability
from lstmsim.studies.design.measure import Measure
from lstmsim.studies.design.report import words_of
from lstmsim.studies.design.result import Choice, Rival
from lstmsim.studies.design.space import Space
from lstmsim.studies.design.walk import Found, Simulated
from lstmsim.studies.shared.stability import Vary, stability
from lstmsim.studies.shared.stamp import keys_at
from lstmsim.studies.sweep.columns import numbers_of
from lstmsim.studies.sweep.evaluate import simulated

#: Best simulated designs by each of what is minimised that are asked again; designs of a front, of equal ones the
#: first, about which there is a question each.
_FEW, _OF_A_FRONT = 16, 10


class Stable:
    """Asks for the best designs again, among a few.

    best, rivals: of the result.
    runs: simulations so far.
    """

    def __init__(
        self, space: Space, measure: Measure, found: Found, best: Sequence[Choice], rivals: Sequence[Rival]
    ) -> None:
        self.space, self.measure, self.found = space, measure, found
        different = {each.objective: each for each in reversed(best)}
        self.best: list[Choice] = sorted(different.values(), key=lambda each: each.objective)[:_OF_A_FRONT]
        values = found.points
        firsts = [
            sorted(values, key=lambda point: (values[point][place], values[point], point))[:_FEW]
            for place in range(len(measure.names))
        ]
        asked = {*(each.point for each in self.best), *(each.point for each in rivals)}
        self.points = sorted(asked.union(*firsts))
        self.scenarios = {point: measure.scenario(point) for point in self.points}
        self.runs = 0

    def of(self, share: float) -> Stability | None:
        """Give which conclusions hold; None where there is no design to ask."""
        if not self.points:
            return None
        chips = list(dict.fromkeys(each.chip for each in self.scenarios.values()))
        held = stability(chips, self.conclusions, share, keys_at(self.space.keys.values()))
        return replace(held, left_out=self._asked())

    def conclusions(self, vary: Vary) -> Conclusions:
        """Draw the conclusions from changed chips."""
        values = {
            each.point: each.values
            for each in (self._again(point, vary) for point in self.points)
            if each.values is not None and each.kept
        }
        if len(self.measure.names) == 1:
            return {"the best design": self._first(values, 0)}
        least = {f"the least {name}": self._first(values, place) for place, name in enumerate(self.measure.names)}
        on = Found(self.found.labels, values).front()
        return least | {
            f"design {each.point:,} is on the front": "yes" if each.point in on else "no" for each in self.best
        }

    def _first(self, values: Mapping[int, tuple[float, ...]], place: int) -> str:
        """The best design by an objective, of equal ones by the others, in words."""
        if not values:
            return "none"
        point = min(values, key=lambda each: (values[each][place], values[each], each))
        return f"{words_of(self.space.values(point))} (design {point:,})"

    def _again(self, point: int, vary: Vary) -> Simulated:
        """A design with its chip changed; one that the chip then refuses, or that does not fit, has no values."""
        scenario = self.scenarios[point]
        chip: Any = vary(scenario.chip)
        if chip == scenario.chip:
            return self.measure.simulated([point])[0]
        changed = replace(scenario, chip=chip)
        out = self.measure.judge.out(changed)
        if out:
            return Simulated(point, None, out)
        self.runs += 1
        try:
            numbers = numbers_of(changed, simulated(chip, changed.jobs))
        except InputError as error:
            return Simulated(point, None, str(error))
        return self.measure.valued(point, changed, numbers)

    def _asked(self) -> str:
        """Which designs were asked again, in a sentence; empty: all that there are."""
        if len(self.points) == self.space.size:
            return ""
        several = len(self.measure.names) > 1
        kinds = (
            f"the first {len(self.best)} of the front, and up to {_FEW} simulated ones that have least of each"
            if several
            else f"the best, the best with each key changed, and up to {_FEW} simulated ones that are next"
        )
        numbers = ", ".join(f"{each:,}" for each in self.points)
        verb = "was" if len(self.points) == 1 else "were"
        asked = f"only {counted(len(self.points), 'design')} of {self.space.size:,} {verb} asked again ({kinds})"
        return f"{asked}: {numbers}; another one could come before them"
