"""The calls of the layers in a Keras model, by its configuration: what each reads, and the states it begins with.

Two notations: Keras 3 calls have `args` and `kwargs` with `keras_history` [layer, call, output]; Keras 2 lists
[layer, call, output, kwargs]. Output 0 of a recurrent layer is its sequence or last h, those after it are its states.
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


def calls_of(model: Mapping[str, Any], entries: list[dict[str, Any]]) -> dict[str, list[Call]]:
    """The calls of every layer in a model; `entries`: its layers' entries."""
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
