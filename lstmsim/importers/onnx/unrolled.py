"""Layers that an ONNX network writes out step by step, put together again: their stacks, directions and models.

Steps (`lstmsim.importers.onnx.steps`, or nodes of one step, as PyTorch's exporter of scripted modules writes them) are
a layer if each begins with the states of the step before and all have equal weights. Step t must read frame t of one
tensor, or step t of the layer below. All of it is proven from the file.
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
from lstmsim.importers.onnx.nodes import begin_of, constant_states, is_recurrent, node_weights
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.steps import (
    Frame,
    Product,
    Refused,
    Step,
    StepNumbers,
    find_steps,
    frame_of,
    made_of,
    picked_by,
    run_of_frames,
)
from lstmsim.importers.onnx.stored import is_stored, plain
from lstmsim.importers.tensors import Stacked, unstacked
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Floats, Network, PassWeights

#: A recurrent node: its scope and its index there.
Key = tuple[Scope, int]
_WEIGHTS = (1, 2, 3, 7)


@dataclass(frozen=True, eq=False)
class UnrolledLayer:
    """One layer, put together again from its steps; `first` is the h of its first step, `name` that of its weights.

    `states` are those before the first step that the file fixes, name to [units]; `computed` says in words where others
    come from. `turned`: its steps read from the end; `picking` are the operations that pick frames.
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


#: Layers above each other, the lowest first; all have the same number of steps.
UnrolledStack = tuple[UnrolledLayer, ...]


@dataclass(eq=False)
class StackedSteps:
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
        for lowest in self.layers:
            if lowest in self.below and readers[self.below[lowest]] == 1:
                continue
            keys = [lowest]
            while keys[-1] in above:
                keys.append(above[keys[-1]])
            made = [
                replace(self.layers[key], layer=replace(self.layers[key].layer, reverse=self._backward(key)))
                for key in keys
            ]
            if lowest in self.below:
                name = self.layers[self.below[lowest]].name
                note = f"reads {name}, which other layers read too: a model of its own"
                made[0] = replace(made[0], notes=(*made[0].notes, note))
            stacks.append(tuple(made))
        return stacks

    def _backward(self, key: Value) -> bool:
        backward = self.layers[key].turned
        while key in self.below:
            key = self.below[key]
            backward ^= self.layers[key].turned
        return backward


def written_out(stacks: Sequence[UnrolledStack]) -> dict[tuple[Scope, int], str]:
    """Tell the outcome of every node that unrolled layers are made of."""
    layers = [layer for stack in stacks for layer in stack]
    folded = {key: FOLDED for layer in layers for key in layer.picking}
    return folded | {key: SIMULATED for layer in layers for key in layer.nodes}


def unrolled_model(stack: UnrolledStack, name: str, origin: str, weights: bool) -> ImportedModel:
    """Make the model of a stack of unrolled layers."""
    nodes = tuple(f"{each.steps} steps of {each.name}" for each in stack)
    ways = {True: "from the last frame to the first", False: "in the order of the frames"}
    notes = [
        f"{each.name} is written out over {each.steps} steps {ways[each.layer.reverse]}, the first up to "
        f"{label(each.first.scope, each.first.index)}: one layer here, for any number of steps"
        for each in stack
    ]
    notes += [note for each in stack for note in each.notes]
    computed = "; ".join(dict.fromkeys(each.computed for each in stack if each.computed))
    model = Model(name, tuple(each.layer for each in stack), states_from=computed, states_whole=not computed)
    initial = {(number, 0): each.states for number, each in enumerate(stack) if each.states}
    imported = ImportedModel(model, nodes, f"{origin}: {', '.join(nodes)}", tuple(notes), steps=stack[0].steps)
    if not weights:
        return imported
    return replace(imported, network=Network(model, tuple((each.weights,) for each in stack), initial))


