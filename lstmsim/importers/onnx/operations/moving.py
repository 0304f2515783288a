"""Operators that move elements. Source: the ONNX operator pages of the keys of `MOVING`."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from lstmsim.base.errors import InputError
from lstmsim.importers.onnx.operations.arguments import Arguments
from lstmsim.importers.onnx.operations.drawing import Drawing, Rule
from lstmsim.importers.onnx.operations.elementwise import truncated
from lstmsim.importers.onnx.operations.values import BOOL, FLOATS, UnreadableError, Value

__all__ = ["MOVING", "retyped"]


def _same(draw: Drawing, given: Arguments) -> list[Value]:
    if given.kind == "Dropout" and given.scalar(2, 0.0):
        raise UnreadableError("drops numbers, as in training")
    return [given.value(0)]


def retyped(value: Value, elem: int) -> Value:
    """The same numbers, called by another type.

    value: the numbers.
    elem: the type, as of `Value`.
    """
    if value.elem == elem:
        return value
    return Value(value.shape, elem, value.number, value.load, value.label)


def _cast(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    target = given.value(1).elem if given.kind == "CastLike" else given.whole("to", 1)
    if target == BOOL:
        return [draw.truth(value)]
    if value.real and target not in FLOATS:
        value = truncated(draw, value)
    return [retyped(value, target)]


def _transpose(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    perm = given.list("perm")
    return [draw.transposed(value, tuple(perm if perm is not None else reversed(range(len(value.shape)))))]


def _reshape(draw: Drawing, given: Arguments) -> list[Value]:
    value, wanted = given.value(0), given.list("shape", 1)
    if wanted is None:
        raise InputError("has no shape")
    if not given.whole("allowzero", 0):
        if any(size == 0 and at >= len(value.shape) for at, size in enumerate(wanted)):
            raise InputError("keeps the size of an axis that there is not")
        wanted = [value.shape[at] if size == 0 else size for at, size in enumerate(wanted)]
    if wanted.count(-1) == 1:
        rest = prod(size for size in wanted if size != -1)
        if rest <= 0 or value.size % rest:
            raise InputError(f"the shape {value.shape} cannot become {wanted}")
        wanted[wanted.index(-1)] = value.size // rest
    return [draw.reshaped(value, tuple(wanted))]


def _flatten(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    axis = given.whole("axis", 1)
    axis += len(value.shape) if axis < 0 else 0
    return [draw.reshaped(value, (prod(value.shape[:axis]), prod(value.shape[axis:])))]


def _squeeze(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    axes = given.list("axes", 1)
    if axes is None:
        gone = {axis for axis, size in enumerate(value.shape) if size == 1}
    else:
        gone = {given.axis(each, len(value.shape)) for each in axes}
    return [draw.reshaped(value, tuple(size for axis, size in enumerate(value.shape) if axis not in gone))]


def _unsqueeze(draw: Drawing, given: Arguments) -> list[Value]:
    value, axes = given.value(0), given.list("axes", 1) or []
    rank = len(value.shape) + len(axes)
    new = {given.axis(each, rank) for each in axes}
    rest = iter(value.shape)
    if len(new) != len(axes):
        raise InputError("names an axis twice")
    return [draw.reshaped(value, tuple(1 if axis in new else next(rest) for axis in range(rank)))]


def _expand(draw: Drawing, given: Arguments) -> list[Value]:
    value, wanted = given.value(0), tuple(given.value(1).numbers())
    try:
        shape = np.broadcast_shapes(value.shape, wanted)
    except ValueError:
        raise InputError(f"the shape {value.shape} cannot be repeated to {wanted}") from None
    return [draw.expanded(value, shape)]


def _tile(draw: Drawing, given: Arguments) -> list[Value]:
    value, times = given.value(0), given.value(1).numbers()
    if len(times) != len(value.shape) or min(times, default=1) < 1:
        raise UnreadableError("repeats nothing, or axes that there are not")
    pairs = list(zip(times, value.shape, strict=True))
    apart = draw.reshaped(value, tuple(each for _, size in pairs for each in (1, size)))
    whole = draw.expanded(apart, tuple(each for pair in pairs for each in pair))
    return [draw.reshaped(whole, tuple(count * size for count, size in pairs))]


def _slice(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    starts, ends = given.list("starts", 1), given.list("ends", 2)
    axes, steps = given.list("axes", 3), given.list("steps", 4)
    if starts is None or ends is None:
        raise InputError("has no starts or ends")
    axes = axes if axes is not None else list(range(len(starts)))
    steps = steps if steps is not None else [1] * len(starts)
    first, shape = [0] * len(value.shape), list(value.shape)
    places = [slice(None)] * len(value.shape)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise InputError("has starts, ends, axes and steps that do not fit each other")
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis = given.axis(axis, len(shape))
        size = value.shape[axis]
        # an end far below zero is the one before the first element
        places[axis] = slice(start, None if step < 0 and end < -size else end, step)
        taken = range(*places[axis].indices(size))
        first[axis], shape[axis] = (taken[0] if taken else 0), len(taken)
    if any(step != 1 for step in steps):
        if not value.stored:
            raise UnreadableError("takes every n-th element, or goes backwards")
        return [Value(tuple(shape), value.elem, -1, lambda: value.array[tuple(places)], value.label)]
    return [draw.sliced(value, tuple(first), tuple(shape))]


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
    "Identity": _same,
    "Dropout": _same,
    "Cast": _cast,
    "CastLike": _cast,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Expand": _expand,
    "Tile": _tile,
    "Slice": _slice,
    "Split": _split,
}
