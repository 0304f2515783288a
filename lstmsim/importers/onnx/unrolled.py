"""Layers that an ONNX network writes out step by step: their stacks, directions and models.

PyTorch's exporter of scripted modules writes nn.LSTMCell in a loop as a node LSTM for each turn, which begins with the
states of the node before and reads one frame: such nodes together are one layer. Its dynamo exporter writes nn.RNN as
one product with the same matrix for each step: `explain_absence` says so where no layer can be put together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lstmsim.base.wording import listed, show
from lstmsim.importers.imported import FOLDED, SIMULATED, ImportedModel
from lstmsim.importers.onnx.constants import Constants
from lstmsim.importers.onnx.graph import Scope, Value, attributes, integer, label, node_input, resolve, text
from lstmsim.importers.onnx.nodes import is_recurrent
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.stacks import PASSING
from lstmsim.importers.onnx.steps import Refused, frame_of, picked_by, run_of_frames
from lstmsim.importers.onnx.stored import plain
from lstmsim.importers.onnx.weights import begin_of, constant_states, node_weights
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Floats, Network, PassWeights

#: A recurrent node: its scope and its index there.
Key = tuple[Scope, int]
_WEIGHTS = (1, 2, 3, 7)
_PRODUCTS = ("MatMul", "Gemm")
#: Operations between one product with h and the next.
_BETWEEN = PASSING | {"Add", "Sub", "Mul", "Tanh", "Sigmoid", "Relu"}
_CANDIDATES = 8
_SHOWN_OPERATIONS = 8
_MAX_HOPS = 100
_ADVICE = "export nn.RNN, nn.LSTM or nn.GRU with dynamo=False, which keeps the layer as one node"


@dataclass(frozen=True, eq=False)
class UnrolledLayer:
    """One layer, put together again from its steps.

    `states` are those before the first step that the file fixes, name to [units]; `computed` says in words where others
    come from. `first` is the h of its first step, `name` that of its weights. `turned` tells whether its steps read the
    frames, or the layer below, from the end; `nodes` are the operations of the layer, `picking` those that pick frames.
    """

    layer: Layer
    weights: PassWeights
    states: dict[str, Floats]
    first: Value
    name: str
    steps: int
    notes: tuple[str, ...] = ()
    computed: str = ""
    turned: bool = False
    nodes: frozenset[tuple[Scope, int]] = frozenset()
    picking: frozenset[tuple[Scope, int]] = frozenset()


@dataclass(frozen=True, eq=False)
class UnrolledStack:
    """Layers above each other, the lowest first; all have the same number of steps."""

    layers: tuple[UnrolledLayer, ...]


@dataclass(eq=False)
class Placed:
    """Layers being stacked, by the new h of their first step; `places`: layer and number of every step's h."""

    layers: dict[Value, UnrolledLayer] = field(default_factory=dict)
    places: dict[Value, tuple[Value, int]] = field(default_factory=dict)
    below: dict[Value, Value] = field(default_factory=dict)

    def add(self, chain: Sequence[Value], layer: UnrolledLayer, lower: Value | None) -> None:
        """Add a layer."""
        key = chain[0]
        self.layers[key] = layer
        self.places |= {value: (key, at) for at, value in enumerate(chain)}
        if lower is not None:
            self.below[key] = lower

    def read_by(self, sources: Sequence[Value | None]) -> tuple[Value, bool] | None:
        """The layer whose steps these values are, in order, and whether from the last on; None if there is none."""
        places = [self.places.get(each) if each is not None else None for each in sources]
        lower = places[0][0] if places[0] is not None else None
        order = [each[1] if each is not None and each[0] == lower else -1 for each in places]
        forward = list(range(len(sources)))
        if lower is None or order not in (forward, forward[::-1]) or self.layers[lower].steps != len(sources):
            return None
        return lower, order != forward

    def stacks(self) -> list[UnrolledStack]:
        """Join layers into stacks; if several layers read one, each begins a stack, and a note says so."""
        readers = Counter(self.below.values())
        above = {lower: upper for upper, lower in self.below.items() if readers[lower] == 1}
        stacks = []
        for key, lowest in self.layers.items():
            if key in self.below and readers[self.below[key]] == 1:
                continue
            backward, made = self._backward(key), []
            notes = lowest.notes
            if key in self.below:
                notes += (
                    f"reads {self.layers[self.below[key]].name}, which other layers read too: a model of its own",
                )
            made.append(_turned(replace(lowest, notes=notes), backward))
            while key in above:
                key = above[key]
                backward ^= self.layers[key].turned
                made.append(_turned(self.layers[key], backward))
            stacks.append(UnrolledStack(tuple(made)))
        return stacks

    def _backward(self, key: Value) -> bool:
        backward = self.layers[key].turned
        while key in self.below:
            key = self.below[key]
            backward ^= self.layers[key].turned
        return backward


