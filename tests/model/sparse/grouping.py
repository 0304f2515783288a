"""How well formats put rows of like length together, and what two other published formats would do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.model.sparse.csr import Csr
from lstmsim.model.sparse.hbp import Hashed, Partition

__all__ = ["Grouping", "Padded", "Tiles", "grouping", "padded_groups", "tiles"]

Ints = NDArray[np.int64]


@record
class Grouping:
    """How alike the rows of the groups of HBP are.

    deviation: mean over the groups of the population standard deviation of their rows' lengths.
    lockstep: sum over the groups of (longest row * rows), for each non-zero; 1 is best, 0 without non-zeros.
    probes: entries looked at one by one, for each position.
    finds: entries that a structure of next free entries looks at, for each position.
    comparisons: what sorting the rows of each block would take, for each position: log2 of the block's rows.
    """

    deviation: float
    lockstep: float
    probes: float
    finds: float
    comparisons: float


def grouping(made: Hashed) -> Grouping:
    """How alike the rows of the groups are.

    made: a matrix in HBP.
    """
    partition = made.hbp.partition
    if not partition.positions:
        return Grouping(0.0, 0.0, 0.0, 0.0, 0.0)
    starts, counts = partition.first_of_group, made.counts.astype(np.float64)
    sizes = np.diff(np.append(starts, partition.positions))
    mean = np.add.reduceat(counts, starts) / sizes
    square = np.add.reduceat((counts - np.repeat(mean, sizes)) ** 2, starts) / sizes
    longest = np.maximum.reduceat(made.counts, starts)
    nnz = len(made.hbp.cols)
    ends = partition.ends[partition.ends > 0]
    return Grouping(
        float(np.sqrt(square).mean()),
        float((longest * sizes).sum() / nnz) if nnz else 0.0,
        float(made.probes.mean()),
        float(made.finds.sum() / partition.positions),
        float((ends * np.log2(ends)).sum() / partition.positions),
    )


@record
class Tiles:
    """A matrix in tiles of equal numbers of non-zeros, as in CSR5: lanes are balanced whatever the rows are.

    tiles: tiles of `lanes * depth` elements; the last may be shorter.
    lockstep: elements of all tiles, filled or not, for each non-zero; 0 without non-zeros.
    flags: bits that mark where a row begins, one for each element of the tiles.
    partial: lanes that begin inside a row: partial sums to add to what an earlier lane has.
    empty_rows: rows without elements, of which a tile that holds such places needs a list.
    """

    tiles: int
    lockstep: float
    flags: int
    partial: int
    empty_rows: int


def tiles(matrix: Csr, lanes: int, depth: int = 16) -> Tiles:
    """A matrix in tiles as in CSR5. Numbers only: its kernel is not simulated.

    matrix: the matrix.
    lanes: lanes of a warp.
    depth: elements of each lane of a tile.
    """
    nnz = len(matrix.cols)
    count = -(-nnz // (lanes * depth))
    lengths = np.diff(matrix.row_ptr)
    begins = np.arange(0, nnz, depth)
    inside = ~np.isin(begins, matrix.row_ptr[:-1][lengths > 0])
    slots = count * lanes * depth
    return Tiles(count, slots / nnz if nnz else 0.0, slots, int(inside.sum()), int((lengths == 0).sum()))


@record
class Padded:
    """A matrix in blocks whose rows are grouped by dynamic programming and filled with zeros, as in Regu2D.

    groups: groups of rows.
    stored: elements with the zeros that fill the groups.
    fill: `stored` for each non-zero; 0 without non-zeros.
    lockstep: longest row times the lanes of a warp, summed over the groups, for each non-zero; 0 without non-zeros.
    cells: groups that the dynamic program weighs: what preparing the format costs beside sorting.
    """

    groups: int
    stored: int
    fill: float
    lockstep: float
    cells: int


def padded_groups(matrix: Csr, m: int, n: int, omega: int) -> Padded:
    """A matrix in groups as in Regu2D. Numbers only: its kernel is not simulated.

    In each block the rows with elements are sorted by length and cut into groups of at most `omega`, so that the zeros
    that fill them and `omega` elements for each group (what a group costs of its own) are fewest.

    matrix: the matrix.
    m, n: rows and columns of a block.
    omega: lanes of a warp.
    """
    blocks = Partition(matrix.rows, matrix.columns, m, n, omega).column_blocks
    key = matrix.entry_rows * blocks + matrix.cols // n
    used, lengths = np.unique(key, return_counts=True)
    block = used // blocks // m * blocks + used % blocks
    order = np.lexsort((lengths, block))
    groups = stored = wide = cells = 0
    cuts = np.flatnonzero(np.diff(block[order])) + 1
    for sizes in np.split(lengths[order], cuts) if len(order) else ():
        made, filled, longest = _cut(sizes, omega)
        groups, stored, wide = groups + made, stored + filled, wide + longest * omega
        cells += sum(min(omega, place + 1) for place in range(len(sizes)))
    nnz = len(matrix.cols)
    return Padded(groups, stored, stored / nnz if nnz else 0.0, wide / nnz if nnz else 0.0, cells)


def _cut(lengths: Ints, omega: int) -> tuple[int, int, int]:
    """The cheapest groups of sorted rows: their number, their elements with filling, the sum of their longest rows."""
    # cost[i]: the first i rows. Rows are sorted, so the last row of a group is its longest.
    cost, origin = np.zeros(len(lengths) + 1, np.int64), np.zeros(len(lengths) + 1, np.int64)
    for stop in range(1, len(lengths) + 1):
        starts = np.arange(max(0, stop - omega), stop)
        each = cost[starts] + (stop - starts) * lengths[stop - 1] + omega
        best = int(np.argmin(each))
        cost[stop], origin[stop] = each[best], starts[best]
    end, groups, stored, longest = len(lengths), 0, 0, 0
    while end:
        start = int(origin[end])
        groups, longest = groups + 1, longest + int(lengths[end - 1])
        stored += (end - start) * int(lengths[end - 1])
        end = start
    return groups, stored, longest
