"""Sparse matrix times vector in HBP, and the conversion of a matrix from CSR to HBP on the device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import Ints, Kernel, KernelShape, Made, Mask, Run, Values, residency
from lstmsim.machines.parallel.kernels.phases import phase_kernel, summing, zeroing
from lstmsim.machines.parallel.kernels.rows import Options, allocated, grids, memories, numbered
from lstmsim.machines.parallel.writing.streams import Grid, Piece, Result, Warps, at_place, later, written
from lstmsim.model.sparse.csr import Csr, firsts, spans
from lstmsim.model.sparse.hbp import HASHES, Hashed, Hbp, Partition, hashed
from lstmsim.model.sparse.made import number_type


@dataclass(frozen=True, eq=False)
class Division:
    """The blocks of the matrix that each warp of the kernel walks."""

    share: int  # rows of blocks in the fixed part of a warp
    columns: Ints  # shape (fixed,); column of blocks whose vector each thread block with a fixed part holds
    pool: Ints  # shape (n,); blocks of the matrix that are in no fixed part, in memory order
    batches: int  # thread blocks after the fixed ones, each for a batch of the pool
    stream: Ints  # shape (blocks,); stream of the kernel (thread block * warps + warp) that walks a block, ascending
    block: Ints  # shape (blocks,); that block, in the order in which its warp walks it

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
    """What the warps of the HBP kernel walk."""

    made: Hashed  # the matrix, its probes and finds
    x: Values  # shape (columns,); the vector
    dtype: np.dtype[Any]  # type of products and sums
    part: Division  # which warp walks which blocks
    warps: int  # of a thread block
    merged: bool  # whether partial results are stored for a later kernel; else they are added to y at once

    @property
    def hbp(self) -> Hbp:
        """The matrix."""
        return self.made.hbp

    @cached_property
    def sizes(self) -> Ints:
        """Shape (blocks,): groups of the blocks, in the order of walking."""
        sizes: Ints = np.diff(self.hbp.partition.first_group)[self.part.block]
        return sizes

    @cached_property
    def group(self) -> Ints:
        """Shape (groups,): the groups in the order of walking, stream after stream."""
        return spans(self.hbp.partition.first_group[self.part.block], self.sizes)


@dataclass(frozen=True, eq=False)
class _Lanes:
    """Some groups as lanes see them."""

    group: Ints  # shape (n,); the groups
    column: Ints  # shape (n,); columns of blocks that they are in
    position: Ints  # shape (n, lanes); the position of each lane
    on: Mask  # shape (n, lanes); whether there is one
    at: Ints  # shape (n, lanes); first element of each lane's row
    left: Mask  # shape (n, lanes); whether it has one
    row: Ints  # shape (n, lanes); the row of each lane


def _lanes(walk: Walk, group: Ints, lanes: int) -> _Lanes:
    partition = walk.hbp.partition
    block = partition.block_of_group[group]
    position, on = _positions(partition, group, lanes)
    inside = np.where(on, position, 0)
    before, row = walk.hbp.zero_row[inside], walk.hbp.output_hash[inside]
    left = on & (before >= 0)
    at = np.where(left, walk.hbp.begin[group][:, None] + np.arange(lanes) - before, 0)
    return _Lanes(group, block % partition.column_blocks, position, on, at, left, row)


def walked(warps: Warps, walk: Walk, stream: Ints, group: Ints, partial: Values) -> tuple[int, int]:
    """Write some groups, each as a segment of its stream, and compute their rows.

    Returns the lanes of all multiply-accumulates and how many of them have an element.
    """
    lanes = _lanes(walk, group, warps.grid.lanes)
    pooled = stream >= len(walk.part.columns) * walk.warps
    # the index of the load of the ticket: after alu, atom, sts, bar in warp 0, after bar in others
    z = at_place(warps.part(pooled), np.where(stream[pooled] % walk.warps, 1, 4))
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
    return slots * warps.grid.lanes, int((walk.hbp.begin[group + 1] - walk.hbp.begin[group]).sum())


def _steps(
    warps: Warps, walk: Walk, lanes: _Lanes, pooled: Mask, first: Result
) -> tuple[Values, Result | None, Result | None, int]:
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


HASH = Key("strategy that places the rows of a block", choices=tuple(HASHES))
SHIFT = Key("right and left shift of the strategy `shift`", low=0, high=60)


@record
class ConvertOptions(Options):
    """Options of the conversion to HBP."""

    m: Annotated[int, Key("rows of a block, a multiple of the lanes of a warp", low=1)]
    n: Annotated[int, Key("columns of a block", low=1)]
    hash: Annotated[str, HASH] = "linear"
    shift: Annotated[tuple[int, int], SHIFT] = (4, 8)


@record
class HbpOptions(ConvertOptions):
    """Options of the HBP kernel."""

    warps: Annotated[int, Key("warps of a thread block", low=1)] = 4
    blocks_per_sm: Annotated[int, Key("thread blocks on each SM that the fixed parts are for", low=1)] = 2
    fixed_percent: Annotated[int, Key("how much of the matrix is dealt in fixed parts", "%", 0, 100)] = 100
    batch: Annotated[int, Key("blocks of the matrix that a thread block takes at once from the rest", low=1)] = 10
    merge: Annotated[str, Key("how parts of a row come together: by a kernel, or atomic", choices=MERGES)] = "kernel"


def _arrays(hbp: Hbp) -> dict[str, int]:
    """The arrays of a matrix in HBP in the order of their declaration, and how many elements they have."""
    room, positions = allocated(len(hbp.cols)), hbp.partition.positions
    sizes = {"cols": room, "data": room, "add_sign": room, "zero_row": positions, "output_hash": positions}
    return sizes | {"begin": len(hbp.begin)}


def hbp_spmv(matrix: Csr, x: Values, options: HbpOptions, device: ParallelDevice) -> Made:
    """The kernels of y = A x, and y from the arrays of HBP alone; `InputError` if sizes do not fit."""
    if x.shape != (matrix.columns,):
        raise InputError(Mistake("x", f"must have {matrix.columns} elements, got shape {list(x.shape)}"))
    made = hashed(matrix, options.m, options.n, device.core.warp, options.hash, options.shift)
    hbp = made.hbp
    shape = KernelShape("hbp", options.warps, 32, 4 * min(options.n, matrix.columns) + 4)
    places = device.sms * min(options.blocks_per_sm, residency(shape, device))
    part = division(hbp.partition, places, options.warps, options.fixed_percent, options.batch)
    merged = options.merge == "kernel"
    partials = matrix.rows * hbp.partition.column_blocks if merged else None
    memory = memories(**_arrays(hbp), x=matrix.columns, y=matrix.rows, partial=partials, ticket=1)
    arrays = numbered(memory)
    walk = Walk(made, x, number_type(matrix.values, x), part, options.warps, merged)
    kernel, sums, slots, active = _kernel(walk, shape, device, arrays)
    if merged:
        merging = KernelShape("merge", options.warps, 16)
        parts, y = ("partial", hbp.partition.column_blocks), ("y", matrix.rows)
        merge = summing(merging, device.core.warp, parts, y)
        kernels = (kernel, phase_kernel(merge, device, arrays))
    else:
        zero = zeroing(device.core.warp, options.warps, "y", matrix.rows)
        kernels = (phase_kernel(zero, device, arrays), kernel)
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
    return Made(Run(memory, kernels), _merged(sums), metrics, walk)


def _merged(partial: Values) -> Values:
    """The sum of the parts, first to last, each sum rounded on its own."""
    total = np.zeros(partial.shape[1], partial.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in partial:
            total = total + part
    return total


def _kernel(
    walk: Walk, shape: KernelShape, device: ParallelDevice, arrays: dict[str, int]
) -> tuple[Kernel, Values, int, int]:
    """The kernel `hbp`; partial sums, shape (columns of blocks, rows); lane slots and active lanes."""
    partition, streams = walk.hbp.partition, walk.part.thread_blocks * shape.warps
    partial = np.zeros((partition.column_blocks, partition.rows), walk.dtype)
    slots = active = 0
    # a stream is its beginning and then its groups
    groups = np.bincount(walk.part.stream, walk.sizes, streams).astype(np.int64)
    first = firsts(groups)

    def text(piece: Piece) -> None:
        nonlocal slots, active
        begins = piece.place == 0
        if begins.any():
            chosen, _ = piece.where(begins)
            _beginnings(piece.grid, walk, piece.stream[chosen], chosen)
        if not begins.all():
            chosen, warps = piece.where(~begins)
            stream = piece.stream[chosen]
            group = walk.group[first[stream] + piece.place[chosen] - 1]
            looked, useful = walked(warps, walk, stream, group, partial)
            slots, active = slots + looked, active + useful

    sm = np.full(walk.part.thread_blocks, -1, np.int32)
    kernel = written(text, groups + 1, grids(device, arrays), shape, sm, _CHUNK)
    return kernel, partial, slots, active


def _beginnings(grid: Grid, walk: Walk, streams: Ints, segments: Ints) -> None:
    """What streams do before their first group: load the vector, or take a ticket."""
    fixed = streams < len(walk.part.columns) * walk.warps
    if fixed.any():
        column = walk.part.columns[streams[fixed] // walk.warps]
        _vector_loads(grid.warps(segments[fixed]), walk, column, streams[fixed] % walk.warps)
    if not fixed.all():
        every = grid.warps(segments[~fixed])
        head = every.part(streams[~fixed] % walk.warps == 0)
        word, one = 4 * min(walk.hbp.partition.n, walk.hbp.partition.columns), np.arange(grid.lanes) == 0
        ticket: Result | None = None
        if len(head):
            ticket = head.sts(word, one, waits=[head.atom("ticket", 0, one, [head.alu(1)])])
        every.bar([ticket])
        every.lds(word)


def _vector_loads(warps: Warps, walk: Walk, column: Ints, warp: Ints) -> None:
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


#: Strategies that look at no entries of a table.
_WITHOUT_PROBES = ("identity", "sort")


@dataclass(frozen=True, eq=False)
class _Work:
    """What the warps of the conversion work on."""

    matrix: Csr  # the matrix in CSR
    made: Hashed  # the same in HBP
    start: Ints  # shape (positions,); first element in CSR of the row at each position
    stored: Hbp  # what the lanes store
    probing: bool  # whether places are probed for


def hbp_conversion(matrix: Csr, options: ConvertOptions, device: ParallelDevice) -> Made:
    """The kernel that converts a matrix from CSR to HBP, sorting not charged; `InputError` if sizes do not fit."""
    made = hashed(matrix, options.m, options.n, device.core.warp, options.hash, options.shift)
    partition = made.hbp.partition
    shape = KernelShape("convert", 1, 32, 4 * options.m)
    # refused here, before anything is written
    residency(shape, device)
    own = _arrays(made.hbp)
    memory = memories(row_ptr=matrix.rows + 1, cols_in=own["cols"], values_in=own["cols"], **own)
    arrays = numbered(memory)
    key = matrix.entry_rows * partition.column_blocks + matrix.cols // partition.n
    column = partition.block_of_position % partition.column_blocks
    start = np.searchsorted(key, made.hbp.output_hash * partition.column_blocks + column)
    names = ("output_hash", "zero_row", "cols", "data", "add_sign", "begin")
    blank = replace(made.hbp, **{name: np.zeros_like(getattr(made.hbp, name)) for name in names})
    blank.begin[-1] = len(blank.cols)
    work = _Work(matrix, made, start, blank, options.hash not in _WITHOUT_PROBES)
    kernel, steps = _conversion(work, shape, device, arrays)
    metrics = {"search_steps": steps, "probes": int(made.probes.sum()), "finds": int(made.finds.sum())}
    return Made(Run(memory, (kernel,)), None, metrics, work)


def _conversion(work: _Work, shape: KernelShape, device: ParallelDevice, arrays: dict[str, int]) -> tuple[Kernel, int]:
    """The kernel and its search steps."""
    partition = work.made.hbp.partition
    groups = np.diff(partition.first_group)
    steps = 0

    def text(piece: Piece) -> None:
        # the stream of a block: its beginning, then its slices of rows, then its groups of positions
        nonlocal steps
        block, place = piece.stream, piece.place
        stores = place > groups[block]
        piece.where(place == 0)[1].alu(4)
        chosen, warps = piece.where((place > 0) & ~stores)
        if len(chosen):
            steps += _slices(warps, work, (partition.first_group[block] + place - 1)[chosen])
        chosen, warps = piece.where(stores)
        if len(chosen):
            _groups(warps, work, (partition.first_group[block] + place - 1 - groups[block])[chosen])

    sm = np.full(partition.blocks, -1, np.int32)
    return written(text, 1 + 2 * groups, grids(device, arrays), shape, sm, _CHUNK), steps


def _positions(partition: Partition, groups: Ints, lanes: int) -> tuple[Ints, Mask]:
    """The positions of the lanes of some groups, shape (n, lanes), and which lanes have one."""
    position = partition.first_of_group[groups][:, None] + np.arange(lanes)
    return position, position < partition.first_position[partition.block_of_group[groups] + 1][:, None]


def _slices(warps: Warps, work: _Work, groups: Ints) -> int:
    """Count the elements of some rows in their block and look for their places; returns the search steps."""
    partition, matrix = work.made.hbp.partition, work.matrix
    local, on = _positions(partition, groups, warps.grid.lanes)
    local = np.where(on, local, 0)
    row = partition.row_of_position[local]
    block = partition.block_of_group[groups]
    z: Result | None = warps.alu(2, [warps.ldg("row_ptr", row, on), warps.ldg("row_ptr", row + 1, on)])
    low = matrix.row_ptr[row]
    high = np.where(on, matrix.row_ptr[row + 1], low)
    bound = (block % partition.column_blocks * partition.n)[:, None]
    end, steps = high, 0
    while (active := low < high).any():
        middle = np.where(active, (low + high) // 2, 0)
        z = _looked(warps, z, middle, active)
        steps += int(active.sum())
        smaller = active & (matrix.cols[middle] < bound)
        low, high = np.where(smaller, middle + 1, low), np.where(active & ~smaller, middle, high)
    counts = _walked(work, low, end, bound + partition.n)
    for step in range(int(counts.max(initial=0))):
        z = _looked(warps, z, low + step, counts > step)
    if work.probing:
        _probed(warps, z, np.where(on, work.made.probes[local], 0).max(axis=1))
    return steps


def _walked(work: _Work, low: Ints, end: Ints, bound: Ints) -> Ints:
    """How many elements each lane walks over before its row ends or leaves the block; shape (n, lanes)."""
    count = np.zeros(low.shape, np.int64)
    active = low < end
    while active.any():
        at = np.where(active, low + count, 0)
        active = active & (work.matrix.cols[at] < bound)
        count += active
        active = active & (low + count < end)
    return count


def _looked(warps: Warps, z: Result | None, index: Ints, active: Mask) -> Result | None:
    """A look at a column by the lanes that are active, and what is computed from it."""
    alive = np.asarray(active.any(axis=1))
    some = warps.part(alive)
    return later(z, some.alu(2, [some.ldg("cols_in", index[alive], active[alive], [z])]))


def _probed(warps: Warps, z: Result | None, most: Ints) -> None:
    """The probes of some slices: as many as their worst row needs."""
    z = warps.alu(4, [z])
    some = warps
    for probe in range(int(most.max(initial=0))):
        alive = most > probe
        if not alive.all():
            some, most = some.part(alive), most[alive]
        z = some.alu(2, [some.lds(0, waits=[z])])


def _groups(warps: Warps, work: _Work, groups: Ints) -> None:
    """Store the arrays of some groups, element by element of their rows."""
    hbp, stored, lane = work.made.hbp, work.stored, np.arange(warps.grid.lanes)
    position, on = _positions(hbp.partition, groups, warps.grid.lanes)
    position = np.where(on, position, 0)
    counts = np.where(on, work.made.counts[position], 0)
    empty = on & (counts == 0)
    before = np.cumsum(empty, axis=1) - empty
    z = warps.alu(2)
    for name in ("zero_row", "output_hash"):
        warps.stg(name, position, on, [z])
    warps.stg("begin", groups[:, None], lane == 0, [z])
    stored.zero_row[position[on]] = np.where(empty, -1, before)[on]
    stored.output_hash[position[on]] = hbp.output_hash[position[on]]
    stored.begin[groups] = hbp.begin[groups]
    at = hbp.begin[groups]
    some = warps
    for step in range(int(counts.max(initial=0))):
        active = counts > step
        alive = np.asarray(active.any(axis=1))
        if not alive.all():
            some, active, counts = some.part(alive), active[alive], counts[alive]
            position, at = position[alive], at[alive]
        following = counts > step + 1
        source = work.start[position] + step
        target = at[:, None] + np.cumsum(active, axis=1) - active
        cols, values = some.ldg("cols_in", source, active, [z]), some.ldg("values_in", source, active, [z])
        some.stg("cols", target, active, [cols])
        some.stg("data", target, active, [values])
        some.stg("add_sign", target, active, [some.alu(2)])
        left = active.sum(axis=1)
        distance = left[:, None] - (np.cumsum(active, axis=1) - active) + np.cumsum(following, axis=1) - following
        stored.cols[target[active]] = work.matrix.cols[source[active]]
        stored.data[target[active]] = work.matrix.values[source[active]]
        stored.add_sign[target[active]] = np.where(following, distance, -1)[active]
        at = at + left