def find_node_chains(
    layers: Mapping[Key, Layer], shapes: Shapes, constants: Constants
) -> tuple[list[UnrolledStack], set[Key], list[str]]:
    """Put nodes of one step together to layers."""
    single = {key: layer for key, layer in layers.items() if _is_one_step(key, shapes)}
    before = {key: former for key in single if (former := _before(key, single, constants)) is not None}
    after = Counter(before.values())
    follower = {lower: key for key, lower in before.items() if after[lower] == 1}
    placed, used, refused = StackedSteps(), set[Key](), list[str]()
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


def _recurrent_origin(scope: Scope, name: str) -> Value | None:
    """The output of a recurrent node that a name leads to, through Squeeze and Unsqueeze."""
    value = plain(scope, name)
    while value is not None and value.node is not None and value.node.op_type in ("Squeeze", "Unsqueeze"):
        value = plain(value.scope, node_input(value.node, 0))
    return value if value is not None and value.node is not None and is_recurrent(value.node) else None


def _before(key: Key, layers: Mapping[Key, Layer], constants: Constants) -> Key | None:
    """The node whose last states are the first states of `key`, if both are steps of one layer."""
    scope, index = key
    node = scope.nodes[index]
    sources = {1: _recurrent_origin(scope, node_input(node, 5))}
    if node.op_type == "LSTM":
        sources[2] = _recurrent_origin(scope, node_input(node, 6))
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
    chain: list[Key], layer: Layer, placed: StackedSteps, shapes: Shapes, constants: Constants
) -> tuple[UnrolledLayer, Value | None]:
    """The layer of a chain, and the layer below it, if there is one."""
    reads = [_recurrent_origin(scope, node_input(scope.nodes[index], 0)) for scope, index in chain]
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


#: Exporters fold constants in single precision.
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class _Halves:
    """The products of x and h and the biases of a step; h is None if the exporter has folded it into the biases."""

    x: Product
    h: Product | None
    biases: tuple[Floats, ...]


def find_unrolled(
    scopes: Sequence[Scope], shapes: Shapes, constants: Constants
) -> tuple[list[UnrolledStack], list[str]]:
    """Put the unrolled layers of a network together."""
    stacks: list[UnrolledStack] = []
    refused: list[str] = []
    for scope in scopes:
        numbers = StepNumbers(constants)
        reader = _Reader(shapes, numbers)
        own_stacks, sentences = reader.stacks(reader.chains(list(find_steps(scope, shapes, numbers.number))))
        stacks += own_stacks
        refused += sentences
    return stacks, refused


