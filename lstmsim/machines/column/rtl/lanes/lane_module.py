"""A lane as a module: its ports, its memories with their write ports, its nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.lanes.lane import Graph, Lanes, memory_name
from lstmsim.machines.column.rtl.lanes.layout import CoreLanes
from lstmsim.machines.column.rtl.lanes.netlist import Netlist, Signal, safe
from lstmsim.machines.column.rtl.lanes.schedule import Kept
from lstmsim.machines.column.rtl.lanes.tables import word_bits
from lstmsim.machines.column.rtl.lanes.units import UnitRead, UnitWrite, by_unit

__all__ = [
    "Module",
    "Port",
    "StateWrite",
    "control_range",
    "host_ports",
    "lane_module",
    "memory",
    "module_text",
    "table_memories",
    "table_ports",
]


@record
class Port:
    """A port of a module.

    name: its name.
    range: what stands between direction and name, such as `[7:0]`; empty for one bit.
    output: whether it is an output.
    """

    name: str
    range: str
    output: bool = False

    @property
    def line(self) -> str:
        """Its declaration."""
        return f"  {'output' if self.output else 'input'} wire {self.range and self.range + ' '}{self.name};"


@record
class StateWrite:
    """A state that a lane keeps for the next step.

    number: of the state among those of the cell.
    signal: the lane's signal that has it.
    bits: its width.
    cycle: cycles since the turn at whose end it is kept.
    segment: number of the segment.
    """

    number: int
    signal: str
    bits: int
    cycle: int
    segment: int


@record
class Module:
    """A module that has been written.

    text: its Verilog.
    controls: fields of the turn that it asks for: (field, cycles since the turn, name of the port).
    reductions: its outputs that go to means: (name, bits).
    unit_writes, unit_reads: its outputs and inputs that memories by unit have.
    states: what it keeps for the next step.
    """

    text: str
    controls: tuple[tuple[str, int, str], ...]
    reductions: tuple[tuple[str, int], ...] = ()
    unit_writes: tuple[UnitWrite, ...] = ()
    unit_reads: tuple[UnitRead, ...] = ()
    states: tuple[StateWrite, ...] = ()


def module_text(name: str, ports: Sequence[Port], body: str) -> str:
    """Write a module."""
    names = ",\n".join(f"  {each.name}" for each in ports)
    lines = "\n".join(each.line for each in ports)
    return f'module {name} (\n{names}\n);\n`include "npu_config.vh"\n{lines}\n\n{body}\nendmodule\n'


def control_range(field: str, lanes: Lanes, initial_bits: int) -> str:
    """What stands before the name of a field's port."""
    if field in ("turn", "parameter"):
        return "[W_TURN-1:0]"
    if field == "thread":
        return "[W_THREAD-1:0]"
    if field == "units":
        return "[W_UNIT-1:0]"
    if field == "initial_address":
        return f"[{initial_bits - 1}:0]"
    if field == "class":
        return f"[{max(1, (len(lanes.numbers) - 1).bit_length()) - 1}:0]"
    if field.startswith("scalar_"):
        name = next(each.name for each in lanes.schedule.cell.nodes if f"scalar_{safe(each.name)}" == field)
        return f"signed [{lanes.bits(name) - 1}:0]"
    return ""


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
    reads = [UnitRead(memory_name(*_key(kept)), port.name, port.bits, cycle) for kept, port, cycle in graph.unit_reads]
    nodes = [node for node in lanes.tabulated if lanes.schedule.rows[node] != "scalar"]
    memories = [*table_memories(core, kind, nodes), *_loaded(core, kind), *writes]
    body = [*(declared for declared, _ in memories), net.text, *(written for _, written in memories)]
    body += [f"  assign {port.name} = {signal.name};" for port, signal in results]
    controls = tuple((field, cycle, name) for (field, cycle), name in sorted(net.controls.items()))
    reductions = tuple((port.name, signal.bits) for port, signal in results if port.name.startswith("r_"))
    sums = {
        each.name: Port(f"s_{safe(each.name)}", f"signed [{lanes.bits(each.name) - 1}:0]")
        for each in lanes.schedule.cell.sums
    }
    bits = max(1, plan.initial_words.bit_length())
    ports = [
        *host_ports(core),
        *sums.values(),
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


def _key(kept: Kept) -> tuple[str, bool]:
    return kept.giver, kept.state


def _shared(graph: Graph) -> list[tuple[UnitWrite, Signal]]:
    """What is kept by unit, each with its signal."""
    schedule, shared = graph.lanes.schedule, []
    for each in schedule.kept:
        if each in graph.shared:
            cycle, home = schedule.written(each.giver), schedule.home[each.giver]
            signal = graph.value(each.giver, cycle, home)
            shared.append((UnitWrite(each, memory_name(*_key(each)), signal.bits, cycle, home), signal))
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
        name = memory_name(each.giver, each.state)
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
