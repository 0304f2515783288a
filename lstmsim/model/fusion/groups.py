"""Groups: operations through which indices travel, so that one mapping of threads serves them all.

The rules are those of docs/fusion.md, sections 3.2 to 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from lstmsim.base.records import record
from lstmsim.base.wording import counted
from lstmsim.model.fusion.candidates import candidates_of
from lstmsim.model.fusion.graph import CONSTANT, Graph
from lstmsim.model.fusion.operations import REDUCE
from lstmsim.model.fusion.plan import COLUMN, ELEMENT, ROW, Decision, Group

__all__ = ["Grouping", "group_of", "grouped", "reduce_kind"]


@record
class Grouping:
    """How a sub-graph falls into groups.

    candidates: operations that are stored, ascending.
    groups: by their first operation; they have no mapping yet.
    free: operations of no group, ascending.
    cut: reduces through which no index travels, because they reduce rows and their group columns, or the other way.
    decisions: why all this is so.
    """

    candidates: tuple[int, ...]
    groups: tuple[Group, ...]
    free: tuple[int, ...]
    cut: frozenset[int]
    decisions: tuple[Decision, ...]


def reduce_kind(graph: Graph, number: int) -> str:
    """`row` if a reduce takes the last axes of its operand, else `column`.

    graph: the graph.
    number: of the reduce.
    """
    node = graph.nodes[number]
    rank = len(graph.nodes[graph.operands[number][0]].shape)
    return ROW if sorted(node.axes) == list(range(rank - len(node.axes), rank)) else COLUMN


def grouped(graph: Graph, nodes: Sequence[int], apart: bool = False) -> Grouping:
    """The groups of a sub-graph.

    graph: the graph.
    nodes: numbers of its operations, ascending.
    apart: whether each candidate is a group of its own: no index travels at one.

    >>> from lstmsim.model.fusion.graph import Node
    >>> x, s = Node("x", "input", (), (8, 64)), Node("s", "reduce_sum", ("x",), (8,), (1,))
    >>> grouping = grouped(Graph("g", (x, s, Node("r", "sqrt", ("s",), (8,))), ("r",)), [1, 2])
    >>> [(each.members, each.backbone, each.sub_backbones, each.kind) for each in grouping.groups]
    [((1, 2), 1, (2,), 'row')]
    """
    chosen = candidates_of(graph, nodes)
    candidates = tuple(graph.numbers[each.node] for each in chosen)
    stored = set(candidates)
    cut: dict[int, Decision] = {}
    while True:
        parts = _components(graph, nodes, set(cut), stored if apart else set())
        groups = [group_of(graph, part, stored) for part in parts if stored.intersection(part)]
        mixed = {
            number: _lost(graph, number, group)
            for group in groups
            for number in group.members
            if graph.nodes[number].kind == REDUCE and number not in cut and reduce_kind(graph, number) != group.kind
        }
        if not mixed:
            break
        cut |= mixed
    free = tuple(sorted(number for part in parts if not stored.intersection(part) for number in part))
    decisions = (
        *chosen,
        *(cut[number] for number in sorted(cut)),
        *(_led(graph, group) for group in groups),
        *(_subordinate(graph, group, number) for group in groups for number in group.sub_backbones),
        *(_freed(graph, number, apart) for number in free),
    )
    return Grouping(candidates, tuple(groups), free, frozenset(cut), decisions)


def _components(graph: Graph, nodes: Sequence[int], cut: Set[int], closed: Set[int]) -> list[tuple[int, ...]]:
    """What is connected in the index graph, by first operation. What is read from outside connects and is left out."""
    leader: dict[int, int] = {number: number for number in nodes}

    def lead(number: int) -> int:
        leader.setdefault(number, number)
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    for number in nodes:
        if graph.nodes[number].op == "broadcast" or number in cut or number in closed:
            continue
        for operand in graph.operands[number]:
            if operand != CONSTANT and operand not in closed:
                leader[lead(operand)] = lead(number)
    parts: dict[int, list[int]] = {}
    for number in nodes:
        parts.setdefault(lead(number), []).append(number)
    return sorted(map(tuple, parts.values()))


def group_of(graph: Graph, members: tuple[int, ...], candidates: Set[int]) -> Group:
    """Operations as a group, with its backbone; without mapping.

    graph: the graph.
    members: numbers of operations, ascending.
    candidates: which operations are stored; at least one of them is a member.
    """
    stored = [number for number in members if number in candidates]
    reduces = [number for number in stored if graph.nodes[number].kind == REDUCE]
    if reduces:
        backbone = max(reduces, key=lambda number: (_operand_size(graph, number), -number))
        kind, rows = reduce_kind(graph, backbone), graph.nodes[backbone].size
        length = _operand_size(graph, backbone) // rows
    else:
        backbone = max(stored, key=lambda number: (graph.nodes[number].size, -number))
        kind, rows, length = ELEMENT, graph.nodes[backbone].size, 1
    return Group(members, backbone, tuple(each for each in stored if each != backbone), kind, rows, length)


def _operand_size(graph: Graph, number: int) -> int:
    return graph.nodes[graph.operands[number][0]].size


def _lost(graph: Graph, number: int, group: Group) -> Decision:
    """Why no index travels through a reduce."""
    name, leading = graph.nodes[number].name, graph.nodes[group.backbone].name
    return Decision(
        "edge",
        name,
        f"no index travels from {graph.nodes[graph.operands[number][0]].name} to it",
        f"it reduces {_lines(reduce_kind(graph, number))} and {leading}, which has the largest operand of the "
        f"group ({_operand_size(graph, group.backbone):,} elements), reduces {_lines(group.kind)}",
    )


def _lines(kind: str) -> str:
    return {ROW: "rows", COLUMN: "columns"}[kind]


def _led(graph: Graph, group: Group) -> Decision:
    """Why an operation is the backbone of its group."""
    if group.kind == ELEMENT:
        because = f"the group has no reduce, and of its candidates it has the most elements ({group.rows:,})"
    else:
        because = f"of the reduces of the group it has the largest operand ({group.rows:,} x {group.length:,} elements)"
    name = graph.nodes[group.backbone].name
    return Decision(
        "group", name, f"leads a group of {counted(len(group.members), 'operation')}, {group.kind}", because
    )


def _subordinate(graph: Graph, group: Group, number: int) -> Decision:
    leading = graph.nodes[group.backbone].name
    return Decision(
        "group",
        graph.nodes[number].name,
        f"takes its threads from {leading}",
        "an index travels between the two without passing a broadcast",
    )


def _freed(graph: Graph, number: int, apart: bool) -> Decision:
    return Decision(
        "group",
        graph.nodes[number].name,
        "belongs to no group and is evaluated where it is read",
        "each candidate is a group of its own"
        if apart
        else "no candidate is connected with it but through a broadcast",
    )
