"""Shifts that round half up, saturation, and operands in common units, as wires of exact widths."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.lanes.netlist import Pipeline, Signal, literal

__all__ = ["Alignment", "align", "moved", "rescaled", "rounded", "saturated"]


@record
class Alignment:
    """How two operands are brought into common units, and how their combination is brought into the result's.

    left: bits to the left for each operand, negative to the right.
    shift: bits to the right behind the combination.
    """

    left: tuple[int, int]
    shift: int


def align(fractions: tuple[int, int], bits: tuple[int, int], result: tuple[int, int]) -> Alignment:
    """Bring two operands into common units in as few bits as give the same rounded, saturated result.

    Bits that the rounding drops anyway are cut off the finer operand. Operands so far apart that the coarser one alone
    saturates the result are kept only as far apart as shows it.

    fractions, bits: of the operands.
    result: fraction and bits of the result.

    >>> align((8, 10), (16, 16), (8, 16)), align((8, 10), (16, 16), (10, 16))
    (Alignment(left=(1, -1), shift=1), Alignment(left=(2, 0), shift=0))
    """
    common = max(fractions)
    shift, apart = common - result[0], abs(fractions[0] - fractions[1])
    fine = 0 if fractions[0] >= fractions[1] else 1
    cut = max(0, min(apart, shift - 1))
    shift, apart = shift - cut, min(apart - cut, max(bits[fine], result[1]) + 3)
    left = [apart, apart]
    left[fine] = -min(cut, bits[fine])
    return Alignment((left[0], left[1]), shift)


def moved(pipe: Pipeline, name: str, source: Signal, left: Sequence[int]) -> Signal:
    """Shift to the left, or where negative to the right (rounded down), by the number of each class.

    >>> from lstmsim.machines.column.rtl.lanes.netlist import Netlist
    >>> net = Netlist()
    >>> moved(Pipeline(net, "n_a", 0, (0,)), "x", Signal("s", 4), [2]), net.text
    (Signal(name='n_a_x', bits=6), '  wire signed [5:0] n_a_x = s <<< 2;')
    """
    if not any(left):
        return source
    bits = source.bits + max(0, *left) if len(left) > 1 else source.bits + max(0, left[0])
    return pipe.choose(name, bits, [_shift(source.name, -each) for each in left])


def _shift(name: str, right: int) -> str:
    return f"{name} >>> {right}" if right > 0 else f"{name} <<< {-right}" if right else name


def rounded(pipe: Pipeline, source: Signal, shifts: Sequence[int], bits: int) -> Signal:
    """Shift to the right by the number of each class, rounded half up; negative: to the left.

    shifts: are cut where a larger one gives the same: 0 to the right, saturated to the left.
    bits: of the result behind saturation.
    """
    cut = [max(-bits, min(each, source.bits)) for each in shifts]
    if not any(cut):
        return source
    halves = [(1 << each) >> 1 if each > 0 else 0 for each in cut]
    raised = source
    if any(halves):
        wide = source.bits + 1
        half = pipe.choose("half", wide, [literal(each, wide) for each in halves])
        raised = pipe.wire("raised", wide, f"{source.name} + {half.name}")
    wide = raised.bits + max(0, -min(cut))
    raised = pipe.wire("wide", wide, raised.name) if wide > raised.bits else raised
    return pipe.choose("rounded", wide - max(0, min(cut)), [_shift(raised.name, each) for each in cut])


def saturated(pipe: Pipeline, source: Signal, bits: int, symmetric: bool = False) -> Signal:
    """Bring a number into `bits` bits.

    symmetric: whether the lowest number is minus the highest, as in vectors.
    """
    top = literal((1 << (bits - 1)) - 1, bits)
    bottom = literal(-(1 << (bits - 1)) + symmetric, bits)
    if source.bits <= bits:
        kept = pipe.wire("kept", bits, source.name) if source.bits < bits else source
        if not symmetric or source.bits < bits:
            return kept
        lowest = literal(-(1 << (bits - 1)), bits)
        return pipe.wire("held", bits, f"({kept.name} == {lowest}) ? {bottom} : {kept.name}")
    low = pipe.wire("low", bits, f"{source.name}[{bits - 1}:0]")
    high = f"{source.name}[{source.bits - 1}:{bits - 1}]"
    inside = pipe.net.flag(f"{pipe.name}_inside", f"&{high} || ~|{high}")
    if symmetric:
        inside = pipe.net.flag(f"{pipe.name}_kept", f"{inside} && {low.name} != {literal(-(1 << (bits - 1)), bits)}")
    return pipe.wire("held", bits, f"{inside} ? {low.name} : {source.name}[{source.bits - 1}] ? {bottom} : {top}")


def rescaled(pipe: Pipeline, source: Signal, factors: Sequence[int], factor_bits: int) -> Signal:
    """Multiply by the factor of each class, which is 0 or more."""
    factor = pipe.choose("factor", factor_bits + 1, [literal(each, factor_bits + 1) for each in factors])
    return pipe.wire("product", source.bits + factor_bits, f"{source.name} * {factor.name}")
