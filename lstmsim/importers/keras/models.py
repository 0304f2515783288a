"""Recurrent layers of Keras as models: weights, stacks, the table of all layers.

Keras stores `kernel` [input, gates x hidden], `recurrent_kernel` [hidden, gates x hidden] and `bias`; gates i f c o and
z r h (keras.io: LSTM, GRU, serialisation format). Keras itself is never imported here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from lstmsim.base.bounded import placed
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.wording import show
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
from lstmsim.importers.keras.layers import KerasLayer, keras_kinds, keras_layers
from lstmsim.importers.tensors import Stacked, Stored, floats, single_or_double, unstacked
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Floats, Network, PassWeights

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
    own = Layer(layer.own_cell, layer.hidden, width or 1, bool(layer.merge), reverse=layer.reverse)
    return Part(layer, own, tuple(_pass(layer, [arrays[name] for name in side]) for side in sides), tuple(stored))


def _pass(layer: KerasLayer, arrays: list[Floats]) -> PassWeights:
    kernel, recurrent, *rest = arrays
    bias = rest[0] if rest else None
    own, other = (bias[0], bias[1]) if bias is not None and bias.ndim == 2 else (bias, None)
    parts = Stacked(np.ascontiguousarray(kernel.T), np.ascontiguousarray(recurrent.T), own, other)
    return unstacked(layer.own_cell, ORDERS[layer.cell], parts)


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
