"""The lanes of the tail: for each kind of cell `tail_width` of them, with tables and memories of states."""

from __future__ import annotations

from collections import Counter

from lstmsim.machines.column.parts.sizes import Sizes, bits_of, chosen
from lstmsim.machines.column.rtl.lanes.operations import places as places_of
from lstmsim.machines.column.rtl.lanes.tables import LINEAR_ORDER, TABLE_ORDER
from lstmsim.machines.column.tail import begins, depths
from lstmsim.machines.hardware import Demand, Part
from lstmsim.model.cell import OPERATIONS, REDUCTIONS, Cell, Node
from lstmsim.model.numerics.activation_tables import TABULATED
from lstmsim.model.precision import Precision
from lstmsim.model.segments import Segment, kinds, segments

__all__ = ["lanes"]

#: Bits within a cell of an activation table that an argument usually has, a leading bit with them.
_PART_BITS = 10
#: Bits by which a rounded number is usually wider than what it is saturated to, and by which the number in front of it
#: is wider than the rounded one: a synthesis program leaves out what the shift drops for certain.
_EXCESS_BITS, _DROPPED_BITS = 2, 1


def lanes(sizes: Sizes) -> Part:
    """All lanes of a core: operations, registers in them and between them, tables, states and parameters."""
    count = sizes.core.tail_width
    adders = gates = registers = 0
    memories: list[Demand] = []
    for cell in sizes.cells:
        lane = _Lane(sizes, cell)
        adders += count * lane.adders
        gates += count * lane.gates
        registers += count * lane.registers
        memories += lane.memories
    # Lanes of several kinds of cells share their results' way.
    return Part("lanes", adders, gates, registers, tuple(memories))


class _Lane:
    """Counts what a lane of one kind of cell has; memories are those of all lanes."""

    def __init__(self, sizes: Sizes, cell: Cell) -> None:
        self.sizes, self.cell, self.precision = sizes, cell, sizes.precision
        self.latency = vars(sizes.core.latency)
        self.depth = depths(cell, self.latency, sizes.core.tail_width)
        self.rows = kinds(cell)
        #: Formats that a node has: one for each pass, or one for all.
        self.classes = 1 if self.precision.formats == "shared" else sizes.passes[cell]
        self.adders = self.gates = self.registers = 0
        self.memories: list[Demand] = []
        for segment in segments(cell):
            self._segment(segment)
        self._keep()

    def bits(self, name: str | float) -> int:
        """Width of what a node reads or is."""
        return _bits(self.cell, name, self.precision)

    def _segment(self, segment: Segment) -> None:
        nodes = (*segment.nodes, *segment.reductions, *segment.scalars)
        begin = {each.name: begins(each, self.depth, segment) for each in nodes}
        last: dict[str, tuple[int, int]] = {}
        for each in nodes:
            if self.rows[each.name] != "scalar":
                self._node(each)
            for source in each.sources:
                first, late = last.get(source, (begin[each.name], 0))
                last[source] = min(first, begin[each.name]), max(late, begin[each.name])
        for source, (first, late) in last.items():
            own = self.depth[source] if source in begin else first
            self.registers += max(0, late - own) * self.bits(source)

    def _node(self, node: Node) -> None:
        """Add one operation; its registers are spread over its steps, from the last one on."""
        bits = self.bits(node.name)
        if node.operation in REDUCTIONS:
            return
        latency = self.latency[OPERATIONS[node.operation][1]]
        read = [self.bits(each) for each in node.inputs]
        if node.operation in TABULATED:
            self._table(node, read[0], bits, latency)
        elif node.operation in ("divide", "rsqrt"):
            # A subtraction a bit of the result, with a register behind as many as the latency gives.
            self.adders += (bits + 1) * (bits + _EXCESS_BITS)
            self.registers += latency * (2 * bits + max(read))
            self.gates += 2 * bits
        else:
            self._exact(node.operation, read, bits, latency)

    def _exact(self, operation: str, read: list[int], bits: int, latency: int) -> None:
        """An operation whose exact result is rounded and saturated."""
        excess = bits if operation == "quantize" else bits + _EXCESS_BITS
        rounded = excess + _DROPPED_BITS
        self.adders += rounded + _DROPPED_BITS
        self.gates += bits + _EXCESS_BITS + chosen(bits, self.classes)
        places: tuple[int, ...] = (sum(read), rounded, excess, bits)
        if operation not in ("multiply", "quantize"):
            wide = max(read) + 2
            self.adders += wide
            places = (sum(read), sum(read), wide, excess, bits)
        self.registers += _spread(latency, places, places_of(operation))

    def _table(self, node: Node, read: int, bits: int, latency: int) -> None:
        """A table for each lane, and a line between two entries."""
        precision, linear = self.precision, self.precision.activation == "linear"
        cell = bits_of(precision.activation_entries - 1)
        word = 2 * bits + 1 if linear else bits
        # Passes differ in where an argument's point is, hardly ever in what the table holds.
        words = precision.activation_entries
        width = self.sizes.core.tail_width
        name = f"table {node.name} of {self.cell.name}"
        self.memories.append(Demand(name, width * words * word, width * word, width, writes=1, instant=latency < 2))
        self.gates += 2 * cell + chosen(cell, self.classes)
        if not linear:
            self.registers += max(0, _spread(latency, (read, cell, word), TABLE_ORDER) - word)
            return
        self.adders += 2 * bits + _EXCESS_BITS
        line = 2 * bits + 1
        places = (read, cell + _PART_BITS, word + _PART_BITS, line, line, bits)
        # The first register behind the read is the memory's own.
        self.registers += max(0, _spread(latency, places, LINEAR_ORDER) - word)

    def _keep(self) -> None:
        """States and values that other segments read, parameters, and the way of the results."""
        sizes, width = self.sizes, self.sizes.core.tail_width
        read = {name for node in self.cell.nodes for name in node.sources}
        words = sizes.core.threads * sizes.most_turns
        for state in self.cell.states:
            if state in read:
                bits = width * self.bits(state)
                own = Demand(f"state {state} of {self.cell.name}", words * bits, bits, width, writes=1, instant=True)
                self.memories.append(own)
                self.gates += self.bits(state)
        for name in self.cell.parameters:
            bits = width * self.bits(name)
            words = sizes.constant_words
            self.memories.append(Demand(f"parameter {name} of {self.cell.name}", words * bits, bits, width, writes=1))
        written = Counter({self.cell.output: 1})
        for name in written:
            late = max(1, self.depth[name] + self.latency["writeback"]) - 1 - self.depth[name]
            self.registers += max(0, late) * self.precision.vector_bits


def _spread(latency: int, widths: tuple[int, ...], order: tuple[int, ...]) -> int:
    """Bits of registers that are shared out over places of these widths, in an order that goes round.

    >>> _spread(3, (8, 16, 9, 4), (3, 1, 2, 0))
    29
    """
    return sum(widths[order[number % len(order)]] for number in range(latency))


def _bits(cell: Cell, name: str | float, precision: Precision) -> int:
    if not isinstance(name, str):
        return precision.tail_bits
    fed = cell.states.get(name, name)
    if any(each.name == fed and each.operation == "quantize" for each in cell.nodes):
        return precision.vector_bits
    return precision.state_bits if fed in cell.states.values() else precision.tail_bits
