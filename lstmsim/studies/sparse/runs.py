"""Runs of sparse products: one, the fastest of several, and rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.machines.kernels import SparseFigures, SparseKernels, SparseTask, SparseWork, Variant
from lstmsim.model.sparse.products import Values, largest_error
from lstmsim.studies.program.flat_runs import totals_of_flat

if TYPE_CHECKING:
    from lstmsim.model.scenario import Chip

__all__ = ["Asked", "Ran", "SparseRow", "error_of", "rows_of", "simulated"]


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


@dataclass(frozen=True, eq=False)
class Asked:
    """A product and where it runs.

    kernels: of the machine.
    chip: where.
    task: the product.
    engine: a key of `lstmsim.engines.ENGINES`.
    """

    kernels: SparseKernels
    chip: Chip
    task: SparseTask
    engine: str

    @property
    def columns(self) -> int:
        """Of the dense operand; of `sddmm` the length of the inner products."""
        first = self.task.operands[0]
        return first.shape[1] if first.ndim == 2 else 1


@dataclass(frozen=True, eq=False)
class Ran:
    """A product that was simulated.

    work: the program and its result.
    figures: what it came to.
    taken: which of several ways was the fastest; empty if there was one only.
    candidates: cycles of each of these ways without launches, by name.
    """

    work: SparseWork
    figures: SparseFigures
    taken: str = ""
    candidates: tuple[tuple[str, int], ...] = ()

    @property
    def said(self) -> tuple[str, ...]:
        """Which way was taken, in a sentence."""
        if not self.taken:
            return ()
        spans = ", ".join(f"{name} {cycles:,}" for name, cycles in self.candidates)
        return (f"{self.taken} was taken, the fastest of {len(self.candidates)}: cycles without launches {spans}",)


def simulated(asked: Asked, task: SparseTask) -> Ran:
    """Simulate a product; where its machine leaves a choice, each way, and the fastest is it, the first of equals.

    asked: where it runs.
    task: the product.
    """
    choices = asked.kernels.choices(asked.chip, task)
    if not choices:
        return _once(asked, task)
    best, candidates = None, []
    for each in choices:
        ran = replace(_once(asked, replace(task, method=each.method, options=each.options)), taken=each.name)
        candidates.append((each.name, ran.figures.span))
        if best is None or ran.figures.span < best.figures.span:
            best = ran
    assert best is not None
    return replace(best, candidates=tuple(candidates))


def _once(asked: Asked, task: SparseTask) -> Ran:
    work = asked.kernels.lower(asked.chip, task)
    return Ran(work, asked.kernels.figures(asked.chip, task, work, totals_of_flat(work.flat, work.names, asked.engine)))


def rows_of(asked: Asked, variants: Sequence[Variant]) -> tuple[SparseRow, ...]:
    """Simulate other ways to do a product; one that is refused is a row with the reason."""
    rows = []
    for each in variants:
        other = replace(asked.task, method=each.method, options=each.options)
        try:
            ran = simulated(asked, other)
            fastest = f", {ran.taken} (the fastest of {len(ran.candidates)})" if ran.taken else ""
            rows.append(SparseRow(f"{each.name}{fastest}", ran.figures, note=each.note, method=each.method))
        except InputError as error:
            rows.append(SparseRow(each.name, None, str(error).replace("\n", "; ")))
    return tuple(rows)


def error_of(task: SparseTask, figures: SparseFigures, result: Values | None) -> float | None:
    """How far a result is from a plain product; None if there is none."""
    if result is None:
        return None
    matrix = task.matrix
    if figures.options.get("mode") == "indicator":
        # positions count alone
        matrix = replace(matrix, values=matrix.values * 0 + 1)
    return largest_error(task.kernel, matrix, task.operands, result)
