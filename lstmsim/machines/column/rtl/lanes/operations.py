"""The operations of a lane, each from its operands to the value of the node, through the node's registers.

A node's value is what `FixedArithmetic.compute` gives: exact on aligned operands, rounded half up once, saturated. An
activation is a read of its table and a line between two entries; a quotient comes a bit after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.lanes.netlist import (
    Pipeline,
    Signal,
    align,
    literal,
    moved,
    rescaled,
    rounded,
    saturated,
)
from lstmsim.model.cell import REDUCTIONS
from lstmsim.model.numerics.calibration import q_format
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.fixed_point import ActivationTable


@record
class Table:
    """A table of an activation function."""

    shift: int  # bits of an argument after the point of its cell; negative: a unit of the argument is several cells
    below: int  # cells below 0
    entries: tuple[int, ...]  # as `ActivationTable` holds them

    @classmethod
    def of(cls, own: ActivationTable) -> Table:
        """Read a table of the fixed-point arithmetic."""
        entries = tuple(int(each) for each in own.entries)
        return cls(own.source.fraction - own.cells_per_one, own.cells_below_zero, entries)

    def words(self, bits: int) -> list[int]:
        """Give the word of each cell: its first entry, and above it the rise to the next one where there is one.

        >>> [hex(each) for each in Table(0, 1, (1, 3, -1)).words(4)], Table(0, 1, (1, -1)).words(4)
        (['0x21', '0x1c3'], [1, 15])
        """
        low, wide = (1 << bits) - 1, (1 << (bits + 1)) - 1
        if len(self.entries) % 2 == 0:
            return [each & low for each in self.entries]
        pairs = zip(self.entries, self.entries[1:], strict=False)
        return [(first & low) | (((second - first) & wide) << bits) for first, second in pairs]


@record
class Numbers:
    """The numbers of a pass that its lanes are built with."""

    fractions: Mapping[str, int]  # of every name, as nodes read it
    quantizers: Mapping[str, tuple[int, int]]  # for each `quantize` node its factor and shift
    # for each vector that nodes read the factor and shift into its element format
    readers: Mapping[str, tuple[int, int]]
    constants: Mapping[float, tuple[int, int]]  # for each plain number its integer and fraction
    tables: Mapping[str, Table]  # for each node with a table
    counts: Mapping[str, int]  # for each reduction over how many numbers it is

    @classmethod
    def of(cls, own: FixedArithmetic) -> Numbers:
        """Read the arithmetic of a pass."""
        layer = own.layer
        return cls(
            {name: q_format(each).fraction for name, each in own.formats.items() if name != "x"},
            {name: (int(factor), shift) for name, (factor, shift) in own.quantizers.items()},
            {name: (int(factor), shift) for name, (factor, shift) in own.readers.items()},
            {number: (int(raw[0]), fraction) for number, (raw, fraction) in own.constants.items()},
            {name: Table.of(each) for name, each in own.tables.items()},
            {
                each.name: sum(layer.width(name) for name in each.sources)
                for each in layer.cell.nodes
                if each.operation in REDUCTIONS
            },
        )


def classes(passes: Sequence[Numbers]) -> tuple[tuple[Numbers, ...], tuple[int, ...]]:
    """Give the different numbers among passes, and for each pass which of them are its own."""
    different: list[Numbers] = []
    for each in passes:
        if each not in different:
            different.append(each)
    return tuple(different), tuple(different.index(each) for each in passes)


def _divided(
    pipe: Pipeline, high: Signal, low: Signal, divisor: Signal, others: Sequence[Signal]
) -> tuple[Signal, ...]:
    """Divide bit by bit: the quotient of {high, low}, as many bits as `low` has after its sign, then the others.

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
    """Write a / b * 2**up, rounded half up, saturated; 0 / 0 is 0."""
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
    """Write sqrt(2**up / a), rounded half up, saturated; the highest number where a is not above 0."""
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
    """The square root of a number of 2 * bits bits after its sign, rounded down, bit by bit."""
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


#: Bits of an argument's place within its cell that count.
_WITHIN = 24

#: Steps place, read, multiply, round, add: in which order they get registers. Behind the read first: that one is the
#: memory's own.
LINEAR_ORDER = (5, 2, 3, 1, 4, 0, 3, 2)
#: Steps place, read.
TABLE_ORDER = (2, 1, 0)


def word_bits(bits: int, linear: bool) -> int:
    """Bits of a table's word: an entry, and with `linear` the rise to the next one."""
    return 2 * bits + 1 if linear else bits


