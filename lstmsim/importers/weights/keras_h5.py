"""Keras's HDF5 files (`.h5`): whole models of Keras 2 and 3, and files of weights alone, whose shapes tell the cells.

A whole model has its configuration as the attribute `model_config` and its weights in `model_weights/LAYER/...`,
called `kernel`, `recurrent_kernel` and `bias` (Keras 2: with `:0`). Weights alone lie in the same way at the top
(Keras 2), or as `layers/CLASS/cell/vars/0` to `2` (Keras 3, `.weights.h5`). Source:
keras/src/legacy/saving/legacy_h5_format.py and keras/src/saving/saving_lib.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.importers.weights.hdf5 import datasets_below, is_there, open_hdf5, stored_at, text_attribute
from lstmsim.importers.weights.imported import ImportedModel
from lstmsim.importers.weights.keras_config import KerasLayer, keras_kinds, keras_layers, parsed_config
from lstmsim.importers.weights.keras_stacks import keras_models, parts_of
from lstmsim.importers.weights.tensors import Stored, shape_text

__all__ = ["from_hdf5", "left_out", "recurrent_groups"]

MAX_CONFIG = 16 * 2**20
MAX_LAYERS = 1000
_NAMED = ("kernel", "recurrent_kernel", "bias")
_NUMBERED = ("0", "1", "2")
#: Where Keras 3 puts the variables of a layer's only cell, or of one of several cells of an RNN.
_CELL = re.compile(r"cell(_\d+)?/vars$")
_BY_GATES = {4: "lstm", 3: "gru", 1: "rnn"}
_ALONE = (
    "the file holds weights only: activations tanh and sigmoid are taken, Keras's defaults since version 2.3; forward "
    "direction and initial states of 0 are taken, for go_backwards, initial_state and other backward layers are not in "
    "it; how its layers are connected is not in it, so that each stands alone"
)


@dataclass(frozen=True)
class _Group:
    """A group with the variables of one recurrent cell: their names in the file, kernel first."""

    path: str
    names: tuple[str, ...]

    @property
    def parts(self) -> list[str]:
        return self.path.split("/")


def from_hdf5(content: bytes, name: str, weights: bool, cell: str | None) -> list[ImportedModel]:
    """Import the recurrent layers in an HDF5 file of Keras.

    content: the whole file.
    name: its name.
    weights: False reads shapes only.
    cell: `rnn` or `rnn-relu`, the cell of a SimpleRNN if the file holds weights only.

    `InputError` if there is no recurrent layer or one cannot be simulated.
    """
    with open_hdf5(content, "") as file:
        text = text_attribute(file, "model_config", MAX_CONFIG)
        top = "model_weights" if is_there(file, "model_weights") else ""
        groups = recurrent_groups(datasets_below(file, top))
        size = len(content)
        if text is not None:
            config = parsed_config(text, "model_config")
            layers = keras_layers(config)
            parts = parts_of(layers, lambda layer, side: _variables(file, groups, layer, side, size))
            used = {each for part in parts for each in part.variables}
            return keras_models(parts, name, weights, left_out(groups, used), keras_kinds(config))
        version = text_attribute(file, "keras_version", 100)
        alone = _alone(file, groups, size, cell, version)
        names = {layer.path: sides for layer, sides in alone}
        parts = parts_of(
            [layer for layer, _ in alone],
            lambda layer, side: _stored(file, names[layer.path]["backward" if side == "backward" else "forward"], size),
        )
        return keras_models(parts, name, weights, [_ALONE])


def left_out(groups: Sequence[_Group], used: Collection[str]) -> list[str]:
    """Note the recurrent cells of a file that its configuration does not describe: cells in a user's own layers.

    groups: the recurrent cells of the file.
    used: names of the variables that described layers have.
    """
    more = [show(each.path) for each in groups if not set(each.names) & set(used)]
    if not more:
        return []
    some = listed(more[:3], "and") + (f" and {len(more) - 3} more" if len(more) > 3 else "")
    return [f"the file has variables of cells that its configuration does not describe, they are left out: {some}"]


def recurrent_groups(groups: Mapping[str, Sequence[str]]) -> list[_Group]:
    """List the groups that hold the variables of a recurrent cell, told by the names of the variables.

    groups: path of each group to the names of its datasets.
    """
    recurrent = []
    for path, names in groups.items():
        plain = {name.removesuffix(":0"): name for name in names}
        if "recurrent_kernel" in plain and "kernel" in plain:
            recurrent.append(_Group(path, tuple(f"{path}/{plain[name]}" for name in _NAMED if name in plain)))
        elif _CELL.search(path) and {"0", "1"} <= set(names):
            recurrent.append(_Group(path, tuple(f"{path}/{name}" for name in _NUMBERED if name in names)))
    return recurrent


def _variables(file: Any, groups: Sequence[_Group], layer: KerasLayer, side: str, size: int) -> dict[str, Stored]:
    """The variables of a layer that the configuration describes; the names of its models tell the group."""
    top = layer.names[0]
    own = [each for each in groups if each.path.startswith((f"model_weights/{top}/", f"{top}/"))]
    if len(layer.names) > 1:
        own = [each for each in own if layer.name in each.parts[1:]]
    if side:
        own = [each for each in own if any(part.startswith(f"{side}_") for part in each.parts)]
    if len(own) != 1:
        some = "no" if not own else f"{len(own)}"
        raise InputError(Mistake(side, f"has {some} groups of variables kernel and recurrent_kernel in the file"))
    stored = _stored(file, own[0], size)
    wanted = 3 if layer.use_bias else 2
    if len(stored) != wanted:
        raise InputError(Mistake(own[0].path, f"has {len(stored)} variables, its configuration needs {wanted}"))
    return stored


def _stored(file: Any, group: _Group, size: int) -> dict[str, Stored]:
    return {name: stored_at(file, name, size) for name in group.names}


def _alone(
    file: Any, groups: Sequence[_Group], size: int, cell: str | None, version: bytes | None
) -> list[tuple[KerasLayer, dict[str, _Group]]]:
    """The layers of a file without configuration, each with the groups of its directions."""
    if not groups:
        raise InputError("holds no configuration and no variables of an LSTM, a GRU or a SimpleRNN")
    if version is not None and _is_old(version):
        raise InputError(
            f"holds weights only, of Keras {show(version.decode('utf-8', 'replace'))}: recurrent_activation was "
            "hard_sigmoid by default before version 2.3, which is not simulated; save the whole model instead"
        )
    layers: dict[str, dict[str, _Group]] = {}
    for group in groups:
        stem, side = _side(group)
        if side in layers.setdefault(stem, {}) or len(layers) > MAX_LAYERS:
            raise InputError(Mistake(group.path, "is one of several cells of a layer; a layer of one cell can be read"))
        layers[stem][side] = group
    # One direction alone is no bidirectional layer: only its name begins like that of a direction.
    whole = {
        stem if len(sides) > 1 else _stem(each): sides if len(sides) > 1 else {"forward": each}
        for stem, sides in layers.items()
        for each in sides.values()
    }
    return [_told(file, stem, sides, size, cell) for stem, sides in whole.items()]


def _is_old(version: bytes) -> bool:
    """Whether the version of Keras is before 2.3; versions that end in -tf are TensorFlow's Keras and never are."""
    parts = version.split(b"-")[0].split(b".")[:2]
    numbers = [int(each) for each in parts if each.isdigit()]
    return len(numbers) == 2 and numbers < [2, 3] and b"tf" not in version


