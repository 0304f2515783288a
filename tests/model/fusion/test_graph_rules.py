"""Malformed graphs: each rule has its sentence, with the place."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lstmsim.base.bounds import MAX_GRAPH_NODES
from lstmsim.base.errors import InputError
from lstmsim.model.fusion.graph import Graph, Node, mistaken_name
from lstmsim.model.fusion.graph_rules import checked_graph, mistakes, remarks

X = Node("x", "input", (), (2, 3))
B = Node("b", "input", (), (3, 4))


def reported(*nodes: Node, outputs: tuple[str, ...] | None = None) -> list[tuple[str, str]]:
    every = (X, B, *nodes)
    return mistakes(Graph("g", every, outputs if outputs is not None else (every[-1].name,)))


RIGHT = [
    Node("y", "add", ("x", 1.0), (2, 3)),
    Node("y", "maximum", ("x", -math.inf), (2, 3)),
    Node("y", "select", ("x", 0.0, "x"), (2, 3)),
    Node("y", "matmul", ("x", "b"), (2, 4)),
    Node("y", "reduce_max", ("x",), (), (0, 1)),
    Node("y", "broadcast", ("x",), (3, 5, 2), (2, 0)),
    Node("y", "broadcast", ("x",), (5, 2, 3), (1, 2)),
    Node("y", "reshape", ("x",), (6, 1)),
    Node("y", "transpose", ("x",), (3, 2), (1, 0)),
    Node("y", "slice", ("x",), (1, 2), (1, 1)),
    Node("y", "gather", ("x", 3.0), (7,)),
    Node("y", "my_own_call", (), (7,)),
]


@pytest.mark.parametrize("node", RIGHT, ids=lambda node: node.op)
def test_right_nodes(node: Node) -> None:
    assert reported(node) == []


WRONG = [
    (Node("y", "tanhh", ("x",), (2, 3)), "nodes.y.op", "no operation is called 'tanhh'; did you mean 'tanh'?"),
    (Node("y", "", ("x",), (2, 3)), "nodes.y.op", "must be the name of an operation"),
    (Node("x", "tanh", ("b",), (3, 4)), "nodes.x.name", "'x' is taken by node 0"),
    (Node(" y", "tanh", ("x",), (2, 3)), "nodes. y.name", "must be printable text"),
    (Node("y", "tanh", ("z",), (2, 3)), "nodes.y.inputs.0", "no node is called 'z'"),
    (Node("y", "tanh", ("xx",), (2, 3)), "nodes.y.inputs.0", "did you mean 'x'?"),
    (Node("y", "tanh", ("y",), (2, 3)), "nodes.y.inputs.0", "'y' reads itself"),
    (Node("y", "tanh", ("x", "x"), (2, 3)), "nodes.y.inputs", "'tanh' takes 1 operand, got 2"),
    (Node("y", "add", ("x",), (2, 3)), "nodes.y.inputs", "'add' takes 2 operands, got 1"),
    (Node("y", "input", ("x",), (2, 3)), "nodes.y.inputs", "'input' takes 0 operands, got 1"),
    (Node("y", "reduce_sum", ("x", "b"), (2,), (1,)), "nodes.y.inputs", "'reduce_sum' takes 1 operand, got 2"),
    (Node("y", "add", (1.0, 2.0), (2, 3)), "nodes.y.inputs", "must have a node among them"),
    (Node("y", "add", ("x", math.nan), (2, 3)), "nodes.y.inputs.1", "got not-a-number"),
    (Node("y", "add", ("x", 1e39), (2, 3)), "nodes.y.inputs.1", "must be at most 3.40282e+38"),
    (Node("y", "reduce_sum", (1.0,), (), (0,)), "nodes.y.inputs.0", "takes no plain numbers"),
    (Node("y", "matmul", ("x", 2.0), (2, 4)), "nodes.y.inputs.1", "takes no plain numbers"),
    (Node("y", "matmul", ("b", "x"), (3, 3)), "nodes.y.inputs.1", "must have 4 rows, as many as 'b' [3, 4] has"),
    (Node("y", "matmul", ("x", "b"), (4, 2)), "nodes.y.shape", "must be [2, 4], because 'x' [2, 3] is multiplied by"),
    (Node("y", "add", ("x", "b"), (2, 3)), "nodes.y.shape", "must be that of its operand 'b' [3, 4], got [2, 3]"),
    (Node("y", "tanh", ("x",), (2, 3), (1,)), "nodes.y.axes", "'tanh' has no axes"),
    (Node("y", "tanh", ("x",), (2, 0)), "nodes.y.shape.1", "must be a whole number of at least 1, got 0"),
    (Node("y", "input", (), (2, -3)), "nodes.y.shape.1", "must be a whole number of at least 1, got -3"),
    (Node("y", "input", (), (1 << 20, 1 << 20)), "nodes.y.shape", "must be at most 268435456 elements"),
    (Node("y", "input", (), (1,) * 17), "nodes.y.shape", "must be at most 16 sizes, got 17"),
    (Node("y", "reduce_sum", ("x",), (2, 3)), "nodes.y.axes", "must name at least 1 axis that vanishes"),
    (Node("y", "reduce_sum", ("x",), (2,), (2,)), "nodes.y.axes.0", "must be from 0 to 1, the axes of 'x' [2, 3]"),
    (Node("y", "reduce_sum", ("x",), (2,), (-1,)), "nodes.y.axes.0", "must be from 0 to 1"),
    (Node("y", "reduce_sum", ("x",), (), (1, 0)), "nodes.y.axes", "must be ascending, got [1, 0]"),
    (Node("y", "reduce_sum", ("x",), (), (1, 1)), "nodes.y.axes.1", "axis 1 stands there twice"),
    (Node("y", "reduce_sum", ("x",), (2, 1), (1,)), "nodes.y.shape", "must be [2], because 'x' [2, 3] loses axes [1]"),
    (Node("y", "broadcast", ("x",), (5, 2, 3), (1,)), "nodes.y.dims", "an axis of the result for each axis of 'x'"),
    (
        Node("y", "broadcast", ("x",), (5, 2, 3), (1, 3)),
        "nodes.y.dims.1",
        "must be from 0 to 2, the axes of the result",
    ),
    (Node("y", "broadcast", ("x",), (5, 2, 3), (1, 1)), "nodes.y.dims.1", "axis 1 stands there twice"),
    (
        Node("y", "broadcast", ("x",), (5, 2, 4), (1, 2)),
        "nodes.y.shape.2",
        "must be 3, the size of axis 1 of 'x' [2, 3]",
    ),
    (Node("y", "reshape", ("x",), (5,)), "nodes.y.shape", "must have the 6 elements of 'x' [2, 3], got [5]: 5"),
    (Node("y", "reshape", ("x",), (6,), (0,)), "nodes.y.axes", "'reshape' has no axes"),
    (Node("y", "transpose", ("x",), (3, 2), (1,)), "nodes.y.perm", "must name each axis of 'x' [2, 3] once, got [1]"),
    (Node("y", "transpose", ("x",), (3, 2), (1, 1)), "nodes.y.perm.1", "axis 1 stands there twice"),
    (Node("y", "transpose", ("x",), (2, 3), (1, 0)), "nodes.y.shape", "because 'x' is [2, 3] and perm is [1, 0]"),
    (Node("y", "slice", ("x",), (1, 2), (1,)), "nodes.y.start", "must have a place for each axis of 'x' [2, 3]"),
    (Node("y", "slice", ("x",), (2,), (0, 0)), "nodes.y.shape", "must have a size for each axis of 'x' [2, 3]"),
    (Node("y", "slice", ("x",), (1, 2), (-1, 0)), "nodes.y.start.0", "must be at least 0, got -1"),
    (Node("y", "slice", ("x",), (1, 2), (0, 2)), "nodes.y.start.1", "must be at most 1: 2 of the 3 elements of axis 1"),
    (Node("y", "slice", ("x",), (1, 4), (0, 0)), "nodes.y.shape.1", "must be at most 3, the size of axis 1"),
    (Node("y", "slice", ("x",), (1, 2), (0, True)), "nodes.y.start.1", "must be a whole number, got true"),
]


@pytest.mark.parametrize(
    ("node", "place", "sentence"), WRONG, ids=lambda each: each.op if isinstance(each, Node) else ""
)
def test_wrong_nodes(node: Node, place: str, sentence: str) -> None:
    (only,) = reported(node)
    assert only[0] == place
    assert sentence in only[1]


def test_order_and_circles_are_told_apart() -> None:
    later = reported(Node("y", "tanh", ("z",), (2, 3)), Node("z", "tanh", ("x",), (2, 3)))
    assert later == [("nodes.y.inputs.0", "'z' stands after it: a node comes after its operands")]
    circle = reported(*(Node(f"n{at}", "tanh", (f"n{(at + 1) % 3}",), (2, 3)) for at in range(3)))
    text = "the nodes read each other in a circle: 'n0' -> 'n2' -> 'n1' -> 'n0'"
    assert [each[0] for each in circle] == ["nodes.n0.inputs.0", "nodes.n1.inputs.0"]
    assert circle[0][1] in (text, "the nodes read each other in a circle: 'n0' -> 'n1' -> 'n2' -> 'n0'")


def test_outputs_and_numbers_of_nodes() -> None:
    assert reported(outputs=()) == [("outputs", "must be a list of at least 1 node, got none")]
    assert reported(outputs=("x", "x")) == [("outputs.1", "'x' stands there twice")]
    assert reported(outputs=("q",)) == [("outputs.0", "no node is called 'q'")]
    assert mistakes(Graph("g", (), ("x",))) == [("nodes", "must be a list of at least 1 node, got none")]
    assert mistakes(Graph("g", (X,) * (MAX_GRAPH_NODES + 1), ("x",)))[0][0] == "nodes"


def test_all_mistakes_are_told_at_once_and_as_an_error() -> None:
    wrong = Graph("g", (X, Node("y", "tanh", ("z",), (2, 3)), Node("w", "add", ("x", 1.0), (2, 2))), ("y",))
    with pytest.raises(InputError) as caught:
        checked_graph(wrong)
    assert [each.location for each in caught.value.mistakes] == ["nodes.y.inputs.0", "nodes.w.shape"]
    fine = Graph("g", (X,), ("x",))
    assert checked_graph(fine) is fine


def test_calls_of_libraries_are_no_misspelled_operations() -> None:
    calls = ("matmul", "conv", "gather", "concat", "pad", "lstm", "gru", "nccl_all_reduce", "fft", "sort")
    assert [mistaken_name(op) for op in calls] == [""] * len(calls)
    assert "'reduce_sum'" in mistaken_name("reduce_sums")
    assert "'sigmoid'" in mistaken_name("Sigmoid")
    assert "'multiply'" in mistaken_name("Mul")


def test_remarks() -> None:
    idle = Node("t", "tanh", ("x",), (2, 3))
    said = remarks(Graph("g", (X, B, idle, Node("y", "fft", ("x",), (2, 3))), ("y",)))
    assert said[0].startswith("the operation fft ('y') is a call of a library")
    assert said[1] == "'b' and 't': read by nobody and no output"
    assert remarks(Graph("g", (X,), ("x",))) == ()


#: Without the types that a checker would ask for.
ANY_NODE: Any = Node
ANY_GRAPH: Any = Graph


@pytest.mark.parametrize(
    ("graph", "place", "sentence"),
    [
        (
            ANY_GRAPH("g", (X, ANY_NODE("y", "tanh", ("x",), [2, 3])), ("y",)),
            "nodes.1.shape",
            "must be a tuple, got a list",
        ),
        (ANY_GRAPH("g", (X, ANY_NODE("y", "tanh", "x", (2, 3))), ("y",)), "nodes.1.inputs", "must be a tuple, got 'x'"),
        (ANY_GRAPH("g", (X, ANY_NODE(3, "tanh", ("x",), (2, 3))), ("y",)), "nodes.1.name", "must be text, got 3"),
        (ANY_GRAPH("g", ("x",), ("x",)), "nodes.0", "must be a Node, got 'x'"),
        (ANY_GRAPH("g", None, None), "nodes", "must be a tuple, got nothing"),
        (ANY_GRAPH(3, (X,), ("x",)), "name", "must be text, got 3"),
    ],
)
def test_wrong_types_are_told(graph: Graph, place: str, sentence: str) -> None:
    assert mistakes(graph)[0] == (place, sentence)
