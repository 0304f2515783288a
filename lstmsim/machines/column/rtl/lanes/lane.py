"""One lane of a kind of cell: the nodes of one unit, their memories and tables, as a Verilog module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.lanes import operations
from lstmsim.machines.column.rtl.lanes.netlist import Netlist, Pipeline, Signal, literal, safe, spread
from lstmsim.machines.column.rtl.lanes.numbers import Numbers, Table
from lstmsim.machines.column.rtl.lanes.operations import Operand, Result
from lstmsim.machines.column.rtl.lanes.rounding import rescaled, rounded, saturated
from lstmsim.machines.column.rtl.lanes.schedule import Kept, Schedule
from lstmsim.machines.column.rtl.lanes.tables import LINEAR_ORDER, TABLE_ORDER, activation
from lstmsim.model.cell import Node
from lstmsim.model.numerics.activation_tables import TABULATED
from lstmsim.model.precision import Precision

__all__ = ["Graph", "Lanes", "memory_name"]


@record
class Lanes:
    """What the lanes of a kind of cell are built of.

    schedule: when what is read.
    numbers: of the different classes of passes.
    precision: widths of all numbers.
    """

    schedule: Schedule
    numbers: tuple[Numbers, ...]
    precision: Precision

    def bits(self, name: str) -> int:
        """Width of a sum, node or parameter as it is held."""
        cell = self.schedule.cell
        if name in cell.states:
            return self.bits(cell.states[name])
        if any(each.name == name and each.operation == "quantize" for each in cell.nodes):
            return self.precision.vector_bits
        return self.precision.state_bits if name in cell.states.values() else self.precision.tail_bits

    def operand_bits(self, name: str) -> int:
        """Width of a name as nodes read it."""
        return self.precision.tail_bits if name in self.numbers[0].readers else self.bits(name)

    @cached_property
    def tabulated(self) -> tuple[str, ...]:
        """Nodes with a table, in the order of their numbers on the bus."""
        nodes = (node for segment in self.schedule.segments for node in self.schedule.nodes(segment))
        return tuple(each.name for each in nodes if each.operation in TABULATED)

    def tables(self, node: str) -> tuple[tuple[Table, ...], tuple[int, ...]]:
        """The tables of each class, and for each class which of the different ones it is in the node's memory."""
        own = tuple(each.tables[node] for each in self.numbers)
        different = list(dict.fromkeys(each.entries for each in own))
        return own, tuple(different.index(each.entries) for each in own)

    def loaded(self, names: Iterable[str]) -> tuple[tuple[str, int], ...]:
        """(name, stage) of each parameter or state and each stage that reads it: the host loads a memory for each."""
        return tuple((name, stage) for name in names for stage in self.schedule.readers(name))

    @property
    def linear(self) -> bool:
        """Whether tables hold lines."""
        return self.precision.activation == "linear"


