"""Which instructions of a block meet at barriers, and in what order its body has them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError
from lstmsim.machines.parallel.kernel import CLASS, Ints
from lstmsim.machines.parallel.lowering.pick import Picked
from lstmsim.model.sparse.ranges import firsts, spans

__all__ = ["Meetings", "meetings"]


@dataclass(frozen=True, eq=False)
class Meetings:
    """The barriers of some blocks, one row for each instruction.

    warps: streams of a block.
    order: shape (n,); the instructions in the order of bodies: block, part between two barriers, warp, place.
    ordinal: shape (n,); of a `bar` or a `gridbar` which one of its class it is in its stream.
    behind, behind_grid: shape (n,); 1 for what follows a `bar`, or a `gridbar`, in its stream.
    syncs: shape (n,); 1 for the `gridbar` of a block's last warp.
    stream: shape (n,); stream of each instruction.
    rows: for `bar` and `gridbar` the rows of all of them, stream after stream, and where each stream's begin.
    """

    warps: int
    order: Ints
    ordinal: Ints
    behind: Ints
    behind_grid: Ints
    syncs: Ints
    stream: Ints
    rows: tuple[tuple[Ints, Ints], tuple[Ints, Ints]]

    def mates(self, followers: Ints, *, grid: bool) -> Ints:
        """The rows that meet at a barrier, one of each warp.

        followers: rows that follow a barrier of the block.
        grid: whether it is a `gridbar`.
        """
        rows, begins = self.rows[grid]
        barrier = followers - 1
        first = self.stream[barrier] // self.warps * self.warps
        streams = spans(first, np.full(len(first), self.warps))
        mates: Ints = rows[begins[streams] + np.repeat(self.ordinal[barrier], self.warps)]
        return mates


def meetings(rows: Picked, stream: Ints) -> Meetings:
    """Find the barriers of picked blocks.

    stream: shape (n,); stream of each row.
    `InputError` if the streams of a block have unequal numbers of barriers.
    """
    bar, grid = rows.kind == CLASS["bar"], rows.kind == CLASS["gridbar"]
    ordinal = np.zeros(len(stream), dtype=np.int64)
    kinds = []
    for each in (bar, grid):
        own = np.flatnonzero(each)
        counts = np.bincount(stream[own], minlength=len(rows.first) - 1).astype(np.int64)
        begins = firsts(counts)
        ordinal[own] = np.arange(len(own)) - begins[stream[own]]
        by_block = counts.reshape(-1, rows.warps)
        if (by_block != by_block[:, :1]).any():
            raise InputError("the streams of a block must have the same number of barriers of each kind")
        kinds.append((own, begins))
    behind, behind_grid = np.zeros((2, len(stream)), dtype=np.int64)
    for each, marks in ((bar, behind), (grid, behind_grid)):
        marks[1:] = each[:-1] & (stream[1:] == stream[:-1])
    syncs = (grid & (stream % rows.warps == rows.warps - 1)).astype(np.int64)
    return Meetings(
        rows.warps, _order(rows, stream, bar | grid), ordinal, behind, behind_grid, syncs, stream, (kinds[0], kinds[1])
    )


def _order(rows: Picked, stream: Ints, barrier: NDArray[np.bool_]) -> Ints:
    """The rows by block, number of barriers before, warp, place."""
    n = len(stream)
    if rows.warps == 1 or not barrier.any():
        return np.arange(n)
    before = firsts(barrier.astype(np.int64))[:-1]
    part = before - before[np.minimum(rows.first[stream], n - 1)]
    block, warp = stream // rows.warps, stream % rows.warps
    cell = (block * (part.max() + 1) + part) * rows.warps + warp
    # rows of a cell stand one after the other already: cells are counted and laid out anew
    starts = np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))
    lengths = np.diff(np.append(starts, n))
    return spans(*(each[np.argsort(cell[starts], kind="stable")] for each in (starts, lengths)))
