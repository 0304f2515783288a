"""How threads that add into the same block of C keep out of each other's way (section 3 of docs/multicore.md)."""

from __future__ import annotations

from lstmsim.base.records import record
from lstmsim.machines.gemm import Cut, Division, Product, SubBlocks, SubCandidate
from lstmsim.machines.multicore.machine import Machine, up
from lstmsim.machines.multicore.planning.blocks import blocks_of
from lstmsim.machines.multicore.planning.fitness import fitness_of, normalised

__all__ = ["SecondStage", "division_of", "second_stage"]


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
    """Sub-blocks and buffer for a cut.

    machine: its blocks, its micro-tile, its lines.
    cut: whole blocks decide; those at the edges of a product have fewer sub-blocks.

    >>> from lstmsim.machines.multicore.toy import TOY
    >>> stage = second_stage(TOY, Cut("MK", 1, 1, 2, 4, 8, 32))
    >>> stage.sub_blocks, stage.buffer
    (SubBlocks(sm=2, sn=16, s_m=2, s_n=1), True)
    """
    if cut.p_k == 1:
        return SecondStage(None, (), False)
    ranked = _ranked(machine, cut)
    return SecondStage(ranked[0].sub_blocks if ranked else None, ranked, _buffer(machine, cut))


def division_of(
    machine: Machine, product: Product, cut: Cut, relief: str = "plan", *, packed: bool = False
) -> Division:
    """What a cut becomes with the sub-blocks and the buffer of the planner, or with a relief.

    machine: as for `second_stage`.
    product, cut: what is cut, and how.
    relief: one of `lstmsim.machines.gemm.RELIEFS`. A cut that leaves K whole needs none and gets none; one without a
        way to cut its blocks further gets no sub-blocks.
    packed: whether B was packed before.

    >>> from lstmsim.machines.multicore.toy import TOY
    >>> division = division_of(TOY, Product(4, 8, 64), Cut("MK", 1, 1, 2, 4, 8, 32), "sub")
    >>> division.sub_blocks, division.buffer
    (SubBlocks(sm=2, sn=16, s_m=2, s_n=1), False)
    """
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
