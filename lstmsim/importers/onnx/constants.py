"""Floating-point constants inside an ONNX file, through the rearrangements that exporters put behind them.

Operations that compute each number alone are done (`ELEMENTWISE`); no other computation is. Only `DataFiles` opens
data files beside the network, and only for the tensors that are asked for.
Source: the fields of TensorProto (onnx.proto), the operator pages of the rearranging operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from lstmsim.base.errors import InputError
from lstmsim.base.wording import show
from lstmsim.importers.onnx.dequantized import meant, stored_whole
from lstmsim.importers.onnx.elementwise import ELEMENTWISE, computed
from lstmsim.importers.onnx.external import DataFiles, is_external
from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, Value, attributes, node_input, resolve
from lstmsim.importers.onnx.rearranging import REPEATING, RULES
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.widths import is_half
from lstmsim.importers.weights.tensors import FLOAT_BYTES, decoded, single_or_double
from lstmsim.model.numerics.weights import Floats

__all__ = ["COPIES", "Constants"]

_KINDS = {1: "F32", 10: "F16", 11: "F64", 16: "BF16"}
_MAX_HOPS = 50
#: How often the bytes of each weight may be made: a few rearrangements. Endless repetitions would fill the memory.
COPIES = 16
#: Bytes that count for an operation, beside its result.
_OPERATION = 1024


class _NoConstant(Exception):
    """The value is computed, given at run time, or no floating-point number; the text names what gives it."""


class Constants:
    """Constants of one network.

    shapes: the shapes of its values.
    budget: most bytes that are made of all constants, because a file may repeat one any number of times.
    files: the data files beside the network.
    given: (scope, name) to an array that stands for this value as if it were a constant.

    >>> from onnx import TensorProto, helper
    >>> weights = helper.make_tensor("w", TensorProto.FLOAT, [2, 3], [0.0] * 6)
    >>> turned = helper.make_node("Transpose", ["w"], ["t"])
    >>> from lstmsim.importers.onnx.graph import open_scopes
    >>> graph = helper.make_graph([turned], "g", [], [], initializer=[weights])
    >>> Constants(Shapes(), 1000, DataFiles("g.onnx")).of(open_scopes(helper.make_model(graph))[0], "t").shape
    (3, 2)
    """

    def __init__(
        self, shapes: Shapes, budget: int, files: DataFiles, given: Mapping[tuple[Scope, str], Floats] | None = None
    ) -> None:
        self._shapes = shapes
        self._given = given or {}
        self._left = budget
        self._files = files

    def of(self, scope: Scope, name: str) -> Floats | str:
        """Read the constant that `name` means in `scope`, or say what gives the value instead.

        `InputError` if the constant is damaged or its data file is missing.
        """
        try:
            return self._value(resolve(scope, name), 0)
        except _NoConstant as reason:
            return str(reason)

    def _value(self, value: Value | None, hops: int) -> Floats:
        if value is None or hops > _MAX_HOPS:
            raise _NoConstant("nothing in the file")
        if (value.scope, value.name) in self._given:
            return self._given[value.scope, value.name]
        if value.tensor is not None:
            return self._decoded(value.tensor)
        scope, node = value.scope, value.node
        if node is None:
            raise _NoConstant(f"input {show(value.name)}")
        if value.index in scope.children:
            return self._common(value, hops)
        given, kind = attributes(scope, node), str(node.op_type)
        if node.domain not in DEFAULT_DOMAINS or (value.place and kind != "Split"):
            raise _NoConstant(f"a node {kind}")
        if kind == "Constant" and "value" in given:
            return self._decoded(given["value"].t)
        if kind == "DequantizeLinear":
            return self._dequantised(scope, node, hops)
        if kind in ELEMENTWISE:
            return self._elementwise(scope, node, hops)
        names = node.input if kind == "Concat" else node.input[: 0 if kind == "ConstantOfShape" else 1]
        if kind not in RULES or len(names) > 64:
            raise _NoConstant(f"a node {kind}")
        parts = [self._value(resolve(scope, str(each)), hops + 1) for each in names]
        if kind == "ConstantOfShape":
            parts = [self._decoded(given["value"].t) if "value" in given else np.zeros(1, np.float32)]
        self._spend(sum(each.nbytes for each in parts))
        try:
            made = RULES[kind](self._shapes, scope, node, parts, value.place)
        except (ValueError, IndexError, TypeError):
            raise _NoConstant(f"a node {kind} whose arguments do not fit") from None
        self._spend(made.nbytes if kind in REPEATING else 0)
        return made

    def _dequantised(self, scope: Scope, node: Any, hops: int) -> Floats:
        """The real numbers that stored whole numbers mean."""
        scale = self._value(resolve(scope, node_input(node, 1)), hops + 1)
        before = self._files.total
        try:
            numbers, zero = stored_whole(scope, node, self._files)
            self._left += COPIES * (self._files.total - before)
            # Each number becomes one of 4 bytes, by way of a wider number.
            self._spend(numbers.nbytes + 4 * numbers.size)
            return meant(scope, node, numbers, scale, zero)
        except ValueError:
            raise _NoConstant("a node DequantizeLinear whose arguments are not read here") from None

    def _elementwise(self, scope: Scope, node: Any, hops: int) -> Floats:
        """The result of an operation on one or two constants."""
        kind, names = str(node.op_type), [str(each) for each in node.input[:3]]
        # Even small parts count: two parts at each of many levels grow without end.
        self._spend(_OPERATION)
        if any(is_half(scope, name) for name in names):
            raise _NoConstant(f"a node {kind} in 16 bits")
        parts = [self._value(resolve(scope, name), hops + 1) for name in names]
        try:
            made = computed(kind, parts)
        except ValueError:
            raise _NoConstant(f"a node {kind} whose arguments do not fit") from None
        self._spend(made.nbytes)
        return made

    def _common(self, value: Value, hops: int) -> Floats:
        """The output of a function's body, or of an `If` whose branches all give the same."""
        bodies, made = value.scope.children[value.index], list[Floats]()
        if value.node.op_type == "If" or bodies[0].caller is not None:
            outputs = [resolve(each, each.outputs[value.place]) for each in bodies if value.place < len(each.outputs)]
            made = [self._value(each, hops + 1) for each in outputs]
        if not made or not all(np.array_equal(each, made[0]) for each in made):
            raise _NoConstant(f"a node {value.node.op_type}")
        return made[0]

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
        """A tensor's bytes from its data file; they add to the bytes that may be made of the network."""
        before = self._files.total
        content = self._files.read(tensor, size)
        self._left += COPIES * (self._files.total - before)
        self._spend(size)
        return content


def _typed(kind: str, stored: Any) -> Floats:
    """Numbers from a tensor's typed field; half precision is kept there as the bits of whole numbers."""
    if kind in ("F32", "F64"):
        # Without this, a number too large for float32 would give a warning of numpy instead of a sentence.
        with np.errstate(over="ignore"):
            return single_or_double(np.array(stored, np.float32 if kind == "F32" else np.float64))
    return decoded(kind, (np.array(stored, np.int64) & 0xFFFF).astype("<u2").tobytes())