class _Reader:
    def __init__(self, shapes: Shapes, numbers: StepNumbers) -> None:
        self._shapes, self._numbers = shapes, numbers

    def chains(self, steps: Sequence[Step]) -> list[tuple[Step, ...]]:
        """List runs of at least two steps, in which each step begins with the states of the step before."""
        by_h = {step.new_h: step for step in steps}
        before = {step.new_h: former for step in steps if (former := self._before(step, by_h)) is not None}
        after = Counter(former.new_h for former in before.values())
        follower = {former.new_h: by_h[h] for h, former in before.items() if after[former.new_h] == 1}
        chains = []
        for step in steps:
            if step.new_h not in before or after[before[step.new_h].new_h] > 1:
                chain = [step]
                while chain[-1].new_h in follower and len(chain) <= len(steps):
                    chain.append(follower[chain[-1].new_h])
                chains += [tuple(chain)] if len(chain) > 1 else []
        return chains

    def _before(self, step: Step, by_h: dict[Value, Step]) -> Step | None:
        sources = [step.h] if step.h is not None else [each.source for each in step.sums[0].products]
        for source in sources:
            former = by_h.get(source)
            alike = former is not None and (former.cell, former.gates) == (step.cell, step.gates)
            if former is None or not alike or former is step or step.c != former.new_c:
                continue
            own = [each for terms in step.sums for each in terms.products]
            theirs = [each for terms in former.sums for each in terms.products]
            if all(any(self._numbers.same(each, other) for other in own) for each in theirs):
                return former
        return None

    def stacks(self, chains: Sequence[tuple[Step, ...]]) -> tuple[list[UnrolledStack], list[str]]:
        """Make layers of chains, and stacks of layers that read each other; a sentence for each refused chain."""
        placed = StackedSteps()
        refused = []
        for chain in chains:
            try:
                # the layer below, if it is one of the placed layers, and whether the steps read backward
                lower, turned = placed.read_by(self._sources(chain)) or (None, self._runs_backward(chain))
                sources = set(self._sources(chain))
                nodes = frozenset(key for step in chain for key in made_of(step))
                picking = frozenset(key for source in sources for key in picked_by(source))
                own = replace(
                    self._layer(chain), turned=turned, nodes=nodes, picking=picking if lower is None else frozenset()
                )
                placed.add([step.new_h for step in chain], own, lower)
            except Refused as reason:
                refused.append(f"{_about(chain)}: {reason}")
        return placed.stacks(), refused

    def _sources(self, chain: tuple[Step, ...]) -> list[Value]:
        own = self._halves(chain)
        return [each.x.source for each in own]

    def _runs_backward(self, chain: tuple[Step, ...]) -> bool:
        """Whether the steps read the frames of one tensor from the last to the first."""
        frames = []
        for at, source in enumerate(self._sources(chain)):
            frame = frame_of(source, shapes=self._shapes)
            if frame is None:
                text = f"step {at} reads {_called(source)}, which is not shown to be frame {at} of one tensor"
                raise Refused(text)
            frames.append(frame)
        return run_of_frames(frames)

    def _layer(self, chain: tuple[Step, ...]) -> UnrolledLayer:
        first, halves = chain[0], self._halves(chain)
        recurrent = halves[1].h
        assert recurrent is not None
        x, h = self._numbers.matrix(halves[1].x), self._numbers.matrix(recurrent)
        hidden = h.shape[-1]
        if x.ndim != 2 or h.ndim != 2 or len(h) != len(first.gates) * hidden or len(x) != len(h) or not x.shape[1]:
            raise Refused(f"its matrices {list(x.shape)} and {list(h.shape)} fit no cell")
        biases = [*halves[1].biases, None][:2]
        own = cell(first.cell)
        weights = unstacked(own, first.gates, Stacked(x, h, biases[0], biases[1]))
        name = recurrent.matrix.name
        name = name.rsplit(".", 1)[0] if ".weight_hh" in name else name
        states, notes, computed = self._beginning(chain, halves)
        frame = frame_of(halves[0].x.source, shapes=self._shapes)
        notes += _left_out(frame, len(chain))
        return UnrolledLayer(
            Layer(own, hidden, x.shape[1]), weights, states, first.new_h, name, len(chain), tuple(notes), computed
        )

    def _halves(self, chain: tuple[Step, ...]) -> list[_Halves]:
        """The products and biases of each step, proven to have the same weights in all steps."""
        halves: list[_Halves] = []
        second = self._apart(chain, 1, None)
        for at in range(len(chain)):
            own = second if at == 1 else self._apart(chain, at, second)
            halves.append(own)
            # A folded product with h stands among the biases: `_folded` looks at it.
            count = len(own.biases) if own.h is not None else len(own.biases) - 1
            for one, other in zip(own.biases[:count], second.biases[:count], strict=True):
                if not np.array_equal(one, other):
                    raise Refused(f"step {at} has a bias of its own")
        return halves

    def _apart(self, chain: tuple[Step, ...], at: int, like: _Halves | None) -> _Halves:
        step, before = chain[at], chain[at - 1].new_h if at else None
        products = [each for terms in step.sums for each in terms.products]
        recurrent = [each for each in products if (each.source == before if at else self._is_recurrent(each, like))]
        others = [each for each in products if each not in recurrent]
        if at and len(recurrent) > 1:
            raise Refused(
                f"step {at} reads the output of the step before, as a decoder does that feeds back "
                "its output: frames that come in order can be simulated"
            )
        if len(others) != 1 or len(recurrent) > 1 or (at and not recurrent):
            raise Refused(f"step {at} is no sum of one product with x and one with h")
        halves = _Halves(others[0], recurrent[0] if recurrent else None, self._numbers.biases(step))
        if like is not None:
            same = [self._numbers.same(halves.x, like.x)]
            same += [self._numbers.same(halves.h, like.h)] if halves.h is not None and like.h is not None else []
            if not all(same):
                raise Refused(f"step {at} has weights of its own")
        return halves

    def _is_recurrent(self, product: Product, like: _Halves | None) -> bool:
        """Whether a product of the first step is the product of h, as its weights show."""
        assert like is not None
        assert like.h is not None
        if self._numbers.same(product, like.h) and self._numbers.same(product, like.x):
            return is_stored(product.source)
        return self._numbers.same(product, like.h)

    def _beginning(self, chain: tuple[Step, ...], halves: list[_Halves]) -> tuple[dict[str, Floats], list[str], str]:
        """The states before the first step that the file fixes, notes, and in words what computes further states."""
        first, own, usual = chain[0], halves[0], halves[1]
        states: dict[str, Floats] = {}
        notes: list[str] = []
        computed = ""
        given = {"h": [each for each in (own.h.source if own.h else None, first.h) if each is not None]}
        given["c"] = [first.c] if first.c is not None else []
        for name, values in given.items():
            for value in values:
                fixed = self._numbers.fixed(value)
                if fixed is not None:
                    known = states.get(name)
                    if known is not None and not np.all(known == fixed):
                        raise Refused("its first step begins with two different h")
                    states[name] = fixed if known is None or len(fixed) > len(known) else known
                elif value.node is None:
                    notes.append(f"initial {name} is the input {show(value.name)}; a run begins at 0")
                else:
                    computed = computed or _computed(value)
        if own.h is None:
            states |= self._folded(own, usual, states.get("h"))
        hidden = self._numbers.matrix(chain[1].sums[-1].products[0]).shape[0] // len(first.gates)
        wide = {name: np.broadcast_to(each, hidden) for name, each in states.items() if each.any()}
        return wide, list(dict.fromkeys(notes)), computed

    def _folded(self, own: _Halves, usual: _Halves, h: Floats | None) -> dict[str, Floats]:
        """The h before the first step, if the exporter has put numbers in place of its product with the matrix."""
        assert usual.h is not None
        matrix = self._numbers.matrix(usual.h).astype(np.float64)
        product = own.biases[-1].astype(np.float64) - usual.biases[-1]
        near = _TOLERANCE * (1 + np.abs(own.biases[-1]).max(initial=0))
        if h is None and np.abs(product).max(initial=0) <= near:
            return {}
        start = np.linalg.lstsq(matrix, product)[0] if h is None else np.broadcast_to(h, matrix.shape[1])
        if np.abs(matrix @ start - product).max(initial=0) > near:
            raise Refused("its first step begins with an h that cannot be read from the file")
        return {"h": start}


def _left_out(frame: Frame | None, steps: int) -> list[str]:
    if frame is None or frame.count is None or frame.count == steps:
        return []
    return [f"only {steps} of {frame.count} frames are read"]


def _about(chain: tuple[Step, ...]) -> str:
    first = chain[0].new_h
    return f"a {chain[0].cell} written out over {len(chain)} steps, the first up to {label(first.scope, first.index)}"


def _computed(value: Value) -> str:
    """Where a state comes from, in words, if the network computes it."""
    inner: Value | None = value
    for _ in range(8):
        if inner is None or inner.node is None or is_recurrent(inner.node):
            break
        inner = resolve(inner.scope, node_input(inner.node, 0))
    if inner is not None and inner.node is not None and is_recurrent(inner.node):
        return f"the last states of {label(inner.scope, inner.index)}"
    return f"what {label(value.scope, value.index)} gives"


def _called(value: Value) -> str:
    return label(value.scope, value.index) if value.node is not None else show(value.name)
