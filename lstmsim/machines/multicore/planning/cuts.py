"""Cuts of a product into blocks for threads, and how threads that share a block keep apart (sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from lstmsim.base.records import record
from lstmsim.machines.gemm import Cut, Division, Product, SubBlocks, SubCandidate
from lstmsim.machines.multicore.machine import Machine, blocks_of, up


def mn_cuts(product: Product, threads: int) -> tuple[Cut, ...]:
    """Every cut of rows and columns alone: first the one of BLIS's rule, then the others with ever more parts of rows.

    threads: how many; some may have nothing to do.

    >>> [(cut.p_m, cut.p_n) for cut in mn_cuts(Product(8, 32, 64), 4)]
    [(1, 4), (2, 2), (4, 1)]
    """
    first = blis_cut(product, threads)
    others = (_mn_cut(product, p_m, threads // p_m) for p_m in _divisors(threads) if p_m != first.p_m)
    return (first, *others)


def blis_cut(product: Product, threads: int) -> Cut:
    """The cut of BLIS's rule: p_m and p_n as near as they can be to the ratio of rows and columns."""
    p_m = min(_divisors(threads), key=lambda each: abs(each * product.n - threads // each * product.m))
    return _mn_cut(product, p_m, threads // p_m)


def k_cuts(machine: Machine, product: Product, threads: int) -> tuple[Cut, ...]:
    """Every cut of K, and of either rows (`MK`, these are first) or columns (`NK`), with ever more parts of K."""
    parts = [each for each in _divisors(threads) if each > 1]
    rows = [_k_cut(machine, product, "MK", threads // each, 1, each) for each in parts]
    columns = [_k_cut(machine, product, "NK", 1, threads // each, each) for each in parts if each < threads]
    return (*rows, *columns)


def cut_of_parts(machine: Machine, product: Product, kind: str, parts: Sequence[int]) -> Cut:
    """The cut into so many parts, of sizes as in every other cut."""
    p_m, p_n, p_k = parts
    cut = _k_cut(machine, product, kind, p_m, p_n, p_k)
    return cut if p_k > 1 else replace(cut, kb=product.k)


def is_idle(machine: Machine, product: Product, cut: Cut) -> bool:
    """Whether a thread has nothing to do, or would have nothing if parts of K were whole multiples."""
    parts_k = 1 if cut.p_k == 1 else up(product.k, _part_of_k(machine, product, cut.p_k))
    return parts_k < cut.p_k or up(product.m, cut.mb) < cut.p_m or up(product.n, cut.nb) < cut.p_n


def _mn_cut(product: Product, p_m: int, p_n: int) -> Cut:
    return Cut("MN", p_m, p_n, 1, up(product.m, p_m), up(product.n, p_n), product.k)


def _k_cut(machine: Machine, product: Product, kind: str, p_m: int, p_n: int, p_k: int) -> Cut:
    kb = min(_part_of_k(machine, product, p_k), product.k)
    return Cut(kind, p_m, p_n, p_k, up(product.m, p_m), up(product.n, p_n), kb)


def _part_of_k(machine: Machine, product: Product, p_k: int) -> int:
    return up(up(product.k, p_k), machine.k_unit) * machine.k_unit


def _divisors(number: int) -> list[int]:
    small = [each for each in range(1, int(number**0.5) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})


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


@record
class SecondStage:
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


def second_stage(machine: Machine, cut: Cut) -> SecondStage:
    """Sub-blocks and buffer for a cut."""
    if cut.p_k == 1:
        return SecondStage(None, (), False)
    ranked = _ranked(machine, cut)
    return SecondStage(ranked[0].sub_blocks if ranked else None, ranked, _buffer(machine, cut))


def division_of(
    machine: Machine, product: Product, cut: Cut, relief: str = "plan", *, packed: bool = False
) -> Division:
    """What a cut becomes with the sub-blocks and the buffer of the planner, or with a relief."""
    stage = second_stage(machine, cut)
    sub_blocks = stage.sub_blocks if relief in ("plan", "sub", "both") else None
    buffer = stage.buffer if relief == "plan" else relief in ("buffer", "both") and cut.p_k > 1
    return Division(product, cut, sub_blocks, buffer, packed)


def _ranked(machine: Machine, cut: Cut) -> tuple[SubCandidate, ...]:
    """Sub-blocks in the order of their rank."""
    some = [each for each in _sub_blocks(machine, cut) if each.count >= cut.p_k]
    raw = [_conditions(cut, each) for each in some]
    rows = [
        SubCandidate(each, own, of, fitness_of(list(of.values()), (1,) * len(of)))
        for each, own, of in zip(some, raw, normalised(raw), strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: (-row.fitness, row.sub_blocks.count, row.sub_blocks.s_m)))


def _sub_blocks(machine: Machine, cut: Cut) -> list[SubBlocks]:
    """Every way to cut a block, up to twice as often along rows and along columns as there are parts of K."""
    columns_unit = max(machine.nr, machine.line // machine.element_bytes)
    heights = _sizes(cut.mb, machine.mr, 2 * cut.p_k)
    widths = _sizes(cut.nb, columns_unit, 2 * cut.p_k)
    return [SubBlocks(sm, sn, up(cut.mb, sm), up(cut.nb, sn)) for sm in heights for sn in widths]


def _sizes(whole: int, unit: int, most: int) -> list[int]:
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


def _buffer(machine: Machine, cut: Cut) -> bool:
    """A buffer is worth its update if C would be updated several times, or if blocks are small."""
    part, whole = machine.buffer_fill
    blocks = blocks_of(machine)
    fits = cut.mb * cut.nb * machine.element_bytes <= machine.l2_bytes * part // whole
    return fits and (cut.kb > blocks.kc or 2 * cut.mb < blocks.mc or 2 * cut.nb < blocks.nc)
