"""SpMM: C = A B with a sparse A, and its other sides (docs/sparse_kernels.md, section 3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.parallel.device import Device
from lstmsim.machines.parallel.kernel import Kernel, KernelShape, Run
from lstmsim.machines.parallel.kernels.csr.ordered import add_in_order
from lstmsim.machines.parallel.kernels.csr.rows import RowsMade, addressable, default_vector
from lstmsim.machines.parallel.kernels.csr.segments import written
from lstmsim.machines.parallel.kernels.csr.spmm_plan import SpmmOptions, SpmmPlan, spmm_plan
from lstmsim.machines.parallel.kernels.csr.spmm_strips import Held, Strips
from lstmsim.machines.parallel.kernels.csr.spmm_text import SpmmText
from lstmsim.machines.parallel.writing.fragments import glued
from lstmsim.machines.parallel.writing.streams import Grid, joined
from lstmsim.model.sparse.csr import Csr, transposed
from lstmsim.model.sparse.products import number_type
from lstmsim.model.sparse.ranges import firsts
from lstmsim.model.sparse.statistics import lockstep_waste

__all__ = ["SpmmOptions", "spmm", "spmm_sparse_right", "spmm_transposed"]

Values = NDArray[Any]
#: Addresses that a piece of a kernel has in hand for each line of its text.
_AT_ONCE = 1 << 19
_BLOCKS = 1 << 14


def spmm(matrix: Csr, dense: Values | int, options: SpmmOptions, device: Device) -> RowsMade:
    """C = A B on a device.

    matrix: A.
    dense: B, shape (columns of A, N), or only N: then nothing is computed.
    options: parameters of the kernel.
    device: whose lanes it is written for.

    A matrix without rows or a B without columns makes an empty grid, one without columns rows of zeros.

    `InputError` if sizes do not fit.

    >>> from lstmsim.model.sparse.csr import csr_of_dense
    >>> from lstmsim.machines.parallel.device import ParallelCore, ParallelDevice
    >>> device = ParallelDevice("v100", 1530, (ParallelCore(),) * 80).view
    >>> made = spmm(csr_of_dense([[0, 2], [3, 0]]), np.array([[1], [10]]), SpmmOptions(), device)
    >>> made.result.tolist(), made.metrics["macs"], made.metrics["lane_slots"]
    ([[20], [3]], 2, 32)
    """
    columns = dense if isinstance(dense, int) else _columns(matrix, dense)
    plan = spmm_plan(matrix, columns, options, device)
    arrays = addressable(plan.arrays)
    numbers = None if isinstance(dense, int) else _Numbers(plan, dense)
    text = SpmmText(plan, numbers.take if numbers else lambda strips, held: None)
    places = {memory.name: place for place, memory in enumerate(arrays)}
    size = max(1, _AT_ONCE // max(device.warp, plan.subwarps * options.k_tile))

    def grid() -> Grid:
        return Grid(device.warp, places, device.banks)

    kernel = written(text.write, text.counts, grid, plan.shape, plan.dealt.sm, size)
    if plan.first is not None:
        kernel = glued(kernel, plan.shape, np.full(len(plan.first) - 1, -1, np.int32), plan.first)
    kernels = (_zeros(plan, places), kernel) if len(plan.empty_rows) else (kernel,)
    return RowsMade(
        run=Run(arrays, kernels),
        result=numbers.result(text) if numbers else None,
        metrics=_metrics(matrix, plan, text),
        order=plan.dealt.order.tolist() if options.order == "sorted" else None,
        placing=None if options.dispatch == "demand" else plan.dealt.sm.tolist(),
        lockstep_waste=lockstep_waste(plan.stored.length[plan.dealt.order], plan.bundle),
    )


def spmm_transposed(matrix: Csr, dense: Values | int, options: SpmmOptions, device: Device) -> RowsMade:
    """A^T B: the CSC of A is the CSR of A^T, so no array is copied.

    matrix: A.
    dense: B, shape (rows of A, N), or only N.
    options, device: as of `spmm`.
    """
    return spmm(transposed(matrix), dense, options, device)


def spmm_sparse_right(dense: Values | int, matrix: Csr, options: SpmmOptions, device: Device) -> RowsMade:
    """A B with a sparse B, as C^T = B^T A^T: A lies in memory by columns, and so does C.

    dense: A, shape (M, rows of B), or only M.
    matrix: B.
    options, device: as of `spmm`.
    """
    made = spmm(transposed(matrix), dense if isinstance(dense, int) else dense.T, options, device)
    return replace(made, result=None if made.result is None else made.result.T)


def _columns(matrix: Csr, dense: Values) -> int:
    if dense.ndim != 2 or len(dense) != matrix.columns:
        raise InputError(
            Mistake("dense operand", f"must have {matrix.columns} rows and 2 dimensions, got shape {dense.shape}")
        )
    return int(dense.shape[1])


def _metrics(matrix: Csr, plan: SpmmPlan, text: SpmmText) -> dict[str, int]:
    tiles = -(-plan.columns // plan.tile)
    return {
        "masked": int(plan.stored.masked.sum()) * tiles,
        "tail": text.tail,
        "lane_slots": text.slots,
        "lane_active": text.active,
        "macs": matrix.entries * plan.columns,
        "storage": len(plan.stored.cols),
        "blocks_in_grid": len(plan.dealt.sm) if plan.first is None else len(plan.first) - 1,
        "lanes": plan.lanes,
    }


def _zeros(plan: SpmmPlan, places: dict[str, int]) -> Kernel:
    """The kernel that writes the rows which DCSR does not have."""
    shape = KernelShape("zero", 1, 16)
    vector = default_vector(plan.columns)
    lane = np.arange(plan.device.warp) * vector

    def piece(rows: NDArray[np.int64]) -> Kernel:
        grid = Grid(plan.device.warp, places, plan.device.banks)
        warps = grid.warps(np.arange(len(rows)))
        begin = warps.alu(4)
        for column in range(0, plan.columns, plan.device.warp * vector):
            across = column + lane
            warps.stg("C", rows[:, None] * plan.columns + across, across < plan.columns, [begin], vector)
        return grid.kernel(shape, np.full(len(rows), -1, np.int32))

    empty = plan.empty_rows
    return joined(piece(empty[start : start + _BLOCKS]) for start in range(0, len(empty), _BLOCKS))


class _Numbers:
    """The sums of all lanes of an SpMM, made of the entries that they find in shared memory."""

    def __init__(self, plan: SpmmPlan, dense: Values) -> None:
        self.plan = plan
        kind = number_type(plan.stored.values, dense)
        self.values = plan.stored.values.astype(kind, copy=False)
        #: warps that stand side by side in a row of B
        self.parts = -(-plan.columns // plan.tile) * (plan.tile // plan.width)
        padded = np.zeros((plan.inner, self.parts * plan.width), kind)
        padded[:, : plan.columns] = dense
        self.operand = padded.reshape(-1, plan.width)
        self.sums = np.zeros((*plan.which.shape, plan.width), kind)

    def take(self, strips: Strips, held: Held) -> None:
        """Add the products of strips."""
        plan, on = self.plan, held.transpose(1, 0, 2) >= 0
        entry = held.transpose(1, 0, 2)[on]
        counts = on.sum(axis=2)
        part = plan.column[strips.stream] // plan.width
        row = plan.stored.cols[entry] * self.parts + np.repeat(np.tile(part, len(counts)), counts.reshape(-1))
        begins = np.flatnonzero(np.diff(strips.stream, prepend=-1))
        terms = np.add.reduceat(counts, begins, axis=1)
        which = (strips.stream[begins][None, :], np.arange(plan.subwarps)[:, None])
        sums = self.sums[which].reshape(-1, plan.width)
        values = self.values[entry][:, None]
        add_in_order(sums, firsts(terms.reshape(-1)), lambda numbers: values[numbers] * self.operand[row[numbers]])
        self.sums[which] = sums.reshape(*terms.shape, plan.width)

    def result(self, text: SpmmText) -> Values:
        """C, of what lanes store."""
        plan = self.plan
        made = np.zeros(plan.rows * plan.columns, self.sums.dtype)
        for start in range(0, len(plan.which), _BLOCKS):
            stream = np.arange(start, min(start + _BLOCKS, len(plan.which)))
            own = self.sums[stream].reshape(len(stream), plan.subwarps, plan.repeats, plan.lanes, plan.v)
            for q in range(plan.repeats):
                index, on = text.results(stream, q)
                vectors = own[:, :, q].reshape(len(stream), -1, plan.v)
                for element in range(plan.v):
                    made[index[on] + element] = vectors[:, :, element][on]
        return made.reshape(plan.rows, plan.columns)
