"""Sparse products on a chip: simulated, computed, and compared with other ways to do the same."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lstmsim import engines
from lstmsim.api.arguments import refuse, wrong_number, wrong_whole
from lstmsim.api.loading import Path
from lstmsim.api.run import check_engine
from lstmsim.api.sparse_options import chip_of, matrix_of, options_from
from lstmsim.bounds import MAX_SIZE
from lstmsim.errors import InputError, Mistake
from lstmsim.metrics.accounts import totals_of
from lstmsim.program.totals import Totals
from lstmsim.program.unflatten import program_of
from lstmsim.records import record
from lstmsim.results import Table
from lstmsim.sparse.csr import Csr
from lstmsim.sparse.products import Values, drawn_operands, largest_error
from lstmsim.sparse.statistics import Statistics, lockstep_waste, statistics
from lstmsim.targets.registry import target_of
from lstmsim.targets.sparse import SparseFigures, SparseKernels, SparseTask, SparseWork, Variant
from lstmsim.wording import listed, nearest, show

if TYPE_CHECKING:
    from lstmsim.plots.figures import Picture
    from lstmsim.workload.scenario import Chip

__all__ = ["KERNELS", "SparseReport", "SparseRow", "plot_blocks", "run_sparse", "save_result"]

#: The products, with what each one is.
KERNELS = {
    "spmv": "y = A x, A sparse",
    "spmm": "C = A B, A sparse",
    "sddmm": "D = (A B) o C, C sparse",
}
#: Most multiply-accumulates of a product beside which others are simulated without being asked for.
_MOST_BESIDE = 4_000_000


@record
class SparseRow:
    """Another way to do the same product.

    name: what is different.
    figures: what it came to; None: it was refused.
    refused: why it was refused; empty if it was not.
    """

    name: str
    figures: SparseFigures | None
    refused: str = ""


@dataclass(frozen=True, eq=False)
class SparseReport(Table, forms="lstmsim.api.sparse_text"):
    """A sparse product that was simulated.

    source: where the matrix is from.
    matrix: the matrix.
    kernel, method: what was computed, and how.
    columns: of the dense operand; of `sddmm` the length of the inner products.
    seed: of the dense operands.
    chip, engine: the chip, and the engine that ran.
    figures: what the run came to.
    result: what the lanes computed; None for a method that computes nothing of its own.
    error: largest difference from the product in 64-bit floating point, relative to the sum of the products' sizes.
    beside: other ways to do the same.
    ablations: the same with each mechanism off in turn.
    left_out: sentences on what is not modelled.
    meanings: what each name among the counts means.
    remarks: further sentences.
    """

    source: str
    matrix: Csr
    kernel: str
    method: str
    columns: int
    seed: int
    chip: Chip
    engine: str
    figures: SparseFigures
    result: Values | None
    error: float | None
    beside: tuple[SparseRow, ...]
    ablations: tuple[SparseRow, ...]
    left_out: tuple[str, ...]
    meanings: Mapping[str, str]
    remarks: tuple[str, ...] = ()

    @cached_property
    def statistics(self) -> Statistics:
        """Size, sparsity and row lengths of the matrix."""
        return statistics(self.matrix)

    @cached_property
    def waste(self) -> tuple[float, float]:
        """Lockstep waste of bundles of 4 rows, in their order and sorted by length."""
        lengths = self.matrix.lengths
        order = (-lengths).argsort(kind="stable")
        return lockstep_waste(lengths, 4), lockstep_waste(lengths[order], 4)


def run_sparse(
    matrix: Path | Csr,
    kernel: str = "spmm",
    *,
    method: str | None = None,
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
    engine: str = "fast",
) -> SparseReport:
    """Simulate a sparse product, and compute its result by the schedule that was simulated.

    matrix: a file (.mtx, .smtx, each also .gz), weights of a model (`resemblyzer:l1`), or a `lstmsim.sparse.csr.Csr`.
    kernel: a key of `KERNELS`. method: how; None: the machine's first one.
    columns: of the dense operand; of `sddmm` the length of the inner products; of `spmv` there is one.
    chip: a preset's name, a chip's file, or a chip. chip_overrides: texts like `"partitions=8"`.
    options: parameters of the kernel, as texts like `"tile=64"` or a mapping.
    prune: which fraction of a model's weights goes. prune_by, banks, block: as in `lstmsim.sparse.pruning.pruned`.
    seed: of the dense operands. values_seed: of the values of a file that has none; None: each is 1.
    baselines: whether other ways to do the same are simulated too; None: if the product is not too large.
    ablate: whether it is simulated with each mechanism off in turn.
    engine: a key of `lstmsim.engines.ENGINES`.

    `InputError` for a matrix or a parameter that is wrong, and for a chip that runs no sparse kernels.

    >>> report = run_sparse("silero-vad-16k:l0", "spmv", prune=0.9, chip="edge", baselines=False)
    >>> report.statistics.entries, report.result.shape, report.error < 1e-6
    (13108, (512,), True)
    """
    check_engine(engine)
    wholes = {"columns": (columns, 1), "banks": (banks, 1), "block": (block, 1)}
    wholes |= {"seed": (seed, 0), "values_seed": (values_seed or 0, 0)}
    wrong = [each for name, (value, low) in wholes.items() for each in wrong_whole(name, value, low, MAX_SIZE)]
    refuse(wrong, wrong_number("prune", prune))
    ready = chip_of(chip, chip_overrides)
    kernels, chosen = _method(ready, kernel, method)
    read, about = matrix_of(matrix, prune, prune_by, banks, block, values_seed)
    operands = drawn_operands(kernel, read, 1 if kernel == "spmv" else columns, seed)
    task = SparseTask(kernel, chosen, read, operands, options_from(options, kernels.parameters(kernel, chosen)))
    return _report(_Asked(kernels, ready, task, engine), about, seed, baselines, ablate)


@dataclass(frozen=True, eq=False)
class _Asked:
    """A product and where it runs."""

    kernels: SparseKernels
    chip: Chip
    task: SparseTask
    engine: str

    @property
    def columns(self) -> int:
        """Of the dense operand; of `sddmm` the length of the inner products."""
        first = self.task.operands[0]
        return first.shape[1] if first.ndim == 2 else 1


def _report(asked: _Asked, about: str, seed: int, baselines: bool | None, ablate: bool) -> SparseReport:
    """The report of a product.

    about: where the matrix is from.
    """
    kernels, chip, task = asked.kernels, asked.chip, asked.task
    work, figures = _simulated(asked, task)
    remarks: tuple[str, ...] = ()
    if baselines is None:
        baselines = task.matrix.entries * asked.columns <= _MOST_BESIDE
        if not baselines:
            remarks = ("other ways to do the same are left out, because the product is large: ask for baselines",)
    return SparseReport(
        source=about,
        matrix=task.matrix,
        kernel=task.kernel,
        method=task.method,
        columns=asked.columns,
        seed=seed,
        chip=chip,
        engine=engines.running(asked.engine),
        figures=figures,
        result=work.result,
        error=None if work.result is None else _error(task, figures, work.result),
        beside=_rows(asked, kernels.baselines(chip, task) if baselines else ()),
        ablations=_rows(asked, kernels.ablations(chip, task) if ablate else ()),
        left_out=tuple(kernels.left_out),
        meanings=kernels.meanings,
        remarks=remarks,
    )


def _method(chip: Chip, kernel: str, method: str | None) -> tuple[SparseKernels, str]:
    """The kernels of a chip, and the method; `InputError` if there is no such thing."""
    if kernel not in KERNELS:
        text = f"must be {listed(KERNELS)}, got {show(kernel)}{nearest(str(kernel), KERNELS)}"
        raise InputError(Mistake("kernel", text))
    kernels = target_of(chip.kind).sparse_kernels()
    if kernels is None:
        raise InputError(Mistake(f"chip {chip.name}", "its machine runs no kernels for sparse matrices"))
    methods = kernels.methods[kernel]
    if method is not None and method not in methods:
        text = f"{kernel} has {listed(methods)}, got {show(method)}{nearest(str(method), methods)}"
        raise InputError(Mistake("method", text))
    return kernels, next(iter(methods)) if method is None else method


def _simulated(asked: _Asked, task: SparseTask) -> tuple[SparseWork, SparseFigures]:
    work = asked.kernels.lower(asked.chip, task)
    return work, asked.kernels.figures(asked.chip, task, work, _totals(work, asked.engine))


def _totals(work: SparseWork, engine: str) -> Totals:
    if engines.running(engine) == "fast":
        return engines.totals(work.flat, check=False)
    program = program_of(work.flat, work.names)
    return totals_of(program, engines.run(program, engine, check=False))


def _rows(asked: _Asked, variants: Sequence[Variant]) -> tuple[SparseRow, ...]:
    rows = []
    for each in variants:
        other = replace(asked.task, method=each.method, options=each.options)
        try:
            rows.append(SparseRow(each.name, _simulated(asked, other)[1]))
        except InputError as error:
            rows.append(SparseRow(each.name, None, str(error).replace("\n", "; ")))
    return tuple(rows)


def _error(task: SparseTask, figures: SparseFigures, result: Values) -> float:
    """How far a result is from a plain product."""
    matrix = task.matrix
    if figures.options.get("mode") == "indicator":
        # positions count alone
        matrix = replace(matrix, values=matrix.values * 0 + 1)
    return largest_error(task.kernel, matrix, task.operands, result)


def save_result(report: SparseReport, path: Path) -> None:
    """Write what the lanes computed as a NumPy file (`.npy`); of `sddmm` one number for each entry of the matrix.

    `InputError` for a method that computes nothing of its own.
    """
    from lstmsim.formats.matrices import write_array

    if report.result is None:
        text = f"{report.method} is a baseline: it is timed, and computes nothing here"
        raise InputError(Mistake(f"result {os.fspath(path)}", text))
    write_array(path, report.result)


def plot_blocks(report: SparseReport, path: Path | None = None) -> Picture:
    """Draw the blocks of each core over time, and how much each core has issued.

    path: the picture's file (.png, .svg or .pdf); None: no file.
    """
    from lstmsim.plots import blocks as plots

    title = f"{report.kernel} by {report.method} on {report.chip.name}: {report.figures.makespan:,} cycles"
    return plots.plot(report.figures.blocks, report.figures.busy, path, title=title)
