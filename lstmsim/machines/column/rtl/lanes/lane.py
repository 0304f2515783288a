"""One lane of a kind of cell (the nodes of one unit, their memories and tables), and what all lanes of a core hold.

An address of the host's bus has the space in bits 31..28, the core in 27..24, and below that:

* space 4, tables: number of the table's node, its table among those of the passes, the cell, and the part of 32 bits;
* space 5, parameters: address of the turn, the lane, the number of the parameter;
* space 6, initial states: address of the turn, the lane, the number of the state.

Each field has as many bits as its largest number needs, and none if that is 0. A word of a table with two parts is
written as a whole with its last part.

Where the units of a row block are no multiple of the lanes, two stages do not have a unit in the same lane at the same
address. A value from one to the other goes through a memory that all lanes share, `npu_unit_memory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.machines.column.rtl.lanes import operations
from lstmsim.machines.column.rtl.lanes.netlist import (
    Netlist,
    Pipeline,
    Signal,
    literal,
    rescaled,
    rounded,
    safe,
    saturated,
    spread,
)
from lstmsim.machines.column.rtl.lanes.operations import (
    LINEAR_ORDER,
    TABLE_ORDER,
    Numbers,
    Operand,
    Result,
    Table,
    activation,
    classes,
    word_bits,
)
from lstmsim.machines.column.rtl.lanes.schedule import Kept, Schedule
from lstmsim.machines.column.rtl.plan import CorePlan
from lstmsim.model.cell import Node
from lstmsim.model.model import Precision
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.fixed_point import TABULATED


@record
class Lanes:
    """What the lanes of a kind of cell are built of."""

    schedule: Schedule  # when what is read
    numbers: tuple[Numbers, ...]  # of the different classes of passes
    precision: Precision  # widths of all numbers

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
        return self._node(schedule.cell.node(name), cycle, number)

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
        # A state that is there when the turn comes is read a cycle early, into a register: a block memory is slow.
        early = int(kept.state and cycle > 0 and kept not in self.shared and schedule.behind_h(segment, kept.giver))
        word = self._word(kept, own, cycle - early, bits)
        if not kept.state:
            return word
        if early:
            word = self.net.register(word)
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
        return self.net.wire(f"{own}_word", bits, f"{memory_name(kept)}[{address}]")

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


def memory_name(kept: Kept) -> str:
    """Name of the memory of a kept value."""
    return f"{'m' if kept.state else 'k'}_{safe(kept.giver)}"


#: Model, layer and direction.
Pass = tuple[int, int, int]


def bits_of(count: int) -> int:
    """Bits of a number below `count`; 0 if there is only one.

    >>> [bits_of(count) for count in (1, 2, 3, 8)]
    [0, 1, 2, 3]
    """
    return (count - 1).bit_length()


@record
class CoreLanes:
    """The lanes of a core."""

    plan: CorePlan  # the core
    kinds: tuple[Lanes, ...]  # for each kind of cell what its lanes are built of
    class_of: tuple[tuple[int, ...], ...]  # for each kind the class of each of its passes
    precision: Precision  # widths of all numbers

    @classmethod
    def of(cls, plan: CorePlan, passes: Mapping[Pass, FixedArithmetic], precision: Precision) -> CoreLanes:
        """Make the lanes of a core from the arithmetic of all passes that run on it."""
        kinds, class_of = [], []
        for kind in plan.kinds:
            missing = [each for each in kind.passes if each not in passes]
            if missing:
                raise InputError(f"the lanes of core {plan.number} need the numbers of model {missing[0][0]}")
            different, own = classes([Numbers.of(passes[each]) for each in kind.passes])
            schedule = Schedule(kind.cell, plan.core.latency, plan.core.tail_width)
            kinds.append(Lanes(schedule, different, precision))
            class_of.append(own)
        return cls(plan, tuple(kinds), tuple(class_of), precision)

    @cached_property
    def tables(self) -> tuple[tuple[int, str], ...]:
        """(kind, node) of every memory of tables, by its number."""
        return tuple((number, node) for number, own in enumerate(self.kinds) for node in own.tabulated)

    @cached_property
    def parameters(self) -> tuple[tuple[int, str, int], ...]:
        """(kind, parameter, stage that reads it) by its number: the host loads a memory for each."""
        return self._loaded([kind.schedule.cell.parameters for kind in self.kinds])

    @cached_property
    def states(self) -> tuple[tuple[int, str, int], ...]:
        """(kind, state, stage that reads it) by its number."""
        return self._loaded([kind.schedule.cell.states for kind in self.kinds])

    def _loaded(self, names: Sequence[Iterable[str]]) -> tuple[tuple[int, str, int], ...]:
        pairs = [(kind, name) for kind, own in enumerate(names) for name in own]
        return tuple((kind, name, stage) for kind, name in pairs for stage in self.kinds[kind].schedule.readers(name))

    @property
    def cell_bits(self) -> int:
        return bits_of(self.precision.activation_entries)

    @cached_property
    def table_bits(self) -> int:
        """Bits of the number of a table among those of a node."""
        counts = (max(self.kinds[kind].tables(node)[1]) + 1 for kind, node in self.tables)
        return bits_of(max(counts, default=1))

    @property
    def part_bits(self) -> int:
        return int(self.word_bits > 32)

    @property
    def word_bits(self) -> int:
        """Bits of the widest word of a table."""
        bits = max(self.precision.tail_bits, self.precision.state_bits)
        return word_bits(bits, self.precision.activation == "linear")

    @property
    def lane_bits(self) -> int:
        return bits_of(self.plan.core.tail_width)


@record
class UnitWrite:
    """A lane's output that goes into a memory by unit."""

    kept: Kept  # what it is
    name: str  # of the memory
    bits: int  # of a number
    cycle: int  # cycles since the turn at whose end it is written
    segment: int  # number of the segment


