"""Shapes of values in an ONNX network, followed through the operations that exporters put around weights.

A shape is a tuple of sizes, with None for a size that the file leaves open; None instead of a tuple says that nothing
is known. If a shape cannot be followed further, the shape that the graph itself states is taken. Values are read only
for short lists of whole numbers inside the file (axes, bounds of slices, target shapes), never for weights or external
data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, Value, attributes, node_input, resolve
from lstmsim.importers.onnx.values import (
    MAX_ELEMENTS,
    Shape,
    broadcast,
    checked,
    constant_shape,
    elements,
    integer,
    integers,
    product,
)

__all__ = ["Shapes"]

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
