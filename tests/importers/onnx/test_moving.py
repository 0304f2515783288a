"""Constants of a graph: a value that is read, and texts, which are none."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from lstmsim.importers.onnx.operations.drawing import FLOAT, Arguments, UnreadableError
from lstmsim.importers.onnx.operations.moving import constant_node
from lstmsim.importers.onnx.operations.reader import _stated_shapes
from lstmsim.importers.onnx.stored import DataFiles


def test_a_constant_of_numbers_is_read_and_one_of_texts_is_named() -> None:
    numbers = helper.make_tensor("n", TensorProto.FLOAT, [2], [1.5, -2.0])
    texts = helper.make_tensor("t", TensorProto.STRING, [1], [b"word"])
    read = constant_node({"value": helper.make_attribute("value", numbers)}, DataFiles("a.onnx"))
    np.testing.assert_array_equal(read.array, [1.5, -2.0])
    with pytest.raises(UnreadableError, match="holds texts or a sparse tensor"):
        constant_node({"value": helper.make_attribute("value", texts)}, DataFiles("a.onnx"))


def test_the_shape_of_a_result_is_stated_though_an_input_is_left_out() -> None:
    """Clip with a most and no least."""
    x = constant_node({"value_floats": helper.make_attribute("value_floats", [1.0, 2.0, 3.0])}, DataFiles("a.onnx"))
    most = constant_node({"value_float": helper.make_attribute("value_float", 2.0)}, DataFiles("a.onnx"))
    (stated,) = _stated_shapes(Arguments("Clip", 13, {}, [x, None, most]))
    assert stated == ((3,), FLOAT)
