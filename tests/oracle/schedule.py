"""When a cell's operations take place in the tail, counted from a unit's turn (sections 1 and 8.2, 8.4, 8.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property

from lstmsim.machines.column.npu import Latency
from lstmsim.model.cell import REDUCTIONS, Cell

#: Operation -> what it takes (the table of section 8.1).
CLASSES = {
    **dict.fromkeys(("sigmoid", "tanh", "exp", "log_sigmoid", "rsqrt"), "activation"),
    **dict.fromkeys(("add", "subtract", "maximum", "minimum", "relu"), "elementwise_add"),
    "multiply": "elementwise_multiply",
    "divide": "divide",
    "quantize": "quantize",
}

#: (stage, segment)
Place = tuple[int, int]


@dataclass
class Read:
    """Something that an operation takes from outside its segment, `start` cycles after the unit's turn."""

    name: str
    start: int
    scalar: bool = False
    state: bool = False


@dataclass
class Schedule:
    """Of every value of a cell: where it is made and how long after the unit's turn."""

    cell: Cell
    latency: Latency
    places: dict[str, Place] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, stage in enumerate(self.cell.stages):
            for gate in stage.gates:
                for each in gate.sums:
                    self.places[each.name], self.depths[each.name] = (number, 0), 0
        self.nodes = {node.name: node for node in self.cell.nodes}
        for name in self.nodes:
            self.place(name)
        for name in self.nodes:
            self.depth(name)

    def made(self, name: str) -> list[str]:
        """The inputs of a node that this step makes: no states, parameters, numbers."""
        return [each for each in self.nodes[name].inputs if isinstance(each, str) and each in self.known]

    @cached_property
    def known(self) -> set[str]:
        return {*self.nodes, *(each.name for stage in self.cell.stages for gate in stage.gates for each in gate.sums)}

    def scalar(self, name: str) -> bool:
        """A reduction, or made of reductions alone."""
        if name not in self.nodes:
            return False
        named = [each for each in self.nodes[name].inputs if isinstance(each, str)]
        reduction = self.nodes[name].operation in REDUCTIONS
        return reduction or (bool(named) and all(each in self.known and self.scalar(each) for each in named))

    def place(self, name: str) -> Place:
        """Stage: the last one that it needs; segment: how many cuts in this stage lie before it."""
        if name not in self.places:
            inputs = [(self.place(each), self.scalar(each)) for each in self.made(name)]
            stage = max((where[0] for where, _ in inputs), default=0)
            own = self.scalar(name)
            cuts = [where[1] + (scalar and not own) for where, scalar in inputs if where[0] == stage]
            self.places[name] = stage, max(cuts, default=0)
        return self.places[name]

    def start(self, name: str) -> int:
        """When an operation takes its operands, counted from the unit's turn."""
        here = [each for each in self.made(name) if self.places[each] == self.places[name] and not self.scalar(each)]
        return max((self.depth(each) for each in here), default=0)

    def depth(self, name: str) -> int:
        """Longest path from the unit's turn to the value, within its segment."""
        if name not in self.depths and not self.scalar(name):
            self.depths[name] = self.start(name) + self.cycles(name)
        return self.depths.get(name, 0)

    def cycles(self, name: str) -> int:
        cycles: int = getattr(self.latency, CLASSES[self.nodes[name].operation])
        return cycles

    def reduction_cycles(self, name: str, tail_width: int) -> int:
        """Section 8.5: squares, a tree over the units of a turn, a running sum, a factor 1/n."""
        node, levels = self.nodes[name], 0
        while 2**levels < tail_width * len(node.inputs):
            levels += 1
        squares = self.latency.elementwise_multiply if node.operation == "mean_square" else 0
        return squares + (levels + 1) * self.latency.elementwise_add + self.latency.elementwise_multiply

    def segments(self, stage: int) -> int:
        vectors = [where[1] for name, where in self.places.items() if where[0] == stage and not self.scalar(name)]
        return max(vectors) + 1

    @cached_property
    def reads(self) -> dict[Place, list[Read]]:
        """What each segment takes from earlier segments and from the step before."""
        found: dict[Place, list[Read]] = {where: [] for where in self.places.values()}
        for name, node in self.nodes.items():
            if self.scalar(name) and node.operation not in REDUCTIONS:
                continue
            for each in node.inputs:
                if isinstance(each, float | int):
                    continue
                start, where = self.start(name), self.places[name]
                if each in self.known and (self.scalar(each) or self.places[each] != where):
                    found[where].append(Read(each, start, scalar=self.scalar(each)))
                elif each not in self.known and each in self.cell.states:
                    found[where].append(Read(self.cell.states[each], start, state=True))
        return found

    @cached_property
    def written(self) -> dict[Place, list[str]]:
        """Per segment, the values that the array or the layer above reads."""
        vectors = {each for stage in self.cell.stages for gate in stage.gates for s in gate.sums for each in s.vectors}
        found: dict[Place, list[str]] = {where: [] for where in self.places.values()}
        for name in sorted(vectors & set(self.nodes) | {self.cell.states["h"]}):
            found[self.places[name]].append(name)
        return found

    def rows(self, name: str) -> str:
        """Whether a value has one element per hidden or per projected unit."""
        return self.cell.stages[self.places[name][0]].rows


@cache
def schedule(cell: Cell, latency: Latency) -> Schedule:
    return Schedule(cell, latency)
