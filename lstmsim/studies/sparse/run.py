"""Sparse products on a chip: simulated, computed, and compared with other ways to do the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lstmsim import engines
from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, must_be, nearest, show
from lstmsim.machines.kernels import SparseFigures, SparseKernels, SparseTask
from lstmsim.machines.registry import target_of
from lstmsim.model.sparse.csr import Csr
from lstmsim.model.sparse.products import Values, drawn_operands
from lstmsim.model.sparse.statistics import Statistics, lockstep_waste, statistics, takes_sparse_path
from lstmsim.report.results import Table
from lstmsim.studies.program.flat_runs import timeline_of
from lstmsim.studies.shared.arguments import refuse, wrong_number, wrong_whole
from lstmsim.studies.shared.loading import Path
from lstmsim.studies.shared.product_options import chip_of, options_from
from lstmsim.studies.simulate.run import check_engine
from lstmsim.studies.sparse.matrix import matrix_of
from lstmsim.studies.sparse.runs import Asked, Ran, SparseRow, error_of, rows_of, simulated
from lstmsim.studies.sparse.search import Search, search
from lstmsim.studies.sparse.sides import LEFT, as_asked, check_side, walked

if TYPE_CHECKING:
    from lstmsim.analysis.timeline import Timeline
    from lstmsim.model.scenario import Chip
    from lstmsim.program.flat import FlatProgram
    from lstmsim.program.flat_names import FlatNames
    from lstmsim.report.pictures.figures import Picture

__all__ = ["KERNELS", "SparseReport", "SparseRow", "plot_blocks", "run_sparse"]

#: The products, with what each one is.
KERNELS = {
    "spmv": "y = A x, A sparse",
    "spmm": "C = A B, A sparse",
    "sddmm": "D = (A B) o C, C sparse",
}
#: Most multiply-accumulates of a product beside which others are simulated without being asked for.
_MOST_BESIDE = 4_000_000


@dataclass(frozen=True, eq=False)
class SparseReport(Table, forms="lstmsim.studies.sparse.text"):
    """A sparse product that was simulated.

    source: where the matrix is from.
    matrix: the matrix as it was given.
    kernel, method: what was computed, and how.
    columns: of the dense operand; of `sddmm` the length of the inner products.
    seed: of the dense operands.
    side: which operand is sparse, and which way round, a key of `lstmsim.studies.sparse.sides.SIDES`.
    chip, engine: the chip, and the engine that ran.
    figures: what the run came to.
    result: what the lanes computed; None for a method that computes nothing of its own.
    error: largest difference from the product in 64-bit floating point, relative to the sum of the products' sizes.
    beside: other ways to do the same.
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
    beside: tuple[SparseRow, ...]
    ablations: tuple[SparseRow, ...]
    left_out: tuple[str, ...]
    meanings: Mapping[str, str]
    flat: FlatProgram
    names: FlatNames
    remarks: tuple[str, ...] = ()
    search: Search | None = None

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


def run_sparse(
    matrix: Path | Csr,
    kernel: str = "spmm",
    *,
    method: str | None = None,
    threshold: float | None = None,
    side: str = LEFT,
    columns: int = 32,
    chip: Path | Chip = "v100",
    chip_overrides: Sequence[str] = (),
    options: Sequence[str] | Mapping[str, Any] = (),
    prune: float | None = None,
    prune_by: str = "magnitude",
    banks: int = 4,
    block: int = 4,
    seed: int = 0,
    values_seed: int | None = None,
    baselines: bool | None = None,
    ablate: bool = False,
    best: bool = False,
    engine: str = "fast",
    progress: Callable[[int, int], None] | None = None,
) -> SparseReport:
    """Simulate a sparse product, and compute its result by the schedule that was simulated.

    matrix: a file (.mtx, .smtx, each also .gz), weights of a model (`resemblyzer:l1`), or a
    `lstmsim.model.sparse.csr.Csr`. kernel: a key of `KERNELS`. method: how; None: the machine's first one.
    threshold: instead of a method: the machine's first one if more than this fraction of it is zero, else `dense`.
    side: which operand is sparse, and which way round, a key of `lstmsim.studies.sparse.sides.SIDES`.
    columns: of the dense operand, its rows for side `right`; of `sddmm` the length of inner products; `spmv` has one.
    chip: a preset's name, a chip's file, or a chip. chip_overrides: texts like `"partitions=8"`.
    options: parameters of the kernel, as texts like `"tile=64"` or a mapping.
    prune: which fraction of a model's weights goes. prune_by, banks, block: as in
    `lstmsim.model.sparse.pruning.pruned`.
    seed: of the dense operands. values_seed: of the values of a file that has none; None: each is 1.
    baselines: whether other ways to do the same are simulated too; None: if the product is not too large.
    ablate: whether each mechanism is off in turn. best: whether the fastest setting is searched; `options` stay.
    engine: a key of `lstmsim.engines.ENGINES`. progress: is called with settings of a search: done, and known so far.

    `InputError` for a matrix or a parameter that is wrong, and for a chip that runs no sparse kernels.

    >>> report = run_sparse("silero-vad-16k:l0", "spmv", prune=0.9, chip="edge", baselines=False)
    >>> report.statistics.entries, report.result.shape, report.error < 1e-6
    (13108, (512,), True)
    """
    check_engine(engine)
    refuse(_wrong({"columns": columns, "banks": banks, "block": block}, {"seed": seed, "values_seed": values_seed}))
    refuse(wrong_number("prune", prune), wrong_number("threshold", threshold))
    ready = chip_of(chip, chip_overrides)
    kernels, chosen = _method(ready, kernel, method, threshold)
    check_side(kernel, side)
    read, about = matrix_of(matrix, prune, prune_by, banks, block, values_seed)
    chosen = chosen if threshold is None or takes_sparse_path(read, threshold) else "dense"
    operands = drawn_operands(kernel, walked(read, side), 1 if kernel == "spmv" else columns, seed)
    given = options_from(options, kernels.parameters(kernel, chosen))
    task = SparseTask(kernel, chosen, walked(read, side), operands, given)
    asked = Asked(kernels, ready, task, engine)
    report = _report(asked, search(asked, progress) if best else None, about, seed, baselines, ablate)
    return report if side == LEFT else replace(report, side=side, matrix=read, result=as_asked(report.result, side))


