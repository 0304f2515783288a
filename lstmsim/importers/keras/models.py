"""Recurrent layers of Keras as models: what a configuration describes (JSON, never run), weights, table of all layers.

Keras stores `kernel` [input, gates x hidden], `recurrent_kernel` [hidden, gates x hidden] and `bias`; gates i f c o and
z r h (keras.io: LSTM, GRU, serialisation format). Keras itself is never imported here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import PurePath
from typing import Any

import numpy as np

from lstmsim.base.bounded import placed
from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.wording import listed, show
from lstmsim.importers.activations import DEFAULTS, Activation, with_activations
from lstmsim.importers.imported import (
    FOLDED,
    LEFT_OUT,
    SIMULATED,
    ImportedModel,
    Operators,
    OperatorTable,
    kinds_named,
    model_names,
    model_stem,
)
from lstmsim.importers.keras.graph import Beginning, Placed, Upstream, beginning_of, cells_at, is_layer, placed_layers
from lstmsim.importers.tensors import Stacked, Stored, floats, single_or_double, unstacked
from lstmsim.model.cell import Cell
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Floats, Network, PassWeights

#: By class: the cell, and the keys of its activations in the order of `activations.USUAL`.
_CELLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "LSTM": ("lstm", ("recurrent_activation", "activation", "activation")),
    "GRU": ("gru", ("recurrent_activation", "activation")),
    "SimpleRNN": ("rnn", ("activation",)),
}
_DEFAULTS = {"activation": "tanh", "recurrent_activation": "sigmoid"}
#: Keras's names of activations. Sources: keras/src/activations of Keras 3, keras/activations.py of Keras 2.
_NAMES = ("Tanh", "Sigmoid", "Relu", "Elu", "Softsign", "Softplus", "Linear")
_ACTIVATIONS = {each.lower(): Activation(each, DEFAULTS.get(each, ())) for each in _NAMES}
#: The slope of `hard_sigmoid` in Keras 2, and in Keras 3 (1/6 in single precision).
_HARD = (Activation("HardSigmoid", (0.2, 0.5)), Activation("HardSigmoid", (0.16666667, 0.5)))
_OTHERS = ("ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "StackedRNNCells", "CuDNNLSTM", "CuDNNGRU")


@dataclass(frozen=True)
class KerasLayer:
    """A recurrent layer as a Keras model describes it.

    `path` is where a Keras 3 file has its weights, `below` the path of the recurrent layer that it reads (or empty).
    `names` are the models around it, outermost first, and its name. `sequences` tells whether it hands on every step,
    `merge` how it joins its two directions (empty for one), `calls` how often one run of the whole model calls it,
    `upstream` what feeds its frames. `inside` is where a Keras 3 file has its cell; `among` its number and name if it
    is one of several cells of an RNN.
    """

    name: str
    path: str
    cell: Cell
    hidden: int
    use_bias: bool
    sequences: bool
    merge: str = ""
    below: str = ""
    names: tuple[str, ...] = ()
    reverse: bool = False
    beginning: Beginning = field(default_factory=Beginning)
    notes: tuple[str, ...] = ()
    calls: int = 1
    upstream: Upstream = field(default_factory=Upstream)
    inside: str = "cell"
    among: tuple[int, str] | None = None

    @property
    def entry_path(self) -> str:
        """The path of the Keras layer: that of the RNN for a cell of several."""
        return self.path.partition("/cell/cells/")[0]


def parsed_config(text: bytes, place: str) -> dict[str, Any]:
    """Parse a model's configuration."""
    try:
        config = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InputError(f"its {place} is no JSON, or is damaged") from None
    if not isinstance(config, dict) or not isinstance(config.get("config"), dict | list):
        raise InputError(f"its {place} describes no Keras model")
    return config


def keras_layers(config: Mapping[str, Any]) -> list[KerasLayer]:
    """List the recurrent layers of a model's configuration, in order."""
    layers: list[KerasLayer] = []
    mistakes: list[Mistake] = []
    kinds: Counter[str] = Counter()
    for each in placed_layers(config):
        kinds[show(each.entry["class_name"])] += 1
        described = _layers(each)
        if isinstance(described, list):
            layers += described
        elif described:
            mistakes.append(Mistake(f"layer {show(each.names[-1])}", described))
    refuse(mistakes)
    if not layers:
        some = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(5))
        raise InputError(f"holds no layer LSTM, GRU or SimpleRNN; it has {some or 'no layers'}")
    return layers


