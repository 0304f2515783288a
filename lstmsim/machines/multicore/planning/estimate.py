"""An estimate of the cycles of a cut, without simulating its caches (docs/multicore.md, section 9, "Planner").

What fits is found set by set: lines of a set that has more of them than ways push each other out, in L2 and in the
last-level cache, however much room other sets have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.gemm import Cut, Division, Product
from lstmsim.machines.multicore.lines.hashing import sets_of
from lstmsim.machines.multicore.lines.space import Places, Space, operands
from lstmsim.machines.multicore.machine import Machine, blocks_of, up
from lstmsim.machines.multicore.planning.cuts import SecondStage, second_stage

Lines = NDArray[np.int64]
#: From this share of its lines on, an array counts as not kept.
_MOSTLY = 0.5


class Moved(NamedTuple):
    """Lines of thread 0, which has the largest block, and of the threads that share its last-level cache.

    l1_l2, l2_llc: between its caches.
    memory: of its lines, those from and to memory.
    group: lines of its group from and to memory, each once.
    """

    l1_l2: float
    l2_llc: float
    memory: float
    group: float


class _Part(NamedTuple):
    """So many runs of bytes, `stride` bytes apart, ascending."""

    address: int
    stride: int
    rows: int
    length: int

    def ends(self, line: int) -> tuple[Lines, Lines]:
        """Of each run its first line that no run before it has, and how many lines it has from there on."""
        begin = self.address + np.arange(self.rows, dtype=np.int64) * self.stride
        first, last = begin // line, (begin + self.length - 1) // line
        first[1:] = np.maximum(first[1:], last[:-1] + 1)
        return first, last - first + 1

    def count(self, line: int) -> int:
        """How many lines they touch."""
        return int(self.ends(line)[1].sum()) if self.length else 0

    def lines(self, line: int) -> Lines:
        """The lines, each once."""
        first, count = self.ends(line)
        upto = np.cumsum(count)
        return np.repeat(first - (upto - count), count) + np.arange(upto[-1], dtype=np.int64)


class _Touched(NamedTuple):
    """What a thread touches: its parts of A, B and C, what it packs, and of B a packed panel."""

    a: _Part
    b: _Part
    c: _Part
    packed_a: _Part
    packed_b: _Part
    panel: _Part


class _Cache(NamedTuple):
    """A cache: how lines find their sets, how many sets, lines of a set, bytes of a line."""

    kind: str
    sets: int
    ways: int
    line: int

    def crowded(self, parts: Sequence[_Part]) -> Mapping[_Part, float]:
        """Of each part which share of its lines lies in sets that all parts together overfill."""
        known = {each: each.count(self.line) for each in parts}
        # lines next to each other lie in different sets, so twice the room overfills them all
        if sum(known.values()) > 2 * self.sets * self.ways:
            return dict.fromkeys(known, 1.0)
        lines = {each: each.lines(self.line) for each, count in known.items() if count}
        most = max((int(each.max()) for each in lines.values()), default=0)
        of = sets_of(self.kind, self.sets, most + 1)
        sets = {each: of(own) for each, own in lines.items()}
        full = np.bincount(np.concatenate([np.empty(0, np.int64), *sets.values()]), minlength=self.sets) > self.ways
        return {each: float(full[sets[each]].mean()) if each in sets else 0.0 for each in known}


@lru_cache(maxsize=1 << 16)
def moved_lines(machine: Machine, division: Division, caches: str) -> Moved:
    """About how many lines a product moves with its sub-blocks and its buffer."""
    places, line = operands(Space(machine), machine, division), machine.line
    threads = range(min(machine.cores_per_llc, division.cut.threads))
    group = [_touched(machine, division, places, each) for each in threads]
    own, loops = group[0], _Loops.of(machine, division)
    l1 = _Cache("bits", machine.l1_sets, machine.l1_ways, line)
    l2 = _Cache("bits", machine.l2_sets, machine.l2_ways, line)
    llc = _Cache(machine.llc_hash, machine.llc_sets, machine.llc_ways, line)
    near, far, missed = 1.0, 1.0, [1.0, 1.0, 1.0]
    shared = [_joined([one[number] for one in group]) for number in range(3)]
    if caches == "warm":
        # what is packed and stays in L2 is never asked of the last-level cache, and leaves it for what is
        below = l2.crowded(loops.step(own))[own.packed_b] > _MOSTLY
        packs = [each for one in group for each in (one.packed_a, one.packed_b)] if below else []
        crowded = llc.crowded([*chain.from_iterable(shared), *packs])
        missed = [_share(each, crowded, line) for each in shared]
        near, far = (each.crowded(own[:5])[own.b] for each in (l1, l2))
    of_b = own.b.count(line)
    memory = sum(each.count(line) * share for each, share in zip(own, missed, strict=False))
    return Moved(
        l1_l2=of_b * near * loops.b + loops.moves(l1, own),
        l2_llc=max(of_b * far * loops.b + loops.moves(l2, own), memory),
        memory=memory,
        group=sum(each.count(line) * share for parts, share in zip(shared, missed, strict=True) for each in parts),
    )


def _joined(parts: Sequence[_Part]) -> list[_Part]:
    """Parts of a matrix, each once; those that lie side by side are one, because they share lines."""
    joined: list[_Part] = []
    for each in sorted(dict.fromkeys(parts)):
        last = joined[-1] if joined else each
        beside = (last.address + last.length, last.stride, last.rows) == (each.address, each.stride, each.rows)
        if joined and beside:
            joined[-1] = last._replace(length=last.length + each.length)
        else:
            joined.append(each)
    return joined


def _share(parts: Sequence[_Part], crowded: Mapping[_Part, float], line: int) -> float:
    """The share of lines of some parts together."""
    counts = [each.count(line) for each in parts]
    return sum(crowded[each] * count for each, count in zip(parts, counts, strict=True)) / max(1, sum(counts))


class _Loops(NamedTuple):
    """How often a thread goes over its lines.

    steps: parts of K and of its columns. ks: parts of K.
    a, b: how often it packs A and B. panels: of a block of columns, for each of which it reads packed A.
    update: lines for each of C, with which a buffer is added: the buffer's, and C's there and back.
    """

    steps: int
    ks: int
    a: int
    b: int
    panels: int
    update: int

    @classmethod
    def of(cls, machine: Machine, division: Division) -> _Loops:
        cut, blocks, sub = division.cut, blocks_of(machine), division.sub_blocks
        times_m, times_n = (sub.s_m, sub.s_n) if sub is not None and not division.buffer else (1, 1)
        columns = min(up(cut.nb, times_n), blocks.nc)
        ks, wide = up(cut.kb, blocks.kc), up(cut.nb, columns)
        update = 3 if division.buffer and cut.p_k > 1 else 0
        return cls(ks * wide, ks, max(times_n, wide), times_m, up(columns, machine.nr), update)

    def step(self, own: _Touched) -> tuple[_Part, ...]:
        """What is touched again in each step, and the part of B that a step reads."""
        return own.b._replace(rows=up(own.b.rows, self.steps)), own.c, own.packed_a, own.packed_b

    def moves(self, cache: _Cache, own: _Touched) -> float:
        """Lines of C and of packed A and B that a cache takes and gives: fetched to be written, written back, read."""
        missed = cache.crowded(self.step(own))
        a, b, c = (each.count(cache.line) * missed[each] for each in (own.packed_a, own.packed_b, own.c))
        # all of packed A is read for each panel
        read = own.packed_a.count(cache.line) * cache.crowded((own.packed_a, own.panel))[own.packed_a] * self.panels
        return b * self.steps * self.b * 3 + (2 * a + read) * self.ks * self.a + c * (2 * self.ks + self.update)


def _touched(machine: Machine, division: Division, places: Places, thread: int) -> _Touched:
    """What a thread touches; nothing if it has no part of the product."""
    (m0, m1), (n0, n1), (k0, k1) = division.cut.owned(thread, division.product)
    size, nr, own = machine.element_bytes, machine.nr, places.own[thread]
    if m0 >= m1 or n0 >= n1 or k0 >= k1:
        return _Touched(*(_Part(0, 0, 0, 0),) * 6)
    blocks, (segment,) = blocks_of(machine), places.a
    depth, rows = min(blocks.kc, k1 - k0), min(blocks.mc, machine.rows(m1 - m0))
    if machine.packs_nothing(division.product.m):
        rows = 0
    packs_b = rows > 0 and not division.packed
    columns = min(blocks.nc, up(n1 - n0, nr) * nr)
    b, c = places.b, places.c
    if division.packed:
        panel = division.product.k * nr * size
        part_b = _Part(b.address + n0 // nr * panel + k0 * nr * size, panel, up(n1 - n0, nr), (k1 - k0) * nr * size)
    else:
        part_b = _Part(b.address + k0 * b.stride + n0 * size, b.stride, k1 - k0, (n1 - n0) * size)
    return _Touched(
        a=_Part(segment.address + m0 * segment.stride + k0 * size, segment.stride, m1 - m0, (k1 - k0) * size),
        b=part_b,
        c=_Part(c.address + m0 * c.stride + n0 * size, c.stride, m1 - m0, (n1 - n0) * size),
        packed_a=_Part(own.packed_a, 0, 1, rows * depth * size),
        packed_b=_Part(own.packed_b, 0, 1, columns * depth * size if packs_b else 0),
        panel=_Part(own.packed_b if packs_b else part_b.address, 0, 1, nr * depth * size),
    )


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
