"""Recurrent layers by the names that PyTorch gives their tensors, in any kind of file, and their models.

Names, shapes and gates (i f g o, r z n) are those of torch.nn.LSTM, GRU and RNN and their cells: `weight_ih_l0` [gates
x hidden, input], `weight_hh_l0`, two biases, `_reverse`, `weight_hr_l0` for a projection. A weight held in parts is
computed once, in double precision, by PyTorch's formula. Sources: PyTorch's documentation; torch/nn/utils:
weight_norm.py, spectral_norm.py, parametrizations.py, prune.py; fastai.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import PurePath

import numpy as np

from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.wording import listed, show
from lstmsim.importers.imported import ImportedModel, model_names, model_stem, percent
from lstmsim.importers.tensors import FLOAT_BYTES, Stacked, Stored, floats, shape_text, unstacked
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Floats, Network, PassWeights

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
_BASE = r"(?:weight_(?:ih|hh|hr)|bias_(?:ih|hh))(?:_l\d{1,6}(?:_reverse)?)?"
_SUFFIXED = re.compile(rf"(?s)(.*?[./]|)({_BASE})_([A-Za-z]\w*)")
_PARAMETRISED = re.compile(rf"(?s)(.*?[./]|)parametrizations[./]({_BASE})[./](.+)")
_Make = Callable[[list[Stored]], Floats]
#: Modules and tensors tell the parts of a network; only its program tells which part reads which.
_ALONE = "how its parts are connected, and what they begin with, is not known: each stands alone and begins at 0"
_UNSTATED = "is an RNN, whose function is not in the file: say --cell rnn (tanh, PyTorch's default) or --cell rnn-relu"


@dataclass(frozen=True)
class Fact:
    """Facts on a module that its tensors do not show: its class, and the cell of an RNN (empty if not known)."""

    kind: str
    function: str = ""


def function_of(word: object) -> str:
    """Give the cell that a module's `mode` or `nonlinearity` means; empty if it means none."""
    return _FUNCTIONS.get(word, "") if isinstance(word, str) else ""


@dataclass(frozen=True)
class Group:
    """The tensors of one module: the prefix of their names, and (part, layer, direction) to the name."""

    prefix: str
    names: Mapping[_Key, str]

    @property
    def title(self) -> str:
        """The module's name without the dot; empty for the whole file."""
        return self.prefix.rstrip("./")

    def spelled(self, key: _Key) -> str:
        """Spell the name that a missing part would have."""
        part, number, side = key
        cell_alone = all(name.removeprefix(self.prefix).count("_") == 1 for name in self.names.values())
        return f"{self.prefix}{part}" + ("" if cell_alone else f"_l{number}{'_reverse' * side}")


def is_recurrent_name(name: str) -> bool:
    """Say whether a tensor of this name belongs to a recurrent layer."""
    return _NAME.fullmatch(name) is not None


def groups(names: Iterable[str]) -> list[Group]:
    """List the recurrent modules among the names of tensors, in the order of their prefixes."""
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
    """Tell the layers of a module from the shapes of its tensors."""
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
    refuse(mistakes)
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
    rows = len(_ORDERS[layer.cell.name]) * layer.hidden
    shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, layer.input), "weight_hh": (rows, layer.width("h"))}
    if with_bias:
        shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
    if layer.projection is not None:
        shapes["weight_hr"] = (layer.projection, layer.hidden)
    return shapes


def network_of(tensors: Mapping[str, Stored], group: Group, model: Model) -> Network:
    """Build a network from the tensors of a module."""
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
        Mistake(show(name), f"belongs to no weight of model {show(model.name)}")
        for key, name in group.names.items()
        if key not in wanted
    ]
    try:
        by_name = floats(tensors, {group.names[key]: shape for key, shape in wanted.items() if key in group.names})
    except InputError as error:
        raise InputError([*error.mistakes, *mistakes]) from None
    refuse(mistakes)
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


def in_parts(name: str) -> bool:
    """Say whether a tensor of this name is a part of a recurrent weight."""
    return _parted(name) is not None


def _parted(name: str) -> tuple[str, str] | None:
    """The weight's name and the part's name, if a tensor of this name is a part of a weight."""
    match = _PARAMETRISED.fullmatch(name)
    if match is None:
        match = _SUFFIXED.fullmatch(name)
        # `weight_hh_l0_reverse` is a weight of its own.
        if match is None or match[3] == "reverse" or re.fullmatch(r"l\d{1,6}(_reverse)?", match[3]):
            return None
    return match[1] + match[2], match[3]


