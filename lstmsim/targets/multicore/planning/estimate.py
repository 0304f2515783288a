"""An estimate of the cycles of a cut, without its lines in the caches (docs/multicore.md, section 9, "Planner")."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from lstmsim.targets.division import Cut, Product
from lstmsim.targets.multicore.machine import Machine, up
from lstmsim.targets.multicore.planning.blocks import blocks_of
from lstmsim.targets.multicore.planning.second_stage import SecondStage, second_stage

__all__ = ["estimated_cycles"]


def estimated_cycles(machine: Machine, product: Product, cut: Cut, caches: str, packed: bool = False) -> float:
    """About how long a cut takes: the arithmetic of its largest thread, its pieces of C, its lines, and the barrier.

    machine, product, cut: what runs where; with the planner's own sub-blocks and buffer.
    caches: one of `lstmsim.targets.gemm.CACHES`.
    packed: whether B was packed before.

    >>> from lstmsim.targets.multicore.toy import TOY
    >>> cut = Cut("MK", 1, 1, 2, 4, 8, 32)
    >>> [estimated_cycles(TOY, Product(4, 8, 64), cut, caches) for caches in ("warm", "cold")]
    [442.0, 492.0]
    """
    packing = _Packing(not machine.packs_nothing(product.m), not packed)
    alone = _alone(machine, cut, second_stage(machine, cut), packing)
    own = _lines(machine, product, cut, _Size(cut.mb, cut.nb, cut.kb))
    group = _of_group(machine, product, cut)
    fixed = alone.handing + machine.barrier(cut.threads)
    l2, llc = 2 * machine.l2_cycles_per_line, machine.llc_cycles_per_line
    if caches == "cold" or group > machine.llc_bytes // machine.line:
        busy = _busiest_memory(machine, product, cut, group)
        core = _core(machine, alone.compute, own, (l2, llc, machine.core_memory_cycles_per_line))
        return float(max(core, busy) + machine.memory_latency + fixed)
    if own > machine.l2_bytes // machine.line:
        return float(_core(machine, alone.compute, own, (l2, llc)) + fixed)
    return float(alone.compute + fixed)


class _Size(NamedTuple):
    rows: int
    columns: int
    ks: int


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


def _lines(machine: Machine, product: Product, cut: Cut, size: _Size) -> float:
    """Lines of A, B and C that a block touches, on average over where it lies."""
    a = _part_of(machine, size.rows, size.ks, product.k, cut.kb)
    b, c = (_part_of(machine, rows, size.columns, product.n, cut.nb) for rows in (size.ks, size.rows))
    return a + b + c


def _part_of(machine: Machine, rows: int, columns: int, row: int, offset: int) -> float:
    """Lines of a part of a matrix: runs of elements that begin at multiples of a row and of an offset, in elements.

    Rows that are shorter than a line share lines.
    """
    size, line = machine.element_bytes, machine.line
    step = gcd(line, row * size, offset * size if columns < row else 0)
    run, span = ((elements * size + line - step) / line for elements in (columns, rows * row))
    return min(rows * run, span)


def _of_group(machine: Machine, product: Product, cut: Cut) -> float:
    """Lines of A, B and C that the threads of a last-level cache touch, each once."""
    left = min(machine.cores_per_llc, cut.threads)
    parts = []
    for most in (cut.p_k, cut.p_n, cut.p_m):
        parts.append(min(most, left))
        left = max(1, left // most)
    ks, columns, rows = parts
    whole = (product.m, product.n, product.k)
    sizes = (rows * cut.mb, columns * cut.nb, ks * cut.kb)
    return _lines(machine, product, cut, _Size(*map(min, sizes, whole)))


def _busiest_memory(machine: Machine, product: Product, cut: Cut, group: float) -> float:
    """Cycles of each memory, if pages are spread evenly."""
    working = up(product.m, cut.mb) * up(product.n, cut.nb) * cut.p_k
    groups = max(1.0, working / min(machine.cores_per_llc, cut.threads))
    sizes = (product.m * product.k, product.k * product.n, product.m * product.n)
    pages = sum(up(each * machine.element_bytes, machine.page) for each in sizes)
    return groups * group * machine.memory_cycles_per_line / min(machine.domains, pages)


def _core(machine: Machine, compute: int, lines: float, rates: tuple[int, ...]) -> float:
    """Cycles of a core with its lines, which overlap with each other and with arithmetic, or do not."""
    if machine.overlap:
        return max(compute, lines * max(rates))
    return compute + lines * sum(rates)
