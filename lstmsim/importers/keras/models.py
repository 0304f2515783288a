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
from lstmsim.importers.keras.graph import Constant, Output, Placed, Upstream, is_layer, placed_layers
from lstmsim.importers.tensors import Stacked, Stored, floats, single_or_double, unstacked
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Floats, Network, PassWeights

_RECURRENT = ("LSTM", "GRU", "SimpleRNN", "Bidirectional", "RNN")
#: The states that Keras gives, in its order.
_STATES = {"lstm": ("h", "c")}
#: By class: the activations in a layer's configuration, and the cell that has these activations.
_CELLS: Mapping[str, Mapping[tuple[str, ...], str]] = {
    "LSTM": {("tanh", "sigmoid"): "lstm"},
    "GRU": {("tanh", "sigmoid"): "gru"},
    "SimpleRNN": {("tanh",): "rnn", ("relu",): "rnn-relu"},
}
_KEYS = ("activation", "recurrent_activation")
_DEFAULTS = {"activation": "tanh", "recurrent_activation": "sigmoid"}
_OTHERS = ("RNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "StackedRNNCells", "CuDNNLSTM", "CuDNNGRU")


@dataclass(frozen=True)
class _Beginning:
    """The states of a layer before its first step: fixed ones as (direction, state, values), and words on all others.

    `origin` is the layer whose last states, all and in the same order, are these states.
    """

    fixed: tuple[tuple[int, str, tuple[float, ...]], ...] = ()
    states_from: str = ""
    notes: tuple[str, ...] = ()
    origin: str = ""


def _beginning_of(placed: Placed, cell: str, units: int, directions: int) -> _Beginning | str:
    given = [call for call in placed.calls if call.states]
    if not given:
        return _Beginning()
    if len(placed.calls) > 1:
        return _Beginning(
            states_from=f"what each of the {len(placed.calls)} calls of layer {placed.names[-1]!r} gives it"
        )
    names = [(side, name) for side in range(directions) for name in _STATES.get(cell, ("h",))]
    states = given[0].states
    if len(states) != len(names):
        return f"begins with {len(states)} states, expected {len(names)}"
    fixed, words, inputs = [], [], []
    for (side, name), state in zip(names, states, strict=True):
        if isinstance(state, Constant):
            values = _values(state, units)
            if isinstance(values, str):
                return f"initial_state {values}"
            fixed.append((side, name, values))
        elif isinstance(state, Output) and placed.kinds.get(state.layer) == "InputLayer" and len(placed.names) == 1:
            inputs.append(state.layer)
        else:
            words.append(_words(state, placed))
    some = ", ".join(show(each) for each in dict.fromkeys(inputs))
    note = f"the states of layer {placed.names[-1]!r} are inputs of the model ({some}); here they begin at 0"
    notes = (note,) if inputs else ()
    # the layer whose outputs after the first are the states, in the same order; empty if there is none
    first = min((each.layer for each in states if isinstance(each, Output)), default="")
    expected = [Output(first, 0, 1 + place) for place in range(len(states))]
    whole = list(states) == expected and placed.kinds.get(first) in _RECURRENT and len(placed.names) == 1
    return _Beginning(tuple(fixed), " and ".join(dict.fromkeys(words)), notes, (first if whole else ""))


def _words(state: Output | Constant | None, placed: Placed) -> str:
    """Where a state comes from, for a user who has to give it."""
    if not isinstance(state, Output):
        return f"an initial_state of layer {placed.names[-1]!r} that cannot be read"
    kind = placed.kinds.get(state.layer, "")
    if kind == "InputLayer":
        return f"the input {state.layer!r} of model {placed.names[-2]!r}"
    return f"the last states of layer {state.layer!r}" if kind in _RECURRENT else f"the output of layer {state.layer!r}"


def _values(state: Constant, units: int) -> tuple[float, ...] | str:
    """The numbers of a constant, one for each unit, or what is wrong with the constant."""
    try:
        array = np.array(state.value, np.float64)
    except (ValueError, TypeError, OverflowError):
        return "holds something else than numbers"
    rows = array.reshape(1, -1) if array.ndim == 1 else array
    if rows.ndim != 2 or rows.shape[1] != units or not len(rows):
        return f"has shape {list(array.shape)[:4]}, expected [{units}] or [1, {units}]"
    if not np.isfinite(rows).all():
        return "holds a number that is not finite"
    if (rows != rows[0]).any():
        return "has other numbers for each sequence of a batch; one sequence is simulated"
    return tuple(map(float, rows[0]))


@dataclass(frozen=True)
class KerasLayer:
    """A recurrent layer as a Keras model describes it.

    `path` is where a Keras 3 file has its weights, `below` the path of the recurrent layer that it reads (or empty).
    `names` are the models around it, outermost first, and its name. `sequences` tells whether it hands on every step,
    `merge` how it joins its two directions (empty for one), `calls` how often one run of the whole model calls it,
    `upstream` what feeds its frames.
    """

    name: str
    path: str
    cell: str
    hidden: int
    use_bias: bool
    sequences: bool
    merge: str = ""
    below: str = ""
    names: tuple[str, ...] = ()
    reverse: bool = False
    beginning: _Beginning = field(default_factory=_Beginning)
    notes: tuple[str, ...] = ()
    calls: int = 1
    upstream: Upstream = field(default_factory=Upstream)


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
        layer = _layer(each)
        if isinstance(layer, KerasLayer):
            layers.append(layer)
        elif layer:
            mistakes.append(Mistake(f"layer {show(each.names[-1])}", layer))
    refuse(mistakes)
    if not layers:
        some = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(5))
        raise InputError(f"holds no layer LSTM, GRU or SimpleRNN; it has {some or 'no layers'}")
    return layers


