"""Which recurrent nodes of an ONNX network feed each other directly: such nodes are the layers of one stack.

Whether a stack begins with the last states of another one is found by marks, a number for each unit of each last state:
the operations between states are done to them, so that a change of layer, direction, state, unit or order is noticed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lstmsim.importers.onnx.axes import LAYER_ROLES, RULES, Layouts, View
from lstmsim.importers.onnx.constants import Constants
from lstmsim.importers.onnx.graph import Scope, Value, attributes, integer, label, node_input, resolve, upstream
from lstmsim.importers.onnx.nodes import STATES, is_recurrent
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.stored import DataFiles
from lstmsim.model.model import Layer
from lstmsim.model.numerics.weights import Floats

#: A recurrent node: its scope and its index there.
Key = tuple[Scope, int]

#: Operations that hand values on unchanged, rearranged or in part.
PASSING = frozenset(
    (
        *("Transpose", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Identity", "Cast", "Dropout"),
        *("Concat", "Slice", "Gather", "Split", "QuantizeLinear", "DequantizeLinear"),
    )
)
_LAST_STATE = "the last state of"
#: What an operation that is not followed does, by its name; all other operations compute.
_WHY = (
    dict.fromkeys(("Slice", "Gather", "Split"), "which takes a part or another order")
    | dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), "which folds or splits axes")
    | dict.fromkeys(("QuantizeLinear", "DequantizeLinear", "Cast"), "which rounds")
    | {"Concat": "which puts several values together", "Dropout": "which drops numbers at random"}
)
#: Exporters put a handful of operations between two layers.
_MAX_VISITED = 2000
#: Most values that are visited for a note: it names only layers nearby.
_MAX_UPSTREAM = 300
_MAX_INPUTS = 64
_MAX_HOPS = 100
#: Outputs of a recurrent node that are its last states.
_OUTPUTS = {1: "h", 2: "c"}
#: Marks begin here and are no whole numbers, so that no constant is taken for a mark.
_FIRST = 1000.5


@dataclass(frozen=True)
class Stack:
    """Recurrent nodes of which each reads the node before it, with notes on the links; the rest is as in `Model`."""

    keys: tuple[Key, ...]
    notes: tuple[str, ...] = ()
    states_from: str = ""
    states_whole: bool = True


@dataclass
class _Origin:
    """Where a node's frames come from: recurrent nodes, other things, and the operations on the way."""

    below: list[Key] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)


def find_stacks(layers: Mapping[Key, Layer], layouts: Layouts) -> list[Stack]:
    """Join all recurrent nodes into stacks, in the order of their lowest nodes."""
    notes: dict[Key, list[str]] = defaultdict(list)
    below = {key: link for key in layers if (link := _link(key, layouts, notes[key])) is not None}
    # the links upwards; a node with several readers at the same time belongs to no stack above it
    readers: dict[Key, list[Key]] = defaultdict(list)
    for upper, lower in below.items():
        readers[lower].append(upper)
    for lower, uppers in readers.items():
        if not _exclusive(uppers):
            for upper in uppers:
                del below[upper]
                notes[upper].append(f"reads {label(*lower)}, which other layers read too: a model of its own")
            readers[lower] = []
    above = readers
    stacks = []
    for key in layers:
        if key not in below:
            stacks += [Stack(keys, tuple(text for each in keys for text in notes[each])) for keys in _paths(key, above)]
    return stacks


def _exclusive(keys: list[Key]) -> bool:
    """Whether at most one of the nodes runs: every two nodes are in different branches of one `If`."""
    if len(keys) < 2:
        return True
    groups = [(keys, 0)]
    while groups:
        keys, depth = groups.pop()
        heads = Counter(key[0].branches[depth][0] if len(key[0].branches) > depth else None for key in keys)
        if None in heads or len(heads) != 1:
            return False
        parts: dict[str, list[Key]] = defaultdict(list)
        for key in keys:
            parts[key[0].branches[depth][1]].append(key)
        groups += [(part, depth + 1) for part in parts.values() if len(part) > 1]
    return True


