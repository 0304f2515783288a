"""An estimate of the cycles of a cut, without simulating its caches (docs/multicore.md, section 9, "Planner")."""

from __future__ import annotations

from typing import NamedTuple

from lstmsim.machines.gemm import Cut, Division, Product
from lstmsim.machines.multicore.machine import Machine, up
from lstmsim.machines.multicore.planning.blocks import blocks_of
from lstmsim.machines.multicore.planning.moved import moved_lines
from lstmsim.machines.multicore.planning.second_stage import SecondStage, second_stage

__all__ = ["estimated_cycles"]


def estimated_cycles(machine: Machine, product: Product, cut: Cut, caches: str, packed: bool = False) -> float:
    """About how long a cut takes: the arithmetic and the lines of its largest thread, its pieces of C, and the barrier.

    machine, product, cut: what runs where; with the planner's own sub-blocks and buffer.
    caches: one of `lstmsim.machines.gemm.CACHES`.
    packed: whether B was packed before.

    >>> from lstmsim.machines.multicore.toy import TOY
    >>> cut = Cut("MK", 1, 1, 2, 4, 8, 32)
    >>> [estimated_cycles(TOY, Product(4, 8, 64), cut, caches) for caches in ("warm", "cold")]
    [442.0, 492.0]
    """
    packing = _Packing(not machine.packs_nothing(product.m), not packed)
    stage = second_stage(machine, cut)
    alone = _alone(machine, cut, stage, packing)
    moved = moved_lines(machine, Division(product, cut, stage.sub_blocks, stage.buffer, packed), caches)
    parts = (
        moved.l1_l2 * machine.l2_cycles_per_line,
        moved.l2_llc * machine.llc_cycles_per_line,
        moved.memory * machine.core_memory_cycles_per_line,
    )
    core = max(alone.compute, *parts) if machine.overlap else max(alone.compute, sum(parts))
    fixed = alone.handing + machine.barrier(cut.threads)
    if not moved.group:
        return float(core + fixed)
    return float(max(core, _busiest_memory(machine, product, cut, moved.group)) + machine.memory_latency + fixed)


class _Packing(NamedTuple):
    """Whether anything is packed at all, and whether B is."""

    any: bool
    b: bool


class _Alone(NamedTuple):
    """Of the thread with the largest block: cycles of arithmetic, packing and adding up, and of handing over."""

    compute: int
    handing: int


def _alone(machine: Machine, cut: Cut, stage: SecondStage, packing: _Packing) -> _Alone:
    """With sub-blocks, threads hand over one at the end of each visit; without, a thread waits for all others."""
    sub, handover = stage.sub_blocks, machine.handover_cycles
    whole = _compute(machine, packing, cut.kb, cut.mb, cut.nb)
    if cut.p_k == 1:
        return _Alone(whole, 0)
    if stage.buffer:
        update = up(cut.mb * cut.nb, machine.update_per_cycle)
        handing = sub.count * handover if sub else (cut.p_k - 1) * (handover + update)
        return _Alone(whole + update, handing)
    if sub is None:
        return _Alone(whole, (cut.p_k - 1) * (whole + handover))
    visits = sub.count * up(cut.kb, blocks_of(machine).kc)
    part = _compute(machine, packing, cut.kb, min(sub.sm, cut.mb), min(sub.sn, cut.nb))
    return _Alone(sub.count * part, visits * handover)


def _compute(machine: Machine, packing: _Packing, ks: int, rows: int, columns: int) -> int:
    """Cycles of packing and of micro-kernels."""
    kc = blocks_of(machine).kc
    full, rest = divmod(ks, kc)
    part = _block(machine, packing, rest, rows, columns) if rest else 0
    return full * _block(machine, packing, kc, rows, columns) + part


def _block(machine: Machine, packing: _Packing, length: int, rows: int, columns: int) -> int:
    panels = up(columns, machine.nr)
    tiles, edge = divmod(rows, machine.mr)
    if not packing.any:
        return panels * _kernel(machine, length, 1)
    packed = length * (machine.rows(rows) + (panels * machine.nr if packing.b else 0))
    kernels = tiles * _kernel(machine, length, machine.mr) + (
        _kernel(machine, length, machine.rows(edge)) if edge else 0
    )
    return up(packed, machine.pack_per_cycle) + panels * kernels


def _kernel(machine: Machine, length: int, rows: int) -> int:
    return up(length * rows * machine.nr, machine.macs_per_cycle) + machine.kernel_cycles


def _busiest_memory(machine: Machine, product: Product, cut: Cut, group: float) -> float:
    """Cycles of each memory, if pages are spread evenly."""
    working = up(product.m, cut.mb) * up(product.n, cut.nb) * cut.p_k
    groups = max(1.0, working / min(machine.cores_per_llc, cut.threads))
    sizes = (product.m * product.k, product.k * product.n, product.m * product.n)
    pages = sum(up(each * machine.element_bytes, machine.page) for each in sizes)
    return groups * group * machine.memory_cycles_per_line / min(machine.domains, pages)
