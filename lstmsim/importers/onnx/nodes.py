"""One LSTM, GRU or RNN node of an ONNX network as a layer with its weights and first states, or why it cannot be one.

Where the operator pages leave a choice, this module does what onnxruntime 1.31 does: `clip` bounds the inputs of the
gates' activations, but not c before the last one; the activations that have alpha and beta take these numbers in order.
Gates and biases are in the order of the pages: LSTM i o f c, GRU z r h, peepholes i o f. An input is a state of 0 until
a job gives it. Sources: the ONNX operator pages of LSTM, GRU and RNN; onnxruntime/core/providers/cpu/rnn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, nearest, show
from lstmsim.importers.activations import DEFAULTS, GRAPHS, NEEDS, USUAL, Activation, with_activations
from lstmsim.importers.onnx.constants import ELEMENTWISE, Constants
from lstmsim.importers.onnx.graph import (
    DEFAULT_DOMAINS,
    Scope,
    Shape,
    Value,
    attributes,
    integer,
    label,
    node_input,
    resolve,
    text,
    upstream,
)
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.tensors import Stacked, Stored, floats, unstacked
from lstmsim.model.cell import Cell, Node, Stage
from lstmsim.model.cell_rules import MAX_CONSTANT, in_order
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer
from lstmsim.model.numerics.weights import LARGEST, Floats, PassWeights

_LISTS = ("activation_alpha", "activation_beta")
#: ONNX's recurrent operators, and the cell of each.
RECURRENT = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn"}
_DIRECTIONS = ("forward", "reverse", "bidirectional")


def _cell_of(kind: str, peepholes: bool, given: Mapping[str, Any], directions: int) -> Cell | list[str]:
    base = _base(kind, peepholes, given)
    activations, clip = _activations(kind, given, directions), _clip(given)
    coupled = kind == "LSTM" and bool(integer(dict(given), "input_forget", 0))
    refused = [each for each in (activations, clip) if isinstance(each, str)]
    if refused:
        return refused
    assert not isinstance(activations, str)
    assert not isinstance(clip, str)
    changed = with_activations(base, kind, activations, "ONNX", clip)
    return _with_coupled_gates(changed) if coupled else changed


def cell_notes(own: Cell) -> tuple[str, ...]:
    """Note how a cell reads the text of ONNX's operators, if the text leaves a choice."""
    if "c" in own.states and any(node.name.endswith("_c") for node in own.nodes):
        return (
            f"cell {own.name} clips what goes into its gates' activations, as onnxruntime does; it does not clip c",
        )
    return ()


def _base(kind: str, peepholes: bool, given: Mapping[str, Any]) -> Cell:
    if kind == "LSTM":
        return cell("lstm-peephole" if peepholes else "lstm")
    if kind == "GRU":
        return cell("gru" if integer(dict(given), "linear_before_reset", 0) else "gru-lbr0")
    return cell("rnn")


def _short(number: float) -> float:
    """A number of single precision as its shortest text: 0.2, not 0.200000003."""
    return float(str(np.float32(number)))


def _clip(given: Mapping[str, Any]) -> float | str | None:
    """The bound; None if no number that a run can hold reaches it; or why it is no bound."""
    if "clip" not in given:
        return None
    clip = _short(given["clip"].f)
    if not clip > 0:
        return f"has clip {clip:g}, must be above 0"
    return clip if clip <= MAX_CONSTANT else None


def _activations(kind: str, given: Mapping[str, Any], directions: int) -> tuple[Activation, ...] | str:
    usual = USUAL[kind]
    strings = given["activations"].strings if "activations" in given else ()
    texts = [bytes(each).decode("utf-8", "replace") for each in strings] or list(usual) * directions
    if len(texts) != len(usual) * directions:
        return f"has activations {_listed(texts)}: {len(texts)}, expected {len(usual) * directions}"
    known = {name.lower(): name for name in GRAPHS}
    names = [known.get(each.lower(), "") for each in texts]
    if "" in names:
        wrong = texts[names.index("")]
        hint = nearest(wrong, GRAPHS) or f"; there are {listed(GRAPHS, 'and')}"
        return f"has activations {_listed(texts)}: {show(wrong)} cannot be simulated{hint}"
    activations = _with_numbers(names, given)
    if isinstance(activations, str):
        return activations
    if activations[: len(usual)] * directions != activations:
        return f"has activations {_listed(texts)}: the two directions of a layer must have the same"
    return activations[: len(usual)]


