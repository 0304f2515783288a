"""A threaded matrix product that was planned and simulated, and the divisions that it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lstmsim import engines
from lstmsim.analysis.timeline import build_timeline
from lstmsim.base.records import record
from lstmsim.machines.gemm import CACHES, Cut, Division, GemmFigures, GemmPlan, GemmTask, Product
from lstmsim.machines.registry import capability
from lstmsim.model.numerics.matrices import Matrix, digest
from lstmsim.program.program import Program
from lstmsim.report.results import Table
from lstmsim.report.stamp import Stamp
from lstmsim.studies.shared.stamp import stamp_of
from lstmsim.studies.simulate.run import refuse_long_trace

if TYPE_CHECKING:
    from lstmsim.analysis.timeline import Timeline
    from lstmsim.model.scenario import Chip

#: What the plan is called that follows from sizes alone.
BY_SHAPES = "the plan by sizes alone"


@record
class GemmRow:
    """A division of the product that was simulated; its figures by what lay in the caches (`CACHES`)."""

    name: str
    division: Division
    figures: Mapping[str, GemmFigures]

    @property
    def cut(self) -> Cut:
        """The block of each thread."""
        return self.division.cut

    def cycles(self, caches: str) -> int:
        """The makespan."""
        return self.figures[caches].makespan


@dataclass(frozen=True, eq=False)
class Baselines:
    """Divisions of one product that were simulated, each with its own sub-blocks and buffer.

    ran: the fastest of all that was simulated, or a cut or relief that was asked for.
    planned: the plan, which the planner's rule gives before anything is simulated.
    plans: the plan for each state of the caches, a key of `lstmsim.machines.gemm.CACHES`; of these, one is `planned`.
    by_shapes: the plan that follows from sizes alone; None: the plan is compared with nothing.
    candidates: in the order of rank; None: it was left out.
    pairs: cuts of rows and columns alone, the first one by BLIS's rule.
    pairs_known: how many of these there are.
    ablations: the cut of `ran` under each relief.
    simulated: everything that was simulated, each division once, plans first, then candidates by rank.
    left_out: how many candidates and pairs were not.
    remarks: what was left out, in sentences.
    """

    ran: GemmRow
    planned: GemmRow
    plans: Mapping[str, GemmRow]
    by_shapes: GemmRow | None
    candidates: tuple[GemmRow | None, ...]
    pairs: tuple[GemmRow, ...]
    pairs_known: int
    ablations: tuple[GemmRow, ...]
    simulated: tuple[GemmRow, ...]
    left_out: int
    remarks: tuple[str, ...]

    def fastest(self, caches: str) -> GemmRow:
        """The fastest of everything that was simulated; of equals the plan for such caches, then the first in rank."""
        plan = self.plans[caches].division
        return min(self.simulated, key=lambda each: (each.cycles(caches), each.division != plan))

    @property
    def blis(self) -> GemmRow | None:
        """The pair by BLIS's rule; None: the plan is compared with nothing."""
        return self.pairs[0] if self.pairs else None

    def best_pair(self, caches: str) -> GemmRow | None:
        """The fastest pair; of equals the plan for such caches, else the first. None: not all were simulated."""
        if len(self.pairs) < self.pairs_known:
            return None
        plan = self.plans[caches].division
        return min(self.pairs, key=lambda each: (each.cycles(caches), each.division != plan))

    def regret(self, caches: str) -> float | None:
        """How much longer than the fastest that was simulated the plan for such caches takes, relative to that.

        None: not every candidate and every pair was simulated.
        """
        if self.left_out:
            return None
        return self.plans[caches].cycles(caches) / self.fastest(caches).cycles(caches) - 1


