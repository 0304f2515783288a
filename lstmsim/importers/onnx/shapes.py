"""Shapes of values in an ONNX network, followed through the operations that exporters put around weights.

A shape is a tuple of sizes, with None for a size that the file leaves open; None instead of a tuple says that nothing
is known. Operations that rearrange are followed here, because lists of numbers may be known in part and operators may
have the form of any version. Operators that compute are inferred by the package onnx, node by node, from shapes and
short lists alone: no weight and no external data is ever read for a shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.importers.imported import kinds_named
from lstmsim.importers.onnx.graph import (
    DEFAULT_DOMAINS,
    MAX_ELEMENTS,
    Bounds,
    Memory,
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
    node_input,
    product,
    slice_bounds,
    text,
)

_SAME = kinds_named("Identity Cast Clip Dropout QuantizeLinear DequantizeLinear Neg Tanh Sigmoid Sqrt")
_TOGETHER = ("Add", "Sub", "Mul", "Div")
_SAME_COMPUTED = kinds_named(
    "Abs BatchNormalization Ceil Celu Clip CumSum DynamicQuantizeLinear Elu Erf Exp Floor Gelu GroupNormalization "
    "HardSigmoid HardSwish InstanceNormalization LRN LayerNormalization LeakyRelu Log LogSoftmax LpNormalization "
    "MeanVarianceNormalization Mish Neg Not PRelu RMSNormalization Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin "
    "Cos Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu CastLike"
)
_TOGETHER_COMPUTED = kinds_named(
    "Add And BitShift Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or Pow Sub Sum Where Xor"
)
_INFERRED = kinds_named(
    "MatMul MatMulInteger QLinearMatMul Gemm Conv ConvInteger QLinearConv ConvTranspose MaxPool AveragePool LpPool "
    "GlobalAveragePool GlobalMaxPool GlobalLpPool ArgMax ArgMin Flatten Pad Tile"
)
#: Inputs that hold numbers on which a shape depends.
_NUMBERED = {"Pad": (1, 3), "Tile": (1,), "Reduce": (1,)}
_NUMBERS: dict[str, Callable[[int, int], int]] = {
    "Add": lambda one, two: one + two,
    "Sub": lambda one, two: one - two,
    "Mul": lambda one, two: one * two,
    # The division of whole numbers rounds towards 0.
    "Div": lambda one, two: abs(one) // abs(two) * (1 if (one < 0) == (two < 0) else -1),
}
#: Types of elements by the names of ONNX's schemas: of these an input has the first that its operator allows.
_ELEMENTS = {"tensor(float)": 1, "tensor(int64)": 7, "tensor(uint8)": 2, "tensor(int32)": 6, "tensor(bool)": 9}


#: Element type and shape of a node's input, and its numbers if its node's shapes depend on them.
Input = tuple[int, Shape, NDArray[Any] | None]


class Shapes(Memory):
    """Shapes of the values of one network, each worked out once."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[Scope, str], Shape | None] = {}
        self._numbers: dict[tuple[Scope, str], Shape | None] = {}

    def of(self, scope: Scope, name: str) -> Shape | None:
        """Give the shape of the value that `name` means in `scope`; None if it is not known."""
        return self.once(self._known, scope, name, self._shape)

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
        inside = value.inside()
        if inside:
            return _agreed([self.of(*each) for each in inside])
        if node.domain not in DEFAULT_DOMAINS:
            return None
        if node.op_type == "Constant":
            return constant_shape(attributes(scope, node))
        if node.op_type == "ConstantOfShape":
            return self.numbers(scope, node_input(node, 0))
        if node.op_type == "Concat":
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
            joined[axis] = None if None in sizes else sum(size for size in sizes if size is not None)
            return checked(tuple(joined))
        if node.op_type in _TOGETHER:
            return broadcast([self.of(scope, str(name)) for name in node.input])
        first = self.of(scope, node_input(node, 0))
        if first is None:
            return None
        if node.op_type in _SAME:
            return first if value.place == 0 else None
        return checked(_rearranged(self, scope, node, first, value.place))

    def numbers(self, scope: Scope, name: str) -> Shape | None:
        """Give the whole numbers in a short list or scalar."""
        numbers = self.once(self._numbers, scope, name, self._find_numbers)
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
        """Give a list of numbers of a node; None if it is left out or not known."""
        own = attributes(scope, node)
        if name in own:
            return integers(own, name)
        return self.numbers(scope, node_input(node, place))

    def slice(self, scope: Scope, node: Any, rank: int) -> dict[int, Bounds] | None:
        """Give start, end and step of a `Slice` by axis; None if its lists are not known or fit no value of a rank."""
        lists = []
        for place, name in enumerate(("starts", "ends", "axes", "steps"), 1):
            numbers = self.given(scope, node, name, place)
            if numbers is None and (place < 3 or node_input(node, place)):
                return None
            lists.append(numbers)
        starts, ends, axes, steps = lists
        return slice_bounds(starts or (), ends or (), axes, steps, rank)