def _listed(texts: list[str]) -> str:
    return listed([show(each) for each in texts], "and")


def _with_numbers(names: list[str], given: Mapping[str, Any]) -> tuple[Activation, ...] | str:
    """Each activation with its alpha and beta; activations take these numbers in order."""
    lists = [[_short(each) for each in given[key].floats] if key in given else [] for key in _LISTS]
    takes = [[name for name in names if NEEDS.get(name, len(DEFAULTS.get(name, ()))) > place] for place in range(2)]
    for key, numbers, takers in zip(_LISTS, lists, takes, strict=True):
        needed = sum(name in NEEDS for name in takers)
        if takers and (len(numbers) not in (0, len(takers)) or (needed and not numbers)):
            return f"has {len(numbers)} numbers as {key}, expected {len(takers)}: one for each activation that takes it"
        if not all(np.isfinite(numbers)) or max(map(abs, numbers), default=0) > MAX_CONSTANT:
            return f"has a number in {key} that is not finite, or larger than {MAX_CONSTANT:g}"
    left = [iter(each) for each in lists]
    activations = []
    for name in names:
        usual = DEFAULTS.get(name, (0.0,) * NEEDS.get(name, 0))
        activations.append(Activation(name, tuple(next(left[place], each) for place, each in enumerate(usual))))
    return tuple(activations)


def _with_coupled_gates(own: Cell) -> Cell:
    """The LSTM without a forget gate of its own: f = 1 - i."""
    others = [node for node in own.nodes if node.name not in ("fp", "fs") and not node.name.startswith("ft")]
    nodes = [Node("ft", "subtract", (1.0, "it")), *others]
    stages = tuple(Stage(tuple(gate for gate in stage.gates if gate.name != "f"), stage.rows) for stage in own.stages)
    parameters = tuple(name for name in own.parameters if name != "pf")
    coupled = replace(own, name=f"{own.name}-coupled", source=f"{own.source}, input_forget (f = 1 - i)")
    return in_order(replace(coupled, stages=stages, nodes=tuple(nodes), parameters=parameters))


def is_recurrent(node: Any) -> bool:
    """Say whether a node is one of ONNX's own recurrent operators."""
    return node.op_type in RECURRENT and node.domain in DEFAULT_DOMAINS


def foreign_recurrent(node: Any) -> bool:
    """Say whether a node has the name of a recurrent operator of another domain, such as `DynamicQuantizeLSTM`."""
    return node.domain not in DEFAULT_DOMAINS and any(kind in str(node.op_type).upper() for kind in RECURRENT)


def read_layer(shapes: Shapes, scope: Scope, index: int) -> Layer | list[str]:
    """Read the layer that a recurrent node describes, or give the sentences that say why it describes none."""
    node = scope.nodes[index]
    given = attributes(scope, node)
    kind = str(node.op_type)
    direction = text(given, "direction", "forward")
    refused = [] if direction in _DIRECTIONS else [f"has direction {show(direction)}, must be {listed(_DIRECTIONS)}"]
    own = _cell_of(kind, bool(node_input(node, 7)), given, 2 if direction == "bidirectional" else 1)
    if refused or isinstance(own, list):
        return refused + (own if isinstance(own, list) else [])
    sizes = _sizes(shapes, scope, node, given)
    if isinstance(sizes, str):
        return [sizes]
    for what, size in zip(("hidden_size", "the width of its input"), sizes, strict=True):
        if not 1 <= size <= MAX_SIZE:
            refused.append(f"{what} is {size}, must be between 1 and {MAX_SIZE}")
    if refused:
        return refused
    layer = Layer(own, *sizes, direction == "bidirectional", reverse=direction == "reverse")
    return _disagreements(shapes, scope, node, layer) or layer


