"""The recurrent layers that a Keras 3 model's config.json describes: parsed as JSON, nothing in it is ever run.

Sources: Keras's serialisation format and its layers LSTM, GRU, SimpleRNN, Bidirectional (keras.io).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.schema_types import MAX_SIZE
from lstmsim.formats.wording import show

__all__ = ["KerasLayer", "keras_layers"]

MAX_LAYERS = 10_000
MAX_DEPTH = 20
_ACTIVATIONS = {
    "LSTM": {"activation": "tanh", "recurrent_activation": "sigmoid"},
    "GRU": {"activation": "tanh", "recurrent_activation": "sigmoid"},
    "SimpleRNN": {"activation": "tanh"},
}
_CELLS = {"LSTM": "lstm", "GRU": "gru", "SimpleRNN": "rnn"}
_OTHERS = ("RNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "StackedRNNCells")
_CONTAINERS = ("Sequential", "Functional", "Model")
#: Layers that hand on the sequence as it is.
_PASSING = ("InputLayer", "Dropout", "SpatialDropout1D", "Masking", "GaussianNoise", "GaussianDropout", "Identity")


@dataclass(frozen=True)
class KerasLayer:
    """A recurrent layer: `path` of its weights in the HDF5 file, `below` the path of the layer whose output it reads,
    if that is a recurrent one. `merge` is how a bidirectional layer joins its directions, empty for others."""

    name: str
    path: str
    cell: str
    hidden: int
    use_bias: bool
    sequences: bool
    merge: str = ""
    below: str = ""


def keras_layers(text: bytes) -> list[KerasLayer]:
    """The recurrent layers of a model's configuration, in order; `InputError` for those that no cell here is.

    >>> keras_layers(b"[]")
    Traceback (most recent call last):
    lstmsim.errors.InputError: its config.json describes no Keras model
    """
    try:
        config = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InputError("its config.json is no JSON, or is damaged") from None
    if not isinstance(config, dict) or not isinstance(config.get("config"), dict):
        raise InputError("its config.json describes no Keras model")
    found: list[KerasLayer] = []
    mistakes: list[Mistake] = []
    for entry, path, below in _walked(config, "", 0):
        layer = _layer(entry, path, below)
        if isinstance(layer, KerasLayer):
            found.append(layer)
        elif layer:
            mistakes.append(Mistake(f"layer {show(_name(entry))}", layer))
    if mistakes:
        raise InputError(mistakes)
    if not found:
        kinds = Counter(show(entry.get("class_name")) for entry, _, _ in _walked(config, "", 0))
        some = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(5))
        raise InputError(f"holds no layer LSTM, GRU or SimpleRNN; it has {some or 'no layers'}")
    return found


def _walked(model: Mapping[str, Any], path: str, depth: int) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Every layer of a model and the models in it, with the path of its weights and that of the layer it reads."""
    if depth > MAX_DEPTH:
        raise InputError(f"its config.json nests models more than {MAX_DEPTH} deep")
    entries = model["config"].get("layers")
    if not isinstance(entries, list) or not all(_is_layer(each) for each in entries) or len(entries) > MAX_LAYERS:
        raise InputError(f"its config.json does not list at most {MAX_LAYERS} layers of a model")
    counts: Counter[str] = Counter()
    paths: dict[str, str] = {}
    for entry in entries:
        # Keras calls the weights by the layer's class and a count, not by the layer's name.
        slug = _snake(entry["class_name"])
        paths.setdefault(_name(entry), f"{path}layers/{slug}{f'_{counts[slug]}' if counts[slug] else ''}")
        counts[slug] += 1
    below = _read_layers(model, entries)
    for entry in entries:
        own = paths[_name(entry)]
        if entry["class_name"] in _CONTAINERS and isinstance(entry["config"].get("layers"), list):
            yield from _walked(entry, f"{own}/", depth + 1)
        else:
            yield entry, own, paths.get(below.get(_name(entry), ""), "")