def _rearranged(shapes: Shapes, scope: Scope, node: Any, first: Shape, place: int) -> Shape | None:
    """The shape of output `place` of a node that rearranges a value of shape `first`; None for other nodes."""
    given, rank = attributes(scope, node), len(first)
    axis = integer(given, "axis", 0)
    match str(node.op_type):
        case "Transpose":
            order = [each for each in integers(given, "perm") or reversed(range(rank)) if each is not None]
            return tuple(first[each] for each in order) if sorted(order) == list(range(rank)) else None
        case "Unsqueeze":
            axes = shapes.given(scope, node, "axes", 1)
            if axes is None or None in axes:
                return None
            new = {each % (rank + len(axes)) for each in axes if each is not None}
            rest = iter(first)
            sizes = tuple(1 if at in new else next(rest, None) for at in range(rank + len(axes)))
            return sizes if len(new) == len(axes) else None
        case "Squeeze":
            axes = shapes.given(scope, node, "axes", 1)
            if axes is None:
                explicit = bool(node_input(node, 1))
                return None if explicit or None in first else tuple(size for size in first if size != 1)
            gone = {each % rank for each in axes if each is not None} if first else set()
            return None if None in axes else tuple(size for at, size in enumerate(first) if at not in gone)
        case "Slice":
            bounds, parts = shapes.slice(scope, node, rank), list(first)
            for at in range(rank) if bounds is None else bounds:
                size, (start, end, step) = first[at], (bounds or {}).get(at, (None, None, None))
                known = size is not None and start is not None and end is not None and step
                parts[at] = len(range(*slice(start, end, step).indices(size))) if known and size is not None else None
            return tuple(parts)
        case "Gather" if -rank <= axis < rank:
            picked = shapes.of(scope, node_input(node, 1))
            return None if picked is None else (*first[: axis % rank], *picked, *first[axis % rank + 1 :])
        case "Split" if -rank <= axis < rank:
            stated, count, size = shapes.given(scope, node, "split", 1), len(node.output), first[axis]
            if stated is None and size is not None and not node_input(node, 1) and size % count == 0:
                stated = (size // count,) * count
            part = stated[place] if stated is not None and place < len(stated) else None
            return (*first[: axis % rank], part, *first[axis % rank + 1 :])
        case "Expand":
            wanted = shapes.numbers(scope, node_input(node, 1))
            if wanted is None:
                return None
            most = max(rank, len(wanted))
            pairs = zip((1,) * (most - rank) + first, (1,) * (most - len(wanted)) + wanted, strict=True)
            return tuple(target if own == 1 or (own is None and target != 1) else own for own, target in pairs)
        case "Reshape":
            return _reshaped(first, shapes.given(scope, node, "shape", 1), not integer(given, "allowzero", 0))
    return None


def _reshaped(first: Shape, wanted: Shape | None, keep: bool) -> Shape | None:
    if wanted is None:
        return None
    sizes = [(first[at] if at < len(first) else None) if size == 0 and keep else size for at, size in enumerate(wanted)]
    if sizes.count(-1) == 1:
        rest, whole = product(size for size in sizes if size != -1), product(first)
        sizes[sizes.index(-1)] = whole // rest if rest and whole is not None and whole % rest == 0 else None
    return None if -1 in sizes else tuple(sizes)


def _agreed(shapes: list[Shape | None] | list[Shape]) -> Shape | None:
    """The sizes that all shapes have in common: the shape of a value that has one of these shapes."""
    first, *others = shapes or [None]
    if first is None or any(other is None or len(other) != len(first) for other in others):
        return None
    return tuple(
        sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*[s for s in shapes if s is not None], strict=True)
    )