def _sizes(shapes: Shapes, scope: Scope, node: Any, given: dict[str, Any]) -> tuple[int, int] | str:
    """The hidden units and the elements of the input, or why they are not known."""
    weights, recurrence = shapes.of(scope, node_input(node, 1)), shapes.of(scope, node_input(node, 2))
    for name, place, shape in (("W", 1, weights), ("R", 2, recurrence)):
        if shape is None:
            return f"the shape of {name} cannot be read from the file: {_origin(scope, node, place)}"
        if len(shape) != 3:
            return f"{name} is {_show(shape)}, expected three dimensions: directions, gates x hidden, columns"
    assert weights is not None
    assert recurrence is not None
    hidden = integer(given, "hidden_size", recurrence[2] or 0)
    width = weights[2]
    if width is None:
        frames = shapes.of(scope, node_input(node, 0))
        width = frames[-1] if frames else None
    if width is None:
        return f"the width of its input cannot be read from the file: {_origin(scope, node, 1)}"
    return hidden, width


def _disagreements(shapes: Shapes, scope: Scope, node: Any, layer: Layer) -> list[str]:
    """Sentences on inputs whose shapes contradict hidden_size, the direction, or each other."""
    sides, hidden, lstm = layer.directions, layer.hidden, node.op_type == "LSTM"
    rows = len(cell(RECURRENT[node.op_type]).gates) * hidden
    batch_first = integer(attributes(scope, node), "layout", 0)
    state: Shape = (None, sides, hidden) if batch_first else (sides, None, hidden)
    wanted: list[tuple[str, int, Shape]] = [
        ("W", 1, (sides, rows, layer.input)),
        ("R", 2, (sides, rows, hidden)),
        ("B", 3, (sides, 2 * rows)),
        ("initial_h", 5, state),
        *([("initial_c", 6, state), ("P", 7, (sides, 3 * hidden))] if lstm else []),
        ("X", 0, (None, None, layer.input)),
    ]
    sentences, projected = [], False
    for name, place, expected in wanted:
        shape = shapes.of(scope, node_input(node, place))
        if shape is None or _fits(shape, expected):
            continue
        sentences.append(f"{name} is {_show(shape)}, expected {_show(expected)}")
        # the mark of a projection after h: c (or the gates) belong to more units than h has
        projected |= lstm and name == "initial_c" and len(shape) == 3 and (shape[2] or 0) > hidden
        projected |= lstm and name == "R" and shape[2] == hidden and (shape[1] or 0) > rows
    if not sentences:
        return []
    sentence = f"its parts contradict hidden_size {hidden}: {'; '.join(sentences)}"
    if projected:
        sentence += (
            "; this looks like an nn.LSTM with proj_size, which ONNX cannot express and PyTorch's dynamo exporter "
            "writes wrongly: export it without proj_size"
        )
    return [sentence]


def _fits(shape: Shape, expected: Shape) -> bool:
    return len(shape) == len(expected) and all(
        size is None or wanted is None or size == wanted for size, wanted in zip(shape, expected, strict=True)
    )


def _show(shape: Shape) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def _origin(scope: Scope, node: Any, place: int) -> str:
    """Where a value comes from, in words that explain why its shape is unknown."""
    name = node_input(node, place)
    value = resolve(scope, name)
    if value is None:
        return f"nothing in the file is called {show(name)}" if name else "the input is left out"
    if value.node is not None:
        return f"{show(name)} is computed by {value.node.op_type}"
    return f"{show(name)} is an input without a fixed shape"


