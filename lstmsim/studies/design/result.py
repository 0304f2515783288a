"""The result of a design: frozen numbers. Its text and JSON are in `lstmsim.studies.design.report`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lstmsim.machines.rtl import ClockModel
from lstmsim.report.results import Table
from lstmsim.report.stability import Stability
from lstmsim.report.stamp import Stamp


def written(value: Any) -> str:
    """Write a value of a key as files have it."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Choice:
    """A design.

    point: its number in the space.
    values: of each key.
    objective: what is sought, in the order of `Design.names`.
    fit: what it takes of the device, in words; empty without one.
    mhz: the clock that the model tells; None: it was not asked.
    """

    point: int
    values: Mapping[str, Any]
    objective: tuple[float, ...]
    fit: str = ""
    mhz: float | None = None


@dataclass(frozen=True)
class Rival:
    """The best design that differs from the best one in one key; point: its number in the space."""

    key: str
    value: Any
    objective: float
    point: int


@dataclass(frozen=True)
class More:
    """What 10 % more of a resource of the device would buy.

    resource, words: the resource, and how much of it the best design takes, in words.
    best: the best design then; None: none is better.
    complete: whether all designs that it brings were looked at.
    """

    resource: str
    words: str
    best: Choice | None
    complete: bool = True


@dataclass(frozen=True)
class Alike:
    """A design of which it cannot be told that it is worse than the best one.

    difference: its objective less that of the best one, at 95 %: (from, to).
    requests: of each run, at most.
    reason: why no interval is known; empty: one is.
    """

    choice: Choice
    difference: tuple[float, float]
    requests: int
    reason: str = ""


@dataclass(frozen=True)
class Design(Table, forms="lstmsim.studies.design.report"):
    """The result of a design.

    scenario, device, minimise, maximise: what was sought; an empty device: none.
    axes, fixed: the space, values by key; and keys that it sets beside them, as texts `KEY=VALUE`.
    space: how many designs there are; they are the sum of the next ones.
    infeasible, does_not_fit, inaccurate, pruned: by the rule, the resource, the job that is not accurate, the bound.
    simulated, left: designs that were simulated; that were not looked at, because `--most` ended the search.
    cannot_tell: designs among those that do not fit, of which that cannot be told.
    late: simulated designs that break the bound on latencies.
    extra_runs: further simulations, for rivals, for more of the device, to tell designs apart, with other latencies.
    best: the best design, then those equal to it; of several objectives the front.
    equal: how many designs are equal to the best one, itself included.
    gap: how far the best is from the best bound left, a share of it; None: a front, or no design.
    proven: whether no design of the space is better; with several objectives: whether no other can be on the front.
    rivals: for each key the best design with another value of it.
    more: what more of the device would buy, that first of which the best design takes most; of a front nothing.
    drawn: whether what is minimised is a statistic of arrivals that are drawn.
    alike: designs of which it cannot be told at 95 % that they are worse than the best one: at drawn arrivals, or by
        the rates that they bear.
    stability: whether the best design, or the front, is the same whatever the assumptions are; None: nobody asked.
    bounded: whether the machine gives bounds; else every design is simulated.
    remarks: what is not modelled or left out, in sentences.
    files: what was written.
    seen: of the designs that were simulated and keep the bound on latencies, what a picture shows: of one objective
        (place in the order of bounds from 1 on, objective), of several the objectives.
    bounds: (place, bound) at some places of that order.
    clock: the model of the clock that times hang on; None: all designs have the clock of the chip.
    untimed: designs whose clock the model cannot tell, by reason.
    shaky: of a front, the designs on it that others may put off it within the error of the clock model.
    stamp: what the cycles of the best design are exact against, and which keys are assumptions; None: there is none.
    """

    scenario: str
    device: str
    minimise: tuple[str, ...]
    axes: Mapping[str, tuple[Any, ...]]
    fixed: tuple[str, ...]
    space: int
    infeasible: Mapping[str, int]
    does_not_fit: Mapping[str, int]
    inaccurate: Mapping[str, int]
    pruned: Mapping[str, int]
    simulated: int
    left: int
    late: int
    extra_runs: int
    best: tuple[Choice, ...]
    equal: int
    gap: float | None
    proven: bool
    rivals: tuple[Rival, ...] = ()
    more: tuple[More, ...] = ()
    alike: tuple[Alike, ...] = ()
    stability: Stability | None = None
    bounded: bool = True
    drawn: bool = False
    remarks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    seen: tuple[tuple[float, ...], ...] = ()
    bounds: tuple[tuple[float, float], ...] = ()
    maximise: tuple[str, ...] = ()
    clock: ClockModel | None = None
    untimed: Mapping[str, int] = field(default_factory=dict)
    shaky: tuple[int, ...] = ()
    stamp: Stamp | None = field(default=None, compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """What was sought, in the order of `Choice.objective`."""
        return (*self.minimise, *self.maximise)

    @property
    def cannot_tell(self) -> int:
        """How many designs are out because it cannot be told whether they fit."""
        return sum(number for name, number in self.does_not_fit.items() if name.startswith("cannot tell"))
