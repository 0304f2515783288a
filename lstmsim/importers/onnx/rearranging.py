"""Operations on constants that only rearrange or repeat them.

A size that the file leaves open is a batch and counts as 1. The reader of a weight or state refuses it if its size is
not the size that the node needs.
Source: the ONNX operator pages of the operations in `RULES`.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from lstmsim.importers.onnx.graph import Scope, attributes, node_input
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.values import Shape, integer, integers
from lstmsim.model.numerics.weights import Floats

__all__ = ["REPEATING", "RULES"]

_MAX_REPEATS = 4096


def _known(numbers: Shape | None) -> list[int]:
    if numbers is None or None in numbers:
        raise ValueError
    return [each for each in numbers if each is not None]


def _transpose(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    order = integers(attributes(scope, node), "perm")
    return np.transpose(parts[0], None if order is None else _known(order))


def _unsqueeze(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    return np.expand_dims(parts[0], tuple(_known(shapes.given(scope, node, "axes", 1))))


def _squeeze(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    axes = shapes.given(scope, node, "axes", 1)
    return np.squeeze(parts[0], None if axes is None and not node_input(node, 1) else tuple(_known(axes)))


def _reshape(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    sizes = _known(shapes.given(scope, node, "shape", 1))
    keep = not integer(attributes(scope, node), "allowzero", 0)
    return parts[0].reshape([parts[0].shape[at] if size == 0 and keep else size for at, size in enumerate(sizes)])


def _concat(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    return np.concatenate(parts, axis=integer(attributes(scope, node), "axis", 0))


def _slice(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    starts = _known(shapes.given(scope, node, "starts", 1))
    ends = _known(shapes.given(scope, node, "ends", 2))
    named = "axes" in attributes(scope, node) or node_input(node, 3)
    axes = _known(shapes.given(scope, node, "axes", 3)) if named else list(range(len(starts)))
    steps = _known(shapes.given(scope, node, "steps", 4)) if node_input(node, 4) else [1] * len(starts)
    places = [slice(None)] * parts[0].ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # A slice with step -1 that includes the first element has an end far below zero.
        places[axis] = slice(start, None if step < 0 and end < -parts[0].shape[axis] else end, step)
    return parts[0][tuple(places)]


def _identity(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    return parts[0]


def _cast(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    kind = {1: np.float32, 10: np.float16, 11: np.float64}.get(integer(attributes(scope, node), "to", 0))
    if kind is None:
        raise ValueError
    made = parts[0].astype(kind)
    return made.astype(np.float32) if kind == np.float16 else made


def _gather(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    places, shape = _known(shapes.numbers(scope, node_input(node, 1))), shapes.of(scope, node_input(node, 1))
    if shape is None or len(shape) > 1:
        raise ValueError
    return np.take(parts[0], places if shape else places[0], axis=integer(attributes(scope, node), "axis", 0))


def _split(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    axis, sizes = integer(attributes(scope, node), "axis", 0), shapes.given(scope, node, "split", 1)
    if sizes is None:
        # If the parts are not equal, the last part is smaller.
        size = -(-parts[0].shape[axis] // len(node.output))
        return np.take(parts[0], range(place * size, min((place + 1) * size, parts[0].shape[axis])), axis=axis)
    begin = sum(_known(sizes)[:place])
    return np.take(parts[0], range(begin, begin + _known(sizes)[place]), axis=axis)


def _single(numbers: Shape | None) -> list[int]:
    """Sizes, with 1 for each size that the file leaves open: a batch is run as one sequence."""
    return [1 if each is None else each for each in numbers or ()]


def _expand(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    wanted = _single(shapes.numbers(scope, node_input(node, 1)))
    return np.broadcast_to(parts[0], np.broadcast_shapes(parts[0].shape, tuple(max(each, 1) for each in wanted)))


def _tile(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    repeats = _single(shapes.numbers(scope, node_input(node, 1))) or [1] * parts[0].ndim
    if prod(repeats) > _MAX_REPEATS or min(repeats, default=1) < 1:
        raise ValueError
    return np.tile(parts[0], repeats)


def _filled(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    wanted = shapes.numbers(scope, node_input(node, 0))
    if parts[0].size != 1:
        raise ValueError
    # If the shape is not known, the number alone is given: a reader that needs a larger array refuses it.
    return np.broadcast_to(parts[0].reshape(()), _single(wanted))


#: From the constants that a node reads at batch 1 to its output `place`; `ValueError`, `IndexError` or `TypeError` if
#: its arguments do not fit or are not in the file.
RULES = {
    "Identity": _identity,
    "Dropout": _identity,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Concat": _concat,
    "Slice": _slice,
    "Cast": _cast,
    "Gather": _gather,
    "Split": _split,
    "Expand": _expand,
    "Tile": _tile,
    "ConstantOfShape": _filled,
}
#: Operations whose result may be larger than their inputs.
REPEATING = ("Expand", "Tile", "ConstantOfShape")
