"""Operators that only stored numbers go through, above all those that compute shapes. Source: their ONNX pages."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod

import numpy as np

from lstmsim.base.bounds import MAX_ELEMENTS
from lstmsim.base.errors import InputError
from lstmsim.importers.onnx.operations.arguments import Arguments
from lstmsim.importers.onnx.operations.drawing import Drawing, Rule
from lstmsim.importers.onnx.operations.values import BOOL, FLOAT, Array, UnreadableError, Value, constant

__all__ = ["FOLDING"]

#: Most numbers of a list that is made, or put together.
_MOST = 1 << 20


def _shape(draw: Drawing, given: Arguments) -> list[Value]:
    shape = given.value(0).shape
    start, end = given.whole("start", 0), given.whole("end", len(shape))
    return [constant(np.array(shape[start:end], np.int64))]


def _size(draw: Drawing, given: Arguments) -> list[Value]:
    return [constant(np.array(given.value(0).size, np.int64))]


def _gather(draw: Drawing, given: Arguments) -> list[Value]:
    array, places = given.value(0).array, given.value(1).array
    axis = given.axis(given.whole("axis", 0), array.ndim)
    _few(array.size // max(array.shape[axis], 1) * places.size)
    return [constant(np.take(array, places.astype(np.int64), axis), given.value(0).elem, given.value(0).label)]


def _concat(draw: Drawing, given: Arguments) -> list[Value]:
    values = [each for each in given.inputs if each is not None]
    values = [each for each in values if each.size] or values[:1]
    if len(values) == 1:
        return values
    arrays = [each.array for each in values]
    _few(sum(each.size for each in arrays))
    return [constant(np.concatenate(arrays, given.axis(given.whole("axis", 0), arrays[0].ndim)), values[0].elem)]


def _few(count: int) -> None:
    if count > _MOST:
        raise UnreadableError("makes more numbers than any shape has")


def _filled(draw: Drawing, given: Arguments) -> list[Value]:
    shape, elem = tuple(given.value(0).numbers()), FLOAT
    number: Array = np.zeros((), np.float32)
    if "value" in given.attributes:
        from onnx import numpy_helper

        tensor = given.attributes["value"].t
        number, elem = numpy_helper.to_array(tensor).reshape(()), int(tensor.data_type)
    if min(shape, default=1) < 0 or prod(shape) > MAX_ELEMENTS:
        raise InputError(f"makes the shape {shape}")
    return [constant(np.broadcast_to(number, shape), elem)]


def _range(draw: Drawing, given: Arguments) -> list[Value]:
    start, limit, delta = (given.value(place).array.reshape(-1)[0] for place in range(3))
    if not delta:
        raise InputError("counts in steps of 0")
    _few(ceil(max((float(limit) - float(start)) / float(delta), 0)))
    return [constant(np.arange(start, limit, delta), given.value(0).elem)]


def _prod(draw: Drawing, given: Arguments) -> list[Value]:
    array = given.value(0).array
    axes = given.list("axes", 1)
    keep = bool(given.whole("keepdims", 1))
    gone = tuple(given.axis(each, array.ndim) for each in axes) if axes else None
    return [constant(np.prod(array, axis=gone, keepdims=keep), given.value(0).elem)]


def _trilu(draw: Drawing, given: Arguments) -> list[Value]:
    array, diagonal = given.value(0).array, int(given.scalar(1, 0.0))
    made = np.triu(array, diagonal) if given.whole("upper", 1) else np.tril(array, diagonal)
    return [constant(made, given.value(0).elem)]


def _mod(draw: Drawing, given: Arguments) -> list[Value]:
    rule = np.fmod if given.whole("fmod", 0) else np.mod
    return [constant(np.asarray(rule(given.value(0).array, given.value(1).array)), given.value(0).elem)]


def _is_nan(draw: Drawing, given: Arguments) -> list[Value]:
    return [constant(np.isnan(given.value(0).array), BOOL)]


#: From a node's arguments to its results. What is not stored is a call of a library then.
FOLDING: Mapping[str, Rule] = {
    "Shape": _shape,
    "Size": _size,
    "Gather": _gather,
    "Concat": _concat,
    "ConstantOfShape": _filled,
    "Range": _range,
    "ReduceProd": _prod,
    "Trilu": _trilu,
    "Mod": _mod,
    "IsNaN": _is_nan,
}
