"""A lane as a module (ports, memories, nodes), and numbers that are one for all units, kept for each thread.

A mean over all units: squares, a tree over the units of a turn, a running sum for each thread, an exact quotient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.lanes.lane import CoreLanes, Graph, Lanes, UnitRead, UnitWrite, by_unit, memory_name
from lstmsim.machines.column.rtl.lanes.netlist import Netlist, Pipeline, Signal, literal, moved, safe, saturated, spread
from lstmsim.machines.column.rtl.lanes.operations import word_bits
from lstmsim.model.cell import REDUCTIONS, Node


@record
class Port:
    """A port of a module."""

    name: str
    range: str  # what stands between direction and name, such as `[7:0]`; empty for one bit
    output: bool = False  # whether it is an output

    @property
    def line(self) -> str:
        return f"  {'output' if self.output else 'input'} wire {self.range and self.range + ' '}{self.name};"


@record
class StateWrite:
    """A state that a lane keeps for the next step."""

    number: int  # of the state among those of the cell
    signal: str  # the lane's signal that has it
    bits: int  # its width
    cycle: int  # cycles since the turn at whose end it is kept
    segment: int  # number of the segment


@record
class Module:
    """A module that has been written."""

    text: str  # its Verilog
    # fields of the turn that it asks for: (field, cycles since the turn, name of the port)
    controls: tuple[tuple[str, int, str], ...]
    reductions: tuple[tuple[str, int], ...] = ()  # its outputs that go to means: (name, bits)
    # unit_writes, unit_reads: its outputs and inputs that memories by unit have
    unit_writes: tuple[UnitWrite, ...] = ()
    unit_reads: tuple[UnitRead, ...] = ()
    states: tuple[StateWrite, ...] = ()  # what it keeps for the next step


def module_text(name: str, ports: Sequence[Port], body: str) -> str:
    """Write a module."""
    names = ",\n".join(f"  {each.name}" for each in ports)
    lines = "\n".join(each.line for each in ports)
    return f'module {name} (\n{names}\n);\n`include "npu_config.vh"\n{lines}\n\n{body}\nendmodule\n'


def control_range(field: str, lanes: Lanes, initial_bits: int) -> str:
    """The range of bits before the name of a field's port, empty for a single bit."""
    widths = {"turn": "W_TURN", "parameter": "W_TURN", "thread": "W_THREAD", "units": "W_UNIT"}
    if field in widths:
        return f"[{widths[field]}-1:0]"
    if field == "initial_address":
        return f"[{initial_bits - 1}:0]"
    if field == "class":
        return f"[{max(1, (len(lanes.numbers) - 1).bit_length()) - 1}:0]"
    return f"signed [{scalar_bits(lanes, field) - 1}:0]" if field.startswith("scalar_") else ""


def scalar_bits(lanes: Lanes, field: str) -> int:
    """Width of the number for all units that a field of the turn names."""
    return next(lanes.bits(each.name) for each in lanes.schedule.cell.nodes if f"scalar_{safe(each.name)}" == field)


def memory(name: str, bits: int, words: int, write: str, address: str, data: str) -> tuple[str, str]:
    """Write a memory with one write port: its declaration and its write. Reads stand where they are needed."""
    declared = f"  reg [{bits - 1}:0] {name} [0:{words - 1}];"
    return declared, f"  always @(posedge clock) if ({write}) {name}[{address}] <= {data};"


def table_memories(core: CoreLanes, kind: int, nodes: Sequence[str]) -> list[tuple[str, str]]:
    """Write the memories of tables of some nodes."""
    lanes, texts = core.kinds[kind], []
    for node in nodes:
        number = core.tables.index((kind, node))
        bits, tables = word_bits(lanes.bits(node), lanes.linear), max(lanes.tables(node)[1]) + 1
        words = tables << core.cell_bits
        write, where = f"table_write[{number}]", f"table_address[{(words - 1).bit_length() - 1}:0]"
        declared, written = memory(f"t_{safe(node)}", bits, words, write, where, f"table_word[{bits - 1}:0]")
        # nobody reads a table while it is loaded: a block memory needs no logic for that
        texts.append((f"  (* no_rw_check *)\n{declared}", written))
    return texts


