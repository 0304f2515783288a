"""One kernel's accesses against L1 and L2: what each costs, when it is known what was touched before the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import CLASS, Kernel, Memory, Numbers
from lstmsim.machines.parallel.memory.addresses import SECTOR_BYTES
from lstmsim.machines.parallel.memory.cohorts import Accesses, Cohorts, accesses, cohorts_of
from lstmsim.machines.parallel.memory.layout import Layout
from lstmsim.machines.parallel.residency import Room, residency, shared_room
from lstmsim.model.sparse.ranges import regrouped

__all__ = ["Caches", "Scene", "numbers_of"]

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]
_LDG, _STG, _ATOM = (CLASS[name] for name in ("ldg", "stg", "atom"))
_NEVER = np.iinfo(np.int64).max


class Caches(Room, Protocol):
    """What the traffic of a device depends on: besides the room for blocks, its caches and partitions."""

    @property
    def sms(self) -> int: ...
    @property
    def partitions(self) -> int: ...
    @property
    def l1_bytes(self) -> int: ...
    @property
    def l2_bytes(self) -> int: ...
    @property
    def l2_state(self) -> str: ...


@dataclass(frozen=True, eq=False)
class Scene:
    """A kernel on a device, with all that holds for the whole of it.

    kernel, device, arrays, layout: whose caches, and where the arrays lie.
    large: shape (arrays,); bytes that the kernel touches of each array if these are more than L2 holds, else 0.
    free: shape (layout.total,); sectors whose first touch in this kernel does not miss.
    cohorts: its blocks by cohort.
    room: bytes of L1 that a cohort may hold of an array that is not ordered.
    cacheable: shape (arrays,); arrays that the kernel does not write.
    ordered: shape (arrays,); arrays that need only a window of L1.
    """

    kernel: Kernel
    device: Caches
    layout: Layout
    large: Ints
    free: Mask
    cohorts: Cohorts
    room: int
    cacheable: Mask
    ordered: Mask


def scene_of(
    kernel: Kernel, device: Caches, arrays: tuple[Memory, ...], layout: Layout, bytes_touched: Ints, free: Mask
) -> Scene:
    """The scene of a kernel.

    arrays: of the run; `layout`: where they lie.
    bytes_touched: shape (arrays,); of each array by this kernel.
    free: as in `Scene`.
    """
    resident = residency(kernel.shape, device)
    written = np.unique(kernel.array[np.isin(kernel.instructions.kind, (_STG, _ATOM))])
    cacheable = np.ones(len(arrays), bool)
    cacheable[written] = False
    return Scene(
        kernel,
        device,
        layout,
        np.where(bytes_touched > device.l2_bytes, bytes_touched, 0),
        free,
        cohorts_of(kernel.sm, device.sms, resident),
        device.l1_bytes - resident * shared_room(kernel.shape),
        cacheable,
        np.array([array.name in kernel.shape.ordered for array in arrays], bool),
    )


def numbers_of(scene: Scene) -> Numbers:
    """What the accesses of a kernel cost.

    Two passes over the accesses: the first finds what L1 answers and who touches each sector first, the second what
    is missing.
    """
    kernel = scene.kernel
    streams = len(kernel.instructions.first) - 1
    span = (int(np.diff(kernel.instructions.first).max(initial=0)) + 1) * max(streams, 1)
    newest = np.full(scene.layout.total, _NEVER)
    earliest = np.full(scene.layout.total, _NEVER)
    hits: list[Mask] = []
    for batch in accesses(kernel, scene.layout, scene.cohorts):
        hit = _hits(scene, batch, newest, span)
        hits.append(hit)
        reach = np.flatnonzero(~hit)
        np.minimum.at(earliest, batch.sector[reach], (batch.wave * span + batch.order)[batch.each[reach]])
    costs = _Costs(kernel)
    for batch, hit in zip(accesses(kernel, scene.layout, scene.cohorts), hits, strict=True):
        costs.add(batch, hit, _missing(scene, batch, hit, earliest, span), scene.device.partitions)
    return costs.numbers()


def _hits(scene: Scene, batch: Accesses, newest: Ints, span: int) -> Mask:
    """Shape (touches,); what L1 answers: later loads of a cohort of what it holds.

    newest: shape (sectors,); the lowest number that has touched each. Numbers of later cohorts are lower than those of
        earlier ones, so that nothing need be cleared between two.
    """
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


class _Costs:
    """Collects the costs of the accesses of a kernel, batch after batch."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        n = len(kernel.lsu)
        self.sectors = np.zeros(n, np.int32)
        self.in_l1 = np.zeros(n, bool)
        self.in_l2 = np.zeros(n, bool)
        self.rows: list[Ints] = []
        self.counts: list[NDArray[np.int32]] = []
        self.partition: list[NDArray[np.int32]] = []
        self.missing: list[NDArray[np.int32]] = []

    def add(self, batch: Accesses, hit: Mask, missing: Mask, partitions: int) -> None:
        """Take up a batch.

        hit, missing: shape (touches,); what L1 answers, what comes from DRAM.
        """
        n = len(batch.rows)
        atom = (self.kernel.instructions.kind[batch.rows] == _ATOM)[batch.each]
        again = np.zeros(len(batch.each), bool)  # An atom names a sector once for each of its lanes.
        again[1:] = (batch.sector[1:] == batch.sector[:-1]) & (batch.each[1:] == batch.each[:-1])
        through = np.bincount(batch.each[~hit & ~again], minlength=n)
        from_l2 = np.bincount(batch.each[~hit & ~missing & ~atom], minlength=n)
        self.sectors[batch.rows] = through
        self.in_l1[batch.rows[batch.each[hit]]] = True
        self.in_l2[batch.rows] = from_l2 > 0
        served = np.flatnonzero(missing | atom)
        key = batch.each[served] * partitions + batch.sector[served] // 4 % partitions
        key.sort(kind="stable")
        new = np.flatnonzero(np.diff(key, prepend=-1))
        self.rows.append(batch.rows)
        self.counts.append(np.bincount(key[new] // partitions, minlength=n).astype(np.int32))
        self.partition.append((key[new] % partitions).astype(np.int32))
        self.missing.append(np.diff(new, append=len(key)).astype(np.int32))

    def numbers(self) -> Numbers:
        """The costs of all batches."""
        n = len(self.kernel.lsu)
        first, (partition, missing) = regrouped(self.rows, self.counts, [self.partition, self.missing], n)
        return Numbers(self.kernel.lsu, self.sectors, first, partition, missing, self.in_l1, self.in_l2)