class Graph:
    """Writes nodes and what they read, each asked for by name and cycles since the turn.

    lanes: what is written.
    net: where it is written.
    shared: what is kept by unit, in a memory of all lanes.
    """

    def __init__(self, lanes: Lanes, net: Netlist, shared: frozenset[Kept] = frozenset()) -> None:
        self.lanes, self.net, self.shared = lanes, net, shared
        self.unit_reads: list[tuple[Kept, Signal, int]] = []
        self._values: dict[tuple[str, int, int], Signal] = {}

    def value(self, name: str, cycle: int, number: int) -> Signal:
        """Give a value as a node of segment `number` reads it at a cycle."""
        key = (name, cycle, number)
        if key not in self._values:
            self._values[key] = self._made(name, cycle, number)
        return self._values[key]

    def _made(self, name: str, cycle: int, number: int) -> Signal:
        schedule = self.lanes.schedule
        inside = schedule.inside(name, number)
        there = schedule.depth[name] if inside else self._read_cycle(name, number)
        if cycle > there:
            return self.net.register(self.value(name, cycle - 1, number), f"n_{safe(name)}_s{number}_{cycle}")
        if not inside:
            assert cycle == there
            return self.outside(name, cycle, number)
        if any(each.name == name for each in schedule.cell.sums):
            return Signal(f"s_{safe(name)}", self.lanes.bits(name))
        return self._node(schedule.node(name), cycle, number)

    def _read_cycle(self, name: str, number: int) -> int:
        schedule = self.lanes.schedule
        segment = schedule.segments[number]
        every = (*schedule.reads(segment, False), *schedule.reads(segment, True))
        return next(each.cycle for each in every if each.name == name)

    def outside(self, name: str, cycle: int, number: int) -> Signal:
        """Read what is not of this segment's turn: a parameter, a kept value, a number for all units."""
        schedule = self.lanes.schedule
        if schedule.rows.get(schedule.cell.states.get(name, name)) == "scalar":
            return Signal(self.net.control(f"scalar_{safe(name)}", cycle), self.lanes.bits(name))
        bits, own = self.lanes.bits(name), f"n_{safe(name)}_s{number}"
        segment = schedule.segments[number]
        if name in schedule.cell.parameters:
            address = self.net.control("parameter", cycle)
            return self.net.wire(own, bits, f"p_{safe(name)}_{segment.stage}[{address}]")
        kept = next(each.kept for each in schedule.reads(segment, False) if each.name == name)
        assert kept
        word = self._word(kept, own, cycle, bits)
        if not kept.state:
            return word
        zero, none = self.net.control("zero", cycle), literal(0, bits)
        begun = f"{word.name}"
        if self.net.initial:
            first = f"i_{safe(name)}_{segment.stage}[{self.net.control('initial_address', cycle)}]"
            begun = f"{self.net.control('initial', cycle)} ? {first} : {word.name}"
        return self.net.wire(own, bits, f"{zero} ? {none} : {begun}")

    def _word(self, kept: Kept, own: str, cycle: int, bits: int) -> Signal:
        """Read a memory of what is kept."""
        if kept in self.shared:
            port = Signal(f"u_{own}", bits)
            self.unit_reads.append((kept, port, cycle))
            return port
        address = self.net.control("turn", cycle)
        if kept.doubled:
            address = f"{{{address}, ~{self.net.control('odd', cycle)}}}"
        return self.net.wire(f"{own}_word", bits, f"{memory_name(kept.giver, kept.state)}[{address}]")

    def operand(self, source: str | float, cycle: int, number: int) -> Operand:
        """Give an input of a node in the format in which nodes read it."""
        numbers = self.lanes.numbers
        if not isinstance(source, str):
            raw, fraction = numbers[0].constants[source]
            bits = raw.bit_length() + 1
            constant = self.net.wire("constant", bits, literal(raw, bits))
            return Operand(constant, (fraction,) * len(numbers))
        fractions = tuple(each.fractions[source] for each in numbers)
        signal = self.value(source, cycle, number)
        if source in numbers[0].readers:
            signal = self._element(source, signal, cycle)
        return Operand(signal, fractions)

    def _element(self, name: str, signal: Signal, cycle: int) -> Signal:
        """An element of a vector in its element format. It takes no cycle."""
        scales = [each.readers[name] for each in self.lanes.numbers]
        pipe = Pipeline(self.net, f"n_{safe(name)}_element", cycle, (0,))
        exact = rescaled(pipe, signal, [factor for factor, _ in scales], self.lanes.precision.multiplier_bits)
        bits = self.lanes.precision.tail_bits
        return saturated(pipe, rounded(pipe, exact, [shift for _, shift in scales], bits), bits)

    def _node(self, node: Node, cycle: int, number: int) -> Signal:
        """A node's value at its depth, or one cycle earlier: what its last register is given."""
        schedule = self.lanes.schedule
        depth, begin, latency = schedule.depth[node.name], schedule.begin(node), schedule.cycles(node)
        assert cycle in (depth, depth - 1), (node.name, cycle, depth)
        at = begin if latency else cycle
        operands = [self.operand(each, at, number) for each in node.inputs]
        pipe = Pipeline(self.net, f"n_{safe(node.name)}", at, self._places(node, latency))
        before, behind = self._emit(pipe, node, operands)
        if latency:
            self._values[node.name, depth - 1, number] = before
            self._values[node.name, depth, number] = behind
            return self._values[node.name, cycle, number]
        return behind

    def _places(self, node: Node, latency: int) -> Sequence[int]:
        if node.operation in TABULATED:
            return spread(latency, LINEAR_ORDER if self.lanes.linear else TABLE_ORDER)
        order = operations.places(node.operation)
        return spread(latency, order) if order else (latency,)

    def _emit(self, pipe: Pipeline, node: Node, operands: Sequence[Operand]) -> tuple[Signal, Signal]:
        lanes, bits = self.lanes, self.lanes.bits(node.name)
        self.net.note(f"{node.name} = {node.operation} {' '.join(map(str, node.inputs))}")
        if node.operation in TABULATED:
            own, numbers = lanes.tables(node.name)
            return activation(pipe, operands[0].signal, own, numbers, f"t_{safe(node.name)}", bits)
        if node.operation == "quantize":
            scales = [each.quantizers[node.name] for each in lanes.numbers]
            return operations.quantize(pipe, operands[0].signal, scales, lanes.precision.multiplier_bits, bits)
        fractions = tuple(each.fractions[node.name] for each in lanes.numbers)
        return operations.compute(pipe, node.operation, operands, Result(bits, fractions))


def memory_name(giver: str, state: bool) -> str:
    """Name of the memory of a kept value."""
    return f"{'m' if state else 'k'}_{safe(giver)}"
