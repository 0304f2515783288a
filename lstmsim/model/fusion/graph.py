"""Graphs of operations on tensors: operations, nodes, and how a graph is written down. graph_rules has the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.base.wording import nearest

Values = NDArray[np.float64]

#: Classes of operations. What is not in `OPERATIONS` is `COMPUTE`, a call of a library.
INPUT, COMPUTE, CHEAP, HEAVY, MOVE, REDUCE = "input", "compute", "cheap", "heavy", "move", "reduce"


@record
class Operation:
    """An operation on elements, `CHEAP` or `HEAVY`: how many operands it takes, and what it computes of float64.

    fma, sfu: instructions of a warp, multiply-adds and functions; the functions come first.
    """

    kind: str
    operands: int
    function: Callable[..., Any]
    fma: int = 0
    sfu: int = 0


def _sigmoid(x: Values) -> Values:
    # exp of what is negative only: it cannot overflow
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, e) / (1.0 + e)


#: Operations on elements by name; docs/fusion.md, sections 1 and 10.
OPERATIONS: Mapping[str, Operation] = {
    "add": Operation(CHEAP, 2, np.add, 1),
    "subtract": Operation(CHEAP, 2, np.subtract, 1),
    "multiply": Operation(CHEAP, 2, np.multiply, 1),
    "maximum": Operation(CHEAP, 2, np.maximum, 1),
    "minimum": Operation(CHEAP, 2, np.minimum, 1),
    "negate": Operation(CHEAP, 1, np.negative, 1),
    "abs": Operation(CHEAP, 1, np.abs, 1),
    "copy": Operation(CHEAP, 1, np.copy, 1),
    "greater": Operation(CHEAP, 2, lambda a, b: np.greater(a, b).astype(np.float64), 1),
    "select": Operation(CHEAP, 3, lambda condition, a, b: np.where(condition != 0, a, b), 1),
    "round": Operation(CHEAP, 1, np.rint, 1),
    "tanh": Operation(HEAVY, 1, np.tanh, 0, 1),
    "sigmoid": Operation(HEAVY, 1, _sigmoid, 0, 1),
    "exp": Operation(HEAVY, 1, np.exp, 0, 1),
    "log": Operation(HEAVY, 1, np.log, 0, 1),
    "power": Operation(HEAVY, 2, np.power, 0, 2),
    "divide": Operation(HEAVY, 2, np.divide, 1, 1),
    "sqrt": Operation(HEAVY, 1, np.sqrt, 0, 1),
    "rsqrt": Operation(HEAVY, 1, lambda x: 1.0 / np.sqrt(x), 0, 1),
    "reciprocal": Operation(HEAVY, 1, lambda x: 1.0 / x, 0, 1),
}

#: Operations that move elements.
MOVES = ("broadcast", "reshape", "transpose", "slice")

#: Operations that reduce axes, with the function that joins two values.
REDUCES: Mapping[str, np.ufunc] = {"reduce_sum": np.add, "reduce_max": np.maximum, "reduce_min": np.minimum}


def class_of(operation: str) -> str:
    """The class of an operation.

    >>> class_of("tanh"), class_of("slice"), class_of("gather")
    ('heavy', 'move', 'compute')
    """
    if operation in OPERATIONS:
        return OPERATIONS[operation].kind
    if operation in REDUCES:
        return REDUCE
    if operation in MOVES:
        return MOVE
    return INPUT if operation == INPUT else COMPUTE


#: Calls of libraries that are well known by these names, though some are spelled like an operation.
_LIBRARY = frozenset(
    [
        "matmul",
        "conv",
        "gemm",
        "lstm",
        "gru",
        "rnn",
        "gather",
        "scatter",
        "concat",
        "pad",
        "where",
        "argmax",
        "argmin",
        "topk",
        "einsum",
        "embedding",
        "lookup",
        "cumsum",
        "softmax",
        "attention",
        "layer_norm",
        "batch_norm",
        "cast",
        "sort",
    ]
)
#: What other libraries call operations, where it is not nearly the same word.
_OTHERWISE: Mapping[str, str] = {
    "mul": "multiply",
    "sub": "subtract",
    "div": "divide",
    "max": "maximum",
    "min": "minimum",
    "pow": "power",
    "neg": "negate",
    "sum": "reduce_sum",
    "expand": "broadcast",
    "dot": "matmul",
    "parameter": "input",
}


def mistaken_name(op: str) -> str:
    """What a name is nearly that of, as `; did you mean 'tanh'?`; empty for a library call or a known operation."""
    known = [INPUT, "matmul", "conv", *OPERATIONS, *MOVES, *REDUCES]
    if op in known or op in _LIBRARY:
        return ""
    if op.casefold() in _OTHERWISE:
        return f"; did you mean {_OTHERWISE[op.casefold()]!r}?"
    hint = nearest(op, known)
    # names that are only half alike are calls of a library: the hint's cutoff is too low to refuse them
    return hint if hint and SequenceMatcher(None, op[:200].casefold(), hint.split("'")[1]).ratio() >= 0.75 else ""


#: In place of the number of a node: the operand is a plain number.
CONSTANT = -1


@record
class Node:
    """One operation and its result.

    name: of the result.
    op: the operation (`lstmsim.model.fusion.graph`), or `input`; any other name is a call of a library.
    inputs: names of nodes, or plain numbers.
    shape: of the result; () is a single number.
    axes: of a reduce: the axes that vanish, ascending; of a broadcast: for each axis of the operand its axis in the
        result (`dims`); of a transpose: for each axis of the result its axis in the operand (`perm`); of a slice: for
        each axis where it starts (`start`; the shape is its size); else empty.
    """

    name: str
    op: str
    inputs: tuple[str | float, ...]
    shape: tuple[int, ...]
    axes: tuple[int, ...] = ()

    @cached_property
    def size(self) -> int:
        """How many elements the result has."""
        return prod(self.shape)

    @cached_property
    def kind(self) -> str:
        """The class of its operation."""
        return class_of(self.op)

    @property
    def intensive(self) -> bool:
        """Whether it is memory-intensive: what fusion is about."""
        return self.kind in (CHEAP, HEAVY, MOVE, REDUCE)


@record
class Graph:
    """Nodes in an order in which each one comes after its operands. A node's number is its place.

    name: of the graph.
    nodes: the nodes.
    outputs: names of the nodes that are wanted.
    about: what it is, where it is from, what was left out; sentences.
    """

    name: str
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    about: tuple[str, ...] = ()

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each node by its name."""
        return {node.name: number for number, node in enumerate(self.nodes)}

    @cached_property
    def operands(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of each node's operands, `CONSTANT` for a plain number."""
        known = self.numbers
        return tuple(
            tuple(known[each] if isinstance(each, str) else CONSTANT for each in node.inputs) for node in self.nodes
        )

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the nodes that read each node, ascending, each once."""
        lists: list[list[int]] = [[] for _ in self.nodes]
        for number, operands in enumerate(self.operands):
            for operand in dict.fromkeys(operands):
                if operand != CONSTANT:
                    lists[operand].append(number)
        return tuple(map(tuple, lists))

    @cached_property
    def output_numbers(self) -> frozenset[int]:
        """The numbers of the outputs."""
        return frozenset(self.numbers[name] for name in self.outputs)


class Sketch:
    """A graph in the making. Each method adds a node and returns its name, so that it can be an operand."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    def graph(self, name: str, outputs: Iterable[str], about: Sequence[str] = ()) -> Graph:
        """The graph; name, outputs, about: as of `Graph`."""
        return Graph(name, tuple(self._nodes.values()), tuple(outputs), tuple(about))

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a node."""
        return self._nodes[name].shape

    def knows(self, name: str) -> bool:
        """Whether there is a node of that name."""
        return name in self._nodes

    def input(self, name: str, shape: Iterable[int]) -> str:
        """Something from outside: name, and its shape."""
        return self._add(name, "input", (), tuple(shape))

    def element(self, op: str, name: str, *operands: str | float) -> str:
        """An operation on elements; the operands that are names have one shape, that of the result."""
        named = next(each for each in operands if isinstance(each, str))
        return self._add(name, op, operands, self.shape(named))

    def matmul(self, name: str, a: str, b: str) -> str:
        """The matrix product of two matrices."""
        return self._add(name, "matmul", (a, b), (self.shape(a)[0], self.shape(b)[1]))

    def reduce(self, op: str, name: str, operand: str, axes: Iterable[int]) -> str:
        """A reduce over axes of its operand, ascending."""
        gone = tuple(axes)
        shape = tuple(size for axis, size in enumerate(self.shape(operand)) if axis not in gone)
        return self._add(name, op, (operand,), shape, gone)

    def broadcast(self, name: str, operand: str, shape: Iterable[int], dims: Iterable[int]) -> str:
        """An operand repeated: shape is that of the result, dims has the result's axis of each axis of the operand."""
        return self._add(name, "broadcast", (operand,), tuple(shape), tuple(dims))

    def reshape(self, name: str, operand: str, shape: Iterable[int]) -> str:
        """The same elements in another shape."""
        return self._add(name, "reshape", (operand,), tuple(shape))

    def transpose(self, name: str, operand: str, perm: Iterable[int]) -> str:
        """Axes in another order: perm has the operand's axis of each axis of the result."""
        axes = tuple(perm)
        return self._add(name, "transpose", (operand,), tuple(self.shape(operand)[axis] for axis in axes), axes)

    def slice(self, name: str, operand: str, start: Iterable[int], size: Iterable[int]) -> str:
        """A part of the operand: along each axis where it starts, and its size."""
        return self._add(name, "slice", (operand,), tuple(size), tuple(start))

    def _add(
        self, name: str, op: str, operands: tuple[str | float, ...], shape: tuple[int, ...], axes: tuple[int, ...] = ()
    ) -> str:
        assert name not in self._nodes, f"{name} is there already"
        self._nodes[name] = Node(name, op, operands, shape, axes)
        return name
