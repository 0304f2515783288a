"""Index maps between row-major elements of tensors, and what a graph computes by numpy alone."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.fusion.graph import COMPUTE, CONSTANT, INPUT, OPERATIONS, REDUCES, Graph, Node

Ints = NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.float64)

#: A table of a whole map is made if one of so many elements is asked for.
_TABLE = 4


def operand_elements(graph: Graph, number: int, operand: int, elements: Ints) -> Ints:
    """The elements of an operand that elements of a node need. A map that changes nothing returns the same array.

    >>> nodes = (Node("x", "input", (), (3,)), Node("y", "broadcast", ("x",), (2, 3), (1,)))
    >>> operand_elements(Graph("g", nodes, ("y",)), 1, 0, np.array([0, 4])).tolist()
    [0, 1]
    """
    node, source = graph.nodes[number], graph.nodes[operand]
    if node.op not in ("broadcast", "transpose", "slice"):
        return elements
    if _TABLE * elements.size >= node.size:
        # a table of the whole map is made by views, without a division for each axis of each element
        table = moved(node.op, np.arange(source.size).reshape(source.shape), node.shape, node.axes)
        return np.asarray(table.reshape(-1)[elements])
    axes = np.unravel_index(elements, node.shape) if node.shape else ()
    if node.op == "broadcast":
        wanted = [axes[axis] for axis in node.axes]
    elif node.op == "transpose":
        back = np.argsort(node.axes)
        wanted = [axes[axis] for axis in back]
    else:
        wanted = [axis + start for axis, start in zip(axes, node.axes, strict=True)]
    return _flat(wanted, source.shape, elements)


def reduced_elements(graph: Graph, number: int, elements: Ints, position: Ints) -> Ints:
    """The element of a reduce's operand at a position of a result.

    >>> nodes = (Node("x", "input", (), (5, 4, 6)), Node("y", "reduce_sum", ("x",), (5, 6), (1,)))
    >>> reduced_elements(Graph("g", nodes, ("y",)), 1, np.array([7]), np.array([0, 1])).tolist()
    [25, 31]
    """
    node, source = graph.nodes[number], graph.nodes[graph.operands[number][0]]
    kept, gone = _axes(node, source)
    strides = _strides(source.shape)
    base = _spread(elements, [source.shape[axis] for axis in kept], [strides[axis] for axis in kept])
    return base + _spread(position, [source.shape[axis] for axis in gone], [strides[axis] for axis in gone])


def positions(graph: Graph, number: int, elements: Ints) -> tuple[Ints, Ints]:
    """The result and the position along the reduced axes of elements of a reduce's operand.

    >>> nodes = (Node("x", "input", (), (5, 4, 6)), Node("y", "reduce_sum", ("x",), (5, 6), (1,)))
    >>> [each.tolist() for each in positions(Graph("g", nodes, ("y",)), 1, np.array([25, 31]))]
    [[7, 7], [0, 1]]
    """
    node, source = graph.nodes[number], graph.nodes[graph.operands[number][0]]
    kept, gone = _axes(node, source)
    places = np.unravel_index(elements, source.shape)
    return tuple(  # type: ignore[return-value]
        _flat([places[axis] for axis in some], tuple(source.shape[axis] for axis in some), elements)
        for some in (kept, gone)
    )


def ranks(block: NDArray[np.int32]) -> Ints:
    """The place of each element among those of its block.

    >>> ranks(np.array([1, 0, 1, 1], np.int32)).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(block, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(block))]) if block.size else np.zeros(1, np.int64)
    rank = np.empty(block.size, np.int64)
    rank[order] = np.arange(block.size) - starts[block[order]]
    return rank


def _axes(node: Node, source: Node) -> tuple[list[int], list[int]]:
    return [axis for axis in range(len(source.shape)) if axis not in node.axes], list(node.axes)


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _spread(elements: Ints, sizes: list[int], strides: list[int]) -> Ints:
    """Row-major numbers in a tensor of some sizes, as addresses with other strides."""
    address = np.zeros_like(elements)
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        elements, place = np.divmod(elements, size)
        address = address + place * stride
    return address


def _flat(places: list[Ints], shape: tuple[int, ...], like: Ints) -> Ints:
    address = np.zeros(np.shape(like), np.int64)
    for place, size in zip(places, shape, strict=True):
        address = address * size + place
    return address


def moved(op: str, value: NDArray[Number], shape: tuple[int, ...], axes: tuple[int, ...]) -> NDArray[Number]:
    """What an operation that moves elements makes of a tensor.

    >>> moved("broadcast", np.array([1, 2]), (2, 3), (0,)).tolist()
    [[1, 1, 1], [2, 2, 2]]
    """
    if op == "reshape":
        return value.reshape(shape)
    if op == "transpose":
        return value.transpose(axes)
    if op == "slice":
        return value[tuple(slice(start, start + size) for start, size in zip(axes, shape, strict=True))]
    # numpy wants the operand's axes ascending in the result
    order = np.argsort(axes)
    sizes = [1] * len(shape)
    for axis in axes:
        sizes[axis] = shape[axis]
    return np.broadcast_to(value.transpose(order).reshape(sizes), shape)


Values = NDArray[np.float64]


def drawn_inputs(graph: Graph, seed: int = 0) -> dict[int, Values]:
    """Numbers for all inputs, from 0.25 to 1.75, so that logarithms and roots are there."""
    rng = np.random.default_rng(seed)
    return {
        number: rng.uniform(0.25, 1.75, node.shape) for number, node in enumerate(graph.nodes) if node.kind == INPUT
    }


def library_call(graph: Graph, number: int, values: Mapping[int, Values]) -> Values:
    """What a compute-intensive node gives: a matrix product, or drawn numbers where the call is not known here."""
    node = graph.nodes[number]
    if node.op == "matmul":
        a, b = (values[operand] for operand in graph.operands[number])
        return np.asarray(np.matmul(a, b))
    return np.random.default_rng(number).uniform(0.25, 1.75, node.shape)


def evaluated(graph: Graph, inputs: Mapping[int, Values]) -> list[Values]:
    """The value of every node, by the numbers of the inputs."""
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
