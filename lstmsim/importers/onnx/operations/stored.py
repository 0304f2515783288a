"""Numbers that a file holds, in the file itself or beside it."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from lstmsim.base.bounds import MAX_ELEMENTS
from lstmsim.base.errors import InputError
from lstmsim.base.wording import show
from lstmsim.importers.onnx.external import DataFiles, is_external
from lstmsim.importers.onnx.operations.values import FLOAT, INT64, Array, UnreadableError, Value, constant

__all__ = ["constant_node", "stored_value"]

#: Numbers of 16 bits, which are read as 32.
_HALF = (10, 16)
_STRING, _UNDEFINED = 8, 0


def stored_value(tensor: Any, files: DataFiles) -> Value | None:
    """What a tensor of the file stands for; None for texts and sparse tensors.

    tensor: the tensor; its numbers are read when they are needed.
    files: the data files beside the network.
    """
    kind = getattr(tensor, "data_type", _UNDEFINED)
    if kind in (_STRING, _UNDEFINED):
        return None
    shape = tuple(int(size) for size in tensor.dims)
    if min(shape, default=0) < 0 or prod(shape) > MAX_ELEMENTS:
        raise InputError(f"is damaged: the tensor {show(str(tensor.name))} states the shape {shape}")
    return Value(shape, kind, -1, lambda: _array(tensor, shape, files), str(tensor.name))


def _array(tensor: Any, shape: tuple[int, ...], files: DataFiles) -> Array:
    from onnx import helper, numpy_helper

    try:
        if is_external(tensor):
            kind = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
            array = np.frombuffer(files.read(tensor, prod(shape) * kind.itemsize), kind).reshape(shape)
        else:
            array = numpy_helper.to_array(tensor)
    except InputError:
        raise
    except Exception:
        # protobuf, numpy and onnx each have classes of their own for what does not fit here
        raise InputError(f"is damaged: the tensor {show(str(tensor.name))} has not the numbers of its shape") from None
    return array.astype(np.float32) if tensor.data_type in _HALF else array


def constant_node(given: Mapping[str, Any], files: DataFiles) -> Value:
    """What a node `Constant` stands for; given: its attributes."""
    if "value" in given:
        value = stored_value(given["value"].t, files)
        if value is not None:
            return value
    for name, numbers, kind in (("value_float", "f", FLOAT), ("value_int", "i", INT64)):
        if name in given:
            return constant(np.array(getattr(given[name], numbers)), kind)
    for name, numbers, kind in (("value_floats", "floats", FLOAT), ("value_ints", "ints", INT64)):
        if name in given:
            return constant(np.array(list(getattr(given[name], numbers))), kind)
    raise UnreadableError("holds texts or a sparse tensor")
