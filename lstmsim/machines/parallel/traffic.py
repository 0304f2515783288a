"""What the kernels of a run cost in memory: where arrays lie, and what L1 and L2 hold from kernel to kernel.

The rules look at no clock, only at numbers: the order of an access is its place in its stream, then the block, then
the warp. So nothing need be sorted: a table keeps for each sector the lowest number that touched it; an access is the
first one at a sector if that number is its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lstmsim.base.errors import InputError
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import (
    CLASS,
    Ints,
    Kernel,
    Mask,
    Memory,
    Narrow,
    Numbers,
    Priced,
    Run,
    Values,
    in_pieces,
    residency,
)
from lstmsim.machines.parallel.writing.addresses import SECTOR_BYTES
from lstmsim.model.sparse.csr import regrouped, spans

#: Arrays begin at multiples of so many bytes.
_ALIGNED = 256
#: Most elements of an array: lanes keep their numbers in 32 bits.
_ELEMENTS = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class Layout:
    """Sectors of 32 bytes of all arrays of a run, numbered from address 0 on."""

    begin: Ints  # shape (arrays,); the sector with which each array begins
    sectors: Ints  # shape (arrays,); how many sectors each array has
    total: int  # sectors up to the end of the last array


def addresses(arrays: tuple[Memory, ...]) -> list[int]:
    """The byte address of each array: one after the other, each from the next multiple of 256 on."""
    result, end = [], 0
    for array in arrays:
        result.append(-(-end // _ALIGNED) * _ALIGNED)
        end = result[-1] + array.bytes * array.elements
    return result


def laid(arrays: tuple[Memory, ...]) -> Layout:
    """The sectors of these arrays; `InputError` for an array with more elements than addresses can tell apart."""
    for array in arrays:
        if array.elements > _ELEMENTS:
            sentence = f"array '{array.name}' has {array.elements} elements, at most {_ELEMENTS} can be simulated"
            raise InputError(sentence)
    begin = np.array(addresses(arrays), np.int64) // SECTOR_BYTES
    sectors = np.array([-(-array.bytes * array.elements // SECTOR_BYTES) for array in arrays], np.int64)
    return Layout(begin, sectors, int((begin + sectors).max(initial=0)))


def sectors_of(kernel: Kernel, layout: Layout, rows: slice) -> Ints:
    """The run's numbers of the sectors that some rows touch; `ValueError` if one lies after the end of its array."""
    bounds = kernel.first_sector[rows.start : rows.stop + 1]
    array = np.repeat(kernel.array[rows], np.diff(bounds))
    sector = kernel.sector[bounds[0] : bounds[-1]]
    outside = np.flatnonzero(sector >= layout.sectors[array])
    if len(outside):
        raise ValueError(f"kernel '{kernel.shape.name}' touches what lies behind the end of array {array[outside[0]]}")
    return layout.begin[array] + sector


#: Rows and touches of a batch together, unless a single cohort has more.
_BATCH = 1 << 20


@dataclass(frozen=True, eq=False)
class Cohorts:
    """Blocks of a kernel by cohort, wave after wave."""

    blocks: Ints  # shape (blocks,); the blocks, cohort after cohort, in grid order within one
    cohort: Ints  # shape (blocks,); the number of the cohort of each of `blocks`, from 0 on without gaps
    wave: Ints  # shape (blocks,); the wave of each of `blocks`


@dataclass(frozen=True, eq=False)
class Accesses:
    """Global accesses of some whole cohorts, cohort after cohort."""

    rows: Ints  # shape (a,); rows of the kernel
    cohort: Ints  # cohort, wave: shape (a,); of their blocks
    wave: Ints
    order: Ints  # shape (a,); a number that grows with the index in the stream, then the block, then the warp
    counts: Narrow  # shape (a,); sectors that each touches
    each: Ints  # shape (touches,); the access of each touch, as an index in `rows`
    sector: Ints  # shape (touches,); the run's number of each sector


