"""What a graph computes, by numpy alone: the truth that kernels are compared with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.fusion.graph import CONSTANT, Graph
from lstmsim.model.fusion.indexing import moved
from lstmsim.model.fusion.operations import COMPUTE, INPUT, OPERATIONS, REDUCES

__all__ = ["drawn_inputs", "evaluated", "library_call"]

Values = NDArray[np.float64]


def drawn_inputs(graph: Graph, seed: int = 0) -> dict[int, Values]:
    """Numbers for all inputs, from 0.25 to 1.75, so that logarithms and roots are there.

    graph: the graph.
    seed: of the numbers.
    """
    rng = np.random.default_rng(seed)
    return {
        number: rng.uniform(0.25, 1.75, node.shape) for number, node in enumerate(graph.nodes) if node.kind == INPUT
    }


def library_call(graph: Graph, number: int, values: Mapping[int, Values]) -> Values:
    """What a compute-intensive node gives: a matrix product, or drawn numbers where the call is not known here.

    graph: the graph.
    number: of the node.
    values: of its operands.
    """
    node = graph.nodes[number]
    if node.op == "matmul":
        a, b = (values[operand] for operand in graph.operands[number])
        return np.asarray(np.matmul(a, b))
    return np.random.default_rng(number).uniform(0.25, 1.75, node.shape)


def evaluated(graph: Graph, inputs: Mapping[int, Values]) -> list[Values]:
    """The value of every node.

    graph: the graph.
    inputs: number of each input -> its value.

    >>> from lstmsim.model.fusion.graph import Node
    >>> nodes = (Node("x", "input", (), (2, 3)), Node("y", "reduce_sum", ("x",), (2,), (1,)))
    >>> evaluated(Graph("g", nodes, ("y",)), {0: np.ones((2, 3))})[1].tolist()
    [3.0, 3.0]
    """
    values: dict[int, Values] = {}
    with np.errstate(all="ignore"):
        for number, node in enumerate(graph.nodes):
            operands = [
                values[place] if place != CONSTANT else np.asarray(each, np.float64)
                for each, place in zip(node.inputs, graph.operands[number], strict=True)
            ]
            if node.kind == INPUT:
                values[number] = np.asarray(inputs[number], np.float64).reshape(node.shape)
            elif node.kind == COMPUTE:
                values[number] = library_call(graph, number, values)
            elif node.op in REDUCES:
                values[number] = REDUCES[node.op].reduce(operands[0], axis=node.axes)
            elif node.op in OPERATIONS:
                values[number] = np.asarray(OPERATIONS[node.op].function(*operands))
            else:
                values[number] = moved(node.op, operands[0], node.shape, node.axes)
    return [values[number] for number in range(len(graph.nodes))]