#: The words for states that another node ends with begin so.
LAST_STATES = "the last states of"
#: State to the place of the input that gives it.
STATES = {"h": 5, "c": 6}
#: Operations that hand numbers on, rearranged, in part, or repeated.
HANDING_ON = frozenset(
    (
        *("Transpose", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Identity", "Cast", "Dropout"),
        *("Concat", "Slice", "Gather", "Split", "Expand", "Tile"),
    )
)
_MAX_VISITED = 300
_ORDERS = {"LSTM": "iofg", "GRU": "zrn", "RNN": "a"}
_PEEPHOLES = ("pi", "po", "pf")
_ADVICE = "export it with a stored state and a batch of 1, or read shapes only (--no-weights)"
_PLACES = {"W": 1, "R": 2, "B": 3, "P": 7}
#: One pass for each direction, or the sentence that says why there are no constant weights.
NodeWeights = tuple[PassWeights, ...] | str


@dataclass(frozen=True)
class Begin:
    """Where the states before the first step come from: names of the states that the file holds, inputs of the
    network, and in words what computes others.
    """

    constants: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    states_from: tuple[str, ...] = ()


@dataclass
class Sources:
    """The parts that a value is put together from: constants, inputs of the network, and all others in words."""

    constants: list[tuple[Scope, str]]
    inputs: list[str]
    computed: list[str]


def begin_of(scope: Scope, index: int) -> Begin:
    """Tell where the first states of a recurrent node come from, through operations that hand them on."""
    node = scope.nodes[index]
    constants, given, computed = list[str](), list[str](), list[str]()
    for name, place in STATES.items():
        if not node_input(node, place) or (name == "c" and node.op_type != "LSTM"):
            continue
        origins = sources(scope, node_input(node, place))
        if origins.computed or (origins.inputs and origins.constants):
            computed += [*origins.computed, *(f"input {show(each)}" for each in origins.inputs)]
            computed += ["constants"] if origins.constants else []
        elif origins.inputs:
            given += origins.inputs
        elif origins.constants:
            constants.append(name)
        else:
            computed.append(f"initial_{name}, which is nowhere in the file")
    return Begin(tuple(constants), tuple(dict.fromkeys(given)), tuple(dict.fromkeys(computed)))


def sources(scope: Scope, name: str) -> Sources:
    """List the constants, inputs and computing nodes that a value is put together from."""
    origins = Sources([], [], [])

    def follow(value: Value) -> Iterable[str]:
        joined = value.kind == "Concat"
        return value.node.input[: _MAX_VISITED if joined else 1] if value.kind in HANDING_ON else ()

    for visited, value in enumerate(upstream(scope, name, follow, _MAX_VISITED + 2)):
        if visited > _MAX_VISITED:
            origins.computed.append("more values than can be followed")
            break
        node = value.node
        if value.tensor is not None or (node is not None and _made_of_constants(value)):
            origins.constants.append((value.scope, value.name))
        elif node is None:
            inside = value.scope.inside
            (origins.computed if inside else origins.inputs).append(
                f"{show(value.name)}{inside}" if inside else value.name
            )
        elif is_recurrent(node):
            what = LAST_STATES if value.place else "the outputs of"
            origins.computed.append(f"{what} {label(value.scope, value.index)}")
        elif value.kind not in HANDING_ON and not value.inside():
            origins.computed.append(f"node {label(value.scope, value.index)}")
    return origins


def _made_of_constants(value: Value) -> bool:
    """Whether a node gives stored numbers, as they are or after operations that `Constants` does."""
    if value.kind in ("Constant", "ConstantOfShape"):
        return True
    if value.kind not in ELEMENTWISE:
        return False

    def follow(each: Value) -> Iterable[str]:
        every = each.kind in ELEMENTWISE or each.kind == "Concat"
        return each.node.input[: None if every else 1] if each.kind in (*ELEMENTWISE, *HANDING_ON) else ()

    known = (*ELEMENTWISE, *HANDING_ON, "Constant", "ConstantOfShape")
    values = list(upstream(value.scope, value.name, follow, _MAX_VISITED))
    return len(values) < _MAX_VISITED and all(x.tensor is not None or x.kind in known or x.inside() for x in values)


def c_alone(scope: Scope, name: str, h: set[str], c: set[str], of: Iterable[int] = ()) -> list[str]:
    """Note a layer if its graph reads some value of its c, but none of its h, outside the nodes `of`."""
    own, found = set(of), False
    names = (str(name) for index, node in enumerate(scope.nodes) if index not in own for name in node.input)
    for each in chain(scope.outputs, names):
        if each in h:
            return []
        found |= each in c
    note = f"the network reads only the cell state c of {name}: what a run gives is h"
    return [note] if found and not scope.children else []


def node_weights(constants: Constants, scope: Scope, index: int, layer: Layer) -> NodeWeights:
    """Read the weights of a recurrent node, or say why they are no constants."""
    node, arrays = scope.nodes[index], dict[str, Floats]()
    for name, place in _PLACES.items():
        if node_input(node, place):
            array = constants.of(scope, node_input(node, place))
            if isinstance(array, str):
                return f"{name} of {label(scope, index)} comes from {array}: only its shapes are read"
            arrays[name] = array
    order = _ORDERS[str(node.op_type)]
    rows = len(order) * layer.hidden
    expected = {
        "W": (layer.directions, rows, layer.input),
        "R": (layer.directions, rows, layer.hidden),
        "B": (layer.directions, 2 * rows),
        "P": (layer.directions, 3 * layer.hidden),
    }
    arrays = checked_arrays(arrays, expected, label(scope, index))
    gates = [name for name in order if name in {gate.name for gate in layer.cell.gates}]
    return tuple(unstacked(layer.cell, gates, _stacked(arrays, layer, side, order)) for side in range(layer.directions))


def checked_arrays(arrays: dict[str, Floats], expected: Mapping[str, tuple[int, ...]], at: str) -> dict[str, Floats]:
    """Give arrays whose shapes and numbers are right; one `InputError` for all that are wrong."""
    stored = {name: Stored("F32", array.shape, partial(np.asarray, array)) for name, array in arrays.items()}
    try:
        return floats(stored, expected)
    except InputError as error:
        raise InputError([Mistake(at, f"{each.location} {each.sentence}") for each in error.mistakes]) from None


def _stacked(arrays: dict[str, Floats], layer: Layer, side: int, order: str) -> Stacked:
    """The parts of one direction, without rows of gates that the cell lacks: f, if it is coupled to i."""
    names = {gate.name for gate in layer.cell.gates}
    rows = np.repeat([name in names for name in order], layer.hidden)
    peepholes = {
        name: part
        for name, part in zip(_PEEPHOLES, np.split(arrays["P"][side], 3) if "P" in arrays else (), strict=False)
        if name in layer.cell.parameters
    }
    own, recurrent = (part[rows] for part in np.split(arrays["B"][side], 2)) if "B" in arrays else (None, None)
    return Stacked(arrays["W"][side][rows], arrays["R"][side][rows], own, recurrent, parameters=peepholes)


def constant_states(
    constants: Constants, scope: Scope, index: int, layer: Layer, begin: Begin
) -> Mapping[int, Mapping[str, Floats]]:
    """Read the first states that the file holds: direction to name to [units]; a state that is all 0 is left out."""
    node = scope.nodes[index]
    states: dict[int, dict[str, Floats]] = {}
    for name in begin.constants:
        array = _read(constants, scope, node_input(node, STATES[name]))
        if isinstance(array, str):
            text = f"initial_{name} is made of constants in a way that cannot be read ({array}): {_ADVICE}"
            raise InputError(Mistake(label(scope, index), text))
        if integer(attributes(scope, node), "layout", 0) and array.ndim == 3:
            array = array.transpose(1, 0, 2)
        for side, values in enumerate(_rows(array, name, label(scope, index), layer)):
            if values.any():
                states.setdefault(side, {})[name] = values
    return states


def _read(constants: Constants, scope: Scope, name: str) -> Floats | str:
    """The array at batch 1; 0 for an array that is put together from zeros in any way."""
    array = constants.of(scope, name)
    if isinstance(array, str):
        leaves = [constants.of(*each) for each in sources(scope, name).constants]
        if all(not isinstance(each, str) and not each.any() for each in leaves):
            return np.zeros(())
    return array


def _rows(array: Floats, name: str, place: str, layer: Layer) -> Floats:
    wanted = (layer.directions, 1, layer.hidden)
    if not np.all(np.isfinite(array)) or np.abs(array).max(initial=0) > LARGEST:
        raise InputError(Mistake(place, f"initial_{name} holds numbers above {LARGEST:g} or none at all"))
    if array.size == 1 or (array.size and not array.any()):
        # Of a value whose shape the file leaves open, its one number is known; its other axes may be missing.
        return np.full(wanted[::2], array.flat[0])
    if array.ndim != 3 or array.shape[::2] != wanted[::2] or not array.shape[1]:
        text = f"initial_{name} is {list(array.shape)} at a batch of 1, expected {list(wanted)}"
        raise InputError(Mistake(place, text))
    if not (array == array[:, :1]).all():
        text = (
            f"initial_{name} differs between the {array.shape[1]} sequences of its batch, where a run is of one "
            f"sequence: {_ADVICE}"
        )
        raise InputError(Mistake(place, text))
    return array[:, 0]


def fingerprint(passes: NodeWeights, states: Mapping[int, Mapping[str, Floats]]) -> str:
    """Make a text that is equal for equal weights and equal first states; empty without weights."""
    if isinstance(passes, str):
        return ""
    digest = hashlib.sha256()
    groups = [group for each in passes for group in (each.matrices, each.biases, each.parameters)]
    for group in (*groups, {(side, *each): states[side][each] for side in states for each in states[side]}):
        for key, array in group.items():
            digest.update(f"{key}{array.dtype}{array.shape}".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()
