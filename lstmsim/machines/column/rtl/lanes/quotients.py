"""Division and the reciprocal of a square root in a lane: a bit of the result after another, spread over registers."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.machines.column.rtl.lanes.netlist import Pipeline, Signal, literal
from lstmsim.machines.column.rtl.lanes.rounding import moved

__all__ = ["divide", "rsqrt"]


def _divided(
    pipe: Pipeline, high: Signal, low: Signal, divisor: Signal, others: Sequence[Signal]
) -> tuple[Signal, ...]:
    """Divide bit by bit: the quotient of {high, low}, as many bits as `low` has behind its sign, then the others.

    All of them are 0 or more; high is less than the divisor.
    """
    rest, bits = (high, low, divisor, *others), divisor.bits
    for _ in range(low.bits - 1):
        high, low, divisor, *own = pipe.step(*rest)
        top = low.bits - 2
        trial = pipe.wire("trial", bits + 1, f"{{{high.name}[{bits - 1}:0], {low.name}[{top}]}}")
        left = pipe.wire("left", bits + 1, f"{trial.name} - {divisor.name}")
        kept = f"{left.name}[{bits}]"
        high = pipe.wire("high", bits, f"{kept} ? {trial.name}[{bits - 1}:0] : {left.name}[{bits - 1}:0]")
        shifted = f"{low.name}[{top - 1}:0], " if top else ""
        low = pipe.wire("low", low.bits, f"{{1'b0, {shifted}!{kept}}}")
        rest = (high, low, divisor, *own)
    return (rest[1], *rest[3:])


def divide(pipe: Pipeline, a: Signal, b: Signal, ups: Sequence[int], bits: int) -> tuple[Signal, Signal]:
    """Write a / b * 2**up, rounded half up, saturated; 0 / 0 is 0.

    ups: for each class.
    bits: of the result.
    """
    pipe.evenly(bits + 2)
    a, b = pipe.step(a, b)
    negative, zero = f"{b.name}[{b.bits - 1}]", f"!(|{b.name})"
    dividend = pipe.wire("dividend", a.bits + 1, f"{negative} ? -{a.name} : {a.name}")
    size = pipe.wire("size", b.bits + 1, f"{negative} ? -{b.name} : {b.name}")
    above = moved(pipe, "above", dividend, [max(0, min(each, bits + b.bits + 1)) for each in ups])
    below = moved(pipe, "below", size, [max(0, min(-each, a.bits + 2)) for each in ups])
    wide = max(above.bits, below.bits) + 2
    # half of the divisor is added, so that the quotient rounds half up
    exact = pipe.wire("exact", wide, f"({above.name} <<< 1) + {below.name}")
    under = f"{exact.name}[{wide - 1}]"
    folded = pipe.wire("folded", wide, f"{under} ? ~{exact.name} : {exact.name}")
    divisor = pipe.wire("divisor", wide, f"{below.name} <<< 1")
    high = pipe.wire("upper", wide, f"{folded.name} >>> {bits}")
    low = pipe.wire("lower", bits + 1, f"{{1'b0, {folded.name}[{bits - 1}:0]}}" if wide > bits else folded.name)
    over = pipe.net.flag(f"{pipe.name}_over", f"({zero}) ? |{a.name} : {high.name} >= {divisor.name}")
    minus = pipe.net.flag(f"{pipe.name}_minus", f"({zero}) ? {a.name}[{a.bits - 1}] : {under}")
    flags = pipe.wire("flags", 3, f"{{{zero}, {over}, {minus}}}")
    quotient, flags = pipe.step(*_divided(pipe, high, low, divisor, (flags,)))
    sign = pipe.wire("signed", bits + 1, f"{flags.name}[0] ? ~{quotient.name} : {quotient.name}")
    top, bottom = literal((1 << (bits - 1)) - 1, bits), literal(-(1 << (bits - 1)), bits)
    outside = f"{flags.name}[1] || !{flags.name}[2] && {sign.name}[{bits}] != {sign.name}[{bits - 1}]"
    edge = f"{flags.name}[0] ? {bottom} : {top}"
    inside = f"{flags.name}[2] ? {literal(0, bits)} : {sign.name}[{bits - 1}:0]"
    return pipe.end(pipe.wire("quotient", bits, f"({outside}) ? ({edge}) : {inside}"))


def rsqrt(pipe: Pipeline, a: Signal, ups: Sequence[int], bits: int) -> tuple[Signal, Signal]:
    """Write sqrt(2**up / a), rounded half up, saturated; the highest number where a is not above 0.

    ups: for each class.
    bits: of the result.
    """
    count = 2 * bits
    pipe.evenly(count + bits + 2)
    (a,) = pipe.step(a)
    divisor = moved(pipe, "divisor", a, [max(0, min(-each, 3)) for each in ups])
    # twice the root is computed, whose square is four times as large
    tops = [4 << max(0, min(each, count + a.bits - 2)) for each in ups]
    wide = max(divisor.bits, max(tops).bit_length() + 1 - count, 2)
    divisor = pipe.wire("wide", wide, divisor.name)
    high = pipe.choose("upper", wide, [literal(each >> count, wide) for each in tops])
    low = pipe.choose("lower", count + 1, [literal(each & ((1 << count) - 1), count + 1) for each in tops])
    none = f"{a.name}[{a.bits - 1}] || !(|{a.name})"
    flag = pipe.wire("flags", 1, f"{none} || {high.name} >= {divisor.name}")
    square, flag = _divided(pipe, high, low, divisor, (flag,))
    root, flag = _root(pipe, square, bits, flag)
    root, flag = pipe.step(root, flag)
    twice = pipe.wire("twice", bits + 2, f"{root.name} + {literal(1, bits + 2)}")
    outside = f"{flag.name} || {twice.name}[{bits}]"
    highest = literal((1 << (bits - 1)) - 1, bits)
    return pipe.end(pipe.wire("root", bits, f"({outside}) ? {highest} : {twice.name}[{bits}:1]"))


def _root(pipe: Pipeline, square: Signal, bits: int, flag: Signal) -> tuple[Signal, Signal]:
    """The square root of a number of 2 * bits bits behind its sign, rounded down, bit by bit."""
    rest = pipe.wire("rest", bits + 3, literal(0, bits + 3))
    root = pipe.wire("bits", bits + 1, literal(0, bits + 1))
    for _ in range(bits):
        square, rest, root, flag = pipe.step(square, rest, root, flag)
        top = square.bits - 2
        trial = pipe.wire("trial", bits + 3, f"{{{rest.name}[{bits}:0], {square.name}[{top}:{top - 1}]}}")
        left = pipe.wire("left", bits + 3, f"{trial.name} - $signed({{1'b0, {root.name}[{bits - 1}:0], 2'b01}})")
        kept = f"{left.name}[{bits + 2}]"
        rest = pipe.wire("rest", bits + 3, f"{kept} ? {trial.name} : {left.name}")
        root = pipe.wire("bits", bits + 1, f"{{1'b0, {root.name}[{bits - 2}:0], !{kept}}}")
        square = pipe.wire("square", square.bits, f"{square.name} <<< 2")
    return root, flag
