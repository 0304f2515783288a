"""A sparse product that was simulated, other ways to do it, and the settings that were searched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lstmsim.base.records import record
from lstmsim.machines.kernels import Settings, SparseFigures
from lstmsim.model.sparse.csr import Csr, Statistics, lockstep_waste, statistics
from lstmsim.model.sparse.made import Values
from lstmsim.report.results import Table
from lstmsim.report.stamp import Stamp
from lstmsim.studies.program.run import timeline_of
from lstmsim.studies.shared.stamp import stamp_of
from lstmsim.studies.sparse.asked import walked

if TYPE_CHECKING:
    from lstmsim.analysis.timeline import Timeline
    from lstmsim.model.scenario import Chip
    from lstmsim.program.flat import FlatProgram
    from lstmsim.program.flatten import FlatNames


@record
class SparseRow:
    """Another way to do the same product.

    name: what is different.
    figures: what it came to; None: it was refused.
    refused: why it was refused; empty if it was not.
    note: what is and is not in its cycles, where it does not do all of the product.
    method: how, as in `SparseTask`.
    """

    name: str
    figures: SparseFigures | None
    refused: str = ""
    note: str = ""
    method: str = ""


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


def _cycles(tried: Tried) -> float:
    return float("inf") if tried.cycles is None else tried.cycles


@dataclass(frozen=True, eq=False)
class SparseReport(Table, forms="lstmsim.studies.sparse.report"):
    """A sparse product that was simulated.

    source: where the matrix is from.
    matrix: the matrix as it was given.
    kernel, method: what was computed, and how.
    columns: of the dense operand; of `sddmm` the length of the inner products.
    seed: of the dense operands.
    side: which operand is sparse, and which way round, a key of `lstmsim.studies.sparse.asked.SIDES`.
    chip, engine: the chip, and the engine that ran.
    figures: what the run came to.
    result: what the lanes computed; None for a method that computes nothing of its own.
    error: largest difference from the product in 64-bit floating point, relative to the sum of the products' sizes.
    baselines: other ways to do the same.
    ablations: the same with each mechanism off in turn.
    left_out: sentences on what is not modelled.
    meanings: what each name among the counts means.
    flat, names: the program that ran.
    remarks: further sentences.
    search: the settings that were searched, of which this run has the fastest; None: no search was asked for.
    """

    source: str
    matrix: Csr
    kernel: str
    method: str
    columns: int
    seed: int
    side: str
    chip: Chip
    engine: str
    figures: SparseFigures
    result: Values | None
    error: float | None
    baselines: tuple[SparseRow, ...]
    ablations: tuple[SparseRow, ...]
    left_out: tuple[str, ...]
    meanings: Mapping[str, str]
    flat: FlatProgram
    names: FlatNames
    remarks: tuple[str, ...] = ()
    search: Search | None = None

    @property
    def stamp(self) -> Stamp:
        """What the cycles are exact against, and which keys are assumptions."""
        return stamp_of(self.chip)

    @cached_property
    def walked(self) -> Csr:
        """The matrix whose rows the kernel walks: the given one, or it transposed."""
        return walked(self.matrix, self.side)

    @cached_property
    def statistics(self) -> Statistics:
        """Size, sparsity and row lengths of the matrix as it was given."""
        return statistics(self.matrix)

    @cached_property
    def waste(self) -> tuple[float, float]:
        """Lockstep waste of bundles of 4 rows that are walked, in their order and sorted by length."""
        lengths = self.walked.lengths
        order = (-lengths).argsort(kind="stable")
        return lockstep_waste(lengths, 4), lockstep_waste(lengths[order], 4)

    @property
    def no_result(self) -> str:
        """Why there is no result, if there is none."""
        return f"{self.method} is a baseline: it is timed, and computes nothing here"

    @cached_property
    def timeline(self) -> Timeline:
        """What happened cycle by cycle, for trace files; the product runs once more for it.

        `InputError` if there are too many operations.
        """
        return timeline_of(self.flat, self.names, self.chip, self.engine)
