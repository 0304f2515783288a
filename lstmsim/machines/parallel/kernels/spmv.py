"""SpMV: y = A x with a sparse A in CSR, instruction by instruction (docs/sparse_kernels.md, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import KernelShape, Memory, Run
from lstmsim.machines.parallel.kernels.options import Options, refuse
from lstmsim.machines.parallel.kernels.rows import (
    DISPATCH,
    ORDER,
    REGISTERS,
    VECTOR,
    Dealt,
    RowsMade,
    Stored,
    add_in_order,
    addressable,
    allocated,
    bad_lanes,
    dealt,
    ordered,
    stored,
    tree,
)
from lstmsim.machines.parallel.writing.segments import Piece, at_place, places_before, written
from lstmsim.machines.parallel.writing.streams import Grid, Result, Warps, later
from lstmsim.model.sparse.csr import Csr, firsts, lockstep_waste
from lstmsim.model.sparse.products import number_type

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SpmvPlan:
    """Everything about an SpMV that its text asks.

    warp: lanes of a warp.
    warps: of a block.
    lanes: of a row.
    v: consecutive elements of a lane.
    perm: whether rows are sorted.
    shifted: whether a row may begin before its first entry.
    stored: the rows in memory.
    dealt: the grid.
    which: shape (streams, rows of a warp); the stored row of each subwarp, -1 for none.
    """

    warp: int
    warps: int
    lanes: int
    v: int
    perm: bool
    shifted: bool
    stored: Stored
    dealt: Dealt
    which: Ints

    def spread(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """A column for each lane, of a table with a column for each row of a warp."""
        return np.repeat(table, self.lanes, axis=1)


class SpmvText:
    """Writes the segments of an SpMV, and counts on the way.

    plan: what is written.
    take: gets warps, shape (n,), and the stored entries of their lanes in a strip, shape (n, lanes of a warp, v), -1
        for a masked one or none.
    steps: multiply-adds of the inner loop, by all warps.
    """

    def __init__(self, plan: SpmvPlan, take: Callable[[Ints, Ints], None]) -> None:
        self.plan = plan
        self.take = take
        self.steps = 0
        rows = plan.stored
        # place -1 finds the row that is none
        self._masked, self._start, self._end = (
            np.append(column, 0)[plan.which] for column in (rows.masked, rows.start, rows.end)
        )
        self._some = np.logical_or.reduce(plan.which >= 0, axis=1)
        self._strips = -(-self._end.max(axis=1, initial=0) // (plan.lanes * plan.v))
        #: where in its stream each warp knows where its rows begin
        self._ready = np.full(len(plan.which), -1, np.int64)

    @property
    def counts(self) -> Ints:
        """Segments of each warp: a prologue, its strips, and an epilogue."""
        return np.where(self._some, self._strips + 2, 0)

    def write(self, piece: Piece) -> None:
        """Write some segments."""
        first, last = piece.place == 0, piece.place == self._strips[piece.stream] + 1
        opening = (piece.place == 1) & ~last & self.plan.shifted
        texts: tuple[tuple[Mask, Callable[[Warps, Ints, Ints], None]], ...] = (
            (first, self._prologue),
            (opening, self._strip),
            (~first & ~last & ~opening, self._strip),
            (last, self._epilogue),
        )
        for mask, write in texts:
            if mask.any():
                chosen, warps = piece.where(mask)
                write(warps, piece.stream[chosen], piece.place[chosen] - 1)

    def _prologue(self, warps: Warps, stream: Ints, _: Ints) -> None:
        plan, known = self.plan, warps.alu(4)
        which = plan.spread(plan.which[stream])
        on = which >= 0
        if plan.perm:
            rows = plan.which.shape[1]
            place = plan.dealt.bundle[stream // plan.warps] * plan.warps * rows + stream % plan.warps * rows
            known = warps.ldg("perm", plan.spread(place[:, None] + np.arange(rows)), on, [known])
        begin = warps.ldg("row_ptr", which, on, [known])
        end = warps.ldg("row_ptr", which + 1, on, [known])
        self._ready[stream] = warps.alu(3, [begin, end]).places

    def _strip(self, warps: Warps, stream: Ints, number: Ints) -> None:
        plan, v = self.plan, self.plan.v
        lane = np.arange(plan.warp) % plan.lanes
        p = (number[:, None] * plan.lanes + lane) * v
        start, end, masked = (plan.spread(column[stream]) for column in (self._start, self._end, self._masked))
        ready = at_place(warps, self._ready[stream])
        need: list[Result | None] = []
        for q in range(0, v, plan.stored.vector):
            for name in ("cols", "values"):
                need.append(warps.ldg_if(name, start + p + q, p + q < end, [ready], plan.stored.vector))
        if plan.shifted and not number.any():
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

    def _epilogue(self, warps: Warps, stream: Ints, _: Ints) -> None:
        """The lanes of a row add up what they have, and one stores it."""
        plan, long = self.plan, self._strips[stream] > 0
        some, none = warps.part(long), warps.part(~long)
        last = later(places_before(some, 1), at_place(none, self._ready[stream[~long]]))
        for _step in range(plan.lanes.bit_length() - 1):
            last = warps.fma(1, [warps.shfl([last])])
        index, on = self.results(stream)
        warps.stg("y", index, on, [last])

    def results(self, stream: Ints) -> tuple[Ints, Mask]:
        """Which elements of y the lanes of warps store, and which lanes store one, each of shape (n, lanes)."""
        plan, which = self.plan, self.plan.which[stream]
        row = np.append(plan.stored.row, 0)[which]
        return plan.spread(row), (plan.spread(which) >= 0) & (np.arange(plan.warp) % plan.lanes == 0)


Ints = NDArray[np.int64]
Values = NDArray[Any]
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


def spmv(matrix: Csr, vector: Values | None, options: SpmvOptions, device: ParallelDevice) -> RowsMade:
    """y = A x on a device.

    matrix: A.
    vector: x, shape (columns of A,); None if nothing is to be computed.
    options: parameters of the kernel.
    device: whose lanes it is written for.

    A matrix without rows makes an empty grid; one without entries or columns makes zeros.

    `InputError` if sizes do not fit.

    >>> from lstmsim.model.sparse.csr import csr_of_dense
    >>> from lstmsim.machines.parallel.device import ParallelCore, ParallelDevice
    >>> device = ParallelDevice("v100", 1530, (ParallelCore(),) * 80)
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
        lambda: Grid(device.core.warp, places, device.core.banks),
        KernelShape("spmv", options.warps, options.registers, ordered=("x",)),
        plan.dealt.sm,
        max(1, _AT_ONCE // (device.core.warp * options.v)),
    )
    return RowsMade(
        run=Run(arrays, (kernel,)),
        result=numbers.result(text) if numbers else None,
        metrics={
            "masked": int(plan.stored.masked.sum()),
            "lane_slots": text.steps * device.core.warp,
            "lane_active": matrix.entries,
            "macs": matrix.entries,
            "blocks_in_grid": len(plan.dealt.sm),
            "lanes": plan.lanes,
        },
        order=plan.dealt.order.tolist() if plan.perm else None,
        placing=None if options.dispatch == "demand" else plan.dealt.sm.tolist(),
        lockstep_waste=lockstep_waste(plan.stored.length[plan.dealt.order], plan.which.shape[1] * options.warps),
    )


def _plan(matrix: Csr, options: SpmvOptions, device: ParallelDevice) -> SpmvPlan:
    refuse([bad_lanes(options.lanes, device.core.warp)])
    mean = matrix.entries // max(1, matrix.rows * options.v)
    lanes = options.lanes or min(device.core.warp, 1 << max(0, mean.bit_length() - 1))
    rows = stored(matrix, options.v, options.align)
    order = ordered(rows.length, options.order)
    of_warp = device.core.warp // lanes
    grid = dealt(order, rows.length[None, :], of_warp * options.warps, options.dispatch, device.sms)
    return SpmvPlan(
        warp=device.core.warp,
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