@record
class UnitRead:
    """A lane's input that comes from a memory by unit."""

    name: str  # of the memory
    port: str  # of the lane
    bits: int  # of a number
    cycle: int  # cycles since the turn at which it is read


def by_unit(core: CoreLanes, kind: int) -> frozenset[Kept]:
    """Give what lanes of a kind cannot keep by turn, because a stage that reads it has units elsewhere."""
    width = core.plan.core.tail_width
    rows = (row for row in core.plan.stages if row.kind == kind)
    uneven = {row.stage for row in rows if row.blocks > 1 and row.units % width}
    return frozenset(kept for kept, giver, reader in core.kinds[kind].schedule.crossings() if uneven & {giver, reader})


def unit_memories(core: CoreLanes, kind: int, writes: Sequence[UnitWrite], reads: Sequence[UnitRead]) -> Iterator[str]:
    """Write the memories by unit of a kind, and the wires between them and the lanes."""
    width, own = core.plan.core.tail_width, f"k{kind}"
    for cycle in sorted({each.cycle for each in writes} | {each.cycle for each in reads}):
        yield from _bases(core, kind, cycle)
    for each in writes:
        ways = [read for read in reads if read.name == each.name]
        for name in (f"e_{each.name}", *(read.port for read in ways)):
            yield f"  wire [{width * each.bits - 1}:0] {own}_{name};"
        yield from _memory(core, kind, each, ways)


def _memory(core: CoreLanes, kind: int, one: UnitWrite, ways: Sequence[UnitRead]) -> Iterator[str]:
    """A memory by unit with one way to write and several to read."""
    own, half = f"k{kind}", core.plan.core.threads * sum(_pass_words(core, kind))
    words = half << one.kept.doubled
    bits = max(1, words.bit_length())

    def base(cycle: int, odd: bool) -> str:
        # of two places that of the step itself is written, that of the step before is read
        upper, lower = (half, 0) if odd else (0, half)
        place = f" + (d_step[(CONVERT+{cycle})*W_STEP] ? {bits}'d{upper} : {bits}'d{lower})"
        return f"{own}_base_{cycle}{place if one.kept.doubled else ''}"

    yield f"  wire [{bits - 1}:0] {own}_{one.name}_to = {base(one.cycle, True)};"
    for number, read in enumerate(ways):
        yield f"  wire [{bits - 1}:0] {own}_{one.name}_from{number} = {base(read.cycle, False)};"
    places = ", ".join(f"{own}_{one.name}_from{number}" for number in reversed(range(len(ways))))
    units = ", ".join(f"d_unit[(CONVERT+{read.cycle})*W_UNIT +: W_UNIT]" for read in reversed(ways))
    data = ", ".join(f"{own}_{read.port}" for read in reversed(ways))
    sizes = f".WIDTH({core.plan.core.tail_width}), .BITS({one.bits}), .WORDS({words}), .READS({len(ways)})"
    now = f"(CONVERT+{one.cycle})*W_UNIT +: W_UNIT"
    yield (
        f"  npu_unit_memory #({sizes}, .W_UNIT(W_UNIT), .W_ADDRESS({bits})) {own}_{one.name} (\n"
        f"    .clock(clock), .write({own}_on{one.segment}_{one.cycle}), .write_base({own}_{one.name}_to),\n"
        f"    .write_unit(d_unit[{now}]), .write_units(d_units[{now}]), .write_data({own}_e_{one.name}),\n"
        f"    .read_base({{{places}}}), .read_unit({{{units}}}), .read_data({{{data}}})\n  );"
    )


def _pass_words(core: CoreLanes, kind: int) -> list[int]:
    """Words of a bank that each pass of a kind takes: those of its largest stage."""
    banks = 1 << bits_of(core.plan.core.tail_width)
    words = [0] * len(core.class_of[kind])
    for row in core.plan.stages:
        if row.kind == kind:
            words[row.lane_pass] = max(words[row.lane_pass], -(-row.unit_count // banks))
    return words


def _bases(core: CoreLanes, kind: int, cycle: int) -> Iterator[str]:
    """The address of unit 0 of the thread and pass of the turn of `cycle` cycles ago, without a product."""
    own, words = f"k{kind}", _pass_words(core, kind)
    threads, total = core.plan.core.threads, sum(words)
    bits = max(1, (threads * total).bit_length())
    starts = [sum(words[:number]) for number in range(len(words))]
    row, thread = f"d_row[(CONVERT+{cycle})*W_ROW +: W_ROW]", f"d_thread[(CONVERT+{cycle})*W_THREAD +: W_THREAD]"
    yield f"  wire [P_LANE_PASS_B-1:0] {own}_pass_{cycle} = P_LANE_PASS[{row} * P_LANE_PASS_B +: P_LANE_PASS_B];"
    first = chosen(f"{own}_pass_{cycle}", starts, bits)
    part = chosen(thread, [number * total for number in range(threads)], bits)
    yield f"  wire [{bits - 1}:0] {own}_base_{cycle} = ({first}) + ({part});"


def chosen(name: str, values: Sequence[int], bits: int) -> str:
    """Choose one of several numbers by a number; what is beyond them gives the last one."""
    text = f"{bits}'d{values[-1]}"
    for number in reversed(range(len(values) - 1)):
        text = f"{name} == {number} ? {bits}'d{values[number]} : {text}"
    return text
