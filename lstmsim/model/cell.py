"""Recurrent cells as graphs: matrix-vector products in stages, and the element-wise operations after them.

A stage is one pass of the weights through the array: the interleaved rows of its gates times the columns of its
vectors. `Sum`s arrive at the tail unit, and `Node`s make states and further vectors of them. Latency of the tail,
operation counts and numerics all come from this one graph. The cells themselves are in `lstmsim.model.cells`.

A cell's graph cut into segments: the tail unit does each segment in one go.

A stage has one segment, and one more after each reduction. A segment runs when its inputs are there. The first segment
of a stage runs as the sums of each row block arrive. A later segment runs when the reductions of the segment before it
are known, and these need all row blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property, lru_cache
from graphlib import TopologicalSorter
from types import MappingProxyType

from lstmsim.base.records import hashed_once, record

#: Element-wise operation -> number of inputs. How long one takes, and what energy, every machine says for itself.
OPERATIONS: Mapping[str, int] = {
    "sigmoid": 1,
    "tanh": 1,
    "exp": 1,
    "log_sigmoid": 1,
    "rsqrt": 1,
    "relu": 1,
    "multiply": 2,
    "divide": 2,
    "add": 2,
    "subtract": 2,
    "maximum": 2,
    "minimum": 2,
    "quantize": 1,
}

#: Operations over all units of all inputs. They take any number of inputs. The result is one number for all units.
REDUCTIONS = ("mean", "mean_square")

#: How many rows a stage's gates have: one per hidden unit or one per unit of the projection.
ROWS = ("hidden", "projection")


@record
class Node:
    """One operation: `name = operation(*inputs)`.

    operation: a key of `OPERATIONS`, or one of `REDUCTIONS`.
    inputs: names of sums, states, parameters or nodes, or plain numbers.

    >>> Node("c", "add", ("fc", "ig")).operation
    'add'
    """

    name: str
    operation: str
    inputs: tuple[str | float, ...]

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The inputs that are names, not numbers."""
        return tuple(each for each in self.inputs if isinstance(each, str))


@record
class Sum:
    """A sum that the array hands to the tail: the rows of a gate times the columns of some vectors, plus a bias.

    vectors: `x` (the input), `h` (the output of the step before), or `quantize` nodes of an earlier stage.
    """

    name: str
    vectors: tuple[str, ...]


@record
class Gate:
    """One row of the interleaved matrix for each unit: one sum, or several where its parts stay apart (GRU)."""

    name: str
    sums: tuple[Sum, ...]

    @cached_property
    def vectors(self) -> tuple[str, ...]:
        """The vectors whose columns the row of the gate has."""
        return tuple(dict.fromkeys(vector for each in self.sums for vector in each.vectors))


@record
class Stage:
    """Gates that share one interleaved matrix, and therefore read the same vectors; rows: one of `ROWS`."""

    gates: tuple[Gate, ...]
    rows: str = "hidden"

    @cached_property
    def vectors(self) -> tuple[str, ...]:
        """The vectors of the matrix in the order of their columns: x, h, then the vectors of earlier stages."""
        names = dict.fromkeys(vector for gate in self.gates for vector in gate.vectors)
        return tuple(sorted(names, key=lambda name: {"x": 0, "h": 1}.get(name, 2)))

    @cached_property
    def sums(self) -> tuple[Sum, ...]:
        """The sums of all gates."""
        return tuple(each for gate in self.gates for each in gate.sums)


@hashed_once
@record
class Cell:
    """A recurrent cell: stages of products, the graph after them, and the states for the next step.

    `lstmsim.model.cell_rules.mistakes` tells the rules that a cell breaks.

    states: name of a state -> node that gives its next value; the state `h` is the output, from a `quantize` node.
    parameters: vectors with one weight for each unit that nodes read (peepholes, normalisation).
    source: where the equations are from.

    >>> from lstmsim.model.cells import cell
    >>> [gate.name for gate in cell("lstm").stages[0].gates]
    ['i', 'f', 'g', 'o']
    """

    name: str
    stages: tuple[Stage, ...]
    nodes: tuple[Node, ...]
    states: Mapping[str, str] = field(hash=False)
    parameters: tuple[str, ...] = ()
    source: str = ""

    @cached_property
    def gates(self) -> tuple[Gate, ...]:
        """The gates of all stages."""
        return tuple(gate for stage in self.stages for gate in stage.gates)

    @cached_property
    def sums(self) -> tuple[Sum, ...]:
        """The sums of all stages."""
        return tuple(each for stage in self.stages for each in stage.sums)

    @property
    def output(self) -> str:
        """Name of the node whose value is written back as h."""
        return self.states["h"]

    @cached_property
    def projected(self) -> bool:
        """Whether the cell has rows of a projection. Layers of such a cell must give `projection`."""
        return any(stage.rows == "projection" for stage in self.stages)

    @property
    def reads_h(self) -> bool:
        """Whether a product reads the output of the step before."""
        return any("h" in stage.vectors for stage in self.stages)

    @property
    def recurrent(self) -> bool:
        """Whether a step depends on the step before, by a product or by a state."""
        return self.reads_h or any(name in node.sources for node in self.nodes for name in self.states)

    def node(self, name: str) -> Node:
        """The node of that name."""
        return next(each for each in self.nodes if each.name == name)