@dataclass(frozen=True, eq=False)
class Computed:
    """What the threads of a division computed.

    integers_equal: whether the product of drawn integers is exactly numpy's.
    kind: numpy's name of the type of the other product.
    result: that product, of shape (m, n).
    error: its largest difference from the product in 64-bit floating point, relative to the sum of the products' sizes.
    """

    integers_equal: bool
    kind: str
    result: Matrix
    error: float

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes of the result, row by row."""
        return digest(self.result)


@dataclass(frozen=True, eq=False)
class GemmReport(Table, forms="lstmsim.studies.gemm.report"):
    """A matrix product on several cores that was planned and simulated; the fastest cut runs, unless one was given.

    source: where the sizes are from; empty: they were given.
    chip, engine: where, and which engine ran.
    task: the product, its threads, the state of the caches, the parameters of the planner that were given.
    relief: how threads that add into the same block keep out of each other's way, of `lstmsim.machines.gemm.RELIEFS`.
    plan: the plan, with all that led to it.
    baselines: what ran, and other divisions of the product.
    computed: what the threads computed; None: it was left out.
    seed: of the operands.
    remarks: further sentences.
    cut: the cut that was given; None: none.
    """

    source: str
    chip: Chip
    task: GemmTask
    engine: str
    relief: str
    plan: GemmPlan
    baselines: Baselines
    computed: Computed | None
    seed: int
    remarks: tuple[str, ...] = ()
    cut: Cut | None = None

    @property
    def stamp(self) -> Stamp:
        """What the cycles are exact against, and which keys are assumptions."""
        return stamp_of(self.chip)

    @property
    def otherwise(self) -> str:
        """In words, what was asked for: a cut, a relief; empty: the fastest runs."""
        cut = "" if self.cut is None else f"cut {self.cut.short}"
        relief = "" if self.relief == "plan" else f"relief {self.relief}"
        return " with ".join(filter(None, (cut, relief)))

    @property
    def machine(self) -> Any:
        """The machine's functions for products: bytes of a line, what is not modelled, what parameters mean."""
        return capability(self.chip.kind, "gemm")

    @property
    def settings(self) -> Mapping[str, Any]:
        """All parameters of the planner."""
        return {**self.machine.PARAMETERS, **self.task.settings}

    @cached_property
    def program(self) -> Program:
        """The program that ran."""
        program: Program = self.machine.lower(self.chip, self.task, self.division).program
        return program

    @property
    def product(self) -> Product:
        """M, N and K."""
        return self.task.product

    @property
    def threads(self) -> int:
        """On how many cores it runs."""
        return self.task.threads

    @property
    def caches(self) -> str:
        """What lay in the caches, of `lstmsim.machines.gemm.CACHES`."""
        return self.task.caches

    @property
    def division(self) -> Division:
        """The division that ran."""
        return self.baselines.ran.division

    @property
    def figures(self) -> GemmFigures:
        """The figures of the run."""
        return self.baselines.ran.figures[self.caches]

    @property
    def other_caches(self) -> str:
        """The other state of the caches, which is simulated too."""
        return next(each for each in CACHES if each != self.caches)

    @property
    def planned_cycles(self) -> int:
        """The makespan of the plan, also where something else ran."""
        return self.baselines.planned.cycles(self.caches)

    @property
    def peak(self) -> int:
        """Multiply-accumulates that the cores of the threads can do in a cycle."""
        return sum(each.peak for each in self.chip.core_figures[: self.threads])

    @property
    def utilization(self) -> float:
        """Useful multiply-accumulates over those that the cores of the threads could have done."""
        return self.product.macs / (self.peak * self.figures.makespan)

    @property
    def result(self) -> Any:
        """C as the threads computed it, of shape (m, n); None: it was left out."""
        return None if self.computed is None else self.computed.result

    @property
    def no_result(self) -> str:
        """Why there is no result, if there is none."""
        return "left out: C is computed for small products, and where numbers are asked for"

    @cached_property
    def timeline(self) -> Timeline:
        """What happened cycle by cycle, for pictures and trace files; the product runs once more for it.

        `InputError` if there are too many operations.
        """
        bodies = (phase.body for task in self.program.tasks for _, phases in task.variants for phase in phases)
        refuse_long_trace(sum(len(each.operations) for each in bodies))
        trace = engines.run(self.program, self.engine, check=False)
        unit = self.chip.core_figures[0].unit.name
        names = [task.name for task in self.program.tasks]
        return build_timeline(self.program, trace, names, self.chip.name, self.chip.frequency_mhz, unit)
