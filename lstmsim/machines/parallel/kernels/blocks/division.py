"""Which warp of the HBP kernel works on which blocks of the matrix: fixed parts first, the rest in batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.sparse.partition import Partition

__all__ = ["Division", "division"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Division:
    """The blocks of the matrix that each warp of the kernel walks.

    share: rows of blocks in the fixed part of a warp.
    columns: shape (fixed,); column of blocks whose vector each thread block with a fixed part holds.
    pool: shape (n,); blocks of the matrix that are in no fixed part, in memory order.
    batches: thread blocks behind the fixed ones, each for a batch of the pool.
    stream: shape (blocks,); stream of the kernel (thread block * warps + warp) that walks a block, ascending.
    block: shape (blocks,); that block, in the order in which its warp walks it.
    """

    share: int
    columns: Ints
    pool: Ints
    batches: int
    stream: Ints
    block: Ints

    @property
    def thread_blocks(self) -> int:
        """All thread blocks of the kernel."""
        return len(self.columns) + self.batches


def division(partition: Partition, places: int, warps: int, percent: int, batch: int) -> Division:
    """The division of a matrix.

    partition: its blocks.
    places: thread blocks that the device is to hold at once.
    warps: of a thread block.
    percent: of the rows of blocks that are dealt in fixed parts, rounded down to equal parts.
    batch: blocks of the matrix in a batch.

    >>> made = division(Partition(8, 4, 2, 2, 2), places=2, warps=1, percent=50, batch=3)
    >>> made.share, made.columns.tolist(), made.pool.tolist(), made.batches
    (2, [0, 1], [4, 5, 6, 7], 2)
    >>> made.stream.tolist(), made.block.tolist()
    ([0, 0, 1, 1, 2, 2, 2, 3], [0, 2, 1, 3, 4, 5, 6, 7])
    """
    rows, columns = partition.row_blocks, partition.column_blocks
    share = rows * percent // (100 * -(-places // columns) * warps)
    # all fixed parts: thread block, warp, the rows of blocks of the warp
    x, j, step = np.meshgrid(np.arange(places), np.arange(warps), np.arange(share), indexing="ij")
    row = ((x // columns) * warps + j) * share + step
    inside = row < rows
    fixed, warp, owned = x[inside], j[inside], row[inside] * columns + x[inside] % columns
    blocks, place = np.unique(fixed, return_inverse=True)
    free = np.ones(partition.blocks, bool)
    free[owned] = False
    pool = np.flatnonzero(free)
    turn = np.arange(len(pool)) % batch
    # warp j takes the blocks j, j + warps, .. of its batch
    taken = (len(blocks) + np.arange(len(pool)) // batch) * warps + turn % warps
    order = np.argsort(taken, kind="stable")
    stream = np.concatenate([place.reshape(-1) * warps + warp, taken[order]])
    return Division(share, blocks % columns, pool, -(-len(pool) // batch), stream, np.concatenate([owned, pool[order]]))
