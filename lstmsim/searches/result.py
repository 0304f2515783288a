"""What a search found: frozen numbers. Their text and JSON are in `lstmsim.searches.result_text`."""

from __future__ import annotations

from dataclasses import dataclass

from lstmsim.results import Table

__all__ = ["CatChoice", "Exhaustive", "Found", "Mix", "ModelChoice", "Point", "Refused", "SearchResult", "Walk"]


@dataclass(frozen=True)
class Point:
    """One simulated (EP, VP): makespan in cycles, and of the searched cores utilization and share of hazard cycles
    (0 to 1); `bound` names the constraint that gave VP: `Hw`, `NPE/EP`, `both`, or `blocks` for a narrower one.

    >>> Point(32, 2048, "both", 1471, 0.87, 0.09).key < Point(64, 1024, "NPE/EP", 1471, 0.87, 0.09).key
    True
    """

    ep: int
    vp: int
    bound: str
    cycles: int
    utilization: float
    hazard: float

    @property
    def key(self) -> tuple[int, int, int]:
        """Fewest cycles first; among equals the smallest EP (the flattest adder tree), then the smallest VP."""
        return self.cycles, self.ep, self.vp


@dataclass(frozen=True)
class Refused:
    """A pair that cannot be simulated, and why; `too_large`: the machine could run it, the simulation would be too
    long."""

    ep: int
    vp: int
    reason: str
    too_large: bool = False


@dataclass(frozen=True)
class Walk:
    """The greedy search: every EP in the order in which it was looked at; `refined` of them are no powers of two."""

    path: tuple[Point, ...]
    refined: tuple[Point, ...]
    refused: tuple[Refused, ...]
    chosen: Point
    stopped: str


@dataclass(frozen=True)
class Exhaustive:
    """Of `pairs` with other cycles than each other: how many were `simulated`, how many `refused`, how many `excluded`
    because their tiles alone take longer than the best; and the best. `proven`: no pair is better, because each of them
    is one of those, or cannot run."""

    simulated: int
    refused: int
    optimum: Point
    pairs: int
    excluded: int
    proven: bool


@dataclass(frozen=True)
class Found:
    """What was found for some jobs: greedily, and, if asked for, among all pairs."""

    walk: Walk
    exhaustive: Exhaustive | None

    @property
    def regret_percent(self) -> float | None:
        """By how much the greedy choice takes more cycles than the optimum, in percent of the optimum."""
        if self.exhaustive is None:
            return None
        best = self.exhaustive.optimum.cycles
        return 100 * (self.walk.chosen.cycles - best) / best


@dataclass(frozen=True)
class ModelChoice:
    """A model of a mix, its jobs simulated alone: its own best pair, and what the common EP costs it."""

    model: str
    jobs: int
    found: Found
    cycles_at_common_ep: int


@dataclass(frozen=True)
class CatChoice:
    """The best tree for one CAT-n: every model takes the best EP among `tree_inputs`, `/2`, ... `/cat`.

    `eps` in the order of the models; `cycles` is the sum of their single-model runs.
    """

    cat: int
    tree_inputs: int
    eps: tuple[int, ...]
    cycles: int


@dataclass(frozen=True)
class Mix:
    """Several models on one array, each at an EP of its own; `sufficient`: the least CAT-n with a tree on which they
    take no more cycles in sum, None if there is no such tree. `cats`: the best of the trees tried (`trees`: their
    inputs) for smaller CATs, up to that one."""

    models: tuple[ModelChoice, ...]
    sufficient: CatChoice | None
    cats: tuple[CatChoice, ...]
    trees: tuple[int, ...]

    @property
    def own_cycles(self) -> int:
        """The sum over all models, each at its own choice."""
        return sum(each.found.walk.chosen.cycles for each in self.models)


@dataclass(frozen=True)
class SearchResult(Table, forms="lstmsim.searches.result_text"):
    """What was searched (`cores`: their numbers; `rows`: Hw), what was found for all jobs at one EP, and, of several
    models, for each at its own."""

    scenario: str
    chip: str
    cores: tuple[int, ...]
    npe: int
    any_ep: bool
    jobs: int
    models: tuple[str, ...]
    rows: int
    common: Found
    mix: Mix | None
