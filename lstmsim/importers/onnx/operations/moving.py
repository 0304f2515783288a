"""Operators that move elements, operators that only stored numbers go through (above all shapes), and stored numbers.

Source: the ONNX operator pages of the keys of the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod
from typing import Any

import numpy as np

from lstmsim.base.bounds import MAX_ELEMENTS
from lstmsim.base.errors import InputError
from lstmsim.base.wording import show
from lstmsim.importers.onnx.graph import slice_bounds
from lstmsim.importers.onnx.operations.computing import truncated
from lstmsim.importers.onnx.operations.drawing import (
    BOOL,
    FLOAT,
    FLOATS,
    INT64,
    Arguments,
    Array,
    Drawing,
    Rule,
    UnreadableError,
    Value,
    constant,
)
from lstmsim.importers.onnx.stored import DataFiles, numbers_of

#: Most numbers of a list that is made, or put together.
_MOST = 1 << 20
#: Numbers of 16 bits, which are read as 32.
_HALF = (10, 16)
_STRING, _UNDEFINED = 8, 0


def _rearranged(draw: Drawing, given: Arguments) -> list[Value]:
    """The result of an operator that rearranges a value of known shape."""
    value = given.value(0)
    shape, rank = value.shape, len(value.shape)
    match given.kind:
        case "Dropout" if given.scalar(2, 0.0):
            raise UnreadableError("drops numbers, as in training")
        case "Transpose":
            perm = given.list("perm")
            return [draw.transposed(value, tuple(perm if perm is not None else reversed(range(rank))))]
        case "Flatten":
            axis = given.whole("axis", 1)
            axis += rank if axis < 0 else 0
            return [draw.reshaped(value, (prod(shape[:axis]), prod(shape[axis:])))]
        case "Squeeze":
            axes = given.list("axes", 1)
            ones = [axis for axis, size in enumerate(shape) if size == 1]
            gone = {given.axis(each, rank) for each in axes} if axes is not None else ones
            return [draw.reshaped(value, tuple(size for axis, size in enumerate(shape) if axis not in gone))]
        case "Unsqueeze":
            axes = given.list("axes", 1) or []
            new = {given.axis(each, rank + len(axes)) for each in axes}
            if len(new) != len(axes):
                raise InputError("names an axis twice")
            rest = iter(shape)
            return [draw.reshaped(value, tuple(1 if at in new else next(rest) for at in range(rank + len(axes))))]
        case "Expand":
            wanted = tuple(given.value(1).numbers())
            try:
                return [draw.expanded(value, np.broadcast_shapes(shape, wanted))]
            except ValueError:
                raise InputError(f"the shape {shape} cannot be repeated to {wanted}") from None
        case "Tile":
            times = given.value(1).numbers()
            if len(times) != rank or min(times, default=1) < 1:
                raise UnreadableError("repeats no axis, or axes that do not exist")
            apart = draw.reshaped(value, tuple(each for size in shape for each in (1, size)))
            pairs = list(zip(times, shape, strict=True))
            whole = draw.expanded(apart, tuple(each for pair in pairs for each in pair))
            return [draw.reshaped(whole, tuple(count * size for count, size in pairs))]
    return [value]


def _cast(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    target = given.value(1).elem if given.kind == "CastLike" else given.whole("to", 1)
    if target == BOOL:
        return [draw.truth(value)]
    if value.real and target not in FLOATS:
        value = truncated(draw, value)
    # the same numbers, called by another type
    return [value if value.elem == target else Value(value.shape, target, value.number, value.load, value.label)]


def _reshape(draw: Drawing, given: Arguments) -> list[Value]:
    value, wanted = given.value(0), given.list("shape", 1)
    if wanted is None:
        raise InputError("has no shape")
    if not given.whole("allowzero", 0):
        if any(size == 0 and at >= len(value.shape) for at, size in enumerate(wanted)):
            raise InputError("keeps the size of an axis that does not exist")
        wanted = [value.shape[at] if size == 0 else size for at, size in enumerate(wanted)]
    if wanted.count(-1) == 1:
        rest = prod(size for size in wanted if size != -1)
        if rest <= 0 or value.size % rest:
            raise InputError(f"the shape {value.shape} cannot become {wanted}")
        wanted[wanted.index(-1)] = value.size // rest
    return [draw.reshaped(value, tuple(wanted))]


def _slice(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    starts, ends = given.list("starts", 1), given.list("ends", 2)
    axes, steps = given.list("axes", 3), given.list("steps", 4)
    if starts is None or ends is None:
        raise InputError("has no starts or ends")
    bounds = slice_bounds(starts, ends, axes, steps, len(value.shape))
    if bounds is None or any(step == 0 for _, _, step in bounds.values()):
        raise InputError("has starts, ends, axes and steps that do not fit each other")
    parts = tuple(slice(*bounds.get(axis, (None,))) for axis in range(len(value.shape)))
    taken = [range(size)[part] for part, size in zip(parts, value.shape, strict=True)]
    shape = tuple(map(len, taken))
    if any(step != 1 for _, _, step in bounds.values()):
        if not value.stored:
            raise UnreadableError("takes every n-th element, or goes backwards")
        return [Value(shape, value.elem, -1, lambda: value.array[parts], value.label)]
    return [draw.sliced(value, tuple(each[0] if each else 0 for each in taken), shape)]


def _split(draw: Drawing, given: Arguments) -> list[Value]:
    value, sizes = given.value(0), given.list("split", 1)
    axis = given.axis(given.whole("axis", 0), len(value.shape))
    if sizes is None:
        count = given.whole("num_outputs", given.outputs)
        part = -(-value.shape[axis] // max(count, 1))
        sizes = [max(min(part, value.shape[axis] - at * part), 0) for at in range(count)]
    if sum(sizes) != value.shape[axis] or min(sizes, default=0) < 0:
        raise InputError(f"cuts {value.shape[axis]} elements into {sizes}")
    parts, start = [], 0
    for size in sizes:
        begin = tuple(start if at == axis else 0 for at in range(len(value.shape)))
        shape = tuple(size if at == axis else whole for at, whole in enumerate(value.shape))
        parts.append(draw.sliced(value, begin, shape))
        start += size
    return parts


#: From a node's arguments to its results.
MOVING: Mapping[str, Rule] = {
    **dict.fromkeys(
        ("Identity", "Dropout", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile"), _rearranged
    ),
    **dict.fromkeys(("Cast", "CastLike"), _cast),
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
}


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


def _computed(draw: Drawing, given: Arguments) -> list[Value]:
    """The result of an operator on stored numbers that is one call of numpy."""
    value = given.value(0)
    if given.kind == "Size":
        return [constant(np.array(value.size, np.int64))]
    if given.kind == "Shape":
        start, end = given.whole("start", 0), given.whole("end", len(value.shape))
        return [constant(np.array(value.shape[start:end], np.int64))]
    array, label = value.array, "constant"
    match given.kind:
        case "Gather":
            places, axis, label = given.value(1).array, given.axis(given.whole("axis", 0), array.ndim), value.label
            _few(array.size // max(array.shape[axis], 1) * places.size)
            array = np.take(array, places.astype(np.int64), axis)
        case "Range":
            start, limit, delta = (given.value(index).array.reshape(-1)[0] for index in range(3))
            if not delta:
                raise InputError("counts in steps of 0")
            _few(ceil(max((float(limit) - float(start)) / float(delta), 0)))
            array = np.arange(start, limit, delta)
        case "ReduceProd":
            axes = given.list("axes", 1)
            gone = tuple(given.axis(each, array.ndim) for each in axes) if axes else None
            array = np.prod(array, axis=gone, keepdims=bool(given.whole("keepdims", 1)))
        case "Trilu":
            array = (np.triu if given.whole("upper", 1) else np.tril)(array, int(given.scalar(1, 0.0)))
        case "Mod":
            array = np.asarray((np.fmod if given.whole("fmod", 0) else np.mod)(array, given.value(1).array))
        case "IsNaN":
            return [constant(np.isnan(array), BOOL)]
    return [constant(array, value.elem, label)]


#: From a node's arguments to its results. What is not stored is a call of a library then.
FOLDING: Mapping[str, Rule] = {
    **dict.fromkeys(("Shape", "Size", "Gather", "Range", "ReduceProd", "Trilu", "Mod", "IsNaN"), _computed),
    "Concat": _concat,
    "ConstantOfShape": _filled,
}


def stored_value(tensor: Any, files: DataFiles) -> Value | None:
    """The value of a tensor of the file; None for texts and sparse tensors."""
    kind = getattr(tensor, "data_type", _UNDEFINED)
    if kind in (_STRING, _UNDEFINED):
        return None
    shape = tuple(int(size) for size in tensor.dims)
    if min(shape, default=0) < 0 or prod(shape) > MAX_ELEMENTS:
        raise InputError(f"is damaged: the tensor {show(str(tensor.name))} states the shape {shape}")

    def load() -> Array:
        array = numbers_of(tensor, files)
        return array.astype(np.float32) if kind in _HALF else array

    return Value(shape, kind, -1, load, str(tensor.name))


def constant_node(given: Mapping[str, Any], files: DataFiles) -> Value:
    """The value of a node `Constant`; given: its attributes."""
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
