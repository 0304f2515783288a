"""Dense products: a matrix times a vector, a warp for each row; a matrix times a matrix, by tiles and slices."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated

import numpy as np

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import Ints, KernelShape, Made, Mask, Run, Values, residency
from lstmsim.machines.parallel.kernels.phases import Phase, phase_kernel, summing
from lstmsim.machines.parallel.kernels.rows import (
    Options,
    check_sizes,
    default_vector,
    fours,
    memories,
    numbered,
    option_mistakes,
    tree,
)
from lstmsim.machines.parallel.writing.streams import Result, Warps, later
from lstmsim.model.sparse.made import number_type

#: Rows one after the other: how many, and from and to which column they are not all zero.
Sections = tuple[tuple[int, int, int], ...]


def columns_of_rows(sections: Sections) -> tuple[Ints, Ints]:
    """From and to which column each row is not all zero, shape (rows,) each."""
    counts = [count for count, _, _ in sections]
    low, high = (np.repeat(np.array([each[place] for each in sections], dtype=np.int64), counts) for place in (1, 2))
    return low, high


def span_of_rows(sections: Sections, first: int, stop: int) -> tuple[int, int]:
    """From and to which column some rows are not all zero."""
    at, lows, highs = 0, [], []
    for count, low, high in sections:
        if at < stop and at + count > first:
            lows.append(low)
            highs.append(high)
        at += count
    return min(lows, default=0), max(highs, default=0)


SHAPE = KernelShape("gemv", 4, 32)


def gemv(rows: int, columns: int, device: ParallelDevice, data: tuple[Values, Values] | None = None) -> Made:
    """The kernel of y = W x; `InputError` if a size is none, or the data has another.

    data: W, shape (rows, columns), and x, shape (columns,), if y is asked.
    """
    check_sizes({"M": rows, "K": columns})
    residency(SHAPE, device)
    memory = memories(device.element_bytes, W=rows * columns, x=columns, y=rows)
    arrays = numbered(memory)
    kernel = phase_kernel(gemv_phase(device.core.warp, ("W", "x", "y"), ((rows, 0, columns),), columns), device, arrays)
    result = None
    if data is not None:
        if data[0].shape != (rows, columns) or data[1].shape != (columns,):
            raise InputError(Mistake("data", f"must be {rows} x {columns} and {columns} numbers"))
        result = _vector_product(*data, device.core.warp)
    return Made(Run(memory, (kernel,)), result, {"macs": rows * columns})


def gemv_phase(lanes: int, names: tuple[str, str, str], sections: Sections, columns: int) -> Phase:
    """The phase of a product with a vector, a warp for each row."""
    matrix, vector, result = names
    v, lane = default_vector(columns), np.arange(lanes)
    lows, highs = columns_of_rows(sections)

    def write(warps: Warps, stream: Ints) -> list[Result]:
        low, high = lows[stream, None], highs[stream, None]
        a, last = warps.alu(4), None
        for start in range(0, columns, lanes * v):
            k = start + lane * v
            on = (k + v > low) & (k < high)
            mask = np.asarray(on.any(axis=1))
            some = warps.part(mask)
            if not len(some):
                continue
            w = some.ldg(matrix, stream[mask, None] * columns + k, on[mask], [a], v)
            x = some.ldg(vector, k, on[mask], [a], v)
            for _ in range(v):
                last = later(last, some.fma(1, [w, x, last]))
        last = later(a, last)
        half = lanes // 2
        while half:
            last = warps.fma(1, [warps.shfl([last])])
            half //= 2
        return [warps.stg(result, stream[:, None], lane == 0, [last])]

    return Phase(SHAPE, len(lows), write)


def _vector_product(matrix: Values, vector: Values, lanes: int) -> Values:
    """The product in the order of the kernel: each lane its elements, then the tree; each operation rounded."""
    dtype, v = number_type(matrix, vector), default_vector(len(vector))
    chunks = -(-len(vector) // (lanes * v))
    filling = chunks * lanes * v - len(vector)
    a = np.pad(matrix.astype(dtype, copy=False), ((0, 0), (0, filling))).reshape(-1, chunks, lanes, v)
    x = np.pad(vector.astype(dtype, copy=False), (0, filling)).reshape(chunks, lanes, v)
    total = np.zeros((len(matrix), lanes), dtype)
    # lanes do not stop at an infinity
    with np.errstate(over="ignore", invalid="ignore"):
        for chunk in range(chunks):
            for d in range(v):
                total = total + a[:, chunk, :, d] * x[chunk, :, d]
        return tree(total)


@record
class Tile:
    """A tile of a product of `bm` x `bn` elements, `bk` inner ones at a time; a thread has `tm` x `tn` of them.

    >>> Tile(64, 64, 8, 8, 4).warps(32)
    4
    """

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int

    def warps(self, lanes: int) -> int:
        """Warps of a block; `InputError` if the threads do not fill warps or do not cut the tile evenly."""
        threads, rest = divmod(self.bm * self.bn, self.tm * self.tn)
        if rest or self.bm % self.tm or self.bn % self.tn:
            place = f"tile {self.bm} x {self.bn}"
            raise InputError(Mistake(place, f"must be cut evenly by threads of {self.tm} x {self.tn}"))
        if threads % lanes:
            raise InputError(Mistake("tile", f"must be for whole warps of {lanes} threads, got {threads} threads"))
        return threads // lanes

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        return 4 * self.bk * (self.bm + self.bn)


@record
class GemmOptions(Options):
    """Options of a dense product: the tile of a block, whole or not at all, and slices of the inner dimension."""

    bm: Annotated[int | None, Key("rows of the tile", low=1)] = None
    bn: Annotated[int | None, Key("columns of the tile", low=1)] = None
    bk: Annotated[int | None, Key("inner elements of the tile", low=1, rule=fours)] = None
    tm: Annotated[int | None, Key("rows of a thread", low=1, rule=fours)] = None
    tn: Annotated[int | None, Key("columns of a thread", low=1, rule=fours)] = None
    split: Annotated[int, Key("slices of the inner dimension; 0: as many as the rule gives", low=0)] = 0

    def __post_init__(self) -> None:
        refuse(option_mistakes(self))
        sizes = {name: getattr(self, name) for name in ("bm", "bn", "bk", "tm", "tn")}
        if set(sizes.values()) != {None}:
            missing = [name for name, size in sizes.items() if size is None]
            refuse(Mistake(name, "is missing; a tile has bm, bn, bk, tm and tn") for name in missing)


def tile_of(options: GemmOptions) -> Tile | None:
    """The tile that is given, or None."""
    sizes = [getattr(options, each.name) for each in fields(Tile)]
    return None if None in sizes else Tile(*sizes)


def default_tiles(columns: int) -> tuple[Tile, ...]:
    """The tiles of which the fastest is taken where none is given."""
    if columns <= 16:
        return (Tile(64, 16, 8, 4, 4),)
    if columns <= 32:
        return (Tile(64, 32, 8, 4, 4),)
    return Tile(64, 64, 8, 8, 4), Tile(128, 64, 8, 8, 8), Tile(128, 128, 8, 8, 8)


def slices_of(sizes: tuple[int, int, int], tile: Tile, split: int, sms: int) -> list[tuple[int, int]]:
    """The slices of the inner dimension of a product of M, K and N, each from and to."""
    rows, inner, columns = sizes
    tiles = -(-rows // tile.bm) * -(-columns // tile.bn)
    count = split or max(1, min(inner // 64, 2 * sms // tiles))
    # ceil(inner / count), rounded up to whole inner elements of the tile
    length = -(-inner // (count * tile.bk)) * tile.bk
    return [(start, min(inner, start + length)) for start in range(0, inner, length)]


def tile_for(rows: int, columns: int, sms: int) -> Tile:
    """The tile of a product: of the default tiles the largest that still gives each SM a block, else the smallest."""
    tiles = default_tiles(columns)
    for tile in reversed(tiles):
        if -(-rows // tile.bm) * -(-columns // tile.bn) >= sms:
            return tile
    return tiles[0]


#: Loads of a tile: warps with lanes in a chunk, the vectors that their lanes have, whether a lane has one, the load.
_Loads = list[tuple[Warps, Ints, Mask, Result]]


@dataclass(frozen=True, eq=False)
class _Place:
    """Row and column of the tiles of some warps, and the warps' numbers in their blocks, shape (n,) each."""

    row: Ints
    column: Ints
    warp: Ints


