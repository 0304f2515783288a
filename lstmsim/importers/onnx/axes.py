"""Axes of the values of an ONNX network, followed by identity and not by size, and what rearranging does to them.

An axis stays the time, direction, batch or units of the layer that it comes from until an operation does more than
rearrange. A run takes sequences at full length: notes on `sequence_lens` are here. Source: the ONNX pages of `RULES`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.importers.imported import kinds_named
from lstmsim.importers.onnx.graph import (
    DEFAULT_DOMAINS,
    MAX_ELEMENTS,
    Memory,
    Scope,
    Value,
    attributes,
    integer,
    integers,
    label,
    node_input,
    resolve,
    slice_bounds,
    upstream,
)
from lstmsim.importers.onnx.nodes import is_recurrent
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.model.model import Layer

#: A factor, and the symbols that it is multiplied by. A symbol is a size that the file leaves open, as a number.
Size = tuple[int, tuple[int, ...]]
#: A short list of whole numbers, with None for each number that is not known.
Numbers = tuple[Size | None, ...]
#: Types of numbers, as ONNX numbers them: float32 and float64; float16 and bfloat16.
_WIDE, _NARROW = (1, 11), (10, 16)
#: Exporters write a number at least this large as the end of a slice that goes to the end.
_OPEN_END = 2**31 - 1


@dataclass(frozen=True)
class Part:
    """A whole axis of one value, in order: `time`, `direction`, `batch` or `units` of a layer's output, else a number.

    `side` is the direction (0 or 1) whose units these are, if one direction was picked.
    """

    scope: Scope
    name: str
    role: str | int
    side: int | None = None


#: Parts that one axis runs through, the last part fastest; an axis of size 1 has no parts.
Axis = tuple[Part, ...]
View = tuple[Axis, ...]


def fixed(number: int) -> Size:
    """Make a size of a number that the file states."""
    return number, ()


def times(sizes: Iterable[Size]) -> Size:
    """Multiply sizes."""
    factor, symbols = 1, list[int]()
    for number, more in sizes:
        factor *= number
        symbols += more
    return factor, tuple(sorted(symbols))


def quotient(whole: Size, part: Size) -> Size | None:
    """Divide the size `whole` by `part`; None if that leaves a rest."""
    left, taken = Counter(whole[1]), Counter(part[1])
    if not part[0] or whole[0] % part[0] or taken - left:
        return None
    return whole[0] // part[0], tuple(sorted((left - taken).elements()))


def _regrouped(axis: Axis, sizes: Mapping[Part, Size], wanted: Sequence[Size | None]) -> View | None:
    """Group the parts of a value into axes of the wanted sizes; None if that would cut a part in two."""
    open_axes = [at for at, size in enumerate(wanted) if size is None]
    split = open_axes[0] if open_axes else len(wanted)
    front = _taken(axis, sizes, wanted[:split])
    if len(open_axes) > 1 or front is None:
        return None
    rest = axis[sum(map(len, front)) :]
    if not open_axes:
        return None if rest else front
    back = _taken(rest[::-1], sizes, wanted[:split:-1])
    if back is None:
        return None
    count = sum(map(len, back))
    return (*front, rest[: len(rest) - count], *(each[::-1] for each in back[::-1]))


def _taken(axis: Axis, sizes: Mapping[Part, Size], wanted: Sequence[Size | None]) -> View | None:
    """Axes of the wanted sizes, taken from the parts at the front; None if that would cut a part in two."""
    axes, at = list[Axis](), 0
    for size in wanted:
        begin = at
        while size is not None and size != fixed(1):
            size = quotient(size, sizes[axis[at]]) if at < len(axis) else None
            at += 1
        if size is None:
            return None
        axes.append(axis[begin:at])
    return tuple(axes)


def _whole(numbers: Numbers | None) -> list[int] | None:
    """Numbers that the file states; None if the file leaves one of them open."""
    if numbers is None or any(each is None or each[1] for each in numbers):
        return None
    return [each[0] for each in numbers if each is not None]


def _listed(known: Layouts, scope: Scope, node: Any, name: str, place: int) -> Numbers | None:
    """A list of numbers that old operators take as attribute `name`, and newer operators as input `place`."""
    given = attributes(scope, node)
    if name in given:
        return tuple(fixed(each) for each in given[name].ints)
    return known.numbers(scope, node_input(node, place)) if node_input(node, place) else None


def _reshape(known: Layouts, scope: Scope, node: Any, view: View) -> View | None:
    wanted = _listed(known, scope, node, "shape", 1)
    if wanted is None:
        return None
    keep = not integer(attributes(scope, node), "allowzero", 0)
    sizes: list[Size | None] = []
    for at, size in enumerate(wanted):
        if size == fixed(0) and keep:
            sizes.append(known.size(view[at]) if at < len(view) else None)
        else:
            sizes.append(None if size == fixed(-1) else size)
    parts = tuple(part for axis in view for part in axis)
    return _regrouped(parts, {part: known.size((part,)) for part in parts}, sizes)


def _cast(scope: Scope, node: Any, view: View) -> View | None:
    """Only to a type that keeps the numbers unchanged: a wide type, or the type of the layer that they come from."""
    to = integer(attributes(scope, node), "to", 0)
    if to in _WIDE:
        return view
    first = next((part for axis in view for part in axis), None)
    if first is None or first.name not in first.scope.producers:
        return None
    source = first.scope.nodes[first.scope.producers[first.name][0]]
    weights = resolve(first.scope, node_input(source, 1))
    held = weights.tensor if weights is not None else None
    return view if held is not None and held.data_type == to and to in _NARROW else None


def _dropout(scope: Scope, node: Any, view: View) -> View | None:
    """Only if the node drops nothing: outside training."""
    training = node_input(node, 2)
    value = resolve(scope, training) if training else None
    if value is not None:
        held = value.tensor
        if value.node is not None and value.node.op_type == "Constant":
            held = attributes(value.scope, value.node)["value"].t
        if held is None or (held.raw_data != b"\x00" and list(held.int32_data) != [0]):
            return None
    return view


def _slice(known: Layouts, scope: Scope, node: Any, view: View) -> View | None:
    names = ("starts", "ends", "axes", "steps")
    starts, ends, axes, steps = (_listed(known, scope, node, name, at) for at, name in enumerate(names, 1))
    unknown = any(node_input(node, at) and _whole(each) is None for at, each in ((3, axes), (4, steps)))
    if starts is None or ends is None or unknown:
        return None
    bounds = slice_bounds(starts, ends, _whole(axes), _whole(steps), len(view))
    part = None if bounds is None else view
    for at, (start, end, step) in (bounds or {}).items():
        if part is None or start is None or end is None or start[1]:
            return None
        part = _cut(known, part, at, start[0], end, step)
    return part


def _cut(known: Layouts, view: View, at: int, start: int, end: Size, step: int) -> View | None:
    """The view after a slice along one axis, if the slice takes the whole axis in order or one whole direction."""
    size = known.size(view[at])
    if size[1]:
        everything = start == 0 and step == 1 and (end == size or (not end[1] and end[0] >= _OPEN_END))
        return view if everything else None
    if end[1] or not step:
        return None
    places = range(*slice(start, end[0] if step > 0 or end[0] >= -size[0] else None, step).indices(size[0]))
    if list(places[:2]) == list(range(min(size[0], 2))) and len(places) == size[0]:
        return view
    return known.one_side(view, at, places[0], keep=True) if len(places) == 1 else None


def _gather(known: Layouts, scope: Scope, node: Any, view: View, at: int) -> View | None:
    picked = known.shapes.of(scope, node_input(node, 1))
    indices = _whole(known.numbers(scope, node_input(node, 1)))
    if picked is None or indices is None or len(indices) != 1 or len(picked) > 1:
        return None
    size = known.size(view[at])
    if size[1] or not -size[0] <= indices[0] < size[0]:
        return None
    if size == fixed(1):
        return view if picked else (*view[:at], *view[at + 1 :])
    return known.one_side(view, at, indices[0] % size[0], keep=bool(picked))


def _split(known: Layouts, scope: Scope, node: Any, view: View, place: int) -> View | None:
    at = integer(attributes(scope, node), "axis", 0)
    if not -len(view) <= at < len(view) or known.size(view[at]) != fixed(len(node.output)):
        return None
    sizes = _listed(known, scope, node, "split", 1)
    if sizes is not None and any(size != fixed(1) for size in sizes):
        return None
    return known.one_side(view, at % len(view), place, keep=True)


def _concat(known: Layouts, scope: Scope, node: Any, view: View) -> View | None:
    """Only if the node puts the two directions of one layer together again, forward first."""
    second = known.of(scope, str(node.input[1])) if len(node.input) == 2 else None
    at = integer(attributes(scope, node), "axis", 0)
    if second is None or len(second) != len(view) or not -len(view) <= at < len(view):
        return None
    at %= len(view)
    if len(view[at]) != 1 or view[at][0].side != 0 or second[at] != (replace(view[at][0], side=1),):
        return None
    if (*view[:at], *view[at + 1 :]) != (*second[:at], *second[at + 1 :]):
        return None
    units = replace(view[at][0], side=None)
    return (*view[:at], (replace(units, role="direction"), units), *view[at + 1 :])


#: Operations that rearrange.
RULES = kinds_named("Identity Cast Dropout Transpose Unsqueeze Squeeze Reshape Flatten Slice Gather Split Concat")


def _rearranged(known: Layouts, scope: Scope, node: Any, view: View, place: int) -> View | None:
    """From the axes of the first input of a node of `RULES` to the axes of its output `place`; None if it does more."""
    given, rank = attributes(scope, node), len(view)
    at = integer(given, "axis", 1 if node.op_type == "Flatten" else 0)
    match str(node.op_type):
        case "Identity":
            return view if place == 0 else None
        case "Cast":
            return _cast(scope, node, view)
        case "Dropout":
            return _dropout(scope, node, view) if place == 0 else None
        case "Transpose":
            order = [axis for axis in integers(given, "perm") or reversed(range(rank)) if axis is not None]
            return tuple(view[axis] for axis in order) if sorted(order) == list(range(rank)) else None
        case "Unsqueeze":
            axes = _whole(_listed(known, scope, node, "axes", 1))
            new = {axis % (rank + len(axes)) for axis in axes or ()} if axes is not None else set()
            if axes is None or len(new) != len(axes):
                return None
            rest = iter(view)
            return tuple(() if axis in new else next(rest) for axis in range(rank + len(axes)))
        case "Squeeze":
            axes = _whole(_listed(known, scope, node, "axes", 1))
            if axes is None:
                # An axis of unknown size may have size 1 or not.
                kept = "axes" in given or node_input(node, 1) or any(known.size(axis)[1] for axis in view)
                return None if kept else tuple(axis for axis in view if axis)
            gone = {axis % rank for axis in axes} if view else set()
            # A squeezed axis has size 1, or the network stops: so an axis of unknown size may go.
            stays = any(not known.size(view[axis])[1] and view[axis] for axis in gone)
            return None if stays else tuple(axis for number, axis in enumerate(view) if number not in gone)
        case "Flatten" if -rank <= at <= rank:
            at += rank if at < 0 else 0
            return tuple(chain(*view[:at])), tuple(chain(*view[at:]))
        case "Reshape":
            return _reshape(known, scope, node, view)
        case "Slice":
            return _slice(known, scope, node, view)
        case "Gather" if -rank <= at < rank:
            return _gather(known, scope, node, view, at % rank)
        case "Split":
            return view if len(node.output) == 1 else _split(known, scope, node, view, place)
        case "Concat":
            return view if len(node.input) == 1 else _concat(known, scope, node, view)
    return None


#: Most factors of one size, and its largest number: only a hostile file multiplies sizes again and again.
_MAX_FACTORS, _LARGEST = 16, 2**62
#: The axes of a recurrent node's output.
LAYER_ROLES = ("time", "direction", "batch", "units")
_PLACE = 4
_REPEATING = ("Expand", "Tile", "Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape")
_MAX_VISITED = 300
_SHOWN = 6


class Layouts(Memory):
    """Axes of the values of one network."""

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
            rearranged = _rearranged(self, scope, node, first, value.place) if first is not None else None
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

        # the inputs of the network whose numbers, and not only shapes, a value depends on
        def follow(value: Value) -> Iterable[str]:
            node = value.node
            return () if node is None or node.op_type in ("Shape", "Size") else node.input[:_MAX_VISITED]

        values = upstream(scope, name, follow, _MAX_VISITED)
        given = list(dict.fromkeys(each.name for each in values if each.node is None and each.tensor is None))[:_SHOWN]
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
            given = attributes(value.scope, value.node)
            tensor = given["value"].t if "value" in given else None
            stored = [*tensor.int32_data, *tensor.int64_data] if tensor is not None else []
            if tensor is not None and tensor.raw_data:
                stored = [int.from_bytes(tensor.raw_data, "little", signed=True)]
            return [(int(stored[0]), ())] if len(stored) == 1 else None
        if len(value.node.input) > 2:
            return None
        value = resolve(value.scope, node_input(value.node, 0))
    return None
