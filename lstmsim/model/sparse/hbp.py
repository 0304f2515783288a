"""HBP: a matrix in blocks whose rows stand where a hash of their lengths puts them, so that like rows are neighbours.

Inside a block, `omega` neighbours are a group, which the lanes of a warp work on in lockstep. The elements of a group
lie round robin: the first of every row, then the second of every row that has one, and so on, without padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import Mistake, refuse
from lstmsim.base.records import record
from lstmsim.base.wording import must_be, show
from lstmsim.model.sparse.csr import Csr, firsts

#: Strategies by name; the last two look at no entries.
HASHES = ("linear", "linear-warp", "shift", "sampled", "identity", "sort")

#: Most rows that `sampled` looks at, and the quantiles (in percent) through which its line goes.
_SAMPLED, _LOW, _HIGH = 64, 5, 95


@dataclass(frozen=True)
class Table:
    """What a strategy knows of the table of one block.

    m, end: rows of a whole block, and of this one, which are the entries of the table.
    omega: rows of a group, the lanes of a warp.
    scale: rows times columns of the matrix for each of its non-zeros; 0 for a matrix without any.
    shift: right and left shift of the strategy `shift`.
    """

    m: int
    end: int
    columns: int
    omega: int
    scale: Fraction
    shift: tuple[int, int] = (4, 8)


@dataclass(frozen=True, eq=False)
class Placing:
    """Where the rows of a block went: the place of each in the table.

    probes: entries that probing one by one looks at for each row, the taken one included.
    finds: entries that a structure of next free entries looks at for the same places, over all rows.
    """

    place: Ints
    probes: Ints
    finds: int


def placed(strategy: str, counts: Ints, table: Table) -> Placing:
    """The places of a block's rows, by one of `HASHES` and the non-zeros of each row in the block, shape (rows,)."""
    nothing = np.zeros(len(counts), np.int64)
    if strategy == "identity":
        return Placing(np.arange(len(counts)), nothing, 0)
    if strategy == "sort":
        place = np.empty(len(counts), np.int64)
        place[np.argsort(counts, kind="stable")] = np.arange(len(counts))
        return Placing(place, nothing, 0)
    return literal_places(bases(strategy, counts, table), table.end)


