"""The recurrent layers that a Keras model's configuration describes, and the states with which they begin.

The configuration is parsed as JSON and never run. Sources: Keras's serialisation format and its layers (keras.io).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.importers.keras.graph import Constant, Output, Placed, Upstream, is_layer, placed_layers

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
    """The states of a layer before its first step: those that the configuration fixes, as (direction, state, values).

    `states_from` says in words where others come from at run time; `origin` is the layer whose last states, all and in
    the same order, are these states; both may be empty.
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
    return _Beginning(tuple(fixed), " and ".join(dict.fromkeys(words)), notes, _origin(states, placed))


def _origin(states: Sequence[Output | Constant | None], placed: Placed) -> str:
    """The layer whose outputs after the first are the states, in the same order; empty if there is none."""
    first = min((each.layer for each in states if isinstance(each, Output)), default="")
    expected = [Output(first, 0, 1 + place) for place in range(len(states))]
    whole = list(states) == expected and placed.kinds.get(first) in _RECURRENT and len(placed.names) == 1
    return first if whole else ""


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
    for placed in placed_layers(config):
        kinds[show(placed.entry["class_name"])] += 1
        layer = _layer(placed)
        if isinstance(layer, KerasLayer):
            layers.append(layer)
        elif layer:
            mistakes.append(Mistake(f"layer {show(placed.names[-1])}", layer))
    if mistakes:
        raise InputError(mistakes)
    if not layers:
        some = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(5))
        raise InputError(f"holds no layer LSTM, GRU or SimpleRNN; it has {some or 'no layers'}")
    return layers


def keras_kinds(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List the class and path of every layer of a model's configuration, in order."""
    return [(str(placed.entry["class_name"]), placed.path) for placed in placed_layers(config)]


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
    path, below, names = placed.path, placed.below, placed.names
    notes += beginning.notes
    calls = prod(count for _, count in placed.again) * max(1, len(placed.calls))
    return KerasLayer(
        names[-1],
        path,
        cell,
        units,
        bias,
        sequences,
        merge,
        below,
        names,
        reverse,
        beginning,
        notes,
        calls,
        placed.upstream,
    )


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
        notes.append(f"{own} joins its directions by {merge!r}; here they stand side by side")
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
