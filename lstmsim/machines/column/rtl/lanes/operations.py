"""The operations of a lane, each from its operands to the value of the node, through the node's registers.

A node's value is what `FixedArithmetic.compute` gives: exact on aligned operands, rounded half up once, saturated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.lanes.netlist import Pipeline, Signal
from lstmsim.machines.column.rtl.lanes.quotients import divide, rsqrt
from lstmsim.machines.column.rtl.lanes.rounding import align, moved, rescaled, rounded, saturated

__all__ = ["Operand", "Result", "compute", "places", "quantize"]


@record
class Operand:
    """A number that a node reads.

    signal: the wire.
    fractions: bits behind the point, for each class.
    """

    signal: Signal
    fractions: tuple[int, ...]


@record
class Result:
    """What a node gives.

    bits: its width.
    fractions: bits behind the point, for each class.
    """

    bits: int
    fractions: tuple[int, ...]


Ends = tuple[Signal, Signal]

_PLUS, _MINUS = "{a} + {b}", "{a} - {b}"


def _multiply(pipe: Pipeline, operands: Sequence[Operand], result: Result) -> Ends:
    a, b = operands
    (first, second) = pipe.step(a.signal, b.signal)
    product = pipe.wire("product", first.bits + second.bits, f"{first.name} * {second.name}")
    shifts = [one + two - own for one, two, own in zip(a.fractions, b.fractions, result.fractions, strict=True)]
    return _finish(pipe, product, shifts, result.bits)


def _finish(pipe: Pipeline, exact: Signal, shifts: Sequence[int], bits: int, symmetric: bool = False) -> Ends:
    """Round and saturate, each a step."""
    (exact,) = pipe.step(exact)
    (narrow,) = pipe.step(rounded(pipe, exact, shifts, bits))
    return pipe.end(saturated(pipe, narrow, bits, symmetric))


def _aligned(text: str) -> Callable[[Pipeline, Sequence[Operand], Result], Ends]:
    """An operation on operands in common units, given as an expression of a and b."""

    def emit(pipe: Pipeline, operands: Sequence[Operand], result: Result) -> Ends:
        signals = pipe.step(*(each.signal for each in operands))
        bits = signals[0].bits, signals[1].bits
        plans = [
            align((one, two), bits, (own, result.bits))
            for one, two, own in zip(*(each.fractions for each in operands), result.fractions, strict=True)
        ]
        first, second = signals
        how = text
        if text == _MINUS and any(each.left[1] < 0 for each in plans):
            # bits are cut off what is added: a cut rounds down, and so would the difference be rounded up
            second, how = pipe.wire("negative", second.bits + 1, f"-{second.name}"), _PLUS
        first, second = (
            moved(pipe, f"aligned{side}", (first, second)[side], [each.left[side] for each in plans]) for side in (0, 1)
        )
        first, second = pipe.step(first, second)
        exact = pipe.wire("exact", max(first.bits, second.bits) + 1, how.format(a=first.name, b=second.name))
        return _finish(pipe, exact, [each.shift for each in plans], result.bits)

    return emit


def _relu(pipe: Pipeline, operands: Sequence[Operand], result: Result) -> Ends:
    (a,) = operands
    (raw,) = pipe.step(a.signal)
    zero = f"{raw.bits}'sd0"
    positive = pipe.wire("positive", raw.bits, f"{raw.name}[{raw.bits - 1}] ? {zero} : {raw.name}")
    shifts = [one - own for one, own in zip(a.fractions, result.fractions, strict=True)]
    return _finish(pipe, positive, shifts, result.bits)


def _divide(pipe: Pipeline, operands: Sequence[Operand], result: Result) -> Ends:
    a, b = operands
    ups = [two - one + own for one, two, own in zip(a.fractions, b.fractions, result.fractions, strict=True)]
    return divide(pipe, a.signal, b.signal, ups, result.bits)


def _rsqrt(pipe: Pipeline, operands: Sequence[Operand], result: Result) -> Ends:
    (a,) = operands
    ups = [2 * own + one for one, own in zip(a.fractions, result.fractions, strict=True)]
    return rsqrt(pipe, a.signal, ups, result.bits)


#: Operation -> how it is written, and the order in which its places get registers.
_OPERATIONS: Mapping[str, tuple[Callable[[Pipeline, Sequence[Operand], Result], Ends], tuple[int, ...]]] = {
    "multiply": (_multiply, (3, 1, 2, 0)),
    "add": (_aligned(_PLUS), (4, 2, 3, 1, 0)),
    "subtract": (_aligned(_MINUS), (4, 2, 3, 1, 0)),
    "maximum": (_aligned("({a} > {b}) ? {a} : {b}"), (4, 2, 3, 1, 0)),
    "minimum": (_aligned("({a} < {b}) ? {a} : {b}"), (4, 2, 3, 1, 0)),
    "relu": (_relu, (3, 2, 1, 0)),
    "divide": (_divide, ()),
    "rsqrt": (_rsqrt, ()),
    "quantize": (_multiply, (3, 1, 2, 0)),
}


def places(operation: str) -> tuple[int, ...]:
    """The order in which the places of a node get registers; empty if the operation itself spreads them."""
    return _OPERATIONS[operation][1]


def compute(pipe: Pipeline, operation: str, operands: Sequence[Operand], result: Result) -> Ends:
    """Write an operation: its value in front of its last register, and behind it.

    pipe: through the node.
    operation: a key of `lstmsim.model.cell.OPERATIONS` without a table and other than quantize.
    operands: what it reads, at the same time.
    result: what it gives.
    """
    return _OPERATIONS[operation][0](pipe, operands, result)


def quantize(pipe: Pipeline, source: Signal, scales: Sequence[tuple[int, int]], factor_bits: int, bits: int) -> Ends:
    """Write a `quantize`.

    scales: factor and shift for each class.
    factor_bits: of a factor.
    bits: of the vector's elements.
    """
    (source,) = pipe.step(source)
    product = rescaled(pipe, source, [factor for factor, _ in scales], factor_bits)
    return _finish(pipe, product, [shift for _, shift in scales], bits, symmetric=True)
