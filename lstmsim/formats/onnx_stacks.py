"""Which recurrent nodes of an ONNX network feed each other directly: those are the layers of one stack."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from lstmsim.formats.onnx_graph import DEFAULT_DOMAINS, Scope, label, node_input, resolve
from lstmsim.formats.onnx_nodes import is_recurrent
from lstmsim.workload.model import Layer

__all__ = ["PASSING", "Key", "Stack", "find_stacks"]

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
_PICKING = ("Slice", "Gather", "Split")
#: Exporters put a handful of operations between two layers.
_MAX_VISITED = 2000


@dataclass(frozen=True)
class Stack:
    """Recurrent nodes in order, each reading the one before, with what the reader should know about the links."""

    keys: tuple[Key, ...]
    notes: tuple[str, ...] = ()


@dataclass
class _Origin:
    """Where a node's frames come from: recurrent nodes, other things, and the operations on the way."""

    below: list[Key] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)


def find_stacks(layers: Mapping[Key, Layer]) -> list[Stack]:
    """All recurrent nodes as stacks, in the order of their lowest nodes.

    A node above several that exclude each other, or below several in branches of one `If`, is part of each stack.
    """
    notes: dict[Key, list[str]] = defaultdict(list)
    below = {key: link for key in layers if (link := _link(key, layers, notes[key])) is not None}
    above = _above(below, notes)
    stacks = []
    for key in layers:
        if key not in below:
            stacks += [Stack(keys, tuple(text for each in keys for text in notes[each])) for keys in _paths(key, above)]
    return stacks


def _above(below: dict[Key, Key], notes: dict[Key, list[str]]) -> dict[Key, list[Key]]:
    """The links upwards; a node with several readers at the same time belongs to no stack above it."""
    readers: dict[Key, list[Key]] = defaultdict(list)
    for upper, lower in below.items():
        readers[lower].append(upper)
    for lower, uppers in readers.items():
        if not _exclusive(uppers):
            for upper in uppers:
                del below[upper]
                notes[upper].append(f"reads {label(*lower)}, which other layers read too: a model of its own")
            readers[lower] = []
    return readers


def _exclusive(keys: list[Key]) -> bool:
    """Whether at most one of the nodes runs: every two are in different branches of one `If`.

    Grouping by the first `If` around them, not comparing every pair, keeps this linear in the number of nodes.
    """
    if len(keys) < 2:
        return True
    groups = [(keys, 0)]
    while groups:
        members, depth = groups.pop()
        heads = Counter(key[0].branches[depth][0] if len(key[0].branches) > depth else None for key in members)
        if None in heads or len(heads) != 1:
            return False
        parts: dict[str, list[Key]] = defaultdict(list)
        for key in members:
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


def _link(key: Key, layers: Mapping[Key, Layer], notes: list[str]) -> Key | None:
    """The node whose output sequence this node reads, if it reads nothing else and the widths chain."""
    scope, index = key
    origin = _origin(scope, node_input(scope.nodes[index], 0))
    if not origin.below:
        states = [text for text in origin.others if text.startswith(_LAST_STATE)]
        notes += [f"{label(*key)} reads {text}: a model of its own, not a stack" for text in states[:1]]
        return None
    names = " and ".join(label(*lower) for lower in origin.below[:3])
    through = f" through {', '.join(origin.passed)}" if origin.passed else ""
    if origin.others or len(origin.below) > 1:
        rest = [f"{origin.others[0]}"] if origin.others else []
        notes.append(f"{label(*key)} reads {' and '.join([names, *rest])}{through}: a model of its own, not a stack")
        return None
    lower = origin.below[0]
    if lower not in layers:
        return None
    if layers[lower].output != layers[key].input:
        widths = f"{layers[key].input} wide, where {names} gives {layers[lower].output}"
        notes.append(f"{label(*key)} reads{through} {widths}: a model of its own, not a stack")
        return None
    picking = [name for name in origin.passed if name in _PICKING]
    if picking:
        text = f"{label(*key)} reads {names} through {', '.join(picking)}: taken as the layer above, reading every step"
        notes.append(text)
    return lower


def _origin(scope: Scope, name: str) -> _Origin:
    """Follows a value back through operations that pass it on."""
    origin, seen, waiting, visited = _Origin(), set(), [(scope, name)], 0
    while waiting:
        visited += 1
        if visited + len(waiting) > _MAX_VISITED:
            origin.others.append("too many values to follow")
            break
        value = resolve(*waiting.pop())
        if value is None or (value.scope, value.name) in seen:
            continue
        seen.add((value.scope, value.name))
        node, bodies = value.node, value.scope.children.get(value.index, [])
        if node is None:
            if value.tensor is None:
                origin.others.append(f"input {value.name!r}")
        elif is_recurrent(node):
            if value.place == 0:
                origin.below.append((value.scope, value.index))
            else:
                origin.others.append(f"{_LAST_STATE} {label(value.scope, value.index)}")
        elif bodies and (node.op_type == "If" or bodies[0].caller is not None):
            waiting += [(body, body.outputs[value.place]) for body in bodies if value.place < len(body.outputs)]
        elif node.op_type in PASSING and node.domain in DEFAULT_DOMAINS:
            if node.op_type not in origin.passed:
                origin.passed.append(str(node.op_type))
            names = node.input[: _MAX_VISITED if node.op_type == "Concat" else 1]
            waiting += [(value.scope, str(each)) for each in names]
        elif node.op_type not in ("Constant", "ConstantOfShape"):
            origin.others.append(label(value.scope, value.index))
    return origin
