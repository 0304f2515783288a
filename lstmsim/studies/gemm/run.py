"""Threads for a matrix product on a multi-core chip: planned, simulated, computed, and compared with other cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lstmsim import engines
from lstmsim.analysis.spans import build_timeline
from lstmsim.machines.gemm import (
    CACHES,
    RELIEFS,
    Cut,
    Division,
    GemmFigures,
    GemmPlan,
    GemmTask,
    GemmThreads,
    Product,
    check_word,
)
from lstmsim.program.program import Program
from lstmsim.report.results import Table
from lstmsim.studies.gemm.asked import asked_for, shape_asked
from lstmsim.studies.gemm.beside import Beside, beside_plan
from lstmsim.studies.gemm.cut import cut_and_threads, cut_for
from lstmsim.studies.gemm.numbers import Computed, computed
from lstmsim.studies.gemm.runs import Asked, Progress, work_of
from lstmsim.studies.shared.arguments import refuse, wrong_whole
from lstmsim.studies.shared.loading import Path
from lstmsim.studies.simulate.run import check_engine, refuse_long_trace

if TYPE_CHECKING:
    from lstmsim.analysis.timeline import Timeline
    from lstmsim.model.model import Model
    from lstmsim.model.scenario import Chip
    from lstmsim.report.pictures.figures import Picture

__all__ = ["GemmReport", "plot_threads", "run_gemm"]


@dataclass(frozen=True, eq=False)
class GemmReport(Table, forms="lstmsim.studies.gemm.text"):
    """A matrix product on several cores that was planned and simulated; the fastest cut runs, unless one was given.

    source: where the sizes are from; empty: they were given.
    asked: the product, its threads, the state of the caches, parameters of the planner, the chip, the engine that ran.
    relief: how threads that add into the same block keep out of each other's way, of `lstmsim.machines.gemm.RELIEFS`.
    plan: the plan, with all that led to it.
    beside: what ran, and other divisions of the product.
    computed: what the threads computed; None: it was left out.
    seed: of the operands.
    remarks: further sentences.
    cut: the cut that was given; None: none.
    """

    source: str
    asked: Asked
    relief: str
    plan: GemmPlan
    beside: Beside
    computed: Computed | None
    seed: int
    remarks: tuple[str, ...] = ()
    cut: Cut | None = None

    @property
    def otherwise(self) -> str:
        """In words, what was asked for: a cut, a relief; empty: the fastest runs."""
        cut = "" if self.cut is None else f"cut {self.cut.short}"
        relief = "" if self.relief == "plan" else f"relief {self.relief}"
        return " with ".join(filter(None, (cut, relief)))

    @property
    def task(self) -> GemmTask:
        """The product, its threads, the state of the caches, and the parameters of the planner that were given."""
        return self.asked.task

    @property
    def chip(self) -> Chip:
        """The chip."""
        return self.asked.chip

    @property
    def engine(self) -> str:
        """The engine that ran."""
        return self.asked.engine

    @property
    def machine(self) -> GemmThreads:
        """What the machine says about threads: bytes of a line, what is not modelled, what parameters mean."""
        return self.asked.threads

    @property
    def settings(self) -> Mapping[str, Any]:
        """All parameters of the planner."""
        return {**self.machine.parameters, **self.task.settings}

    @cached_property
    def program(self) -> Program:
        """The program that ran."""
        return work_of(self.asked, self.division, self.caches).program

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
        """What ran."""
        return self.beside.ran.division

    @property
    def figures(self) -> GemmFigures:
        """What the run came to."""
        return self.beside.ran.figures[self.caches]

    @property
    def other_caches(self) -> str:
        """The other state of the caches, which is simulated too."""
        return next(each for each in CACHES if each != self.caches)

    @property
    def planned_cycles(self) -> int:
        """The makespan of the plan, also where something else ran."""
        return self.beside.planned.cycles(self.caches)

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


def run_gemm(
    m: int | None = None,
    n: int | None = None,
    k: int | None = None,
    *,
    model: Path | Model | None = None,
    product: str = "step",
    layer: int = 0,
    batch: int = 1,
    steps: int | None = None,
    part: int | None = None,
    threads: int | None = None,
    chip: Path | Chip = "epyc-7742",
    chip_overrides: Sequence[str] = (),
    caches: str = "warm",
    packed: str | None = None,
    cut: str | Cut | None = None,
    relief: str = "plan",
    settings: Sequence[str] | Mapping[str, Any] = (),
    baselines: bool | None = None,
    ablate: bool = False,
    numbers: bool | None = None,
    seed: int = 0,
    engine: str = "fast",
    progress: Progress | None = None,
) -> GemmReport:
    """Plan threads for C = A B, simulate the plan and other cuts, and compute C in the order of the fastest one.

    m, n, k: rows of C, columns of C, length of the sums.
    model: a model instead of sizes: a name, a file or a `Model`. product: which one of its layer, a key of
        `gemm.shapes.PRODUCTS`. layer, batch, steps, part: as in `gemm.shapes.shape_of_layer`.
    threads: on how many cores; None: as many as `cut` has parts, or on all of the chip.
    chip: a preset's name, a chip's file, or a chip. chip_overrides: texts like `"frequency_mhz=2000"`.
    caches: what lies in them, of `lstmsim.machines.gemm.CACHES`; both are simulated. packed: when B is packed, of
        `lstmsim.machines.gemm.PACKED`; None: once, as a job does, but each for a gradient.
    cut: runs in place of the fastest: `"MK:4x1x16"` (kind, p_m x p_n x p_k), with sizes of blocks
        `"MK:4x1x16:8x512x264"`, or a `Cut`. relief: in place of the planner's, of `lstmsim.machines.gemm.RELIEFS`.
    settings: parameters of the planner, as texts like `"contention=4"` or a mapping.
    baselines: whether the other candidates and all M/N pairs are simulated, numbers: whether C is computed and compared
        with numpy; None: if the product is not too large. ablate: whether the cut is simulated under each relief.
    seed: of the operands. engine: of `lstmsim.engines.ENGINES`. progress: is called with simulations done and in all.

    `InputError` for sizes, threads, cuts or settings that are wrong, and for a chip that has no threads for products.

    >>> report = run_gemm(8, 64, 64, threads=4, baselines=False)
    >>> report.figures.makespan > 0, report.computed.integers_equal
    (True, True)
    """
    check_engine(engine)
    check_word("relief", relief, RELIEFS)
    refuse(wrong_whole("seed", seed, 0))
    layer_of = {"product": product, "layer": layer, "batch": batch, "steps": steps, "part": part}
    shape = shape_asked((m, n, k), model, layer_of)
    given, threads = cut_and_threads(cut, threads)
    asked = asked_for(shape, threads, chip, chip_overrides, caches, settings, engines.running(engine), packed)
    plan = asked.threads.plan(asked.chip, asked.task)
    own = cut_for(asked, given)
    beside = beside_plan(asked, plan, relief, baselines, ablate, progress, own)
    done = computed(asked, beside.ran.division, numbers, seed)
    return GemmReport(shape.source, asked, relief, plan, beside, done, seed, (*shape.remarks, *beside.remarks), own)


def plot_threads(report: GemmReport, path: Path | None = None) -> Picture:
    """Draw what each thread does over time: compute, wait for C, for the memory, for the others.

    path: the picture's file (.png, .svg or .pdf); None: no file.
    """
    from lstmsim.studies.gemm import picture as plots

    sizes = f"{report.product.m:,} x {report.product.n:,} x {report.product.k:,} (M x N x K)"
    cycles = f"{report.caches} caches: {report.figures.makespan:,} cycles"
    relief = "" if report.relief == "plan" else f", relief {report.relief},"
    title = f"{sizes} by {report.division.cut.short}{relief} on {report.chip.name}, {cycles}"
    return plots.plot(report.timeline, report.figures.finish, path, title=title)
