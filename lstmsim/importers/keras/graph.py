"""How the layers of a Keras model are connected, by its configuration: calls, states, and which layer reads which.

Two notations: Keras 3 calls have `args` and `kwargs` with `keras_history` [layer, call, output]; Keras 2 lists
[layer, call, output, kwargs]. Output 0 of a recurrent layer is its sequence or last h; its later outputs are states.
Sources: keras/src/models/functional.py and keras/src/saving of Keras 3, keras/engine/functional.py of Keras 2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from lstmsim.base.errors import InputError
from lstmsim.base.wording import listed, show
from lstmsim.importers.imported import kinds_named
from lstmsim.model.cell import Cell

_SHOWN = 4
#: Most layers that a search backwards visits: a hostile configuration has thousands.
_MOST = 300
MAX_LAYERS = 10_000
MAX_DEPTH = 20
_CONTAINERS = ("Sequential", "Functional", "Model")
#: Layers that end the search backwards from a layer to its sources.
_RECURRENT = ("LSTM", "GRU", "SimpleRNN", "RNN", "Bidirectional")
#: Layers that hand on the sequence unchanged; `_masks` tells which of them mask steps.
_PASSING = kinds_named(
    "InputLayer Dropout SpatialDropout1D AlphaDropout Masking GaussianNoise GaussianDropout ActivityRegularization "
    "Identity"
)
_NOTHING: Mapping[str, Any] = {"class_name": "", "config": {}}


@dataclass(frozen=True)
class Output:
    """Output `index` of call `call` of a layer."""

    layer: str
    call: int
    index: int


@dataclass(frozen=True)
class Constant:
    """Numbers that stand in the configuration itself; value: nested lists."""

    value: Any


@dataclass(frozen=True)
class Call:
    """One call of a layer: what it reads, the states that it begins with (None: unreadable), whether it gets a mask."""

    reads: tuple[Output, ...]
    states: tuple[Output | Constant | None, ...] = ()
    masked: bool = False


def is_layer(entry: Any) -> bool:
    """Say whether an entry describes a layer: it has a class and a configuration."""
    known = isinstance(entry, dict) and isinstance(entry.get("class_name"), str)
    return known and isinstance(entry.get("config"), dict)


def _layer_name(entry: Mapping[str, Any]) -> str:
    return str(entry["config"].get("name", entry.get("name", entry["class_name"])))[:200]


def _calls_of(model: Mapping[str, Any], entries: list[dict[str, Any]]) -> dict[str, list[Call]]:
    """List the calls of every layer in a model by the layer's name; entries: the layers' entries in order."""
    if model.get("class_name") == "Sequential" or not isinstance(model.get("config"), dict):
        pairs = pairwise(entries)
        return {_layer_name(entry): [Call((Output(_layer_name(before), 0, 0),))] for before, entry in pairs}
    calls = {}
    for entry in entries:
        nodes = entry.get("inbound_nodes")
        begins = entry["class_name"] in _RECURRENT or _is_model(entry)
        calls[_layer_name(entry)] = [_call(node, begins) for node in nodes] if isinstance(nodes, list) else []
    return calls


def _call(node: Any, begins: bool) -> Call:
    """One call; begins: whether what follows the first tensor are states, as recurrent layers take them."""
    if isinstance(node, dict):
        args, kwargs = node.get("args"), node.get("kwargs")
        args = args if isinstance(args, list) else []
        kwargs = kwargs if isinstance(kwargs, dict) else {}
    else:
        # Keras 2: the tensors of the first argument in a row, with the keyword arguments after the last tensor.
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
    return Call(tuple(reads), tuple(given) if begins else (), kwargs.get("mask") is not None)


def _states(kwargs: Mapping[str, Any]) -> list[Output | Constant | None]:
    value = kwargs.get("initial_state")
    if value is None:
        return []
    if isinstance(value, list) and value and not isinstance(_first_leaf(value), str | dict) and _depth(value) > 2:
        # Numbers of several states [batch, units], in the notation of Keras 2.
        return [Constant(each) for each in value]
    return _tensors(value) or [None]


def _depth(value: Any) -> int:
    depth = 0
    while isinstance(value, list):
        value, depth = value[0] if value else None, depth + 1
    return depth


def _tensors(value: Any) -> list[Output | Constant | None]:
    """The tensors in a value, in order, in either notation."""
    tensors: list[Output | Constant | None] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            history = each.get("keras_history")
            config = each.get("config")
            if isinstance(history, list) and _is_reference(history):
                tensors.append(Output(str(history[0])[:200], history[1], history[2]))
            elif each.get("class_name") in ("__tensor__", "__numpy__") and isinstance(config, dict):
                tensors.append(Constant(config.get("value")))
            else:
                waiting += reversed(list(each.values()))
        elif _is_reference(each):
            name, call, index = each[:3]
            tensors.append(Constant(index) if name == "_CONSTANT_VALUE" else Output(name[:200], call, index))
        elif isinstance(each, list):
            if isinstance(_first_leaf(each), int | float):
                tensors.append(Constant(each))
            else:
                waiting += reversed(each)
    return tensors


def _first_leaf(value: Any) -> Any:
    while isinstance(value, list) and value:
        value = value[0]
    return value


def _is_reference(each: Any) -> bool:
    """Whether a value is [layer, call, output], with or without keyword arguments as a fourth element."""
    known = isinstance(each, list) and len(each) in (3, 4) and isinstance(each[0], str) and type(each[1]) is int
    return known and (each[0] == "_CONSTANT_VALUE" or type(each[2]) is int)


@dataclass(frozen=True)
class Upstream:
    """The recurrent layers and models that feed the frames of a layer, in words, and what changes them between.

    `shared`: other layers read the same output; `outside`: the origins are outside the model that the layer is in.
    """

    origins: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    shared: bool = False
    outside: bool = False

    def sentence(self, name: str, lower: str = "") -> str:
        """Say why a layer forms no stack with what it reads; empty if its frames come from nothing recurrent."""
        if not self.origins:
            return ""
        words = listed(_some(self.origins), "and")
        if self.passed:
            words = f"{words} through {', '.join(_some(self.passed))}"
        elif self.outside:
            words = f"{words} from outside its own model"
        elif lower:
            words = lower.format(words)
        elif self.shared:
            words = f"{words}, which other layers read too"
        return f"{show(name)} reads {words}: a model of its own, not a stack"


def _some(words: Sequence[str]) -> list[str]:
    return [*words[:_SHOWN], *([f"{len(words) - _SHOWN} more"] if len(words) > _SHOWN else [])]


def _upstream_of(
    name: str,
    reads: Mapping[str, Sequence[str]],
    origins: Mapping[str, str],
    changing: Mapping[str, str],
    shared: Collection[str],
    around: Upstream,
) -> Upstream:
    """Search what feeds the frames of a layer."""
    ends: dict[str, None] = {}
    seen, waiting = {name: None}, [name]
    entered = False
    while waiting and len(seen) < _MOST:
        each = waiting.pop(0)
        below = reads.get(each, ())
        entered = entered or not below
        for source in below:
            if source in origins:
                ends[source] = None
            elif source not in seen:
                seen[source] = None
                waiting.append(source)
    ends.pop(name, None)
    passed = tuple(changing[each] for each in seen if each in changing and each != name)
    also = any(each in shared for each in (*ends, *seen) if each != name)
    words = tuple(origins[each] for each in ends)
    if entered and not words:
        return Upstream(around.origins, (*passed, *around.passed), outside=True)
    return Upstream(words, passed, also)


@dataclass(frozen=True)
class Placed:
    """A layer's entry and its position in the model.

    `path` is where a Keras 3 file has its weights; `names` are the models around it, outermost first, and its name;
    `below` is the path of the layer that it reads, if it is the only reader; `masks` are the layers of its model that
    mask steps; `kinds` the classes of its model's layers; `again` the models around it with the number of their calls.
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
    more than once, and what feeds the frames of the innermost model."""

    path: str = ""
    names: tuple[str, ...] = ()
    again: tuple[tuple[str, int], ...] = ()
    upstream: Upstream = field(default_factory=Upstream)


def placed_layers(model: Mapping[str, Any], around: _Around = _Around()) -> Iterator[Placed]:
    """Go through every layer of a model and of the models in it; `InputError` if the configuration is damaged."""
    names = around.names
    if len(names) > MAX_DEPTH:
        raise InputError(f"its configuration nests models more than {MAX_DEPTH} deep")
    entries = [_with_dict(each) for each in _entries(model)]
    paths = _paths(entries, around.path)
    calls = _calls_of(model, entries)
    below = _below(entries, calls)
    masks = tuple(
        _layer_name(entry) for entry in entries if entry["class_name"] == "Masking" or entry["config"].get("mask_zero")
    )
    kinds = {_layer_name(entry): str(entry["class_name"]) for entry in entries}
    upstream_of = _upstream_finder(entries, calls, around.upstream)
    for entry in entries:
        name = _layer_name(entry)
        own, times = paths[name], calls.get(name, ())
        if _is_model(entry):
            again = (*around.again, *([(name, len(times))] if len(times) > 1 else []))
            yield from placed_layers(entry, _Around(f"{own}/", (*names, name), again, upstream_of(name)))
        else:
            lower = paths.get(below.get(name, ""), "")
            upstream = upstream_of(name) if _is_recurrent(entry) else Upstream()
            yield Placed(entry, own, (*names, name), lower, tuple(times), masks, kinds, around.again, upstream)


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


def _upstream_finder(
    entries: list[dict[str, Any]], calls: Mapping[str, list[Call]], around: Upstream
) -> Callable[[str], Upstream]:
    """Give a function that finds the sources of a layer's frames by the layer's name."""
    frames: dict[str, list[str]] = {}
    for name, own in calls.items():
        states = {each for call in own for each in call.states if isinstance(each, Output)}
        frames[name] = [each.layer for call in own for each in call.reads if each not in states]
    readers = Counter(source for sources in frames.values() for source in sources)
    shared = {name for name, count in readers.items() if count > 1}
    origins, changing = {}, {}
    for entry in entries:
        name, inner = _layer_name(entry), _is_model(entry)
        if _is_recurrent(entry):
            origins[name] = f"model {show(name)}" if inner else show(name)
        elif not _passes(entry):
            changing[name] = f"{show(entry['class_name'])[1:-1]} {show(name)}"
    return lambda name: _upstream_of(name, frames, origins, changing, shared, around)


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
    """Where Keras 3 puts each layer's weights; the first of several layers of one name counts."""
    names = _slugs([entry["class_name"] for entry in entries])
    pairs = [(_layer_name(entry), f"{stem}layers/{name}") for entry, name in zip(entries, names, strict=True)]
    return dict(reversed(pairs))