def _wrong(sizes: Mapping[str, int], seeds: Mapping[str, int | None]) -> list[Mistake]:
    """What is wrong with sizes, from 1 on, and seeds, from 0 on."""
    wrong = [each for name, value in sizes.items() for each in wrong_whole(name, value, 1, MAX_SIZE)]
    return wrong + [each for name, value in seeds.items() for each in wrong_whole(name, value or 0, 0, MAX_SIZE)]


def _report(
    asked: Asked, found: tuple[Ran, Search] | None, about: str, seed: int, baselines: bool | None, ablate: bool
) -> SparseReport:
    """The report of a product.

    found: the product in its fastest setting, and the search; None: it is simulated as it is asked.
    about: where the matrix is from.
    """
    if found is not None:
        asked = replace(asked, task=replace(asked.task, options={**asked.task.options, **found[1].chosen}))
    kernels, chip, task = asked.kernels, asked.chip, asked.task
    ran = simulated(asked, task) if found is None else found[0]
    remarks = (*ran.said, *ran.work.remarks, *_few_blocks(ran.figures))
    if baselines is None:
        baselines = task.matrix.entries * asked.columns <= _MOST_BESIDE
        if not baselines:
            remarks += ("other ways to do the same are left out, because the product is large: ask for baselines",)
    return SparseReport(
        source=about,
        matrix=task.matrix,
        kernel=task.kernel,
        method=task.method,
        columns=asked.columns,
        seed=seed,
        side=LEFT,
        chip=chip,
        engine=engines.running(asked.engine),
        figures=ran.figures,
        result=ran.work.result,
        error=error_of(task, ran.figures, ran.work.result),
        beside=rows_of(asked, kernels.baselines(chip, task) if baselines else ()),
        ablations=rows_of(asked, kernels.ablations(chip, task) if ablate else ()),
        left_out=tuple(kernels.left_out),
        meanings=kernels.meanings,
        flat=ran.work.flat,
        names=ran.work.names,
        remarks=remarks,
        search=None if found is None else found[1],
    )


def _few_blocks(figures: SparseFigures) -> tuple[str, ...]:
    """A sentence where the longest kernel has fewer thread blocks than there are cores."""
    longest = max(figures.kernels, key=lambda each: each.cycles, default=None)
    cores = len(figures.busy)
    if longest is None or not 0 < longest.blocks < cores:
        return ()
    count = f"{longest.blocks:,} thread block" + ("" if longest.blocks == 1 else "s")
    return (
        f"kernel {longest.name} has {count} for {cores:,} cores: the others have nothing to do in it; parameters that "
        "divide the work into smaller blocks use more of them",
    )


def _method(chip: Chip, kernel: str, method: str | None, threshold: float | None) -> tuple[SparseKernels, str]:
    """The kernels of a chip, and the method; `InputError` if there is no such thing."""
    if threshold is not None and method is not None:
        raise InputError(Mistake("threshold", f"chooses the method; {show(method)} is chosen already"))
    if kernel not in KERNELS:
        raise InputError(Mistake("kernel", must_be(kernel, KERNELS)))
    kernels = target_of(chip.kind).sparse_kernels()
    if kernels is None:
        raise InputError(Mistake(f"chip {chip.name}", "its machine runs no kernels for sparse matrices"))
    methods = kernels.methods[kernel]
    if method is not None and method not in methods:
        text = f"{kernel} has {listed(methods)}, got {show(method)}{nearest(str(method), methods)}"
        raise InputError(Mistake("method", text))
    return kernels, next(iter(methods)) if method is None else method


def plot_blocks(report: SparseReport, path: Path | None = None) -> Picture:
    """Draw the blocks of each core over time, and how much each core has issued.

    path: the picture's file (.png, .svg or .pdf); None: no file.
    """
    from lstmsim.report.pictures import blocks as plots

    title = f"{report.kernel} by {report.method} on {report.chip.name}: {report.figures.makespan:,} cycles"
    return plots.plot(report.figures.blocks, report.figures.busy, path, title=title)