def whole_weights(tensors: Mapping[str, Stored]) -> dict[str, Stored]:
    """Replace parts of weights by the weights that they make; all other tensors stay."""
    parts: dict[str, dict[str, str]] = {}
    for name in tensors:
        parted = _parted(name)
        if parted is not None:
            parts.setdefault(parted[0], {})[parted[1]] = name
    whole = {name: stored for name, stored in tensors.items() if _parted(name) is None}
    mistakes = []
    for weight, names in parts.items():
        made = _RULES.get(frozenset(names))
        if made is None:
            text = (
                f"is made of {_some(names.values())} in a way that is not known here: remove the parametrisation first"
            )
            mistakes.append(Mistake(show(weight), text))
            continue
        order, make, shaped = made
        stored = [tensors[names[part]] for part in order]
        target = _target(weight, whole) if order == ("raw",) else weight
        kind = stored[shaped].kind
        if any(each.kind not in FLOAT_BYTES for each in stored):
            mistakes.append(Mistake(show(weight), f"is made of {_some(names.values())}, which hold no weights"))
            continue
        whole[target] = Stored(kind, stored[shaped].shape, partial(_read, weight, make, stored, kind))
    refuse(mistakes)
    return whole


def _some(names: Iterable[str]) -> str:
    return listed([show(each) for each in list(names)[:4]], "and")


def _target(weight: str, whole: Mapping[str, Stored]) -> str:
    """The name of a raw weight in use: fastai keeps it one module deeper than the raw weight."""
    prefix, dot, own = weight.rpartition(".")
    deeper = f"{prefix}{dot}module.{own}"
    return deeper if deeper in whole else weight


def _read(weight: str, make: _Make, stored: list[Stored], kind: str) -> Floats:
    with np.errstate(all="ignore"):
        try:
            whole = make([Stored(each.kind, each.shape, partial(_wide, each)) for each in stored])
        except ValueError:
            shapes = listed([shape_text(each.shape) for each in stored], "and")
            raise InputError(f"is made of tensors of shapes {shapes}, which do not fit each other") from None
        return whole if kind == "F64" else whole.astype(np.float32)


def _wide(stored: Stored) -> Floats:
    return stored.read().reshape(stored.shape).astype(np.float64)


def _weight_norm(parts: list[Stored]) -> Floats:
    """g * v / |v|, with the norm over all dimensions that g does not have."""
    g, v = (each.read() for each in parts)
    if v.ndim != 2 or g.shape not in ((), (1, 1), (len(v), 1), (1, v.shape[1])):
        raise ValueError
    axis = None if g.ndim == 0 else 1 if g.shape == (len(v), 1) else 0
    norm = np.sqrt(np.sum(v * v, axis=axis, keepdims=axis is not None))
    whole: Floats = v * (g / norm)
    return whole


def _spectral_norm(parts: list[Stored]) -> Floats:
    """W / sigma, where sigma = u W v with the vectors u and v that training left."""
    w, u, v = (each.read() for each in parts)
    if w.ndim != 2 or u.ndim != 1 or v.ndim != 1:
        raise ValueError
    matrix = w if u.shape == w.shape[:1] else w.T
    whole: Floats = w / (u @ (matrix @ v))
    return whole


def _pruned(parts: list[Stored]) -> Floats:
    w, mask = (each.read() for each in parts)
    if w.shape != mask.shape:
        raise ValueError
    return w * mask


#: The names of the parts -> their order, the function that makes the weight, and which part has the weight's shape.
_RULES: Mapping[frozenset[str], tuple[tuple[str, ...], _Make, int]] = {
    frozenset(order): (order, make, shaped)
    for order, make, shaped in (
        (("g", "v"), _weight_norm, 1),
        (("original0", "original1"), _weight_norm, 1),
        (("orig", "u", "v"), _spectral_norm, 0),
        (("original", "0._u", "0._v"), _spectral_norm, 0),
        (("orig", "mask"), _pruned, 0),
        (("raw",), lambda parts: parts[0].read(), 0),
    )
}


