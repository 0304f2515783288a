"""Axes of a value by their meaning, with sizes that may be symbols, and what rearranging operations do to them.

A rule gives None if the operation does more than rearrange. Source: the ONNX pages of the operations in `RULES`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from lstmsim.importers.onnx.graph import Scope, attributes, integer, integers, node_input, resolve, slice_bounds
from lstmsim.importers.onnx.shapes import Shapes

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


class _Known(Protocol):
    """What the rules ask for: axes, sizes and short lists of the network's values. `Layouts` gives the answers."""

    @property
    def shapes(self) -> Shapes: ...

    def of(self, scope: Scope, name: str) -> View | None: ...

    def size(self, axis: Axis) -> Size: ...

    def numbers(self, scope: Scope, name: str) -> Numbers | None: ...

    def one_side(self, view: View, at: int, side: int, *, keep: bool) -> View | None: ...


def _whole(numbers: Numbers | None) -> list[int] | None:
    """Numbers that the file states; None if the file leaves one of them open."""
    if numbers is None or any(each is None or each[1] for each in numbers):
        return None
    return [each[0] for each in numbers if each is not None]


def _listed(known: _Known, scope: Scope, node: Any, name: str, place: int) -> Numbers | None:
    """A list of numbers that old operators take as attribute `name`, and newer operators as input `place`."""
    given = attributes(scope, node)
    if name in given:
        return tuple(fixed(each) for each in given[name].ints)
    return known.numbers(scope, node_input(node, place)) if node_input(node, place) else None


def _transpose(known: _Known, scope: Scope, node: Any, view: View, place: int) -> View | None:
    order = integers(attributes(scope, node), "perm") or tuple(reversed(range(len(view))))
    axes = [axis for axis in order if axis is not None]
    return tuple(view[axis] for axis in axes) if sorted(axes) == list(range(len(view))) else None


def _unsqueeze(known: _Known, scope: Scope, node: Any, view: View, place: int) -> View | None:
    axes = _whole(_listed(known, scope, node, "axes", 1))
    if axes is None:
        return None
    rank, rest = len(view) + len(axes), iter(view)
    new = {axis % rank for axis in axes}
    return tuple(() if axis in new else next(rest) for axis in range(rank)) if len(new) == len(axes) else None


def _squeeze(known: _Known, scope: Scope, node: Any, view: View, place: int) -> View | None:
    axes = _whole(_listed(known, scope, node, "axes", 1))
    if axes is None:
        given = "axes" in attributes(scope, node) or node_input(node, 1)
        # An axis of unknown size may have size 1 or not.
        return None if given or any(known.size(axis)[1] for axis in view) else tuple(axis for axis in view if axis)
    gone = {axis % len(view) for axis in axes} if view else set()
    # A squeezed axis has size 1, or the network stops: so an axis of unknown size may go.
    stays = any(not known.size(view[at])[1] and view[at] for at in gone)
    return None if stays else tuple(axis for at, axis in enumerate(view) if at not in gone)


def _reshape(known: _Known, scope: Scope, node: Any, view: View, place: int) -> View | None:
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


def _flatten(known: _Known, scope: Scope, node: Any, view: View, place: int) -> View | None:
    at = integer(attributes(scope, node), "axis", 1)
    if not -len(view) <= at <= len(view):
        return None
    at += len(view) if at < 0 else 0
    return tuple(part for axis in view[:at] for part in axis), tuple(part for axis in view[at:] for part in axis)


def _same(known: _Known, scope: Scope, node: Any, view: View, place: int) -> View | None:
    return view if place == 0 else None


def _cast(known: _Known, scope: Scope, node: Any, view: View, place: int) -> View | None:
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


def _dropout(known: _Known, scope: Scope, node: Any, view: View, place: int) -> View | None:
    """Only if the node drops nothing: outside training."""
    training = node_input(node, 2)
    value = resolve(scope, training) if training else None
    if value is not None:
        held = value.tensor
        if value.node is not None and value.node.op_type == "Constant":
            held = attributes(value.scope, value.node)["value"].t
        if held is None or (held.raw_data != b"\x00" and list(held.int32_data) != [0]):
            return None
    return view if place == 0 else None


def _slice(known: _Known, scope: Scope, node: Any, view: View, place: int) -> View | None:
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


def _cut(known: _Known, view: View, at: int, start: int, end: Size, step: int) -> View | None:
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


def _gather(known: _Known, scope: Scope, node: Any, view: View, place: int) -> View | None:
    at = integer(attributes(scope, node), "axis", 0)
    picked = known.shapes.of(scope, node_input(node, 1))
    indices = _whole(known.numbers(scope, node_input(node, 1)))
    if not -len(view) <= at < len(view) or picked is None or indices is None or len(indices) != 1 or len(picked) > 1:
        return None
    at %= len(view)
    size = known.size(view[at])
    if size[1] or not -size[0] <= indices[0] < size[0]:
        return None
    if size == fixed(1):
        return view if picked else (*view[:at], *view[at + 1 :])
    return known.one_side(view, at, indices[0] % size[0], keep=bool(picked))


def _split(known: _Known, scope: Scope, node: Any, view: View, place: int) -> View | None:
    at = integer(attributes(scope, node), "axis", 0)
    if len(node.output) == 1:
        return view
    if not -len(view) <= at < len(view) or known.size(view[at]) != fixed(len(node.output)):
        return None
    sizes = _listed(known, scope, node, "split", 1)
    if sizes is not None and any(size != fixed(1) for size in sizes):
        return None
    return known.one_side(view, at % len(view), place, keep=True)


def _concat(known: _Known, scope: Scope, node: Any, view: View, place: int) -> View | None:
    """Only if the node puts the two directions of one layer together again, forward first."""
    if len(node.input) == 1:
        return view
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


#: From the axes of a node's first input to the axes of its output `place`.
RULES: dict[str, Callable[[_Known, Scope, Any, View, int], View | None]] = {
    "Identity": _same,
    "Cast": _cast,
    "Dropout": _dropout,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Slice": _slice,
    "Gather": _gather,
    "Split": _split,
    "Concat": _concat,
}