@dataclass(frozen=True)
class Gemm:
    """The phase of a product by tiles."""

    tile: Tile  # of a block
    sizes: tuple[int, int, int]  # M, K and N
    names: tuple[str, str, str]  # arrays A, B and C
    lanes: int  # of a warp
    # of K, each from and to; with several of them the result goes to the array `partial`, slice after slice
    slices: tuple[tuple[int, int], ...]
    sections: Sections  # rows of A, and which of their columns are not all zero

    @property
    def shape(self) -> KernelShape:
        """What it asks of a multiprocessor."""
        return KernelShape("gemm", self.tile.warps(self.lanes), 128, self.tile.shared)

    @property
    def phase(self) -> Phase:
        """The phase of the warps of all tiles of all slices."""
        down, across = self._grid
        return Phase(self.shape, down * across * len(self.slices) * self.shape.warps, self.write)

    @property
    def _grid(self) -> tuple[int, int]:
        """Tiles below each other and side by side."""
        return -(-self.sizes[0] // self.tile.bm), -(-self.sizes[2] // self.tile.bn)

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

    def _load(self, warps: Warps, place: _Place, k0: int, a: Result) -> tuple[_Loads, _Loads]:
        """The loads of A's and of B's tile from `k0` on."""
        rows, inner, columns = self.sizes
        bm, bn, bk = self.tile.bm, self.tile.bn, self.tile.bk
        va, vb = self.vectors
        m, n, w = place.row, place.column, self.shape.warps
        both: tuple[_Loads, _Loads] = ([], [])
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
                    both[side].append((warps.part(issued), chunk[issued], on[issued], result))
        return both

    def _store(self, warps: Warps, loads: tuple[_Loads, _Loads]) -> None:
        """What was loaded goes to shared memory, A's vectors element by element."""
        bm, bn, bk = self.tile.bm, self.tile.bn, self.tile.bk
        va, vb = self.vectors
        stores = []
        for some, chunk, on, result in loads[0]:
            row, k = chunk // (bk // va), chunk % (bk // va) * va
            stores += [some.sts(4 * ((k + q) * bm + row), on, waits=[result]) for q in range(va)]
        for some, chunk, on, result in loads[1]:
            k, column = chunk // (bn // vb), chunk % (bn // vb) * vb
            stores.append(some.sts(4 * (bk * bm + k * bn + column), on, vb, [result]))
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


def gemm(
    sizes: tuple[int, int, int],
    tile: Tile,
    split: int,
    device: ParallelDevice,
    data: tuple[Values, Values] | None = None,
) -> Made:
    """The kernels of C = A B; `InputError` if sizes, tile or data do not fit.

    sizes: M, K and N, each at least 1. split: slices of K, 0 for the rule. data: A and B, if C is asked.
    """
    rows, inner, columns = sizes
    check_sizes(dict(zip("MKN", sizes, strict=True)))
    partial = gemm_partials(sizes, tile, split, device) or None
    memory = memories(device.element_bytes, A=rows * inner, B=inner * columns, C=rows * columns, partial=partial)
    phases = gemm_phases(device, ("A", "B", "C"), sizes, tile, split, ((rows, 0, inner),))
    kernels = tuple(phase_kernel(phase, device, numbered(memory)) for phase in phases)
    result = None
    if data is not None:
        if data[0].shape != (rows, inner) or data[1].shape != (inner, columns):
            raise InputError(Mistake("data", f"must be {rows} x {inner} and {inner} x {columns} numbers"))
        result = _product(*data, slices_of(sizes, tile, split, device.sms))
    return Made(Run(memory, kernels), result, {"macs": rows * inner * columns})


def gemm_partials(sizes: tuple[int, int, int], tile: Tile, split: int, device: ParallelDevice) -> int:
    """Elements of the array of partial results, 0 if the product is in one slice."""
    slices = len(slices_of(sizes, tile, split, device.sms))
    return slices * sizes[0] * sizes[2] if slices > 1 else 0


def gemm_phases(
    device: ParallelDevice,
    names: tuple[str, str, str],
    sizes: tuple[int, int, int],
    tile: Tile,
    split: int,
    sections: Sections,
) -> list[Phase]:
    """The phases alone, over arrays of any names; with several slices one that adds them up follows."""
    slices = slices_of(sizes, tile, split, device.sms)
    product = Gemm(tile, sizes, names, device.core.warp, tuple(slices), sections)
    residency(product.shape, device)
    if len(slices) == 1:
        return [product.phase]
    parts, result = ("partial", len(slices)), (names[2], sizes[0] * sizes[2])
    return [product.phase, summing(KernelShape("reduce", 4, 16), device.core.warp, parts, result)]


def product_phases(
    device: ParallelDevice,
    names: tuple[str, str, str],
    sections: Sections,
    shape: tuple[int, int],
    tile: Tile | None,
    split: int,
) -> list[Phase]:
    """The phases of weights times one vector, or by tiles times several."""
    if tile is None:
        return [gemv_phase(device.core.warp, names, sections, shape[0])]
    rows = sum(count for count, _, _ in sections)
    return gemm_phases(device, names, (rows, *shape), tile, split, sections)


def _product(a: Values, b: Values, slices: list[tuple[int, int]]) -> Values:
    """The product in the order of the kernel: by slices, each in the order of K; each operation rounded on its own."""
    dtype = number_type(a, b)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    parts = []
    # lanes do not stop at an infinity
    with np.errstate(over="ignore", invalid="ignore"):
        for low, high in slices:
            part = np.zeros((a.shape[0], b.shape[1]), dtype)
            for k in range(low, high):
                part = part + a[:, k, None] * b[k]
            parts.append(part)
        total = parts[0] if len(parts) == 1 else np.zeros(parts[0].shape, dtype)
        for part in parts if len(parts) > 1 else ():
            total = total + part
    return total
