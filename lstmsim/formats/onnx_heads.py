"""Plain products behind the last recurrent layer of a stack (its head) as `dense` layers.

A product is taken only where it is proven to read the whole output of the layer at every step, and nothing else: the
axes of the output (time, direction, batch, unit) are followed through what stands between. Positions may be in any
order, for each is computed alone; the features may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lstmsim.formats.onnx_graph import DEFAULT_DOMAINS, Scope, attributes, label, node_input, resolve
from lstmsim.formats.onnx_outcomes import Key, prepared, readers_of
from lstmsim.formats.onnx_shapes import Shapes
from lstmsim.formats.onnx_sizes import PRIMES, computed, frames_of, open_sizes, output_sizes, sized
from lstmsim.formats.onnx_values import Shape, integer, integers
from lstmsim.formats.schema_types import MAX_SIZE
from lstmsim.workload.cells import cell
from lstmsim.workload.model import Layer

__all__ = ["Chain", "Head", "find_heads"]

_ACTIVATIONS = {"Relu": "dense-relu", "Tanh": "dense-tanh", "Sigmoid": "dense-sigmoid"}
_FLOATS = (1, 10, 11, 16)
_REGROUPING = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")
_UNREAD = ("Shape", "Size")
_LOST = "the sizes behind its last layer are not known"
_LAST = ("Gather", "Slice", "Split", "GatherND", "ReduceMean", "ReduceMax")

#: Each axis of a value as the parts it is made of, slowest first; a part is a name and its size.
_Axes = list[tuple[tuple[str, int], ...]]


@dataclass(frozen=True)
class Head:
    """One product as a layer.

    layer: the dense layer.
    product: the node MatMul or Gemm.
    nodes: all nodes that the layer stands for: the product, its bias, its activation.
    turned: whether the matrix is stored as [units, inputs], as the layer has it.
    bias: scope and name of the bias; None if there is none.
    """

    layer: Layer
    product: Key
    nodes: tuple[Key, ...]
    turned: bool
    bias: tuple[Scope, str] | None = None


@dataclass(frozen=True)
class Chain:
    """The heads behind one stack, in order.

    reason: why there is none, where that is of use; or what to know about those that there are.
    """

    heads: tuple[Head, ...]
    reason: str = ""


def find_heads(network: Any, scopes: list[Scope], ends: Mapping[Key, Layer]) -> dict[Key, Chain]:
    """The heads behind each of the given nodes, the last of their stacks with their layers.

    Open sizes get numbers that tell them apart; where the network runs with the length of its example only, that one.
    """
    found: dict[Key, Chain] = {}
    names = open_sizes(network)
    primes = dict(zip(names, PRIMES, strict=False))
    for length in (None, *(output_sizes(network) if names else ())):
        lost = {key: layer for key, layer in ends.items() if key not in found or found[key].reason == _LOST}
        if lost:
            found |= _at_length(network, scopes, lost, primes, length)
    return found


def _at_length(
    network: Any, scopes: list[Scope], ends: Mapping[Key, Layer], primes: dict[str, int], length: int | None
) -> dict[Key, Chain]:
    own = sized(network, primes)
    shapes = computed(own)
    numbers = {id(scope): number for number, scope in enumerate(scopes)}
    if length is not None:
        places = [(own[numbers[id(scope)]], index) for scope, index in ends]
        batches = {frames_of(shapes, *key)[1] for key in places}
        own = sized(network, {name: size if size in batches else length for name, size in primes.items()})
        shapes = computed(own)
    walk = _Walk(own, shapes)
    found = {}
    for (scope, index), layer in ends.items():
        chain = walk.chain((own[numbers[id(scope)]], index), layer)
        back = {id(each): scopes[number] for number, each in enumerate(own)}
        reason = f"its head is that of runs of {length} steps, a length that the exporter built in" if length else ""
        heads = tuple(_moved(head, back) for head in chain.heads)
        found[scope, index] = Chain(heads, reason if heads and length else chain.reason)
    return found


def _moved(head: Head, scopes: dict[int, Scope]) -> Head:
    """The head in the terms of other scopes of the same network."""
    product, *nodes = [(scopes[id(scope)], index) for scope, index in (head.product, *head.nodes)]
    bias = None if head.bias is None else (scopes[id(head.bias[0])], head.bias[1])
    return replace(head, product=product, nodes=tuple(nodes), bias=bias)


class _Walk:
    """Follows the output of a layer through a network whose sizes are numbers."""

    def __init__(self, scopes: list[Scope], shapes: Shapes) -> None:
        self._shapes = shapes
        self._readers = readers_of(scopes)
        self._fixed = prepared(scopes)
        self._outputs = set(scopes[0].outputs)
        self._main = scopes[0]

    def chain(self, end: Key, layer: Layer) -> Chain:
        scope, index = end
        node = scope.nodes[index]
        steps, batch = frames_of(self._shapes, scope, index)
        if steps is None or batch is None:
            return Chain(())
        if scope.loops:
            return Chain((), f"{label(*end)} runs inside {scope.loops[0]}")
        parts = {"time": steps, "direction": layer.directions, "batch": batch, "unit": layer.width("h")}
        first = integer(attributes(scope, node), "layout", 0)
        order = ("batch", "time", "direction", "unit") if first else ("time", "direction", "batch", "unit")
        axes: _Axes = [((name, parts[name]),) for name in order]
        features = tuple((name, parts[name]) for name in ("direction", "unit") if parts[name] > 1)
        heads: list[Head] = []
        key, width, reason = end, layer.output, ""
        while True:
            product, axes, reason = self._product(key, axes)
            if product is None:
                break
            head = self._head(product, axes, features, width)
            if isinstance(head, str):
                reason = head
                break
            heads.append(head)
            key, width = head.nodes[-1], head.layer.hidden
            features = ((f"unit {len(heads)}", width),) if width > 1 else ()
            axes = [*axes[:-1], features]
        if heads:
            return Chain(tuple(heads))
        return Chain((), reason or self._last_state(end))

    def _only(self, key: Key) -> tuple[Key, int] | str | None:
        """The only node that reads what a node gives, with the place of its input; a sentence if there are several."""
        scope, index = key
        uses = [use for use in self._readers.get((key, 0), []) if use[0][0].nodes[use[0][1]].op_type not in _UNREAD]
        if len(uses) > 1:
            names = " and ".join(label(*use[0]) for use in uses[:2])
            return f"{names} read the same values, so that neither can be a layer of the stack"
        if uses and scope is self._main and scope.nodes[index].output[0] in self._outputs:
            return f"what {label(*uses[0][0])} reads is also an output of the network"
        return uses[0] if uses else None

    def _product(self, key: Key, axes: _Axes) -> tuple[Key | None, _Axes, str]:
        """The first product behind a node, and the axes that it reads; None where something else comes first."""
        for _ in range(100):
            use = self._only(key)
            if use is None or isinstance(use, str):
                return None, axes, use or ""
            (scope, index), place = use
            node = scope.nodes[index]
            if place != 0 or node.domain not in DEFAULT_DOMAINS:
                return None, axes, ""
            if node.op_type in ("MatMul", "Gemm"):
                return (scope, index), axes, ""
            if node.op_type in _LAST:
                return None, axes, self._picked(scope, index)
            passed = self._passed(scope, node, axes)
            if passed is None:
                shape = self._shapes.of(scope, str(node.output[0]))
                unknown = node.op_type in _REGROUPING and (shape is None or None in shape)
                return None, axes, _LOST if unknown else ""
            key, axes = (scope, index), passed
        return None, axes, ""

    def _picked(self, scope: Scope, index: int) -> str:
        """Why a product behind a choice of steps is no layer; empty if there is none."""
        key: Key = (scope, index)
        for _ in range(10):
            use = self._only(key)
            if use is None or isinstance(use, str):
                return ""
            key = use[0]
            if key[0].nodes[key[1]].op_type in ("MatMul", "Gemm"):
                return f"{label(*key)} reads only what {label(scope, index)} takes: it runs once, not at each step"
        return ""

    def _last_state(self, end: Key) -> str:
        """Why a product behind the last state is no layer; empty if there is none."""
        for key, _ in self._readers.get((end, 1), []):
            for reader in (key, *(use[0] for use in self._readers.get((key, 0), []))):
                if reader[0].nodes[reader[1]].op_type in ("MatMul", "Gemm"):
                    return f"{label(*reader)} reads the last state of {label(*end)}: it runs once, not at each step"
        return ""

    def _passed(self, scope: Scope, node: Any, axes: _Axes) -> _Axes | None:
        """The axes behind an operation that only rearranges; None if it does more, or cannot be followed."""
        kind, given = node.op_type, attributes(scope, node)
        if kind in ("Identity", "Dropout") or (kind == "Cast" and integer(given, "to", 0) in _FLOATS):
            return axes
        if kind == "Transpose":
            order = integers(given, "perm") or tuple(reversed(range(len(axes))))
            if sorted(each for each in order if each is not None) != list(range(len(axes))):
                return None
            return [axes[at] for at in order if at is not None]
        if kind in _REGROUPING:
            return _regrouped(axes, self._shapes.of(scope, str(node.output[0])))
        return None

    def _head(self, key: Key, axes: _Axes, features: tuple[tuple[str, int], ...], width: int) -> Head | str:
        """The layer that a product is, or what speaks against it."""
        scope, index = key
        node = scope.nodes[index]
        given, name = attributes(scope, node), label(scope, index)
        if tuple(part for part in axes[-1] if part[1] > 1) != features:
            return f"{name} does not read whole outputs of the layer below"
        turned = node.op_type == "Gemm" and bool(integer(given, "transB", 0))
        matrix = self._constant(scope, node_input(node, 1))
        if matrix is None or len(matrix) != 2 or matrix[1 if turned else 0] != width:
            return f"the matrix of {name} is no constant of {width} inputs"
        units = matrix[0 if turned else 1]
        if units is None or not 1 <= units <= MAX_SIZE:
            return f"{name} has {units} outputs, more than the {MAX_SIZE} of a layer"
        scales = [given[each].f for each in ("alpha", "beta") if each in given]
        if integer(given, "transA", 0) or any(scale != 1 for scale in scales):
            return f"{name} scales or turns what it reads"
        bias = None
        if node.op_type == "Gemm" and node_input(node, 2):
            bias = self._bias(scope, node_input(node, 2), units)
            if bias is None:
                return f"the bias of {name} is no constant of {units} numbers"
        return self._completed(Head(Layer(cell("dense"), units, width), key, (key,), turned, bias))

    def _completed(self, head: Head) -> Head:
        """The head with the addition of a bias and the activation behind its product."""
        after = self._only(head.nodes[-1])
        if head.bias is None and isinstance(after, tuple) and _kind(after[0]) == "Add":
            (scope, index), place = after
            bias = self._bias(scope, node_input(scope.nodes[index], 1 - place), head.layer.hidden)
            if bias is not None:
                head = replace(head, bias=bias, nodes=(*head.nodes, (scope, index)))
                after = self._only((scope, index))
        if isinstance(after, tuple) and _kind(after[0]) in _ACTIVATIONS:
            own = replace(head.layer, cell=cell(_ACTIVATIONS[_kind(after[0])]))
            head = replace(head, layer=own, nodes=(*head.nodes, after[0]))
        return head

    def _constant(self, scope: Scope, name: str) -> Shape | None:
        """Shape of a value that is the same in every run; None for all others."""
        value = resolve(scope, name)
        if value is None or (value.tensor is None and (value.scope, value.index) not in self._fixed):
            return None
        return self._shapes.of(scope, name)

    def _bias(self, scope: Scope, name: str, units: int) -> tuple[Scope, str] | None:
        shape = self._constant(scope, name)
        if shape is None or not shape or shape[-1] != units or any(size != 1 for size in shape[:-1]):
            return None
        return scope, name


def _kind(key: Key) -> str:
    node = key[0].nodes[key[1]]
    return str(node.op_type) if node.domain in DEFAULT_DOMAINS else ""


def _regrouped(axes: _Axes, shape: Shape | None) -> _Axes | None:
    """The parts of some axes under another shape of as many numbers; None if a part would be cut.

    >>> _regrouped([(("time", 5),), (("direction", 2),), (("unit", 3),)], (5, 6))
    [(('time', 5),), (('direction', 2), ('unit', 3))]
    >>> _regrouped([(("time", 5),), (("unit", 4),)], (10, 2)) is None
    True
    """
    if shape is None or None in shape:
        return None
    parts = [part for axis in axes for part in axis if part[1] > 1]
    grouped: _Axes = []
    for size in shape:
        own: list[tuple[str, int]] = []
        left = size or 0
        while left > 1 and parts and left % parts[0][1] == 0:
            left //= parts[0][1]
            own.append(parts.pop(0))
        if left != 1:
            return None
        grouped.append(tuple(own))
    return None if parts else grouped
