"""Who owns each element of a group's tensors: indices travel from the backbone; docs/fusion.md, section 5.5."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.fusion.graph import CONSTANT, Graph
from lstmsim.model.fusion.indexing import operand_elements, positions, reduced_elements
from lstmsim.model.fusion.operations import REDUCE
from lstmsim.model.fusion.plan import Group, Owners, ThreadMapping

__all__ = ["propagated", "start_node", "work_of"]

Ints = NDArray[np.int64]

#: Stands for the owner of an element that has none yet.
_NOBODY = -1


def start_node(graph: Graph, group: Group) -> int:
    """The node whose elements the backbone's threads take: the operand of a reduce, else the backbone.

    graph: the graph.
    group: one of its groups.
    """
    backbone = group.backbone
    return graph.operands[backbone][0] if graph.nodes[backbone].kind == REDUCE else backbone


def propagated(
    graph: Graph, group: Group, mapping: ThreadMapping, start: Owners, cut: Set[int] = frozenset()
) -> dict[int, Owners]:
    """The owners of all that indices reach from the backbone, by node. Tensors owned alike share the arrays.

    graph: the graph.
    group: the group.
    mapping: its threads.
    start: owners of the elements of `start_node`.
    cut: reduces of the graph that lost the edge to their operand.

    >>> from lstmsim.model.fusion.graph import Node
    >>> x, y = Node("x", "input", (), (2, 4)), Node("y", "reduce_sum", ("x",), (2,), (1,))
    >>> group = Group((1,), 1, (), "row", 2, 4, None)
    >>> mapping = ThreadMapping("pack", 2, 32, 32, 1, 1, 1, 4)
    >>> start = Owners(np.int32([0, 0, 0, 0, 1, 1, 1, 1]), np.int32([0, 1, 2, 3] * 2))
    >>> owners = propagated(Graph("g", (x, y), ("y",)), group, mapping, start)
    >>> owners[1].block.tolist(), owners[1].thread.tolist(), owners[0] is start
    ([0, 1], [0, 0], True)
    """
    walk = _Walk(graph, group, mapping, cut)
    walk.known[start_node(graph, group)] = start
    while walk.waiting:
        walk.look(min(walk.waiting))
    for number in walk.holed:
        walk.known[number] = _by_size(walk.known[number], mapping)
    return walk.known


def work_of(
    graph: Graph, group: Group, mapping: ThreadMapping, number: int, owners: Mapping[int, Owners], cut: Set[int]
) -> Owners:
    """Who evaluates what for a candidate: of a reduce the elements of its operand, else those of its result.

    graph: the graph.
    group, mapping: its group, and who computes that.
    number: of the candidate.
    owners: of the group, as `propagated` gives them.
    cut: reduces of the graph that lost the edge to their operand.
    """
    if graph.nodes[number].kind != REDUCE:
        return owners[number]
    operand = graph.operands[number][0]
    if number not in cut or number == group.backbone:
        return owners[operand]
    return _backward(graph, number, operand, owners[number], mapping)


class _Walk:
    """Nodes whose owners are known while indices travel, and those that were not looked at yet."""

    def __init__(self, graph: Graph, group: Group, mapping: ThreadMapping, cut: Set[int]) -> None:
        self.graph, self.mapping = graph, mapping
        self.known: dict[int, Owners] = {}
        self.looked: set[int] = set()
        self.holed: set[int] = set()  # known ones of which some elements have no owner
        self.sources = {
            number: [each for each in graph.operands[number] if each != CONSTANT]
            for number in group.members
            if graph.nodes[number].op != "broadcast" and (number not in cut or number == group.backbone)
        }

    @property
    def waiting(self) -> set[int]:
        return self.known.keys() - self.looked

    def look(self, number: int) -> None:
        """Take a node's indices on to its readers and then to its operands."""
        self.looked.add(number)
        for reader in self.graph.readers[number]:
            if number in self.sources.get(reader, ()):
                self._forward(number, reader)
        for operand in self.sources.get(number, ()):
            if operand not in self.known:
                self.known[operand] = _backward(self.graph, number, operand, self.known[number], self.mapping)
                if number in self.holed or self.graph.nodes[number].op == "slice":
                    self._count_holes(operand)

    def _forward(self, number: int, reader: int) -> None:
        if reader in self.known and reader not in self.holed:
            return
        given = _forward(self.graph, number, reader, self.known[number])
        if reader in self.known:
            before = self.known[reader]
            empty = before.block == _NOBODY
            given = Owners(
                np.where(empty, given.block, before.block).astype(np.int32),
                np.where(empty, given.thread, before.thread).astype(np.int32),
            )
        self.known[reader] = given
        if number in self.holed or reader in self.holed:
            self._count_holes(reader)

    def _count_holes(self, number: int) -> None:
        if (self.known[number].block == _NOBODY).any():
            self.holed.add(number)
        else:
            self.holed.discard(number)


def _forward(graph: Graph, number: int, reader: int, owners: Owners) -> Owners:
    """Each element of the reader belongs to whom the element belongs that it is made of, of a reduce the first one."""
    node = graph.nodes[reader]
    if node.kind == REDUCE:
        places = reduced_elements(graph, reader, np.arange(node.size), np.zeros(1, np.int64))
    else:
        elements = np.arange(node.size)
        places = operand_elements(graph, reader, number, elements)
        if places is elements:
            return owners
    return Owners(owners.block[places], owners.thread[places])


def _backward(graph: Graph, number: int, operand: int, owners: Owners, mapping: ThreadMapping) -> Owners:
    """The elements of the operand belong to whom the element belongs that is made of them."""
    node, size = graph.nodes[number], graph.nodes[operand].size
    if node.kind == REDUCE:
        result, position = positions(graph, number, np.arange(size))
        block = owners.block[result]
        thread = (position % mapping.threads).astype(np.int32)
        return Owners(block, np.where(block == _NOBODY, np.int32(_NOBODY), thread))
    elements = np.arange(node.size)
    places = operand_elements(graph, number, operand, elements)
    if places is elements:
        return owners
    block, thread = np.full(size, _NOBODY, np.int32), np.full(size, _NOBODY, np.int32)
    block[places], thread[places] = owners.block, owners.thread
    return Owners(block, thread)


def _by_size(owners: Owners, mapping: ThreadMapping) -> Owners:
    """The same, and elements without owner are dealt out over blocks and threads by their number."""
    elements = np.arange(owners.block.size)
    empty = owners.block == _NOBODY
    block = np.where(empty, elements * mapping.blocks // max(1, elements.size), owners.block)
    thread = np.where(empty, elements % mapping.threads, owners.thread)
    return Owners(block.astype(np.int32), thread.astype(np.int32))
