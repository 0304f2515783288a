"""An ONNX network as nested scopes: main graph, bodies of `If`, `Loop` and `Scan`, calls of local functions.

Nothing is executed and no weight is touched. A name leads to the node or tensor that it stands for. Of numbers, only
attributes and short constants (axes, bounds, target shapes) are decoded. The protobuf messages have the type `Any`, so
that this module loads without the package onnx.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from math import prod
from typing import Any, TypeVar

from lstmsim.base.errors import InputError
from lstmsim.base.wording import show

#: Names of the domain of ONNX's own operators.
DEFAULT_DOMAINS = ("", "ai.onnx")
#: Most nodes after all calls of functions, far above real networks (some 10,000 nodes): a small file of functions that
#: call each other can ask for any number. A file that itself holds more nodes is read.
MAX_NODES = 50_000
MAX_DEPTH = 40
_Answer = TypeVar("_Answer")
_ENDLESS = (
    f"calls of functions come to more than {MAX_NODES} nodes, or bodies are nested more than {MAX_DEPTH} deep: "
    "too large to read"
)

_LARGEST = 10**12
_GRAPH, _GRAPHS = 5, 10
#: Sizes of a value's dimensions, with None for a size that the file leaves open.
Shape = tuple[int | None, ...]
MAX_ELEMENTS = 64
_MAX_SIZE = 2**62
_INT32, _INT64, _EXTERNAL = 6, 7, 1
#: Start, end and step of a slice along one axis.
Bounds = tuple[Any, Any, Any]


@dataclass(eq=False)
class Scope:
    """One graph or function body, and the meaning of its names; `producers`: a value's node and its index there.

    declared: shapes that the graph states, by name.
    inside, loops: the position of the scope, and the `Loop` and `Scan` nodes around it, in words for messages.
    branches: the `If` branches around it as (identity of the `If`, name of the attribute).
    outer: the scope whose names are visible too; None for the main graph and functions.
    caller: the scope and the node of a function's call; None for graphs.
    children: index of a node to the bodies inside it.
    """

    nodes: list[Any]
    tensors: dict[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    declared: dict[str, tuple[int | None, ...]]
    inside: str = ""
    branches: tuple[tuple[tuple[int, int], str], ...] = ()
    loops: tuple[str, ...] = ()
    outer: Scope | None = None
    caller: tuple[Scope, Any] | None = None
    children: dict[int, list[Scope]] = field(default_factory=dict)
    producers: dict[str, tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.producers = {
            name: (index, place)
            for index, node in enumerate(self.nodes)
            for place, name in enumerate(node.output)
            if name
        }


@dataclass(frozen=True)
class Value:
    """The meaning of a name: output `place` of node `index` of a scope; -1 for a tensor or an input of the scope."""

    scope: Scope
    name: str
    index: int = -1
    place: int = 0

    @property
    def node(self) -> Any:
        """The node that makes the value, or None."""
        return self.scope.nodes[self.index] if self.index >= 0 else None

    @property
    def kind(self) -> str:
        """The operator of ONNX's own that makes the value; empty if there is none."""
        node = self.node
        return str(node.op_type) if node is not None and node.domain in DEFAULT_DOMAINS else ""

    def inside(self) -> list[tuple[Scope, str]]:
        """Names that give the value inside a function or the branches of an `If`; empty for other nodes."""
        bodies = self.scope.children.get(self.index, [])
        if not bodies or (self.node.op_type != "If" and bodies[0].caller is None):
            return []
        return [(body, body.outputs[self.place]) for body in bodies if self.place < len(body.outputs)]

    @property
    def tensor(self) -> Any:
        """The initializer of this name, or None."""
        return self.scope.tensors.get(self.name) if self.index < 0 else None


def version_of(network: Any) -> int:
    """The version of ONNX's own operators that a network states."""
    return next((int(each.version) for each in network.opset_import if each.domain in DEFAULT_DOMAINS), 1)


def resolve(scope: Scope, name: str) -> Value | None:
    """Look a name up in a scope, in the scopes around it and through a function's parameters; None if it is unknown."""
    while name:
        if name in scope.producers:
            return Value(scope, name, *scope.producers[name])
        if scope.caller is not None:
            if name not in scope.inputs:
                return None
            place = scope.inputs.index(name)
            scope, call = scope.caller
            name = node_input(call, place)
        elif name in scope.tensors or name in scope.inputs:
            return Value(scope, name)
        elif scope.outer is None:
            return None
        else:
            scope = scope.outer
    return None


class Memory:
    """Answers about the values of a network, each worked out once and through so many other values at most."""

    MAX_HOPS = 100

    def __init__(self) -> None:
        self._hops = 0

    def once(
        self, known: dict[tuple[Scope, str], _Answer | None], scope: Scope, name: str, find: Callable[[Value], Any]
    ) -> _Answer | None:
        """Give the answer for the value that `name` means; None if there is none, or it depends on too many others."""
        value = resolve(scope, name)
        if value is None:
            return None
        key = (value.scope, value.name)
        if key not in known and self._hops < self.MAX_HOPS:
            # None stands here meanwhile, so that a value that depends on itself is unknown.
            known[key] = None
            self._hops += 1
            known[key] = find(value)
            self._hops -= 1
        return known.get(key)


