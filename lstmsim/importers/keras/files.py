"""Keras's files: `.keras` (a zip of config.json and an HDF5 file) and `.h5`, whole models or weights alone.

A whole `.h5` has its configuration as the attribute `model_config` and its weights in `model_weights/LAYER/...`,
called `kernel`, `recurrent_kernel` and `bias` (Keras 2: with `:0`). Weights alone lie in the same way at the top
(Keras 2), or as `layers/CLASS/cell/vars/0` to `2` (Keras 3, `.weights.h5`); their shapes tell the cells.
HDF5 files are checked before anything in them is read, in memory: links to elsewhere, virtual datasets, external
storage, references and datasets of more numbers than the file has bytes are refused. Needs h5py (extra `keras`).
Source: keras/src/legacy/saving/legacy_h5_format.py and keras/src/saving/saving_lib.py.
"""

from __future__ import annotations

import io
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from lstmsim.base.bounded import bounded_file, open_zip, placed, read_member
from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.importers.imported import ImportedModel
from lstmsim.importers.keras.models import (
    KerasLayer,
    Variables,
    keras_kinds,
    keras_layers,
    keras_models,
    parsed_config,
    parts_of,
)
from lstmsim.importers.tensors import Stored, shape_text
from lstmsim.model.cells import cell as cell_named
from lstmsim.model.numerics.weights import Floats

MAX_DEPTH = 40
MAX_OBJECTS = 100_000
_KINDS = {2: "F16", 4: "F32", 8: "F64"}
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
MAX_CONFIG = 16 * 2**20
MAX_WEIGHTS = 2**30
_WEIGHTS = "model.weights.h5"
#: The folder of the layers' weights, and its name in files of Keras 2.12 to 2.15.
_FOLDERS = ("layers", "_layer_checkpoint_dependencies")


@contextmanager
def _open_hdf5(content: bytes, place: str) -> Iterator[Any]:
    try:
        import h5py
    except ImportError:
        raise InputError("reading Keras files needs the extra: pip install 'lstmsim[keras]'") from None
    if not _sound_heaps(content):
        raise InputError(Mistake(place, "is no HDF5 file, or is damaged or cut off"))
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            yield file
    except InputError:
        raise
    except Exception:
        # HDF5 reports damage by many classes of error, and has no common class for them.
        raise InputError(Mistake(place, "is no HDF5 file, or is damaged or cut off")) from None


