"""Numbers that are one for all units: means, and what is computed of them once, kept for each thread."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.machines.column.rtl.lanes.lane import Graph, Lanes
from lstmsim.machines.column.rtl.lanes.lane_module import (
    Module,
    Port,
    control_range,
    memory,
    module_text,
    table_memories,
    table_ports,
)
from lstmsim.machines.column.rtl.lanes.layout import CoreLanes
from lstmsim.machines.column.rtl.lanes.netlist import Netlist, Signal, safe
from lstmsim.machines.column.rtl.lanes.reductions import Mean, mean
from lstmsim.model.cell import REDUCTIONS, Node

__all__ = ["ScalarGraph", "scalar_module"]


class ScalarGraph(Graph):
    """Writes means and the nodes behind them.

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
    """Write the means of a kind of cell and the nodes behind them; None if it has none.

    asked: what lanes ask for: (field, cycles since the turn, name of the port), `scalar_<name>` among the fields.
    """
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
    """When, where and what is written of a number: it is there from its depth on, behind the step's last turn."""
    schedule = graph.lanes.schedule
    cycle, number = schedule.written(name), schedule.home[name]
    value = graph.value(name, cycle, number).name
    return graph.net.control(f"ends{number}", cycle), graph.net.control("thread", cycle), value
