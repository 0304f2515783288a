"""Where tensors are in the value of a PyTorch file: dictionaries of tensors, whole modules, modules of TorchScript.

A module in a file is an object of a class that is not known here: its `_parameters`, `_buffers` and `_modules` are data
(torch/nn/modules/module.py). A module of TorchScript has tensors and modules as attributes
(torch/csrc/jit/serialization).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lstmsim.base.errors import InputError
from lstmsim.importers.weights.pickle_data import Thing
from lstmsim.importers.weights.pytorch_names import PYTORCH_NAMES, Fact, function_of, is_recurrent_name
from lstmsim.importers.weights.pytorch_norms import in_parts
from lstmsim.importers.weights.pytorch_tensors import Tensor

__all__ = ["QUANTISED", "State", "is_packed", "states_in"]

MAX_MODULES = 100_000
#: Names of the packed weights of quantised layers (torch/ao/nn/quantized/dynamic/modules/rnn.py).
_PACKED = ("_all_weight_values", "_packed_weight_ih", "_packed_weight_hh")
QUANTISED = (
    "holds a quantised recurrent layer, whose packed weights cannot be read: save the network before quantize_dynamic"
)
_FINAL = re.compile(r'^\s+(?:mode|nonlinearity) : Final\[str\] = "(\w{1,40})"', re.MULTILINE)
_USED = re.compile(r"\btorch\.rnn_(tanh|relu)(?:_cell)?\(")

#: Gives the text of a module's class in TorchScript by the class's name; empty if there is none. The text is searched,
#: never run.
Source = Callable[[str], str]


@dataclass(frozen=True)
class State:
    """The tensors of one dictionary or module.

    path: the texts that lead to it in the file's value.
    tensors: name in the dictionary or module to tensor.
    facts: name of each module in it to what is known of that module.
    """

    path: tuple[str, ...]
    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Fact] = field(default_factory=dict)


def states_in(value: Any, source: Source) -> list[State]:
    """List every dictionary and module in a file's value that has tensors of recurrent layers.

    value: what the file's pickle describes.
    source: gives the text of a class of TorchScript.

    `InputError` if there is none, or a recurrent layer is quantised.
    """
    states = []
    for path, each in _containers(value):
        if isinstance(each, Thing):
            own = _module(each, path, source)
        else:
            own = State(path, {name: item for name, item in each.items() if isinstance(item, Tensor)})
            if any(is_packed(name) for name in each):
                raise InputError(QUANTISED)
        if any(is_recurrent_name(name) or in_parts(name) for name in own.tensors):
            states.append(own)
    if not states:
        raise InputError(f"holds no recurrent layer by PyTorch's names: {PYTORCH_NAMES}")
    return states


def is_packed(name: Any) -> bool:
    """Say whether an entry of this name in a state dictionary is the packed weight of a quantised layer."""
    return isinstance(name, str) and any(part in _PACKED for part in name.split("."))


def _containers(value: Any) -> Iterator[tuple[tuple[str, ...], dict[str, Any] | Thing]]:
    """Every dictionary and every module in a value, once, with the texts that lead to it; a value may hold itself."""
    seen: set[int] = set()
    waiting: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while waiting:
        path, each = waiting.pop()
        if not isinstance(each, dict | list | tuple | Thing) or id(each) in seen:
            continue
        seen.add(id(each))
        inner: list[tuple[Any, Any]]
        if isinstance(each, Thing):
            if _is_module(each):
                yield path, each
                continue
            inner = [("", part) for part in (each.arguments, each.states, each.items, each.elements) if part]
        elif isinstance(each, dict):
            yield path, {key: item for key, item in each.items() if isinstance(key, str)}
            inner = list(each.items())
        else:
            inner = list(enumerate(each))
        # Paths are cut: they only give names, and a chain of a million links would make them long.
        steps = [(str(key)[:80], below) for key, below in inner]
        short = len(path) < 8
        waiting += reversed([((*path, step) if short and step else path, below) for step, below in steps])


def _attributes(thing: Thing) -> dict[str, Any]:
    """The attributes that an object was given as its state."""
    attributes: dict[str, Any] = {}
    for state in thing.states:
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, dict):
                attributes |= {key: item for key, item in part.items() if isinstance(key, str)}
    return attributes


def _is_script(thing: Thing) -> bool:
    return thing.kind.module.split(".")[0] == "__torch__"


def _is_module(thing: Thing) -> bool:
    attributes = _attributes(thing)
    return _is_script(thing) or (
        isinstance(attributes.get("_parameters"), dict) and isinstance(attributes.get("_modules"), dict)
    )


def _module(root: Thing, path: tuple[str, ...], source: Source) -> State:
    """The tensors of a module and of the modules in it, named as by state_dict(), and what each module is."""
    tensors: dict[str, Tensor] = {}
    facts: dict[str, Fact] = {}
    seen: set[int] = set()
    waiting: list[tuple[str, Thing]] = [("", root)]
    while waiting:
        prefix, thing = waiting.pop()
        if id(thing) in seen or len(seen) > MAX_MODULES or len(prefix) > 1000:
            continue
        seen.add(id(thing))
        attributes = _attributes(thing)
        if any(name in _PACKED for name in attributes):
            raise InputError(QUANTISED)
        own, children = _split(thing, attributes)
        tensors |= {f"{prefix}{name}": item for name, item in own.items()}
        facts[prefix.rstrip(".")] = _fact(thing, attributes, source)
        waiting += reversed([(f"{prefix}{name}.", item) for name, item in children.items()])
    return State(path, tensors, facts)


def _split(thing: Thing, attributes: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Thing]]:
    """A module's tensors and the modules in it."""
    values: dict[str, Any] = {}
    if _is_script(thing):
        values = dict(attributes)
    else:
        for part in ("_parameters", "_buffers", "_modules"):
            inner = attributes.get(part)
            if isinstance(inner, dict):
                values |= {key: item for key, item in inner.items() if isinstance(key, str)}
    return (
        {name: item for name, item in values.items() if isinstance(item, Tensor)},
        {name: item for name, item in values.items() if isinstance(item, Thing)},
    )


def _fact(thing: Thing, attributes: Mapping[str, Any], source: Source) -> Fact:
    words = [attributes.get(name) for name in ("mode", "nonlinearity")]
    kind = f"{thing.kind.module}.{thing.kind.name}"
    if _is_script(thing):
        text = source(kind)
        words += _FINAL.findall(text)
        used = set(_USED.findall(text))
        words += used if len(used) == 1 else []
        kind = ".".join(part for part in kind.split(".")[1:] if not part.startswith("___torch_mangle_"))
    return Fact(kind, next((function for word in words if (function := function_of(word))), ""))
