"""Blocks of a matrix for HBP: which rows, columns, positions and groups each of them has."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.model.sparse.ranges import firsts

__all__ = ["Partition"]

Ints = NDArray[np.int64]


@record
class Partition:
    """A matrix cut into blocks. Memory order of blocks: rows of blocks outside, columns of blocks inside.

    Every block has a position for each of its rows, also for those without elements in it. `omega` positions, one
    behind the other, are a group; the last of a block may be shorter.

    rows, columns: of the matrix.
    m, n: rows and columns of a block; those at the end may have fewer.
    omega: positions of a group.

    >>> made = Partition(rows=6, columns=5, m=4, n=2, omega=2)
    >>> made.row_blocks, made.column_blocks, made.blocks, made.positions, made.groups
    (2, 3, 6, 18, 9)
    >>> made.first_position, made.width(2)
    (array([ 0,  4,  8, 12, 14, 16, 18]), 1)
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
        """Blocks beside each other, at least 1."""
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