def stage_of(text: str, rows: str = "hidden") -> Stage:
    """Make a stage from gates with vectors in brackets, as `r[x h]`; `n{nx[x] nh[h]}` keeps parts of a gate apart."""
    gates, rest = [], text.strip()
    while rest:
        name, mark = rest, ""
        for position, letter in enumerate(rest):
            if letter in "[{":
                name, mark, rest = rest[:position].strip(), letter, rest[position + 1 :]
                break
        inner, _, rest = rest.partition("]" if mark == "[" else "}")
        parts = [f"{name}[{inner}"] if mark == "[" else [each for each in inner.split("]") if each.strip()]
        sums = [part.split("[") for part in parts]
        gates.append(Gate(name, tuple(Sum(each.strip(), tuple(vectors.split())) for each, vectors in sums)))
        rest = rest.strip()
    return Stage(tuple(gates), rows)


@record
class Segment:
    """One go of the tail over all units: operations on each unit, over all units, and on the results of those."""

    stage: int
    index: int
    rows: str
    nodes: tuple[Node, ...]
    reductions: tuple[Node, ...]
    scalars: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names that come from outside: sums, states, parameters, nodes of earlier segments, scalars."""
        own = {node.name for node in (*self.nodes, *self.reductions, *self.scalars)}
        every = (source for node in (*self.nodes, *self.reductions, *self.scalars) for source in node.sources)
        return tuple(dict.fromkeys(source for source in every if source not in own))


@lru_cache(maxsize=256)
def kinds(cell: Cell) -> Mapping[str, str]:
    """Name of the cell -> its rows: `hidden` or `projection` (one number for each unit), or `scalar`.

    Parameters have the rows of the first node that reads them.
    """
    rows_of = {each.name: stage.rows for stage in cell.stages for each in stage.sums}
    rows_of |= {name: "scalar" for node in cell.nodes if node.operation in REDUCTIONS for name in (node.name,)}
    nodes = ordered(cell)
    before = -1
    while before != len(rows_of):
        before = len(rows_of)
        for node in nodes:
            _spread(cell, node, rows_of)
        unknown = [name for name in cell.states if name not in rows_of]
        if unknown and before == len(rows_of):
            rows_of[unknown[0]] = "hidden"
    return MappingProxyType(rows_of)


def _spread(cell: Cell, node: Node, rows_of: dict[str, str]) -> None:
    """Note the rows of a node, of its inputs and of the states that it gives, as far as they are known."""
    rows = [rows_of[each] for each in node.sources if rows_of.get(each, "scalar") != "scalar"]
    if node.name not in rows_of:
        open_ = any(each not in rows_of and each not in cell.parameters for each in node.sources)
        if open_ and not rows:
            return
        rows_of[node.name] = rows[0] if rows else "scalar"
    for each in node.sources:
        if each in cell.parameters and rows:
            rows_of.setdefault(each, rows[0])
    for state, target in cell.states.items():
        if target == node.name:
            rows_of.setdefault(state, rows_of[node.name])


@lru_cache(maxsize=256)
def ordered(cell: Cell) -> tuple[Node, ...]:
    """The nodes in an order in which each comes after the nodes that it reads; `graphlib.CycleError` for a circle."""
    names = {node.name: node for node in cell.nodes}
    reads = {node.name: [each for each in node.sources if each in names] for node in cell.nodes}
    return tuple(names[name] for name in TopologicalSorter(reads).static_order())


@lru_cache(maxsize=256)
def segments(cell: Cell) -> tuple[Segment, ...]:
    """The segments of a cell in the order in which the tail does them."""
    level: dict[str, tuple[int, int]] = {
        each.name: (number, 0) for number, stage in enumerate(cell.stages) for each in stage.sums
    }
    rows_of = kinds(cell)
    rows: dict[tuple[int, int], tuple[list[Node], list[Node], list[Node]]] = {
        (number, 0): ([], [], []) for number in range(len(cell.stages))
    }
    after: dict[str, tuple[int, int]] = {}
    for node in ordered(cell):
        home = max((after.get(each) or level.get(each, (0, 0)) for each in node.sources), default=(0, 0))
        if node.operation in REDUCTIONS:
            rows.setdefault(home, ([], [], []))[1].append(node)
            level[node.name] = home
            after[node.name] = (home[0], home[1] + 1)
        elif rows_of[node.name] == "scalar":
            reduced = max((level[each] for each in node.sources if each in after), default=home)
            rows.setdefault(reduced, ([], [], []))[2].append(node)
            level[node.name] = reduced
            after[node.name] = (reduced[0], reduced[1] + 1)
        else:
            rows.setdefault(home, ([], [], []))[0].append(node)
            level[node.name] = home
    return tuple(
        Segment(stage, index, cell.stages[stage].rows, *(tuple(each) for each in parts))
        for (stage, index), parts in sorted(rows.items())
    )


@lru_cache(maxsize=256)
def segments_by_stage(cell: Cell) -> tuple[tuple[Segment, ...], ...]:
    """The segments of each stage of a cell."""
    every = segments(cell)
    return tuple(tuple(each for each in every if each.stage == stage) for stage in range(len(cell.stages)))


@lru_cache(maxsize=4096)
def segment_of(cell: Cell, node: str) -> tuple[int, int]:
    """(stage, index) of the segment that gives the value of a node. `KeyError` if there is none."""
    for each in segments(cell):
        if any(own.name == node for own in (*each.nodes, *each.reductions, *each.scalars)):
            return each.stage, each.index
    raise KeyError(node)
