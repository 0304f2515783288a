"""Cuts of a product into blocks for threads, how threads that share a block keep apart, and how long a cut takes.

The estimate simulates no caches (docs/multicore.md, section 9, "Planner"). What fits is found set by set: lines of a
set that has more of them than ways push each other out, in L2 and in the last-level cache, however much room other
sets have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.gemm import Cut, Division, Product, SubBlocks, SubCandidate
from lstmsim.machines.multicore.chip import MulticoreCpu, blocks_of, up
from lstmsim.machines.multicore.lines.caches import sets_of
from lstmsim.machines.multicore.lines.space import Places, Space, operands, place_of_b
from lstmsim.machines.multicore.steps import Step, compute_cycles


def mn_cuts(product: Product, threads: int) -> tuple[Cut, ...]:
    """Every cut of rows and columns alone: first the one of BLIS's rule, then the others with ever more parts of rows.

    threads: how many; some may have nothing to do.
    """
    first = blis_cut(product, threads)
    others = (_mn_cut(product, p_m, threads // p_m) for p_m in _divisors(threads) if p_m != first.p_m)
    return (first, *others)


def blis_cut(product: Product, threads: int) -> Cut:
    """The cut of BLIS's rule: p_m and p_n as near as they can be to the ratio of rows and columns."""
    p_m = min(_divisors(threads), key=lambda each: abs(each * product.n - threads // each * product.m))
    return _mn_cut(product, p_m, threads // p_m)


def k_cuts(chip: MulticoreCpu, product: Product, threads: int) -> tuple[Cut, ...]:
    """Every cut of K, and of either rows (`MK`, these are first) or columns (`NK`), with ever more parts of K."""
    parts = [each for each in _divisors(threads) if each > 1]
    rows = [cut_of_parts(chip, product, "MK", (threads // each, 1, each)) for each in parts]
    columns = [cut_of_parts(chip, product, "NK", (1, threads // each, each)) for each in parts if each < threads]
    return (*rows, *columns)


def cut_of_parts(chip: MulticoreCpu, product: Product, kind: str, parts: Sequence[int]) -> Cut:
    """The cut into so many parts, of sizes as in every other cut."""
    p_m, p_n, p_k = parts
    kb = product.k if p_k == 1 else min(_part_of_k(chip, product, p_k), product.k)
    return Cut(kind, p_m, p_n, p_k, up(product.m, p_m), up(product.n, p_n), kb)


def is_idle(chip: MulticoreCpu, product: Product, cut: Cut) -> bool:
    """Whether a thread has nothing to do, or would have nothing if parts of K were whole multiples."""
    parts_k = 1 if cut.p_k == 1 else up(product.k, _part_of_k(chip, product, cut.p_k))
    return parts_k < cut.p_k or up(product.m, cut.mb) < cut.p_m or up(product.n, cut.nb) < cut.p_n


def _mn_cut(product: Product, p_m: int, p_n: int) -> Cut:
    return Cut("MN", p_m, p_n, 1, up(product.m, p_m), up(product.n, p_n), product.k)


def _part_of_k(chip: MulticoreCpu, product: Product, p_k: int) -> int:
    return up(up(product.k, p_k), chip.k_unit) * chip.k_unit


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


#: Conditions of which more is better; of all others less is.
FITS = ("k_fit", "mn_fit", "count")


def normalised(rows: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """The conditions of several candidates from 0 to 1, where 1 is the best of them."""
    if not rows:
        return []
    best = {name: (max if name in FITS else min)(row[name] for row in rows) for name in rows[0]}
    return [
        {name: value / best[name] if name in FITS else best[name] / value for name, value in row.items()}
        for row in rows
    ]


def fitness_of(values: Collection[float], weights: Collection[float]) -> float:
    """The weighted mean, rounded so that candidates that are alike tie."""
    total = 0.0
    whole = 0.0
    # not `sum`, which rounds in another way from Python 3.12 on
    for value, weight in zip(values, weights, strict=True):
        total += weight * value
        whole += weight
    return round(total / whole, 9)


class SecondStage(NamedTuple):
    """What the planner says of a cut.

    sub_blocks: how blocks of C are cut further; None: not, because there is no such way, or K is not cut.
    ranked: all sub-blocks that were considered, the best first.
    buffer: whether each thread should sum up in a buffer of its own.
    """

    sub_blocks: SubBlocks | None
    ranked: tuple[SubCandidate, ...]
    buffer: bool

    @property
    def relieves(self) -> bool:
        """Whether there is anything that keeps threads apart."""
        return self.sub_blocks is not None or self.buffer


def second_stage(chip: MulticoreCpu, cut: Cut) -> SecondStage:
    """Sub-blocks and buffer for a cut.

    A buffer is worth its update if C would be updated several times, or if blocks are small.
    """
    if cut.p_k == 1:
        return SecondStage(None, (), False)
    ranked, (part, whole), blocks = _ranked_sub_blocks(chip, cut), chip.buffer_fill, blocks_of(chip)
    fits = cut.mb * cut.nb * chip.element_bytes <= chip.l2_bytes * part // whole
    buffer = fits and (cut.kb > blocks.kc or 2 * cut.mb < blocks.mc or 2 * cut.nb < blocks.nc)
    return SecondStage(ranked[0].sub_blocks if ranked else None, ranked, buffer)


def division_of(
    chip: MulticoreCpu, product: Product, cut: Cut, relief: str = "plan", *, packed: bool = False
) -> Division:
    """What a cut becomes with the sub-blocks and the buffer of the planner, or with a relief."""
    stage = second_stage(chip, cut)
    sub_blocks = stage.sub_blocks if relief in ("plan", "sub", "both") else None
    buffer = stage.buffer if relief == "plan" else relief in ("buffer", "both") and cut.p_k > 1
    return Division(product, cut, sub_blocks, buffer, packed)


def _ranked_sub_blocks(chip: MulticoreCpu, cut: Cut) -> tuple[SubCandidate, ...]:
    """Sub-blocks in the order of their rank, up to twice as many along rows and along columns as parts of K."""
    heights = _sizes_of_parts(cut.mb, chip.core.mr, 2 * cut.p_k)
    widths = _sizes_of_parts(cut.nb, max(chip.core.nr, chip.line // chip.element_bytes), 2 * cut.p_k)
    every = [SubBlocks(sm, sn, up(cut.mb, sm), up(cut.nb, sn)) for sm in heights for sn in widths]
    some = [each for each in every if each.count >= cut.p_k]
    raw = [_conditions(cut, each) for each in some]
    rows = [
        SubCandidate(each, own, of, fitness_of(list(of.values()), (1,) * len(of)))
        for each, own, of in zip(some, raw, normalised(raw), strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: (-row.fitness, row.sub_blocks.count, row.sub_blocks.s_m)))


def _sizes_of_parts(whole: int, unit: int, most: int) -> list[int]:
    """Sizes of parts in whole units, each once, from the largest on."""
    parts = range(1, min(most, up(whole, unit)) + 1)
    return list(dict.fromkeys(up(up(whole, each), unit) * unit for each in parts))


def _conditions(cut: Cut, each: SubBlocks) -> dict[str, float]:
    area = each.sm * each.sn * each.count
    return {
        "count": cut.p_k / each.count,
        "padding": area / (cut.mb * cut.nb),
        "repack": float(cut.mb * cut.kb * each.s_n + cut.kb * cut.nb * each.s_m),
    }


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
def moved_lines(chip: MulticoreCpu, division: Division, caches: str) -> Moved:
    """About how many lines a product moves with its sub-blocks and its buffer."""
    places, line = operands(Space(chip), chip, division), chip.line
    threads = range(min(chip.cores_per_llc, division.cut.threads))
    group = [_touched(chip, division, places, each) for each in threads]
    own, loops = group[0], _Loops.of(chip, division)
    l1 = _Cache("bits", chip.core.l1_sets, chip.core.l1_ways, line)
    l2 = _Cache("bits", chip.core.l2_sets, chip.core.l2_ways, line)
    llc = _Cache(chip.llc_hash, chip.llc_sets, chip.llc_ways, line)
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
        last = joined[-1] if joined else None
        if last and (last.address + last.length, last.stride, last.rows) == (each.address, each.stride, each.rows):
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
    def of(cls, chip: MulticoreCpu, division: Division) -> _Loops:
        cut, blocks, sub = division.cut, blocks_of(chip), division.sub_blocks
        times_m, times_n = (sub.s_m, sub.s_n) if sub is not None and not division.buffer else (1, 1)
        columns = min(up(cut.nb, times_n), blocks.nc)
        ks, wide = up(cut.kb, blocks.kc), up(cut.nb, columns)
        update = 3 if division.buffer and cut.p_k > 1 else 0
        return cls(ks * wide, ks, max(times_n, wide), times_m, up(columns, chip.core.nr), update)

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


def _touched(chip: MulticoreCpu, division: Division, places: Places, thread: int) -> _Touched:
    """What a thread touches; nothing if it has no part of the product."""
    (m0, m1), (n0, n1), (k0, k1) = division.cut.owned(thread, division.product)
    size, nr, own = chip.element_bytes, chip.core.nr, places.own[thread]
    if m0 >= m1 or n0 >= n1 or k0 >= k1:
        return _Touched(*(_Part(0, 0, 0, 0),) * 6)
    blocks, (segment,) = blocks_of(chip), places.a
    depth, rows = min(blocks.kc, k1 - k0), min(blocks.mc, chip.core.rows(m1 - m0))
    if chip.core.packs_nothing(division.product.m):
        rows = 0
    packs_b = rows > 0 and not division.packed
    columns = min(blocks.nc, up(n1 - n0, nr) * nr)
    b, c = place_of_b(chip, division, places, n0, k0), places.c
    if division.packed:
        part_b = _Part(*b, up(n1 - n0, nr), (k1 - k0) * nr * size)
    else:
        part_b = _Part(*b, k1 - k0, (n1 - n0) * size)
    return _Touched(
        a=_Part(segment.address + m0 * segment.stride + k0 * size, segment.stride, m1 - m0, (k1 - k0) * size),
        b=part_b,
        c=_Part(c.address + m0 * c.stride + n0 * size, c.stride, m1 - m0, (n1 - n0) * size),
        packed_a=_Part(own.packed_a, 0, 1, rows * depth * size),
        packed_b=_Part(own.packed_b, 0, 1, columns * depth * size if packs_b else 0),
        panel=_Part(own.packed_b if packs_b else b.address, 0, 1, nr * depth * size),
    )


def estimated_cycles(chip: MulticoreCpu, product: Product, cut: Cut, caches: str, packed: bool = False) -> float:
    """About how long a cut takes: the arithmetic and the lines of its largest thread, its pieces of C, and the barrier.

    The cut has the planner's own sub-blocks and buffer. The pages of the product are spread evenly over the memories.
    """
    stage, own = second_stage(chip, cut), chip.core
    compute, handing = _alone(chip, product, cut, stage, packed)
    moved = moved_lines(chip, Division(product, cut, stage.sub_blocks, stage.buffer, packed), caches)
    near, llc = moved.l1_l2 * own.l2_cycles_per_line, moved.l2_llc * own.llc_cycles_per_line
    parts = (near, llc, moved.memory * own.core_memory_cycles_per_line)
    core = max(compute, *parts) if own.overlap else max(compute, sum(parts))
    fixed = handing + chip.barrier(cut.threads)
    if not moved.group:
        return float(core + fixed)
    working = up(product.m, cut.mb) * up(product.n, cut.nb) * cut.p_k
    groups = max(1.0, working / min(chip.cores_per_llc, cut.threads))
    sizes = (product.m * product.k, product.k * product.n, product.m * product.n)
    pages = sum(up(each * chip.element_bytes, chip.page) for each in sizes)
    busiest = groups * moved.group * chip.memory_cycles_per_line / min(chip.domains, pages)
    return float(max(core, busiest) + chip.memory_latency + fixed)


def _alone(chip: MulticoreCpu, product: Product, cut: Cut, stage: SecondStage, packed: bool) -> tuple[int, int]:
    """Of the thread with the largest block: cycles of arithmetic, packing and adding up, and of handing over.

    With sub-blocks, threads hand over one at the end of each visit; without, a thread waits for all others.
    """
    sub, handover, kc = stage.sub_blocks, chip.handover_cycles, blocks_of(chip).kc
    gemv = chip.core.packs_nothing(product.m)

    def block(length: int, rows: int, columns: int) -> int:
        step = Step(0, 0, (0, rows), (0, columns), (0, length), packs_b=not packed, gemv=gemv)
        return compute_cycles(chip, step) if length else 0

    def compute(rows: int, columns: int) -> int:
        full, rest = divmod(cut.kb, kc)
        return full * block(kc, rows, columns) + block(rest, rows, columns)

    whole = compute(cut.mb, cut.nb)
    if cut.p_k == 1:
        return whole, 0
    if stage.buffer:
        update = up(cut.mb * cut.nb, chip.core.update_per_cycle)
        return whole + update, sub.count * handover if sub else (cut.p_k - 1) * (handover + update)
    if sub is None:
        return whole, (cut.p_k - 1) * (whole + handover)
    visits = sub.count * up(cut.kb, kc)
    return sub.count * compute(min(sub.sm, cut.mb), min(sub.sn, cut.nb)), visits * handover
