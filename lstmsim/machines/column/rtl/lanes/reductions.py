"""Means over all units: squares, a tree over the units of a turn, a running sum for each thread, an exact quotient."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.lanes.netlist import Netlist, Pipeline, Signal, literal, spread
from lstmsim.machines.column.rtl.lanes.rounding import moved, saturated

__all__ = ["Mean", "mean"]


@record
class Mean:
    """A mean, or a mean of squares.

    name: prefix of its signals.
    square: whether of squares.
    fractions: for each input, for each class, bits behind its point.
    result: for each class, bits behind the result's point.
    counts: for each class over how many numbers.
    bits: of the result.
    threads: of the core.
    """

    name: str
    square: bool
    fractions: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]
    counts: tuple[int, ...]
    bits: int
    threads: int

    @property
    def common(self) -> list[int]:
        """For each class the fraction in which numbers are added."""
        return [max(each) * (1 + self.square) for each in zip(*self.fractions, strict=True)]


def mean(
    net: Netlist, own: Mean, inputs: Sequence[Sequence[Signal]], begin: int, latency: tuple[int, int], segment: int
) -> tuple[Signal, Signal]:
    """Write a mean: its value in front of its last register, and behind it, counted from the last unit's turn.

    net: where it is written; it asks for the fields `units`, `first`, `thread` and `on<segment>` of the turn.
    inputs: for each input the lanes' numbers.
    begin: cycles since the turn at which they are there.
    latency: of a product and of a sum in the tail.
    segment: number of the segment.
    """
    multiply, add = latency
    terms, cycle = _terms(net, own, inputs, begin, multiply)
    while len(terms) > 1:
        pairs = [terms[place : place + 2] for place in range(0, len(terms), 2)]
        sums = [_sum(net, f"{own.name}_tree", pair) for pair in pairs]
        terms, cycle = [_delayed(net, each, add) for each in sums], cycle + add
    total = _running(net, own, terms[0], cycle, segment)
    return _quotient(net, own, _delayed(net, total, add), cycle + add, multiply)


def _sum(net: Netlist, name: str, terms: Sequence[Signal]) -> Signal:
    return net.wire(name, max(each.bits for each in terms) + 1, " + ".join(each.name for each in terms))


def _delayed(net: Netlist, signal: Signal, cycles: int) -> Signal:
    for _ in range(cycles):
        signal = net.register(signal)
    return signal


def _terms(
    net: Netlist, own: Mean, inputs: Sequence[Sequence[Signal]], begin: int, multiply: int
) -> tuple[list[Signal], int]:
    """What is added, in common units; units that do not count are 0."""
    units = net.control("units", begin)
    cycle = begin + multiply * own.square
    terms = []
    for lanes, fractions in zip(inputs, own.fractions, strict=True):
        left = [both - one * (1 + own.square) for both, one in zip(own.common, fractions, strict=True)]
        for lane, signal in enumerate(lanes):
            zero = literal(0, signal.bits)
            term = net.wire(f"{own.name}_in", signal.bits, f"({units} > {lane}) ? {signal.name} : {zero}")
            if own.square:
                term = net.wire(f"{own.name}_square", 2 * signal.bits, f"{term.name} * {term.name}")
            terms.append(moved(Pipeline(net, own.name, cycle, (0,)), "term", _delayed(net, term, cycle - begin), left))
    return terms, cycle


def _running(net: Netlist, own: Mean, term: Signal, cycle: int, segment: int) -> Signal:
    """The sum of a thread's turns so far; the first turn of a step's segment begins anew."""
    bits = term.bits + max(own.counts).bit_length()
    thread, first = net.control("thread", cycle), net.control("first", cycle)
    memory = net.name(f"{own.name}_sums")
    net.lines.append(f"  reg signed [{bits - 1}:0] {memory} [0:{own.threads - 1}];")
    before = net.wire(f"{own.name}_before", bits, f"{first} ? {literal(0, bits)} : {memory}[{thread}]")
    total = net.wire(f"{own.name}_total", bits, f"{before.name} + {term.name}")
    net.clocked.append(f"    if ({net.control(f'on{segment}', cycle)}) {memory}[{thread}] <= {total.name};")
    return total


def _quotient(net: Netlist, own: Mean, total: Signal, cycle: int, latency: int) -> tuple[Signal, Signal]:
    """The total over the count, rounded half up.

    Half the divisor is added; the powers of two in the divisor are shifted out; the rest is a product with a reciprocal
    of so many bits that the quotient, rounded down, is exact.
    """
    pipe = Pipeline(net, own.name, cycle, spread(latency, (3, 2, 1, 0)))
    (total,) = pipe.step(total)
    ups = [result - both for result, both in zip(own.result, own.common, strict=True)]
    most = max(own.counts).bit_length()
    above = [max(0, min(each, own.bits + most + 1)) for each in ups]
    below = [max(0, min(-each, total.bits + 2)) for each in ups]
    scaled = moved(pipe, "scaled", total, above)
    halves = [count << each for count, each in zip(own.counts, below, strict=True)]
    wide = max(scaled.bits, max(halves).bit_length()) + 2
    half = pipe.choose("half", wide, [literal(each, wide) for each in halves])
    exact = pipe.wire("exact", wide, f"({scaled.name} <<< 1) + {half.name}")
    dividend = moved(pipe, "dividend", exact, [-1 - each for each in below])
    minus = f"{dividend.name}[{dividend.bits - 1}]"
    folded = pipe.wire("folded", dividend.bits + 1, f"{{{minus}, {minus} ? ~{dividend.name} : {dividend.name}}}")
    (folded,) = pipe.step(folded)
    # numbers below 2**(bits - 1): an error of the reciprocal below count / 2**place does not reach the next quotient
    place = dividend.bits - 1 + max((each - 1).bit_length() for each in own.counts)
    factors = [-(-(1 << place) // count) for count in own.counts]
    size = max(factors).bit_length() + 1
    factor = pipe.choose("factor", size, [literal(each, size) for each in factors])
    number = pipe.wire("number", folded.bits - 1, f"{folded.name}[{folded.bits - 2}:0]")
    product = pipe.wire("product", number.bits + size, f"{number.name} * {factor.name}")
    sign = pipe.wire("sign", 1, f"{folded.name}[{folded.bits - 1}]")
    product, sign = pipe.step(product, sign)
    floor = pipe.wire("floor", max(product.bits - place, 2), f"{product.name} >>> {place}")
    signed = pipe.wire("signed", floor.bits, f"{sign.name} ? ~{floor.name} : {floor.name}")
    return pipe.end(saturated(pipe, signed, own.bits))
