"""Recurrent layers by the names that PyTorch gives their tensors, in any kind of file.

Names, shapes and the order of the gates are those of torch.nn.LSTM, GRU and RNN and their cells (PyTorch's
documentation): `weight_ih_l0` [gates x hidden, input], `weight_hh_l0`, two biases, `_reverse`, `weight_hr_l0` for a
projection; i f g o, r z n. The gate count follows from the shapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.importers.weights.gates import Stacked, unstacked
from lstmsim.importers.weights.tensors import Stored, floats, shape_text
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Floats, Network, PassWeights

__all__ = [
    "PYTORCH_NAMES",
    "Fact",
    "Group",
    "function_of",
    "groups",
    "is_recurrent_name",
    "layers_of",
    "network_of",
]

#: Names that files are searched for, for messages.
PYTORCH_NAMES = "weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 (or without _l0 for a cell)"
MAX_LAYERS = MAX_MODULES = 1000
_NAME = re.compile(r"(?s)(.*[./])?((?:weight_(?:ih|hh|hr)|bias_(?:ih|hh)))(?:_l(\d{1,6})(_reverse)?)?")
_ORDERS = {"lstm": "ifgo", "lstm-projection": "ifgo", "gru": "rzn", "rnn": "a", "rnn-relu": "a"}
_BY_GATES = {4: "lstm", 3: "gru", 1: "rnn"}
#: PyTorch's names for the functions of an RNN: its `mode` and its `nonlinearity`.
_FUNCTIONS = {"RNN_TANH": "rnn", "tanh": "rnn", "RNN_RELU": "rnn-relu", "relu": "rnn-relu"}

#: A tensor's part (`weight_ih` ...), layer and direction.
_Key = tuple[str, int, int]


@dataclass(frozen=True)
class Fact:
    """What is known of a module besides its tensors.

    kind: its class.
    function: the cell of an RNN; empty if it is not known.
    """

    kind: str
    function: str = ""


def function_of(word: object) -> str:
    """Give the cell that a module's `mode` or `nonlinearity` means; empty if it means none.

    >>> function_of("RNN_RELU"), function_of("LSTM")
    ('rnn-relu', '')
    """
    return _FUNCTIONS.get(word, "") if isinstance(word, str) else ""


@dataclass(frozen=True)
class Group:
    """The tensors of one module.

    prefix: what all their names begin with.
    names: (part, layer, direction) to the tensor's name.
    """

    prefix: str
    names: Mapping[_Key, str]

    @property
    def title(self) -> str:
        """The module's name without the dot; empty for the whole file."""
        return self.prefix.rstrip("./")

    @cached_property
    def _is_cell(self) -> bool:
        return all(name.removeprefix(self.prefix).count("_") == 1 for name in self.names.values())

    def spelled(self, key: _Key) -> str:
        """Spell the name that a missing part would have."""
        part, number, side = key
        return f"{self.prefix}{part}" + ("" if self._is_cell else f"_l{number}{'_reverse' * side}")


def is_recurrent_name(name: str) -> bool:
    """Say whether a tensor of this name belongs to a recurrent layer.

    >>> [is_recurrent_name(name) for name in ("enc.weight_ih_l0_reverse", "weight_hh", "fc.weight")]
    [True, True, False]
    """
    return _NAME.fullmatch(name) is not None


def groups(names: Iterable[str]) -> list[Group]:
    """List the recurrent modules among the names of tensors, in the order of their prefixes.

    `InputError` if two tensors are the same part, or there are more than `MAX_MODULES` modules.

    >>> [group.prefix for group in groups(["a.weight_ih", "b.gru.weight_ih_l0", "b.gru.weight_hh_l0", "fc.bias"])]
    ['a.', 'b.gru.']
    """
    modules: dict[str, dict[_Key, str]] = {}
    for name in sorted(names):
        match = _NAME.fullmatch(name)
        if match:
            prefix, part, layer, reverse = match.groups()
            own = modules.setdefault(prefix or "", {})
            key = (part, int(layer or 0), int(bool(reverse)))
            if key in own:
                raise InputError(Mistake(show(name), f"and {show(own[key])} are both {part} of layer {key[1]}"))
            own[key] = name
    if len(modules) > MAX_MODULES:
        raise InputError(f"holds {len(modules)} recurrent modules, at most {MAX_MODULES} are read")
    return [Group(prefix, own) for prefix, own in modules.items()]


def layers_of(tensors: Mapping[str, Stored], group: Group, function: str = "rnn") -> tuple[Layer, ...]:
    """Tell the layers of a module from the shapes of its tensors.

    tensors: name to tensor.
    group: the module.
    function: the cell of a layer of one gate, because its shapes do not tell.

    `InputError` with every layer whose shapes do not fit each other.
    """
    count = 1 + max(number for _, number, _ in group.names)
    if count > MAX_LAYERS:
        raise InputError(Mistake(show(group.prefix), f"states {count} layers, at most {MAX_LAYERS} are read"))
    layers, mistakes = [], []
    for number in range(count):
        layer = _layer(tensors, group, number, function)
        if isinstance(layer, Layer):
            layers.append(layer)
        else:
            mistakes.append(layer)
    if mistakes:
        raise InputError(mistakes)
    return tuple(layers)


