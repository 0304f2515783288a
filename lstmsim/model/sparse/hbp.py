"""HBP: a matrix in blocks whose rows stand where a hash of their lengths puts them, so that like rows are neighbours.

Inside a block, `omega` neighbours are a group, which the lanes of a warp work on in lockstep. The elements of a group
lie round robin: the first of every row, then the second of every row that has one, and so on, without padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import must_be, show
from lstmsim.model.sparse.csr import Csr
from lstmsim.model.sparse.hashes import HASHES, Placing, Table, placed
from lstmsim.model.sparse.partition import Partition
from lstmsim.model.sparse.ranges import firsts

__all__ = ["Hashed", "Hbp", "csr_of_hbp", "hashed"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Hbp:
    """A matrix in HBP.

    partition: its blocks, groups and positions.
    output_hash: shape (positions,); the original row of the matrix at each position, blocks in memory order.
    zero_row: shape (positions,); -1 for a row without elements in its block, else how many of these stand before it in
        its group. Lane q of a group starts at begin + q - zero_row.
    cols: shape (nnz,); column of each element.
    data: shape (nnz,); value of each element.
    add_sign: shape (nnz,); distance to the next element of the same row in the block, -1 at its last.
    begin: shape (groups + 1,); first element of each group, and nnz.
    """

    partition: Partition
    output_hash: Ints
    zero_row: Ints
    cols: Ints
    data: NDArray[np.generic]
    add_sign: Ints
    begin: Ints

    @property
    def begin_nnz(self) -> Ints:
        """Shape (blocks,): the first element of each block."""
        begin: Ints = self.begin[self.partition.first_group[:-1]]
        return begin


@dataclass(frozen=True, eq=False)
class Hashed:
    """A matrix that was put into HBP, and what that took.

    hbp: the matrix.
    counts: shape (positions,); elements of the row at each position in its block.
    probes: shape (positions,); entries that its row looked at one by one before it got its place, the taken one
        included, by local row: blocks in memory order, rows of a block ascending.
    finds: shape (blocks,); entries that a structure of next free entries looks at for the same table.
    """

    hbp: Hbp
    counts: Ints
    probes: Ints
    finds: Ints


def hashed(
    matrix: Csr, m: int, n: int, omega: int, strategy: str = "linear", shift: tuple[int, int] = (4, 8)
) -> Hashed:
    """A matrix in HBP.

    matrix: its rows have ascending columns, none twice.
    m: rows of a block, a multiple of `omega`.
    n: columns of a block.
    omega: rows of a group: lanes of a warp.
    strategy: one of `HASHES`.
    shift: right and left shift of the strategy `shift`.
    Raises InputError for sizes that do not fit and for an unknown strategy.
    """
    _check(m, n, omega, strategy, shift)
    partition = Partition(matrix.rows, matrix.columns, m, n, omega)
    counts = _counts(matrix, partition)
    placings = _placings(matrix, partition, counts, strategy, shift)
    places = np.concatenate([each.place for each in placings]) if placings else np.zeros(0, np.int64)
    probes = np.concatenate([each.probes for each in placings]) if placings else np.zeros(0, np.int64)
    position = partition.first_position[partition.block_of_position] + places
    output_hash, at = np.empty(partition.positions, np.int64), np.empty(partition.positions, np.int64)
    output_hash[position], at[position] = partition.row_of_position, counts
    hbp = _arranged(matrix, partition, counts, position, at, output_hash)
    return Hashed(hbp, at, probes, np.array([each.finds for each in placings], dtype=np.int64))


def _check(m: int, n: int, omega: int, strategy: str, shift: tuple[int, int]) -> None:
    """Refuses sizes and names that mean nothing."""
    mistakes = []
    if m < 1 or m % omega:
        mistakes.append(Mistake("m", f"must be a positive multiple of the {omega} lanes of a warp, got {show(m)}"))
    if n < 1:
        mistakes.append(Mistake("n", f"must be at least 1, got {show(n)}"))
    if strategy not in HASHES:
        mistakes.append(Mistake("hash", must_be(strategy, HASHES)))
    if not all(0 <= each <= 60 for each in shift):
        mistakes.append(Mistake("shift", f"must be two numbers from 0 to 60, got {list(shift)}"))
    if mistakes:
        raise InputError(mistakes)


def _counts(matrix: Csr, partition: Partition) -> Ints:
    """Shape (positions,): elements of each row in each block; blocks in memory order, rows of a block ascending."""
    blocks = partition.column_blocks
    keys = matrix.entry_rows * blocks + matrix.cols // partition.n
    grid = np.bincount(keys, minlength=partition.rows * blocks)
    counts: Ints = grid[partition.row_of_position * blocks + partition.block_of_position % blocks]
    return counts


def _placings(matrix: Csr, partition: Partition, counts: Ints, strategy: str, shift: tuple[int, int]) -> list[Placing]:
    """The tables of all blocks in memory order."""
    nnz = len(matrix.cols)
    scale = Fraction(matrix.rows * matrix.columns, nnz) if nnz else Fraction(0)
    made = []
    for block, (start, stop) in enumerate(zip(partition.first_position, partition.first_position[1:], strict=False)):
        width = partition.width(block % partition.column_blocks)
        table = Table(partition.m, int(stop - start), width, partition.omega, scale, shift)
        made.append(placed(strategy, counts[start:stop], table))
    return made


def _arranged(matrix: Csr, partition: Partition, counts: Ints, position: Ints, at: Ints, output_hash: Ints) -> Hbp:
    """The arrays, once every row has its position.

    counts, position: by local row; at: the same counts by position.
    """
    groups = partition.group_of_position
    zeros = at == 0
    before = np.cumsum(zeros) - zeros
    zero_row = np.where(zeros, -1, before - before[partition.first_of_group[groups]])
    begin = firsts(np.bincount(groups, weights=at, minlength=partition.groups).astype(np.int64))
    # the elements, row after row of each block, in the order of the matrix
    blocks = partition.column_blocks
    owner = np.empty(partition.rows * blocks, np.int64)
    local = partition.row_of_position * blocks + partition.block_of_position % blocks
    owner[local] = position
    key = matrix.entry_rows * blocks + matrix.cols // partition.n
    lengths = np.zeros(partition.rows * blocks, np.int64)
    lengths[local] = counts
    starts = np.cumsum(lengths) - lengths
    step, slot = np.arange(len(key)) - starts[key], owner[key]
    # by group, step, position, in one number
    longest = int(at.max(initial=0)) + 1
    lane = slot - partition.first_of_group[groups[slot]]
    order = np.argsort((groups[slot] * longest + step) * partition.omega + lane)
    where = np.empty(len(order), np.int64)
    where[order] = np.arange(len(order))
    add_sign = np.full(len(order), -1, dtype=np.int64)
    follows = key[1:] == key[:-1]
    add_sign[where[:-1][follows]] = (where[1:] - where[:-1])[follows]
    return Hbp(partition, output_hash, zero_row, matrix.cols[order], matrix.values[order], add_sign, begin)


def csr_of_hbp(hbp: Hbp) -> Csr:
    """The matrix again, from the arrays of HBP alone: every lane walks its row by `add_sign`.

    hbp: the matrix.
    """
    partition = hbp.partition
    lane = np.arange(partition.positions) - partition.first_of_group[partition.group_of_position]
    some = np.flatnonzero(hbp.zero_row >= 0)
    at = hbp.begin[partition.group_of_position[some]] + lane[some] - hbp.zero_row[some]
    rows, places = [], []
    row = hbp.output_hash[some]
    while len(at):
        rows.append(row)
        places.append(at)
        distance = hbp.add_sign[at]
        on = distance >= 0
        row, at = row[on], (at + distance)[on]
    walked = np.concatenate(places) if places else np.zeros(0, np.int64)
    of_row = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    order = np.lexsort((hbp.cols[walked], of_row))
    row_ptr = firsts(np.bincount(of_row, minlength=partition.rows))
    walked = walked[order]
    return Csr(partition.rows, partition.columns, row_ptr, hbp.cols[walked], hbp.data[walked])
