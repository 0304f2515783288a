"""Shapes followed through the operations around weights, compared with onnx's own shape inference."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from lstmsim.importers.onnx.graph import open_scopes
from lstmsim.importers.onnx.shapes import ComputedShapes, Shapes


def whole(name: str, *numbers: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(numbers, dtype=np.int64), name)


def scalar(name: str, number: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(number, dtype=np.int64), name)


WEIGHT = helper.make_tensor("w", TensorProto.FLOAT, [6, 1, 4], [0.0] * 24)
CASES: dict[str, tuple[list[Any], list[Any]]] = {
    "transpose": ([helper.make_node("Transpose", ["w"], ["y"], perm=[2, 0, 1])], []),
    "transpose by default": ([helper.make_node("Transpose", ["w"], ["y"])], []),
    "unsqueeze": ([helper.make_node("Unsqueeze", ["w", "axes"], ["y"])], [whole("axes", 0, -1)]),
    "squeeze": ([helper.make_node("Squeeze", ["w", "axes"], ["y"])], [whole("axes", -2)]),
    "squeeze all": ([helper.make_node("Squeeze", ["w"], ["y"])], []),
    "slice": (
        [helper.make_node("Slice", ["w", "from", "to", "axes"], ["y"])],
        [whole("from", 1), whole("to", -2), whole("axes", 0)],
    ),
    "slice backwards": (
        [helper.make_node("Slice", ["w", "from", "to", "axes", "by"], ["y"])],
        [whole("from", -1, 0), whole("to", -(2**63), 2**63 - 1), whole("axes", 0, 2), whole("by", -2, 3)],
    ),
    "reshape": ([helper.make_node("Reshape", ["w", "shape"], ["y"])], [whole("shape", 0, -1, 2)]),
    "gather one": ([helper.make_node("Gather", ["w", "at"], ["y"], axis=1)], [scalar("at", 0)]),
    "gather some": ([helper.make_node("Gather", ["w", "at"], ["y"], axis=-1)], [whole("at", 3, 1)]),
    "split": ([helper.make_node("Split", ["w"], ["x", "y"], axis=0, num_outputs=2)], []),
    "uneven split": ([helper.make_node("Split", ["w", "parts"], ["x", "y"])], [whole("parts", 1, 5)]),
    "concat": ([helper.make_node("Concat", ["w", "w", "w"], ["y"], axis=-1)], []),
    "expand": ([helper.make_node("Expand", ["w", "shape"], ["y"])], [whole("shape", 2, 1, 5, 1)]),
    "shape of shape": (
        [
            helper.make_node("Shape", ["w"], ["s"]),
            helper.make_node("Gather", ["s", "at"], ["size"], axis=0),
            helper.make_node("Unsqueeze", ["size", "zero"], ["sizes"]),
            helper.make_node("Concat", ["sizes", "zero", "sizes"], ["all"], axis=0),
            helper.make_node("ConstantOfShape", ["all"], ["y"]),
        ],
        [scalar("at", 2), whole("zero", 0)],
    ),
    "cast and identity": (
        [helper.make_node("Cast", ["w"], ["i"], to=TensorProto.DOUBLE), helper.make_node("Identity", ["i"], ["y"])],
        [],
    ),
    "constants": (
        [helper.make_node("Constant", [], ["n"], value_ints=[4, 6]), helper.make_node("Reshape", ["w", "n"], ["y"])],
        [],
    ),
}


def model_of(nodes: list[Any], tensors: list[Any]) -> onnx.ModelProto:
    output = helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)
    graph = helper.make_graph(nodes, "g", [], [output], initializer=[WEIGHT, *tensors])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def inferred(model: onnx.ModelProto) -> tuple[int, ...]:
    output = onnx.shape_inference.infer_shapes(model, data_prop=True, strict_mode=True).graph.output[0]
    return tuple(dim.dim_value for dim in output.type.tensor_type.shape.dim)


@pytest.mark.parametrize("case", CASES)
def test_followed_shapes_are_those_of_onnx(case: str) -> None:
    model = model_of(*CASES[case])
    assert Shapes().of(open_scopes(model)[0], "y") == inferred(model)


@given(st.lists(st.integers(-9, 9), min_size=3, max_size=3), st.lists(st.integers(-9, 9), min_size=3, max_size=3))
def test_slices_are_those_of_onnx(starts: list[int], ends: list[int]) -> None:
    nodes = [helper.make_node("Slice", ["w", "from", "to"], ["y"])]
    model = model_of(nodes, [whole("from", *starts), whole("to", *ends)])
    assert Shapes().of(open_scopes(model)[0], "y") == inferred(model)


def test_old_operators_take_axes_as_attributes() -> None:
    nodes = [
        helper.make_node("Slice", ["w"], ["s"], axes=[0], starts=[0], ends=[2]),
        helper.make_node("Squeeze", ["s"], ["q"], axes=[1]),
        helper.make_node("Unsqueeze", ["q"], ["y"], axes=[0]),
    ]
    assert Shapes().of(open_scopes(model_of(nodes, []))[0], "y") == (1, 2, 4)


def test_what_cannot_be_followed_is_unknown_and_ends() -> None:
    nodes = [
        helper.make_node("Identity", ["b"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("MatMul", ["w", "w"], ["y"]),
        *(helper.make_node("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], axis=0) for i in range(5000)),
    ]
    scope = open_scopes(model_of(nodes, [whole("c0", 1)]))[0]
    shapes = Shapes()
    assert [shapes.of(scope, name) for name in ("a", "y", "nowhere", "")] == [None] * 4
    assert shapes.of(scope, "c30") == (2**30,)
    assert shapes.of(scope, "c80") == (None,)
    assert shapes.of(scope, "c5000") is None
    assert shapes.numbers(scope, "c90") is None


def test_whole_numbers_are_divided_towards_zero() -> None:
    """As ONNX's Div says; Python's // rounds down."""
    nodes = [helper.make_node("Div", ["a", "b"], ["y"])]
    initial = [whole("a", 7, -7, 7, -7, 6), whole("b", 2, 2, -2, -2, -3)]
    scope = open_scopes(model_of(nodes, initial))[0]
    assert ComputedShapes(18).numbers(scope, "y") == (3, -3, -3, 3, -2)


def test_a_value_of_an_if_has_what_its_branches_share() -> None:
    def branch(name: str, columns: int) -> onnx.GraphProto:
        node = helper.make_node(
            "Constant", [], [name], value=helper.make_tensor("t", 1, [2, columns], [0.0] * 2 * columns)
        )
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, 1, None)])

    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("p", 3), else_branch=branch("q", 4))
    assert Shapes().of(open_scopes(model_of([node], []))[0], "y") == (2, None)