def cohorts_of(sm: Narrow, sms: int, resident: int) -> Cohorts:
    """The cohorts of a grid."""
    block = np.arange(len(sm), dtype=np.int64)
    counted = np.where(sm < 0, block % sms, sm)
    by_sm = np.argsort(counted, kind="stable")
    ordered = counted[by_sm]
    rank = np.empty_like(block)
    rank[by_sm] = block - np.searchsorted(ordered, ordered)
    wave = rank // resident
    blocks = np.lexsort((block, counted, wave))
    key = wave[blocks] * sms + counted[blocks]
    new = np.ones(len(key), np.int64)
    new[1:] = key[1:] != key[:-1]
    return Cohorts(blocks, np.cumsum(new) - 1, wave[blocks])


def accesses(kernel: Kernel, layout: Layout, cohorts: Cohorts) -> Iterator[Accesses]:
    """The global accesses of a kernel, in batches of whole cohorts."""
    if not len(cohorts.blocks):
        return
    first, warps = kernel.instructions.first, kernel.shape.warps
    begin, end = first[:-1:warps][cohorts.blocks], first[warps::warps][cohorts.blocks]
    weight = (end - begin) + kernel.first_sector[end] - kernel.first_sector[begin]
    starts = np.flatnonzero(np.diff(cohorts.cohort, prepend=-1))
    ends = np.cumsum(np.add.reduceat(weight, starts))
    starts = np.append(starts, len(cohorts.blocks))
    place = 0
    while place < len(ends):
        before = int(ends[place - 1]) if place else 0
        until = max(place + 1, int(np.searchsorted(ends, before + _BATCH, side="right")))
        yield _batch(kernel, layout, cohorts, slice(int(starts[place]), int(starts[until])))
        place = until


def _batch(kernel: Kernel, layout: Layout, cohorts: Cohorts, part: slice) -> Accesses:
    first, warps = kernel.instructions.first, kernel.shape.warps
    streams = (cohorts.blocks[part, None] * warps + np.arange(warps)).reshape(-1)
    lengths = first[streams + 1] - first[streams]
    rows = spans(first[streams], lengths)
    kept = np.flatnonzero(kernel.array[rows] >= 0)
    rows = rows[kept]
    place = np.repeat(np.arange(len(streams)), lengths)[kept]
    stream = streams[place]
    block = place // warps
    counts = (kernel.first_sector[rows + 1] - kernel.first_sector[rows]).astype(np.int32)
    each = np.repeat(np.arange(len(rows)), counts)
    sector = kernel.sector[spans(kernel.first_sector[rows], counts)] + layout.begin[kernel.array[rows]][each]
    return Accesses(
        rows,
        cohorts.cohort[part][block],
        cohorts.wave[part][block],
        (rows - first[stream]) * (len(first) - 1) + stream,
        counts,
        each,
        sector,
    )


_LDG, _STG, _ATOM = (CLASS[name] for name in ("ldg", "stg", "atom"))
_NEVER = np.iinfo(np.int64).max


class Scene:
    """A kernel on a device, with all that holds for the whole of it.

    large: shape (arrays,); bytes that the kernel touches of each array if these are more than L2 holds, else 0.
    free: shape (layout.total,); sectors whose first touch in this kernel does not miss.
    cohorts: its blocks by cohort.
    room: bytes of L1 that a cohort may hold of an array that is not ordered.
    cacheable: shape (arrays,); arrays that the kernel does not write.
    ordered: shape (arrays,); arrays that need only a window of L1.
    """

    def __init__(
        self, kernel: Kernel, device: ParallelDevice, arrays: tuple[Memory, ...], layout: Layout, use: Ints, free: Mask
    ) -> None:
        self.kernel, self.device, self.layout, self.free = kernel, device, layout, free
        resident = residency(kernel.shape, device)
        self.large = np.where(use > device.l2_bytes, use, 0)
        self.cohorts = cohorts_of(kernel.sm, device.sms, resident)
        self.room = device.core.l1_bytes - resident * in_pieces(kernel.shape.shared)
        self.cacheable = np.ones(len(arrays), bool)
        self.cacheable[np.unique(kernel.array[np.isin(kernel.instructions.kind, (_STG, _ATOM))])] = False
        self.ordered = np.array([array.name in kernel.shape.ordered for array in arrays], bool)


