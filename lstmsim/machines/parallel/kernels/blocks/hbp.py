"""Sparse matrix times vector in HBP: fixed parts, batches that thread blocks compete for, and how parts are merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.parallel.device import Device
from lstmsim.machines.parallel.kernel import Kernel, KernelShape, Memory, Run
from lstmsim.machines.parallel.kernels.blocks.division import Division, division
from lstmsim.machines.parallel.kernels.blocks.groups import Walk, walked
from lstmsim.machines.parallel.kernels.csr.rows import addressable, allocated
from lstmsim.machines.parallel.kernels.dense.sums import summing_kernel, zeroing_kernel
from lstmsim.machines.parallel.kernels.made import Made
from lstmsim.machines.parallel.kernels.options import bad_choice, bad_number, refuse
from lstmsim.machines.parallel.residency import residency
from lstmsim.machines.parallel.writing.fragments import glued
from lstmsim.machines.parallel.writing.streams import Grid, Result, Warps, joined
from lstmsim.model.sparse.csr import Csr
from lstmsim.model.sparse.hashes import HASHES
from lstmsim.model.sparse.hbp import Hashed, Hbp, hashed
from lstmsim.model.sparse.products import number_type

__all__ = ["MERGES", "HbpMade", "HbpOptions", "hbp_arrays", "hbp_spmv", "shift_mistake"]

#: How parts of a row of different columns of blocks come together.
MERGES = ("kernel", "atomic")
#: Groups of rows that are written at once.
_CHUNK = 1 << 14
#: Chunks of the vector that a warp loads before it stores them.
_TOGETHER = 4

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@record
class HbpOptions:
    """Options of the HBP kernel.

    m: rows of a block, a multiple of the lanes of a warp.
    n: columns of a block.
    hash: strategy that places the rows of a block.
    shift: right and left shift of the strategy `shift`.
    warps: of a thread block.
    blocks_per_sm: thread blocks on each multiprocessor that the fixed parts are for.
    fixed_percent: how much of the matrix is dealt in fixed parts.
    batch: blocks of the matrix that a thread block takes at once from the rest.
    merge: `kernel`, which adds up partial results, or `atomic`.

    InputError if a value does not fit.
    """

    m: int
    n: int
    hash: str = "linear"
    shift: tuple[int, int] = (4, 8)
    warps: int = 4
    blocks_per_sm: int = 2
    fixed_percent: int = 100
    batch: int = 10
    merge: str = "kernel"

    def __post_init__(self) -> None:
        numbers = {name: getattr(self, name) for name in ("m", "n", "warps", "blocks_per_sm", "batch")}
        mistakes = [bad_number(name, value) for name, value in numbers.items()]
        mistakes += [bad_number("fixed_percent", self.fixed_percent, 0, 100), shift_mistake(self.shift)]
        refuse([*mistakes, bad_choice("hash", self.hash, HASHES), bad_choice("merge", self.merge, MERGES)])


def shift_mistake(shift: object) -> Mistake | None:
    """What is wrong with the two numbers of the strategy `shift`, or None."""
    if isinstance(shift, tuple) and len(shift) == 2 and not any(bad_number("shift", each, 0, 60) for each in shift):
        return None
    return Mistake("shift", f"must be two whole numbers from 0 to 60, got {shift}")


@dataclass(frozen=True, eq=False)
class HbpMade(Made):
    """Kernels of a matrix in HBP.

    hashed: the matrix, its probes and finds.
    division: which warp walks which blocks; None where that is not asked (conversion).
    """

    hashed: Hashed
    division: Division | None


def hbp_arrays(hbp: Hbp) -> list[Memory]:
    """The arrays of a matrix in HBP, as kernels declare them."""
    room = allocated(len(hbp.cols))
    positions = hbp.partition.positions
    sizes = {"cols": room, "data": room, "add_sign": room, "zero_row": positions, "output_hash": positions}
    return [Memory(name, size) for name, size in (sizes | {"begin": len(hbp.begin)}).items()]


def hbp_spmv(matrix: Csr, x: NDArray[Any], options: HbpOptions, device: Device) -> HbpMade:
    """The kernels of y = A x, and y from the arrays of HBP alone.

    matrix: A.
    x: shape (columns,).
    options: of the kernel.
    device: the device that they are written for.

    InputError if sizes do not fit together or nothing fits on a multiprocessor.
    """
    if x.shape != (matrix.columns,):
        raise InputError(Mistake("x", f"must have {matrix.columns} elements, got shape {list(x.shape)}"))
    made = hashed(matrix, options.m, options.n, device.warp, options.hash, options.shift)
    hbp = made.hbp
    shape = KernelShape("hbp", options.warps, 32, 4 * min(options.n, matrix.columns) + 4)
    places = device.sms * min(options.blocks_per_sm, residency(shape, device))
    part = division(hbp.partition, places, options.warps, options.fixed_percent, options.batch)
    merged = options.merge == "kernel"
    memory = [*hbp_arrays(hbp), Memory("x", matrix.columns), Memory("y", matrix.rows)]
    memory += [Memory("partial", matrix.rows * hbp.partition.column_blocks)] * merged + [Memory("ticket", 1)]
    arrays = {each.name: place for place, each in enumerate(addressable(tuple(memory)))}
    walk = Walk(hbp, x, number_type(matrix.values, x), part, options.warps, merged)
    kernel, sums, slots, active = _kernel(walk, shape, device, arrays)
    if merged:
        merging = KernelShape("merge", options.warps, 16)
        parts, y = ("partial", hbp.partition.column_blocks), ("y", matrix.rows)
        kernels = (kernel, summing_kernel(merging, device, arrays, parts, y))
    else:
        kernels = (zeroing_kernel(device, arrays, "y", matrix.rows, options.warps), kernel)
    metrics = {
        "share": part.share,
        "pool": len(part.pool),
        "batches": part.batches,
        "probes": int(made.probes.sum()),
        "finds": int(made.finds.sum()),
        "lane_slots": slots,
        "lane_active": active,
        "macs": matrix.entries,
    }
    return HbpMade(Run(tuple(memory), kernels), _merged(sums), metrics, made, part)


def _merged(partial: NDArray[Any]) -> NDArray[Any]:
    """The sum of the parts, first to last, each sum rounded on its own.

    partial: shape (columns of blocks, rows).
    """
    total = np.zeros(partial.shape[1], partial.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in partial:
            total = total + part
    return total


def _kernel(
    walk: Walk, shape: KernelShape, device: Device, arrays: dict[str, int]
) -> tuple[Kernel, NDArray[Any], int, int]:
    """The kernel `hbp`; partial sums, shape (columns of blocks, rows); lane slots and active lanes."""
    partition, blocks = walk.hbp.partition, walk.part.thread_blocks
    partial = np.zeros((partition.column_blocks, partition.rows), walk.dtype)
    slots = active = 0
    # a stream is its beginning and then its groups
    first = np.searchsorted(walk.stream, np.arange(blocks * shape.warps + 1)) + np.arange(blocks * shape.warps + 1)
    number = np.arange(len(walk.stream)) + walk.stream + 1

    def pieces() -> Iterator[Kernel]:
        nonlocal slots, active
        for start in range(0, int(first[-1]), _CHUNK):
            stop = min(int(first[-1]), start + _CHUNK)
            grid = Grid(device.warp, arrays, device.banks)
            low, high = np.searchsorted(first[:-1], (start, stop))
            _beginnings(grid, walk, np.arange(low, high), first[low:high] - start)
            low, high = np.searchsorted(number, (start, stop))
            if high > low:
                looked, useful = walked(grid.warps(number[low:high] - start), walk, slice(low, high), partial)
                slots, active = slots + looked, active + useful
            yield grid.kernel(KernelShape(shape.name, 1), np.full(stop - start, -1))

    text = joined(pieces())
    return glued(text, shape, np.full(blocks, -1, np.int32), first), partial, slots, active


def _beginnings(grid: Grid, walk: Walk, streams: Ints, fragments: Ints) -> None:
    """What streams do before their first group: load the vector, or take a ticket.

    streams: shape (n,); ascending numbers of streams.
    fragments: shape (n,); numbers of their first fragments in the grid.
    """
    fixed = streams < len(walk.part.columns) * walk.warps
    if fixed.any():
        column = walk.part.columns[streams[fixed] // walk.warps]
        _fragment_loads(grid.warps(fragments[fixed]), walk, column, streams[fixed] % walk.warps)
    if not fixed.all():
        every = grid.warps(fragments[~fixed])
        head = every.part(streams[~fixed] % walk.warps == 0)
        word, one = 4 * min(walk.hbp.partition.n, walk.hbp.partition.columns), np.arange(grid.lanes) == 0
        ticket: Result | None = None
        if len(head):
            ticket = head.sts(word, one, waits=[head.atom("ticket", 0, one, [head.alu(1)])])
        every.bar([ticket])
        every.lds(word)


def _fragment_loads(warps: Warps, walk: Walk, column: Ints, warp: Ints) -> None:
    """Bring the columns of the warps' blocks to shared memory, chunk i by warp i mod warps.

    column: shape (n,); column of blocks of each warp.
    warp: shape (n,); its place in its thread block.
    """
    lanes, n = warps.grid.lanes, walk.hbp.partition.n
    z, low = warps.alu(4), column * n
    width = np.minimum(n, walk.hbp.partition.columns - low)
    stores: list[Result] = []
    chunks = -(-int(width.max(initial=0)) // (lanes * walk.warps))
    for start in range(0, chunks, _TOGETHER):
        loads = []
        for turn in range(start, min(chunks, start + _TOGETHER)):
            element = (turn * walk.warps + warp)[:, None] * lanes + np.arange(lanes)
            on = element < width[:, None]
            mask: Mask = on[:, 0]
            some = warps.part(mask)
            if len(some):
                load = some.ldg("x", (low[:, None] + element)[mask], on[mask], [z])
                loads.append((some, element[mask], on[mask], load))
        stores += [some.sts(4 * element, on, waits=[load]) for some, element, on, load in loads]
    warps.bar(stores)
