"""How a stage of a layer is cut on a core of the column-wise NPU (row blocks, turns in the tail, column groups), and
when each value of a unit is there, counted from the unit's turn in the tail. And over which members a pass is spread.

A unit's turn in a segment (`lstmsim.model.cell`) starts its part of the graph; what comes from elsewhere is
there by then. Reductions add `tail_width` units a turn in a tree, then turn after turn in an accumulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property, lru_cache
from types import MappingProxyType

from lstmsim.base.records import record
from lstmsim.machines.assembly import OperationClasses
from lstmsim.machines.column.npu import ColumnCore, Devices, Exchange
from lstmsim.model.cell import REDUCTIONS, Cell, Node, Segment, Stage, segments
from lstmsim.model.model import Layer

#: Number of the array among the units of a core.
ARRAY = 0

#: Number of the tail unit among the units of a core.
TAIL = 1

#: Number of the exchange unit, where a core has one.
EXCHANGE = 2

#: Stands for the links of devices, which are units of a core of their own, numbered by device.
LINK = 3

#: Key of `Latency` that an operation of cells takes in the tail.
LATENCIES = OperationClasses.grouped(
    "column-npu",
    {
        "activation": "sigmoid tanh exp log_sigmoid rsqrt",
        "elementwise_multiply": "multiply",
        "elementwise_add": "add subtract maximum minimum relu",
        "divide": "divide",
        "quantize": "quantize",
    },
)


def node_cycles(node: Node, latency: Mapping[str, int], tail_width: int) -> int:
    """From a node's last input until its value is there; of a reduction over all units, from the last unit's on.

    A reduction: squares, a tree over `tail_width` units with all their inputs, one addition to the running sum, times
    1/n.

    >>> default = {"elementwise_multiply": 4, "elementwise_add": 4}
    >>> node_cycles(Node("m", "mean", ("a",)), default, 64)
    32
    """
    if node.operation not in REDUCTIONS:
        return LATENCIES.value(node.operation, latency)
    levels = (tail_width * len(node.inputs) - 1).bit_length()
    squares = latency["elementwise_multiply"] if node.operation == "mean_square" else 0
    return squares + (levels + 1) * latency["elementwise_add"] + latency["elementwise_multiply"]


def begins(node: Node, depth: Mapping[str, int], segment: Segment) -> int:
    """Cycles from a unit's turn until all of the node's inputs are there."""
    own = {each.name for each in (*segment.nodes, *segment.reductions, *segment.scalars)}
    return max((depth[each] for each in node.sources if each in own), default=0)


def depths(cell: Cell, latency: Mapping[str, int], tail_width: int) -> Mapping[str, int]:
    """For every node: cycles from a unit's turn in the node's segment until its value is there.

    For a reduction and what is made of it: from the last unit's turn.
    """
    return _depths(cell, tuple(sorted(latency.items())), tail_width)


@lru_cache(maxsize=1024)
def _depths(cell: Cell, latency: tuple[tuple[str, int], ...], tail_width: int) -> Mapping[str, int]:
    cycles = dict(latency)
    depth: dict[str, int] = {}
    for segment in segments(cell):
        for node in (*segment.nodes, *segment.reductions, *segment.scalars):
            depth[node.name] = begins(node, depth, segment) + node_cycles(node, cycles, tail_width)
    return MappingProxyType(depth)


#: Passes whose shapes are kept: the bound on the size of a program asks for them, and then the lowering.
_MOST_KEPT = 1024


def share_of(units: int, share: int, shares: int) -> int:
    """Count the units in a share. Shares are as equal as whole units allow, and the first shares are the larger ones.

    >>> [share_of(10, share, 4) for share in range(4)]
    [3, 3, 2, 2]
    """
    return units // shares + (share < units % shares)


@record
class StageShape:
    """A stage of a layer on a core, or a share of its units. Units and row blocks are counted within the share.

    >>> from lstmsim.model.cells import cell
    >>> shape = StageShape(Layer(cell("lstm"), 10, 7), ColumnCore(npe=64, ep=4, vp=16), 0)
    >>> shape.blocks, [shape.first_group(vector) for vector in ("x", "h")]
    ((4, 4, 2), [0, 2])
    """

    layer: Layer
    core: ColumnCore
    number: int  # number of the stage in the layer's cell
    share: int = 0  # number of the share
    shares: int = 1  # shares in all; 1: the stage is whole

    @cached_property
    def stage(self) -> Stage:
        return self.layer.cell.stages[self.number]

    @cached_property
    def units(self) -> int:
        """Number of units in the share."""
        return share_of(self.layer.units(self.stage.rows), self.share, self.shares)

    @cached_property
    def units_per_block(self) -> int:
        return self.core.units_per_block(self.stage)

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """Number of units in each row block; the last block may be partial."""
        full, rest = divmod(self.units, self.units_per_block)
        return (self.units_per_block,) * full + ((rest,) if rest else ())

    @cached_property
    def depth(self) -> Mapping[str, int]:
        """Cycles from a unit's turn until each node's value is there."""
        return depths(self.layer.cell, vars(self.core.latency), self.core.tail_width)

    def visible_cycles(self, node: str) -> int:
        """Cycles from a unit's turn until the node's value can be streamed: at least 1, as no effect is immediate."""
        return max(1, self.depth[node] + self.core.latency.writeback)

    def groups(self, vector: str) -> int:
        """Count the column groups of a vector; each vector is padded to whole groups."""
        return -(-self.layer.width(vector) // self.core.ep)

    def first_group(self, vector: str) -> int:
        """Give the number of the vector's first column group in the stage's matrix."""
        before = self.stage.vectors[: self.stage.vectors.index(vector)]
        return sum(self.groups(each) for each in before)

    def homes(self, vector: str) -> str:
        """Name the node whose results make up a vector other than x."""
        return self.layer.cell.output if vector == "h" else vector


def pass_shapes(layer: Layer, core: ColumnCore, share: int = 0, shares: int = 1) -> tuple[StageShape, ...]:
    """Give the shapes of a layer's stages on a core; `share` and `shares` as in `StageShape`."""
    return _shapes(layer, core, share, shares)