def _turned(own: UnrolledLayer, backward: bool) -> UnrolledLayer:
    return replace(own, layer=replace(own.layer, reverse=backward))


def written_out(stacks: Sequence[UnrolledStack]) -> dict[tuple[Scope, int], str]:
    """Tell the outcome of every node that unrolled layers are made of."""
    layers = [layer for stack in stacks for layer in stack.layers]
    folded = {key: FOLDED for layer in layers for key in layer.picking}
    return folded | {key: SIMULATED for layer in layers for key in layer.nodes}


def unrolled_part(stack: UnrolledStack) -> str:
    """Name the part of the file that a stack's last layer comes from, by the name of its matrices."""
    return stack.layers[-1].name


def unrolled_model(stack: UnrolledStack, name: str, origin: str, weights: bool) -> ImportedModel:
    """Make the model of a stack of unrolled layers."""
    nodes = tuple(f"{each.steps} steps of {each.name}" for each in stack.layers)
    notes = [_written_out(each) for each in stack.layers]
    notes += [note for each in stack.layers for note in each.notes]
    computed = "; ".join(dict.fromkeys(each.computed for each in stack.layers if each.computed))
    model = Model(name, tuple(each.layer for each in stack.layers), states_from=computed, states_whole=not computed)
    initial = {(number, 0): each.states for number, each in enumerate(stack.layers) if each.states}
    imported = ImportedModel(model, nodes, f"{origin}: {', '.join(nodes)}", tuple(notes), steps=stack.layers[0].steps)
    if not weights:
        return imported
    return replace(imported, network=Network(model, tuple((each.weights,) for each in stack.layers), initial))


def _written_out(layer: UnrolledLayer) -> str:
    first = layer.first
    way = "from the last frame to the first" if layer.layer.reverse else "in the order of the frames"
    return (
        f"{layer.name} is written out over {layer.steps} steps {way}, the first up to "
        f"{label(first.scope, first.index)}: one layer here, for any number of steps"
    )


def find_node_chains(
    layers: Mapping[Key, Layer], shapes: Shapes, constants: Constants
) -> tuple[list[UnrolledStack], set[Key], list[str]]:
    """Put nodes of one step together to layers."""
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
    scope, index = key
    node = scope.nodes[index]
    shape = shapes.of(scope, node_input(node, 0))
    single = shape is not None and len(shape) == 3 and shape[0] == 1
    given = attributes(scope, node)
    frame = _frame(key, shapes)
    one_way = text(given, "direction", "forward") != "bidirectional" and not integer(given, "layout", 0)
    return one_way and not node_input(node, 4) and (single or (frame is not None and not frame[1]))


def _node_behind(scope: Scope, name: str) -> Value | None:
    """The output of a recurrent node that a name leads to, through Squeeze and Unsqueeze."""
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
    steps = [Value(each.scope, "", each.index) if each is not None and each.place != 2 else None for each in reads]
    below = placed.read_by(steps)
    picking: set[Key] = set()
    lower, turned = below or (None, False)
    if below is None:
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


