"""What the axes of a value in an ONNX network are, followed by identity and not by size.

Through operations that only rearrange, an axis stays the time, the direction, the batch or the units of the layer that
it comes from. Every other operation makes new axes, also one that takes a part, reverses an order or folds axes. So two
axes of equal size are never taken for each other.

`sequence_lens` of recurrent nodes need the number of frames: notes on them are here. A run takes every sequence at its
full length; in ONNX, steps after a sequence's length give 0, and the reverse direction begins at its last step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.importers.onnx.axes import RULES, Axis, Numbers, Part, Size, View, fixed, times
from lstmsim.importers.onnx.graph import (
    DEFAULT_DOMAINS,
    MAX_ELEMENTS,
    Memory,
    Scope,
    Value,
    attributes,
    integer,
    label,
    node_input,
    resolve,
)
from lstmsim.importers.onnx.nodes import is_recurrent
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.model.model import Layer

#: Most factors of one size, and its largest number: only a hostile file multiplies sizes again and again.
_MAX_FACTORS, _LARGEST = 16, 2**62
#: The axes of a recurrent node's output.
LAYER_ROLES = ("time", "direction", "batch", "units")
_PLACE = 4
_REPEATING = ("Expand", "Tile", "Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape")
_MAX_VISITED = 300
_SHOWN = 6


class Layouts(Memory):
    """Axes of the values of one network.

    shapes: the shapes of its values.
    layers: its recurrent nodes as layers.
    """

    # Real networks need a dozen.
    MAX_HOPS = 60

    def __init__(self, shapes: Shapes, layers: Mapping[tuple[Scope, int], Layer]) -> None:
        super().__init__()
        self.shapes = shapes
        self._layers = layers
        self._views: dict[tuple[Scope, str], View | None] = {}
        self._lists: dict[tuple[Scope, str], Numbers | None] = {}
        self._sizes: dict[Part, Size] = {}
        self._symbols = 0

    def of(self, scope: Scope, name: str) -> View | None:
        """Give the axes of the value that `name` means in `scope`; None if not even their number is known."""
        return self.once(self._views, scope, name, self._view)

    def size(self, axis: Axis) -> Size:
        """Give the size of an axis."""
        return times(self._sizes[part] for part in axis)

    def sequence(self, scope: Scope, index: int, batch_first: bool) -> View:
        """Give the axes of a recurrent node's output as a layer above reads them."""
        time, direction, batch, units = self._axes(scope, index)
        return (batch, time, direction + units) if batch_first else (time, batch, direction + units)

    def _axes(self, scope: Scope, index: int) -> list[Axis]:
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
        return self.once(self._lists, scope, name, self._find_numbers)

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
        inside = value.inside()
        if inside:
            views = [self.of(*each) for each in inside]
            if views[0] is not None and all(view == views[0] for view in views):
                return views[0]
        elif value.index in scope.children:
            return self._fresh(value)
        elif value.place == 0 and is_recurrent(node) and (scope, value.index) in self._layers:
            return self._output(scope, value.index)
        elif value.kind in RULES:
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
        """Pick one direction of an output."""
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
    start, end, step = (shapes.slice(scope, node, 1) or {}).get(0, (None, None, None))
    return None if start is None or end is None or not step else first[start:end:step]


def length_notes(
    keys: Iterable[tuple[Scope, int]], layouts: Layouts, *, refuse: bool
) -> dict[tuple[Scope, int], tuple[str, ...]]:
    """Note for each recurrent node what to know about its lengths."""
    notes = dict[tuple[Scope, int], tuple[str, ...]]()
    mistakes = []
    for scope, index in keys:
        notes[scope, index] = ()
        name = node_input(scope.nodes[index], _PLACE)
        if not name:
            continue
        lengths, frames = _lengths(layouts, scope, name), layouts.frames(scope, index)
        if lengths and frames is not None and all(each == frames for each in lengths):
            continue
        given = _given(scope, name)
        if given and (lengths is None or None in lengths):
            inputs = listed([f"input {show(each)}" for each in given], "and")
            notes[scope, index] = (f"sequence_lens depends on {inputs}: every sequence is taken at its full length",)
            continue
        sentence = _limit(lengths, frames)
        notes[scope, index] = (f"{label(scope, index)} has {sentence}, where a run here takes every frame",)
        advice = "export it without lengths or with them as an input, or read shapes only (--no-weights)"
        mistakes.append(Mistake(label(scope, index), f"has {sentence}, where a run here takes every frame: {advice}"))
    if mistakes and refuse:
        raise InputError(mistakes)
    return notes


def _limit(lengths: list[Size | None] | None, frames: Size | None) -> str:
    known = [each[0] for each in lengths or () if each is not None and not each[1]]
    if lengths is None or len(known) < len(lengths):
        return "a sequence_lens that is computed from shapes and may be shorter than its frames"
    stated = listed(dict.fromkeys(known[:_SHOWN]), "and")
    if frames is None or frames[1]:
        return f"a sequence_lens fixed at {stated} for any number of frames"
    return f"a sequence_lens of {stated} for {frames[0]} frames"


def _lengths(layouts: Layouts, scope: Scope, name: str) -> list[Size | None] | None:
    """Every length that occurs, without repetitions; None for a length, or for the list, that is not known."""
    value = resolve(scope, name)
    for _ in range(_MAX_VISITED):
        known = None if value is None else layouts.numbers(value.scope, value.name)
        if known and None not in known:
            return list(known)
        if value is None or value.kind not in (*_REPEATING, "ConstantOfShape"):
            return None
        if value.kind == "ConstantOfShape":
            return _filled(value)
        if len(value.node.input) > 2:
            return None
        value = resolve(value.scope, node_input(value.node, 0))
    return None


def _filled(value: Value) -> list[Size | None] | None:
    given = attributes(value.scope, value.node)
    tensor = given["value"].t if "value" in given else None
    stored = [*tensor.int32_data, *tensor.int64_data] if tensor is not None else []
    if tensor is not None and tensor.raw_data:
        stored = [int.from_bytes(tensor.raw_data, "little", signed=True)]
    return [(int(stored[0]), ())] if len(stored) == 1 else None


def _given(scope: Scope, name: str) -> list[str]:
    """The inputs of the network whose numbers, and not only shapes, a value depends on."""
    inputs, seen, waiting = dict[str, None](), set[tuple[Scope, str]](), [(scope, name)]
    while waiting and len(seen) < _MAX_VISITED:
        value = resolve(*waiting.pop())
        if value is None or (value.scope, value.name) in seen:
            continue
        seen.add((value.scope, value.name))
        node = value.node
        if node is None:
            inputs |= {} if value.tensor is not None else {value.name: None}
        elif node.op_type not in ("Shape", "Size"):
            waiting += [(value.scope, str(each)) for each in node.input[:_MAX_VISITED]]
    return list(inputs)[:_SHOWN]