def _sound_heaps(content: bytes) -> bool:
    """Whether the heaps of texts can be walked through: HDF5 never ends at an entry that states no size."""
    # Source: HDF5 file format specification, III.E, global heap.
    place, count = content.find(b"GCOL\x01\0\0\0"), 0
    while place >= 0:
        at, end = place + 16, place + int.from_bytes(content[place + 8 : place + 16], "little")
        if end > len(content):
            return False
        while at + 16 <= end:
            index, size = struct.unpack_from("<H6xQ", content, at)
            step = 16 + -(-size // 8) * 8 if index else size
            count += 1
            if not 0 < step <= end - at or count > MAX_OBJECTS:
                return False
            at += step
        place = content.find(b"GCOL\x01\0\0\0", place + 8)
    return True


def _at(file: Any, path: str) -> Any:
    """The object of the file at a path; None if there is none. Only hard links inside the file are followed."""
    import h5py

    each = file
    for part in path.split("/"):
        link = each.get(part, getlink=True) if isinstance(each, h5py.Group) else None
        if link is None:
            return None
        if not isinstance(link, h5py.HardLink):
            raise InputError(Mistake(path, "is a link to somewhere else, which is never followed"))
        each = each[part]
    return each


def _stored_at(file: Any, path: str, size: int) -> Stored:
    import h5py

    each = _at(file, path)
    if each is None:
        raise InputError(Mistake(path, "is missing"))
    if not isinstance(each, h5py.Dataset):
        raise InputError(Mistake(path, "is a group, expected a dataset"))
    if each.is_virtual or each.external:
        raise InputError(Mistake(path, "takes its numbers from other files, which are never opened"))
    shape = tuple(int(length) for length in each.shape or ())
    if each.dtype.kind != "f" or each.dtype.itemsize not in _KINDS:
        raise InputError(Mistake(path, f"holds {each.dtype}, expected floating-point numbers"))
    if prod(shape) * each.dtype.itemsize > size:
        text = f"has shape {shape_text(shape)}, which needs more bytes than the whole file of {size} has"
        raise InputError(Mistake(path, text))

    def read() -> Floats:
        wide = np.float64 if each.dtype.itemsize == 8 else np.float32
        return np.asarray(each[()], wide)

    return Stored(_KINDS[each.dtype.itemsize], shape, read)


def _datasets_below(file: Any, path: str = "") -> dict[str, tuple[str, ...]]:
    """List every group at and below `path` that holds datasets: its path to the names of its datasets, sorted."""
    import h5py

    datasets: dict[str, tuple[str, ...]] = {}
    waiting, count = [(path, 0)], 0
    while waiting:
        own, depth = waiting.pop()
        group = file[own] if own else file
        names = [name for name in sorted(group) if isinstance(group.get(name, getlink=True), h5py.HardLink)]
        count += len(names)
        if depth > MAX_DEPTH or count > MAX_OBJECTS:
            text = f"holds more than {MAX_OBJECTS} objects, or groups more than {MAX_DEPTH} deep"
            raise InputError(Mistake(show(own[:200]), text))
        kinds = {name: group.get(name, getclass=True) for name in names}
        own_data = tuple(name for name in names if kinds[name] is h5py.Dataset)
        if own_data:
            datasets[own] = own_data
        stem = f"{own}/" if own else ""
        waiting += [(f"{stem}{name}", depth + 1) for name in reversed(names) if kinds[name] is h5py.Group]
    return datasets


def _text_attribute(file: Any, name: str, limit: int) -> bytes | None:
    import h5py

    if name not in file.attrs:
        return None
    identity = file.attrs.get_id(name)
    kind = identity.dtype
    if identity.shape != () or kind.kind not in "OS" or (kind.kind == "O" and h5py.check_string_dtype(kind) is None):
        raise InputError(Mistake(name, "is no text"))
    value = file.attrs[name] if kind.kind == "O" or kind.itemsize <= limit else b"x" * (limit + 1)
    content = value.encode("utf-8", "replace") if isinstance(value, str) else bytes(value)
    if len(content) > limit:
        raise InputError(Mistake(name, f"is a text of more than {limit} bytes"))
    return content


@dataclass(frozen=True)
class _Group:
    """A group with the variables of one recurrent cell: their names in the file, kernel first."""

    path: str
    names: tuple[str, ...]

    @property
    def parts(self) -> list[str]:
        return self.path.split("/")


def _from_hdf5(content: bytes, name: str, weights: bool, cell: str | None) -> list[ImportedModel]:
    with _open_hdf5(content, "") as file:
        text = _text_attribute(file, "model_config", MAX_CONFIG)
        top = "model_weights" if _at(file, "model_weights") is not None else ""
        groups = _recurrent_groups(_datasets_below(file, top))
        size = len(content)
        if text is not None:
            config = parsed_config(text, "model_config")
            variables = partial(_layer_variables, file, groups, size)
            return _described(config, keras_layers(config), variables, groups, name, weights)
        version = _text_attribute(file, "keras_version", 100)
        alone = _alone(groups, version)
        layers = [_layer_by_shapes(file, stem, sides, size, cell) for stem, sides in alone.items()]
        parts = parts_of(layers, lambda layer, side: _stored(file, alone[layer.path][side or "forward"].names, size))
        return keras_models(parts, name, weights, [_ALONE])


def _described(
    config: Mapping[str, Any],
    layers: Sequence[KerasLayer],
    variables: Variables,
    groups: Sequence[_Group],
    name: str,
    weights: bool,
) -> list[ImportedModel]:
    """The models of a configuration, with a note on recurrent cells that it does not describe: of a user's layers."""
    parts = parts_of(layers, variables)
    used = {each for part in parts for each in part.variables}
    more = [show(each.path) for each in groups if not set(each.names) & used]
    some = listed(more[:3], "and") + (f" and {len(more) - 3} more" if len(more) > 3 else "")
    text = "the file has variables of cells that its configuration does not describe, they are left out"
    return keras_models(parts, name, weights, [f"{text}: {some}"] if more else [], keras_kinds(config))


def _recurrent_groups(groups: Mapping[str, Sequence[str]]) -> list[_Group]:
    """List the groups that hold the variables of a recurrent cell, by the names of the variables."""
    recurrent = []
    for path, names in groups.items():
        plain = {name.removesuffix(":0"): name for name in names}
        if "recurrent_kernel" in plain and "kernel" in plain:
            recurrent.append(_Group(path, tuple(f"{path}/{plain[name]}" for name in _NAMED if name in plain)))
        elif _CELL.search(path) and {"0", "1"} <= set(names):
            recurrent.append(_Group(path, tuple(f"{path}/{name}" for name in _NUMBERED if name in names)))
    return recurrent


def _layer_variables(file: Any, groups: Sequence[_Group], size: int, layer: KerasLayer, side: str) -> dict[str, Stored]:
    """The variables of a layer that the configuration describes; the names of its models tell the group."""
    top = layer.names[0]
    own = [each for each in groups if each.path.startswith((f"model_weights/{top}/", f"{top}/"))]
    if len(layer.names) > 1:
        own = [each for each in own if layer.names[-1] in each.parts[1:]]
    if layer.among is not None:
        own = [each for each in own if each.parts[-1] == layer.among[1]]
    if side:
        own = [each for each in own if any(part.startswith(f"{side}_") for part in each.parts)]
    if len(own) != 1:
        some = "no" if not own else f"{len(own)}"
        raise InputError(Mistake(side, f"has {some} groups of variables kernel and recurrent_kernel in the file"))
    stored = _stored(file, own[0].names, size)
    wanted = 3 if layer.use_bias else 2
    if len(stored) != wanted:
        raise InputError(Mistake(own[0].path, f"has {len(stored)} variables, its configuration needs {wanted}"))
    return stored


def _stored(file: Any, names: Sequence[str], size: int) -> dict[str, Stored]:
    return {name: _stored_at(file, name, size) for name in names}


def _alone(groups: Sequence[_Group], version: bytes | None) -> dict[str, dict[str, _Group]]:
    """The layers of a file without configuration: path of a layer to the groups of its directions."""
    if not groups:
        raise InputError("holds no configuration and no variables of an LSTM, a GRU or a SimpleRNN")
    if version is not None and _is_old(version):
        raise InputError(
            f"holds weights only, of Keras {show(version.decode('utf-8', 'replace'))}: recurrent_activation was "
            "hard_sigmoid by default before version 2.3, and the file does not hold it; save the whole model instead"
        )
    layers: dict[str, dict[str, _Group]] = {}
    for group in groups:
        stem, side = _side(group)
        if side in layers.setdefault(stem, {}) or len(layers) > MAX_LAYERS:
            raise InputError(Mistake(group.path, "is one of several cells of a layer; a layer of one cell can be read"))
        layers[stem][side] = group
    # One direction alone is no bidirectional layer: only its name begins like that of a direction.
    return {
        stem if len(sides) > 1 else _stem(each): sides if len(sides) > 1 else {"forward": each}
        for stem, sides in layers.items()
        for each in sides.values()
    }


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


def _layer_by_shapes(file: Any, stem: str, sides: Mapping[str, _Group], size: int, cell: str | None) -> KerasLayer:
    """The layer whose cell and size follow from the shapes of its variables."""
    shapes = [stored.shape for stored in _stored(file, next(iter(sides.values())).names, size).values()]
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
                Mistake(stem, "is a GRU without biases: its weights do not show reset_after; save the whole model")
            )
        kind = "gru" if len(shapes[2]) == 2 else "gru-lbr0"
    if kind == "rnn":
        if cell is None:
            text = "is a SimpleRNN, whose activation the file does not hold: say --cell rnn (tanh) or --cell rnn-relu"
            raise InputError(Mistake(stem, text))
        kind = cell
    return KerasLayer(
        _name(stem), stem, cell_named(kind), recurrent[0], len(shapes) > 2, False, "concat" * (len(sides) > 1)
    )


