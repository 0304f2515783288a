"""In which order kernels and calls of libraries run; docs/fusion.md, end of section 10."""

from __future__ import annotations

from collections.abc import Sequence, Set
from heapq import heapify, heappop, heappush

from lstmsim.base.errors import InputError
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.operations import COMPUTE
from lstmsim.model.fusion.plan import PlannedKernel

__all__ = ["in_order", "lowest_first", "steps"]


def in_order(graph: Graph, kernels: Sequence[PlannedKernel]) -> tuple[PlannedKernel, ...]:
    """Kernels in an order that the graph allows; arguments and errors as of `steps`."""
    return tuple(step for step in steps(graph, kernels) if not isinstance(step, int))


def steps(graph: Graph, kernels: Sequence[PlannedKernel]) -> tuple[PlannedKernel | int, ...]:
    """Kernels, and numbers of compute-intensive nodes, in an order that the graph allows.

    graph: the graph.
    kernels: of all its sub-graphs.

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

    firsts: of each place; of those that could come next it is the one with the lowest.
    waits: the places that each one waits for.

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