def _paths(start: Key, above: dict[Key, list[Key]]) -> list[tuple[Key, ...]]:
    paths: list[tuple[Key, ...]] = []
    waiting: list[tuple[Key, ...]] = [(start,)]
    while waiting:
        path = waiting.pop()
        uppers = above.get(path[-1], [])
        if not uppers:
            paths.append(path)
        waiting.extend((*path, upper) for upper in reversed(uppers))
    return paths


def _link(key: Key, layouts: Layouts, notes: list[str]) -> Key | None:
    """The node whose output sequence a node reads unchanged: every step, all units, in order."""
    scope, index = key
    name = node_input(scope.nodes[index], 0)
    view = layouts.of(scope, name)
    lower = _read_whole(key, view, layouts)
    if lower is not None and lower[0].loops == scope.loops:
        return lower
    origin = _origin(scope, name)
    changed = _changed_by(scope, name, layouts)
    text = _said(changed) if changed else "operations that put its axes in another order"
    if not origin.below:
        states = [text for text in origin.others if text.startswith(_LAST_STATE)]
        computed = [] if states else [label(*each) for each in _upstream(scope, name)]
        sources = states[:1] or [f"{each} through {text}" for each in computed[:1]]
        if not sources and changed:
            notes.append(f"{label(*key)} reads what {label(*changed)} gives: a run takes that as its frames")
    elif origin.others or len(origin.below) > 1:
        through = f" through {', '.join(origin.passed)}" if origin.passed else ""
        both = [*(label(*each) for each in origin.below[:3]), *origin.others[:1]]
        sources = [f"{' and '.join(both)}{through}"]
    else:
        sources = [f"{label(*origin.below[0])} {'from outside its loop' if lower is not None else f'through {text}'}"]
    notes += [f"{label(*key)} reads {each}: a model of its own, not a stack" for each in sources]
    return None


def _read_whole(key: Key, view: View | None, layouts: Layouts) -> Key | None:
    """The node whose whole output sequence has these axes, if the node `key` reads them in the right order."""
    part = next((part for axis in view or () for part in axis), None)
    if view is None or part is None:
        return None
    lower = (part.scope, part.scope.producers.get(part.name, (-1, 0))[0])
    if part.role not in LAYER_ROLES or lower == key:
        return None
    scope, index = key
    batch_first = bool(integer(attributes(scope, scope.nodes[index]), "layout", 0))
    wanted = layouts.sequence(*lower, batch_first)
    batch = 0 if batch_first else 1
    # If the batch was squeezed away, there is one sequence.
    single = tuple(() if at == batch else axis for at, axis in enumerate(wanted))
    return lower if view in (wanted, single) else None


def _changed_by(scope: Scope, name: str, layouts: Layouts) -> Key | None:
    """The last operation before a node's frames that does more than rearrange; None if there is none."""
    value = resolve(scope, name)
    for _ in range(_MAX_HOPS):
        if value is None or value.node is None or is_recurrent(value.node):
            return None
        bodies = value.scope.children.get(value.index)
        below = None if bodies else layouts.of(value.scope, node_input(value.node, 0))
        own = layouts.of(value.scope, value.name)
        fresh = own is None or any((part.scope, part.name) == (value.scope, value.name) for x in own for part in x)
        known = value.kind in RULES and not bodies
        if not known or (fresh and below is not None):
            return value.scope, value.index
        value = resolve(value.scope, node_input(value.node, 0))
    return None


def _said(key: Key) -> str:
    bodies, kind = key[0].children.get(key[1]), str(key[0].nodes[key[1]].op_type)
    return f"{label(*key)}, {'whose parts differ' if bodies else _WHY.get(kind, 'which computes')}"


