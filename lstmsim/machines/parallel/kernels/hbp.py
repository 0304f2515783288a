"""Sparse matrix times vector in HBP: fixed parts, batches that thread blocks compete for, and how parts are merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import Kernel, KernelShape, Made, Memory, Run, residency
from lstmsim.machines.parallel.kernels.options import Options
from lstmsim.machines.parallel.kernels.phases import summing_kernel, zeroing_kernel
from lstmsim.machines.parallel.kernels.rows import addressable, allocated
from lstmsim.machines.parallel.writing.segments import anchored, glued, joined
from lstmsim.machines.parallel.writing.streams import Grid, Result, Warps, later
from lstmsim.model.sparse.csr import Csr, spans
from lstmsim.model.sparse.hbp import HASHES, Hashed, Hbp, Partition, hashed
from lstmsim.model.sparse.products import number_type


@dataclass(frozen=True, eq=False)
class Division:
    """The blocks of the matrix that each warp of the kernel walks.

    share: rows of blocks in the fixed part of a warp.
    columns: shape (fixed,); column of blocks whose vector each thread block with a fixed part holds.
    pool: shape (n,); blocks of the matrix that are in no fixed part, in memory order.
    batches: thread blocks behind the fixed ones, each for a batch of the pool.
    stream: shape (blocks,); stream of the kernel (thread block * warps + warp) that walks a block, ascending.
    block: shape (blocks,); that block, in the order in which its warp walks it.
    """

    share: int
    columns: Ints
    pool: Ints
    batches: int
    stream: Ints
    block: Ints

    @property
    def thread_blocks(self) -> int:
        """All thread blocks of the kernel."""
        return len(self.columns) + self.batches


def division(partition: Partition, places: int, warps: int, percent: int, batch: int) -> Division:
    """The division of a matrix."""
    rows, columns = partition.row_blocks, partition.column_blocks
    share = rows * percent // (100 * -(-places // columns) * warps)
    # all fixed parts: thread block, warp, the rows of blocks of the warp
    x, j, step = np.meshgrid(np.arange(places), np.arange(warps), np.arange(share), indexing="ij")
    row = ((x // columns) * warps + j) * share + step
    inside = row < rows
    fixed, warp, owned = x[inside], j[inside], row[inside] * columns + x[inside] % columns
    blocks, place = np.unique(fixed, return_inverse=True)
    free = np.ones(partition.blocks, bool)
    free[owned] = False
    pool = np.flatnonzero(free)
    turn = np.arange(len(pool)) % batch
    # warp j takes the blocks j, j + warps, .. of its batch
    taken = (len(blocks) + np.arange(len(pool)) // batch) * warps + turn % warps
    order = np.argsort(taken, kind="stable")
    stream = np.concatenate([place.reshape(-1) * warps + warp, taken[order]])
    return Division(share, blocks % columns, pool, -(-len(pool) // batch), stream, np.concatenate([owned, pool[order]]))


@dataclass(frozen=True, eq=False)
class Walk:
    """What the warps of the HBP kernel walk.

    hbp: the matrix.
    x: shape (columns,); the vector.
    dtype: type of products and sums.
    part: which warp walks which blocks.
    warps: of a thread block.
    merged: whether partial results are stored for a later kernel; else they are added to y at once.
    """

    hbp: Hbp
    x: NDArray[Any]
    dtype: np.dtype[Any]
    part: Division
    warps: int
    merged: bool

    @cached_property
    def _sizes(self) -> Ints:
        """Shape (blocks,): groups of the blocks, in the order of walking."""
        sizes: Ints = np.diff(self.hbp.partition.first_group)[self.part.block]
        return sizes

    @cached_property
    def stream(self) -> Ints:
        """Shape (groups,): the stream that walks each group, ascending."""
        numbers: Ints = np.repeat(self.part.stream, self._sizes)
        return numbers

    @cached_property
    def group(self) -> Ints:
        """Shape (groups,): the groups in the order of walking."""
        return spans(self.hbp.partition.first_group[self.part.block], self._sizes)


@dataclass(frozen=True, eq=False)
class _Lanes:
    """Some groups as lanes see them.

    group: shape (n,); the groups.
    column: shape (n,); columns of blocks that they are in.
    position: shape (n, lanes); the position of each lane.
    on: shape (n, lanes); whether there is one.
    at: shape (n, lanes); first element of each lane's row.
    left: shape (n, lanes); whether it has one.
    row: shape (n, lanes); the row of each lane.
    """

    group: Ints
    column: Ints
    position: Ints
    on: Mask
    at: Ints
    left: Mask
    row: Ints


def _lanes(walk: Walk, group: Ints, lanes: int) -> _Lanes:
    partition = walk.hbp.partition
    block = partition.block_of_group[group]
    lane = np.arange(lanes)
    position = partition.first_of_group[group][:, None] + lane
    on = position < partition.first_position[block + 1][:, None]
    inside = np.where(on, position, 0)
    before, row = walk.hbp.zero_row[inside], walk.hbp.output_hash[inside]
    left = on & (before >= 0)
    at = np.where(left, walk.hbp.begin[group][:, None] + lane - before, 0)
    return _Lanes(group, block % partition.column_blocks, position, on, at, left, row)


def walked(warps: Warps, walk: Walk, some: slice, partial: NDArray[Any]) -> tuple[int, int]:
    """Write some groups, each as a fragment of its stream, and compute their rows.

    Returns the lanes of all multiply-accumulates and how many of them have an element.
    """
    lanes, stream = _lanes(walk, walk.group[some], warps.grid.lanes), walk.stream[some]
    pooled = stream >= len(walk.part.columns) * walk.warps
    # the place of the load of the ticket: behind alu, atom, sts, bar in warp 0, behind bar in others
    z = anchored(warps.numbers[pooled], np.where(stream[pooled] % walk.warps, 1, 4))
    a = warps.alu(2, [z])
    zero_row = warps.ldg("zero_row", lanes.position, lanes.on, [a])
    output_hash = warps.ldg("output_hash", lanes.position, lanes.on, [a])
    begin = warps.ldg("begin", lanes.group[:, None], np.arange(warps.grid.lanes) == 0, [a])
    first = warps.alu(2, [zero_row, begin])
    total, fma, nxt, slots = _steps(warps, walk, lanes, pooled, first)
    if walk.merged:
        rows = walk.hbp.partition.rows
        warps.stg("partial", lanes.column[:, None] * rows + lanes.row, lanes.on, [fma, output_hash, nxt])
    else:
        warps.atom_if("y", lanes.row, lanes.left, [fma, output_hash])
    column = np.broadcast_to(lanes.column[:, None], lanes.row.shape)
    partial[column[lanes.on], lanes.row[lanes.on]] = total[lanes.on]
    return slots * warps.grid.lanes, _elements(walk, lanes)


def _elements(walk: Walk, lanes: _Lanes) -> int:
    """How many elements the groups have."""
    return int((walk.hbp.begin[lanes.group + 1] - walk.hbp.begin[lanes.group]).sum())


def _steps(
    warps: Warps, walk: Walk, lanes: _Lanes, pooled: Mask, first: Result
) -> tuple[NDArray[Any], Result | None, Result | None, int]:
    """The steps of the groups: sums of the lanes, the last `fma` and `alu` of each warp, and how many steps."""
    hbp, data = walk.hbp, walk.hbp.data.astype(walk.dtype, copy=False)
    x = walk.x.astype(walk.dtype, copy=False)
    total = np.zeros(lanes.row.shape, walk.dtype)
    where, at, left = np.arange(len(warps)), lanes.at, lanes.left
    some, last, nxt = warps, None, first
    fma: Result | None = None
    steps = 0
    while True:
        alive = np.asarray(left.any(axis=1))
        if not alive.all():
            some, where, at, left = some.part(alive), where[alive], at[alive], left[alive]
        if not len(where):
            return total, fma, last or first, steps
        cols = some.ldg("cols", at, left, [nxt])
        values = some.ldg("data", at, left, [nxt])
        sign = some.ldg("add_sign", at, left, [nxt])
        column, shared = hbp.cols[at], ~pooled[where]
        operand = _operand(some, walk, column, left, shared, lanes.column[where], cols)
        own = some.fma(1, [operand, values, fma])
        nxt = some.alu(1, [sign])
        fma, last = later(fma, own), later(last or first, nxt)
        with np.errstate(over="ignore", invalid="ignore"):
            total[where] = np.where(left, total[where] + data[at] * x[column], total[where])
        steps += len(where)
        distance = hbp.add_sign[at]
        left = left & (distance >= 0)
        at = np.where(left, at + distance, 0)


def _operand(
    some: Warps, walk: Walk, column: Ints, left: Mask, shared: Mask, blocks: Ints, cols: Result
) -> Result | None:
    """The elements of the vector: from shared memory in fixed parts, else from device memory."""
    result: Result | None = None
    if shared.any():
        local = 4 * (column[shared] - blocks[shared][:, None] * walk.hbp.partition.n)
        result = some.part(shared).lds(local, left[shared], waits=[cols])
    direct = np.logical_not(shared)
    if direct.any():
        result = later(result, some.part(direct).ldg("x", column[direct], left[direct], [cols]))
    return result


#: How parts of a row of different columns of blocks come together.
MERGES = ("kernel", "atomic")
#: Groups of rows that are written at once.
_CHUNK = 1 << 14
#: Chunks of the vector that a warp loads before it stores them.
_TOGETHER = 4

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


HASH = Key("strategy that places the rows of a block", choices=tuple(HASHES))
SHIFT = Key("right and left shift of the strategy `shift`", low=0, high=60)


@record
class HbpOptions(Options):
    """Options of the HBP kernel."""

    m: Annotated[int, Key("rows of a block, a multiple of the lanes of a warp", low=1)]
    n: Annotated[int, Key("columns of a block", low=1)]
    hash: Annotated[str, HASH] = "linear"
    shift: Annotated[tuple[int, int], SHIFT] = (4, 8)
    warps: Annotated[int, Key("warps of a thread block", low=1)] = 4
    blocks_per_sm: Annotated[int, Key("thread blocks on each SM that the fixed parts are for", low=1)] = 2
    fixed_percent: Annotated[int, Key("how much of the matrix is dealt in fixed parts", "%", 0, 100)] = 100
    batch: Annotated[int, Key("blocks of the matrix that a thread block takes at once from the rest", low=1)] = 10
    merge: Annotated[str, Key("how parts of a row come together: by a kernel, or atomic", choices=MERGES)] = "kernel"


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


def hbp_spmv(matrix: Csr, x: NDArray[Any], options: HbpOptions, device: ParallelDevice) -> HbpMade:
    """The kernels of y = A x, and y from the arrays of HBP alone.

    InputError if sizes do not fit together or nothing fits on a multiprocessor.
    """
    if x.shape != (matrix.columns,):
        raise InputError(Mistake("x", f"must have {matrix.columns} elements, got shape {list(x.shape)}"))
    made = hashed(matrix, options.m, options.n, device.core.warp, options.hash, options.shift)
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
    """The sum of the parts, first to last, each sum rounded on its own."""
    total = np.zeros(partial.shape[1], partial.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in partial:
            total = total + part
    return total


def _kernel(
    walk: Walk, shape: KernelShape, device: ParallelDevice, arrays: dict[str, int]
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
            grid = Grid(device.core.warp, arrays, device.core.banks)
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
    """What streams do before their first group: load the vector, or take a ticket."""
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
    """Bring the columns of the warps' blocks to shared memory, chunk i by warp i mod warps."""
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


#: Rows and columns that the rule starts from, and the fewest columns.
_ROWS, _COLUMNS, _FEWEST_COLUMNS = 512, 4096, 64


def block_sizes(
    shape: tuple[int, int], warp: int, wanted: int, m: int | None = None, n: int | None = None
) -> tuple[int, int]:
    """Rows and columns of a block: the largest of the rule with which there are enough blocks, else the smallest.

    The rule starts from 512 x 4096, halves the columns down to 64 and then the rows down to a warp's lanes.
    """
    rows = max(warp, _ROWS) if m is None else m
    columns = _COLUMNS if n is None else n
    while max(1, -(-shape[0] // rows)) * max(1, -(-shape[1] // columns)) < wanted:
        if n is None and columns > _FEWEST_COLUMNS:
            columns //= 2
        elif m is None and rows > warp:
            rows //= 2
        else:
            break
    return rows, columns
