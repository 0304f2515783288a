"""Some blocks of a kernel taken out of it, with everything about their instructions; which blocks are equal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import Ints, Priced
from lstmsim.model.sparse.csr import firsts, spans


@dataclass(frozen=True, eq=False)
class Picked:
    """The instructions of some blocks, one row for each, as in `Instructions` and `Numbers`.

    warps: streams of a block.
    first: shape (streams + 1,); stream s has the rows from `first[s]` to `first[s + 1]`.
    kind, count, lsu, sectors, in_l1, in_l2: shape (n,).
    waits, misses: shape (n,); how many each row has.
    wait, partition, missing: of all rows, one after the other.
    work: shape (streams,); useful multiply-accumulates of each stream.
    """

    warps: int
    first: Ints
    kind: NDArray[np.int8]
    count: NDArray[np.int32]
    lsu: NDArray[np.int32]
    sectors: NDArray[np.int32]
    in_l1: NDArray[np.bool_]
    in_l2: NDArray[np.bool_]
    waits: Ints
    misses: Ints
    wait: NDArray[np.int32]
    partition: NDArray[np.int32]
    missing: NDArray[np.int32]
    work: Ints

    @property
    def blocks(self) -> int:
        """How many blocks were picked."""
        return (len(self.first) - 1) // self.warps


def picked(kernel: Priced, blocks: Ints, work: Ints | None = None) -> Picked:
    """Take blocks out of a kernel."""
    warps, whole, numbers = kernel.shape.warps, kernel.instructions, kernel.numbers
    streams = spans(blocks * warps, np.full(len(blocks), warps))
    lengths = whole.first[streams + 1] - whole.first[streams]
    rows: slice | Ints
    if len(blocks) and blocks[-1] - blocks[0] == len(blocks) - 1:
        rows = slice(int(whole.first[streams[0]]), int(whole.first[streams[-1] + 1]))
    else:
        rows = spans(whole.first[streams], lengths)
    waits, wait_rows = _listed(whole.first_wait, rows)
    misses, miss_rows = _listed(numbers.first_miss, rows)
    return Picked(
        warps=warps,
        first=firsts(lengths),
        kind=whole.kind[rows],
        count=whole.count[rows],
        lsu=numbers.lsu[rows],
        sectors=numbers.sectors[rows],
        in_l1=numbers.in_l1[rows],
        in_l2=numbers.in_l2[rows],
        waits=waits,
        misses=misses,
        wait=whole.wait[wait_rows],
        partition=numbers.partition[miss_rows],
        missing=numbers.missing[miss_rows],
        work=np.zeros(len(streams), dtype=np.int64) if work is None else work[streams],
    )


def _listed(first: Ints, rows: slice | Ints) -> tuple[Ints, slice | Ints]:
    """How many entries each row has, and which ones."""
    if isinstance(rows, slice):
        own = first[rows.start : rows.stop + 1]
        return np.diff(own), slice(int(own[0]), int(own[-1]))
    counts = first[rows + 1] - first[rows]
    return counts, spans(first[rows], counts)


_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)


def _mixed(values: NDArray[np.uint64], odd: int) -> NDArray[np.uint64]:
    """Well mixed numbers (as splitmix64 ends), so that sums of them tell lists apart."""
    mixed = values * np.uint64(odd)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(_ODD[3])
    mixed ^= mixed >> np.uint64(29)
    return mixed


def block_keys(rows: Picked) -> NDArray[np.uint64]:
    """Two numbers of each block, shape (blocks, 2). Blocks with the same two are equal.

    The numbers are sums of well mixed 64-bit numbers, one for each row, wait and partition at its place in the block: a
    thousand million unequal blocks agree in both with a probability below 10**-19.
    """
    first = rows.first[:: rows.warps]
    streams = _within(np.arange(len(rows.first) - 1), np.arange(rows.blocks + 1) * rows.warps)
    own = (rows.kind.astype(np.uint64) << np.uint64(58)) ^ rows.count.astype(np.uint64) << np.uint64(28)
    own ^= rows.lsu.astype(np.uint64) << np.uint64(14) ^ rows.sectors.astype(np.uint64)
    own = _mixed(own, _ODD[2])
    own ^= (rows.waits.astype(np.uint64) << np.uint64(40)) ^ (rows.misses.astype(np.uint64) << np.uint64(4))
    own ^= rows.in_l1.astype(np.uint64) << np.uint64(1) ^ rows.in_l2.astype(np.uint64)
    waits, misses = firsts(rows.waits), firsts(rows.misses)
    lists = (
        (own, first),
        (rows.wait.astype(np.uint64), waits[first]),
        (rows.partition.astype(np.uint64) << np.uint64(32) ^ rows.missing.astype(np.uint64), misses[first]),
        (np.diff(rows.first).astype(np.uint64), np.arange(rows.blocks + 1) * rows.warps),
        (rows.work.astype(np.uint64), np.arange(rows.blocks + 1) * rows.warps),
    )
    keys = np.zeros((rows.blocks, 2), dtype=np.uint64)
    for number, (values, bounds) in enumerate(lists):
        places = streams if number >= 3 else _within(np.arange(len(values)), bounds)
        spread = values + places * np.uint64(_ODD[1]) + np.uint64(number * _ODD[0] % 2**64)
        for column in (0, 1):
            total = np.zeros(len(values) + 1, dtype=np.uint64)
            np.cumsum(_mixed(spread, _ODD[column]), out=total[1:])
            keys[:, column] += total[bounds[1:]] - total[bounds[:-1]]
    return keys


def _within(numbers: Ints, bounds: Ints) -> NDArray[np.uint64]:
    """The place of each number in its block."""
    return (numbers - np.repeat(bounds[:-1], np.diff(bounds))).astype(np.uint64)
