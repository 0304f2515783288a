"""How the layers of a Keras model are connected, by its configuration: which layer reads which, and from which states.

Two notations: Keras 3 calls have `args` and `kwargs` with `keras_history` [layer, call, output]; Keras 2 lists
[layer, call, output, kwargs]. Output 0 of a recurrent layer is its sequence or last h, those after it are its states.
Sources: keras/src/models/functional.py and keras/src/saving of Keras 3, keras/engine/functional.py of Keras 2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from lstmsim.errors import InputError

__all__ = ["Call", "Constant", "Output", "Placed", "is_layer", "layer_name", "placed_layers"]

MAX_LAYERS = 10_000
MAX_DEPTH = 20
_CONTAINERS = ("Sequential", "Functional", "Model")
#: Layers that hand on the sequence as it is; a mask that they put on it is told apart below.
_PASSING = (
    "InputLayer",
    "Dropout",
    "SpatialDropout1D",
    "AlphaDropout",
    "Masking",
    "GaussianNoise",
    "GaussianDropout",
    "ActivityRegularization",
    "Identity",
)


@dataclass(frozen=True)
class Output:
    """An output of another layer: its name, which of its calls, which of its outputs."""

    layer: str
    call: int
    index: int


@dataclass(frozen=True)
class Constant:
    """Numbers that stand in the configuration itself: nested lists."""

    value: Any


@dataclass(frozen=True)
class Call:
    """One call of a layer: the tensors that it reads, the states that it begins with (None: not readable), and whether
    it is given a mask of steps."""

    reads: tuple[Output, ...]
    states: tuple[Output | Constant | None, ...] = ()
    masked: bool = False


@dataclass(frozen=True)
class Placed:
    """A layer's entry and where it is: `path` of its weights in a Keras 3 file, `names` of the models around it and
    its own, `below` the path of the layer whose whole output it reads and nothing else does, `masks` the layers of its
    model that mask steps, `kinds` the classes of that model's layers by name."""

    entry: Mapping[str, Any]
    path: str
    names: tuple[str, ...]
    below: str = ""
    calls: tuple[Call, ...] = ()
    masks: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)


def is_layer(entry: Any) -> bool:
    """Whether it is a layer's entry: a class and a configuration."""
    known = isinstance(entry, dict) and isinstance(entry.get("class_name"), str)
    return known and isinstance(entry.get("config"), dict)


def layer_name(entry: Mapping[str, Any]) -> str:
    """A layer's own name.

    >>> layer_name({"class_name": "LSTM", "config": {"name": "encoder"}})
    'encoder'
    """
    return str(entry["config"].get("name", entry.get("name", entry["class_name"])))[:200]


def placed_layers(model: Mapping[str, Any], path: str = "", names: tuple[str, ...] = ()) -> Iterator[Placed]:
    """Every layer of a model and of the models in it."""
    if len(names) > MAX_DEPTH:
        raise InputError(f"its configuration nests models more than {MAX_DEPTH} deep")
    entries = [_with_dict(each) for each in _entries(model)]
    paths = _paths(entries, path)
    calls = _calls(model, entries)
    below = _below(entries, calls)
    masks = tuple(layer_name(entry) for entry in entries if _masks(entry))
    kinds = {layer_name(entry): str(entry["class_name"]) for entry in entries}
    for entry in entries:
        name = layer_name(entry)
        own = paths[name]
        if entry["class_name"] in _CONTAINERS and isinstance(entry["config"].get("layers"), list):
            yield from placed_layers(entry, f"{own}/", (*names, name))
        else:
            lower = paths.get(below.get(name, ""), "")
            yield Placed(entry, own, (*names, name), lower, tuple(calls.get(name, ())), masks, kinds)


def _entries(model: Mapping[str, Any]) -> list[Any]:
    config = model.get("config")
    # The oldest Sequential models have the list itself.
    entries = config.get("layers") if isinstance(config, dict) else config
    known = isinstance(entries, list) and all(is_layer(_with_dict(each)) for each in entries)
    if not known or not isinstance(entries, list) or len(entries) > MAX_LAYERS:
        raise InputError(f"its configuration does not list at most {MAX_LAYERS} layers of a model")
    return entries


def _with_dict(entry: Any) -> Any:
    """The entry, its configuration as a mapping also where an old inner Sequential model is a list."""
    if isinstance(entry, dict) and isinstance(entry.get("config"), list):
        return {**entry, "config": {"name": entry.get("name", entry.get("class_name")), "layers": entry["config"]}}
    return entry


def _paths(entries: list[dict[str, Any]], stem: str) -> dict[str, str]:
    """Where Keras 3 puts each layer's weights: by the layer's class and a count, not by its name."""
    counts: Counter[str] = Counter()
    paths: dict[str, str] = {}
    for entry in entries:
        slug = _snake(entry["class_name"])
        paths.setdefault(layer_name(entry), f"{stem}layers/{slug}{f'_{counts[slug]}' if counts[slug] else ''}")
        counts[slug] += 1
    return paths


def _snake(name: str) -> str:
    """A class's name as Keras writes it in paths.

    >>> _snake("SimpleRNN"), _snake("LSTM"), _snake("TimeDistributed")
    ('simple_rnn', 'lstm', 'time_distributed')
    """
    name = re.sub(r"\W+", "", name[:200])
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)).lower()


