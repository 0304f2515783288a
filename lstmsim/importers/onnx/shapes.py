"""Shapes of values in an ONNX network, followed through the operations that exporters put around weights.

A shape is a tuple of sizes, with None for a size that the file leaves open; None instead of a tuple says that nothing
is known. If a shape cannot be followed further, the shape that the graph itself states is taken. Values are read only
for short lists of whole numbers inside the file (axes, bounds of slices, target shapes), never for weights or external
data.

Shapes through the operators that compute: what the layers around a recurrent network make of given input sizes.

Source: the operator pages of ONNX (shapes of outputs). A value has no shape if its operator has no rule here, or if
the rule fails.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from lstmsim.importers.onnx.graph import (
    DEFAULT_DOMAINS,
    MAX_ELEMENTS,
    Scope,
    Shape,
    Value,
    attributes,
    broadcast,
    checked,
    constant_shape,
    elements,
    integer,
    integers,
    kinds_named,
    node_input,
    product,
    resolve,
    text,
)

_MAX_HOPS = 100
_SAME = ("Identity", "Cast", "Dropout", "QuantizeLinear", "DequantizeLinear", "Neg", "Tanh", "Sigmoid", "Sqrt")
_TOGETHER = ("Add", "Sub", "Mul", "Div")


class Shapes:
    """Shapes of the values of one network, each worked out once.

    >>> from onnx import TensorProto, helper
    >>> weights = helper.make_tensor("w", TensorProto.FLOAT, [2, 3], [0.0] * 6)
    >>> turned = helper.make_node("Transpose", ["w"], ["t"])
    >>> from lstmsim.importers.onnx.graph import open_scopes
    >>> graph = helper.make_graph([turned], "g", [], [], initializer=[weights])
    >>> Shapes().of(open_scopes(helper.make_model(graph))[0], "t")
    (3, 2)
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Scope, str], Shape | None] = {}
        self._numbers: dict[tuple[Scope, str], Shape | None] = {}
        self._hops = 0

    def of(self, scope: Scope, name: str) -> Shape | None:
        """Give the shape of the value that `name` means in `scope`; None if it is not known."""
        value = resolve(scope, name)
        if value is None:
            return None
        return self._once(self._known, value, self._shape)

    def _once(
        self, memory: dict[tuple[Scope, str], Shape | None], value: Value, find: Callable[[Value], Shape | None]
    ) -> Shape | None:
        key = (value.scope, value.name)
        if key not in memory and self._hops < _MAX_HOPS:
            # None stands here meanwhile, so that a value that depends on itself is unknown.
            memory[key] = None
            self._hops += 1
            memory[key] = find(value)
            self._hops -= 1
        return memory.get(key)

    def _shape(self, value: Value) -> Shape | None:
        declared = value.scope.declared.get(value.name)
        if value.tensor is not None:
            return checked(tuple(value.tensor.dims))
        if value.node is None:
            return declared
        traced = self._traced(value)
        if traced is None or declared is None or len(traced) != len(declared):
            return declared if traced is None else traced
        return tuple(own if own is not None else other for own, other in zip(traced, declared, strict=True))

    def _traced(self, value: Value) -> Shape | None:
        scope, node = value.scope, value.node
        bodies = scope.children.get(value.index, [])
        if bodies and (node.op_type == "If" or bodies[0].caller is not None):
            shapes = [self.of(body, body.outputs[value.place]) for body in bodies if value.place < len(body.outputs)]
            return _agreed(shapes)
        if node.domain not in DEFAULT_DOMAINS:
            return None
        if node.op_type == "Constant":
            return constant_shape(attributes(scope, node))
        if node.op_type == "ConstantOfShape":
            return self.numbers(scope, node_input(node, 0))
        if node.op_type == "Concat":
            return self._concat(scope, node)
        if node.op_type in _TOGETHER:
            return broadcast([self.of(scope, str(name)) for name in node.input])
        first = self.of(scope, node_input(node, 0))
        if first is None:
            return None
        if node.op_type in _SAME:
            return first if value.place == 0 else None
        rule = _RULES.get(str(node.op_type))
        shape = rule(self, scope, node, first, value.place) if rule else None
        return checked(shape)

    def _concat(self, scope: Scope, node: Any) -> Shape | None:
        shapes = [self.of(scope, str(name)) for name in node.input]
        known = [shape for shape in shapes if shape is not None]
        axis = integer(attributes(scope, node), "axis", 0)
        if (
            not known
            or any(len(shape) != len(known[0]) for shape in known)
            or not -len(known[0]) <= axis < len(known[0])
        ):
            return None
        joined = list(_agreed(known) or ())
        sizes = [shape[axis] if shape is not None else None for shape in shapes]
        joined[axis] = _total(sizes)
        return checked(tuple(joined))

    def numbers(self, scope: Scope, name: str) -> Shape | None:
        """Give the whole numbers in a short list or scalar.

        A number that is not in the file is None; the result is None if not even their count is known.
        """
        value = resolve(scope, name)
        if value is None:
            return None
        numbers = self._once(self._numbers, value, self._find_numbers)
        if numbers is None:
            shape = self.of(scope, name)
            if shape is not None and len(shape) <= 1:
                count = shape[0] if shape else 1
                return (None,) * count if count is not None and count <= MAX_ELEMENTS else None
        return numbers

    def _find_numbers(self, value: Value) -> Shape | None:
        scope, node = value.scope, value.node
        if node is None:
            return elements(value.tensor)
        given, kind = attributes(scope, node), str(node.op_type)
        if kind == "Constant":
            if "value_ints" in given or "value_int" in given:
                return integers(given, "value_ints") or (integer(given, "value_int", 0),)
            return elements(given["value"].t) if "value" in given else None
        if kind == "Concat":
            parts = [self.numbers(scope, str(name)) for name in node.input]
            joined = tuple(number for part in parts if part is not None for number in part[:MAX_ELEMENTS])
            return joined if None not in parts and len(joined) <= MAX_ELEMENTS else None
        if kind in ("Unsqueeze", "Squeeze", "Identity", "Cast", "Reshape"):
            return self.numbers(scope, node_input(node, 0))
        if kind == "Shape":
            shape = self.of(scope, node_input(node, 0))
            end = integer(given, "end", 2**31)
            return None if shape is None else shape[integer(given, "start", 0) : end]
        if kind == "Gather":
            numbers = self.numbers(scope, node_input(node, 0))
            places = self.numbers(scope, node_input(node, 1))
            if numbers is None or places is None:
                return None
            return tuple(
                numbers[place] if place is not None and -len(numbers) <= place < len(numbers) else None
                for place in places
            )
        return None

    def given(self, scope: Scope, node: Any, name: str, place: int) -> Shape | None:
        """Give a list of numbers of a node; None if it is left out or not known.

        name: its name as an attribute, in old versions of the operator.
        place: its place among the inputs, in newer versions.
        """
        own = attributes(scope, node)
        if name in own:
            return integers(own, name)
        return self.numbers(scope, node_input(node, place))


