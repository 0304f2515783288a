"""What a stage evaluates: the expression behind it, down to candidates and to what comes from outside.

An operation between candidates is evaluated anew by everyone who needs it, and for every occurrence as an operand. A
deep expression has many paths, so occurrences of the same elements are kept once, with how often they occur.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.fusion.graph import CONSTANT, Graph
from lstmsim.model.fusion.indexing import operand_elements
from lstmsim.model.fusion.operations import MOVE, REDUCE

__all__ = ["Maps", "Occurrence", "first_read", "occurrences", "start_of"]

Ints = NDArray[np.int64]

#: Index maps that were applied: what was done to which elements -> these elements (which keeps them alive, for they are
#: known by their identity) and what became of them.
Maps = dict[tuple[object, ...], tuple[Ints, Ints]]


@dataclass(frozen=True, eq=False)
class Occurrence:
    """Elements of a node that a stage needs.

    elements: shape (n,); one for each element that the stage evaluates, in the same order.
    times: how often these very elements occur in the expression.
    """

    elements: Ints
    times: int


def start_of(graph: Graph, stage: int, elements: Ints) -> tuple[int, Ints]:
    """Where the expression of a stage begins: the operand of a reduce, else the node itself.

    graph: the graph.
    stage: number of the candidate.
    elements: elements that it evaluates: of the operand of a reduce, else of the result.
    """
    return (graph.operands[stage][0] if graph.nodes[stage].kind == REDUCE else stage), elements


def occurrences(
    graph: Graph, stage: int, elements: Ints, ends: Set[int], maps: Maps | None = None
) -> dict[int, list[Occurrence]]:
    """All that a stage evaluates or reads, by node. What is read from outside, or is one of `ends`, is read only.

    graph: the graph.
    stage: number of the candidate.
    elements: shape (n,); as in `start_of`.
    ends: nodes that are read and not evaluated: candidates, whatever is outside of the kernel. The stage's own node
        is evaluated even so.
    maps: from stage to stage the same dictionary, empty at first, so that no index map is applied twice.

    >>> from lstmsim.model.fusion.graph import Node
    >>> x, c = Node("x", "input", (), (4,)), Node("c", "tanh", ("x",), (4,))
    >>> graph = Graph("g", (x, c, Node("y", "multiply", ("c", "c"), (4,))), ("y",))
    >>> {number: each[0].times for number, each in occurrences(graph, 2, np.arange(4), {0}).items()}
    {2: 1, 1: 2, 0: 2}
    """
    first, elements = start_of(graph, stage, elements)
    maps = {} if maps is None else maps
    pending = {first: [Occurrence(elements, 1)]}
    reached: dict[int, list[Occurrence]] = {}
    while pending:
        # operands have smaller numbers: all occurrences of the largest one are known
        number = max(pending)
        reached[number] = merged = _merged(pending.pop(number))
        if number in ends and not (number == first == stage):
            continue
        for operand in graph.operands[number]:
            if operand != CONSTANT:
                pending.setdefault(operand, []).extend(
                    Occurrence(_mapped(graph, number, operand, each.elements, maps), each.times) for each in merged
                )
    return reached


def _mapped(graph: Graph, number: int, operand: int, elements: Ints, maps: Maps) -> Ints:
    """As `operand_elements`; of equal maps the same array."""
    node = graph.nodes[number]
    if node.kind != MOVE:
        return elements
    key = (node.op, node.axes, node.shape, graph.nodes[operand].shape, id(elements))
    if key not in maps:
        maps[key] = elements, operand_elements(graph, number, operand, elements)
    return maps[key][1]


def _merged(some: list[Occurrence]) -> list[Occurrence]:
    """The same occurrences, those of equal elements as one."""
    by_identity: dict[int, Occurrence] = {}
    for each in some:
        before = by_identity.get(id(each.elements))
        by_identity[id(each.elements)] = Occurrence(each.elements, each.times + (before.times if before else 0))
    if len(by_identity) == 1:
        return list(by_identity.values())
    by_content: dict[bytes, Occurrence] = {}
    for each in by_identity.values():
        key = each.elements.tobytes()
        before = by_content.get(key)
        by_content[key] = Occurrence((before or each).elements, each.times + (before.times if before else 0))
    return list(by_content.values())


def first_read(graph: Graph, stage: int, elements: Ints, target: int, ends: Set[int]) -> Ints | None:
    """The elements of a candidate that a stage reads at the first place of its expression, depth first.

    graph: the graph.
    stage, elements, ends: as in `occurrences`.
    target: one of `ends`.

    None if the stage does not read it.
    """
    first, elements = start_of(graph, stage, elements)
    leads = {target}
    for number in range(target + 1, first + 1):
        inner = number not in ends or (number == first == stage)
        if inner and leads.intersection(graph.operands[number]):
            leads.add(number)
    if first not in leads:
        return None
    number = first
    while number != target:
        operand = next(each for each in graph.operands[number] if each in leads)
        elements = operand_elements(graph, number, operand, elements)
        number = operand
    return elements
