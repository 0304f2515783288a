"""SpMV: y = A x with a sparse A in CSR, instruction by instruction (docs/sparse_kernels.md, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import Ints, KernelShape, Made, Mask, Run, Values
from lstmsim.machines.parallel.kernels.rows import (
    DISPATCH,
    ORDER,
    REGISTERS,
    VECTOR,
    Options,
    RowsPlan,
    RowsText,
    Stored,
    add_strips,
    allocated,
    bad_lanes,
    dealt,
    grids,
    memories,
    ordered,
    stored,
    tree,
)
from lstmsim.machines.parallel.writing.streams import Result, Warps, at_place, later, places_before, written
from lstmsim.model.sparse.csr import Csr
from lstmsim.model.sparse.made import number_type


@dataclass(frozen=True, eq=False)
class SpmvPlan(RowsPlan):
    """Everything about an SpMV that its text asks; `v` are consecutive elements of a lane."""

    stored: Stored  # the rows in memory


class SpmvText(RowsText):
    """Writes an SpMV.

    take: gets warps, shape (n,), and the stored entries of their lanes in a strip, shape (n, lanes of a warp, v), -1
        for a masked one or none.
    steps: multiply-adds of the inner loop, by all warps.
    """

    def __init__(self, plan: SpmvPlan, take: Callable[[Ints, Ints], None]) -> None:
        super().__init__(plan, plan.stored, plan.lanes * plan.v, take)
        self.steps = 0

    def _prologue(self, warps: Warps, stream: Ints) -> None:
        _, pointers = self.plan.pointers(warps, stream, warps.alu(4))
        self._ready[stream] = warps.alu(3, pointers).places

    def _strip(self, warps: Warps, stream: Ints, number: Ints, *, shifted: bool) -> None:
        plan, v = self.plan, self.plan.v
        p = (number[:, None] * plan.lanes + plan.lane) * v
        masked, start, end = (plan.spread(column[stream]) for column in self._rows[:3])
        ready = at_place(warps, self._ready[stream])
        need: list[Result | None] = []
        for q in range(0, v, plan.stored.vector):
            for name in ("cols", "values"):
                need.append(warps.ldg_if(name, start + p + q, p + q < end, [ready], plan.stored.vector))
        if shifted:
            need = [warps.alu(2, need)]
        address = warps.alu(v, need)
        entry = np.empty((*p.shape, v), np.int64)
        brought = []
        for d in range(v):
            useful = (p + d >= masked) & (p + d < end)
            entry[:, :, d] = np.where(useful, start + p + d, -1)
            column = np.append(plan.stored.cols, 0)[entry[:, :, d]]
            brought.append(warps.ldg_if("x", column, p + d < end, [address]))
        behind = warps.part(number > 0)
        last = places_before(behind, 1) if len(behind) else None
        for x in brought:
            if x is not None:
                part = warps if x.numbers is warps.numbers else warps.part(np.isin(warps.numbers, x.numbers))
                last = later(last, part.fma(1, [x, *need, last]))
                self.steps += len(part)
        self.take(stream, entry)

    def _epilogue(self, warps: Warps, stream: Ints) -> None:
        """The lanes of a row add up what they have, and one stores it."""
        last = self._last(warps, stream, 1)
        for _step in range(self.plan.lanes.bit_length() - 1):
            last = warps.fma(1, [warps.shfl([last])])
        index, on = self.results(stream)
        warps.stg("y", index, on, [last])

    def results(self, stream: Ints) -> tuple[Ints, Mask]:
        """Which elements of y the lanes of warps store, and which lanes store one, each of shape (n, lanes)."""
        plan, which = self.plan, self.plan.which[stream]
        row = np.append(plan.stored.row, 0)[which]
        return plan.spread(row), (plan.spread(which) >= 0) & (plan.lane == 0)


#: Addresses that a piece of a kernel has in hand for each line of its text.
_AT_ONCE = 1 << 18


@record
class SpmvOptions(Options):
    """Parameters of SpMV. None stands for what follows from the matrix."""

    lanes: Annotated[
        int | None, Key("lanes of a row; by default as many as have an element each in rows of mean length", low=1)
    ] = None
    v: Annotated[int, VECTOR] = 1
    warps: Annotated[int, Key("warps of a block", low=1)] = 4
    order: Annotated[str, ORDER] = "plain"
    dispatch: Annotated[str, DISPATCH] = "demand"
    align: Annotated[str, Key("as in `SpmmOptions`", choices=("reverse", "none"))] = "reverse"
    registers: Annotated[int, REGISTERS] = 32


def spmv(matrix: Csr, vector: Values, options: SpmvOptions, device: ParallelDevice) -> Made:
    """y = A x on a device; `InputError` if sizes do not fit.

    matrix: A. vector: x, shape (columns of A,). options: parameters of the kernel.

    A matrix without rows makes an empty grid; one without entries or columns makes zeros.
    """
    if vector.shape != (matrix.columns,):
        raise InputError(Mistake("vector", f"must have the shape ({matrix.columns},), got {vector.shape}"))
    plan = _plan(matrix, options, device)
    numbers = _Numbers(plan, matrix.rows, vector)
    text = SpmvText(plan, numbers.take)
    memory = memories(
        perm=matrix.rows if options.order == "sorted" else None,
        row_ptr=matrix.rows + 1,
        cols=allocated(matrix.entries),
        values=allocated(matrix.entries),
        x=matrix.columns,
        y=matrix.rows,
    )
    kernel = written(
        text.write,
        text.counts,
        grids(device, memory),
        KernelShape("spmv", options.warps, options.registers, ordered=("x",)),
        plan.dealt.sm,
        max(1, _AT_ONCE // (device.core.warp * options.v)),
    )
    metrics = {
        "masked": int(plan.stored.masked.sum()),
        "lane_slots": text.steps * device.core.warp,
        "lane_active": matrix.entries,
        "macs": matrix.entries,
        "blocks_in_grid": len(plan.dealt.sm),
        "lanes": plan.lanes,
    }
    return Made(Run(memory, (kernel,)), numbers.result(text), metrics, plan)


def _plan(matrix: Csr, options: SpmvOptions, device: ParallelDevice) -> SpmvPlan:
    refuse([bad_lanes(options.lanes, device.core.warp)])
    mean = matrix.entries // max(1, matrix.rows * options.v)
    lanes = options.lanes or min(device.core.warp, 1 << max(0, mean.bit_length() - 1))
    rows = stored(matrix, options.v, options.align)
    order = ordered(rows.length, options.order)
    of_warp = device.core.warp // lanes
    grid = dealt(order, rows.length[None, :], of_warp * options.warps, options.dispatch, device.sms)
    which = grid.rows(options.warps, of_warp)
    return SpmvPlan(options, device.core.warp, lanes, options.v, grid, which, rows)


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
        add_strips(self.sums, stream, on.sum(axis=2), lambda numbers: products[numbers])

    def result(self, text: SpmvText) -> Values:
        """y, of what lanes store."""
        plan = self.plan
        made = np.zeros(self.rows, self.sums.dtype)
        index, on = text.results(np.arange(len(plan.which)))
        made[index[on]] = tree(self.sums.reshape(-1, plan.lanes))[on[:, :: plan.lanes].reshape(-1)]
        return made
