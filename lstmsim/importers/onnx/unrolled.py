"""Layers that an ONNX network writes out step by step, put together again: their stacks, directions and models.

Steps (`lstmsim.importers.onnx.steps`, or nodes of one step, as PyTorch's exporter of scripted modules writes them) are
a layer if each begins with the states of the step before and all have equal weights. Step t must read frame t of one
tensor, or step t of the layer below. All of it is proven from the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from lstmsim.base.wording import listed, show
from lstmsim.importers.imported import FOLDED, SIMULATED, ImportedModel
from lstmsim.importers.onnx.constants import Constants
from lstmsim.importers.onnx.graph import Scope, Value, attributes, integer, label, node_input, text
from lstmsim.importers.onnx.nodes import begin_of, c_alone, constant_states, is_recurrent, node_weights, sources
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.steps import (
    WHOLE,
    Frame,
    Product,
    Refused,
    Rows,
    Step,
    StepNumbers,
    find_steps,
    frame_of,
    made_of,
    picked_by,
    put_at,
    run_of_frames,
    whole_outputs,
)
from lstmsim.importers.onnx.stored import is_stored, plain
from lstmsim.importers.tensors import Stacked, unstacked
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Floats, Network, PassWeights

#: A recurrent node: its scope and its index there.
Key = tuple[Scope, int]
_WEIGHTS = (1, 2, 3, 7)
#: Names of inputs for h.
_H = re.compile(r"h(x|t|_?\d+|_?in|_?prev|_?old|idden.*)?")
#: Operations between an input and the frames that loops pick from it.
_MOVED, _MAX_HOPS = ("Transpose", "Squeeze", "Unsqueeze"), 20


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
    nodes = tuple(f"{each.steps} step{'s' * (each.steps > 1)} of {each.name}" for each in stack)
    notes = []
    for each in stack:
        way = "from the last frame to the first" if each.layer.reverse else "in the order of the frames"
        how = f"is written out over {each.steps} steps {way}, the first" if each.steps > 1 else "is one step,"
        up_to = label(each.first.scope, each.first.index)
        notes.append(f"{each.name} {how} up to {up_to}: one layer here, for any number of steps")
    notes += [note for each in stack for note in each.notes]
    computed = "; ".join(dict.fromkeys(each.computed for each in stack if each.computed))
    model = Model(name, tuple(each.layer for each in stack), states_from=computed, states_whole=not computed)
    initial = {(number, 0): each.states for number, each in enumerate(stack) if each.states}
    imported = ImportedModel(model, nodes, f"{origin}: {', '.join(nodes)}", tuple(notes))
    if stack[0].steps > 1:
        imported = replace(imported, steps=stack[0].steps)
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


_DECODER = (
    "step {} reads the output of the step before, as a decoder does that feeds back its output: frames that come in "
    "order can be simulated"
)
#: Exporters fold constants in single precision.
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class _Half:
    """The products with x and h in a sum of a step, and its bias; a product with the first h may be folded into it."""

    x: Product | None
    h: Product | None
    bias: Floats


def find_unrolled(
    scopes: Sequence[Scope], shapes: Shapes, constants: Constants
) -> tuple[list[UnrolledStack], list[str]]:
    """Put the unrolled layers of a network together."""
    numbers = StepNumbers(constants)
    reader = _Reader(shapes, numbers)
    steps = (find_steps(scope, shapes, numbers.number) for scope in scopes)
    return reader.stacks([chain for each in steps for chain in reader.chains(each)])


class _Reader:
    def __init__(self, shapes: Shapes, numbers: StepNumbers) -> None:
        self._shapes, self._numbers = shapes, numbers

    def chains(self, steps: Sequence[Step]) -> list[tuple[Step, ...]]:
        """List runs of at least two steps, in which each step begins with the states of the step before."""
        by_h = {step.new_h: step for step in steps}
        before = {step.new_h: former for step in steps if (former := self._before(step, by_h)) is not None}
        after = Counter(former.new_h for former in before.values())
        follower = {former.new_h: by_h[h] for h, former in before.items() if after[former.new_h] == 1}
        chains = list[tuple[Step, ...]]()
        for step in steps:
            if step.new_h not in before or after[before[step.new_h].new_h] > 1:
                chain = [step]
                while chain[-1].new_h in follower and len(chain) <= len(steps):
                    chain.append(follower[chain[-1].new_h])
                chains += [tuple(chain)] if len(chain) > 1 or self._given(step) else []
        return chains

    def _given(self, step: Step) -> list[Value]:
        """What may be the h that a single step is given as an input of the network; several if nothing decides."""
        values = [each.source for each in step.products if self._is_square(each, step.rows[0][0][2])]
        values = [] if step.new_h == step.new_c else values if step.h is None else [step.h]
        origins = {each: sources(each.scope, each.name) for each in values}
        found = {value: set(each.inputs) for value, each in origins.items() if not each.computed and not each.constants}
        named = [each.source for each in step.products if "weight_hh" in each.matrix.name and each.source in found]
        if step.h is not None or step.c is None or named:
            return named[:1] or list(found)[: step.h is not None]
        from_c = set(sources(step.c.scope, step.c.name).inputs)
        with_c = [value for value in found if found[value] & from_c]
        called = [value for value in found if any(_H.fullmatch(name.lower()) for name in found[value])]
        return next((each for each in (with_c, called) if len(each) == 1), list(found))

    def _is_square(self, product: Product, gates: int) -> bool:
        """Whether each of so many gates has as many rows in a matrix as the vector that it multiplies has numbers."""
        shape = self._shapes.of(product.matrix.scope, product.matrix.name)
        rows, width = (None, None) if shape is None or len(shape) != 2 else shape[:: 1 if product.by_rows else -1]
        width = product.columns[1] - product.columns[0] if product.columns else width
        return rows is not None and width is not None and rows == gates * width

    def _before(self, step: Step, by_h: dict[Value, Step]) -> Step | None:
        for source in [step.h] if step.h is not None else [each.source for each in step.products]:
            former = by_h.get(source)
            if former is None or former is step or step.c != former.new_c or former.new_h == step.c:
                continue
            rows = former.rows[: len(step.rows)]
            alike = (former.cell, rows, former.turned) == (step.cell, step.rows, step.turned)
            if alike and all(any(self._numbers.same(a, b) for b in step.products) for a in former.products):
                return former
        return None

    def stacks(self, chains: Sequence[tuple[Step, ...]]) -> tuple[list[UnrolledStack], list[str]]:
        """Make layers of chains, and stacks of layers that read each other; a sentence for each refused chain."""
        placed = StackedSteps()
        refused = []
        for chain in chains:
            try:
                halves = self._halves(chain)
                self._refuse_changed(chain)
                # the layer below, if it is one of the placed layers, and whether the steps read backward
                read = [next(each.x for each in own if each.x is not None) for own in halves]
                frames = [each.frame or frame_of(each.source, shapes=self._shapes) for each in read]
                values = [put_at(f, self._shapes) or each.source for f, each in zip(frames, read, strict=True)]
                lower, turned = placed.read_by(values) or (None, self._runs_backward(read, frames))
                nodes = frozenset(key for step in chain for key in made_of(step))
                picking = frozenset(key for each in read if each.frame is None for key in picked_by(each.source))
                own = replace(self._layer(chain, halves), turned=turned, nodes=nodes)
                c = {step.new_c.name for step in chain if step.new_c is not None}
                h = {step.new_h.name for step in chain} - c
                alone = c_alone(chain[0].new_h.scope, own.name, h, c, (index for _, index in nodes))
                own = replace(own, notes=(*own.notes, *alone))
                if lower is None:
                    own = replace(own, picking=picking, notes=(*own.notes, *_reading(read[0], frames[0], own)))
                placed.add([step.new_h for step in chain], own, lower)
            except Refused as reason:
                refused.append(f"{_about(chain)}: {reason}")
        return placed.stacks(), refused

    def _refuse_changed(self, chain: tuple[Step, ...]) -> None:
        """Refuse a single step unless its states come from inputs as they are, and go to outputs as they are."""
        read = list[tuple[object, ...] | None]()
        one = chain[0]
        states = (("h", self._given(one)[0], one.new_h), ("c", one.c, one.new_c)) if len(chain) == 1 else ()
        for name, before, after in states:
            read += [self._picks(before)] if before is not None else []
            what = f"{name} is not an input" if None in read else f"new {name} is not an output"
            if None in read or (after is not None and after not in whole_outputs(after.scope)):
                raise Refused(f"its {what} of the network, or part of one, as it is, so its steps are no layer")
        if len(set(read)) < len(read):
            raise Refused("one input gives both its h and its c, so its steps are no layer")

    def _picks(self, value: Value | None) -> tuple[object, ...] | None:
        """The input that a value is, or is a part of, and what picks the part; None if it is something else."""
        picks: list[object] = []
        while value is not None and value.node is not None:
            node = value.node
            given = [self._shapes.numbers(value.scope, str(name)) for name in node.input[1:]]
            turned = value.kind == "Slice" and len(given) > 3 and set(given[3] or [None]) != {1}
            turned |= value.kind == "Gather" and len(given[0] or ()) != 1
            if turned or value.kind not in WHOLE - {"Concat"} | {"Slice", "Split", "Gather"}:
                return None
            if value.kind not in WHOLE:
                picks.append((value.kind, value.place, *map(str, given), str(list(node.attribute))))
            value = plain(value.scope, node_input(node, 0))
        return None if value is None or is_stored(value) else (value, *picks)

    def _runs_backward(self, read: Sequence[Product], frames: Sequence[Frame | None]) -> bool:
        """Whether the steps read the frames of one tensor from the last to the first."""
        if len(read) == 1:
            return False
        for at, (product, frame) in enumerate(zip(read, frames, strict=True)):
            if frame is None:
                raise Refused(
                    f"step {at} reads {_called(product.source)}, which is not shown to be frame {at} of one tensor"
                )
        return run_of_frames(frames)

    def _layer(self, chain: tuple[Step, ...], halves: list[tuple[_Half, ...]]) -> UnrolledLayer:
        first, usual, order = chain[0], halves[min(1, len(halves) - 1)], chain[0].gates
        parts: dict[str, list[Floats]] = {name: [] for name in ("x", "h", "x_bias", "h_bias")}
        for gate, rows in zip(order, first.rows, strict=True):
            held = [usual[at] for at, *_ in rows]
            cut = [partial(_cut, row=row, sign=-1 if gate in first.turned else 1) for row in rows]
            xs = [take(self._numbers.matrix(each.x)) for take, each in zip(cut, held, strict=True) if each.x]
            hs = [take(self._numbers.matrix(each.h)) for take, each in zip(cut, held, strict=True) if each.h]
            mixed = first.cell == "gru" and gate == "n" and (held[0].h or held[1].x)
            if len(xs) != 1 or len(hs) != 1 or mixed:
                raise Refused(f"its gate {gate} is no sum of one product with x and one with h")
            biases = {"x" if each.x else "h": take(each.bias) for take, each in zip(cut, held, strict=True)}
            for name, array in (("x", xs[0]), ("h", hs[0]), *((f"{side}_bias", biases.get(side)) for side in "xh")):
                parts[name].append(np.zeros(len(xs[0]), xs[0].dtype) if array is None else array)
        if any(len({array.shape for array in arrays}) > 1 for arrays in parts.values()):
            raise Refused("its gates have different sizes")
        x, h, own_bias, recurrent_bias = (np.concatenate(parts[name]) for name in ("x", "h", "x_bias", "h_bias"))
        hidden = h.shape[-1]
        if len(h) != len(order) * hidden or len(x) != len(h) or not x.shape[1]:
            raise Refused(f"its matrices {list(x.shape)} and {list(h.shape)} fit no cell")
        own = cell(first.cell)
        weights = unstacked(
            own, order, Stacked(x, h, own_bias, recurrent_bias if max(map(len, first.rows)) > 1 else None)
        )
        stored = [each.matrix.name for half in usual if (each := half.h) is not None]
        stored += [each.name for terms in chain[-1].sums for each in terms.stored]
        # nn.RNN's matrices are turned around and have no names of their own, unlike its biases.
        name = next((each for each in stored if ".weight_hh" in each or ".bias_hh" in each), stored[0])
        name = name.replace(".weight_hh_", ".").replace(".bias_hh_", ".").split(".weight_hh")[0].split(".bias_hh")[0]
        states, notes, computed = self._beginning(chain, halves, hidden)
        notes += [
            f"gate {gate} has its weights with the other sign: 1 - sigmoid(a) is sigmoid(-a)" for gate in first.turned
        ]
        return UnrolledLayer(
            Layer(own, hidden, x.shape[1]), weights, states, first.new_h, name, len(chain), tuple(notes), computed
        )

    def _halves(self, chain: tuple[Step, ...]) -> list[tuple[_Half, ...]]:
        """The products and biases of each step, proven to have the same weights in all steps."""
        usual = min(1, len(chain) - 1)
        second = self._apart(chain, usual, None)
        halves = [second if at == usual else self._apart(chain, at, second) for at in range(len(chain))]
        for at, step in enumerate(halves):
            for one, other in zip(step, second, strict=True):
                # The first product with h may be folded into the bias: `_folded` looks at it.
                folded = one.h is None and other.h is not None and at == 0
                if not folded and not np.array_equal(one.bias, other.bias):
                    raise Refused(f"step {at} has a bias of its own")
        return halves

    def _apart(self, chain: tuple[Step, ...], at: int, like: tuple[_Half, ...] | None) -> tuple[_Half, ...]:
        step, before = chain[at], chain[at - 1].new_h if at else None
        if len(chain) == 1:
            before, *more = self._given(step)
            if more:
                both = listed([_called(each) for each in (before, *more)], "and")
                raise Refused(f"nothing tells which of {both} is h and which is x: rename the input of h to 'h'")
        halves, reads, crowded, fed_back = list[_Half](), set[tuple[Value, Frame | None]](), False, False
        for number, (terms, bias) in enumerate(zip(step.sums, self._numbers.biases(step), strict=True)):
            after_reset = step.reset is not None and any(number == rows[0] for rows in step.rows[-1])
            state, usual = step.reset if after_reset else before, like[number] if like is not None else None
            recurrent = [
                each
                for each in terms.products
                if (each.source == state if at or usual is None else self._is_recurrent(each, usual))
            ]
            others = [each for each in terms.products if each not in recurrent]
            crowded |= max(len(others), len(recurrent)) > 1
            fed_back |= len(recurrent) > 1
            halves.append(_Half(next(iter(others), None), next(iter(recurrent), None), bias))
            reads |= {(each.source, each.frame) for each in others}
        if at and (fed_back or not reads):
            raise Refused(_DECODER.format(at))
        if crowded or len(reads) != 1 or not any(each.h for each in (like or halves)):
            raise Refused(f"step {at} is no sum of one product with x and one with h")
        for one, other in zip(halves, like or halves, strict=True):
            pairs = [(one.x, other.x), (one.h, other.h)]
            missing = (one.x is None) != (other.x is None) or (at and (one.h is None) != (other.h is None))
            if missing or any(a and b and not self._numbers.same(a, b) for a, b in pairs):
                raise Refused(f"step {at} has weights of its own")
        return tuple(halves)

    def _is_recurrent(self, product: Product, like: _Half) -> bool:
        """Whether a product of the first step is the product of h, as its weights show."""
        if like.h is None or not self._numbers.same(product, like.h):
            return False
        return like.x is None or not self._numbers.same(product, like.x) or is_stored(product.source)

    def _beginning(
        self, chain: tuple[Step, ...], halves: list[tuple[_Half, ...]], hidden: int
    ) -> tuple[dict[str, Floats], list[str], str]:
        """The states before the first step that the file fixes, notes, and in words what computes further states."""
        first, own = chain[0], halves[0]
        states: dict[str, Floats] = {}
        notes: list[str] = []
        computed = ""
        before = [each.h.source for each in own if each.h is not None and each.h.source != first.reset]
        given = {"h": [*before, *([first.h] if first.h is not None else [])]}
        given["c"] = [first.c] if first.c is not None else []
        for name, values in given.items():
            for value in values:
                fixed, origins = self._numbers.fixed(value), sources(value.scope, value.name)
                if fixed is not None:
                    known = states.get(name)
                    if known is not None and not np.all(known == fixed):
                        raise Refused("its first step begins with two different h")
                    states[name] = fixed if known is None or len(fixed) > len(known) else known
                elif value.node is None or not (origins.computed or origins.constants):
                    part = "" if value.node is None else "part of "
                    inputs = listed([show(each) for each in origins.inputs or [value.name]], "and")
                    notes.append(f"initial {name} is {part}the input {inputs}; a run begins at 0")
                else:
                    computed = computed or listed(origins.computed or ["constants"], "and")
        folded = [(one, other) for one, other in zip(own, halves[-1], strict=True) if other.h and not one.h]
        if folded:
            states |= self._folded(folded, states.get("h"))
        wide = {name: np.broadcast_to(each, hidden) for name, each in states.items() if each.any()}
        return wide, list(dict.fromkeys(notes)), computed

    def _folded(self, folded: list[tuple[_Half, _Half]], h: Floats | None) -> dict[str, Floats]:
        """The h before the first step, if the exporter has put numbers in place of its products with the matrix."""
        matrix = np.concatenate([self._numbers.matrix(each.h) for _, each in folded if each.h]).astype(np.float64)
        product = np.concatenate([one.bias.astype(np.float64) - other.bias for one, other in folded])
        near = _TOLERANCE * (1 + max(np.abs(one.bias).max(initial=0) for one, _ in folded))
        if h is None and np.abs(product).max(initial=0) <= near:
            return {}
        start = np.linalg.lstsq(matrix, product)[0] if h is None else np.broadcast_to(h, matrix.shape[1])
        if np.abs(matrix @ start - product).max(initial=0) > near:
            raise Refused("its first step begins with an h that cannot be read from the file")
        return {"h": start}


def _cut(array: Floats, row: Rows, sign: int) -> Floats:
    """The rows of one gate; `Refused` if an array has no such parts."""
    _, place, count = row
    size = len(array) // count
    if size * count != len(array):
        raise Refused(f"{count} gates do not fit {len(array)} rows")
    return sign * array[place * size : (place + 1) * size]


def _reading(first: Product, frame: Frame | None, layer: UnrolledLayer) -> list[str]:
    """Notes on what the first step of a layer reads, if it is not the first of all frames of an input."""
    tensor, notes = first.source if frame is None else frame.tensor, list[str]()
    for _ in range(_MAX_HOPS):
        tensor = (plain(tensor.scope, node_input(tensor.node, 0)) if tensor.kind in _MOVED else None) or tensor
    if tensor.node is not None:
        notes.append(f"{layer.name} reads what {_called(tensor)} gives: a run takes that as its frames")
    if layer.steps > 1 and frame is not None and frame.count not in (None, layer.steps):
        notes.append(f"{layer.name} has {layer.steps} steps for {frame.count} frames: no step of it reads the others")
    return notes


def _about(chain: tuple[Step, ...]) -> str:
    first = chain[0].new_h
    if len(chain) == 1:
        return f"a step of a {chain[0].cell} up to {label(first.scope, first.index)}"
    return f"a {chain[0].cell} written out over {len(chain)} steps, the first up to {label(first.scope, first.index)}"


def _called(value: Value) -> str:
    return label(value.scope, value.index) if value.node is not None else show(value.name)