def upstream(scope: Scope, name: str, follow: Callable[[Value], Iterable[str]], most: int) -> Iterator[Value]:
    """Give up to so many values that lead to a name, each once, the nearest first."""
    seen, waiting = set[tuple[Scope, str]](), [(scope, name)]
    while waiting and len(seen) < most:
        value = resolve(*waiting.pop())
        if value is not None and (value.scope, value.name) not in seen:
            seen.add((value.scope, value.name))
            yield value
            waiting += value.inside() or reversed([(value.scope, str(each)) for each in follow(value)])


def node_input(node: Any, place: int) -> str:
    """Give the name of a node's input; empty if the input is left out."""
    return str(node.input[place]) if place < len(node.input) else ""


def attributes(scope: Scope, node: Any) -> dict[str, Any]:
    """Give a node's attributes by name; an attribute that refers to a function's call is taken from the call."""
    values = {}
    for each in node.attribute:
        value, where, name = each, scope, str(each.name)
        while value is not None and value.ref_attr_name:
            while where.caller is None and where.outer is not None:
                where = where.outer
            if where.caller is None:
                value = None
                break
            where, call = where.caller
            value = next((other for other in call.attribute if other.name == value.ref_attr_name), None)
        if value is not None:
            values[name] = value
    return values


def label(scope: Scope, index: int) -> str:
    """Name a node for messages: `LSTM '/rnn/LSTM'`, and the body that it is in."""
    node = scope.nodes[index]
    outputs = [name for name in node.output if name]
    name = show(str(node.name)) if node.name else f"with output {show(str(outputs[0]))}" if outputs else "without name"
    return f"{node.op_type} {name}{scope.inside}"


def open_scopes(model: Any) -> list[Scope]:
    """Open every scope of a model, the main graph first."""
    functions = {(str(each.domain), str(each.name)): each for each in model.functions}
    # refuse calls of functions that come to more nodes than real networks have; each body is counted once
    sizes: dict[tuple[str, str], int] = {}
    held = _count(model.graph.node, {}) + sum(_count(each.node, {}) for each in functions.values())
    calls = {
        key: {called for node in _nested(each.node) if (called := (str(node.domain), str(node.op_type))) in functions}
        for key, each in functions.items()
    }
    try:
        order = list(TopologicalSorter(calls).static_order())
    except CycleError:
        raise InputError("has functions that call each other without end") from None
    for key in order:
        sizes[key] = min(_count(functions[key].node, sizes), _LARGEST)
    if _count(model.graph.node, sizes) > max(held, MAX_NODES):
        raise InputError(_ENDLESS)
    scopes: list[Scope] = []
    waiting = [(_graph_scope(model.graph), 0)]
    while waiting:
        scope, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise InputError(_ENDLESS)
        scopes.append(scope)
        for index in range(len(scope.nodes)):
            children = list(_bodies(scope, index, functions))
            if children:
                scope.children[index] = children
                waiting.extend((child, depth + 1) for child in reversed(children))
    return scopes


def _count(nodes: Any, sizes: dict[tuple[str, str], int]) -> int:
    """Nodes in a list, in the bodies inside it, and in the functions of known size that it calls."""
    return sum(1 + sizes.get((str(node.domain), str(node.op_type)), 0) for node in _nested(nodes))


def _nested(nodes: Any) -> Iterator[Any]:
    waiting = [(nodes, 0)]
    while waiting:
        held, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise InputError(_ENDLESS)
        for node in held:
            yield node
            waiting += [(graph.node, depth + 1) for _, graph in _graphs(node)]


def _graphs(node: Any) -> Iterator[tuple[str, Any]]:
    """The bodies that a node's attributes hold; then_branch comes before else_branch, in any order of the file."""
    for each in sorted(node.attribute, key=lambda each: str(each.name), reverse=True):
        for graph in [each.g] if each.type == _GRAPH else each.graphs if each.type == _GRAPHS else []:
            yield str(each.name), graph


def _bodies(scope: Scope, index: int, functions: dict[tuple[str, str], Any]) -> Iterator[Scope]:
    node = scope.nodes[index]
    function = functions.get((str(node.domain), str(node.op_type)))
    if function is not None:
        yield _function_scope(function, scope, index)
        return
    for name, graph in _graphs(node):
        child = _graph_scope(graph)
        child.inside, child.outer, child.loops = f" in {name} of {_short_label(node)}", scope, scope.loops
        child.branches = scope.branches
        if node.op_type == "If":
            child.branches = (*scope.branches, ((id(scope), index), name))
        elif node.op_type in ("Loop", "Scan"):
            child.loops = (*scope.loops, _short_label(node))
        yield child


