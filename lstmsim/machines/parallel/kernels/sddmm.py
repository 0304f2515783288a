"""SDDMM: D = (A B) o C with a sparse C, instruction by instruction (docs/sparse_kernels.md, section 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import Ints, Kernel, KernelShape, Made, Mask, Run, Values
from lstmsim.machines.parallel.kernels.rows import (
    DISPATCH,
    ORDER,
    REGISTERS,
    VECTOR,
    Options,
    RowsPlan,
    allocated,
    bad_lanes,
    dealt,
    default_vector,
    grids,
    memories,
    ordered,
    tree,
)
from lstmsim.machines.parallel.writing.streams import Grid, Result, Warps, joined, later
from lstmsim.model.sparse.csr import Csr
from lstmsim.model.sparse.made import number_type


@dataclass(frozen=True, eq=False)
class SddmmPlan(RowsPlan):
    """Everything about an SDDMM that its text asks."""

    inner: int  # K
    matrix: Csr  # C
    begin: Ints  # shape (streams, rows of a warp); where its tile begins among C's entries
    count: Ints  # shape (streams, rows of a warp); entries of the tile

    @property
    def values(self) -> bool:
        """Whether D has products times the values of C."""
        return bool(self.options.mode == "values")

    @cached_property
    def longest(self) -> Ints:
        """Entries of the longest tile of each warp, shape (streams,)."""
        longest: Ints = self.count.max(axis=1, initial=0)
        return longest


@dataclass(frozen=True, eq=False)
class _Tiles:
    """Warps with entries, side by side."""

    warps: Warps  # what writes them
    row: Ints  # row, begin, count: shape (n, lanes of a warp); what the lane's row is and has, as in `SddmmPlan`
    begin: Ints
    count: Ints
    longest: Ints  # shape (n,)
    ready: Result  # where rows are known

    def part(self, mask: Mask) -> _Tiles:
        """Those of a mask."""
        if mask.all():
            return self
        columns = ("row", "begin", "count", "longest")
        return replace(self, warps=self.warps.part(mask), **{name: getattr(self, name)[mask] for name in columns})


class SddmmText:
    """Writes the streams of an SDDMM, and computes what their lanes compute.

    plan: what is written.
    operands: A and B transposed.
    slots: lanes of the multiply-adds of the inner loop.
    result: D, in the order of C's entries.
    """

    def __init__(self, plan: SddmmPlan, operands: tuple[Values, Values]) -> None:
        self.plan = plan
        self.slots = 0
        kind = number_type(*operands, *[plan.matrix.values] * plan.values)
        self._operands = tuple(each.astype(kind, copy=False) for each in operands)
        self.result = np.zeros(plan.matrix.entries, kind)

    def write(self, grid: Grid, first: int, end: int) -> None:
        """Write some streams."""
        plan = self.plan
        has = plan.which[first:end] >= 0
        stream = np.flatnonzero(np.logical_or.reduce(has, axis=1)) + first
        if not len(stream):
            return
        warps = grid.warps(stream - first)
        _, pointers = plan.pointers(warps, stream, warps.alu(4))
        busy = plan.longest[stream] > 0
        if not busy.all():
            warps.part(~busy).alu(1, pointers)
        if busy.any():
            which, begin, count = (plan.spread(each[stream[busy]]) for each in (plan.which, plan.begin, plan.count))
            some = warps.part(busy)
            ready = some.alu(3, pointers)
            self._tiles(_Tiles(some, which, begin, count, plan.longest[stream[busy]], ready))

    def _tiles(self, tiles: _Tiles) -> None:
        plan, top = self.plan, int(tiles.longest.max())
        element, columns = [], []
        for q in range(-(-top // plan.lanes)):
            place = q * plan.lanes + self.plan.lane
            on = place < tiles.count
            columns.append(tiles.warps.ldg_if("cols", tiles.begin + place, on, [tiles.ready]))
        for d in range(top):
            part = tiles.part(tiles.longest > d)
            element.append(part.warps.alu(1, [part.warps.shfl([columns[d // plan.lanes]])]))
        sums = np.zeros((top, *tiles.row.shape), self.result.dtype)
        done: list[Result | None] = [None] * top
        for strip in range(-(-plan.inner // (plan.lanes * plan.v))):
            done = self._strip(tiles, strip, element, sums)
        self._finish(tiles, done, sums)

    def _strip(self, tiles: _Tiles, strip: int, element: list[Result], sums: Values) -> list[Result | None]:
        """Some elements of rows of A with all entries of the tiles; the last multiply-add of each entry."""
        plan = self.plan
        k = (strip * plan.lanes + self.plan.lane) * plan.v
        inside = k < plan.inner
        row = tiles.warps.ldg("A", tiles.row * plan.inner + k, (tiles.row >= 0) & inside, [tiles.ready], plan.v)
        done: list[Result | None] = []
        for start in range(0, len(element), 4):
            group = tiles.part(tiles.longest > start)
            steps = np.minimum(4, group.longest - start)
            loads: list[Result | None] = []
            for d in range(start, start + int(steps.max())):
                part = group.part(steps > d - start)
                on = (part.count > d) & inside
                column = self._column(part, d)
                loads.append(part.warps.ldg_if("Bt", column * plan.inner + k, on, [element[d]], plan.v))
                self._add(sums[d], tiles, d, k)
            last = group.warps.fma(steps, [row, *loads])
            alone = steps == 1
            for _step in range(plan.v - 1):
                # sums of several entries take turns; that of a single one waits for itself
                last = group.warps.fma(steps, [Result(group.warps.numbers[alone], last.places[alone])])
            self.slots += int(steps.sum()) * plan.v * plan.warp
            done += [last] * int(steps.max())
        return done

    def _column(self, tiles: _Tiles, d: int) -> Ints:
        """The column of each lane's entry, 0 where a row has none."""
        at = np.where(tiles.count > d, tiles.begin + d, -1)
        column: Ints = np.append(self.plan.matrix.cols, 0)[at]
        return column

    def _add(self, sums: Values, tiles: _Tiles, d: int, k: Ints) -> None:
        """Add the products of an entry to the sums of lanes, one after the other."""
        left, right = self._operands
        where = np.nonzero((tiles.count > d) & (k < self.plan.inner))
        row, column, at = tiles.row[where], self._column(tiles, d)[where], k[where[1]]
        for element in range(self.plan.v):
            sums[where] += left[row, at + element] * right[column, at + element]

    def _finish(self, tiles: _Tiles, done: list[Result | None], sums: Values) -> None:
        """The lanes of a row add up what they have, and store it."""
        plan = self.plan
        last = done
        for _step in range(plan.lanes.bit_length() - 1):
            parts = [tiles.warps.part(tiles.longest > d) for d in range(len(done))]
            moved = [part.shfl([each]) for part, each in zip(parts, last, strict=True)]
            last = [part.fma(1, [each]) for part, each in zip(parts, moved, strict=True)]
        final: Result | None = None
        for each in last:
            final = later(final, each)
        picked = tiles.warps.alu(tiles.longest, [final])
        for q in range(-(-len(done) // plan.lanes)):
            place = q * plan.lanes + self.plan.lane
            on = place < tiles.count
            part = tiles.part(np.logical_or.reduce(on, axis=1))
            at, lit = part.begin + place, place < part.count
            value = picked
            if plan.values:
                value = part.warps.fma(1, [part.warps.ldg("values", at, lit, [part.ready]), picked])
            part.warps.stg("D", at, lit, [value])
        for d in range(len(sums)):
            rows = tree(sums[d].reshape(-1, self.plan.lanes))
            count, begin = (each[:, :: self.plan.lanes].reshape(-1) for each in (tiles.count, tiles.begin))
            at = begin[count > d] + d
            products = rows[count > d]
            if self.plan.values:
                products = products * self.plan.matrix.values.astype(products.dtype, copy=False)[at]
            self.result[at] = products


#: Sums of lanes that a piece of a kernel has in hand.
_AT_ONCE = 1 << 21


@record
class SddmmOptions(Options):
    """Parameters of SDDMM. None stands for what follows from the sizes."""

    tile: Annotated[int, Key("entries of a row of C that a block works on", low=1)] = 32
    v: Annotated[int | None, VECTOR] = None
    lanes: Annotated[int | None, Key("lanes of a row; by default as many of a warp as have a vector of A", low=1)] = (
        None
    )
    warps: Annotated[int, Key("warps of a block", low=1)] = 1
    order: Annotated[str, ORDER] = "plain"
    dispatch: Annotated[str, DISPATCH] = "demand"
    mode: Annotated[
        str,
        Key("D has the products times the values of C, or the products (indicator)", choices=("values", "indicator")),
    ] = "values"
    registers: Annotated[int, REGISTERS] = 64


def sddmm(matrix: Csr, left: Values, right: Values, options: SddmmOptions, device: ParallelDevice) -> Made:
    """D = (A B) o C on a device: products of rows of A and columns of B where C has entries, exact zeros included.

    matrix: C. left: A, shape (rows of C, K). right: B transposed, shape (columns of C, K).

    The result is D's values in the order of C's entries. With K = 0 they are zeros; a C without rows or columns makes
    an empty grid. `InputError` if sizes do not fit.
    """
    if left.ndim != 2 or len(left) != matrix.rows:
        raise InputError(Mistake("A", f"must have {matrix.rows} rows and 2 dimensions, got shape {left.shape}"))
    inner = int(left.shape[1])
    if right.shape != (matrix.columns, inner):
        raise InputError(Mistake("Bt", f"must have the shape {(matrix.columns, inner)}, got {right.shape}"))
    plan = _plan(matrix, inner, options, device)
    entries = allocated(matrix.entries)
    memory = memories(
        perm=matrix.rows if options.order == "sorted" else None,
        row_ptr=matrix.rows + 1,
        cols=entries,
        values=entries if plan.values else None,
        A=matrix.rows * inner,
        Bt=matrix.columns * inner,
        D=entries,
    )
    text = SddmmText(plan, (left, right))
    kernel = _kernel(plan, text, options, grids(device, memory))
    blocks = len(plan.dealt.sm)
    longest = plan.longest.reshape(blocks, options.warps)
    metrics = {
        "lane_slots": text.slots,
        "lane_active": matrix.entries * inner,
        "macs": matrix.entries * inner,
        "blocks_in_grid": blocks,
        "idle_blocks": int(np.count_nonzero(longest.max(axis=1, initial=0) == 0)),
        "lanes": plan.lanes,
    }
    return Made(Run(memory, (kernel,)), text.result, metrics, plan)


def _kernel(plan: SddmmPlan, text: SddmmText, options: SddmmOptions, grid: Callable[[], Grid]) -> Kernel:
    """The kernel, written some blocks at a time, each time into an empty grid."""
    shape = KernelShape("sddmm", options.warps, options.registers)
    step = max(1, _AT_ONCE // (plan.warp * options.tile * options.warps))

    def pieces() -> Iterator[Kernel]:
        for start in range(0, max(1, len(plan.dealt.sm)), step):
            sm = plan.dealt.sm[start : start + step]
            into = grid()
            text.write(into, start * options.warps, (start + len(sm)) * options.warps)
            yield into.kernel(shape, sm)

    return joined(pieces())


def _plan(matrix: Csr, inner: int, options: SddmmOptions, device: ParallelDevice) -> SddmmPlan:
    v = options.v or default_vector(inner)
    wrong = Mistake("v", f"must divide the {inner} columns of A, got {v}") if inner % v else None
    refuse([wrong, bad_lanes(options.lanes, device.core.warp)])
    lanes = options.lanes or min(device.core.warp, 1 << max(0, (inner // v).bit_length() - 1))
    order = ordered(matrix.lengths, options.order)
    of_warp = device.core.warp // lanes
    begins = np.arange(0, matrix.columns, options.tile)
    loads = np.clip(matrix.lengths - begins[:, None], 0, options.tile)
    grid = dealt(order, loads, of_warp * options.warps, options.dispatch, device.sms)
    which = grid.rows(options.warps, of_warp)
    begin = np.repeat(grid.tile * options.tile, options.warps)[:, None]
    length = np.append(matrix.lengths, 0)[which]
    return SddmmPlan(
        options=options,
        warp=device.core.warp,
        lanes=lanes,
        v=v,
        dealt=grid,
        which=which,
        inner=inner,
        matrix=matrix,
        begin=np.append(matrix.row_ptr[:-1], 0)[which] + begin,
        count=np.clip(length - begin, 0, options.tile),
    )