def numbers_of(scene: Scene) -> Numbers:
    """What the accesses of a kernel cost.

    Two passes over the accesses: the first finds what L1 answers and who touches each sector first, the second what
    is missing.
    """
    kernel = scene.kernel
    streams = len(kernel.instructions.first) - 1
    span = (int(np.diff(kernel.instructions.first).max(initial=0)) + 1) * max(streams, 1)
    newest, earliest = np.full((2, scene.layout.total), _NEVER)
    hits: list[Mask] = []
    for batch in accesses(kernel, scene.layout, scene.cohorts):
        hit = _hits(scene, batch, newest, span)
        hits.append(hit)
        reach = np.flatnonzero(~hit)
        np.minimum.at(earliest, batch.sector[reach], (batch.wave * span + batch.order)[batch.each[reach]])
    n = len(kernel.lsu)
    sectors, in_l1, in_l2 = np.zeros(n, np.int32), np.zeros(n, bool), np.zeros(n, bool)
    served: list[tuple[Values, ...]] = []
    for batch, hit in zip(accesses(kernel, scene.layout, scene.cohorts), hits, strict=True):
        missing = _missing(scene, batch, hit, earliest, span)
        atom = (kernel.instructions.kind[batch.rows] == _ATOM)[batch.each]
        again = np.zeros(len(batch.each), bool)  # An atom names a sector once for each of its lanes.
        again[1:] = (batch.sector[1:] == batch.sector[:-1]) & (batch.each[1:] == batch.each[:-1])
        through = ~hit & ~again
        sectors[batch.rows] = np.bincount(batch.each[through], minlength=len(batch.rows))
        in_l1[batch.rows[batch.each[hit]]] = True
        in_l2[batch.rows[batch.each[~hit & ~missing & ~atom]]] = True
        served.append(_served(batch, missing | atom, scene.device.partitions))
    rows, counts, partition, brought = ([*column] for column in zip(*served, strict=True)) if served else ([],) * 4
    first, (partitions, missed) = regrouped(rows, counts, [partition, brought], n)
    return Numbers(kernel.lsu, sectors, first, partitions, missed, in_l1, in_l2)


