"""The writer of kernels: one text for all warps that do the same at the same place of their streams.

A kernel is written as a person writes it down: a line of the text is a call, and what it returns is what later lines
wait for. All warps that reach a line are written at once; loops in Python go over lines and steps, never over warps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.machines.parallel.kernel import CLASS, Kernel, KernelShape
from lstmsim.machines.parallel.memory.addresses import OFF
from lstmsim.machines.parallel.writing.pieces import joined
from lstmsim.machines.parallel.writing.places import Places, Result, later
from lstmsim.machines.parallel.writing.slabs import Access, Batch, Slab, laid_out, packed

__all__ = ["Grid", "Result", "Warps", "joined", "later"]

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
#: When the slabs at hand are packed: so many of them, or so many addresses in them.
_SLABS, _ADDRESSES = 4096, 1 << 21


class Warps:
    """Warps that do the same. Made by `Grid.warps` and `Warps.part`.

    grid: what they write into.
    numbers: shape (n,); ascending numbers of their streams: block * warps of a block + warp.

    Every writing method takes `waits`, the results that the instruction needs, in the order of the text; a warp that
    has no part in a result does not wait for it, nor anyone for None. It returns the instruction's own result.
    """

    __slots__ = ("_places", "grid", "numbers")

    def __init__(self, grid: Grid, numbers: Numbers) -> None:
        self.grid = grid
        self.numbers = numbers
        self._places = Places(numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, mask: Mask) -> Warps:
        """The warps of a mask, these themselves if it names all.

        mask: shape (n,).
        """
        if mask.all():
            return self
        where = np.flatnonzero(mask)
        some = Warps(self.grid, self.numbers[where])
        some._places.part_of(self.numbers, where)
        return some

    def alu(self, count: int | ArrayLike = 1, waits: Sequence[Result | None] = ()) -> Result:
        """Integer work: `count` issues in a row, one number or one for each warp."""
        return self._write("alu", count, waits)

    def fma(self, count: int | ArrayLike = 1, waits: Sequence[Result | None] = ()) -> Result:
        """Multiply-adds, adds, multiplications: `count` issues in a row, one number or one for each warp."""
        return self._write("fma", count, waits)

    def sfu(self, count: int | ArrayLike = 1, waits: Sequence[Result | None] = ()) -> Result:
        """Functions such as tanh: `count` issues in a row, one number or one for each warp."""
        return self._write("sfu", count, waits)

    def shfl(self, waits: Sequence[Result | None] = ()) -> Result:
        """A value that goes from lane to lane."""
        return self._write("shfl", 1, waits)

    def bar(self, waits: Sequence[Result | None] = ()) -> Result:
        """A meeting of the warps of a block."""
        return self._write("bar", 1, waits)

    def gridbar(self, waits: Sequence[Result | None] = ()) -> Result:
        """A meeting of all blocks of the kernel."""
        return self._write("gridbar", 1, waits)

    def lds(
        self, address: ArrayLike, on: ArrayLike = True, vector: int = 1, waits: Sequence[Result | None] = ()
    ) -> Result:
        """A load from shared memory.

        address: shape (n, lanes) or what becomes it; byte address of each lane, a multiple of 4 `vector`.
        on: shape (n, lanes) or what becomes it; which lanes take part.
        vector: words that each lane takes.
        """
        return self._write("lds", 1, waits, self._access(address, on, -1, vector))

    def sts(
        self, address: ArrayLike, on: ArrayLike = True, vector: int = 1, waits: Sequence[Result | None] = ()
    ) -> Result:
        """A store to shared memory; arguments as of `lds`."""
        return self._write("sts", 1, waits, self._access(address, on, -1, vector))

    def ldg(
        self, array: str, index: ArrayLike, on: ArrayLike = True, waits: Sequence[Result | None] = (), vector: int = 1
    ) -> Result:
        """A load from device memory.

        array: name of the array.
        index: shape (n, lanes) or what becomes it; number of the first element of each lane, a multiple of `vector`.
        on: shape (n, lanes) or what becomes it; which lanes take part.
        vector: elements that each lane takes.
        """
        return self._write("ldg", 1, waits, self._access(index, on, self.grid.arrays[array], vector))

    def stg(
        self, array: str, index: ArrayLike, on: ArrayLike = True, waits: Sequence[Result | None] = (), vector: int = 1
    ) -> Result:
        """A store to device memory; arguments as of `ldg`."""
        return self._write("stg", 1, waits, self._access(index, on, self.grid.arrays[array], vector))

    def atom(self, array: str, index: ArrayLike, on: ArrayLike = True, waits: Sequence[Result | None] = ()) -> Result:
        """An atomic operation on device memory, one element a lane; arguments as of `ldg`."""
        return self._write("atom", 1, waits, self._access(index, on, self.grid.arrays[array], 1))

    def ldg_if(
        self, array: str, index: ArrayLike, on: ArrayLike, waits: Sequence[Result | None] = (), vector: int = 1
    ) -> Result | None:
        """As `ldg`, by the warps with some lane on; None if no warp has one."""
        part, index, on = self._some(index, on)
        return part.ldg(array, index, on, waits, vector) if len(part) else None

    def stg_if(
        self, array: str, index: ArrayLike, on: ArrayLike, waits: Sequence[Result | None] = (), vector: int = 1
    ) -> Result | None:
        """As `stg`, by the warps with some lane on; None if no warp has one."""
        part, index, on = self._some(index, on)
        return part.stg(array, index, on, waits, vector) if len(part) else None

    def atom_if(
        self, array: str, index: ArrayLike, on: ArrayLike, waits: Sequence[Result | None] = ()
    ) -> Result | None:
        """As `atom`, by the warps with some lane on; None if no warp has one."""
        part, index, on = self._some(index, on)
        return part.atom(array, index, on, waits) if len(part) else None

    def _some(self, index: ArrayLike, on: ArrayLike) -> tuple[Warps, ArrayLike, ArrayLike]:
        """The warps with some lane on, with their rows of the tables."""
        lanes = np.asarray(on, bool)
        if lanes.ndim < 2 or len(lanes) != len(self.numbers):
            lanes = np.broadcast_to(lanes, (len(self.numbers), self.grid.lanes))
        mask: Mask = np.logical_or.reduce(lanes, axis=1)
        part = self.part(mask)
        if part is self:
            return self, index, on
        return part, _rows(index, mask), _rows(on, mask)

    def _access(self, index: ArrayLike, on: ArrayLike, array: int, vector: int) -> Access:
        table = np.empty((len(self.numbers), self.grid.lanes), np.int32)
        table[:] = index
        if on is not True:
            np.copyto(table, OFF, where=np.logical_not(on))
        return Access(table, array, vector)

    def _write(
        self, kind: str, count: int | ArrayLike, waits: Sequence[Result | None], access: Access | None = None
    ) -> Result:
        numbers = self.numbers
        counts = count if isinstance(count, int) else np.asarray(count, np.int32)
        needed = tuple(self._places.of(wait) for wait in waits if wait is not None)
        places = self.grid._next(numbers)
        if len(numbers):
            self.grid._take(Slab(numbers, places, CLASS[kind], counts, needed, access))
        return Result(numbers, places)


def _rows(table: ArrayLike, mask: Mask) -> ArrayLike:
    """The rows of a mask, of a table that has a row for each warp or one for all."""
    values = np.asarray(table)
    return values[mask] if values.ndim == 2 and len(values) == len(mask) else values


class Grid:
    """A kernel, or some consecutive blocks of one, while it is written.

    lanes: lanes of a warp.
    arrays: place of each array among the run's arrays, by its name.
    banks: of shared memory.
    element_bytes: bytes of an element of device memory, the same for all arrays.

    >>> grid = Grid(32, {"x": 0, "y": 1})
    >>> warps = grid.warps(np.arange(2))
    >>> at = warps.alu(4)
    >>> x = warps.ldg("x", warps.numbers[:, None] * 32 + np.arange(32), waits=[at])
    >>> _ = warps.stg("y", warps.numbers[:, None] * 32 + np.arange(32), waits=[x])
    >>> kernel = grid.kernel(KernelShape("copy", 1), np.array([-1, -1], np.int32))
    >>> kernel.lsu.tolist(), kernel.instructions.wait.tolist(), kernel.sector[:4].tolist()
    ([0, 1, 1, 0, 1, 1], [0, 1, 0, 1], [0, 1, 2, 3])
    """

    def __init__(self, device_warp: int, arrays: Mapping[str, int], banks: int = 32, element_bytes: int = 4) -> None:
        self.lanes = device_warp
        self.arrays = dict(arrays)
        self.banks = banks
        self.element_bytes = element_bytes
        self._lengths = np.zeros(0, np.int32)
        self._slabs: list[Slab] = []
        self._addresses = 0
        self._batches: list[Batch] = []

    def warps(self, numbers: ArrayLike) -> Warps:
        """The warps with these numbers of streams (block * warps of a block + warp, blocks counted in this grid).

        numbers: shape (n,), ascending.
        """
        each = np.asarray(numbers, np.int64).reshape(-1)
        if len(each) and (each[0] < 0 or (each[1:] <= each[:-1]).any()):
            raise ValueError("numbers of streams ascend from 0 on")
        if len(each) and each[-1] >= len(self._lengths):
            self._lengths = np.pad(self._lengths, (0, int(each[-1]) + 1 - len(self._lengths)))
        return Warps(self, each)

    def kernel(self, shape: KernelShape, sm: ArrayLike) -> Kernel:
        """What has been written, stream after stream.

        shape: what the kernel asks of a multiprocessor.
        sm: shape (blocks,); the multiprocessor of each block, -1 for any.
        """
        where = np.asarray(sm, np.int32).reshape(-1)
        if len(self._lengths) > len(where) * shape.warps:
            raise ValueError(f"{len(where)} blocks of {shape.warps} warps have no stream {len(self._lengths) - 1}")
        self._pack()
        return laid_out(self._batches, shape, where)

    def _next(self, numbers: Numbers) -> NDArray[np.int32]:
        """The next place in each of these streams, which is then taken."""
        places = self._lengths[numbers]
        self._lengths[numbers] = places + 1
        return places

    def _take(self, slab: Slab) -> None:
        self._slabs.append(slab)
        self._addresses += slab.access.table.size if slab.access else 0
        if len(self._slabs) >= _SLABS or self._addresses >= _ADDRESSES:
            self._pack()

    def _pack(self) -> None:
        self._batches += packed(self._slabs, self.banks, self.element_bytes)
        self._slabs, self._addresses = [], 0
