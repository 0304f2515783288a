"""Sizes on a row-wise NPU: words of vectors and matrices, and when the row groups of a product are finished."""

from __future__ import annotations

from dataclasses import dataclass

from lstmsim.machines.row.core import RowCore

__all__ = ["Shape", "shape_of"]


@dataclass(frozen=True)
class Shape:
    """A core's sizes in words and cycles.

    >>> from lstmsim.machines.row.core import RowCore
    >>> core = RowCore(tiles=7, engines=40, lanes=40, vectors=3, chunk_groups=12)
    >>> shape = shape_of(core)
    >>> shape.words(1024), shape.groups(1024), shape.product_cycles(1024, 1024), shape.groups(256)
    (4, 26, 104, 12)
    >>> shape.chunks(26), shape.finished_after(26, 4)[:2], shape.finished_after(26, 4)[12]
    ((12, 14), (36, 37), 90)
    """

    core: RowCore

    def words(self, columns: int) -> int:
        """Words of a vector in each tile: those of its columns, padded to the native dimension."""
        core = self.core
        padded = -(-columns // core.native_dimension) * core.native_dimension
        return -(-padded // core.ep)

    def groups(self, rows: int) -> int:
        """Row groups of a matrix: one row for each engine, at least as many as a column word takes to load."""
        return max(-(-rows // self.core.engines), self.core.chunk_groups)

    def product_cycles(self, rows: int, columns: int) -> int:
        """Cycles of a matrix-vector product: one for each row group and word."""
        return self.groups(rows) * self.words(columns)

    def passes(self) -> int:
        """Cycles in which the results of one row group pass the vector pipe."""
        return -(-self.core.vectors * self.core.engines // self.core.vector_lanes)

    def vectors(self, rows: int) -> int:
        """Cycles in which a vector of that many elements passes the vector pipe."""
        return self.groups(rows) * self.passes()

    def chunks(self, groups: int) -> tuple[int, ...]:
        """Row groups in each chunk; the last takes what remains, less than two chunks."""
        size = self.core.chunk_groups
        whole = groups // size - 1
        return (*[size] * whole, groups - whole * size)

    def finished_after(self, groups: int, words: int) -> tuple[int, ...]:
        """Cycles from the start of a product until the last word of each row group enters."""
        after, start = [], 0
        for chunk in self.chunks(groups):
            after += [start + (words - 1) * chunk + group for group in range(chunk)]
            start += words * chunk
        return tuple(after)

    def loader_words(self, size: int) -> tuple[int, ...]:
        """Row groups that each loader operation writes to the matrix-vector unit.

        There is one operation for each tile until all groups are written, or one operation for all.
        """
        groups, words = self.groups(size), self.words(size)
        if not self.core.tile_loads:
            return (groups,)
        full, rest = divmod(min(groups, self.core.tiles * words), words)
        return (*[words] * full, *([rest] if rest else []))


def shape_of(core: RowCore) -> Shape:
    """The sizes of a core."""
    return Shape(core)
