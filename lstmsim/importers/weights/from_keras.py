"""Keras models in memory: their recurrent layers as models, without a file and without importing Keras here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from lstmsim.base.bounded import placed
from lstmsim.base.errors import InputError, Mistake
from lstmsim.importers.weights.imported import ImportedModel
from lstmsim.importers.weights.keras_config import KerasLayer, keras_kinds, keras_layers
from lstmsim.importers.weights.keras_stacks import keras_models, parts_of
from lstmsim.importers.weights.tensors import Stored, single_or_double

__all__ = ["from_keras"]


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
        config = _plain(given())
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


def _plain(config: Any) -> Any:
    """The configuration as a file would have it: arrays become lists, objects their names."""
    return json.loads(json.dumps(config, default=_word, skipkeys=True))


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