def _is_layer(entry: Any) -> bool:
    known = isinstance(entry, dict) and isinstance(entry.get("class_name"), str)
    return known and isinstance(entry.get("config"), dict)


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry["config"].get("name", entry["class_name"]))[:200]


def _snake(name: str) -> str:
    """A class's name as Keras writes it in paths.

    >>> _snake("SimpleRNN"), _snake("LSTM"), _snake("TimeDistributed")
    ('simple_rnn', 'lstm', 'time_distributed')
    """
    name = re.sub(r"\W+", "", name[:200])
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)).lower()


def _read_layers(model: Mapping[str, Any], entries: list[dict[str, Any]]) -> dict[str, str]:
    """Layer -> the layer whose output it reads, through layers that hand it on; only where nothing else reads it."""
    if model.get("class_name") == "Sequential":
        sources = {_name(entry): [_name(before)] for before, entry in pairwise(entries)}
    else:
        sources = {_name(entry): _inbound(entry) for entry in entries}
    kinds = {_name(entry): entry["class_name"] for entry in entries}
    readers = Counter(source for each in sources.values() for source in each)
    found = {}
    for name, each in sources.items():
        source = each
        for _ in range(10):
            if len(source) != 1 or readers[source[0]] != 1 or kinds.get(source[0]) not in _PASSING:
                break
            source = sources.get(source[0], [])
        if len(source) == 1 and readers[source[0]] == 1:
            found[name] = source[0]
    return found


def _inbound(entry: Mapping[str, Any]) -> list[str]:
    """Names of the layers whose outputs a layer is called with."""
    found, waiting = [], [entry.get("inbound_nodes")]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            history = each.get("keras_history")
            if isinstance(history, list) and history:
                found.append(str(history[0])[:200])
            else:
                waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return found


def _layer(entry: Mapping[str, Any], path: str, below: str) -> KerasLayer | str:
    """The layer that an entry describes, why it cannot be one, or nothing if it is not recurrent."""
    kind, config = entry["class_name"], entry["config"]
    inner, merge = entry, ""
    if kind == "Bidirectional":
        inner = config.get("layer")
        if not _is_layer(inner):
            return "is Bidirectional around something that is no layer"
        backward = config.get("backward_layer")
        merge = str(config.get("merge_mode"))
        if _is_layer(backward) and _settings(backward) != _settings(inner):
            return "has two directions that differ, expected the same layer in both"
    if inner["class_name"] not in _CELLS:
        return f"is {show(inner['class_name'])}: LSTM, GRU and SimpleRNN can be read" if _other(inner) else ""
    if not str(inner.get("module", "keras")).startswith("keras"):
        return f"belongs to {show(str(inner['module']))}, only Keras's own layers can be read"
    own = inner["config"]
    wrong = _wrong(inner["class_name"], own, bool(merge))
    cell = _CELLS[inner["class_name"]]
    if cell == "gru" and not own.get("reset_after", True):
        cell = "gru-lbr0"
    bias, sequences = bool(own.get("use_bias", True)), bool(own.get("return_sequences"))
    return wrong or KerasLayer(_name(entry), path, cell, own["units"], bias, sequences, merge, below)


def _other(entry: Mapping[str, Any]) -> bool:
    return entry["class_name"] in _OTHERS


def _settings(entry: Mapping[str, Any]) -> list[Any]:
    config = entry["config"]
    keys = ("units", "use_bias", "activation", "recurrent_activation", "reset_after", "return_sequences")
    return [entry["class_name"], *(config.get(key) for key in keys)]


def _wrong(kind: str, config: Mapping[str, Any], wrapped: bool) -> str:
    for key, wanted in _ACTIVATIONS[kind].items():
        if config.get(key, wanted) != wanted:
            return f"has {key} {show(config[key])}: only {wanted} is simulated"
    if config.get("go_backwards") and not wrapped:
        return "has go_backwards: frames arrive in forward order; forward and Bidirectional can be simulated"
    units = config.get("units")
    if type(units) is not int or not 1 <= units <= MAX_SIZE:
        return f"has units {show(units)}, must be between 1 and {MAX_SIZE}"
    return ""
