"""Floating-point constants inside an ONNX file, through the rearrangements that exporters put behind them.

No operation that computes is done: what depends on one is no constant here. Data files beside the network are opened by
`DataFiles` only, for the tensors that are asked for.
Source: the fields of TensorProto (onnx.proto), the operator pages of the rearranging operators.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from lstmsim.errors import InputError
from lstmsim.formats.onnx_external import DataFiles, is_external
from lstmsim.formats.onnx_graph import DEFAULT_DOMAINS, Scope, Value, attributes, node_input, resolve
from lstmsim.formats.onnx_shapes import Shapes
from lstmsim.formats.onnx_values import Shape, integer, integers
from lstmsim.formats.weights.tensors import FLOAT_BYTES, decoded, single_or_double
from lstmsim.formats.wording import show
from lstmsim.numerics.weights import Floats

__all__ = ["COPIES", "Constants"]

_KINDS = {1: "F32", 10: "F16", 11: "F64", 16: "BF16"}
_MAX_HOPS = 50
#: A few rearrangements of each weight; names repeated endlessly would fill the memory.
COPIES = 16


class _NoConstant(Exception):
    """The value is computed, given at run time, or not a floating-point number; its text says by what."""


class Constants:
    """Constants of one network; `budget` bounds the bytes of all that are made, however often a file repeats one.

    >>> from onnx import TensorProto, helper
    >>> weights = helper.make_tensor("w", TensorProto.FLOAT, [2, 3], [0.0] * 6)
    >>> turned = helper.make_node("Transpose", ["w"], ["t"])
    >>> from lstmsim.formats.onnx_graph import open_scopes
    >>> graph = helper.make_graph([turned], "g", [], [], initializer=[weights])
    >>> Constants(Shapes(), 1000, DataFiles("g.onnx")).of(open_scopes(helper.make_model(graph))[0], "t").shape
    (3, 2)
    """

    def __init__(self, shapes: Shapes, budget: int, files: DataFiles) -> None:
        self._shapes = shapes
        self._left = budget
        self._files = files

    def of(self, scope: Scope, name: str) -> Floats | str:
        """The constant that `name` means, or what it comes from instead; `InputError` if it is damaged or missing."""
        try:
            return self._value(resolve(scope, name), 0)
        except _NoConstant as reason:
            return str(reason)

    def _value(self, value: Value | None, hops: int) -> Floats:
        if value is None or hops > _MAX_HOPS:
            raise _NoConstant("nothing in the file")
        if value.tensor is not None:
            return self._decoded(value.tensor)
        scope, node = value.scope, value.node
        if node is None:
            raise _NoConstant(f"input {show(value.name)}")
        given, kind = attributes(scope, node), str(node.op_type)
        if node.domain not in DEFAULT_DOMAINS or value.index in scope.children or value.place:
            raise _NoConstant(f"a node {kind}")
        if kind == "Constant" and "value" in given:
            return self._decoded(given["value"].t)
        names = node.input if kind == "Concat" else node.input[:1]
        if kind not in _RULES or not names or len(names) > 64:
            raise _NoConstant(f"a node {kind}")
        parts = [self._value(resolve(scope, str(each)), hops + 1) for each in names]
        self._spend(sum(each.nbytes for each in parts))
        try:
            return _RULES[kind](self._shapes, scope, node, parts)
        except (ValueError, IndexError, TypeError):
            raise _NoConstant(f"a node {kind} whose arguments do not fit") from None

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise InputError("repeats its weights more often than any network does")

    def _decoded(self, tensor: Any) -> Floats:
        if not hasattr(tensor, "data_type"):
            raise _NoConstant("a sparse tensor")
        name = show(str(tensor.name))
        kind, shape = _KINDS.get(tensor.data_type), tuple(int(size) for size in tensor.dims)
        if kind is None:
            raise _NoConstant(f"{name}, which holds no floating-point numbers")
        count = prod(shape)
        if is_external(tensor) and min(shape, default=1) >= 0:
            return decoded(kind, self._outside(tensor, count * FLOAT_BYTES[kind])).reshape(shape)
        self._spend(max(count, 0) * FLOAT_BYTES[kind])
        if tensor.raw_data:
            if len(tensor.raw_data) == count * FLOAT_BYTES[kind] and min(shape, default=1) >= 0:
                return decoded(kind, tensor.raw_data).reshape(shape)
        else:
            stored = {"F32": tensor.float_data, "F64": tensor.double_data}.get(kind, tensor.int32_data)
            if len(stored) == count and min(shape, default=1) >= 0:
                return _typed(kind, stored).reshape(shape)
        raise InputError(f"is damaged or cut off: the tensor {name} has not the {count} numbers that its shape states")

    def _outside(self, tensor: Any, size: int) -> bytes:
        """A tensor's bytes from its data file, which adds to what may be made of the network."""
        before = self._files.total
        content = self._files.read(tensor, size)
        self._left += COPIES * (self._files.total - before)
        self._spend(size)
        return content


def _typed(kind: str, stored: Any) -> Floats:
    """Numbers from a tensor's typed field; half precision is kept there as the bits of whole numbers."""
    if kind in ("F32", "F64"):
        # A float32 that is not finite comes without a sentence otherwise.
        with np.errstate(over="ignore"):
            return single_or_double(np.array(stored, np.float32 if kind == "F32" else np.float64))
    return decoded(kind, (np.array(stored, np.int64) & 0xFFFF).astype("<u2").tobytes())


def _known(numbers: Shape | None) -> list[int]:
    if numbers is None or None in numbers:
        raise ValueError
    return [each for each in numbers if each is not None]


def _transpose(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats]) -> Floats:
    order = integers(attributes(scope, node), "perm")
    return np.transpose(parts[0], None if order is None else _known(order))


def _unsqueeze(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats]) -> Floats:
    return np.expand_dims(parts[0], tuple(_known(shapes.given(scope, node, "axes", 1))))


def _squeeze(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats]) -> Floats:
    axes = shapes.given(scope, node, "axes", 1)
    return np.squeeze(parts[0], None if axes is None and not node_input(node, 1) else tuple(_known(axes)))


def _reshape(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats]) -> Floats:
    sizes = _known(shapes.given(scope, node, "shape", 1))
    keep = not integer(attributes(scope, node), "allowzero", 0)
    return parts[0].reshape([parts[0].shape[at] if size == 0 and keep else size for at, size in enumerate(sizes)])


def _concat(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats]) -> Floats:
    return np.concatenate(parts, axis=integer(attributes(scope, node), "axis", 0))


def _slice(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats]) -> Floats:
    starts = _known(shapes.given(scope, node, "starts", 1))
    ends = _known(shapes.given(scope, node, "ends", 2))
    named = "axes" in attributes(scope, node) or node_input(node, 3)
    axes = _known(shapes.given(scope, node, "axes", 3)) if named else list(range(len(starts)))
    steps = _known(shapes.given(scope, node, "steps", 4)) if node_input(node, 4) else [1] * len(starts)
    places = [slice(None)] * parts[0].ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # A step of -1 that ends before the first element is written with an end far below zero.
        places[axis] = slice(start, None if step < 0 and end < -parts[0].shape[axis] else end, step)
    return parts[0][tuple(places)]


def _identity(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats]) -> Floats:
    return parts[0]


_RULES = {
    "Identity": _identity,
    "Dropout": _identity,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Concat": _concat,
    "Slice": _slice,
}
