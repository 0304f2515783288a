"""SpMV: y = A x with a sparse A in CSR (docs/sparse_kernels.md, section 4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.parallel.device import Device
from lstmsim.machines.parallel.kernel import KernelShape, Memory, Run
from lstmsim.machines.parallel.kernels.csr.ordered import add_in_order, tree
from lstmsim.machines.parallel.kernels.csr.rows import (
    DISPATCHES,
    ORDERS,
    RowsMade,
    addressable,
    allocated,
    bad_lanes,
    bad_vector,
    dealt,
    ordered,
    stored,
)
from lstmsim.machines.parallel.kernels.csr.segments import written
from lstmsim.machines.parallel.kernels.csr.spmv_text import SpmvPlan, SpmvText
from lstmsim.machines.parallel.kernels.options import bad_choice, bad_number, refuse
from lstmsim.machines.parallel.writing.streams import Grid
from lstmsim.model.sparse.csr import Csr
from lstmsim.model.sparse.products import number_type
from lstmsim.model.sparse.ranges import firsts
from lstmsim.model.sparse.statistics import lockstep_waste

__all__ = ["SpmvOptions", "spmv"]

Ints = NDArray[np.int64]
Values = NDArray[Any]
#: Addresses that a piece of a kernel has in hand for each line of its text.
_AT_ONCE = 1 << 18
_ALIGNMENTS = ("reverse", "none")


@record
class SpmvOptions:
    """Parameters of SpMV. None stands for what follows from the matrix.

    lanes: of a row, a power of two; by default as many of a warp as have an element each in rows of mean length.
    v: consecutive elements that a lane takes: 1, 2 or 4.
    warps: of a block.
    order, dispatch: as in `SpmmOptions`.
    align: reverse or none, as in `SpmmOptions`.
    registers: of a thread.

    `InputError` names every option that is wrong.
    """

    lanes: int | None = None
    v: int = 1
    warps: int = 4
    order: str = "plain"
    dispatch: str = "demand"
    align: str = "reverse"
    registers: int = 32

    def __post_init__(self) -> None:
        refuse(
            [
                None if self.lanes is None else bad_number("lanes", self.lanes),
                bad_vector(self.v),
                bad_number("warps", self.warps),
                bad_choice("order", self.order, ORDERS),
                bad_choice("dispatch", self.dispatch, DISPATCHES),
                bad_choice("align", self.align, _ALIGNMENTS),
                bad_number("registers", self.registers, 0),
            ]
        )


def spmv(matrix: Csr, vector: Values | None, options: SpmvOptions, device: Device) -> RowsMade:
    """y = A x on a device.

    matrix: A.
    vector: x, shape (columns of A,); None if nothing is to be computed.
    options: parameters of the kernel.
    device: whose lanes it is written for.

    A matrix without rows makes an empty grid; one without entries or columns makes zeros.

    `InputError` if sizes do not fit.

    >>> from lstmsim.model.sparse.csr import csr_of_dense
    >>> from lstmsim.machines.parallel.device import ParallelCore, ParallelDevice
    >>> device = ParallelDevice("v100", 1530, (ParallelCore(),) * 80).view
    >>> made = spmv(csr_of_dense([[0, 2], [3, 0]]), np.array([1, 10]), SpmvOptions(), device)
    >>> made.result.tolist(), made.metrics["lanes"], made.metrics["lane_active"]
    ([20, 3], 1, 2)
    """
    if vector is not None and vector.shape != (matrix.columns,):
        raise InputError(Mistake("vector", f"must have the shape ({matrix.columns},), got {vector.shape}"))
    plan = _plan(matrix, options, device)
    numbers = None if vector is None else _Numbers(plan, matrix.rows, vector)
    text = SpmvText(plan, numbers.take if numbers else lambda stream, entry: None)
    arrays = addressable(_arrays(matrix, options))
    places = {memory.name: place for place, memory in enumerate(arrays)}
    kernel = written(
        text.write,
        text.counts,
        lambda: Grid(device.warp, places, device.banks),
        KernelShape("spmv", options.warps, options.registers, ordered=("x",)),
        plan.dealt.sm,
        max(1, _AT_ONCE // (device.warp * options.v)),
    )
    return RowsMade(
        run=Run(arrays, (kernel,)),
        result=numbers.result(text) if numbers else None,
        metrics={
            "masked": int(plan.stored.masked.sum()),
            "lane_slots": text.steps * device.warp,
            "lane_active": matrix.entries,
            "macs": matrix.entries,
            "blocks_in_grid": len(plan.dealt.sm),
            "lanes": plan.lanes,
        },
        order=plan.dealt.order.tolist() if plan.perm else None,
        placing=None if options.dispatch == "demand" else plan.dealt.sm.tolist(),
        lockstep_waste=lockstep_waste(plan.stored.length[plan.dealt.order], plan.which.shape[1] * options.warps),
    )


def _plan(matrix: Csr, options: SpmvOptions, device: Device) -> SpmvPlan:
    refuse([bad_lanes(options.lanes, device.warp)])
    mean = matrix.entries // max(1, matrix.rows * options.v)
    lanes = options.lanes or min(device.warp, 1 << max(0, mean.bit_length() - 1))
    rows = stored(matrix, options.v, options.align)
    order = ordered(rows.length, options.order)
    of_warp = device.warp // lanes
    grid = dealt(order, rows.length[None, :], of_warp * options.warps, options.dispatch, device.sms)
    return SpmvPlan(
        warp=device.warp,
        warps=options.warps,
        lanes=lanes,
        v=options.v,
        perm=options.order == "sorted",
        shifted=options.align == "reverse" and options.v > 1,
        stored=rows,
        dealt=grid,
        which=grid.rows(options.warps, of_warp),
    )


def _arrays(matrix: Csr, options: SpmvOptions) -> tuple[Memory, ...]:
    entries = allocated(matrix.entries)
    sizes = {"perm": matrix.rows} if options.order == "sorted" else {}
    sizes |= {"row_ptr": matrix.rows + 1, "cols": entries, "values": entries, "x": matrix.columns, "y": matrix.rows}
    return tuple(Memory(name, size) for name, size in sizes.items())


class _Numbers:
    """The sums of all lanes of an SpMV, made of the entries that they load."""

    def __init__(self, plan: SpmvPlan, rows: int, vector: Values) -> None:
        self.plan, self.rows = plan, rows
        kind = number_type(plan.stored.values, vector)
        self.values, self.vector = plan.stored.values.astype(kind, copy=False), vector.astype(kind, copy=False)
        self.sums = np.zeros((len(plan.which), plan.warp), kind)

    def take(self, stream: Ints, entry: Ints) -> None:
        """Add the products of a strip of each warp."""
        by_lane = entry.transpose(1, 0, 2)
        on = by_lane >= 0
        entries = by_lane[on]
        products = self.values[entries] * self.vector[self.plan.stored.cols[entries]]
        begins = np.flatnonzero(np.diff(stream, prepend=-1))
        terms = np.add.reduceat(on.sum(axis=2), begins, axis=1)
        which = (stream[begins][None, :], np.arange(self.plan.warp)[:, None])
        sums = self.sums[which].reshape(-1)
        add_in_order(sums, firsts(terms.reshape(-1)), lambda numbers: products[numbers])
        self.sums[which] = sums.reshape(terms.shape)

    def result(self, text: SpmvText) -> Values:
        """y, of what lanes store."""
        plan = self.plan
        made = np.zeros(self.rows, self.sums.dtype)
        index, on = text.results(np.arange(len(plan.which)))
        made[index[on]] = tree(self.sums.reshape(-1, plan.lanes))[on[:, :: plan.lanes].reshape(-1)]
        return made