def _masks(entry: Mapping[str, Any]) -> bool:
    return entry["class_name"] == "Masking" or bool(entry["config"].get("mask_zero"))


def _passes(entry: Mapping[str, Any]) -> bool:
    linear = entry["class_name"] == "Activation" and entry["config"].get("activation") == "linear"
    return linear or entry["class_name"] in _PASSING


def _calls(model: Mapping[str, Any], entries: list[dict[str, Any]]) -> dict[str, list[Call]]:
    """The calls of every layer in a model."""
    if model.get("class_name") == "Sequential" or not isinstance(model.get("config"), dict):
        pairs = pairwise(entries)
        return {layer_name(entry): [Call((Output(layer_name(before), 0, 0),))] for before, entry in pairs}
    found = {}
    for entry in entries:
        nodes = entry.get("inbound_nodes")
        found[layer_name(entry)] = [_call(node) for node in nodes] if isinstance(nodes, list) else []
    return found


def _call(node: Any) -> Call:
    if isinstance(node, dict):
        args, kwargs = node.get("args"), node.get("kwargs")
        args = args if isinstance(args, list) else []
        kwargs = kwargs if isinstance(kwargs, dict) else {}
    else:
        # Keras 2: the tensors of the first argument in a row, with the keyword arguments behind the last of them.
        rows = node if isinstance(node, list) else []
        rows = [rows] if rows and isinstance(rows[0], str) else rows
        kwargs = {}
        for row in rows:
            if isinstance(row, list) and len(row) > 3 and isinstance(row[3], dict):
                kwargs |= row[3]
        args = [rows]
    first = _tensors(args[0]) if args else []
    given = [*first[1:], *(each for arg in args[1:2] for each in _tensors(arg)), *_states(kwargs)]
    every = [*first, *(each for arg in (*args[1:], kwargs) for each in _tensors(arg))]
    reads = [each for each in every if isinstance(each, Output)]
    return Call(tuple(reads), tuple(given), kwargs.get("mask") is not None)


def _states(kwargs: Mapping[str, Any]) -> list[Output | Constant | None]:
    value = kwargs.get("initial_state")
    if value is None:
        return []
    if isinstance(value, list) and value and not isinstance(_first_leaf(value), str | dict) and _depth(value) > 2:
        # Numbers of several states [batch, units], as Keras 2 has them.
        return [Constant(each) for each in value]
    return _tensors(value) or [None]


def _depth(value: Any) -> int:
    depth = 0
    while isinstance(value, list):
        value, depth = value[0] if value else None, depth + 1
    return depth


def _tensors(value: Any) -> list[Output | Constant | None]:
    """The tensors in a value, in order, whichever notation they have."""
    found: list[Output | Constant | None] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            history = each.get("keras_history")
            config = each.get("config")
            if isinstance(history, list) and _is_reference(history):
                found.append(Output(str(history[0])[:200], history[1], history[2]))
            elif each.get("class_name") in ("__tensor__", "__numpy__") and isinstance(config, dict):
                found.append(Constant(config.get("value")))
            else:
                waiting += reversed(list(each.values()))
        elif _is_reference(each):
            name, call, index = each[:3]
            found.append(Constant(index) if name == "_CONSTANT_VALUE" else Output(name[:200], call, index))
        elif isinstance(each, list):
            if isinstance(_first_leaf(each), int | float):
                found.append(Constant(each))
            else:
                waiting += reversed(each)
    return found


def _first_leaf(value: Any) -> Any:
    while isinstance(value, list) and value:
        value = value[0]
    return value


def _is_reference(each: Any) -> bool:
    """[layer, call, output] with or without keyword arguments behind it."""
    known = isinstance(each, list) and len(each) in (3, 4) and isinstance(each[0], str) and type(each[1]) is int
    return known and (each[0] == "_CONSTANT_VALUE" or type(each[2]) is int)


def _below(entries: list[dict[str, Any]], calls: Mapping[str, list[Call]]) -> dict[str, str]:
    """Layer -> the layer whose output it reads, through layers that hand it on; only where nothing else reads it."""
    by_name = {layer_name(entry): entry for entry in entries}
    readers = Counter((each.layer, each.index) for own in calls.values() for call in own for each in call.reads)
    found = {}
    for name in by_name:
        source = _source(calls, name)
        for _ in range(100):
            if not source or readers[source, 0] != 1 or not _passes(by_name.get(source, _NOTHING)):
                break
            source = _source(calls, source)
        if source and readers[source, 0] == 1 and len(calls.get(source, [])) <= 1:
            found[name] = source
    return found


_NOTHING: Mapping[str, Any] = {"class_name": "", "config": {}}


def _source(calls: Mapping[str, list[Call]], name: str) -> str:
    """The layer whose first output is what a layer reads at its only call, besides states."""
    own = calls.get(name, [])
    if len(own) != 1:
        return ""
    states = [each for each in own[0].states if isinstance(each, Output)]
    reads = [each for each in own[0].reads if each not in states]
    return reads[0].layer if len(reads) == 1 and reads[0].index == reads[0].call == 0 else ""
