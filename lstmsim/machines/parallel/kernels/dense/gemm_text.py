"""The streams of a dense product by tiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import KernelShape
from lstmsim.machines.parallel.kernels.csr.rows import default_vector
from lstmsim.machines.parallel.kernels.dense.sections import Sections, span_of_rows
from lstmsim.machines.parallel.kernels.dense.tiles import Tile
from lstmsim.machines.parallel.writing.streams import Result, Warps

__all__ = ["Gemm"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Load:
    """A load of a tile that some warps issued.

    warps: all warps that have lanes in its chunk.
    chunk: shape (n, lanes); the vectors of the tile that the lanes have.
    on: shape (n, lanes); whether a lane has one.
    issued: shape (n,); which warps issued it.
    result: the load.
    """

    warps: Warps
    chunk: Ints
    on: Mask
    issued: Mask
    result: Result


@dataclass(frozen=True, eq=False)
class _Place:
    """Where some warps stand.

    row, column: shape (n,); of their tiles.
    warp: shape (n,); their places in their blocks.
    """

    row: Ints
    column: Ints
    warp: Ints


@dataclass(frozen=True)
class Gemm:
    """The phase of a product by tiles.

    tile: of a block.
    sizes: M, K and N.
    names: arrays A, B and C.
    lanes: of a warp.
    slices: of K, each from and to; with several of them the result goes to the array `partial`, slice after slice.
    sections: rows of A, and which of their columns are not all zero.
    """

    tile: Tile
    sizes: tuple[int, int, int]
    names: tuple[str, str, str]
    lanes: int
    slices: tuple[tuple[int, int], ...]
    sections: Sections

    @property
    def shape(self) -> KernelShape:
        """What it asks of a multiprocessor."""
        return KernelShape("gemm", self.tile.warps(self.lanes), 128, self.tile.shared)

    @property
    def _grid(self) -> tuple[int, int]:
        """Tiles below and beside each other."""
        return -(-self.sizes[0] // self.tile.bm), -(-self.sizes[2] // self.tile.bn)

    @property
    def streams(self) -> int:
        """The warps of all tiles of all slices."""
        down, across = self._grid
        return down * across * len(self.slices) * self.shape.warps

    @cached_property
    def vectors(self) -> tuple[int, int]:
        """Elements of vector accesses to A and to B, C."""
        return default_vector(self.sizes[1]), default_vector(self.sizes[2])

    def write(self, warps: Warps, stream: Ints) -> list[Result]:
        """Write the part of some warps; arguments as of `Phase.write`."""
        down, across = self._grid
        block, warp = np.divmod(stream, self.shape.warps)
        number, tile = np.divmod(block, down * across)
        spans = [span_of_rows(self.sections, m * self.tile.bm, (m + 1) * self.tile.bm) for m in range(down)]
        # warps with the same columns of A write the same text
        kinds = np.column_stack([number, np.array(spans)[tile % down]])
        stores: list[Result] = []
        for kind in np.unique(kinds, axis=0):
            own = np.asarray((kinds == kind).all(axis=1))
            place = _Place(tile[own] % down, tile[own] // down, warp[own])
            stores += self._tiles(warps.part(own), place, int(kind[0]), (int(kind[1]), int(kind[2])))
        return stores

    def _tiles(self, warps: Warps, place: _Place, number: int, span: tuple[int, int]) -> list[Result]:
        """The streams of tiles of a slice whose rows have the same columns."""
        low, high = self.slices[number]
        starts = range(low, high, self.tile.bk)
        steps = [k0 for k0 in starts if k0 + self.tile.bk > span[0] and k0 < span[1]]
        a, last = warps.alu(4), None
        if steps:
            self._store(warps, self._load(warps, place, steps[0], a))
        for step, k0 in enumerate(steps):
            loads = self._load(warps, place, steps[step + 1], a) if step + 1 < len(steps) else None
            for _ in range(k0, min(high, k0 + self.tile.bk)):
                last = self._multiplied(warps, place.warp)
            if loads is not None:
                warps.bar()
                self._store(warps, loads)
        return self._results(warps, place, number, last)

    def _load(self, warps: Warps, place: _Place, k0: int, a: Result) -> tuple[list[_Load], list[_Load]]:
        """The loads of A's and of B's tile from `k0` on."""
        rows, inner, columns = self.sizes
        bm, bn, bk = self.tile.bm, self.tile.bn, self.tile.bk
        va, vb = self.vectors
        m, n, w = place.row, place.column, self.shape.warps
        both: tuple[list[_Load], list[_Load]] = ([], [])
        for side, count, name, v in ((0, bm * bk // va, self.names[0], va), (1, bk * bn // vb, self.names[1], vb)):
            for turn in range(-(-count // (self.lanes * w))):
                chunk = (turn * w + place.warp)[:, None] * self.lanes + np.arange(self.lanes)
                on = chunk < count
                if side == 0:
                    row, k = m[:, None] * bm + chunk // (bk // va), k0 + chunk % (bk // va) * va
                    index, inside = row * inner + k, on & (row < rows) & (k < inner)
                else:
                    k, column = k0 + chunk // (bn // vb), n[:, None] * bn + chunk % (bn // vb) * vb
                    index, inside = k * columns + column, on & (k < inner) & (column < columns)
                issued = np.asarray(inside.any(axis=1))
                result = warps.ldg_if(name, index, inside, [a], v)
                if result is not None:
                    both[side].append(_Load(warps.part(issued), chunk[issued], on[issued], issued, result))
        return both

    def _store(self, warps: Warps, loads: tuple[list[_Load], list[_Load]]) -> None:
        """What was loaded goes to shared memory, A's vectors element by element."""
        bm, bn, bk = self.tile.bm, self.tile.bn, self.tile.bk
        va, vb = self.vectors
        stores = []
        for each in loads[0]:
            row, k = each.chunk // (bk // va), each.chunk % (bk // va) * va
            for q in range(va):
                stores.append(each.warps.sts(4 * ((k + q) * bm + row), each.on, waits=[each.result]))
        for each in loads[1]:
            k, column = each.chunk // (bn // vb), each.chunk % (bn // vb) * vb
            stores.append(each.warps.sts(4 * (bk * bm + k * bn + column), each.on, vb, [each.result]))
        warps.bar(stores)

    def _threads(self, warp: Ints) -> tuple[Ints, Ints]:
        """Row and column of the threads in the tile's grid of threads, shape (n, lanes)."""
        down, across = np.divmod(warp[:, None] * self.lanes + np.arange(self.lanes), self.tile.bn // self.tile.tn)
        return down, across

    def _multiplied(self, warps: Warps, warp: Ints) -> Result:
        """One inner element: its column of A's tile, its row of B's tile, and the products."""
        tile = self.tile
        down, across = self._threads(warp)
        a = [warps.lds(4 * (q * 4 * tile.bm // tile.tm + 4 * down), vector=4) for q in range(tile.tm // 4)]
        b = [warps.lds(4 * (q * 4 * tile.bn // tile.tn + 4 * across), vector=4) for q in range(tile.tn // 4)]
        return warps.fma(tile.tm * tile.tn, a + b)

    def _results(self, warps: Warps, place: _Place, number: int, last: Result | None) -> list[Result]:
        """The results of the threads, row by row; returns the stores."""
        rows, _, columns = self.sizes
        tile, vb = self.tile, self.vectors[1]
        down, across = self._threads(place.warp)
        partial = len(self.slices) > 1
        name, first = ("partial", number * rows * columns) if partial else (self.names[2], 0)
        stores = []
        for i in range(tile.tm):
            row = place.row[:, None] * tile.bm + i // 4 * (4 * tile.bm // tile.tm) + 4 * down + i % 4
            for q in range(0, tile.tn, vb):
                inside = q // 4 * (4 * tile.bn // tile.tn) + 4 * across + q % 4
                column = place.column[:, None] * tile.bn + inside
                on = (row < rows) & (column < columns)
                stores.append(warps.stg_if(name, first + row * columns + column, on, [last], vb))
        return [store for store in stores if store is not None]
