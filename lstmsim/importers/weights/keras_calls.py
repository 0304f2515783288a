"""The calls of the layers in a Keras model, by its configuration: what each reads, and the states it begins with.

Two notations: Keras 3 calls have `args` and `kwargs` with `keras_history` [layer, call, output]; Keras 2 lists
[layer, call, output, kwargs]. Output 0 of a recurrent layer is its sequence or last h; its later outputs are states.
Sources: keras/src/models/functional.py and keras/src/saving of Keras 3, keras/engine/functional.py of Keras 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

__all__ = ["Call", "Constant", "Output", "calls_of", "is_layer", "layer_name"]


@dataclass(frozen=True)
class Output:
    """An output of another layer.

    layer: name of the layer.
    call: which of the layer's calls, from 0.
    index: which of the call's outputs, from 0.
    """

    layer: str
    call: int
    index: int


@dataclass(frozen=True)
class Constant:
    """Numbers that stand in the configuration itself; value: nested lists."""

    value: Any


@dataclass(frozen=True)
class Call:
    """One call of a layer.

    reads: the tensors that the call reads.
    states: the states that it begins with; None: a state that cannot be read.
    masked: whether the call is given a mask of steps.
    """

    reads: tuple[Output, ...]
    states: tuple[Output | Constant | None, ...] = ()
    masked: bool = False


def is_layer(entry: Any) -> bool:
    """Say whether an entry describes a layer: it has a class and a configuration."""
    known = isinstance(entry, dict) and isinstance(entry.get("class_name"), str)
    return known and isinstance(entry.get("config"), dict)


def layer_name(entry: Mapping[str, Any]) -> str:
    """Give a layer's own name.

    >>> layer_name({"class_name": "LSTM", "config": {"name": "encoder"}})
    'encoder'
    """
    return str(entry["config"].get("name", entry.get("name", entry["class_name"])))[:200]


def calls_of(model: Mapping[str, Any], entries: list[dict[str, Any]]) -> dict[str, list[Call]]:
    """List the calls of every layer in a model by the layer's name; entries: the layers' entries in order."""
    if model.get("class_name") == "Sequential" or not isinstance(model.get("config"), dict):
        pairs = pairwise(entries)
        return {layer_name(entry): [Call((Output(layer_name(before), 0, 0),))] for before, entry in pairs}
    calls = {}
    for entry in entries:
        nodes = entry.get("inbound_nodes")
        calls[layer_name(entry)] = [_call(node) for node in nodes] if isinstance(nodes, list) else []
    return calls


def _call(node: Any) -> Call:
    if isinstance(node, dict):
        args, kwargs = node.get("args"), node.get("kwargs")
        args = args if isinstance(args, list) else []
        kwargs = kwargs if isinstance(kwargs, dict) else {}
    else:
        # Keras 2: the tensors of the first argument in a row, with the keyword arguments behind the last tensor.
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
