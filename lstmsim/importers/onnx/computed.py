"""Shapes through the operators that compute: what the layers around a recurrent network make of given input sizes.

Source: the operator pages of ONNX (shapes of outputs). A value has no shape if its operator has no rule here, or if
the rule fails.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, Value, attributes, node_input
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.values import Shape, broadcast, checked, integer, integers, kinds_named, product, text

__all__ = ["ComputedShapes"]

_SAME = kinds_named(
    "Abs BatchNormalization Ceil Celu Clip CumSum DynamicQuantizeLinear Elu Erf Exp Floor Gelu GroupNormalization "
    "HardSigmoid HardSwish InstanceNormalization LRN LayerNormalization LeakyRelu Log LogSoftmax LpNormalization "
    "MeanVarianceNormalization Mish Neg Not PRelu RMSNormalization Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin "
    "Cos Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu CastLike"
)
_TOGETHER = kinds_named(
    "Add And BitShift Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or Pow Sub Sum Where Xor"
)
_NUMBERS: dict[str, Callable[[int, int], int]] = {
    "Add": lambda one, two: one + two,
    "Sub": lambda one, two: one - two,
    "Mul": lambda one, two: one * two,
    # The division of whole numbers rounds towards 0.
    "Div": lambda one, two: abs(one) // abs(two) * (1 if (one < 0) == (two < 0) else -1),
}
_WRONG = (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError)


class ComputedShapes(Shapes):
    """Shapes of one run whose input sizes are all known.

    A shape that follows from the inputs counts more than the shape that the file states, because the file may state
    it for other sizes.

    >>> from onnx import TensorProto, helper
    >>> from lstmsim.importers.onnx.graph import open_scopes
    >>> x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (5, 3))
    >>> w = helper.make_tensor("w", TensorProto.FLOAT, [3, 2], [0.0] * 6)
    >>> graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [], [w])
    >>> ComputedShapes().of(open_scopes(helper.make_model(graph))[0], "y")
    (5, 2)
    """

    def _shape(self, value: Value) -> Shape | None:
        if value.tensor is None and value.node is not None:
            traced = self._traced(value)
            return traced if traced is not None else value.scope.declared.get(value.name)
        return super()._shape(value)

    def _traced(self, value: Value) -> Shape | None:
        shape = super()._traced(value)
        scope, node, kind = value.scope, value.node, str(value.node.op_type)
        if shape is not None or value.index in scope.children or node.domain not in (*DEFAULT_DOMAINS, "com.microsoft"):
            return shape
        try:
            if kind in _TOGETHER:
                return broadcast([self.of(scope, str(name)) for name in node.input])
            first = self.of(scope, node_input(node, 0))
            if first is None:
                return None
            if kind in _SAME:
                return first if value.place == 0 else None
            rule = _reduced if kind.startswith("Reduce") else _RULES.get(kind)
            return checked(rule(self, scope, node, first, value.place)) if rule else None
        except _WRONG:
            return None

    def _find_numbers(self, value: Value) -> Shape | None:
        node = value.node
        if node is not None and node.op_type in _NUMBERS:
            one, two = (self.numbers(value.scope, node_input(node, place)) for place in (0, 1))
            if one is None or two is None or not (len(one) == len(two) or 1 in (len(one), len(two))):
                return None
            count = max(len(one), len(two))
            pairs = zip(one * (count // len(one)), two * (count // len(two)), strict=True)
            rule = _NUMBERS[str(node.op_type)]
            try:
                return tuple(None if a is None or b is None else rule(a, b) for a, b in pairs)
            except _WRONG:
                return None
        if node is not None and node.op_type == "Slice":
            return self._picked(value.scope, node)
        return super()._find_numbers(value)

    def _picked(self, scope: Scope, node: Any) -> Shape | None:
        """The part of a list of numbers that a `Slice` takes."""
        whole = self.numbers(scope, node_input(node, 0))
        bounds = [self.given(scope, node, name, place) for name, place in (("starts", 1), ("ends", 2), ("steps", 4))]
        start, end, step = (each[0] if each is not None and len(each) == 1 else None for each in bounds)
        if whole is None or start is None or end is None or (node_input(node, 4) and not step):
            return None
        return whole[start : end : step or 1]


def _matmul(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    second = shapes.of(scope, node_input(node, 3 if node.op_type == "QLinearMatMul" else 1))
    if second is None or not first or not second:
        return None
    outer = broadcast([first[:-2], second[:-2]]) or ()
    return (*outer, *first[-2:-1], *(second[-1:] if len(second) > 1 else ()))


def _gemm(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    given, second = attributes(scope, node), shapes.of(scope, node_input(node, 1))
    if second is None:
        return None
    return first[1 if integer(given, "transA", 0) else 0], second[0 if integer(given, "transB", 0) else 1]


def _windows(given: dict[str, Any], sizes: Shape, kernel: Shape) -> Shape:
    """How often a window fits along each axis: the rule of convolutions and poolings."""
    count = len(sizes)
    strides = integers(given, "strides") or (1,) * count
    dilations = integers(given, "dilations") or (1,) * count
    pads = integers(given, "pads") or (0,) * (2 * count)
    padding = text(given, "auto_pad", "notset")
    rounding = ceil if integer(given, "ceil_mode", 0) else int
    counts: list[int | None] = []
    for axis, (size, width) in enumerate(zip(sizes, kernel, strict=True)):
        stride, dilation, before, after = strides[axis], dilations[axis], pads[axis], pads[axis + count]
        if size is None or width is None or not stride or not dilation or before is None or after is None:
            counts.append(None)
        elif padding.startswith("same"):
            counts.append(-(-size // stride))
        else:
            space = size + (0 if padding == "valid" else before + after) - dilation * (width - 1) - 1
            counts.append(rounding(space / stride) + 1 if space >= 0 else None)
    return tuple(counts)


def _conv(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    filters = shapes.of(scope, node_input(node, 3 if node.op_type == "QLinearConv" else 1))
    if filters is None or len(filters) != len(first):
        return None
    return (first[0], filters[0], *_windows(attributes(scope, node), first[2:], filters[2:]))


def _conv_transpose(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    given, filters = attributes(scope, node), shapes.of(scope, node_input(node, 1))
    if filters is None or len(filters) != len(first) or filters[1] is None:
        return None
    axes = len(first) - 2
    channels = filters[1] * integer(given, "group", 1)
    fixed = integers(given, "output_shape")
    if fixed is not None or text(given, "auto_pad", "notset").startswith("same"):
        return (first[0], channels, *(fixed or (None,) * axes))
    strides, dilations = (integers(given, name) or (1,) * axes for name in ("strides", "dilations"))
    pads, more = integers(given, "pads") or (0,) * (2 * axes), integers(given, "output_padding") or (0,) * axes
    wide = [
        None
        if size is None or kernel is None
        else (strides[at] or 1) * (size - 1)
        + (more[at] or 0)
        + (kernel - 1) * (dilations[at] or 1)
        + 1
        - (pads[at] or 0)
        - (pads[at + axes] or 0)
        for at, (size, kernel) in enumerate(zip(first[2:], filters[2:], strict=True))
    ]
    return (first[0], channels, *wide)


def _pool(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    given = attributes(scope, node)
    kernel = integers(given, "kernel_shape")
    return None if kernel is None else (*first[:2], *_windows(given, first[2:], kernel))


def _global_pool(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    return first[:2] + (1,) * (len(first) - 2)


def _reduced(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    given = attributes(scope, node)
    axes = shapes.given(scope, node, "axes", 1)
    if axes is None and node_input(node, 1):
        return None
    if axes is None and integer(given, "noop_with_empty_axes", 0):
        return first
    return _without(first, axes if axes is not None else tuple(range(len(first))), integer(given, "keepdims", 1))


def _arg(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    given = attributes(scope, node)
    return _without(first, (integer(given, "axis", 0),), integer(given, "keepdims", 1))


def _without(first: Shape, axes: Shape, keep: int) -> Shape:
    gone = {axis % len(first) for axis in axes if axis is not None}
    return tuple(1 if axis in gone else size for axis, size in enumerate(first) if keep or axis not in gone)


def _flatten(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    axis = integer(attributes(scope, node), "axis", 1)
    axis += len(first) if axis < 0 else 0
    return product(first[:axis]), product(first[axis:])


def _pad(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    pads = shapes.given(scope, node, "pads", 1)
    if pads is None or len(pads) != 2 * len(first) or node_input(node, 3):
        return (None,) * len(first)
    both = zip(first, pads[: len(first)], pads[len(first) :], strict=True)
    return tuple(None if None in sizes else sum(size for size in sizes if size is not None) for sizes in both)


def _tile(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    times = shapes.numbers(scope, node_input(node, 1))
    if times is None or len(times) != len(first):
        return None
    return tuple(product(pair) for pair in zip(first, times, strict=True))


def _recurrent(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    given, second = attributes(scope, node), shapes.of(scope, node_input(node, 2))
    hidden = integer(given, "hidden_size", 0) or (second[-1] if second and node.op_type != "DynamicQuantizeLSTM" else 0)
    directions = 2 if text(given, "direction", "forward") == "bidirectional" else 1
    if not hidden or len(first) != 3:
        return None
    if integer(given, "layout", 0):
        return (first[0], *(first[1:2] if place == 0 else ()), directions, hidden)
    return (*(first[:1] if place == 0 else ()), directions, first[1], hidden)


_Rule = Callable[[Shapes, Scope, Any, Shape, int], Shape | None]
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(("MatMul", "MatMulInteger", "QLinearMatMul"), _matmul),
    "Gemm": _gemm,
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv"), _conv),
    "ConvTranspose": _conv_transpose,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), _global_pool),
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg),
    "Flatten": _flatten,
    "Pad": _pad,
    "Tile": _tile,
    **dict.fromkeys(("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"), _recurrent),
}