def _side(group: _Group) -> tuple[str, str]:
    """The layer that a group belongs to, and which of the layer's directions the group is."""
    parts = group.parts
    for place, part in enumerate(parts):
        for side in ("forward", "backward"):
            if part.startswith(f"{side}_"):
                return "/".join(parts[:place]), side
    return _stem(group), "forward"


def _stem(group: _Group) -> str:
    return group.path.removesuffix("/vars").removesuffix("/cell")


def _told(
    file: Any, stem: str, sides: dict[str, _Group], size: int, cell: str | None
) -> tuple[KerasLayer, dict[str, _Group]]:
    """The layer whose cell and size follow from the shapes of its variables, with its groups by direction."""
    shapes = [stored.shape for stored in _stored(file, next(iter(sides.values())), size).values()]
    recurrent = shapes[1]
    if len(shapes[0]) != 2 or len(recurrent) != 2 or not recurrent[0] or recurrent[1] % recurrent[0]:
        text = f"has variables of shapes {', '.join(map(shape_text, shapes))}, which no LSTM, GRU or SimpleRNN has"
        raise InputError(Mistake(stem, text))
    if not 1 <= recurrent[0] <= MAX_SIZE or recurrent[1] // recurrent[0] not in _BY_GATES:
        text = f"has a recurrent kernel of shape {shape_text(recurrent)}: expected 4 (LSTM), 3 (GRU) or 1 (SimpleRNN)"
        raise InputError(Mistake(stem, f"{text} times as many columns as rows"))
    kind = _BY_GATES[recurrent[1] // recurrent[0]]
    if kind == "gru":
        if len(shapes) < 3:
            raise InputError(
                Mistake(stem, "is a GRU without biases: its weights do not tell reset_after; save the whole model")
            )
        kind = "gru" if len(shapes[2]) == 2 else "gru-lbr0"
    if kind == "rnn":
        if cell is None:
            text = "is a SimpleRNN, whose activation the file does not hold: say --cell rnn (tanh) or --cell rnn-relu"
            raise InputError(Mistake(stem, text))
        kind = cell
    return KerasLayer(_name(stem), stem, kind, recurrent[0], len(shapes) > 2, False, "concat" * (len(sides) > 1)), sides


def _name(stem: str) -> str:
    """A layer's name from the path of its variables: the last part that is no name of a cell.

    A cell of a layer of several cells has its own name.
    """
    every = stem.split("/")
    parts = [part for part in every if not part.endswith(("_cell", "cell")) and part != "layers"]
    return every[-1] if "cells" in every[:-1] else parts[-1] if parts else stem
