"""Verilog in the making: signed wires and registers of exact widths, in the order in which they are made.

Shifts round half up; operands are brought into common units without a loss.
"""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.base.records import record


@record
class Signal:
    """A signed number in a module."""

    name: str  # of its wire or register
    bits: int  # its width


def literal(value: int, bits: int) -> str:
    """Write a signed number of `bits` bits."""
    return f"{bits}'sh{value & ((1 << bits) - 1):x}"


def safe(name: str) -> str:
    """A name of a cell as part of a Verilog name, another one for each name.

    >>> safe("c'"), safe("c_q"), safe("α")
    ('c_q', 'c__q', '_u3b1_')
    """
    letters = (each if each.isascii() and each.isalnum() else f"_u{ord(each):x}_" for each in name)
    return "".join({"_u5f_": "__", "_u27_": "_q"}.get(each, each) for each in letters)


def spread(latency: int, order: Sequence[int]) -> tuple[int, ...]:
    """Spread registers over the places of a node: in front of it, after each of its steps."""
    places = [0] * (max(order) + 1)
    for number in range(latency):
        places[order[number % len(order)]] += 1
    return tuple(places)


class Netlist:
    """Collects the declarations of a module.

    initial: whether states may begin with other values than 0.
    controls: the fields of the turn that the module asks for, by field and cycle since the turn; they become inputs.
    """

    def __init__(self, initial: bool = False) -> None:
        self.initial = initial
        self.lines: list[str] = []
        self.clocked: list[str] = []
        self.controls: dict[tuple[str, int], str] = {}
        self._names: set[str] = set()
        # products that no register has taken yet: where they are written, and of what
        self._products: dict[str, tuple[int, Signal, Signal]] = {}

    def control(self, field: str, cycle: int) -> str:
        """Give the name of a field of the turn of `cycle` cycles ago, as an input of the module."""
        return self.controls.setdefault((field, cycle), f"{field}_{cycle}".replace("-", "m"))

    def name(self, wanted: str) -> str:
        """Give a name that is not taken yet."""
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        return name

    def note(self, text: str) -> None:
        self.lines.append(f"  // {text}")

    def wire(self, name: str, bits: int, expression: str) -> Signal:
        """Declare a wire; it is given a number after its name if the name is taken."""
        own = Signal(self.name(name), bits)
        self.lines.append(f"  wire signed [{bits - 1}:0] {own.name} = {expression};")
        return own

    def flag(self, name: str, expression: str) -> str:
        """Declare a wire of one bit and give its name."""
        own = self.name(name)
        self.lines.append(f"  wire {own} = {expression};")
        return own

    def product(self, name: str, bits: int, left: Signal, right: Signal) -> Signal:
        """Declare a product. With its first register, if it gets one, it becomes an instance of `npu_product`."""
        own = self.wire(name, bits, f"{left.name} * {right.name}")
        self._products[own.name] = len(self.lines) - 1, left, right
        return own

    def bare(self, signal: Signal) -> None:
        """Say that a product is read without a register, too: it stays a wire."""
        self._products.pop(signal.name, None)

    def _hold(self, source: Signal, own: Signal) -> None:
        """Write a product together with its first register, which FPGAs have in their multipliers."""
        place, left, right = self._products.pop(source.name)
        whole, lines = left.bits + right.bits, []
        name = own.name if whole == own.bits else self.name(f"{source.name}_all")
        lines.append(f"  wire signed [{whole - 1}:0] {name};")
        ports = f".clock(clock), .a({left.name}), .b({right.name}), .product({name})"
        lines.append(f"  npu_product #(.A({left.bits}), .B({right.bits})) {source.name} ({ports});")
        if whole > own.bits:
            lines.append(f"  wire signed [{own.bits - 1}:0] {own.name} = {name}[{own.bits - 1}:0];")
        self.lines[place] = "\n".join(lines)

    def register(self, source: Signal, name: str = "") -> Signal:
        """Delay a signal by a cycle."""
        own = Signal(self.name(name or f"{source.name}_r"), source.bits)
        if source.name in self._products:
            self._hold(source, own)
            return own
        self.lines.append(f"  reg signed [{own.bits - 1}:0] {own.name};")
        self.clocked.append(f"    {own.name} <= {source.name};")
        return own

    def choose(self, name: str, bits: int, values: Sequence[str], cycle: int) -> Signal:
        """Choose among signed expressions by the class of the pass of the turn of `cycle` cycles ago."""
        kinds = list(dict.fromkeys(values))
        if len(kinds) == 1:
            return self.wire(name, bits, kinds[0])
        own, width = self.control("class", cycle), max(1, (len(values) - 1).bit_length())
        text = kinds[-1]
        for each in reversed(kinds[:-1]):
            numbers = [number for number, value in enumerate(values) if value == each]
            chosen = " || ".join(f"{own} == {width}'d{number}" for number in numbers)
            text = f"({chosen}) ? {each} :\n      {text}"
        return self.wire(name, bits, text)

    @property
    def text(self) -> str:
        """All declarations, and the block that clocks the registers."""
        clocked = ["  always @(posedge clock) begin", *self.clocked, "  end"] if self.clocked else []
        return "\n".join([*self.lines, *clocked])