@lru_cache(_MOST_KEPT)
def _shapes(layer: Layer, core: ColumnCore, share: int, shares: int) -> tuple[StageShape, ...]:
    return tuple([StageShape(layer, core, number, share, shares) for number in range(len(layer.cell.stages))])


def issue_order(stage: Stage, x_last: bool) -> Iterator[str]:
    """Yield the stage's vectors in the order in which their columns issue: the vector that is ready last comes last.

    >>> from lstmsim.model.cells import cell
    >>> list(issue_order(cell("lstm").stages[0], x_last=True))
    ['h', 'x']
    """
    yield from sorted(stage.vectors, key=lambda name: {"x": int(x_last), "h": int(not x_last)}.get(name, 2))


def outputs(cell: Cell) -> tuple[str, ...]:
    """Name the nodes that are written as vectors: h first, then what later stages read, in the order of the stages.

    >>> from lstmsim.model.cells import cell
    >>> outputs(cell("gru-lbr0")), outputs(cell("lstm"))
    (("h'", 'rh'), ("h'",))
    """
    read = (vector for stage in cell.stages for vector in stage.vectors if vector not in ("x", "h"))
    return tuple(dict.fromkeys((cell.output, *read)))


@record
class Spread:
    """The members of a task over which a pass is spread, or the inferences of a batch, which are all on one.

    >>> Spread((0, 1), (0, 1)).sends_to(EXCHANGE, 0, ["h"]), Spread((0, 1), (0, 1)).sends_to(LINK, 0, ["h"])
    (True, False)
    """

    members: tuple[int, ...] = (0,)  # for each share of the pass's units, the member that has it
    cores: tuple[int, ...] = (0,)  # for each share, the number of its member's core among the task's cores
    readers: tuple[int, ...] = ()  # the cores on which the layer above reads h
    exchange: Exchange = field(default_factory=Exchange)  # the links between cores
    batch: int = 1  # how many inferences; if more than 1, each is a share that has all units
    devices: tuple[int, ...] = ()  # the device of each of the task's cores; empty: all are on one
    link: Devices = field(default_factory=Devices)  # the links between devices
    first_sender: int = 0  # the member of the task that stands at the link for member 0

    @staticmethod
    def of_batch(batch: int) -> Spread:
        """A batch of inferences on one thread of one core."""
        return Spread((0,) * batch, (0,) * batch, batch=batch)

    def sends_to(self, unit: int, share: int, readers: Sequence[str]) -> bool:
        """Tell whether another core, or for the link another device, reads a share of a vector."""
        cores = {*(self.cores if "h" in readers else ()), *(self.readers if "above" in readers else ())}
        if unit == LINK:
            return bool({self.device(each) for each in cores} - {self.device(self.cores[share])})
        return bool(cores - {self.cores[share]})

    def device(self, core: int) -> int:
        """The device of one of the task's cores."""
        return self.devices[core] if self.devices else 0


#: A pass on one core.
WHOLE = Spread()