def import_groups(
    tensors: Mapping[str, Stored],
    file: str,
    *,
    weights: bool = True,
    cell: str | None = None,
    facts: Mapping[str, Fact] | None = None,
) -> list[ImportedModel]:
    """Make a model of every recurrent module among a file's tensors."""
    whole = whole_weights(tensors)
    modules = groups(whole)
    if not modules:
        some = [show(name) for name in list(tensors)[:5]]
        text = f"holds no recurrent layer by PyTorch's names: {PYTORCH_NAMES}; it has {listed(some, 'and')}"
        raise InputError(text + (f" and {len(tensors) - 5} more" if len(tensors) > 5 else ""))
    models: list[ImportedModel] = []
    mistakes: list[Mistake] = []
    stem = model_stem(file)
    unstated = False
    for name, group in zip(model_names(stem, [group.title for group in modules]), modules, strict=True):
        fact = (facts or {}).get(group.title)
        try:
            layers = layers_of(whole, group)
            if any(layer.cell.name == "rnn" for layer in layers):
                unstated = unstated or not (fact and fact.function)
                layers = layers_of(whole, group, _function(group, cell, fact))
            model = Model(name, layers)
            network = network_of(whole, group, model)
        except InputError as error:
            mistakes += error.mistakes
            continue
        nodes = tuple(group.names["weight_ih", number, 0] for number in range(len(model.layers)))
        title = show(group.title) if group.title else "its recurrent layers"
        notes = (*_notes(tensors, group, fact), *([_ALONE] if len(modules) > 1 else []))
        models.append(
            ImportedModel(model, nodes, f"{PurePath(file).name}: {title}", notes, network if weights else None)
        )
    refuse(mistakes)
    used = {name for group in modules for name in group.names.values()} | (set(tensors) - set(whole))
    rest = _unread_note({key: prod(each.shape) for key, each in tensors.items() if each.kind in FLOAT_BYTES}, used)
    if rest:
        models = [replace(each, notes=(*each.notes, rest)) for each in models]
    if cell is not None and not unstated:
        raise InputError(f"--cell {cell} is for an RNN whose function the file does not hold, but there is none")
    return models


def _function(group: Group, cell: str | None, fact: Fact | None) -> str:
    """The cell of an RNN; `InputError` if neither file nor user says which, or if the two contradict."""
    place = show(group.title) if group.title else ""
    stated = fact.function if fact else ""
    if stated and cell and stated != cell:
        raise InputError(Mistake(place, f"is of cell {stated} by the file, --cell {cell} says something else"))
    if not stated and cell is None:
        raise InputError(Mistake(place, _UNSTATED))
    return stated or str(cell)


def _notes(tensors: Mapping[str, Stored], group: Group, fact: Fact | None) -> list[str]:
    """Notes on what may differ from PyTorch: numbers of half the width, a module that may compute something else."""
    title = show(group.title) if group.title else "the module"
    own = set(group.names.values())
    halves = {tensors[name].kind for name in own if name in tensors} & {"F16", "BF16"}
    notes = (
        [f"the weights of {title} have 16 bits ({min(halves)}); they are the same here, the sums are wider"]
        if halves
        else []
    )
    if fact is not None and not fact.kind.startswith("torch."):
        taken = "the equations of torch.nn are taken for it"
        notes.append(f"{title} is of class {show(fact.kind)}, not PyTorch's own: {taken}")
    more = [name for name in tensors if group.prefix and name.startswith(group.prefix) and name not in own]
    more = [name for name in more if not in_parts(name) and not is_recurrent_name(name)]
    if fact is None and more:
        some = listed([show(name) for name in more[:3]], "and") + (
            f" and {len(more) - 3} more" if len(more) > 3 else ""
        )
        notes.append(f"{title} has other tensors too ({some}): it may compute something else than torch.nn's layer")
    return notes


def _unread_note(sizes: Mapping[str, int], used: Collection[str]) -> str | None:
    """Say what is left out of a file of tensors; None if nothing is left out."""
    rest = sorted((name for name in sizes if name not in used), key=lambda name: -sizes[name])
    total = sum(sizes.values())
    if not rest or not total:
        return None
    names = [show(name) for name in rest[:4]]
    if len(rest) > 4:
        names.append(f"{len(rest) - 4} more")
    do = "belongs to no recurrent layer and is" if len(rest) == 1 else "belong to no recurrent layer and are"
    share = percent(sum(sizes[name] for name in rest) / total)
    counts = f"{len(rest)} of {len(sizes)} tensors"
    return f"{counts} {do} left out: {listed(names, 'and')}, {share} of the numbers in the file"
