"""Which results of a sub-graph are stored: its candidates. All else is evaluated by whoever needs it.

The rules are those of docs/fusion.md, sections 2 and 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.base.wording import counted
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.operations import HEAVY, REDUCE
from lstmsim.model.fusion.plan import Decision

__all__ = ["candidates_of", "outputs_of"]


def outputs_of(graph: Graph, nodes: Sequence[int]) -> tuple[int, ...]:
    """What leaves a sub-graph: outputs of the graph, what others read, and what nobody reads.

    graph: the graph.
    nodes: numbers of the sub-graph's operations, ascending.
    """
    inside = set(nodes)
    return tuple(number for number in nodes if _why_output(graph, number, inside))


def candidates_of(graph: Graph, nodes: Sequence[int]) -> tuple[Decision, ...]:
    """The candidates of a sub-graph in order, each with why it is one.

    graph: the graph.
    nodes: numbers of the sub-graph's operations, ascending.

    >>> from lstmsim.model.fusion.graph import Node
    >>> x, y = Node("x", "input", (), (2, 3)), Node("y", "reduce_sum", ("x",), (2,), (1,))
    >>> [each.because for each in candidates_of(Graph("g", (x, y), ("y",)), [1])]
    ['it is a reduce; it is an output of the graph']
    """
    inside = set(nodes)
    reasons = {number: _reasons(graph, number, inside) for number in nodes}
    return tuple(
        Decision("candidate", graph.nodes[number].name, "is stored", "; ".join(each))
        for number, each in reasons.items()
        if each
    )


def _reasons(graph: Graph, number: int, inside: set[int]) -> list[str]:
    """All that makes an operation a candidate."""
    node = graph.nodes[number]
    reasons = ["it is a reduce"] if node.kind == REDUCE else []
    broadcasts = [each for each in graph.readers[number] if each in inside and graph.nodes[each].op == "broadcast"]
    if node.kind == HEAVY and broadcasts:
        times = graph.nodes[broadcasts[0]].size // node.size
        repeated = f"{graph.nodes[broadcasts[0]].name} repeats it {counted(times, 'time')}"
        reasons.append(f"{node.op} is heavy and {repeated}")
    output = _why_output(graph, number, inside)
    return [*reasons, output] if output else reasons


def _why_output(graph: Graph, number: int, inside: set[int]) -> str:
    """Why an operation is an output of its sub-graph; empty if it is none."""
    if number in graph.output_numbers:
        return "it is an output of the graph"
    readers = graph.readers[number]
    outside = [each for each in readers if each not in inside]
    if outside:
        return f"{graph.nodes[outside[0]].name} reads it outside of the sub-graph"
    return "" if readers else "nobody reads it"