class Pipeline:
    """The way through a node: cycles go by as its registers are passed.

    net: where it is written.
    name: prefix of its signals.
    cycle: cycles since the turn at the present place.
    places: registers in front of the node and after each of its steps.
    """

    def __init__(self, net: Netlist, name: str, cycle: int, places: Sequence[int]) -> None:
        self.net, self.name, self.cycle, self._places = net, name, cycle, list(places)

    def wire(self, name: str, bits: int, expression: str) -> Signal:
        return self.net.wire(f"{self.name}_{name}", bits, expression)

    def product(self, bits: int, left: Signal, right: Signal) -> Signal:
        return self.net.product(f"{self.name}_product", bits, left, right)

    def choose(self, name: str, bits: int, values: Sequence[str]) -> Signal:
        """Choose by the class of the pass that is at this place."""
        return self.net.choose(f"{self.name}_{name}", bits, values, self.cycle)

    def step(self, *signals: Signal) -> tuple[Signal, ...]:
        """Go on to the next step, through the registers of this place; not for the last place."""
        for _ in range(self._places.pop(0)):
            signals = tuple(self.net.register(each) for each in signals)
            self.cycle += 1
        return signals

    def evenly(self, steps: int) -> None:
        """Spread all registers of the node evenly over its steps, the last one after the last of them."""
        count = sum(self._places)
        self._places = [0] * (steps + 1)
        for number in range(count):
            self._places[-(-steps * (number + 1) // count)] += 1

    def end(self, signal: Signal) -> tuple[Signal, Signal]:
        """Go through the registers of the last place: the value in front of the last register, and after it."""
        (count,) = self._places
        for _ in range(count - 1):
            signal = self.net.register(signal)
        self.net.bare(signal)
        return (signal, self.net.register(signal, self.name)) if count else (signal, signal)


@record
class Alignment:
    """How two operands are brought into common units, and how their combination is brought into the result's."""

    left: tuple[int, int]  # bits to the left for each operand, negative to the right
    shift: int  # bits to the right after the combination


def align(fractions: tuple[int, int], bits: tuple[int, int], result: tuple[int, int]) -> Alignment:
    """Bring two operands into common units in as few bits as give the same rounded, saturated result.

    Bits that the rounding drops anyway are cut off the finer operand. Operands so far apart that the coarser one alone
    saturates the result are kept only as far apart as shows it.

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
    """Shift to the left, or where negative to the right (rounded down), by the number of each class."""
    if not any(left):
        return source
    bits = source.bits + max(0, *left) if len(left) > 1 else source.bits + max(0, left[0])
    return pipe.choose(name, bits, [_shift(source.name, -each) for each in left])


def _shift(name: str, right: int) -> str:
    return f"{name} >>> {right}" if right > 0 else f"{name} <<< {-right}" if right else name


def rounded(pipe: Pipeline, source: Signal, shifts: Sequence[int], bits: int) -> Signal:
    """Shift to the right by the number of each class, rounded half up; negative: to the left."""
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
    """Bring a number into `bits` bits."""
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
    return pipe.product(source.bits + factor_bits, source, factor)