def bases(strategy: str, counts: Ints, table: Table) -> Ints:
    """Where the search for a free entry begins for each row: the strategy's function of the row's non-zeros.

    Whole numbers only; of a matrix without non-zeros every base is 0. Bases after the table are all alike: `end`.
    """
    if not table.scale:
        return np.zeros(len(counts), np.int64)
    if strategy == "shift":
        right, left = table.shift
        return np.array([min(count >> right << left, table.end) for count in counts.tolist()], dtype=np.int64)
    if strategy == "sampled":
        return _sampled(counts, table.end)
    # floor(c * scale * m / (2 * columns)) with whole numbers of any size; each count occurs in many rows
    steps, unit = (table.m, 1) if strategy == "linear" else (table.m // table.omega, table.omega)
    slope = table.scale * steps / (2 * table.columns)
    values, back = np.unique(counts, return_inverse=True)
    made = [min(count * slope.numerator // slope.denominator * unit, table.end) for count in values.tolist()]
    return np.array(made, dtype=np.int64)[back]


def _sampled(counts: Ints, end: int) -> Ints:
    """Bases on the line through the low and the high quantile of some rows' non-zeros."""
    size = min(_SAMPLED, end)
    some = np.sort(counts[np.arange(size) * end // size])
    low, high = (int(some[percent * (size - 1) // 100]) for percent in (_LOW, _HIGH))
    if low == high:
        return np.full(len(counts), end // 2, dtype=np.int64)
    line: Ints = (counts - low) * (end - 1) // (high - low)
    return line.clip(0, end - 1)


def literal_places(base: Ints, end: int) -> Placing:
    """Rows in order take the first free entry of base, base + 1, base - 1, base + 2, ..; from the end if base >= end.

    Next free entries and distances say what probing would look at, so a full table costs no square of its size.
    """
    # above[i]: the next free entry from i on, or nearer to it; `end`: none. below[i + 1]: from i down; 0: none.
    above, below = list(range(end + 1)), list(range(end + 1))
    place, probes = [0] * len(base), [0] * len(base)
    finds = 0
    for row, start in enumerate(base.tolist()):
        up = down = start
        if start < end:
            finds += 1
            while above[up] != up:
                above[up] = up = above[above[up]]
                finds += 1
        else:
            up, down = end, end - 1
        down += 1
        finds += 1
        while below[down] != down:
            below[down] = down = below[below[down]]
            finds += 1
        down -= 1
        right, left = up - start, start - down
        if start >= end:
            taken, looked = down, end - down
        elif up < end and (down < 0 or right <= left):
            taken, looked = up, 1 + right + min(max(right - 1, 0), start)
        else:
            taken, looked = down, 1 + left + min(left, end - 1 - start)
        place[row], probes[row] = taken, looked
        above[taken], below[taken + 1] = taken + 1, taken
    return Placing(np.array(place, dtype=np.int64), np.array(probes, dtype=np.int64), finds)


@record
class Partition:
    """A matrix cut into blocks. Memory order of blocks: rows of blocks outside, columns of blocks inside.

    Every block has a position for each of its rows, also for those without elements in it. `omega` positions, one
    after the other, are a group; the last of a block may be shorter.

    rows, columns: of the matrix.
    m, n: rows and columns of a block; those at the end may have fewer.
    omega: positions of a group.
    """

    rows: int
    columns: int
    m: int
    n: int
    omega: int

    @property
    def row_blocks(self) -> int:
        """Blocks above each other, at least 1."""
        return max(1, -(-self.rows // self.m))

    @property
    def column_blocks(self) -> int:
        """Blocks side by side, at least 1."""
        return max(1, -(-self.columns // self.n))

    @property
    def blocks(self) -> int:
        """All blocks."""
        return self.row_blocks * self.column_blocks

    @property
    def positions(self) -> int:
        """Positions of all blocks: each row has one in every column of blocks."""
        return self.rows * self.column_blocks

    def width(self, column: int) -> int:
        """Columns of the blocks of a column of blocks."""
        return min(self.n, self.columns - column * self.n)

    @cached_property
    def ends(self) -> Ints:
        """Shape (blocks,): rows of each block."""
        return np.repeat(np.minimum(self.m, self.rows - np.arange(self.row_blocks) * self.m), self.column_blocks)

    @cached_property
    def first_position(self) -> Ints:
        """Shape (blocks + 1,): block b has the positions from `first_position[b]` to `first_position[b + 1]`."""
        return firsts(self.ends)

    @cached_property
    def first_group(self) -> Ints:
        """Shape (blocks + 1,): block b has the groups from `first_group[b]` to `first_group[b + 1]`."""
        return firsts(-(-self.ends // self.omega))

    @property
    def groups(self) -> int:
        """Groups of all blocks."""
        return int(self.first_group[-1])

    @cached_property
    def block_of_position(self) -> Ints:
        """Shape (positions,): the block of each position."""
        return np.repeat(np.arange(self.blocks), self.ends)

    @cached_property
    def row_of_position(self) -> Ints:
        """Shape (positions,): the row that each position would have without a hash."""
        block = self.block_of_position
        return block // self.column_blocks * self.m + np.arange(self.positions) - self.first_position[block]

    @cached_property
    def block_of_group(self) -> Ints:
        """Shape (groups,): the block of each group."""
        return np.repeat(np.arange(self.blocks), np.diff(self.first_group))

    @cached_property
    def first_of_group(self) -> Ints:
        """Shape (groups,): the first position of each group."""
        block = self.block_of_group
        return self.first_position[block] + (np.arange(self.groups) - self.first_group[block]) * self.omega

    @cached_property
    def group_of_position(self) -> Ints:
        """Shape (positions,): the group of each position."""
        block = self.block_of_position
        return self.first_group[block] + (np.arange(self.positions) - self.first_position[block]) // self.omega


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


@dataclass(frozen=True, eq=False)
class Hashed:
    """A matrix that was put into HBP, and what that took.

    counts: shape (positions,); elements of the row at each position in its block.
    probes: shape (positions,); as of `Placing`, by local row: blocks in memory order, rows of a block ascending.
    finds: shape (blocks,); as of `Placing`.
    """

    hbp: Hbp
    counts: Ints
    probes: Ints
    finds: Ints


def hashed(
    matrix: Csr, m: int, n: int, omega: int, strategy: str = "linear", shift: tuple[int, int] = (4, 8)
) -> Hashed:
    """A matrix in HBP; `InputError` for sizes that do not fit and for an unknown strategy.

    m, n, omega: rows of a block, a multiple of `omega`, its columns, and rows of a group, the lanes of a warp.
    strategy: one of `HASHES`; shift: right and left shift of the strategy `shift`.
    """
    _check(m, n, omega, strategy, shift)
    partition = Partition(matrix.rows, matrix.columns, m, n, omega)
    # elements of each row in each block; blocks in memory order, rows of a block ascending
    blocks = partition.column_blocks
    local = partition.row_of_position * blocks + partition.block_of_position % blocks
    key = matrix.entry_rows * blocks + matrix.cols // n
    grid = np.bincount(key, minlength=matrix.rows * blocks)
    counts = grid[local]
    nnz = len(matrix.cols)
    scale = Fraction(matrix.rows * matrix.columns, nnz) if nnz else Fraction(0)
    placings = []
    for block, (start, stop) in enumerate(zip(partition.first_position, partition.first_position[1:], strict=False)):
        table = Table(m, int(stop - start), partition.width(block % blocks), omega, scale, shift)
        placings.append(placed(strategy, counts[start:stop], table))
    nothing = np.zeros(0, np.int64)
    places = np.concatenate([nothing, *(each.place for each in placings)])
    probes = np.concatenate([nothing, *(each.probes for each in placings)])
    position = partition.first_position[partition.block_of_position] + places
    output_hash, at = np.empty(partition.positions, np.int64), np.empty(partition.positions, np.int64)
    output_hash[position], at[position] = partition.row_of_position, counts
    owner = np.empty(len(grid), np.int64)
    owner[local] = position
    hbp = _arranged(matrix, partition, key, firsts(grid)[:-1][key], owner[key], at, output_hash)
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
    refuse(mistakes)


def _arranged(
    matrix: Csr, partition: Partition, key: Ints, starts: Ints, slot: Ints, at: Ints, output_hash: Ints
) -> Hbp:
    """The arrays, once every row has its position: of each element its row in its block, that row's begin, position."""
    groups = partition.group_of_position
    zeros = at == 0
    before = np.cumsum(zeros) - zeros
    zero_row = np.where(zeros, -1, before - before[partition.first_of_group[groups]])
    begin = firsts(np.bincount(groups, weights=at, minlength=partition.groups).astype(np.int64))
    step = np.arange(len(key)) - starts
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