def _short_label(node: Any) -> str:
    return f"{node.op_type} {show(str(node.name))}" if node.name else str(node.op_type)


def _graph_scope(graph: Any) -> Scope:
    tensors = {str(each.name): each for each in graph.initializer}
    tensors.update({str(each.values.name): each for each in graph.sparse_initializer})
    declared = _declared([*graph.value_info, *graph.output, *graph.input])
    inputs = tuple(str(each.name) for each in graph.input)
    return Scope(list(graph.node), tensors, inputs, tuple(str(each.name) for each in graph.output), declared)


def _function_scope(function: Any, caller: Scope, index: int) -> Scope:
    node = caller.nodes[index]
    inputs, outputs = tuple(map(str, function.input)), tuple(map(str, function.output))
    scope = Scope(list(function.node), {}, inputs, outputs, _declared(function.value_info))
    scope.inside, scope.caller = f" in function {_short_label(node)}", (caller, node)
    scope.branches, scope.loops = caller.branches, caller.loops
    return scope


def _declared(infos: Any) -> dict[str, tuple[int | None, ...]]:
    """Shapes that a graph states for its values; None for a dimension that is a symbol."""
    shapes = {}
    for info in infos:
        if info.type.HasField("tensor_type") and info.type.tensor_type.HasField("shape"):
            dims = info.type.tensor_type.shape.dim
            shapes[str(info.name)] = tuple(int(dim.dim_value) if dim.dim_value > 0 else None for dim in dims)
    return shapes


def checked(shape: Shape | None) -> Shape | None:
    """Give the shape with None in place of sizes that no tensor has."""
    if shape is None:
        return None
    return tuple(size if size is not None and 0 <= size < _MAX_SIZE else None for size in shape)


def product(sizes: Iterable[int | None]) -> int | None:
    """Multiply sizes; None if one is not known."""
    known = list(sizes)
    return None if None in known else prod(each for each in known if each is not None)


def broadcast(shapes: list[Shape | None]) -> Shape | None:
    """Give the shape of a result that is computed element by element from tensors; None if a shape is not known."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or not known:
        return None
    rank = max(map(len, known))
    joined: list[int | None] = []
    for sizes in zip(*((1,) * (rank - len(shape)) + shape for shape in known), strict=True):
        wide = {size for size in sizes if size != 1}
        joined.append(wide.pop() if len(wide) == 1 else None if wide else 1)
    return tuple(joined)


def slice_bounds(
    starts: Sequence[Any],
    ends: Sequence[Any],
    axes: Sequence[int | None] | None,
    steps: Sequence[Any] | None,
    rank: int,
) -> dict[int, Bounds] | None:
    """Start, end and step of a `Slice` by axis, as Python's slices have them; None if its lists do not fit."""
    axes = range(len(starts)) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        return None
    bounds = {
        axis % rank: (start, end, step)
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
        if axis is not None and -rank <= axis < rank
    }
    return bounds if len(bounds) == len(axes) else None


def integer(given: dict[str, Any], name: str, default: int) -> int:
    """Read a whole-number attribute of a node; given: its attributes by name, default: for one that is left out."""
    return int(given[name].i) if name in given else default


def integers(given: dict[str, Any], name: str) -> Shape | None:
    """Read an attribute that lists whole numbers; given: a node's attributes by name. None if it is left out."""
    return tuple(int(each) for each in given[name].ints) if name in given else None


def constant_shape(given: dict[str, Any]) -> Shape | None:
    """Give the shape of the value of a `Constant` node from its attributes; None if they hold no value."""
    if "value" in given:
        return checked(tuple(given["value"].t.dims))
    if "sparse_value" in given:
        return checked(tuple(given["sparse_value"].sparse_tensor.dims))
    for name in ("value_ints", "value_floats"):
        if name in given:
            return (len(given[name].ints) or len(given[name].floats),)
    return () if {"value_int", "value_float"} & set(given) else None


def elements(tensor: Any) -> Shape | None:
    """Read a short tensor of whole numbers that is inside the file; None for any other tensor."""
    kind = getattr(tensor, "data_type", None)
    if kind not in (_INT32, _INT64) or tensor.data_location == _EXTERNAL:
        return None
    count = product(tuple(tensor.dims))
    if count is None or not 0 <= count <= MAX_ELEMENTS:
        return None
    size, letter = (8, "q") if kind == _INT64 else (4, "i")
    if tensor.raw_data:
        return struct.unpack(f"<{count}{letter}", tensor.raw_data) if len(tensor.raw_data) == count * size else None
    stored = tensor.int64_data if kind == _INT64 else tensor.int32_data
    return tuple(int(each) for each in stored) if len(stored) == count else None


def text(given: dict[str, Any], name: str, default: str) -> str:
    """Read a text attribute in lower case; given: a node's attributes by name, default: for one that is left out."""
    return bytes(given[name].s).decode("utf-8", "replace").lower() if name in given else default
