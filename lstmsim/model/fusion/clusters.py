"""Which memory-intensive operations become one kernel: connected ones, unless that would close a cycle.

The rules are those of docs/fusion.md, section 2.
"""

from __future__ import annotations

from lstmsim.model.fusion.graph import CONSTANT, Graph
from lstmsim.model.fusion.operations import INPUT
from lstmsim.model.fusion.plan import Decision, Refused

__all__ = ["clusters", "refusal"]


class _Clusters:
    """Clusters of nodes, and which of them lead to which, while they are joined.

    A set of nodes is an integer with a bit for each; that makes a question about all paths one operation.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        nodes = graph.nodes
        self.of = list(range(len(nodes)))
        self.members = {number: 1 << number for number, node in enumerate(nodes) if node.kind != INPUT}
        self.operands = dict.fromkeys(self.members, 0)
        self.after = dict.fromkeys(self.members, 0)
        for number in reversed(self.members):
            for reader in graph.readers[number]:
                self.operands[reader] |= self.members[number]
                self.after[number] |= self.after[reader] | self.members[reader]

    def apart(self, a: int, b: int) -> bool:
        """Whether another cluster lies on a path from a cluster to one that reads it."""
        # such a path enters its end from a cluster that comes after its beginning
        return bool(self.after[a] & self.operands[b])

    def join(self, a: int, b: int) -> None:
        """Make one cluster of two; the lower number stays."""
        a, b = sorted((a, b))
        for number in _numbers(self.members[b]):
            self.of[number] = a
        members = self.members[a] | self.members.pop(b)
        operands = (self.operands[a] | self.operands.pop(b)) & ~members
        after = (self.after[a] | self.after.pop(b)) & ~members
        self.members[a], self.operands[a], self.after[a] = members, operands, after
        for other, reached in self.after.items():
            if reached & members:
                self.after[other] |= after | members

    def path(self, a: int, b: int) -> tuple[int, ...]:
        """Nodes on a shortest path from a cluster to another over at least one other: where it enters and leaves."""
        target = self.members[b]
        reached: dict[int, tuple[int, ...]] = {a: ()}
        for cluster in (waiting := [a]):
            for number in _numbers(self.members[cluster]):
                for reader in self.graph.readers[number]:
                    place = self.of[reader]
                    here = (*reached[cluster], number) if cluster != a else ()
                    if place == b and cluster != a:
                        return tuple(dict.fromkeys(here))
                    if place not in reached and self.after[place] & target:
                        reached[place] = (*here, reader)
                        waiting.append(place)
        return ()


def _numbers(members: int) -> list[int]:
    """The numbers in a set, ascending."""
    numbers = []
    while members:
        lowest = members & -members
        numbers.append(lowest.bit_length() - 1)
        members ^= lowest
    return numbers


def clusters(graph: Graph) -> tuple[tuple[tuple[int, ...], ...], tuple[Refused, ...]]:
    """The sub-graphs of a graph, ascending, and the edges over which two of them were not joined.

    graph: the graph.

    >>> from lstmsim.model.fusion.graph import Node
    >>> x, w = Node("x", "input", (), (4, 4)), Node("w", "input", (), (4, 4))
    >>> a, p = Node("a", "tanh", ("x",), (4, 4)), Node("p", "matmul", ("a", "w"), (4, 4))
    >>> y = Node("y", "add", ("p", "a"), (4, 4))
    >>> clusters(Graph("cycle", (x, w, a, p, y), ("y",)))
    (((2,), (4,)), (Refused(operand=2, reader=4, path=(3,)),))
    """
    nodes = graph.nodes
    edges = [
        (operand, number)
        for number, node in enumerate(nodes)
        if node.intensive
        for operand in dict.fromkeys(graph.operands[number])
        if operand != CONSTANT and nodes[operand].intensive
    ]
    state = _Clusters(graph)
    joined = True
    while joined:
        joined = False
        for operand, reader in edges:
            a, b = state.of[operand], state.of[reader]
            if a != b and not state.apart(a, b):
                state.join(a, b)
                joined = True
    subgraphs = tuple(
        tuple(_numbers(members)) for first, members in sorted(state.members.items()) if nodes[first].intensive
    )
    refused = tuple(
        Refused(operand, reader, state.path(state.of[operand], state.of[reader]))
        for operand, reader in edges
        if state.of[operand] != state.of[reader]
    )
    return subgraphs, refused


def refusal(graph: Graph, refused: Refused) -> Decision:
    """Why an edge joined nothing, in words.

    graph: the graph.
    refused: the edge.
    """
    names = [node.name for node in graph.nodes]
    path = " -> ".join(names[each] for each in refused.path)
    return Decision(
        "edge",
        names[refused.reader],
        f"not in one kernel with {names[refused.operand]}",
        f"one kernel of both would wait for itself: {path} lies between them and must run after "
        f"{names[refused.operand]} and before {names[refused.reader]}",
    )