def host_ports(core: CoreLanes) -> list[Port]:
    """Ports through which a lane's memories are loaded."""
    ports = table_ports(core)
    if core.parameters:
        ports.append(Port("parameter_write", f"[{len(core.parameters) - 1}:0]"))
    if core.plan.initial_words:
        ports.append(Port("initial_write", f"[{max(1, len(core.states)) - 1}:0]"))
    return [*ports, Port("host_place", "[23:0]"), Port("host_data", "[31:0]")]


def table_ports(core: CoreLanes) -> list[Port]:
    """The clock, and ports through which tables are loaded."""
    ports = [Port("clock", "")]
    if core.tables:
        ports += [
            Port("table_write", f"[{len(core.tables) - 1}:0]"),
            Port("table_address", f"[{core.table_bits + core.cell_bits - 1}:0]"),
            Port("table_word", f"[{core.word_bits - 1}:0]"),
        ]
    return ports


def lane_module(core: CoreLanes, kind: int) -> Module:
    """Write the lane of a kind of cell of a core."""
    lanes, plan = core.kinds[kind], core.plan
    net = Netlist(initial=bool(plan.initial_words))
    graph = Graph(lanes, net, by_unit(core, kind))
    results = _results(core, kind, graph)
    writes = _kept(core, graph)
    shared = _shared(graph)
    results += [(Port(f"e_{own.name}", f"[{own.bits - 1}:0]", output=True), signal) for own, signal in shared]
    reads = [UnitRead(memory_name(kept), port.name, port.bits, cycle) for kept, port, cycle in graph.unit_reads]
    nodes = [node for node in lanes.tabulated if lanes.schedule.rows[node] != "scalar"]
    memories = [*table_memories(core, kind, nodes), *_loaded(core, kind), *writes]
    body = [*(declared for declared, _ in memories), net.text, *(written for _, written in memories)]
    body += [f"  assign {port.name} = {signal.name};" for port, signal in results]
    controls = tuple((field, cycle, name) for (field, cycle), name in sorted(net.controls.items()))
    reductions = tuple((port.name, signal.bits) for port, signal in results if port.name.startswith("r_"))
    sums = dict.fromkeys(each.name for each in lanes.schedule.cell.sums)
    bits = max(1, plan.initial_words.bit_length())
    ports = [
        *host_ports(core),
        *(Port(f"s_{safe(name)}", f"signed [{lanes.bits(name) - 1}:0]") for name in sums),
        *(Port(each.port, f"signed [{each.bits - 1}:0]") for each in reads),
        *(Port(name, control_range(field, lanes, bits)) for field, _, name in controls),
        *(port for port, _ in results),
    ]
    text = module_text(f"npu_lane_c{plan.number}_k{kind}", ports, "\n".join(body))
    return Module(
        f"// A lane of {lanes.schedule.cell.name} cells.\n{text}",
        controls,
        reductions,
        tuple(own for own, _ in shared),
        tuple(reads),
        tuple(sorted(_states(graph), key=lambda each: each.number)),
    )


def _states(graph: Graph) -> Iterator[StateWrite]:
    """What is kept for the next step; asking for a value twice gives the same signal."""
    schedule = graph.lanes.schedule
    numbers = list(dict.fromkeys(schedule.cell.states.values()))
    for each in schedule.kept:
        if each.state:
            cycle, home = schedule.written(each.giver), schedule.home[each.giver]
            signal = graph.value(each.giver, cycle, home)
            yield StateWrite(numbers.index(each.giver), signal.name, signal.bits, cycle, home)


def _shared(graph: Graph) -> list[tuple[UnitWrite, Signal]]:
    """What is kept by unit, each with its signal."""
    schedule, shared = graph.lanes.schedule, []
    for each in schedule.kept:
        if each in graph.shared:
            cycle, home = schedule.written(each.giver), schedule.home[each.giver]
            signal = graph.value(each.giver, cycle, home)
            shared.append((UnitWrite(each, memory_name(each), signal.bits, cycle, home), signal))
    return shared