def _layer(tensors: Mapping[str, Stored], group: Group, number: int, function: str) -> Layer | Mistake:
    bidirectional = any(key[1:] == (number, 1) for key in group.names)
    shapes = {}
    for part in ("weight_ih", "weight_hh", "weight_hr"):
        name = group.names.get((part, number, 0))
        if name is not None:
            shapes[part] = tensors[name].shape
            if len(shapes[part]) != 2:
                return Mistake(show(name), f"has shape {shape_text(shapes[part])}, expected rows and columns")
        elif part != "weight_hr":
            missing = f"has no tensor {group.prefix}{part}{'' if number == 0 else f'_l{number}'}"
            return Mistake(f"layer {number} of {show(group.title)}" if group.title else f"layer {number}", missing)
    (rows, width), recurrent = shapes["weight_ih"], shapes["weight_hh"]
    place = show(group.names["weight_hh", number, 0])
    projection, hidden = shapes["weight_hr"] if "weight_hr" in shapes else (None, recurrent[1])
    for size in (width, hidden, projection):
        if size is not None and not 1 <= size <= MAX_SIZE:
            return Mistake(place, f"belongs to a layer with a size of {size}, must be between 1 and {MAX_SIZE}")
    gates = rows / hidden
    if gates not in _BY_GATES or (projection is not None and gates != 4):
        counts = "4 (LSTM)" if projection is not None else "4 (LSTM), 3 (GRU) or 1 (RNN)"
        text = f"has shape {shape_text(recurrent)}, expected {counts} times as many rows as hidden units: "
        return Mistake(place, f"{text}the layer has {rows} rows and {hidden} hidden units")
    kind = "lstm-projection" if projection is not None else _BY_GATES[int(gates)]
    kind = function if kind == "rnn" else kind
    return Layer(cell(kind), hidden, width, bidirectional, projection)


def _expected(layer: Layer, with_bias: bool) -> dict[str, tuple[int, ...]]:
    """Shape of every part of a layer in one direction."""
    rows = len(_ORDERS[layer.cell.name]) * layer.hidden
    shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, layer.input), "weight_hh": (rows, layer.width("h"))}
    if with_bias:
        shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
    if layer.projection is not None:
        shapes["weight_hr"] = (layer.projection, layer.hidden)
    return shapes


def network_of(tensors: Mapping[str, Stored], group: Group, model: Model) -> Network:
    """Build a network from the tensors of a module.

    tensors: name to tensor.
    group: the module.
    model: the shapes.

    One `InputError` for all tensors that are missing or do not fit the model.
    """
    foreign = sorted({layer.cell.name for layer in model.layers} - set(_ORDERS))
    if foreign:
        text = f"has no names for cell {listed(foreign)}: those need lstmsim's own (layers.0.forward.matrix...)"
        raise InputError(f"the layout of PyTorch {text}")
    wanted: dict[_Key, tuple[int, ...]] = {}
    for number, layer in enumerate(model.layers):
        biased = any(("bias_" + half, number, side) in group.names for half in ("ih", "hh") for side in (0, 1))
        for side in range(layer.directions):
            wanted |= {(part, number, side): shape for part, shape in _expected(layer, biased).items()}
    mistakes = [
        Mistake(group.spelled(key), f"is missing, expected shape {shape_text(shape)}")
        for key, shape in wanted.items()
        if key not in group.names
    ]
    mistakes += [
        Mistake(show(name), f"belongs to nothing in model {show(model.name)}")
        for key, name in group.names.items()
        if key not in wanted
    ]
    try:
        by_name = floats(tensors, {group.names[key]: shape for key, shape in wanted.items() if key in group.names})
    except InputError as error:
        raise InputError([*error.mistakes, *mistakes]) from None
    if mistakes:
        raise InputError(mistakes)
    arrays = {key: by_name[group.names[key]] for key in wanted}
    passes = tuple(
        tuple(_pass(layer, arrays, number, side) for side in range(layer.directions))
        for number, layer in enumerate(model.layers)
    )
    return Network(model, passes)


def _pass(layer: Layer, arrays: Mapping[_Key, Floats], number: int, side: int) -> PassWeights:
    projection = arrays.get(("weight_hr", number, side))
    parts = Stacked(
        arrays["weight_ih", number, side],
        arrays["weight_hh", number, side],
        arrays.get(("bias_ih", number, side)),
        arrays.get(("bias_hh", number, side)),
        {} if projection is None else {("p", "m"): projection},
    )
    return unstacked(layer.cell, _ORDERS[layer.cell.name], parts)
