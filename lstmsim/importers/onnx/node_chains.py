"""Recurrent nodes of one step each that an ONNX network puts behind each other: together they are one layer.

PyTorch's exporter of scripted modules writes nn.LSTMCell in a loop like this: a node LSTM for each turn. The node
begins with the states of the node before (`initial_h`, `initial_c`) and reads one frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from lstmsim.base.wording import listed, show
from lstmsim.importers.onnx.constants import Constants
from lstmsim.importers.onnx.frames import frame_of, picked_by, run_of_frames
from lstmsim.importers.onnx.graph import Scope, Value, attributes, label, node_input
from lstmsim.importers.onnx.nodes import is_recurrent
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.states import begin_of
from lstmsim.importers.onnx.step_numbers import Refused
from lstmsim.importers.onnx.stored import plain
from lstmsim.importers.onnx.unrolled_stacks import Placed, UnrolledLayer, UnrolledStack
from lstmsim.importers.onnx.values import integer, text
from lstmsim.importers.onnx.weights import constant_states, node_weights
from lstmsim.model.model import Layer

__all__ = ["find_node_chains"]

#: A recurrent node: its scope and its index there.
Key = tuple[Scope, int]

_WEIGHTS = (1, 2, 3, 7)


def find_node_chains(
    layers: Mapping[Key, Layer], shapes: Shapes, constants: Constants
) -> tuple[list[UnrolledStack], set[Key], list[str]]:
    """Put nodes of one step together to layers.

    layers: the recurrent nodes of the network.
    shapes, constants: the shapes and constants of the network.

    The result is the layers as stacks, the nodes that are part of a chain, and a sentence for each refused chain.
    """
    single = {key: layer for key, layer in layers.items() if _is_one_step(key, shapes)}
    before = {key: former for key in single if (former := _before(key, single, constants)) is not None}
    after = Counter(before.values())
    follower = {lower: key for key, lower in before.items() if after[lower] == 1}
    placed, used, refused = Placed(), set[Key](), list[str]()
    for key in single:
        if key in before or key not in follower:
            continue
        chain = [key]
        while chain[-1] in follower:
            chain.append(follower[chain[-1]])
        used |= set(chain)
        try:
            layer, lower = _layer(chain, layers[key], placed, shapes, constants)
            placed.add([Value(scope, "", index) for scope, index in chain], layer, lower)
        except Refused as reason:
            refused.append(f"{len(chain)} steps that begin at {label(*key)}: {reason}")
    return placed.stacks(), used, refused


def _is_one_step(key: Key, shapes: Shapes) -> bool:
    """Whether a node runs for one step, in one direction."""
    scope, index = key
    node = scope.nodes[index]
    shape = shapes.of(scope, node_input(node, 0))
    single = shape is not None and len(shape) == 3 and shape[0] == 1
    given = attributes(scope, node)
    frame = _frame(key, shapes)
    one_way = text(given, "direction", "forward") != "bidirectional" and not integer(given, "layout", 0)
    return one_way and not node_input(node, 4) and (single or (frame is not None and not frame[1]))


def _node_behind(scope: Scope, name: str) -> Value | None:
    """The output of a recurrent node behind a name, through Squeeze and Unsqueeze."""
    value = plain(scope, name)
    while value is not None and value.node is not None and value.node.op_type in ("Squeeze", "Unsqueeze"):
        value = plain(value.scope, node_input(value.node, 0))
    return value if value is not None and value.node is not None and is_recurrent(value.node) else None


def _before(key: Key, layers: Mapping[Key, Layer], constants: Constants) -> Key | None:
    """The node whose last states are the first states of `key`, if both are steps of one layer."""
    scope, index = key
    node = scope.nodes[index]
    sources = {1: _node_behind(scope, node_input(node, 5))}
    if node.op_type == "LSTM":
        sources[2] = _node_behind(scope, node_input(node, 6))
    # The output Y of a node of one step is also its last h.
    origins = {
        (each.scope, each.index) if each is not None and (each.place == at or at + each.place == 1) else None
        for at, each in sources.items()
    }
    lower = next(iter(origins)) if len(origins) == 1 else None
    if lower is None or lower == key or layers.get(lower) != layers[key]:
        return None
    return lower if all(_same_input(key, lower, place, constants) for place in _WEIGHTS) else None


def _same_input(one: Key, other: Key, place: int, constants: Constants) -> bool:
    names = [node_input(scope.nodes[index], place) for scope, index in (one, other)]
    if not all(names):
        return names[0] == names[1]
    values = [plain(scope, name) for (scope, _), name in zip((one, other), names, strict=True)]
    if values[0] == values[1]:
        return True
    arrays = [constants.of(scope, name) for (scope, _), name in zip((one, other), names, strict=True)]
    if any(isinstance(each, str) for each in arrays):
        return False
    return np.array_equal(np.asarray(arrays[0]), np.asarray(arrays[1]))


def _layer(
    chain: list[Key], layer: Layer, placed: Placed, shapes: Shapes, constants: Constants
) -> tuple[UnrolledLayer, Value | None]:
    """The layer of a chain, and the layer below it, if there is one."""
    reads = [_node_behind(scope, node_input(scope.nodes[index], 0)) for scope, index in chain]
    steps = [
        None if each is None or each.place == 2 else placed.places.get(Value(each.scope, "", each.index))
        for each in reads
    ]
    lower = steps[0][0] if steps[0] is not None else None
    order = [each[1] if each is not None and each[0] == lower else -1 for each in steps]
    forward = list(range(len(chain)))
    picking: set[Key] = set()
    if lower is not None and order in (forward, forward[::-1]) and placed.layers[lower].steps == len(chain):
        turned = order != forward
    else:
        lower = None
        sources = [_frame(key, shapes) for key in chain]
        turned = run_of_frames([frame_of(*each, shapes=shapes) if each else None for each in sources])
        picking = {key for each in sources if each for key in picked_by(each[0])}
    passes = node_weights(constants, *chain[0], layer)
    if isinstance(passes, str):
        raise Refused(passes)
    scope, index = chain[0]
    begin = begin_of(scope, index)
    states = constant_states(constants, scope, index, layer, begin).get(0, {})
    notes = tuple(f"initial states come from input {show(each)}; a run begins at 0" for each in begin.inputs)
    name = str(scope.nodes[index].name or label(scope, index))
    first = Value(scope, "", index)
    computed = listed(begin.states_from, "and") if begin.states_from else ""
    # One step is the same in both directions: the order of the frames decides.
    own = UnrolledLayer(
        replace(layer, reverse=False), passes[0], dict(states), first, name, len(chain), notes, computed
    )
    return replace(own, turned=turned, nodes=frozenset(chain), picking=frozenset(picking)), lower


def _frame(key: Key, shapes: Shapes) -> tuple[Value, bool] | None:
    """The one frame that a node reads, and whether the frame still has its axis of time."""
    scope, index = key
    value = plain(scope, node_input(scope.nodes[index], 0))
    if value is None:
        return None
    if value.node is not None and value.node.op_type == "Unsqueeze":
        if shapes.given(value.scope, value.node, "axes", 1) not in ((0,), (-3,)):
            return None
        inner = plain(value.scope, node_input(value.node, 0))
        return None if inner is None else (inner, False)
    return value, True
