"""What becomes of each node of an ONNX network once its recurrent layers are taken out of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from lstmsim.importers.imported import DENSE, FOLDED, LEFT_OUT, SIMULATED
from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, Value, kinds_named, node_input, resolve
from lstmsim.importers.onnx.sizes import in_order

__all__ = ["Key", "outcomes", "prepared", "readers_of"]

#: A node: its scope and its index there.
Key = tuple[Scope, int]

_Readers = dict[Key, list[tuple[Key, int]]]

#: Operations that hand every number on, unchanged or in another arrangement.
_MOVING = kinds_named("Transpose Squeeze Unsqueeze Reshape Flatten Identity Cast CastLike Dropout")
#: Operations between a network's states and its inputs and outputs: they also take a layer's part, or join the parts.
_SHARING = _MOVING | {"Slice", "Split", "Gather", "Concat", "Expand"}
_FIXED = frozenset(("Shape", "Size"))
_RANDOM = kinds_named("RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli")
_STATES_IN, _STATES_OUT = (5, 6), (1, 2)


def outcomes(scopes: list[Scope], layers: set[Key], heads: set[Key]) -> dict[Key, str]:
    """Tell the outcome of every node; nodes that only hold others (`If`, `Loop`, calls of functions) have none."""
    became = dict.fromkeys(prepared(scopes), FOLDED)
    became |= dict.fromkeys(_around(scopes, layers, heads), FOLDED)
    became |= dict.fromkeys(heads, DENSE) | dict.fromkeys(layers, SIMULATED)
    return {
        (scope, index): became.get((scope, index), LEFT_OUT)
        for scope in scopes
        for index in range(len(scope.nodes))
        if index not in scope.children
    }


def prepared(scopes: list[Scope]) -> set[Key]:
    """List the nodes whose results are the same in every run of equal sizes: only constants and shapes go into them."""
    open_nodes: set[Key] = set()
    done: set[Key] = set()
    for key in in_order(scopes):
        scope, index = key
        kind = scope.nodes[index].op_type
        fixed = kind in _FIXED or (kind not in _RANDOM and _inputs_fixed(key, open_nodes))
        # A node that holds other nodes is fixed only if all of these are.
        parts = [(child, at) for child in scope.children.get(index, []) for at in range(len(child.nodes))]
        if fixed and all(part not in open_nodes for part in parts):
            done.add(key)
        else:
            open_nodes.add(key)
    return done


def _inputs_fixed(key: Key, open_nodes: set[Key]) -> bool:
    scope, index = key
    for name in scope.nodes[index].input:
        value = resolve(scope, str(name)) if name else None
        if (
            value is not None
            and value.tensor is None
            and (value.node is None or (value.scope, value.index) in open_nodes)
        ):
            return False
    return True


def _around(scopes: list[Scope], layers: set[Key], heads: set[Key]) -> set[Key]:
    """Nodes between a layer and the next computation, before and behind the layer."""
    readers: _Readers = defaultdict(list)
    for (source, place), uses in readers_of(scopes).items():
        readers[source] += [(key, place) for key, _ in uses]
    # One set for each way of walking, so that no walk visits a node twice.
    above, below, states_in, states_out = (set[Key]() for _ in range(4))
    for key in layers | heads:
        scope, index = key
        node = scope.nodes[index]
        _up(scope, node_input(node, 0), _MOVING, above)
        _down(key, (0,), _MOVING, readers, below)
        if key in layers:
            for place in _STATES_IN:
                _up(scope, node_input(node, place), _SHARING, states_in)
            _down(key, _STATES_OUT, _SHARING, readers, states_out)
    return above | below | states_in | states_out


def readers_of(scopes: list[Scope]) -> dict[tuple[Key, int], list[tuple[Key, int]]]:
    """Map each output (node, place) to the nodes that read it, each with the place of its input."""
    readers: dict[tuple[Key, int], list[tuple[Key, int]]] = defaultdict(list)
    for scope in scopes:
        for index, node in enumerate(scope.nodes):
            for place, name in enumerate(node.input if index not in scope.children else ()):
                for value in _sources(scope, str(name)):
                    readers[(value.scope, value.index), value.place].append(((scope, index), place))
    return readers


def _up(scope: Scope, name: str, kinds: frozenset[str], seen: set[Key]) -> None:
    waiting = [(scope, name)]
    while waiting:
        for value in _sources(*waiting.pop()):
            key, node = (value.scope, value.index), value.node
            if key not in seen and node.op_type in kinds and node.domain in DEFAULT_DOMAINS:
                seen.add(key)
                names = node.input if node.op_type == "Concat" else node.input[:1]
                waiting += [(value.scope, str(each)) for each in names]


def _down(
    start: Key,
    places: tuple[int, ...],
    kinds: frozenset[str],
    readers: dict[Key, list[tuple[Key, int]]],
    seen: set[Key],
) -> None:
    waiting = [key for key, place in readers.get(start, []) if place in places]
    while waiting:
        key = waiting.pop()
        node = key[0].nodes[key[1]]
        if key not in seen and node.op_type in kinds and node.domain in DEFAULT_DOMAINS:
            seen.add(key)
            waiting += [reader for reader, _ in readers.get(key, [])]


def _sources(scope: Scope, name: str) -> Iterator[Value]:
    """The nodes that make a value; the search goes into functions and all branches."""
    waiting, seen = [(scope, name)], 0
    while waiting and seen < 1000:
        seen += 1
        value = resolve(*waiting.pop())
        if value is None or value.node is None:
            continue
        bodies = value.scope.children.get(value.index, [])
        if bodies:
            waiting += [(body, body.outputs[value.place]) for body in bodies if value.place < len(body.outputs)]
        else:
            yield value
