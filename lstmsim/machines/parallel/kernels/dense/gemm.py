"""Dense matrix times matrix by tiles in shared memory, in slices of the inner dimension where tiles are few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.parallel.device import Device
from lstmsim.machines.parallel.kernel import KernelShape, Memory, Run
from lstmsim.machines.parallel.kernels.csr.rows import addressable
from lstmsim.machines.parallel.kernels.dense.gemm_text import Gemm
from lstmsim.machines.parallel.kernels.dense.phases import Phase, phase_kernel
from lstmsim.machines.parallel.kernels.dense.sections import Sections
from lstmsim.machines.parallel.kernels.dense.sums import Sum
from lstmsim.machines.parallel.kernels.dense.tiles import Tile, default_tiles, slices_of
from lstmsim.machines.parallel.kernels.made import Made
from lstmsim.machines.parallel.kernels.options import bad_number, refuse
from lstmsim.machines.parallel.residency import residency
from lstmsim.model.sparse.products import number_type

__all__ = ["fastest_tile", "gemm", "gemm_partials", "gemm_phases"]


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
    declared = addressable(tuple(memory), device.element_bytes)
    arrays = {each.name: place for place, each in enumerate(declared)}
    phases = gemm_phases(device, ("A", "B", "C"), sizes, tile, split, ((rows, 0, inner),))
    kernels = tuple(phase_kernel(phase, device, arrays) for phase in phases)
    result = None
    if data is not None:
        if data[0].shape != (rows, inner) or data[1].shape != (inner, columns):
            raise InputError(Mistake("data", f"must be {rows} x {inner} and {inner} x {columns} numbers"))
        result = _product(*data, slices)
    return Made(Run(declared, kernels), result, {"macs": rows * inner * columns})


def fastest_tile(sizes: tuple[int, int, int], split: int, device: Device, cycles: Callable[[Run], int]) -> Tile:
    """The default tile of a product: of the candidates for its columns the one that is fastest, the first of equals.

    sizes, split, device: as of `gemm`.
    cycles: what a run takes; not asked if there is one candidate only.
    """
    candidates = default_tiles(sizes[2])
    if len(candidates) == 1:
        return candidates[0]
    return min(candidates, key=lambda tile: cycles(gemm(sizes, tile, split, device).run))


def gemm_partials(sizes: tuple[int, int, int], tile: Tile, split: int, device: Device) -> int:
    """Elements of the array of partial results, 0 if the product is in one slice.

    sizes, tile, split, device: as of `gemm`.
    """
    rows, inner, columns = sizes
    slices = slices_of(inner, split, tile, _tiles(rows, columns, tile), device.sms)
    return len(slices) * rows * columns if len(slices) > 1 else 0


def _tiles(rows: int, columns: int, tile: Tile) -> int:
    return -(-rows // tile.bm) * -(-columns // tile.bn)


def gemm_phases(
    device: Device,
    names: tuple[str, str, str],
    sizes: tuple[int, int, int],
    tile: Tile,
    split: int,
    sections: Sections,
) -> list[Phase]:
    """The phases alone, over arrays of any names; with several slices one that adds them up comes behind.

    device: the device that they are written for.
    names: of A, B and C; with several slices there is also an array called `partial`.
    sizes, tile, split: as of `gemm`.
    sections: rows of A, and which of their columns are not all zero.
    """
    rows, inner, columns = sizes
    slices = slices_of(inner, split, tile, _tiles(rows, columns, tile), device.sms)
    product = Gemm(tile, sizes, names, device.warp, tuple(slices), sections)
    residency(product.shape, device)
    if len(slices) == 1:
        return [product]
    shape = KernelShape("reduce", 4, 16)
    return [product, Sum(shape, device.warp, rows * columns, "partial", len(slices), names[2])]


def _product(a: NDArray[Any], b: NDArray[Any], slices: list[tuple[int, int]]) -> NDArray[Any]:
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
