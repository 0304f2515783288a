"""Blocks that count as being on a multiprocessor together, and their accesses in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import Kernel
from lstmsim.machines.parallel.memory.layout import Layout
from lstmsim.model.sparse.ranges import spans

__all__ = ["Accesses", "Cohorts", "accesses", "cohorts_of"]

Ints = NDArray[np.int64]
#: Rows and touches of a batch together, unless a single cohort has more.
_BATCH = 1 << 20


@dataclass(frozen=True, eq=False)
class Cohorts:
    """Blocks of a kernel by cohort, wave after wave.

    blocks: shape (blocks,); the blocks, cohort after cohort, in grid order within one.
    cohort: shape (blocks,); the number of the cohort of each of `blocks`, from 0 on without gaps.
    wave: shape (blocks,); the wave of each of `blocks`.
    """

    blocks: Ints
    cohort: Ints
    wave: Ints


@dataclass(frozen=True, eq=False)
class Accesses:
    """Global accesses of some whole cohorts, cohort after cohort.

    rows: shape (a,); rows of the kernel.
    cohort, wave: shape (a,); of their blocks.
    order: shape (a,); a number that grows with the place in the stream, then the block, then the warp.
    counts: shape (a,); sectors that each touches.
    each: shape (touches,); the access of each touch, as a place in `rows`.
    sector: shape (touches,); the run's number of each sector.
    """

    rows: Ints
    cohort: Ints
    wave: Ints
    order: Ints
    counts: NDArray[np.int32]
    each: Ints
    sector: Ints


def cohorts_of(sm: NDArray[np.int32], sms: int, resident: int) -> Cohorts:
    """The cohorts of a grid.

    sm: shape (blocks,); the multiprocessor of each block, -1 for any: then block i counts for i mod `sms`.
    sms: multiprocessors of the device.
    resident: blocks that are on one at once.

    >>> each = cohorts_of(np.array([-1, -1, 0, -1, 0]), 2, 2)
    >>> each.blocks.tolist(), each.cohort.tolist(), each.wave.tolist()
    ([0, 2, 1, 3, 4], [0, 0, 1, 1, 2], [0, 0, 0, 0, 1])
    """
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
