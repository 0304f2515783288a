"""The result of a search: frozen numbers. Its text and JSON are in `lstmsim.studies.search.report`."""

from __future__ import annotations

from dataclasses import dataclass, field

from lstmsim.report.results import Table
from lstmsim.report.stamp import Stamp


@dataclass(frozen=True)
class Point:
    """One simulated (EP, VP).

    bound: the constraint that gave VP: `Hw`, `NPE/EP`, `both`, or `blocks` for a narrower VP.
    cycles: the makespan.
    utilization, hazard: shares of the PE-cycles of the searched cores, 0 to 1.
    """

    ep: int
    vp: int
    bound: str
    cycles: int
    utilization: float
    hazard: float

    @property
    def key(self) -> tuple[int, int, int]:
        """Sort the fewest cycles first; of equals the smallest EP (the flattest adder tree), then the smallest VP."""
        return self.cycles, self.ep, self.vp


@dataclass(frozen=True)
class Refused:
    """A pair that cannot be simulated, and why: `too_large` if the machine could run it, but too long to simulate."""

    ep: int
    vp: int
    reason: str
    too_large: bool = False


@dataclass(frozen=True)
class Walk:
    """The course of the greedy search.

    path, refined: every EP in the order in which it was tried; then EPs that are no powers of two.
    refused: pairs that could not be simulated.
    chosen, stopped: the best point, and why the walk ended.
    """

    path: tuple[Point, ...]
    refined: tuple[Point, ...]
    refused: tuple[Refused, ...]
    chosen: Point
    stopped: str


@dataclass(frozen=True)
class Exhaustive:
    """The best of all pairs of which no two have the same cycles by construction.

    simulated, refused: how many were simulated, and could not be.
    pairs: how many there are.
    excluded: how many were left out because their tiles alone take longer than the best.
    proven: whether no pair is better: each was simulated or excluded, or cannot run.
    """

    simulated: int
    refused: int
    optimum: Point
    pairs: int
    excluded: int
    proven: bool


@dataclass(frozen=True)
class Found:
    """The results for some jobs: of the greedy search, and, if asked for, of all pairs."""

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
    """A model of a mix, its jobs simulated alone: its own best pair, and its cycles at the EP chosen for all jobs."""

    model: str
    jobs: int
    found: Found
    cycles_at_common_ep: int


@dataclass(frozen=True)
class CatChoice:
    """The best tree for one CAT-n: every model takes the best EP among `tree_inputs`, `/2`, ... `/cat`.

    eps: of the models, in their order.
    cycles: the sum of the models' single runs.
    """

    cat: int
    tree_inputs: int
    eps: tuple[int, ...]
    cycles: int


@dataclass(frozen=True)
class Mix:
    """Several models on one array, each at an EP of its own.

    models: each searched alone.
    sufficient: the least CAT-n with a tree on which the models take no more cycles in sum; None if there is no such
        tree.
    cats: the best of the trees tried for smaller CATs, up to the sufficient one.
    trees: the inputs of the trees tried.
    """

    models: tuple[ModelChoice, ...]
    sufficient: CatChoice | None
    cats: tuple[CatChoice, ...]
    trees: tuple[int, ...]

    @property
    def own_cycles(self) -> int:
        """The sum of cycles over all models, each at its own choice."""
        return sum(each.found.walk.chosen.cycles for each in self.models)


@dataclass(frozen=True)
class SearchResult(Table, forms="lstmsim.studies.search.report"):
    """The result of a search.

    scenario, chip, cores, npe: what was searched; numbers of cores, multipliers of each.
    any_ep: whether EPs that are no powers of two were tried too.
    jobs, models: how many jobs there are, and the models that run on the searched cores.
    rows: Hw.
    common: the best for all jobs at one EP.
    mix: of several models, the best for each at its own EP; None for a single model.
    stamp: what the cycles are exact against, and which keys are assumptions.
    """

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
    stamp: Stamp | None = field(default=None, compare=False, repr=False)
