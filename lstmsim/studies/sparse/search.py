"""The fastest settings of a sparse kernel, searched by simulating them; and what a rule loses against them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.kernels import Settings
from lstmsim.studies.sparse.runs import Asked, Ran, simulated

__all__ = ["Search", "Tried", "regret", "search"]

Progress = Callable[[int, int], None]


@record
class Tried:
    """A setting that was simulated.

    options: its parameters.
    cycles: without launches; None: it was refused.
    """

    options: Mapping[str, Any]
    cycles: int | None


@dataclass(frozen=True, eq=False)
class Search:
    """The settings that were searched.

    settings: which parameters, and their values.
    tried: every setting, in order; the first one is that of a run without a search.
    best: the fastest of them, the first of equals.
    by_rule: parameters of the first one that a rule chose.
    """

    settings: Settings
    tried: tuple[Tried, ...]
    best: Tried
    by_rule: tuple[str, ...]

    @property
    def first(self) -> Tried:
        """The setting of a run without a search."""
        return self.tried[0]

    @property
    def rule_best(self) -> Tried:
        """The fastest setting that differs from the first one in nothing but what the rule chose."""
        kept = {name: each for name, each in self.first.options.items() if name not in self.by_rule}
        alike = [each for each in self.tried if {**each.options, **kept} == each.options]
        return min(alike, key=_cycles)

    @property
    def chosen(self) -> dict[str, Any]:
        """What was chosen: parameters that differ from those of the first setting, or that a rule would choose."""
        first = self.first.options
        return {name: each for name, each in self.best.options.items() if each != first[name] or name in self.by_rule}

    @property
    def refused(self) -> int:
        """How many settings do not fit the product or the chip."""
        return sum(each.cycles is None for each in self.tried)


def regret(one: Tried, best: Tried) -> float:
    """How much longer a setting takes than another, as a share of that: 0 if it is as fast.

    >>> regret(Tried({}, 150), Tried({}, 100))
    0.5
    """
    return _cycles(one) / _cycles(best) - 1 if best.cycles else 0.0


def search(asked: Asked, progress: Progress | None = None) -> tuple[Ran, Search]:
    """Simulate the settings that a machine has for a product, and take the fastest.

    asked: the product; what it sets stays. progress: is called with settings done and, as far as known, in all.

    `InputError` if nothing is left to choose, or if the product itself is refused.
    """
    settings = asked.kernels.settings(asked.chip, asked.task)
    if not settings.together and not settings.alone:
        text = f"{asked.task.method} has no parameter left whose values could be searched"
        raise InputError(Mistake("best", text))
    run = _Search(asked, settings, progress)
    every = [dict(zip(settings.together, each, strict=True)) for each in product(*settings.together.values())]
    run.all_of(every)
    while True:
        before = run.best
        run.all_of(list(_single_changes(settings, before.options)))
        if run.best is before:
            return run.ran, Search(settings, tuple(run.tried.values()), run.best, run.ran_first.figures.by_rule)


def _single_changes(settings: Settings, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every setting that differs from one in a single parameter.

    options: of that one.
    """
    for name, values in (*settings.together.items(), *settings.alone.items()):
        for value in values:
            if value != options[name]:
                yield {**options, name: value}


class _Search:
    """Settings on their way through the simulator; only the fastest program is kept."""

    def __init__(self, asked: Asked, settings: Settings, progress: Progress | None) -> None:
        self.asked, self.progress = asked, progress
        self.ran = self.ran_first = simulated(asked, asked.task)
        names = asked.kernels.parameters(asked.task.kernel, asked.task.method)
        self.start = {name: self.ran.figures.options[name] for name in names}
        self.best = Tried(self.start, self.ran.figures.span)
        self.tried = {tuple(self.start.values()): self.best}

    def all_of(self, changes: list[dict[str, Any]]) -> None:
        """Simulate settings that have not been simulated yet.

        changes: what each has instead of what the first one has.
        """
        known = len(self.tried)
        for number, each in enumerate(changes):
            if self.progress is not None:
                self.progress(known + number, known + len(changes))
            self._one(self.start | each)

    def _one(self, options: dict[str, Any]) -> None:
        key = tuple(options.values())
        if key in self.tried:
            return
        try:
            ran = simulated(self.asked, replace(self.asked.task, options=options))
        except InputError:
            self.tried[key] = Tried(options, None)
            return
        self.tried[key] = Tried(options, ran.figures.span)
        if ran.figures.span < self.ran.figures.span:
            self.ran, self.best = ran, self.tried[key]


def _cycles(tried: Tried) -> float:
    return float("inf") if tried.cycles is None else tried.cycles
