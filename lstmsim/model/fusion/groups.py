"""Candidates, groups that share a thread mapping, and the order of kernels; docs/fusion.md, sections 2, 3 and 10."""

from __future__ import annotations

from collections.abc import Sequence, Set
from heapq import heapify, heappop, heappush

from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.base.wording import counted
from lstmsim.model.fusion.graph import COMPUTE, CONSTANT, HEAVY, REDUCE, Graph
from lstmsim.model.fusion.plan import COLUMN, ELEMENT, ROW, Decision, Group, PlannedKernel


def outputs_of(graph: Graph, nodes: Sequence[int]) -> tuple[int, ...]:
    """What leaves a sub-graph: outputs of the graph, what others read, and what nobody reads."""
    inside = set(nodes)
    return tuple(number for number in nodes if _why_output(graph, number, inside))


def candidates_of(graph: Graph, nodes: Sequence[int]) -> tuple[Decision, ...]:
    """The candidates of a sub-graph in order, each with why it is one."""
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
    """`row` if a reduce takes the last axes of its operand, else `column`."""
    node = graph.nodes[number]
    rank = len(graph.nodes[graph.operands[number][0]].shape)
    return ROW if sorted(node.axes) == list(range(rank - len(node.axes), rank)) else COLUMN


def grouped(graph: Graph, nodes: Sequence[int], apart: bool = False) -> Grouping:
    """The groups of a sub-graph; `apart`: each candidate is a group of its own, for no index travels at one."""
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
    names = [node.name for node in graph.nodes]
    travels = "an index travels between the two without passing a broadcast"
    alone = (
        "each candidate is a group of its own" if apart else "no candidate is connected with it but through a broadcast"
    )
    decisions = (
        *chosen,
        *(cut[number] for number in sorted(cut)),
        *(_led(graph, group) for group in groups),
        *(
            Decision("group", names[number], f"takes its threads from {names[group.backbone]}", travels)
            for group in groups
            for number in group.sub_backbones
        ),
        *(
            Decision("group", names[each], "belongs to no group and is evaluated where it is read", alone)
            for each in free
        ),
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
    """Operations as a group with its backbone, without mapping; at least one of the candidates is a member."""
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
    largest = f"has the largest operand of the group ({_operand_size(graph, group.backbone):,} elements)"
    because = f"it reduces {reduce_kind(graph, number)}s and {leading}, which {largest}, reduces {group.kind}s"
    return Decision("edge", name, f"no index travels from {graph.nodes[graph.operands[number][0]].name} to it", because)


def _led(graph: Graph, group: Group) -> Decision:
    """Why an operation is the backbone of its group."""
    if group.kind == ELEMENT:
        because = f"the group has no reduce, and of its candidates it has the most elements ({group.rows:,})"
    else:
        because = f"of the reduces of the group it has the largest operand ({group.rows:,} x {group.length:,} elements)"
    chosen = f"leads a group of {counted(len(group.members), 'operation')}, {group.kind}"
    return Decision("group", graph.nodes[group.backbone].name, chosen, because)


def in_order(graph: Graph, kernels: Sequence[PlannedKernel]) -> tuple[PlannedKernel, ...]:
    """Kernels in an order that the graph allows; arguments and errors as of `steps`."""
    return tuple(step for step in steps(graph, kernels) if not isinstance(step, int))


def steps(graph: Graph, kernels: Sequence[PlannedKernel]) -> tuple[PlannedKernel | int, ...]:
    """Kernels, and numbers of compute-intensive nodes, in an order that the graph allows.

    Of what could run next it is the one with the lowest first operation, whether others evaluate that anew or not; of
    equal ones the first. `InputError` if kernels wait for each other.
    """
    calls = [number for number, node in enumerate(graph.nodes) if node.kind == COMPUTE]
    items: list[PlannedKernel | int] = [*calls, *kernels]
    nodes: list[set[int]] = [{number} for number in calls]
    nodes += [{stage.node for stage in kernel.stages} | kernel.inlined for kernel in kernels]
    firsts = [min(inside) for inside in nodes]
    maker = {number: place for place, number in enumerate(calls)}
    maker |= {stage.node: place for place, kernel in enumerate(kernels, len(calls)) for stage in kernel.stages}
    waits = [
        {maker[operand] for number in inside for operand in graph.operands[number] if operand in maker} - {place}
        for place, inside in enumerate(nodes)
    ]
    order = lowest_first(firsts, waits)
    if len(order) < len(items):
        names = [item.name for place, item in enumerate(items) if place not in order and not isinstance(item, int)]
        raise InputError(f"{graph.name}: the kernels {', '.join(names)} wait for each other: no order is possible")
    return tuple(items[place] for place in order)


def lowest_first(firsts: Sequence[int], waits: Sequence[Set[int]]) -> list[int]:
    """Places in an order in which each comes after those it waits for; what waits for itself is missing.

    >>> lowest_first([0, 1, 2], [{2}, set(), set()])
    [1, 2, 0]
    """
    open_waits = [len(each) for each in waits]
    readers: list[list[int]] = [[] for _ in waits]
    for place, some in enumerate(waits):
        for each in some:
            readers[each].append(place)
    ready = [(firsts[place], place) for place, count in enumerate(open_waits) if not count]
    heapify(ready)
    order = []
    while ready:
        _, place = heappop(ready)
        order.append(place)
        for reader in readers[place]:
            open_waits[reader] -= 1
            if not open_waits[reader]:
                heappush(ready, (firsts[reader], reader))
    return order