def keras_kinds(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List the class and path of every layer of a model's configuration, in order."""
    return [(str(each.entry["class_name"]), each.path) for each in placed_layers(config)]


def _layers(placed: Placed) -> list[KerasLayer] | str:
    """The layers that an entry describes, why it cannot be read, or nothing if it is not recurrent."""
    entry = placed.entry
    inner, merge = entry, ""
    if entry["class_name"] == "Bidirectional":
        inner = entry["config"].get("layer")
        if not is_layer(inner):
            return "is Bidirectional around something that is no layer"
        merge = str(entry["config"].get("merge_mode"))
    cells = _cells_of(inner)
    if isinstance(cells, str):
        return cells
    if len(cells) > 1 and (merge or any(call.states for call in placed.calls)):
        text = f"is an RNN of {len(cells)} cells {'in two directions' if merge else 'with an initial_state'}"
        return f"{text}: such an RNN can be read with one cell only"
    wrong = _wrong_directions(entry["config"], inner) if merge else ""
    if wrong:
        return wrong
    layers: list[KerasLayer] = []
    for each in cells:
        layer = _layer(placed, each, merge)
        if isinstance(layer, str):
            return layer
        layers.append(layer)
    if len(layers) == 1:
        return layers
    # only the last cell has the path of the RNN, and hands on what the RNN does
    for number, (name, inside) in enumerate(cells_at(cells)):
        layer = replace(layers[number], name=f"{placed.names[-1]}/{name}", inside=inside, among=(number, name))
        if number < len(cells) - 1:
            layer = replace(layer, path=f"{layer.path}/{inside}", sequences=True)
        layers[number] = replace(layer, below=layers[number - 1].path) if number else layer
    return layers


def _cells_of(entry: Mapping[str, Any]) -> list[Mapping[str, Any]] | str:
    """A layer, or each cell of an RNN as a layer with the RNN's configuration, or why they cannot be read."""
    cells = [entry]
    if entry["class_name"] == "RNN":
        inner = entry["config"].get("cell")
        stacked = is_layer(inner) and inner["class_name"] == "StackedRNNCells"
        cells = inner["config"].get("cells") if stacked else [inner]
        if not isinstance(cells, list) or not cells:
            return "is RNN around StackedRNNCells without a list of cells"
        for cell in cells:
            kind = cell["class_name"] if is_layer(cell) else None
            if kind not in [f"{each}Cell" for each in _CELLS]:
                return f"is RNN around {show(kind)}: LSTMCell, GRUCell, SimpleRNNCell and lists of them can be read"
        cells = [
            {**each, "class_name": each["class_name"][:-4], "config": {**entry["config"], **each["config"]}}
            for each in cells
        ]
    elif entry["class_name"] not in _CELLS:
        return _not_read(entry)
    for each in (entry, *cells):
        if not str(each.get("module", "keras")).startswith(("keras", "tf_keras")):
            return f"belongs to {show(str(each['module']))}, only Keras's own layers can be read"
    return cells


def _layer(placed: Placed, entry: Mapping[str, Any], merge: str) -> KerasLayer | str:
    own = entry["config"]
    cell = _cell(entry)
    if isinstance(cell, str):
        return cell
    units = own.get("units")
    if type(units) is not int or not 1 <= units <= MAX_SIZE:
        return f"has units {show(units)}, must be between 1 and {MAX_SIZE}"
    beginning = beginning_of(placed, cell, units, 2 if merge else 1)
    if isinstance(beginning, str):
        return beginning
    bias, sequences = bool(own.get("use_bias", True)), bool(own.get("return_sequences"))
    reverse = bool(own.get("go_backwards")) and not merge
    notes = tuple(_notes(placed, own, merge, reverse, sequences)) + beginning.notes
    calls = prod(count for _, count in placed.again) * max(1, len(placed.calls))
    layer = KerasLayer(placed.names[-1], placed.path, cell, units, bias, sequences, merge, placed.below, placed.names)
    return replace(layer, reverse=reverse, beginning=beginning, notes=notes, calls=calls, upstream=placed.upstream)


def _not_read(entry: Mapping[str, Any]) -> str:
    """Why an entry of another class cannot be read; empty if nothing in the entry is recurrent."""
    if entry["class_name"] in _OTHERS:
        return f"is {show(entry['class_name'])}: LSTM, GRU and SimpleRNN can be read"
    wrapped = entry["config"].get("layer")
    if is_layer(wrapped) and wrapped["class_name"] in (*_CELLS, *_OTHERS, "RNN", "Bidirectional"):
        return f"is {show(entry['class_name'])} around {show(wrapped['class_name'])}: only Bidirectional can be read"
    return ""


def _wrong_directions(config: Mapping[str, Any], inner: Mapping[str, Any]) -> str:
    backward = config.get("backward_layer")
    if not isinstance(backward, dict) or not is_layer(backward):
        backward = {"class_name": inner["class_name"], "config": {**inner["config"], "go_backwards": True}}
    if _settings(backward) != _settings(inner):
        return "has two directions that differ, expected the same layer in both"
    if inner["config"].get("go_backwards") or not backward["config"].get("go_backwards", True):
        return "has a first direction that goes backward: only the second can be simulated so"
    return ""


def _settings(entry: Mapping[str, Any]) -> list[Any]:
    cells = _cells_of(entry)
    keys = ("units", "use_bias", "activation", "recurrent_activation", "reset_after", "return_sequences")
    own = [[each["class_name"], *map(each["config"].get, keys)] for each in cells if not isinstance(each, str)]
    return [entry["class_name"], *own]


def _cell(entry: Mapping[str, Any]) -> Cell | str:
    """The cell of a layer, or what is wrong with its activations."""
    config = entry["config"]
    base, keys = _CELLS[entry["class_name"]]
    # only Keras 2 writes these keys; layers of before have no module, and a configuration of Keras 3 has a seed
    old = not {"implementation", "time_major"}.isdisjoint(config) or ("module" not in entry and "seed" not in config)
    known = {**_ACTIVATIONS, "hard_sigmoid": _HARD[0 if old else 1]}
    names = {key: config.get(key, _DEFAULTS[key]) for key in keys}
    for key, name in names.items():
        if not isinstance(name, str) or name not in known:
            return f"has {key} {show(name)}: only {listed(known, 'and')} are simulated"
    # a configuration without the key is older than the key
    own = "gru-lbr0" if base == "gru" and not config.get("reset_after", False) else base
    return with_activations(cell(own), base.upper(), tuple(known[names[key]] for key in keys), "Keras")


def _notes(placed: Placed, config: Mapping[str, Any], merge: str, reverse: bool, sequences: bool) -> list[str]:
    own = f"layer {placed.names[-1]!r}"
    notes = []
    if merge not in ("", "concat"):
        notes.append(f"{own} joins its directions by {merge!r}; here they are concatenated")
    if merge and not sequences:
        notes.append(f"{own} hands on only the end of each direction: forward at the last step, backward at step 0")
    if reverse and sequences:
        notes.append(f"{own} goes backward: its outputs are here in the order of time, in Keras the last step is first")
    elif reverse:
        notes.append(f"{own} goes backward: what Keras hands on is here the output at step 0")
    if config.get("stateful"):
        notes.append(f"{own} is stateful in Keras; here every run begins anew")
    masks = [each for each in placed.masks if each != placed.names[-1]]
    if masks or any(call.masked for call in placed.calls):
        who = f"layer {masks[0]!r}" if masks else "the model"
        notes.append(f"{who} can mask steps; {own} computes every step here")
    if len(placed.calls) > 1:
        notes.append(f"{own} is called {len(placed.calls)} times with the same weights; here it is one model")
    for name, count in placed.again:
        notes.append(
            f"model {show(name)} is called {count} times with the same weights; here each of its layers runs once"
        )
    kind = _dtype(config.get("dtype"))
    if kind not in ("", "float32", "float64"):
        notes.append(f"{own} computes in {kind} in Keras")
    return notes


def _dtype(value: Any) -> str:
    inner = value.get("config") if isinstance(value, dict) else None
    name = inner.get("name") if isinstance(inner, dict) else value
    return name[:40] if isinstance(name, str) and name.isprintable() else ""


#: Classes of Keras that hand values on, unchanged or in another arrangement.
_MOVING = kinds_named(
    "InputLayer Dropout SpatialDropout1D GaussianNoise GaussianDropout AlphaDropout Identity ActivityRegularization "
    "Reshape Permute Flatten"
)
#: Classes that compute, but multiply no matrices.
_IDLE = kinds_named(
    "Activation ReLU LeakyReLU PReLU ELU Softmax Masking Embedding BatchNormalization LayerNormalization "
    "GroupNormalization UnitNormalization Normalization Rescaling Concatenate Add Subtract Multiply Average Maximum "
    "Minimum MaxPooling1D MaxPooling2D AveragePooling1D AveragePooling2D GlobalMaxPooling1D GlobalMaxPooling2D "
    "GlobalAveragePooling1D GlobalAveragePooling2D RepeatVector ZeroPadding1D ZeroPadding2D Cropping1D UpSampling1D "
    "StringLookup IntegerLookup TextVectorization"
)
#: The order of the gates in Keras's matrices by their number, in the names that the cells have for their gates.
_ORDERS = {4: "ifgo", 3: "zrn", 1: "a"}
_SIDES = ("forward", "backward")
#: Gives the variables of a layer in one direction ("" for a layer of one direction): kernel, recurrent kernel and bias
#: by their names in the file.
Variables = Callable[[KerasLayer, str], dict[str, Stored]]


def _keras_table(
    kinds: Sequence[tuple[str, str]], simulated: Mapping[str, int], calls: Mapping[str, int]
) -> OperatorTable:
    members: dict[tuple[str, str], list[str]] = {}
    for kind, name in kinds:
        outcome = SIMULATED if name in simulated else FOLDED if kind in _MOVING else LEFT_OUT
        members.setdefault((kind, outcome), []).append(name)
    groups = []
    for (kind, outcome), names in members.items():
        macs: int | None = 0
        if outcome == SIMULATED:
            macs = sum(simulated[name] for name in names)
        elif outcome == LEFT_OUT and kind not in _IDLE:
            macs = None
        reason = f"a Keras file does not say how often {show(kind)[1:-1]} runs" if macs is None else ""
        groups.append(Operators(kind, outcome, len(names), macs, reason))
    more = {name: count - 1 for name, count in calls.items() if count > 1}
    for kind in dict.fromkeys(kind for kind, name in kinds if name in more):
        names = [name for each, name in kinds if each == kind and name in more]
        macs = sum(more[name] * simulated[name] for name in names)
        groups.append(Operators(f"{kind} called again", LEFT_OUT, sum(more[name] for name in names), macs))
    return OperatorTable(tuple(groups), steps=1, assumed="calls of equally many steps" if more else "")


@dataclass(frozen=True, eq=False)
class Part:
    """A Keras layer as described and as a layer here, with the weights of its directions and the names of its
    variables.
    """

    described: KerasLayer
    layer: Layer
    passes: tuple[PassWeights, ...]
    variables: tuple[str, ...]


def parts_of(layers: Sequence[KerasLayer], variables: Variables) -> list[Part]:
    """Read the numbers of layers."""
    parts: list[Part] = []
    mistakes: list[Mistake] = []
    for layer in layers:
        try:
            parts.append(_part(layer, variables))
        except InputError as error:
            own = f"layer {layer.name!r}"
            mistakes += [
                Mistake(": ".join(filter(None, (own, each.location))), each.sentence) for each in error.mistakes
            ]
    refuse(mistakes)
    return parts


def _part(layer: KerasLayer, variables: Variables) -> Part:
    rows = len(layer.cell.gates) * layer.hidden
    # with reset_after, n has two sums
    bias = (2, rows) if len(layer.cell.gates) == 3 and len(layer.cell.stages) == 1 else (rows,)
    sides = [variables(layer, side) for side in (_SIDES if layer.merge else ("",))]
    width = None
    stored: dict[str, Stored] = {}
    expected: dict[str, tuple[int, ...]] = {}
    for side in sides:
        kernel = next(iter(side.values())).shape
        width = width or (kernel[0] if len(kernel) == 2 else 1)
        stored |= side
        expected |= dict(zip(side, [(width, rows), (layer.hidden, rows), bias], strict=False))
    arrays = floats(stored, expected)
    own = Layer(layer.cell, layer.hidden, width or 1, bool(layer.merge), reverse=layer.reverse)
    return Part(layer, own, tuple(_pass(layer, [arrays[name] for name in side]) for side in sides), tuple(stored))


def _pass(layer: KerasLayer, arrays: list[Floats]) -> PassWeights:
    kernel, recurrent, *rest = arrays
    bias = rest[0] if rest else None
    own, other = (bias[0], bias[1]) if bias is not None and bias.ndim == 2 else (bias, None)
    parts = Stacked(np.ascontiguousarray(kernel.T), np.ascontiguousarray(recurrent.T), own, other)
    return unstacked(layer.cell, _ORDERS[len(layer.cell.gates)], parts)


def keras_models(
    parts: list[Part], file: str, weights: bool, notes: Sequence[str] = (), kinds: Sequence[tuple[str, str]] = ()
) -> list[ImportedModel]:
    """Join layers that feed each other directly with whole sequences into one model; every other layer is a model."""
    stacks: list[list[Part]] = []
    by_path: dict[str, list[Part]] = {}
    for part in parts:
        stack = by_path.get(part.described.below)
        if stack is not None and stack[-1].described.path == part.described.below and _chains(stack[-1], part):
            stack.append(part)
        else:
            stack = [part]
            stacks.append(stack)
        by_path[part.described.path] = stack
    names = model_names(model_stem(file), [stack[0].described.name for stack in stacks])
    title = PurePath(file).name
    by_own = {part.described.path: part.described for part in parts}
    origins = [[part.described.name for part in stack] for stack in stacks]
    models = [
        _model(name, stack, title, weights, (*_apart(stack[0].described, by_own), *notes), origins)
        for name, stack in zip(names, stacks, strict=True)
    ]
    if not kinds:
        return models
    calls = {part.described.entry_path: part.described.calls for part in parts}
    macs: Counter[str] = Counter()
    for part in parts:
        macs[part.described.entry_path] += part.layer.macs_per_step
    table = _keras_table(kinds, macs, calls)
    return [replace(each, operators=table) for each in models]


def _chains(lower: Part, upper: Part) -> bool:
    """Whether the upper layer reads step by step what the lower layer gives here."""
    same = lower.described.entry_path == upper.described.entry_path
    whole = lower.described.sequences and lower.described.merge in ("", "concat")
    whole = whole and (same or not lower.described.reverse)
    return whole and lower.layer.output == upper.layer.input


def _apart(layer: KerasLayer, by_path: Mapping[str, KerasLayer]) -> list[str]:
    """Why a layer forms no stack with the recurrent layers that it reads; empty if it reads none."""
    below = by_path.get(layer.below)
    why = ""
    if below is not None and not below.sequences:
        why = "only the end of {}"
    elif below is not None and below.merge not in ("", "concat"):
        why = f"{{}}, whose directions Keras joins by {show(below.merge).replace('{', '{{').replace('}', '}}')}"
    elif below is not None and below.reverse:
        why = "{}, whose last step Keras hands on first"
    text = layer.upstream.sentence(layer.name, why)
    return [text] if text else []


def _model(
    name: str, stack: list[Part], file: str, weights: bool, notes: Sequence[str], origins: Sequence[list[str]]
) -> ImportedModel:
    """The model of one stack; `origins` are the layers of each stack, with whose last states another may begin."""
    described = [each.described for each in stack]
    states_from = " and ".join(
        dict.fromkeys(each.beginning.states_from for each in described if each.beginning.states_from)
    )
    whole = [each.beginning.origin for each in described] in origins
    if "the last states" in states_from and not whole:
        states_from += ", in part or in another order"
    layers = tuple(each.layer for each in stack)
    model = Model(name, layers, states_from=states_from, states_whole=whole or not states_from)
    initial: dict[tuple[int, int], dict[str, Floats]] = {}
    for number, each in enumerate(described):
        for side, state, values in each.beginning.fixed:
            initial.setdefault((number, side), {})[state] = np.array(values)
    network = Network(model, tuple(each.passes for each in stack), initial)
    nodes = tuple(each.name for each in described)
    own = tuple(dict.fromkeys(note for each in described for note in each.notes))
    return ImportedModel(model, nodes, f"{file}: {', '.join(nodes)}", (*own, *notes), network if weights else None)


def from_keras(model: Any, *, name: str | None = None) -> list[ImportedModel]:
    """Take the recurrent layers out of a Keras model in memory; layers that feed each other whole sequences are joined.

    The numbers are copied; later training does not change them.

    model: a Sequential or functional model of Keras 2 or 3, built. It is asked for `get_config()` and its layers for
        `get_weights()`.
    name: the name of the model, or the beginning of the names of several models; None: the model's own.

    `InputError` if there is no recurrent layer, or names every layer that cannot be simulated.

    >>> import lstmsim
    >>> from types import SimpleNamespace
    >>> config = {"layers": [{"class_name": "SimpleRNN", "config": {"name": "a", "units": 2}}]}
    >>> layer = SimpleNamespace(name="a", get_weights=lambda: [np.ones((3, 2)), np.ones((2, 2)), np.ones(2)])
    >>> stand_in = SimpleNamespace(name="speech", get_config=lambda: config, layers=[layer])
    >>> lstmsim.from_keras(stand_in)[0].model.layers[0].cell.name
    'rnn'
    """
    given = None if isinstance(model, type) else getattr(model, "get_config", None)
    if not callable(given) or not hasattr(model, "layers"):
        kind = f"the class {model.__name__}" if isinstance(model, type) else f"a value of type {type(model).__name__}"
        raise InputError(Mistake("from_keras", f"expected a Keras model (with get_config and layers), got {kind}"))
    title = name if name is not None else str(getattr(model, "name", "network"))
    try:
        # the configuration as a file would have it: arrays become lists, objects their names
        config = json.loads(json.dumps(given(), default=_word, skipkeys=True))
        if not isinstance(config, dict) or not isinstance(config.get("layers"), list):
            raise InputError("does not say which layers it has: only Sequential and functional models do")
        whole = {"class_name": _kind(model), "config": config}
        layers = keras_layers(whole)
        return keras_models(
            parts_of(layers, lambda layer, side: _variables(model, layer, side)), title, True, kinds=keras_kinds(whole)
        )
    except InputError as error:
        raise placed(error, title) from None


def _kind(model: Any) -> str:
    """Sequential for models of that class and of its subclasses; all other models say how their layers are joined."""
    return "Sequential" if any(each.__name__ == "Sequential" for each in type(model).__mro__) else "Functional"


def _word(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return getattr(value, "__name__", None) or type(value).__name__


def _variables(model: Any, layer: KerasLayer, side: str) -> dict[str, Stored]:
    """A layer's arrays, in the order of Keras: kernel, recurrent kernel, bias; forward before backward."""
    own = model
    for name in layer.names:
        own = next((each for each in getattr(own, "layers", ()) if getattr(each, "name", None) == name), None)
    if layer.among is not None and own is not None:
        own = own.cell.cells[layer.among[0]]
    arrays = [np.asarray(each) for each in own.get_weights()] if own is not None else []
    count = 3 if layer.use_bias else 2
    if len(arrays) != count * (2 if side else 1):
        text = f"has {len(arrays)} arrays of weights, expected {count * (2 if side else 1)}: build the model first"
        raise InputError(text)
    first = count if side == "backward" else 0
    names = ("kernel", "recurrent_kernel", "bias")
    return {f"{side}{'.' * bool(side)}{names[number]}": _stored(arrays[first + number]) for number in range(count)}


def _stored(array: Any) -> Stored:
    kind = f"F{8 * array.itemsize}" if array.dtype.kind == "f" else str(array.dtype)
    return Stored(kind, tuple(array.shape), lambda: single_or_double(array))