def _upstream(scope: Scope, name: str) -> list[Key]:
    """The nearest recurrent nodes that a value depends on, through any operations."""

    def follow(value: Value) -> Iterable[str]:
        return () if value.node is None or is_recurrent(value.node) else value.node.input[:_MAX_INPUTS]

    values = upstream(scope, name, follow, _MAX_UPSTREAM)
    return [(each.scope, each.index) for each in values if each.node is not None and is_recurrent(each.node)]


def _origin(scope: Scope, name: str) -> _Origin:
    """The recurrent nodes and other origins of a value, followed back through operations that pass it on."""
    origin = _Origin()

    def follow(value: Value) -> Iterable[str]:
        joined = value.kind == "Concat"
        return value.node.input[: _MAX_VISITED if joined else 1] if value.kind in PASSING else ()

    for visited, value in enumerate(upstream(scope, name, follow, _MAX_VISITED), 1):
        node = value.node
        if node is None:
            if value.tensor is None:
                origin.others.append(f"input {value.name!r}")
        elif is_recurrent(node):
            if value.place == 0:
                origin.below.append((value.scope, value.index))
            else:
                origin.others.append(f"{_LAST_STATE} {label(value.scope, value.index)}")
        elif value.kind in PASSING and node.op_type not in origin.passed:
            origin.passed.append(str(node.op_type))
        elif value.kind not in PASSING and not value.inside() and node.op_type not in ("Constant", "ConstantOfShape"):
            origin.others.append(label(value.scope, value.index))
        if visited == _MAX_VISITED:
            origin.others.append("too many values to follow")
    return origin


class Handed:
    """The last states of all recurrent nodes of a network, as marks; size: bytes of the file, a bound on memory."""

    def __init__(self, layers: Mapping[Key, Layer], shapes: Shapes, size: int, files: DataFiles) -> None:
        self._marks: dict[tuple[Key, str], Floats] = {}
        given: dict[tuple[Scope, str], Floats] = {}
        first = _FIRST
        for key, layer in layers.items():
            for place, state in _OUTPUTS.items():
                scope, node = key[0], key[0].nodes[key[1]]
                if place < len(node.output) and node.output[place] and state in layer.cell.states:
                    shape = (layer.directions, 1, layer.width(state))
                    marks = first + np.arange(np.prod(shape)).reshape(shape)
                    first += marks.size
                    self._marks[key, state] = marks
                    given[scope, str(node.output[place])] = _turned(marks, *key)
        room = sum(each.nbytes for each in given.values())
        self._values = Constants(shapes, size + room, files, given)

    def whole(self, stack: Stack, stacks: Sequence[Stack]) -> bool:
        """Say whether all layers of a stack begin with all last states of another stack, layer for layer."""
        origins = [self._origin(key) for key in stack.keys]
        return None not in origins and any(list(each.keys) == origins for each in stacks)

    def _origin(self, key: Key) -> Key | None:
        """The node whose last states are a node's first states, each in its place; None if there is no such node."""
        node = key[0].nodes[key[1]]
        origin: Key | None = None
        for state, place in STATES.items():
            if state == "c" and node.op_type != "LSTM":
                continue
            array = self._values.of(key[0], node_input(node, place)) if node_input(node, place) else ""
            if isinstance(array, str) or array.ndim != 3:
                return None
            array = _turned(array, *key)
            candidates = (own for own, name in self._marks if name == state) if origin is None else (origin,)
            origin = next((own for own in candidates if self._equal(array, own, state)), None)
            if origin is None:
                return None
        return origin

    def _equal(self, array: Floats, key: Key, state: str) -> bool:
        marks = self._marks.get((key, state))
        return marks is not None and np.array_equal(array, marks)


def _turned(array: Floats, scope: Scope, index: int) -> Floats:
    """States with the direction first, or turned back: `layout` 1 has the batch first."""
    batch_first = integer(attributes(scope, scope.nodes[index]), "layout", 0)
    return array.transpose(1, 0, 2) if batch_first else array