def _results(core: CoreLanes, kind: int, graph: Graph) -> list[tuple[Port, Signal]]:
    """Outputs, each with its signal: vectors one cycle before they are visible, inputs of reductions at their begin."""
    schedule, lanes = graph.lanes.schedule, graph.lanes
    results = []
    for slot, node in enumerate(core.plan.kinds[kind].outputs):
        visible = max(1, schedule.depth[node] + schedule.latency.writeback)
        signal = graph.value(node, visible - 1, schedule.home[node])
        results.append((Port(f"y_{slot}", f"[{lanes.bits(node) - 1}:0]", output=True), signal))
    for number, segment in enumerate(schedule.segments):
        for each in segment.reductions:
            for place, source in enumerate(each.inputs):
                signal = graph.operand(source, schedule.begin(each), number).signal
                port = Port(f"r_{safe(each.name)}_{place}", f"signed [{signal.bits - 1}:0]", output=True)
                results.append((port, signal))
    return results


def _kept(core: CoreLanes, graph: Graph) -> list[tuple[str, str]]:
    """Memories of what is kept for other segments and for the next step."""
    schedule, texts = graph.lanes.schedule, []
    words = core.plan.core.threads * core.plan.turns
    for each in schedule.kept:
        if each in graph.shared:
            continue
        cycle, home = schedule.written(each.giver), schedule.home[each.giver]
        signal = graph.value(each.giver, cycle, home)
        address, write = graph.net.control("turn", cycle), graph.net.control(f"on{home}", cycle)
        if each.doubled:
            address = f"{{{address}, {graph.net.control('odd', cycle)}}}"
        name = memory_name(each)
        texts.append(memory(name, signal.bits, words << each.doubled, write, address, signal.name))
    return texts


def _loaded(core: CoreLanes, kind: int) -> list[tuple[str, str]]:
    """Memories of parameters and of states before the first step."""
    plan = core.plan
    loaded = [("p", "parameter", plan.turns, each) for each in enumerate(core.parameters)]
    if plan.initial_words:
        loaded += [("i", "initial", plan.initial_words, each) for each in enumerate(core.states)]
    texts = []
    for prefix, write, words, (number, (own, name, stage)) in loaded:
        if own == kind:
            bits = core.kinds[kind].bits(name)
            memory_ = f"{prefix}_{safe(name)}_{stage}"
            data = f"host_data[{bits - 1}:0]"
            texts.append(memory(memory_, bits, words, f"{write}_write[{number}]", "host_place", data))
    return texts


@record
class Mean:
    """A mean, or a mean of squares."""

    name: str  # prefix of its signals
    square: bool  # whether of squares
    fractions: tuple[tuple[int, ...], ...]  # for each input, for each class, bits after its point
    result: tuple[int, ...]  # for each class, bits after the result's point
    counts: tuple[int, ...]  # for each class over how many numbers
    bits: int  # of the result
    threads: int  # of the core

    @property
    def common(self) -> list[int]:
        """For each class the fraction in which numbers are added."""
        return [max(each) * (1 + self.square) for each in zip(*self.fractions, strict=True)]


def mean(
    net: Netlist, own: Mean, inputs: Sequence[Sequence[Signal]], begin: int, latency: tuple[int, int], segment: int
) -> tuple[Signal, Signal]:
    """Write a mean: its value in front of its last register, and after it, counted from the last unit's turn."""
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
                term = net.product(f"{own.name}_square", 2 * signal.bits, term, term)
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
    product = pipe.product(number.bits + size, number, factor)
    sign = pipe.wire("sign", 1, f"{folded.name}[{folded.bits - 1}]")
    product, sign = pipe.step(product, sign)
    floor = pipe.wire("floor", max(product.bits - place, 2), f"{product.name} >>> {place}")
    signed = pipe.wire("signed", floor.bits, f"{sign.name} ? ~{floor.name} : {floor.name}")
    return pipe.end(saturated(pipe, signed, own.bits))


