"""How the layers of a Keras model are connected, by its configuration: which layer reads which, and through what."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lstmsim.base.errors import InputError
from lstmsim.base.wording import show
from lstmsim.importers.weights.keras_calls import Call, Output, calls_of, is_layer, layer_name
from lstmsim.importers.weights.keras_upstream import Upstream, upstream_of

__all__ = ["Placed", "placed_layers"]

MAX_LAYERS = 10_000
MAX_DEPTH = 20
_CONTAINERS = ("Sequential", "Functional", "Model")
#: Layers that end the search backwards from a layer to its sources.
_RECURRENT = ("LSTM", "GRU", "SimpleRNN", "Bidirectional")
#: Layers that hand on the sequence unchanged; `_masks` tells which of them mask steps.
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
class Placed:
    """A layer's entry and its place in the model.

    entry: class and configuration.
    path: where its weights are in a Keras 3 file.
    names: the models around it, outermost first, and its own name.
    below: path of the layer whose output it reads, if it is the only reader; else empty.
    calls: its calls in its model.
    masks: the layers of its model that mask steps.
    kinds: the classes of its model's layers by name.
    again: the models around it that are called more than once, with the number of calls.
    upstream: what is behind its frames.
    """

    entry: Mapping[str, Any]
    path: str
    names: tuple[str, ...]
    below: str = ""
    calls: tuple[Call, ...] = ()
    masks: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    again: tuple[tuple[str, int], ...] = ()
    upstream: Upstream = field(default_factory=Upstream)


@dataclass(frozen=True)
class _Around:
    """The models around a layer: the first part of the path of its weights, their names, the models that are called
    more than once, and what is behind the frames of the innermost model."""

    path: str = ""
    names: tuple[str, ...] = ()
    again: tuple[tuple[str, int], ...] = ()
    upstream: Upstream = field(default_factory=Upstream)


def placed_layers(model: Mapping[str, Any]) -> Iterator[Placed]:
    """Go through every layer of a model and of the models in it; `InputError` if the configuration is damaged."""
    yield from _placed(model, _Around())


def _placed(model: Mapping[str, Any], around: _Around) -> Iterator[Placed]:
    names = around.names
    if len(names) > MAX_DEPTH:
        raise InputError(f"its configuration nests models more than {MAX_DEPTH} deep")
    entries = [_with_dict(each) for each in _entries(model)]
    paths = _paths(entries, around.path)
    calls = calls_of(model, entries)
    below = _below(entries, calls)
    masks = tuple(layer_name(entry) for entry in entries if _masks(entry))
    kinds = {layer_name(entry): str(entry["class_name"]) for entry in entries}
    behind = _behind(entries, calls, around.upstream)
    for entry in entries:
        name = layer_name(entry)
        own, times = paths[name], calls.get(name, ())
        if _is_model(entry):
            again = (*around.again, *([(name, len(times))] if len(times) > 1 else []))
            yield from _placed(entry, _Around(f"{own}/", (*names, name), again, behind(name)))
        else:
            lower = paths.get(below.get(name, ""), "")
            upstream = behind(name) if _is_recurrent(entry) else Upstream()
            every = tuple(times)
            yield Placed(entry, own, (*names, name), lower, every, masks, kinds, around.again, upstream)


def _is_model(entry: Mapping[str, Any]) -> bool:
    return entry["class_name"] in _CONTAINERS and isinstance(entry["config"].get("layers"), list)


def _is_recurrent(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is a recurrent layer, or a model with a recurrent layer in it."""
    waiting, looked = [entry], 0
    while waiting and looked < MAX_LAYERS:
        each, looked = waiting.pop(), looked + 1
        if each["class_name"] in _RECURRENT:
            return True
        if _is_model(each):
            inner = [_with_dict(layer) for layer in each["config"]["layers"]]
            waiting += [layer for layer in inner if is_layer(layer)]
    return False


def _behind(
    entries: list[dict[str, Any]], calls: Mapping[str, list[Call]], around: Upstream
) -> Callable[[str], Upstream]:
    """What is behind the frames of a layer of a model, by the layer's name."""
    frames: dict[str, list[str]] = {}
    for name, own in calls.items():
        states = {each for call in own for each in call.states if isinstance(each, Output)}
        frames[name] = [each.layer for call in own for each in call.reads if each not in states]
    readers = Counter(source for sources in frames.values() for source in sources)
    shared = {name for name, count in readers.items() if count > 1}
    origins, changing = {}, {}
    for entry in entries:
        name, inner = layer_name(entry), _is_model(entry)
        if _is_recurrent(entry):
            origins[name] = f"model {show(name)}" if inner else show(name)
        elif not _passes(entry):
            changing[name] = f"{show(entry['class_name'])[1:-1]} {show(name)}"
    return lambda name: upstream_of(name, frames, origins, changing, shared, around)


def _entries(model: Mapping[str, Any]) -> list[Any]:
    config = model.get("config")
    # The configuration of the oldest Sequential models is the list of layers itself.
    entries = config.get("layers") if isinstance(config, dict) else config
    known = isinstance(entries, list) and all(is_layer(_with_dict(each)) for each in entries)
    if not known or not isinstance(entries, list) or len(entries) > MAX_LAYERS:
        raise InputError(f"its configuration does not list at most {MAX_LAYERS} layers of a model")
    return entries


def _with_dict(entry: Any) -> Any:
    """The entry with its configuration as a mapping; that of an old inner Sequential model is a list."""
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


def _below(entries: list[dict[str, Any]], calls: Mapping[str, list[Call]]) -> dict[str, str]:
    """Layer -> the layer whose output it reads, through layers that hand it on; only if no other layer reads it."""
    by_name = {layer_name(entry): entry for entry in entries}
    readers = Counter((each.layer, each.index) for own in calls.values() for call in own for each in call.reads)
    sources = {}
    for name in by_name:
        source = _source(calls, name)
        for _ in range(100):
            if not source or readers[source, 0] != 1 or not _passes(by_name.get(source, _NOTHING)):
                break
            source = _source(calls, source)
        if source and readers[source, 0] == 1 and len(calls.get(source, [])) <= 1:
            sources[name] = source
    return sources


_NOTHING: Mapping[str, Any] = {"class_name": "", "config": {}}


def _source(calls: Mapping[str, list[Call]], name: str) -> str:
    """The layer whose first output a layer reads at its only call, besides states; empty if there is none."""
    own = calls.get(name, [])
    if len(own) != 1:
        return ""
    states = [each for each in own[0].states if isinstance(each, Output)]
    reads = [each for each in own[0].reads if each not in states]
    return reads[0].layer if len(reads) == 1 and reads[0].index == reads[0].call == 0 else ""