def explain_absence(scopes: list[Scope]) -> str:
    """Say what a network holds instead of recurrent nodes, and what to do if it holds an unrolled layer."""
    for scope in scopes:
        unrolled = _unrolled(scope)
        if unrolled:
            steps, first = unrolled
            return (
                f"holds no LSTM, GRU or RNN node, but what looks like a recurrent layer unrolled over {steps} steps, "
                f"from {label(scope, first)} on: {_ADVICE}"
            )
    counts = Counter(str(node.op_type) for scope in scopes for node in scope.nodes)
    common = [f"{count} {kind}" for kind, count in counts.most_common(_SHOWN_OPERATIONS)]
    more = len(counts) - len(common)
    rest = f" and {more} other kinds" if more else ""
    text = f"holds no LSTM, GRU or RNN node; it has {', '.join(common) or 'no nodes'}{rest}"
    written_out = next((_gates(scope) for scope in scopes if _gates(scope)), "")
    if written_out:
        text += f"; its {written_out} may be a recurrent cell written out operation by operation: {_ADVICE}"
    return text


def _gates(scope: Scope) -> str:
    """The operations of a graph in words, if they suffice for one GRU or LSTM step; else empty."""
    counts = Counter(str(node.op_type) for node in scope.nodes)
    products = sum(counts[kind] for kind in _PRODUCTS)
    if products < 1 or counts["Sigmoid"] < 2 or counts["Tanh"] < 1 or counts["Mul"] < 2:
        return ""
    kinds = [*(kind for kind in _PRODUCTS if counts[kind]), "Sigmoid", "Tanh", "Mul"]
    return listed([f"{counts[kind]} {kind}" for kind in kinds], "and")


def _unrolled(scope: Scope) -> tuple[int, int] | None:
    """How often a product feeds the next one with the same matrix, and the first such product; None if never."""
    uses: dict[int, tuple[tuple[Scope, str], str]] = {}
    for index, node in enumerate(scope.nodes):
        if node.op_type in _PRODUCTS:
            roots = [_matrix(scope, node_input(node, place)) for place in (0, 1)]
            if (roots[0] is None) != (roots[1] is None):
                place = 1 if roots[1] is not None else 0
                root = roots[place]
                assert root is not None
                uses[index] = (root, node_input(node, 1 - place))
    for matrix, count in Counter(root for root, _ in uses.values()).most_common(_CANDIDATES):
        steps = _longest_chain(scope, uses, matrix) if count > 1 else 0
        if steps > 1:
            return steps, min(index for index, (root, _) in uses.items() if root == matrix)
    return None


def _longest_chain(scope: Scope, uses: dict[int, tuple[tuple[Scope, str], str]], matrix: tuple[Scope, str]) -> int:
    depth: dict[str, int] = {}
    longest = 0
    for index, node in enumerate(scope.nodes):
        reached = 0
        if index in uses and uses[index][0] == matrix:
            reached = 1 + depth.get(uses[index][1], 0)
            longest = max(longest, reached)
        elif node.op_type in _BETWEEN:
            reached = max((depth.get(str(name), 0) for name in node.input), default=0)
        if reached:
            depth.update((str(name), reached) for name in node.output)
    return longest


def _matrix(scope: Scope, name: str) -> tuple[Scope, str] | None:
    """The stored matrix that a name leads to; None if the value is computed."""
    value: Value | None = resolve(scope, name)
    for _ in range(_MAX_HOPS):
        if value is None:
            return None
        if value.tensor is not None or (value.node is not None and value.node.op_type == "Constant"):
            return value.scope, value.name
        if value.node is None or value.node.op_type not in PASSING:
            return None
        value = resolve(value.scope, node_input(value.node, 0))
    return None
