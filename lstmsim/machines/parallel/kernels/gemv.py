"""Dense matrix times vector: a warp for each row, whose lanes' sums are added up by a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import KernelShape, Made, Memory, Run, residency
from lstmsim.machines.parallel.kernels.options import check_sizes
from lstmsim.machines.parallel.kernels.phases import phase_kernel
from lstmsim.machines.parallel.kernels.rows import addressable, default_vector, tree
from lstmsim.machines.parallel.writing.streams import Result, Warps, later
from lstmsim.model.sparse.products import number_type

#: Rows one behind the other: how many, and from and to which column they are not all zero.
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

Ints = NDArray[np.int64]


def gemv(
    rows: int, columns: int, device: ParallelDevice, data: tuple[NDArray[Any], NDArray[Any]] | None = None
) -> Made:
    """The kernel of y = W x.

    rows, columns: of W, at least 1.
    device: the device that it is written for.
    data: W, shape (rows, columns), and x, shape (columns,), if y is asked.

    InputError if a size is none, or the data has another.
    """
    check_sizes({"M": rows, "K": columns})
    residency(SHAPE, device)
    memory = addressable((Memory("W", rows * columns), Memory("x", columns), Memory("y", rows)), device.element_bytes)
    arrays = {each.name: place for place, each in enumerate(memory)}
    kernel = phase_kernel(Gemv(device.core.warp, ("W", "x", "y"), ((rows, 0, columns),), columns), device, arrays)
    result = None
    if data is not None:
        if data[0].shape != (rows, columns) or data[1].shape != (columns,):
            raise InputError(Mistake("data", f"must be {rows} x {columns} and {columns} numbers"))
        result = _product(*data, device.core.warp)
    return Made(Run(memory, (kernel,)), result, {"macs": rows * columns})


@dataclass(frozen=True)
class Gemv:
    """The phase of a product with a vector.

    lanes: of a warp.
    names: of the matrix, the vector and the result.
    sections: rows of the matrix, and which of their columns are not all zero.
    columns: of the matrix.
    """

    lanes: int
    names: tuple[str, str, str]
    sections: Sections
    columns: int
    shape = SHAPE

    @property
    def streams(self) -> int:
        """A warp for each row."""
        return sum(count for count, _, _ in self.sections)

    def write(self, warps: Warps, stream: Ints) -> list[Result]:
        """Write the part of some warps; arguments as of `Phase.write`."""
        matrix, vector, result = self.names
        v, lane = default_vector(self.columns), np.arange(self.lanes)
        low, high = (each[stream, None] for each in columns_of_rows(self.sections))
        a, last = warps.alu(4), None
        for start in range(0, self.columns, self.lanes * v):
            k = start + lane * v
            on = (k + v > low) & (k < high)
            mask = np.asarray(on.any(axis=1))
            some = warps.part(mask)
            if not len(some):
                continue
            w = some.ldg(matrix, stream[mask, None] * self.columns + k, on[mask], [a], v)
            x = some.ldg(vector, k, on[mask], [a], v)
            for _ in range(v):
                last = later(last, some.fma(1, [w, x, last]))
        last = tree_sum(warps, later(a, last))
        return [warps.stg(result, stream[:, None], lane == 0, [last])]


def tree_sum(warps: Warps, last: Result | None) -> Result | None:
    """Add up the sums of all lanes of the warps, half and half."""
    half = warps.grid.lanes // 2
    while half:
        last = warps.fma(1, [warps.shfl([last])])
        half //= 2
    return last


def _product(matrix: NDArray[Any], vector: NDArray[Any], lanes: int) -> NDArray[Any]:
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
