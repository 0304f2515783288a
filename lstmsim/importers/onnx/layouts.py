"""What the axes of a value in an ONNX network are, followed by identity and not by size.

Through operations that only rearrange, an axis stays the time, the direction, the batch or the units of the layer that
it comes from. Every other operation makes new axes, also one that takes a part, reverses an order or folds axes. So two
axes of equal size are never taken for each other.
Source: the ONNX operator pages of the operations in `axis_rules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lstmsim.importers.onnx.axes import Axis, Numbers, Part, Size, View, fixed, times
from lstmsim.importers.onnx.axis_rules import RULES
from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, Value, attributes, node_input, resolve
from lstmsim.importers.onnx.nodes import is_recurrent
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.values import MAX_ELEMENTS, integer
from lstmsim.model.model import Layer

__all__ = ["LAYER_ROLES", "Layouts"]

#: Most operations that are followed; real networks need a dozen. `Shapes` has a bound of its own.
_MAX_HOPS = 60
#: Most factors of one size, and its largest number: only a hostile file multiplies sizes again and again.
_MAX_FACTORS, _LARGEST = 16, 2**62
#: The axes of a recurrent node's output.
LAYER_ROLES = ("time", "direction", "batch", "units")


class Layouts:
    """Axes of the values of one network.

    shapes: the shapes of its values.
    layers: its recurrent nodes as layers.

    >>> from onnx import TensorProto, helper
    >>> from lstmsim.importers.onnx.graph import open_scopes
    >>> x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["time", 1, 4])
    >>> turned = helper.make_node("Transpose", ["x"], ["t"], perm=[1, 2, 0])
    >>> scope = open_scopes(helper.make_model(helper.make_graph([turned], "g", [x], [])))[0]
    >>> [[part.role for part in axis] for axis in Layouts(Shapes(), {}).of(scope, "t")]
    [[], [2], [0]]
    """

    def __init__(self, shapes: Shapes, layers: Mapping[tuple[Scope, int], Layer]) -> None:
        self.shapes = shapes
        self._layers = layers
        self._views: dict[tuple[Scope, str], View | None] = {}
        self._lists: dict[tuple[Scope, str], Numbers | None] = {}
        self._sizes: dict[Part, Size] = {}
        self._symbols = 0
        self._hops = 0

    def of(self, scope: Scope, name: str) -> View | None:
        """Give the axes of the value that `name` means in `scope`; None if not even their number is known."""
        value = resolve(scope, name)
        if value is None:
            return None
        key = (value.scope, value.name)
        if key not in self._views and self._hops < _MAX_HOPS:
            # None stands here meanwhile, so that a value that depends on itself is unknown.
            self._views[key] = None
            self._hops += 1
            self._views[key] = self._view(value)
            self._hops -= 1
        return self._views.get(key)

    def size(self, axis: Axis) -> Size:
        """Give the size of an axis."""
        return times(self._sizes[part] for part in axis)

    def sequence(self, scope: Scope, index: int, batch_first: bool) -> View:
        """Give the axes of a recurrent node's output as a layer above reads them: time, batch, units of all directions.

        batch_first: whether the layer above has the batch before the time.
        """
        time, direction, batch, units = self._axes(scope, index)
        return (batch, time, direction + units) if batch_first else (time, batch, direction + units)

    def _axes(self, scope: Scope, index: int) -> list[Axis]:
        """Time, direction, batch and units of a recurrent node's output."""
        parts = [Part(scope, str(scope.nodes[index].output[0]), role) for role in LAYER_ROLES]
        return [(part,) if part in self._sizes else () for part in parts]

    def frames(self, scope: Scope, index: int) -> Size | None:
        """Give the number of frames that a recurrent node reads; None if their axes are not known."""
        node = scope.nodes[index]
        view = self.of(scope, node_input(node, 0))
        at = 1 if integer(attributes(scope, node), "layout", 0) else 0
        return self.size(view[at]) if view is not None and len(view) == 3 else None

    def numbers(self, scope: Scope, name: str) -> Numbers | None:
        """Give the whole numbers in a short list, as sizes; None for a number, or for the list, that is not known."""
        value = resolve(scope, name)
        if value is None:
            return None
        key = (value.scope, value.name)
        if key not in self._lists and self._hops < _MAX_HOPS:
            self._lists[key] = None
            self._hops += 1
            self._lists[key] = self._find_numbers(value)
            self._hops -= 1
        return self._lists.get(key)

    def _find_numbers(self, value: Value) -> Numbers | None:
        scope, node = value.scope, value.node
        sizes = self._sizes_computed(scope, node) if node is not None else None
        if sizes is not None:
            return sizes if len(sizes) <= MAX_ELEMENTS else None
        known = self.shapes.numbers(scope, value.name)
        return None if known is None else tuple(None if each is None else fixed(each) for each in known)

    def _sizes_computed(self, scope: Scope, node: Any) -> Numbers | None:
        """The list that a node computes from shapes, in the ways in which exporters do it."""
        given, kind = attributes(scope, node), str(node.op_type)
        if node.domain not in DEFAULT_DOMAINS:
            return None
        if kind == "Shape":
            view = self.of(scope, node_input(node, 0))
            end = integer(given, "end", 2**31)
            return None if view is None else tuple(map(self.size, view))[integer(given, "start", 0) : end]
        if kind == "Concat":
            parts = [self.numbers(scope, str(name)) for name in node.input[:MAX_ELEMENTS]]
            if None in parts or len(node.input) > MAX_ELEMENTS:
                return None
            return tuple(number for part in parts if part is not None for number in part)
        if kind not in ("Unsqueeze", "Squeeze", "Identity", "Cast", "Reshape", "Gather", "Slice", "Mul"):
            return None
        first = self.numbers(scope, node_input(node, 0))
        if first is None or kind not in ("Gather", "Slice", "Mul"):
            return first
        if kind == "Mul":
            second = self.numbers(scope, node_input(node, 1))
            if second is None or len(first) != 1 or len(second) != 1 or first[0] is None or second[0] is None:
                return None
            whole = times((first[0], second[0]))
            return (whole if len(whole[1]) <= _MAX_FACTORS and abs(whole[0]) < _LARGEST else None,)
        return _picked_numbers(self.shapes, scope, node, first)

    def _view(self, value: Value) -> View | None:
        scope, node = value.scope, value.node
        if node is None:
            return self._fresh(value)
        bodies = scope.children.get(value.index, [])
        if bodies and (node.op_type == "If" or bodies[0].caller is not None):
            views = [self.of(body, body.outputs[value.place]) for body in bodies if value.place < len(body.outputs)]
            if views and views[0] is not None and all(view == views[0] for view in views):
                return views[0]
        elif not bodies and value.place == 0 and is_recurrent(node) and (scope, value.index) in self._layers:
            return self._output(scope, value.index)
        elif not bodies and node.domain in DEFAULT_DOMAINS and node.op_type in RULES:
            first = self.of(scope, node_input(node, 0))
            rearranged = RULES[node.op_type](self, scope, node, first, value.place) if first is not None else None
            if rearranged is not None:
                return rearranged
        return self._fresh(value)

    def _fresh(self, value: Value) -> View | None:
        """New axes, which belong to the value itself."""
        shape = self.shapes.of(value.scope, value.name)
        if shape is None:
            return None
        parts = [Part(value.scope, value.name, role) for role in range(len(shape))]
        return tuple(self._held(part, size) for part, size in zip(parts, shape, strict=True))

    def _held(self, part: Part, size: int | Size | None) -> Axis:
        """The axis of a part, whose size is kept in `_sizes`; an axis of size 1 has no parts."""
        if size is None:
            self._symbols += 1
        whole = (1, (self._symbols,)) if size is None else fixed(size) if isinstance(size, int) else size
        if whole == fixed(1):
            return ()
        self._sizes[part] = whole
        return (part,)

    def _output(self, scope: Scope, index: int) -> View:
        """Axes of a recurrent node's output sequence; the sizes of time and batch come from its frames."""
        node, layer = scope.nodes[index], self._layers[scope, index]
        view, shape = self.of(scope, node_input(node, 0)), self.shapes.of(scope, node_input(node, 0))
        batch_first = bool(integer(attributes(scope, node), "layout", 0))
        lengths: list[int | Size | None] = [None, None]
        if view is not None and len(view) == 3:
            lengths = [self.size(view[0]), self.size(view[1])]
        if shape is not None and len(shape) == 3:
            lengths = [known if known is not None else other for known, other in zip(shape[:2], lengths, strict=True)]
        time, batch = lengths[::-1] if batch_first else lengths
        name = str(node.output[0])
        sizes = (time, layer.directions, batch, layer.output // layer.directions)
        for role, size in zip(LAYER_ROLES, sizes, strict=True):
            self._held(Part(scope, name, role), size)
        time_axis, direction, batch_axis, units = self._axes(scope, index)
        return (batch_axis, time_axis, direction, units) if batch_first else (time_axis, direction, batch_axis, units)

    def one_side(self, view: View, at: int, side: int, *, keep: bool) -> View | None:
        """Pick one direction of an output.

        view: the axes of the output.
        at: its axis of directions.
        side: the direction, 0 or 1.
        keep: whether the axis `at` stays with size 1.
        """
        if not 0 <= at < len(view) or len(view[at]) != 1 or view[at][0].role != "direction":
            return None
        whole = replace(view[at][0], role="units")
        picked = tuple(tuple(replace(each, side=side) if each == whole else each for each in axis) for axis in view)
        if whole in self._sizes:
            self._sizes[replace(whole, side=side)] = self._sizes[whole]
        return (*picked[:at], *([()] if keep else []), *picked[at + 1 :])


def _picked_numbers(shapes: Shapes, scope: Scope, node: Any, first: Numbers) -> Numbers | None:
    if node.op_type == "Gather":
        places = shapes.numbers(scope, node_input(node, 1))
        if places is None or any(at is None or not -len(first) <= at < len(first) for at in places):
            return None
        return tuple(first[at] for at in places if at is not None)
    bounds = [shapes.given(scope, node, name, at) for at, name in enumerate(("starts", "ends", "axes", "steps"), 1)]
    starts, ends, axes, steps = (each[0] if each is not None and len(each) == 1 else None for each in bounds)
    if starts is None or ends is None or (axes or 0) not in (0, -1) or (node_input(node, 4) and steps is None):
        return None
    return first[starts : ends : steps or 1] if steps != 0 else None
