"""The flat view of a multi-core CPU that planner, executor, caches and lowering are written for.

Blocks that fit the caches (section 2.1 of docs/multicore.md).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from lstmsim.base.records import hashed_once, record


def up(number: int, by: int) -> int:
    """How many parts of a size hold a number."""
    return -(-number // by)


@hashed_once
@record
class Machine:
    """Every number of a CPU, by the names of section 1 of docs/multicore.md. Cycles are of the one clock.

    cores: how many; core c is in group `c // cores_per_llc` and in domain `c // cores_per_domain`.
    cores_per_llc, cores_per_domain: cores that share a last-level cache; that share a memory.
    line, page: bytes.
    l1_sets, l1_ways, l2_sets, l2_ways: of the caches of a core. llc_sets, llc_ways: of the cache of a group, and
        llc_hash: how it finds the set of a line, of `lstmsim.machines.multicore.lines.caches.HASHES`.
    overlap: whether transfers between levels, and computing, overlap each other.
    l2_cycles_per_line, llc_cycles_per_line: L1-L2, L2-LLC. core_memory_cycles_per_line: LLC-memory, of one core.
    memory_cycles_per_line: of one memory.
    memory_latency, remote_latency: until a line is there; more from another domain.
    remote_cycles_per_line: more for a core, for each line of another domain.
    handover_cycles: a piece of C passes from core to core. barrier_cycles: of each level of a tree.
    macs_per_cycle, lanes: multiply-accumulates in a cycle; elements of a vector.
    element_bytes: of a number. mr, nr: rows and columns of a micro-tile.
    kernel_cycles: of each call of the micro-kernel. exact_rows: whether a tile of fewer rows takes less time.
    gemv: whether products with one row have a kernel that packs nothing.
    pack_per_cycle, update_per_cycle: elements.
    activation_cycles, elementwise_cycles: of one operation on a vector.
    k_unit: blocks of K are multiples of it. fill, buffer_fill: the part of a cache for blocks and for a buffer (a
        fraction, as numerator and denominator).
    """

    cores: int
    cores_per_llc: int
    cores_per_domain: int
    line: int
    page: int
    l1_sets: int
    l1_ways: int
    l2_sets: int
    l2_ways: int
    llc_sets: int
    llc_ways: int
    llc_hash: str
    overlap: bool
    l2_cycles_per_line: int
    llc_cycles_per_line: int
    core_memory_cycles_per_line: int
    memory_cycles_per_line: int
    memory_latency: int
    remote_latency: int
    remote_cycles_per_line: int
    handover_cycles: int
    barrier_cycles: int
    macs_per_cycle: int
    lanes: int
    element_bytes: int
    mr: int
    nr: int
    kernel_cycles: int
    exact_rows: bool
    gemv: bool
    pack_per_cycle: int
    update_per_cycle: int
    activation_cycles: int
    elementwise_cycles: int
    k_unit: int
    fill: tuple[int, int]
    buffer_fill: tuple[int, int]

    @property
    def l1_bytes(self) -> int:
        """Bytes of the first cache of a core."""
        return self.l1_sets * self.l1_ways * self.line

    @property
    def l2_bytes(self) -> int:
        """Bytes of the second cache of a core."""
        return self.l2_sets * self.l2_ways * self.line

    @property
    def llc_bytes(self) -> int:
        """Bytes of the last-level cache of a group."""
        return self.llc_sets * self.llc_ways * self.line

    @property
    def domains(self) -> int:
        """How many memories there are."""
        return up(self.cores, self.cores_per_domain)

    @property
    def groups(self) -> int:
        """How many last-level caches there are."""
        return up(self.cores, self.cores_per_llc)

    def domain(self, core: int) -> int:
        """The memory of a core."""
        return core // self.cores_per_domain

    def group(self, core: int) -> int:
        """The last-level cache of a core."""
        return core // self.cores_per_llc

    def rows(self, rows: int) -> int:
        """Rows for which a tile, or some tiles, of `rows` rows take time."""
        return rows if self.exact_rows else up(rows, self.mr) * self.mr

    def packs_nothing(self, rows: int) -> bool:
        """Whether a product with so many rows is multiplied by the kernel that packs nothing."""
        return self.gemv and rows == 1

    def barrier(self, threads: int) -> int:
        """Cycles of a barrier."""
        return self.barrier_cycles * (threads - 1).bit_length()


class Blocks(NamedTuple):
    """Sizes of the blocks that the loops around the micro-kernel take.

    mc: rows of A in the second cache.
    nc: columns of B in the last-level cache.
    kc: length of the sums of one micro-kernel, in the first cache.
    """

    mc: int
    nc: int
    kc: int


@lru_cache(maxsize=256)
def blocks_of(machine: Machine) -> Blocks:
    """The blocks that fill the caches of a machine as far as it says, in whole micro-tiles, each of one at least."""
    part, whole = machine.fill
    size = machine.element_bytes
    fitting = machine.l1_bytes * part // whole // ((machine.mr + machine.nr) * size)
    kc = _multiple(fitting, machine.k_unit)
    mc = _multiple(machine.l2_bytes * part // whole // (kc * size), machine.mr)
    nc = _multiple(machine.llc_bytes * part // whole // machine.cores_per_llc // (kc * size), machine.nr)
    return Blocks(mc, nc, kc)


def _multiple(number: int, unit: int) -> int:
    """The largest multiple of a unit that is not above a number, but one unit at least."""
    return max(unit, number // unit * unit)
