"""The expression behind a stage, evaluated for some elements."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.fusion.graph import CONSTANT, Graph
from lstmsim.model.fusion.indexing import operand_elements
from lstmsim.model.fusion.operations import OPERATIONS
from lstmsim.model.fusion.trees import start_of

__all__ = ["evaluated_stage", "read_by"]

Ints = NDArray[np.int64]
Values = NDArray[np.float64]
#: An operand: a plain number, or a node and which of its places.
Operand = float | tuple[int, int]


@dataclass(frozen=True, eq=False)
class _Places:
    """Which elements of which nodes an expression needs.

    places: node -> arrays of its elements, all different.
    links: node and place -> its operands.
    """

    places: dict[int, list[Ints]]
    links: dict[tuple[int, int], list[Operand]]


def evaluated_stage(
    graph: Graph, stage: int, elements: Ints, ends: Set[int], read: Callable[[int, Ints], Values]
) -> Values:
    """The values that a stage computes of what it reads: of a reduce those of its operand.

    graph: the graph.
    stage: number of the candidate.
    elements: shape (n,); what it evaluates: of a reduce elements of its operand.
    ends: nodes that are read and not evaluated; the stage's own node is evaluated even so.
    read: called with each of `ends` that the stage needs, and its elements, in the order of the stage's elements.

    >>> from lstmsim.model.fusion.graph import Node
    >>> x, y = Node("x", "input", (), (4,)), Node("y", "multiply", ("x", 2.0), (4,))
    >>> graph = Graph("g", (x, y), ("y",))
    >>> evaluated_stage(graph, 1, np.arange(3), {0, 1}, lambda _, elements: elements + 0.5).tolist()
    [1.0, 3.0, 5.0]
    """
    first, elements = start_of(graph, stage, elements)
    needed = _needed(graph, stage, first, elements, ends)
    values: dict[tuple[int, int], Values] = {}
    with np.errstate(all="ignore"):
        for number in sorted(needed.places):
            for place, some in enumerate(needed.places[number]):
                key = number, place
                if key not in needed.links:
                    values[key] = read(number, some)
                    continue
                operands = [each if isinstance(each, float) else values[each] for each in needed.links[key]]
                operation = OPERATIONS.get(graph.nodes[number].op)
                # a move only says which elements; what has numbers for operands alone is one number
                computed = operands[0] if operation is None else operation.function(*operands)
                values[key] = np.broadcast_to(np.asarray(computed, np.float64), some.shape)
    return values[first, 0]


def read_by(graph: Graph, stage: int, ends: Set[int]) -> set[int]:
    """The nodes among `ends` that a stage reads.

    graph, stage, ends: as of `evaluated_stage`.
    """
    first, _ = start_of(graph, stage, np.zeros(0, np.int64))
    pending, seen = [first], set()
    while pending:
        number = pending.pop()
        if number in seen:
            continue
        seen.add(number)
        if number not in ends or number == first == stage:
            pending += [each for each in graph.operands[number] if each != CONSTANT]
    return {number for number in seen if number in ends and number != stage}


def _needed(graph: Graph, stage: int, first: int, elements: Ints, ends: Set[int]) -> _Places:
    needed = _Places({first: [elements]}, {})
    pending = {first}
    while pending:
        # operands have smaller numbers: all places of the largest one are known
        number = max(pending)
        pending.remove(number)
        if number in ends and not (number == first == stage):
            continue
        for place, some in enumerate(needed.places[number]):
            links: list[Operand] = []
            for value, operand in zip(graph.nodes[number].inputs, graph.operands[number], strict=True):
                if operand == CONSTANT:
                    links.append(float(value))
                else:
                    pending.add(operand)
                    known = needed.places.setdefault(operand, [])
                    links.append((operand, _place(known, operand_elements(graph, number, operand, some))))
            needed.links[number, place] = links
    return needed


def _place(known: list[Ints], elements: Ints) -> int:
    """Where elements stand among what is known; new ones are added."""
    for place, some in enumerate(known):
        if some is elements or np.array_equal(some, elements):
            return place
    known.append(elements)
    return len(known) - 1
