"""Instructions as they are written, many streams at once, and how they are laid out stream after stream.

A `Slab` is one instruction of the text for all warps that issue it. Slabs are packed in batches, so that a step with a
single warp costs little, and the batches are scattered into the columns of a `Kernel` at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import CLASS, Instructions, Kernel, KernelShape
from lstmsim.machines.parallel.memory.addresses import OFF, Touched, atomic_touches, touched, wavefronts
from lstmsim.model.sparse.ranges import firsts, regrouped

__all__ = ["Access", "Batch", "Slab", "laid_out", "packed"]

Narrow = NDArray[np.int32]
_ATOM = CLASS["atom"]


@dataclass(frozen=True, eq=False, slots=True)
class Access:
    """Addresses of a memory access.

    table: shape (n, lanes); element or byte address of each lane, `OFF` for a lane that is off.
    array: place of the array among those of the run; -1 for shared memory.
    vector: elements that a lane takes.
    """

    table: Narrow
    array: int
    vector: int


@dataclass(frozen=True, eq=False, slots=True)
class Slab:
    """One instruction of all warps that issue it together.

    streams: shape (n,); ascending numbers of the streams.
    places: shape (n,); its place in each.
    kind: place of its class in `CLASSES`.
    count: issues in a row: one number for all, or shape (n,).
    waits: places of the instructions that it waits for, each of shape (n,), -1 where a stream has none.
    access: what it touches, if it is a memory access.
    """

    streams: NDArray[np.int64]
    places: Narrow
    kind: int
    count: int | Narrow
    waits: tuple[Narrow, ...]
    access: Access | None


@dataclass(frozen=True, eq=False)
class Batch:
    """Slabs in columns, one row for each instruction.

    streams, places, kind, count, lsu, array: shape (n,).
    wait_counts, waits: how many places each row waits for, and these.
    sector_counts, sectors: how many sectors each row names, and these.
    """

    streams: Narrow
    places: Narrow
    kind: NDArray[np.int8]
    count: Narrow
    lsu: Narrow
    array: NDArray[np.int16]
    wait_counts: Narrow
    waits: Narrow
    sector_counts: Narrow
    sectors: Narrow


def packed(slabs: Iterable[Slab], banks: int, element_bytes: int = 4) -> list[Batch]:
    """The slabs in columns: one batch for each kind of access and number of waits.

    banks: of shared memory.
    element_bytes: bytes of an element of device memory.
    """
    groups: dict[tuple[str, int, int], list[Slab]] = {}
    for slab in slabs:
        access = slab.access
        form = "none" if access is None else "shared" if access.array < 0 else "global"
        if slab.kind == _ATOM:
            form = "atom"
        key = (form, access.vector if access else 1, len(slab.waits))
        groups.setdefault(key, []).append(slab)
    return [_batch(form, vector, waits, each, (banks, element_bytes)) for (form, vector, waits), each in groups.items()]


def _batch(form: str, vector: int, waits: int, slabs: list[Slab], widths: tuple[int, int]) -> Batch:
    lengths = np.array([len(slab.streams) for slab in slabs])
    n = int(lengths.sum())
    columns = np.empty((n, waits), np.int32)
    for place in range(waits):
        columns[:, place] = np.concatenate([slab.waits[place] for slab in slabs])
    given = columns >= 0
    array = [slab.access.array if slab.access else -1 for slab in slabs]
    lsu, counts, sectors = _accesses(form, vector, [slab.access for slab in slabs], n, widths)
    return Batch(
        np.concatenate([slab.streams for slab in slabs]).astype(np.int32),
        np.concatenate([slab.places for slab in slabs]),
        np.repeat(np.array([slab.kind for slab in slabs], np.int8), lengths),
        _counts(slabs, lengths),
        lsu,
        np.repeat(np.array(array, np.int16), lengths),
        given.sum(axis=1, dtype=np.int32),
        columns[given],
        counts,
        sectors,
    )


def _counts(slabs: list[Slab], lengths: NDArray[np.int64]) -> Narrow:
    if all(isinstance(slab.count, int) for slab in slabs):
        return np.repeat(np.array([slab.count for slab in slabs], np.int32), lengths)
    each = [np.broadcast_to(np.asarray(slab.count, np.int32), len(slab.streams)) for slab in slabs]
    return np.concatenate(each)


def _accesses(
    form: str, vector: int, accesses: list[Access | None], n: int, widths: tuple[int, int]
) -> tuple[Narrow, Narrow, Narrow]:
    """The load/store unit's cycles, how many sectors each row names, and these; widths: banks, bytes of an element."""
    nothing = np.zeros(n, np.int32)
    if form == "none":
        return nothing, nothing, np.zeros(0, np.int32)
    table = np.concatenate([access.table for access in accesses if access])
    if table.view(np.uint32).max(initial=0) > 1 << 31:
        raise ValueError(f"address {table[(table < 0) & (table != OFF)][0]} of a lane that is on is negative")
    if vector > 1:
        unit = vector if form != "shared" else 4 * vector
        crooked = table[(table % unit != 0) & (table != OFF)]
        if len(crooked):
            raise ValueError(f"address {crooked[0]} of a vector of {vector} is not a multiple of {unit}")
    if form == "shared":
        return wavefronts(table, vector, widths[0]), nothing, np.zeros(0, np.int32)
    rule: Callable[[Narrow, int], Touched] = atomic_touches if form == "atom" else touched
    each = rule(table, widths[1])
    return each.lines, each.counts, each.sectors


def laid_out(batches: list[Batch], shape: KernelShape, sm: NDArray[np.int32]) -> Kernel:
    """The kernel whose instructions stand in the batches.

    shape: what it asks of a multiprocessor.
    sm: shape (blocks,); the multiprocessor of each block, -1 for any.
    """
    streams = len(sm) * shape.warps
    lengths = np.zeros(streams, np.int64)
    for batch in batches:
        lengths += np.bincount(batch.streams, minlength=streams)
    first = firsts(lengths)
    n = int(first[-1])
    rows = [first[batch.streams] + batch.places for batch in batches]
    wait_first, (wait,) = regrouped(rows, [each.wait_counts for each in batches], [[each.waits for each in batches]], n)
    sectors = [each.sectors for each in batches]
    sector_first, (sector,) = regrouped(rows, [each.sector_counts for each in batches], [sectors], n)
    kind, count = np.empty(n, np.int8), np.empty(n, np.int32)
    lsu, array = np.empty(n, np.int32), np.empty(n, np.int16)
    for batch, row in zip(batches, rows, strict=True):
        kind[row], count[row], lsu[row], array[row] = batch.kind, batch.count, batch.lsu, batch.array
    instructions = Instructions(first, kind, count, wait_first, wait)
    return Kernel(shape, sm, instructions, lsu, array, sector_first, sector)