def _served(batch: Accesses, mask: Mask, partitions: int) -> tuple[Values, ...]:
    """Rows of a batch, how many partitions serve each, which these are, and how many sectors or lanes they serve."""
    served = np.flatnonzero(mask)
    key = batch.each[served] * partitions + batch.sector[served] // 4 % partitions
    key.sort(kind="stable")
    new = np.flatnonzero(np.diff(key, prepend=-1))
    counts = np.bincount(key[new] // partitions, minlength=len(batch.rows)).astype(np.int32)
    brought = np.diff(new, append=len(key)).astype(np.int32)
    return batch.rows, counts, (key[new] % partitions).astype(np.int32), brought


def _hits(scene: Scene, batch: Accesses, newest: Ints, span: int) -> Mask:
    """Shape (touches,); what L1 answers: later loads of a cohort of what it holds."""
    hit = np.zeros(len(batch.sector), bool)
    array = scene.kernel.array[batch.rows]
    loads = (scene.kernel.instructions.kind[batch.rows] == _LDG) & scene.cacheable[array]
    if scene.room <= 0 or not loads.any():
        return hit
    touches = np.flatnonzero(loads[batch.each])
    access = batch.each[touches]
    sector, cohort = batch.sector[touches], batch.cohort[access]
    number = (batch.order - batch.cohort * span)[access]
    first = np.empty(len(touches), bool)
    bounds = np.flatnonzero(np.diff(cohort, prepend=-1, append=-1))
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        part = sector[start:stop]
        np.minimum.at(newest, part, number[start:stop])
        first[start:stop] = newest[part] == number[start:stop]
    # Which arrays each cohort holds: it counts their distinct sectors, which are their first touches.
    arrays = len(scene.cacheable)
    one = (cohort - cohort[:1]) * arrays + array[access]
    distinct = np.bincount(one[first], minlength=int(one.max(initial=0)) + 1)
    held = distinct * SECTOR_BYTES <= scene.room
    held |= np.resize(scene.ordered, len(held))
    hit[touches] = ~first & held[one]
    return hit


def _missing(scene: Scene, batch: Accesses, hit: Mask, earliest: Ints, span: int) -> Mask:
    """Shape (touches,); what L2 has not, of what comes to it."""
    number = (batch.wave * span + batch.order)[batch.each]
    missing: Mask = (earliest[batch.sector] == number) & ~scene.free[batch.sector]
    array = scene.kernel.array[batch.rows]
    large = np.flatnonzero((scene.large[array] > 0)[batch.each])
    if len(large):
        own = array[batch.each[large]]
        size, line = scene.large[own], (batch.sector[large] - scene.layout.begin[own]) // 4
        missing[large] |= line * scene.device.l2_bytes % size >= scene.device.l2_bytes
    missing &= ~hit
    missing &= (scene.kernel.instructions.kind[batch.rows] != _ATOM)[batch.each]
    return missing


#: Rows that are looked at together.
_ROWS = 1 << 18


def priced(run: Run, device: ParallelDevice) -> tuple[Priced, ...]:
    """The kernels of a run with what their accesses cost; `InputError` if a block does not fit a multiprocessor.

    A kernel object that runs again when all its sectors are in the same state gives the same `Priced` object.
    """
    layout = laid(run.arrays)
    uses = _uses(run, layout)
    fit = _fits(uses, layout, device)
    free = np.full(layout.total, fit and device.l2_state == "warm")
    made: dict[tuple[int, bool], Priced] = {}
    result = []
    for kernel in run.kernels:
        sectors, touched = uses[id(kernel)]
        # Either it finds all its sectors touched, as any kernel that ran before, or it runs for the first time.
        key = (id(kernel), fit and ((id(kernel), True) in made or bool(free[sectors].all())))
        if key not in made:
            scene = Scene(kernel, device, run.arrays, layout, touched, free)
            made[key] = Priced(kernel.shape, kernel.sm, kernel.instructions, numbers_of(scene))
        result.append(made[key])
        if fit and not key[1]:
            free[sectors] = True
    return tuple(result)


def _fits(uses: dict[int, tuple[Ints, Ints]], layout: Layout, device: ParallelDevice) -> bool:
    return _footprint(uses, layout) <= device.l2_bytes


def _footprint(uses: dict[int, tuple[Ints, Ints]], layout: Layout) -> int:
    touched = np.zeros(layout.total, bool)
    for sectors, _ in uses.values():
        touched[sectors] = True
    return SECTOR_BYTES * int(np.count_nonzero(touched))


def footprint(run: Run) -> int:
    """Bytes of the distinct sectors that all kernels of a run touch (F of section 5 of docs/parallel_device.md)."""
    layout = laid(run.arrays)
    return _footprint(_uses(run, layout), layout)


def _uses(run: Run, layout: Layout) -> dict[int, tuple[Ints, Ints]]:
    """What each kernel touches, by its identity: ascending sectors of the run, and bytes of each array."""
    return {id(kernel): _use(kernel, layout) for kernel in {id(each): each for each in run.kernels}.values()}


def _use(kernel: Kernel, layout: Layout) -> tuple[Ints, Ints]:
    touched = np.zeros(layout.total, bool)
    for start in range(0, len(kernel.lsu), _ROWS):
        touched[sectors_of(kernel, layout, slice(start, min(start + _ROWS, len(kernel.lsu))))] = True
    sectors = np.flatnonzero(touched)
    # Arrays begin one after the other; one without elements begins where the next one does.
    ends = layout.begin + layout.sectors
    counts = np.searchsorted(sectors, ends) - np.searchsorted(sectors, layout.begin)
    return sectors, SECTOR_BYTES * counts