def activation(
    pipe: Pipeline, source: Signal, tables: Sequence[Table], numbers: Sequence[int], memory: str, bits: int
) -> tuple[Signal, Signal]:
    """Write an activation function: its value in front of its last register, and after it."""
    linear = len(tables[0].entries) % 2 == 1
    (source,) = pipe.step(source)
    cell, part = _place(pipe, source, tables, linear)
    where = cell.bits - 1
    if len(set(numbers)) > 1:
        width = max(1, max(numbers).bit_length())
        base = pipe.choose("base", width + 1, [literal(each, width + 1) for each in numbers])
        address = pipe.wire(
            "address", width + cell.bits, f"{{1'b0, {base.name}[{width - 1}:0], {cell.name}[{where - 1}:0]}}"
        )
        cell, where = address, width + where
    cell, *parts = pipe.step(cell, *part)
    word = pipe.wire("word", word_bits(bits, linear), f"{memory}[{cell.name}[{where - 1}:0]]")
    if not linear:
        return pipe.end(word)
    word, part_ = pipe.step(word, *parts)
    value = pipe.wire("value", bits, f"{word.name}[{bits - 1}:0]")
    rise = pipe.wire("rise", bits + 1, f"{word.name}[{2 * bits}:{bits}]")
    product = pipe.product(rise.bits + part_.bits, rise, part_)
    value, product = pipe.step(value, product)
    fine = part_.bits - 2
    rest = product
    if fine:
        half = literal(1 << (fine - 1), product.bits)
        rest = pipe.wire("rest", product.bits, f"({product.name} + {half}) >>> {fine}")
    value, rest = pipe.step(value, rest)
    return pipe.end(pipe.wire("line", bits, f"{value.name} + {rest.name}"))


def _place(pipe: Pipeline, source: Signal, tables: Sequence[Table], linear: bool) -> tuple[Signal, tuple[Signal, ...]]:
    """The argument's cell (with a leading 0), and with `linear` its place within the cell (with two leading bits).

    Only so many bits of the place are there as some class's argument has. An argument at or above the end of the table
    is at place 1.0 of the last cell.
    """
    log_cells = (len(tables[0].entries) - linear).bit_length() - 1
    fine = max([0, *(min(each.shift, _WITHIN) for each in tables)]) if linear else 0
    left = [max(-source.bits, min(fine - each.shift, fine + log_cells + 1)) for each in tables]
    scaled = moved(pipe, "scaled", source, left)
    width = max(scaled.bits + 1, fine + log_cells + 2)
    zero = pipe.choose("zero", width, [literal(each.below << fine, width) for each in tables])
    place = pipe.wire("place", width, f"{scaled.name} + {zero.name}")
    below = pipe.net.flag(f"{pipe.name}_below", f"{place.name}[{width - 1}]")
    above = pipe.net.flag(f"{pipe.name}_above", f"!{below} && |{place.name}[{width - 2}:{fine + log_cells}]")
    inside = f"{place.name}[{fine + log_cells - 1}:{fine}]"
    first, last = f"{log_cells}'d0", f"{{{log_cells}{{1'b1}}}}"
    cell = pipe.wire("cell", log_cells + 1, f"{{1'b0, {below} ? {first} : {above} ? {last} : {inside}}}")
    if not linear:
        return cell, ()
    one, none = f"{fine + 1}'d{1 << fine}", f"{fine + 1}'d0"
    within = f"{{1'b0, {place.name}[{fine - 1}:0]}}" if fine else none
    part = pipe.wire("part", fine + 2, f"{{1'b0, {above} ? {one} : {below} ? {none} : {within}}}")
    return cell, (part,)


@record
class Operand:
    """A number that a node reads."""

    signal: Signal  # the wire
    fractions: tuple[int, ...]  # bits after the point, for each class


@record
class Result:
    """The form of a node's value."""

    bits: int  # its width
    fractions: tuple[int, ...]  # bits after the point, for each class


Ends = tuple[Signal, Signal]

_PLUS, _MINUS = "{a} + {b}", "{a} - {b}"


def _multiply(pipe: Pipeline, operands: Sequence[Operand], result: Result) -> Ends:
    a, b = operands
    (first, second) = pipe.step(a.signal, b.signal)
    product = pipe.product(first.bits + second.bits, first, second)
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
    """Write an operation: its value in front of its last register, and after it."""
    return _OPERATIONS[operation][0](pipe, operands, result)


def quantize(pipe: Pipeline, source: Signal, scales: Sequence[tuple[int, int]], factor_bits: int, bits: int) -> Ends:
    """Write a `quantize`."""
    (source,) = pipe.step(source)
    product = rescaled(pipe, source, [factor for factor, _ in scales], factor_bits)
    return _finish(pipe, product, [shift for _, shift in scales], bits, symmetric=True)