def _transpose(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    order = integers(attributes(scope, node), "perm") or tuple(reversed(range(len(first))))
    places = [axis for axis in order if axis is not None]
    return tuple(first[axis] for axis in places) if sorted(places) == list(range(len(first))) else None


def _unsqueeze(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    axes = shapes.given(scope, node, "axes", 1)
    if axes is None or None in axes:
        return None
    rank = len(first) + len(axes)
    new = {axis % rank for axis in axes if axis is not None}
    rest = iter(first)
    return tuple(1 if axis in new else next(rest) for axis in range(rank)) if len(new) == len(axes) else None


def _squeeze(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    axes = shapes.given(scope, node, "axes", 1)
    if axes is None:
        explicit = bool(node_input(node, 1))
        return None if explicit or None in first else tuple(size for size in first if size != 1)
    gone = {axis % len(first) for axis in axes if axis is not None} if first else set()
    return None if None in axes else tuple(size for axis, size in enumerate(first) if axis not in gone)


def _slice(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    starts, ends = shapes.given(scope, node, "starts", 1), shapes.given(scope, node, "ends", 2)
    axes, steps = shapes.given(scope, node, "axes", 3), shapes.given(scope, node, "steps", 4)
    count = len(starts) if starts is not None else len(axes or ())
    if axes is None and node_input(node, 3):
        return (None,) * len(first)
    axes = axes or tuple(range(count))
    steps = steps or ((None,) if node_input(node, 4) else (1,)) * count
    if starts is None or ends is None or not len(starts) == len(ends) == len(axes) == len(steps):
        return (None,) * len(first)
    sizes = list(first)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if axis is None or not -len(first) <= axis < len(first):
            return (None,) * len(first)
        size = sizes[axis]
        known = size is not None and start is not None and end is not None and step
        sizes[axis] = len(range(*slice(start, end, step).indices(size))) if known and size is not None else None
    return tuple(sizes)


def _reshape(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    wanted = shapes.given(scope, node, "shape", 1)
    if wanted is None:
        return None
    keep = not integer(attributes(scope, node), "allowzero", 0)
    sizes = [(first[at] if at < len(first) else None) if size == 0 and keep else size for at, size in enumerate(wanted)]
    if sizes.count(-1) == 1:
        rest, whole = product(size for size in sizes if size != -1), product(first)
        sizes[sizes.index(-1)] = whole // rest if rest and whole is not None and whole % rest == 0 else None
    return None if -1 in sizes else tuple(sizes)


def _gather(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    axis = integer(attributes(scope, node), "axis", 0)
    picked = shapes.of(scope, node_input(node, 1))
    if picked is None or not -len(first) <= axis < len(first):
        return None
    axis %= len(first)
    return (*first[:axis], *picked, *first[axis + 1 :])


def _split(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    axis = integer(attributes(scope, node), "axis", 0)
    if not -len(first) <= axis < len(first):
        return None
    sizes, parts, size = shapes.given(scope, node, "split", 1), len(node.output), first[axis]
    if sizes is None and size is not None and not node_input(node, 1) and size % parts == 0:
        sizes = (size // parts,) * parts
    joined = list(first)
    joined[axis] = sizes[place] if sizes is not None and place < len(sizes) else None
    return tuple(joined)


def _expand(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    wanted = shapes.numbers(scope, node_input(node, 1))
    if wanted is None:
        return None
    rank = max(len(first), len(wanted))
    pairs = zip((1,) * (rank - len(first)) + first, (1,) * (rank - len(wanted)) + wanted, strict=True)
    return tuple(target if own == 1 else own if own is not None or target == 1 else target for own, target in pairs)


_RULES: dict[str, Callable[[Shapes, Scope, Any, Shape, int], Shape | None]] = {
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Slice": _slice,
    "Reshape": _reshape,
    "Gather": _gather,
    "Split": _split,
    "Expand": _expand,
}


def _agreed(shapes: list[Shape | None] | list[Shape]) -> Shape | None:
    """The sizes that all shapes have in common: the shape of a value that has one of these shapes."""
    first, *others = shapes or [None]
    if first is None or any(other is None or len(other) != len(first) for other in others):
        return None
    return tuple(
        sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*[s for s in shapes if s is not None], strict=True)
    )


def _total(sizes: list[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


_SAME_computed = kinds_named(
    "Abs BatchNormalization Ceil Celu Clip CumSum DynamicQuantizeLinear Elu Erf Exp Floor Gelu GroupNormalization "
    "HardSigmoid HardSwish InstanceNormalization LRN LayerNormalization LeakyRelu Log LogSoftmax LpNormalization "
    "MeanVarianceNormalization Mish Neg Not PRelu RMSNormalization Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin "
    "Cos Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu CastLike"
)
_TOGETHER_computed = kinds_named(
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
            if kind in _TOGETHER_computed:
                return broadcast([self.of(scope, str(name)) for name in node.input])
            first = self.of(scope, node_input(node, 0))
            if first is None:
                return None
            if kind in _SAME_computed:
                return first if value.place == 0 else None
            rule = _reduced if kind.startswith("Reduce") else _RULES_computed.get(kind)
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
_RULES_computed: dict[str, _Rule] = {
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
