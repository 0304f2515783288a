"""Constants behind `DequantizeLinear`: whole numbers in the file, and the real numbers that they mean.

A number x means (x - zero point) x scale, with one scale for the whole tensor or for each place along an axis.
Source: the ONNX operator page of DequantizeLinear; scales for blocks (`block_size`) are not read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.importers.onnx.external import DataFiles
from lstmsim.importers.onnx.graph import Scope, attributes, node_input
from lstmsim.importers.onnx.quantized import whole_numbers
from lstmsim.importers.onnx.stored import plain
from lstmsim.importers.onnx.values import integer
from lstmsim.model.numerics.weights import Floats

__all__ = ["meant", "stored_tensor", "stored_whole"]

_FLOAT, _HALF = 1, 10


def stored_tensor(scope: Scope, name: str) -> Any:
    """Give the tensor that a name stands for; None if the value is computed or given at run time."""
    value = plain(scope, name)
    if value is None or value.node is None:
        return None if value is None else value.tensor
    given = attributes(value.scope, value.node)
    return given["value"].t if value.node.op_type == "Constant" and "value" in given else None


def stored_whole(scope: Scope, node: Any, files: DataFiles) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read the whole numbers and the zero points of a node `DequantizeLinear`.

    files: the data files beside the network.

    `ValueError` if the node reads anything but stored whole numbers; `InputError` if the numbers are damaged.
    """
    tensors = [stored_tensor(scope, node_input(node, place)) for place in (0, 2) if node_input(node, place)]
    if any(each is None for each in tensors) or len({each.data_type for each in tensors}) != 1:
        raise ValueError
    numbers, *zeros = (whole_numbers(each, files) for each in tensors)
    return numbers, zeros[0] if zeros else np.zeros((), numbers.dtype)


def meant(scope: Scope, node: Any, numbers: NDArray[Any], scale: Floats, zero: NDArray[Any]) -> Floats:
    """Compute the real numbers that whole numbers mean, in float32; a stored scale of 16 bits gives numbers of 16 bits.

    scope, node: the node `DequantizeLinear`.
    numbers: the whole numbers.
    scale: one number, or one for each place along the node's axis.
    zero: the zero points, one number or as many as scales.

    `ValueError` if scale and zero points do not fit the numbers.

    >>> from onnx import helper
    >>> from lstmsim.importers.onnx.graph import open_scopes
    >>> node = helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"], axis=0)
    >>> scope = open_scopes(helper.make_model(helper.make_graph([node], "g", [], [])))[0]
    >>> x, s, z = np.array([[1, 2], [3, 4]], np.int8), np.array([1, 10], np.float32), np.array([0, 1], np.int8)
    >>> meant(scope, node, x, s, z).tolist()
    [[1.0, 2.0], [20.0, 30.0]]
    """
    given = attributes(scope, node)
    kind = getattr(stored_tensor(scope, node_input(node, 1)), "data_type", _FLOAT)
    if integer(given, "block_size", 0) or kind not in (_FLOAT, _HALF) or (zero.ndim and zero.shape != scale.shape):
        raise ValueError
    if integer(given, "output_dtype", 0) not in (0, kind):
        raise ValueError
    # The difference of two 32-bit numbers needs more than 32 bits.
    apart = numbers.astype(np.int64 if numbers.dtype.itemsize > 2 else np.int32)
    if scale.size != 1:
        axis = integer(given, "axis", 1)
        if scale.ndim != 1 or not -numbers.ndim <= axis < numbers.ndim or scale.size != numbers.shape[axis]:
            raise ValueError
        along = [-1 if at == axis % numbers.ndim else 1 for at in range(numbers.ndim)]
        scale, zero = scale.reshape(along), zero.reshape(along) if zero.ndim else zero
    elif zero.size == 1:
        scale, zero = scale.reshape(()), zero.reshape(())
    made: Floats = (apart - zero).astype(np.float32) * scale
    return made.astype(np.float16).astype(np.float32) if kind == _HALF else made