class ScalarGraph(Graph):
    """Writes means and the nodes after them.

    lanes: what is written.
    net: where it is written.
    core: gives the number of lanes and threads.
    """

    def __init__(self, lanes: Lanes, net: Netlist, core: CoreLanes) -> None:
        super().__init__(lanes, net)
        self.core = core
        self.inputs: list[Port] = []

    def outside(self, name: str, cycle: int, number: int) -> Signal:
        """Read a number of an earlier segment, as the thread of the turn has it."""
        return self.net.wire(f"n_{safe(name)}_s{number}", self.lanes.bits(name), self.kept(name, cycle))

    def kept(self, name: str, cycle: int) -> str:
        """A number as it is kept for the thread of the turn of `cycle` cycles ago."""
        return f"v_{safe(name)}[{self.net.control('thread', cycle)}]"

    def _node(self, node: Node, cycle: int, number: int) -> Signal:
        if node.operation not in REDUCTIONS:
            return super()._node(node, cycle, number)
        schedule, lanes = self.lanes.schedule, self.lanes
        own = Mean(
            f"n_{safe(node.name)}",
            node.operation == "mean_square",
            tuple(tuple(each.fractions[source] for each in lanes.numbers) for source in node.sources),
            tuple(each.fractions[node.name] for each in lanes.numbers),
            tuple(each.counts[node.name] for each in lanes.numbers),
            lanes.bits(node.name),
            self.core.plan.core.threads,
        )
        self.net.note(f"{node.name} = {node.operation} {' '.join(node.sources)}")
        latency = schedule.latency.elementwise_multiply, schedule.latency.elementwise_add
        inputs = [self._input(node, place) for place in range(len(node.sources))]
        before, behind = mean(self.net, own, inputs, schedule.begin(node), latency, number)
        depth = schedule.depth[node.name]
        self._values[node.name, depth - 1, number] = before
        self._values[node.name, depth, number] = behind
        return self._values[node.name, cycle, number]

    def _input(self, node: Node, place: int) -> list[Signal]:
        """An input of a mean, of all lanes."""
        bits = self.lanes.operand_bits(node.sources[place])
        name, width = f"r_{safe(node.name)}_{place}", self.core.plan.core.tail_width
        self.inputs.append(Port(name, f"[{width * bits - 1}:0]"))
        return [self.net.wire(f"{name}_{lane}", bits, f"{name}[{lane * bits} +: {bits}]") for lane in range(width)]


def scalar_module(core: CoreLanes, kind: int, asked: Sequence[tuple[str, int, str]]) -> Module | None:
    """Write the means of a kind of cell and the nodes after them; None if it has none."""
    lanes, schedule = core.kinds[kind], core.kinds[kind].schedule
    if not any(segment.reductions for segment in schedule.segments):
        return None
    net = Netlist()
    graph = ScalarGraph(lanes, net, core)
    names = schedule.scalars_kept
    files = [
        memory(f"v_{safe(name)}", lanes.bits(name), core.plan.core.threads, *_write(graph, name)) for name in names
    ]
    outputs = []
    for field, cycle, port in asked:
        for name in names:
            if field == f"scalar_{safe(name)}":
                outputs.append((Port(port, f"[{lanes.bits(name) - 1}:0]", output=True), graph.kept(name, cycle)))
    nodes = [node for node in lanes.tabulated if schedule.rows[node] == "scalar"]
    memories = [*table_memories(core, kind, nodes), *files]
    body = [*(declared for declared, _ in memories), net.text, *(written for _, written in memories)]
    body += [f"  assign {port.name} = {value};" for port, value in outputs]
    controls = tuple((field, cycle, name) for (field, cycle), name in sorted(net.controls.items()))
    ports = [
        *table_ports(core),
        *graph.inputs,
        *(Port(name, control_range(field, lanes, 1)) for field, _, name in controls),
        *(port for port, _ in outputs),
    ]
    text = module_text(f"npu_scalars_c{core.plan.number}_k{kind}", ports, "\n".join(body))
    return Module(f"// What is one number for all units in {schedule.cell.name} cells.\n{text}", controls)


def _write(graph: ScalarGraph, name: str) -> tuple[str, str, str]:
    """When, where and what is written of a number: it is there from its depth on, after the step's last turn."""
    schedule = graph.lanes.schedule
    cycle, number = schedule.written(name), schedule.home[name]
    value = graph.value(name, cycle, number).name
    return graph.net.control(f"ends{number}", cycle), graph.net.control("thread", cycle), value
