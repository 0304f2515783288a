"""Dense matrix times matrix by tiles in shared memory, in slices of the inner dimension where tiles are few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.errors import InputError, Mistake
from lstmsim.targets.parallel.device import Device
from lstmsim.targets.parallel.kernel import Kernel, KernelShape, Memory, Run
from lstmsim.targets.parallel.kernels.gemm_text import TileText
from lstmsim.targets.parallel.kernels.made import Made
from lstmsim.targets.parallel.kernels.options import bad_number, refuse
from lstmsim.targets.parallel.kernels.sections import Sections, span_of_rows
from lstmsim.targets.parallel.kernels.sums import summing_kernel
from lstmsim.targets.parallel.kernels.tiles import Tile, slices_of
from lstmsim.targets.parallel.residency import residency
from lstmsim.targets.parallel.streams import Grid, joined

__all__ = ["gemm", "gemm_kernels", "gemm_partials"]

#: Warps that are written at once.
_CHUNK = 1 << 11


def gemm(
    sizes: tuple[int, int, int],
    tile: Tile,
    split: int,
    device: Device,
    data: tuple[NDArray[Any], NDArray[Any]] | None = None,
) -> Made:
    """The kernels of C = A B.

    sizes: M, K and N of A (M x K) and B (K x N), each at least 1.
    tile: of a block.
    split: slices of K, 0 for the rule.
    device: the device that they are written for.
    data: A and B, if C is asked.

    InputError if sizes, tile or data do not fit.
    """
    rows, inner, columns = sizes
    refuse(bad_number(name, size) for name, size in zip("MKN", sizes, strict=True))
    slices = slices_of(inner, split, tile, _tiles(rows, columns, tile), device.sms)
    memory = [Memory("A", rows * inner), Memory("B", inner * columns), Memory("C", rows * columns)]
    if len(slices) > 1:
        memory.append(Memory("partial", gemm_partials(sizes, tile, split, device)))
    arrays = {each.name: place for place, each in enumerate(memory)}
    kernels = gemm_kernels(device, arrays, ("A", "B", "C"), sizes, tile, split, ((rows, 0, inner),))
    result = None
    if data is not None:
        if data[0].shape != (rows, inner) or data[1].shape != (inner, columns):
            raise InputError(Mistake("data", f"must be {rows} x {inner} and {inner} x {columns} numbers"))
        result = _product(*data, slices)
    return Made(Run(tuple(memory), kernels), result, {"macs": rows * inner * columns})


def gemm_partials(sizes: tuple[int, int, int], tile: Tile, split: int, device: Device) -> int:
    """Elements of the array of partial results, 0 if the product is in one slice.

    sizes, tile, split, device: as of `gemm`.
    """
    rows, inner, columns = sizes
    slices = slices_of(inner, split, tile, _tiles(rows, columns, tile), device.sms)
    return len(slices) * rows * columns if len(slices) > 1 else 0


def _tiles(rows: int, columns: int, tile: Tile) -> int:
    return -(-rows // tile.bm) * -(-columns // tile.bn)


def gemm_kernels(
    device: Device,
    arrays: Mapping[str, int],
    names: tuple[str, str, str],
    sizes: tuple[int, int, int],
    tile: Tile,
    split: int,
    sections: Sections,
) -> tuple[Kernel, ...]:
    """The kernels alone, over arrays of any names; with several slices one that adds them up comes behind.

    device: the device that they are written for.
    arrays: places of the run's arrays by name; with several slices there is one called `partial`.
    names: of A, B and C.
    sizes, tile, split: as of `gemm`.
    sections: rows of A, and which of their columns are not all zero.
    """
    rows, inner, columns = sizes
    shape = KernelShape("gemm", tile.warps(device.warp), 128, tile.shared)
    residency(shape, device)
    slices = slices_of(inner, split, tile, _tiles(rows, columns, tile), device.sms)
    text = TileText(tile, (rows, inner, columns), names, device.warp, len(slices) > 1)
    kernel = joined(_pieces(text, shape, device, arrays, slices, sections))
    if len(slices) == 1:
        return (kernel,)
    parts, result = ("partial", len(slices)), (names[2], rows * columns)
    return kernel, summing_kernel(KernelShape("reduce", 4, 16), device.warp, arrays, parts, result)


def _pieces(
    text: TileText,
    shape: KernelShape,
    device: Device,
    arrays: Mapping[str, int],
    slices: list[tuple[int, int]],
    sections: Sections,
) -> Iterator[Kernel]:
    """The kernel in pieces of some tiles of one slice."""
    rows, _, columns = text.sizes
    down, across = -(-rows // text.tile.bm), -(-columns // text.tile.bn)
    spans = [span_of_rows(sections, m * text.tile.bm, (m + 1) * text.tile.bm) for m in range(down)]
    step = max(1, _CHUNK // shape.warps)
    for number, (low, high) in enumerate(slices):
        for start in range(0, down * across, step):
            block = np.arange(start, min(down * across, start + step))
            grid = Grid(device.warp, arrays, device.banks)
            span = np.array([spans[each] for each in (block % down).tolist()])
            for some in np.unique(span, axis=0):
                own = np.flatnonzero((span == some).all(axis=1))
                streams = (own[:, None] * shape.warps + np.arange(shape.warps)).reshape(-1)
                tiles = np.repeat(block[own], shape.warps)
                text.write(grid.warps(streams), tiles % down, tiles // down, (number, low, high), (some[0], some[1]))
            yield grid.kernel(shape, np.full(len(block), -1))


def _product(a: NDArray[Any], b: NDArray[Any], slices: list[tuple[int, int]]) -> NDArray[Any]:
    """The product in the order of the kernel: by slices, each in the order of K; each operation rounded on its own."""
    dtype = np.result_type(a, b)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    parts = []
    for low, high in slices:
        part = np.zeros((a.shape[0], b.shape[1]), dtype)
        for k in range(low, high):
            part = part + a[:, k, None] * b[k]
        parts.append(part)
    if len(parts) == 1:
        return parts[0]
    total = np.zeros(parts[0].shape, dtype)
    for part in parts:
        total = total + part
    return total