def _name(stem: str) -> str:
    """A layer's name from the path of its variables: the last part that is no name of a cell."""
    every = stem.split("/")
    parts = [part for part in every if not part.endswith(("_cell", "cell")) and part != "layers"]
    return every[-1] if "cells" in every[:-1] else parts[-1] if parts else stem


def import_keras(path: str | os.PathLike[str], *, weights: bool = True, cell: str | None = None) -> list[ImportedModel]:
    """Import the recurrent layers in a `.keras` or `.h5` file."""
    name = os.fspath(path)
    with bounded_file(name, "a Keras file") as (file, size):
        start = file.read(8)
        file.seek(0)
        try:
            if start == b"\x89HDF\r\n\x1a\n":
                if size > MAX_WEIGHTS:
                    raise InputError(f"has {size} bytes, at most {MAX_WEIGHTS} are read")
                return _from_hdf5(file.read(), name, weights, cell)
            if start[:4] != b"PK\x03\x04":
                raise InputError("is no Keras file: neither a zip file (.keras) nor HDF5 (.h5)")
            with open_zip(file) as archive:
                config = parsed_config(read_member(archive, "config.json", MAX_CONFIG), "config.json")
                content = read_member(archive, _WEIGHTS, MAX_WEIGHTS)
            layers = keras_layers(config)
            with _open_hdf5(content, _WEIGHTS) as inner:
                groups, variables = _recurrent_groups(_datasets_below(inner)), partial(_variables, inner, len(content))
                return _described(config, layers, variables, groups, name, weights)
        except InputError as error:
            raise placed(error, name) from None


def _variables(file: Any, size: int, layer: KerasLayer, side: str) -> dict[str, Stored]:
    """The variables 0, 1 and 2 of a layer's cell."""
    path = layer.entry_path
    if _at(file, path) is None and _at(file, _FOLDERS[1]) is not None:
        path = path.replace(_FOLDERS[0], _FOLDERS[1])
    stem = f"{path}/{side}_layer" if side else path
    return _stored(file, [f"{stem}/{layer.inside}/vars/{number}" for number in range(3 if layer.use_bias else 2)], size)