def keras_kinds(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List the class and path of every layer of a model's configuration, in order."""
    return [(str(each.entry["class_name"]), each.path) for each in placed_layers(config)]


def _layer(placed: Placed) -> KerasLayer | str:
    """The layer that an entry describes, why it cannot be one, or nothing if it is not recurrent."""
    entry = placed.entry
    inner, merge = entry, ""
    if entry["class_name"] == "Bidirectional":
        inner = entry["config"].get("layer")
        if not is_layer(inner):
            return "is Bidirectional around something that is no layer"
        merge = str(entry["config"].get("merge_mode"))
        wrong = _wrong_directions(entry["config"], inner)
        if wrong:
            return wrong
    kind, own = inner["class_name"], inner["config"]
    if kind not in _CELLS:
        return _not_read(inner)
    if not str(inner.get("module", "keras")).startswith(("keras", "tf_keras")):
        return f"belongs to {show(str(inner['module']))}, only Keras's own layers can be read"
    cell, wrong = _cell(kind, own)
    units = own.get("units")
    if type(units) is not int or not 1 <= units <= MAX_SIZE:
        wrong = wrong or f"has units {show(units)}, must be between 1 and {MAX_SIZE}"
    if wrong:
        return wrong
    beginning = _beginning_of(placed, cell, units, 2 if merge else 1)
    if isinstance(beginning, str):
        return beginning
    bias, sequences = bool(own.get("use_bias", True)), bool(own.get("return_sequences"))
    reverse = bool(own.get("go_backwards")) and not merge
    notes = tuple(_notes(placed, own, merge, reverse, sequences))
    calls = prod(count for _, count in placed.again) * max(1, len(placed.calls))
    layer = KerasLayer(placed.names[-1], placed.path, cell, units, bias, sequences, merge, placed.below, placed.names)
    notes += beginning.notes
    return replace(layer, reverse=reverse, beginning=beginning, notes=notes, calls=calls, upstream=placed.upstream)


def _not_read(entry: Mapping[str, Any]) -> str:
    """Why an entry of another class cannot be read; empty if nothing in the entry is recurrent."""
    if entry["class_name"] in _OTHERS:
        return f"is {show(entry['class_name'])}: LSTM, GRU and SimpleRNN can be read"
    wrapped = entry["config"].get("layer")
    if is_layer(wrapped) and wrapped["class_name"] in (*_CELLS, *_OTHERS, "Bidirectional"):
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
    config = entry["config"]
    keys = ("units", "use_bias", "activation", "recurrent_activation", "reset_after", "return_sequences")
    return [entry["class_name"], *(config.get(key) for key in keys)]


def _cell(kind: str, config: Mapping[str, Any]) -> tuple[str, str]:
    cells = _CELLS[kind]
    keys = _KEYS[: len(next(iter(cells)))]
    own = [config.get(key, _DEFAULTS[key]) for key in keys]
    if not all(isinstance(each, str) for each in own) or tuple(own) not in cells:
        for place, key in enumerate(keys):
            wanted = [names[place] for names in cells]
            if own[place] not in wanted:
                are = "is" if len(wanted) == 1 else "are"
                return "", f"has {key} {show(own[place])}: only {listed(wanted, 'and')} {are} simulated"
    cell = cells[tuple(own)]
    if cell == "gru" and not config.get("reset_after", True):
        cell = "gru-lbr0"
    return cell, ""


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
#: The order of the gates in Keras's matrices, in the names that the cells have for their gates.
ORDERS = {"lstm": "ifgo", "gru": "zrn", "gru-lbr0": "zrn", "rnn": "a", "rnn-relu": "a"}
_SIDES = ("forward", "backward")
#: Gives the variables of a layer in one direction ("" for a layer of one direction): kernel, recurrent kernel and bias
#: by their names in the file.
Variables = Callable[[KerasLayer, str], dict[str, Stored]]


def _keras_table(
    kinds: Sequence[tuple[str, str]], layers: Mapping[str, Layer], calls: Mapping[str, int] | None = None
) -> OperatorTable:
    members: dict[tuple[str, str], list[str]] = {}
    for kind, name in kinds:
        outcome = SIMULATED if name in layers else FOLDED if kind in _MOVING else LEFT_OUT
        members.setdefault((kind, outcome), []).append(name)
    groups = []
    for (kind, outcome), names in members.items():
        macs: int | None = 0
        if outcome == SIMULATED:
            macs = sum(layers[name].macs_per_step for name in names)
        elif outcome == LEFT_OUT and kind not in _IDLE:
            macs = None
        reason = f"a Keras file does not say how often {show(kind)[1:-1]} runs" if macs is None else ""
        groups.append(Operators(kind, outcome, len(names), macs, reason))
    more = {name: count - 1 for name, count in (calls or {}).items() if count > 1}
    for kind in dict.fromkeys(kind for kind, name in kinds if name in more):
        names = [name for each, name in kinds if each == kind and name in more]
        macs = sum(more[name] * layers[name].macs_per_step for name in names)
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
    rows = len(ORDERS[layer.cell]) * layer.hidden
    bias = (2, rows) if layer.cell == "gru" else (rows,)
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
    own = Layer(cell(layer.cell), layer.hidden, width or 1, bool(layer.merge), reverse=layer.reverse)
    return Part(layer, own, tuple(_pass(layer, [arrays[name] for name in side]) for side in sides), tuple(stored))


def _pass(layer: KerasLayer, arrays: list[Floats]) -> PassWeights:
    kernel, recurrent, *rest = arrays
    bias = rest[0] if rest else None
    own, other = (bias[0], bias[1]) if bias is not None and bias.ndim == 2 else (bias, None)
    parts = Stacked(np.ascontiguousarray(kernel.T), np.ascontiguousarray(recurrent.T), own, other)
    return unstacked(cell(layer.cell), ORDERS[layer.cell], parts)


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
    calls = {part.described.path: part.described.calls for part in parts}
    table = _keras_table(kinds, {part.described.path: part.layer for part in parts}, calls)
    return [replace(each, operators=table) for each in models]


def _chains(lower: Part, upper: Part) -> bool:
    """Whether the upper layer reads step by step what the lower layer gives here."""
    whole = lower.described.sequences and lower.described.merge in ("", "concat") and not lower.described.reverse
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
