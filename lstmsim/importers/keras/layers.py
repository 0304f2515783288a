"""Recurrent layers of Keras as a configuration (JSON, never run) describes them: cells, activations, first states."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.wording import listed, show
from lstmsim.importers.activations import DEFAULTS, Activation, with_activations
from lstmsim.importers.keras.graph import Constant, Output, Placed, Upstream, is_layer, layer_name, placed_layers, slugs
from lstmsim.model.cell import Cell
from lstmsim.model.cells import cell

_RECURRENT = ("LSTM", "GRU", "SimpleRNN", "Bidirectional", "RNN")
#: The states that Keras gives, in its order.
_STATES = {"lstm": ("h", "c")}
#: By class: the cell, and the keys of its activations in the order of `activations.USUAL`.
_CELLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "LSTM": ("lstm", ("recurrent_activation", "activation", "activation")),
    "GRU": ("gru", ("recurrent_activation", "activation")),
    "SimpleRNN": ("rnn", ("activation",)),
}
_DEFAULTS = {"activation": "tanh", "recurrent_activation": "sigmoid"}
#: Keras's names of activations. Sources: keras/src/activations of Keras 3, keras/activations.py of Keras 2.
_ACTIVATIONS = {
    each.lower(): Activation(each, DEFAULTS.get(each, ()))
    for each in ("Tanh", "Sigmoid", "Relu", "Elu", "Softsign", "Softplus", "Linear")
}
#: The slope of `hard_sigmoid` in Keras 2, and in Keras 3 (1/6 in single precision).
_HARD = (Activation("HardSigmoid", (0.2, 0.5)), Activation("HardSigmoid", (0.16666667, 0.5)))
_OTHERS = ("ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "StackedRNNCells", "CuDNNLSTM", "CuDNNGRU")


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
    `upstream` what feeds its frames. `cell` is the built-in cell, `activations` what it has in place of the usual ones.
    `inside` is where a Keras 3 file has its cell; `among` its number and name if it is one of several cells of an RNN.
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
    activations: tuple[Activation, ...] = ()
    inside: str = "cell"
    among: tuple[int, str] | None = None

    @property
    def own_cell(self) -> Cell:
        """The cell with its activations."""
        base = cell(self.cell)
        kind = self.cell.partition("-")[0].upper()
        return with_activations(base, kind, self.activations, "Keras") if self.activations else base

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
    wrong = _wrong_directions(entry["config"], inner) if merge else ""
    if len(cells) > 1 and (merge or any(call.states for call in placed.calls)):
        wrong = f"is an RNN of {len(cells)} cells {'in two directions' if merge else 'with an initial_state'}"
        wrong += ": such an RNN can be read with one cell only"
    if wrong:
        return wrong
    layers: list[KerasLayer] = []
    for number, each in enumerate(cells):
        layer = _layer(placed, each, merge)
        if isinstance(layer, str):
            return layer
        layers.append(_among(layer, number, cells, layers[-1].path if layers else layer.below))
    return layers


def _among(layer: KerasLayer, number: int, cells: Sequence[Mapping[str, Any]], below: str) -> KerasLayer:
    """A layer of an RNN of several cells: only the last cell has the path and hands on what the RNN does."""
    if len(cells) == 1:
        return layer
    name = layer_name(cells[number])
    inside = f"cell/cells/{slugs([str(each['class_name']) + 'Cell' for each in cells])[number]}"
    last = number == len(cells) - 1
    path = layer.path if last else f"{layer.path}/{inside}"
    own = replace(layer, name=f"{layer.name}/{name}", path=path, below=below, inside=inside, among=(number, name))
    return replace(own, sequences=own.sequences or not last)


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
    cell, activations, wrong = _cell(entry)
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
    notes = tuple(_notes(placed, own, merge, reverse, sequences)) + beginning.notes
    calls = prod(count for _, count in placed.again) * max(1, len(placed.calls))
    layer = KerasLayer(placed.names[-1], placed.path, cell, units, bias, sequences, merge, placed.below, placed.names)
    layer = replace(layer, reverse=reverse, beginning=beginning, notes=notes, calls=calls, upstream=placed.upstream)
    return replace(layer, activations=activations)


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


def _cell(entry: Mapping[str, Any]) -> tuple[str, tuple[Activation, ...], str]:
    """The built-in cell, its activations, and what is wrong with them."""
    config = entry["config"]
    cell, keys = _CELLS[entry["class_name"]]
    # only Keras 2 writes these keys; layers of before have no module, and a configuration of Keras 3 has a seed
    old = not {"implementation", "time_major"}.isdisjoint(config) or ("module" not in entry and "seed" not in config)
    known = {**_ACTIVATIONS, "hard_sigmoid": _HARD[0 if old else 1]}
    names = {key: config.get(key, _DEFAULTS[key]) for key in keys}
    for key, name in names.items():
        if not isinstance(name, str) or name not in known:
            return "", (), f"has {key} {show(name)}: only {listed(known, 'and')} are simulated"
    # a configuration without the key is older than the key
    if cell == "gru" and not config.get("reset_after", False):
        cell = "gru-lbr0"
    return cell, tuple(known[names[key]] for key in keys), ""


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
