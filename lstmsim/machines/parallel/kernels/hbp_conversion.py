"""Conversion of a matrix from CSR to HBP on the device: search, walk, probe, store, a warp for each block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import Kernel, KernelShape, Made, Memory, Run, residency
from lstmsim.machines.parallel.kernels.hbp import HASH, SHIFT, hbp_arrays
from lstmsim.machines.parallel.kernels.options import Options
from lstmsim.machines.parallel.kernels.rows import addressable
from lstmsim.machines.parallel.writing.segments import glued, joined
from lstmsim.machines.parallel.writing.streams import Grid, Result, Warps, later
from lstmsim.model.sparse.csr import Csr, firsts
from lstmsim.model.sparse.hbp import Hashed, Hbp, hashed

#: Strategies that look at no entries of a table.
_WITHOUT_PROBES = ("identity", "sort")
#: Slices and groups that are written at once.
_CHUNK = 1 << 14

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@record
class ConvertOptions(Options):
    """Options of the conversion, as in `HbpOptions`."""

    m: Annotated[int, Key("rows of a block, a multiple of the lanes of a warp", low=1)]
    n: Annotated[int, Key("columns of a block", low=1)]
    hash: Annotated[str, HASH] = "linear"
    shift: Annotated[tuple[int, int], SHIFT] = (4, 8)


@dataclass(frozen=True, eq=False)
class ConvertMade(Made):
    """The kernel of a conversion.

    hashed: the matrix in HBP, its probes and finds.
    stored: the matrix as the lanes of the kernel stored it.
    """

    hashed: Hashed
    stored: Hbp


@dataclass(frozen=True, eq=False)
class _Work:
    """What the warps of the conversion work on.

    matrix: the matrix in CSR.
    made: the same in HBP.
    start: shape (positions,); first element in CSR of the row at each position.
    stored: what the lanes store.
    probing: whether places are probed for.
    """

    matrix: Csr
    made: Hashed
    start: Ints
    stored: Hbp
    probing: bool


def hbp_conversion(matrix: Csr, options: ConvertOptions, device: ParallelDevice) -> ConvertMade:
    """The kernel that converts a matrix from CSR to HBP. Sorting on the device is not charged.

    InputError if sizes do not fit or nothing fits on a multiprocessor.
    """
    made = hashed(matrix, options.m, options.n, device.core.warp, options.hash, options.shift)
    partition = made.hbp.partition
    shape = KernelShape("convert", 1, 32, 4 * options.m)
    # refused here, before anything is written
    residency(shape, device)
    own = hbp_arrays(made.hbp)
    room = own[0].elements
    memory = [Memory("row_ptr", matrix.rows + 1), Memory("cols_in", room), Memory("values_in", room), *own]
    arrays = {each.name: place for place, each in enumerate(addressable(tuple(memory)))}
    key = matrix.entry_rows * partition.column_blocks + matrix.cols // partition.n
    column = partition.block_of_position % partition.column_blocks
    start = np.searchsorted(key, made.hbp.output_hash * partition.column_blocks + column)
    work = _Work(matrix, made, start, _blank(made.hbp), options.hash not in _WITHOUT_PROBES)
    kernel, steps = _kernel(work, shape, device, arrays)
    metrics = {"search_steps": steps, "probes": int(made.probes.sum()), "finds": int(made.finds.sum())}
    return ConvertMade(Run(tuple(memory), (kernel,)), None, metrics, made, work.stored)


def _blank(hbp: Hbp) -> Hbp:
    """The arrays of a matrix in HBP before anything is stored in them, but for what needs no data."""
    names = ("output_hash", "zero_row", "cols", "data", "add_sign", "begin")
    blank = replace(hbp, **{name: np.zeros_like(getattr(hbp, name)) for name in names})
    blank.begin[-1] = len(hbp.cols)
    return blank


def _kernel(work: _Work, shape: KernelShape, device: ParallelDevice, arrays: dict[str, int]) -> tuple[Kernel, int]:
    """The kernel and its search steps."""
    partition = work.made.hbp.partition
    groups = np.diff(partition.first_group)
    # the stream of a block: its beginning, then its slices of rows, then its groups of positions
    first = firsts(1 + 2 * groups)
    inside = np.arange(partition.groups) - partition.first_group[partition.block_of_group]
    slices = first[partition.block_of_group] + 1 + inside
    stores = slices + groups[partition.block_of_group]
    steps = 0

    def pieces() -> Iterator[Kernel]:
        nonlocal steps
        for start in range(0, int(first[-1]), _CHUNK):
            stop = min(int(first[-1]), start + _CHUNK)
            grid = Grid(device.core.warp, arrays, device.core.banks)
            heads, searched, stored = (
                np.flatnonzero((each >= start) & (each < stop)) for each in (first[:-1], slices, stores)
            )
            grid.warps(first[heads] - start).alu(4)
            if len(searched):
                steps += _slices(grid.warps(slices[searched] - start), work, searched)
            if len(stored):
                _groups(grid.warps(stores[stored] - start), work, stored)
            yield grid.kernel(KernelShape(shape.name, 1), np.full(stop - start, -1))

    text = joined(pieces())
    return glued(text, shape, np.full(partition.blocks, -1, np.int32), first), steps


def _table(work: _Work, groups: Ints, lanes: int) -> tuple[Ints, Mask]:
    """The positions of some groups, shape (n, lanes), and which lanes have one."""
    partition = work.made.hbp.partition
    position = partition.first_of_group[groups][:, None] + np.arange(lanes)
    on = position < partition.first_position[partition.block_of_group[groups] + 1][:, None]
    return np.where(on, position, 0), on


def _slices(warps: Warps, work: _Work, groups: Ints) -> int:
    """Count the elements of some rows in their block and look for their places; returns the search steps."""
    partition, matrix = work.made.hbp.partition, work.matrix
    local, on = _table(work, groups, warps.grid.lanes)
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
    position, on = _table(work, groups, warps.grid.lanes)
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
        _store(work, source[active], target[active], np.where(following, distance, -1)[active])
        at = at + left


def _store(work: _Work, source: Ints, target: Ints, distance: Ints) -> None:
    """What lanes store: elements that they loaded, and the distances to the next ones of their rows."""
    work.stored.cols[target] = work.matrix.cols[source]
    values: NDArray[Any] = work.matrix.values
    work.stored.data[target] = values[source]
    work.stored.add_sign[target] = distance
