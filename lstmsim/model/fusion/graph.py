"""Graphs of operations on tensors. `lstmsim.model.fusion.graph_rules` says what is wrong with one."""

from __future__ import annotations

from functools import cached_property
from math import prod

from lstmsim.base.records import record
from lstmsim.model.fusion.operations import CHEAP, HEAVY, MOVE, REDUCE, class_of

#: In place of the number of a node: the operand is a plain number.
CONSTANT = -1


@record
class Node:
    """One operation and its result.

    name: of the result.
    op: the operation (`lstmsim.model.fusion.operations`), or `input`; any other name is a call of a library.
    inputs: names of nodes, or plain numbers.
    shape: of the result; () is a single number.
    axes: of a reduce: the axes that vanish, ascending; of a broadcast: for each axis of the operand its axis in the
        result (`dims`); of a transpose: for each axis of the result its axis in the operand (`perm`); of a slice: for
        each axis where it starts (`start`; the shape is its size); else empty.
    """

    name: str
    op: str
    inputs: tuple[str | float, ...]
    shape: tuple[int, ...]
    axes: tuple[int, ...] = ()

    @cached_property
    def size(self) -> int:
        """How many elements the result has."""
        return prod(self.shape)

    @cached_property
    def kind(self) -> str:
        """The class of its operation."""
        return class_of(self.op)

    @property
    def intensive(self) -> bool:
        """Whether it is memory-intensive: what fusion is about."""
        return self.kind in (CHEAP, HEAVY, MOVE, REDUCE)


@record
class Graph:
    """Nodes in an order in which each one comes after its operands. A node's number is its place.

    name: of the graph.
    nodes: the nodes.
    outputs: names of the nodes that are wanted.
    about: what it is, where it is from, what was left out; sentences.

    >>> graph = Graph("g", (Node("x", "input", (), (4,)), Node("y", "tanh", ("x",), (4,))), ("y",))
    >>> graph.operands, graph.readers, graph.output_numbers
    (((), (0,)), ((1,), ()), frozenset({1}))
    """

    name: str
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    about: tuple[str, ...] = ()

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each node by its name."""
        return {node.name: number for number, node in enumerate(self.nodes)}

    @cached_property
    def operands(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of each node's operands, `CONSTANT` for a plain number."""
        known = self.numbers
        return tuple(
            tuple(known[each] if isinstance(each, str) else CONSTANT for each in node.inputs) for node in self.nodes
        )

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the nodes that read each node, ascending, each once."""
        lists: list[list[int]] = [[] for _ in self.nodes]
        for number, operands in enumerate(self.operands):
            for operand in dict.fromkeys(operands):
                if operand != CONSTANT:
                    lists[operand].append(number)
        return tuple(map(tuple, lists))

    @cached_property
    def output_numbers(self) -> frozenset[int]:
        """The numbers of the outputs."""
        return frozenset(self.numbers[name] for name in self.outputs)