def cells_at(cells: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Give the name of each cell of an RNN of several, and where in the RNN Keras 3 puts the cell's weights."""
    slugs = _slugs([f"{each['class_name']}Cell" for each in cells])
    return [(_layer_name(each), f"cell/cells/{slug}") for each, slug in zip(cells, slugs, strict=True)]


def _slugs(classes: Sequence[str]) -> list[str]:
    """Name the members of a list as Keras 3 does in its files: by their classes and a count, not by their names."""
    counts: Counter[str] = Counter()
    made = []
    for each in classes:
        name = re.sub(r"\W+", "", each[:200])
        slug = re.sub(r"([a-z])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)).lower()
        made.append(f"{slug}{f'_{counts[slug]}' if counts[slug] else ''}")
        counts[slug] += 1
    return made


def _passes(entry: Mapping[str, Any]) -> bool:
    linear = entry["class_name"] == "Activation" and entry["config"].get("activation") == "linear"
    return linear or entry["class_name"] in _PASSING


def _below(entries: list[dict[str, Any]], calls: Mapping[str, list[Call]]) -> dict[str, str]:
    """Layer -> the layer whose output it reads, through layers that hand it on; only if no other layer reads it."""
    by_name = {_layer_name(entry): entry for entry in entries}
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


def _source(calls: Mapping[str, list[Call]], name: str) -> str:
    """The layer whose first output a layer reads at its only call, not counting states; empty if there is none."""
    own = calls.get(name, [])
    if len(own) != 1:
        return ""
    states = [each for each in own[0].states if isinstance(each, Output)]
    reads = [each for each in own[0].reads if each not in states]
    return reads[0].layer if len(reads) == 1 and reads[0].index == reads[0].call == 0 else ""


@dataclass(frozen=True)
class Beginning:
    """The states of a layer before its first step: fixed ones as (direction, state, values), and words on all others.

    `origin` is the layer whose last states, all and in the same order, are these states.
    """

    fixed: tuple[tuple[int, str, tuple[float, ...]], ...] = ()
    states_from: str = ""
    notes: tuple[str, ...] = ()
    origin: str = ""


def beginning_of(placed: Placed, cell: Cell, units: int, directions: int) -> Beginning | str:
    """Read the states of a layer of that cell before its first step, or say why they cannot be read."""
    given = [call for call in placed.calls if call.states]
    if not given:
        return Beginning()
    if len(placed.calls) > 1:
        return Beginning(
            states_from=f"what each of the {len(placed.calls)} calls of layer {placed.names[-1]!r} gives it"
        )
    names = [(side, name) for side in range(directions) for name in "hc" if name in cell.states]
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
    return Beginning(tuple(fixed), " and ".join(dict.fromkeys(words)), notes, (first if whole else ""))


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