class ComputedShapes(Shapes):
    """Shapes of one run whose input sizes are all known, by the network's version of ONNX's own operators.

    A shape that follows from the inputs counts more than one that the file states, perhaps for other sizes.
    """

    def __init__(self, version: int) -> None:
        super().__init__()
        self._version = version

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
        if kind in _TOGETHER_COMPUTED:
            return broadcast([self.of(scope, str(name)) for name in node.input])
        first = self.of(scope, node_input(node, 0))
        if first is None:
            return None
        if kind in _SAME_COMPUTED:
            return first if value.place == 0 else None
        if kind in ("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"):
            given, second = attributes(scope, node), self.of(scope, node_input(node, 2))
            stated = second[-1] if second and node.op_type != "DynamicQuantizeLSTM" else 0
            hidden = integer(given, "hidden_size", 0) or stated
            directions = 2 if text(given, "direction", "forward") == "bidirectional" else 1
            if not hidden or len(first) != 3:
                return None
            if integer(given, "layout", 0):
                return (first[0], *(first[1:2] if value.place == 0 else ()), directions, hidden)
            return (*(first[:1] if value.place == 0 else ()), directions, first[1], hidden)
        known = kind in _INFERRED or kind.startswith("Reduce")
        return self._inferred(scope, node, value.place) if known and node.domain in DEFAULT_DOMAINS else None

    def _inferred(self, scope: Scope, node: Any, place: int) -> Shape | None:
        kind = str(node.op_type)
        numbered = _NUMBERED.get("Reduce" if kind.startswith("Reduce") else kind, ())
        allowed, inputs = _element_types(kind, self._version), list[Input | None]()
        for at, name in enumerate(node.input if allowed else ()):
            shape = self.of(scope, str(name)) if name else None
            inputs.append(None if shape is None else (allowed[min(at, len(allowed) - 1)], shape, None))
            held = self.numbers(scope, str(name)) if name and at in numbered else None
            if held is not None and None not in held:
                inputs[-1] = 7, (len(held),), np.array(held, np.int64)
        made = inferred_types(kind, self._version, attributes(scope, node), inputs, len(node.output))[place]
        if not allowed or made is None or not made.HasField("shape"):
            return None
        return checked(tuple(int(dim.dim_value) if dim.HasField("dim_value") else None for dim in made.shape.dim))

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
            except ZeroDivisionError:
                return None
        if node is not None and node.op_type == "Slice":
            whole, bounds = self.numbers(value.scope, node_input(node, 0)), self.slice(value.scope, node, 1)
            start, end, step = (bounds or {}).get(0, (None, None, None))
            return None if whole is None or start is None or end is None or not step else whole[start:end:step]
        return super()._find_numbers(value)


def inferred_types(
    kind: str, version: int, given: Mapping[str, Any], inputs: Sequence[Input | None], outputs: int
) -> list[Any]:
    """The tensor types of a node's outputs by onnx's own rules; None for an output that they do not give."""
    from onnx import defs, helper, numpy_helper, shape_inference

    names = ["" if each is None else f"i{at}" for at, each in enumerate(inputs)]
    types, numbers = dict[str, Any](), dict[str, Any]()
    for name, each in zip(names, inputs, strict=True):
        if each is not None:
            types[name] = helper.make_tensor_type_proto(each[0], each[1])
            numbers |= {} if each[2] is None else {name: numpy_helper.from_array(each[2], name)}
    node = helper.make_node(kind, names, [f"o{place}" for place in range(outputs)])
    for name, own in given.items():
        node.attribute.add().CopyFrom(own)
        # An attribute that a function hands on has the name that it has in the call.
        node.attribute[-1].name = name
    try:
        made = shape_inference.infer_node_outputs(defs.get_schema(kind, version, ""), node, types, numbers)
    except Exception:
        # onnx raises classes of its native part here, for unknown operators and arguments that do not fit.
        made = {}
    found = [made.get(f"o{place}") for place in range(outputs)]
    return [each.tensor_type if each is not None and each.HasField("tensor_type") else None for each in found]


@cache
def _element_types(kind: str, version: int) -> tuple[int, ...]:
    """A type of elements that each input of an operator can have; empty for unknown operators."""
    from onnx import defs

    try:
        inputs = defs.get_schema(kind, version, "").inputs
    except Exception:
        return ()
    return tuple(next((number for name, number in _ELEMENTS.items() if name in each.types), 1) for each in inputs)
