"""The groups of rows of the HBP kernel: their instructions, and what their lanes compute."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernels.blocks.division import Division
from lstmsim.machines.parallel.writing.fragments import anchored
from lstmsim.machines.parallel.writing.streams import Result, Warps, later
from lstmsim.model.sparse.hbp import Hbp
from lstmsim.model.sparse.ranges import spans

__all__ = ["Walk", "walked"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Walk:
    """What the warps of the HBP kernel walk.

    hbp: the matrix.
    x: shape (columns,); the vector.
    dtype: type of products and sums.
    part: which warp walks which blocks.
    warps: of a thread block.
    merged: whether partial results are stored for a later kernel; else they are added to y at once.
    """

    hbp: Hbp
    x: NDArray[Any]
    dtype: np.dtype[Any]
    part: Division
    warps: int
    merged: bool

    @cached_property
    def _sizes(self) -> Ints:
        """Shape (blocks,): groups of the blocks, in the order of walking."""
        sizes: Ints = np.diff(self.hbp.partition.first_group)[self.part.block]
        return sizes

    @cached_property
    def stream(self) -> Ints:
        """Shape (groups,): the stream that walks each group, ascending."""
        numbers: Ints = np.repeat(self.part.stream, self._sizes)
        return numbers

    @cached_property
    def group(self) -> Ints:
        """Shape (groups,): the groups in the order of walking."""
        return spans(self.hbp.partition.first_group[self.part.block], self._sizes)


@dataclass(frozen=True, eq=False)
class _Lanes:
    """Some groups as lanes see them.

    group: shape (n,); the groups.
    column: shape (n,); columns of blocks that they are in.
    position: shape (n, lanes); the position of each lane.
    on: shape (n, lanes); whether there is one.
    at: shape (n, lanes); first element of each lane's row.
    left: shape (n, lanes); whether it has one.
    row: shape (n, lanes); the row of each lane.
    """

    group: Ints
    column: Ints
    position: Ints
    on: Mask
    at: Ints
    left: Mask
    row: Ints


def _lanes(walk: Walk, group: Ints, lanes: int) -> _Lanes:
    partition = walk.hbp.partition
    block = partition.block_of_group[group]
    lane = np.arange(lanes)
    position = partition.first_of_group[group][:, None] + lane
    on = position < partition.first_position[block + 1][:, None]
    inside = np.where(on, position, 0)
    before, row = walk.hbp.zero_row[inside], walk.hbp.output_hash[inside]
    left = on & (before >= 0)
    at = np.where(left, walk.hbp.begin[group][:, None] + lane - before, 0)
    return _Lanes(group, block % partition.column_blocks, position, on, at, left, row)


def walked(warps: Warps, walk: Walk, some: slice, partial: NDArray[Any]) -> tuple[int, int]:
    """Write some groups, each as a fragment of its stream, and compute their rows.

    warps: the fragments.
    walk: what is walked.
    some: which of its groups, in the order of walking.
    partial: shape (columns of blocks, rows); gets the sums.

    Returns the lanes of all multiply-accumulates and how many of them have an element.
    """
    lanes, stream = _lanes(walk, walk.group[some], warps.grid.lanes), walk.stream[some]
    pooled = stream >= len(walk.part.columns) * walk.warps
    # the place of the load of the ticket: behind alu, atom, sts, bar in warp 0, behind bar in others
    z = anchored(warps.numbers[pooled], np.where(stream[pooled] % walk.warps, 1, 4))
    a = warps.alu(2, [z])
    zero_row = warps.ldg("zero_row", lanes.position, lanes.on, [a])
    output_hash = warps.ldg("output_hash", lanes.position, lanes.on, [a])
    begin = warps.ldg("begin", lanes.group[:, None], np.arange(warps.grid.lanes) == 0, [a])
    first = warps.alu(2, [zero_row, begin])
    total, fma, nxt, slots = _steps(warps, walk, lanes, pooled, first)
    if walk.merged:
        rows = walk.hbp.partition.rows
        warps.stg("partial", lanes.column[:, None] * rows + lanes.row, lanes.on, [fma, output_hash, nxt])
    else:
        warps.atom_if("y", lanes.row, lanes.left, [fma, output_hash])
    column = np.broadcast_to(lanes.column[:, None], lanes.row.shape)
    partial[column[lanes.on], lanes.row[lanes.on]] = total[lanes.on]
    return slots * warps.grid.lanes, _elements(walk, lanes)


def _elements(walk: Walk, lanes: _Lanes) -> int:
    """How many elements the groups have."""
    return int((walk.hbp.begin[lanes.group + 1] - walk.hbp.begin[lanes.group]).sum())


def _steps(
    warps: Warps, walk: Walk, lanes: _Lanes, pooled: Mask, first: Result
) -> tuple[NDArray[Any], Result | None, Result | None, int]:
    """The steps of the groups: sums of the lanes, the last `fma` and `alu` of each warp, and how many steps."""
    hbp, data = walk.hbp, walk.hbp.data.astype(walk.dtype, copy=False)
    x = walk.x.astype(walk.dtype, copy=False)
    total = np.zeros(lanes.row.shape, walk.dtype)
    where, at, left = np.arange(len(warps)), lanes.at, lanes.left
    some, last, nxt = warps, None, first
    fma: Result | None = None
    steps = 0
    while True:
        alive = np.asarray(left.any(axis=1))
        if not alive.all():
            some, where, at, left = some.part(alive), where[alive], at[alive], left[alive]
        if not len(where):
            return total, fma, last or first, steps
        cols = some.ldg("cols", at, left, [nxt])
        values = some.ldg("data", at, left, [nxt])
        sign = some.ldg("add_sign", at, left, [nxt])
        column, shared = hbp.cols[at], ~pooled[where]
        operand = _operand(some, walk, column, left, shared, lanes.column[where], cols)
        own = some.fma(1, [operand, values, fma])
        nxt = some.alu(1, [sign])
        fma, last = later(fma, own), later(last or first, nxt)
        with np.errstate(over="ignore", invalid="ignore"):
            total[where] = np.where(left, total[where] + data[at] * x[column], total[where])
        steps += len(where)
        distance = hbp.add_sign[at]
        left = left & (distance >= 0)
        at = np.where(left, at + distance, 0)


def _operand(
    some: Warps, walk: Walk, column: Ints, left: Mask, shared: Mask, blocks: Ints, cols: Result
) -> Result | None:
    """The elements of the vector: from shared memory in fixed parts, else from device memory."""
    result: Result | None = None
    if shared.any():
        local = 4 * (column[shared] - blocks[shared][:, None] * walk.hbp.partition.n)
        result = some.part(shared).lds(local, left[shared], waits=[cols])
    direct = np.logical_not(shared)
    if direct.any():
        result = later(result, some.part(direct).ldg("x", column[direct], left[direct], [cols]))
    return result
