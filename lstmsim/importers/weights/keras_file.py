"""Keras 3 model files (`.keras`): a zip of config.json and an HDF5 file of weights, both read in memory."""

from __future__ import annotations

import os
from typing import Any

from lstmsim.base.bounded import bounded_file, placed
from lstmsim.base.errors import InputError
from lstmsim.base.zip_members import open_zip, read_member
from lstmsim.importers.weights.hdf5 import datasets_below, is_there, open_hdf5, stored_at
from lstmsim.importers.weights.imported import ImportedModel
from lstmsim.importers.weights.keras_config import KerasLayer, keras_kinds, keras_layers, parsed_config
from lstmsim.importers.weights.keras_h5 import from_hdf5, left_out, recurrent_groups
from lstmsim.importers.weights.keras_stacks import keras_models, parts_of
from lstmsim.importers.weights.tensors import Stored

__all__ = ["import_keras"]

MAX_CONFIG = 16 * 2**20
MAX_WEIGHTS = 2**30
_WEIGHTS = "model.weights.h5"
#: The folder of the layers' weights, and its name in files of Keras 2.12 to 2.15.
_FOLDERS = ("layers", "_layer_checkpoint_dependencies")


def import_keras(path: str | os.PathLike[str], *, weights: bool = True, cell: str | None = None) -> list[ImportedModel]:
    """Import the recurrent layers in a `.keras` or `.h5` file.

    Layers that feed each other directly with whole sequences become one model.

    path: the file.
    weights: False reads shapes only.
    cell: `rnn` or `rnn-relu`, the cell of a SimpleRNN if the file holds weights only.

    `InputError` if there is no recurrent layer or one cannot be simulated.

    >>> import_keras("no-such-file.keras")
    Traceback (most recent call last):
    lstmsim.InputError: no-such-file.keras: no such file or folder
    """
    name = os.fspath(path)
    with bounded_file(name, "a Keras file") as (file, size):
        start = file.read(8)
        file.seek(0)
        try:
            if start == b"\x89HDF\r\n\x1a\n":
                if size > MAX_WEIGHTS:
                    raise InputError(f"has {size} bytes, at most {MAX_WEIGHTS} are read")
                return from_hdf5(file.read(), name, weights, cell)
            if start[:4] != b"PK\x03\x04":
                raise InputError("is no Keras file: neither a zip file (.keras) nor HDF5 (.h5)")
            with open_zip(file) as archive:
                config = parsed_config(read_member(archive, "config.json", MAX_CONFIG), "config.json")
                content = read_member(archive, _WEIGHTS, MAX_WEIGHTS)
            layers = keras_layers(config)
            with open_hdf5(content, _WEIGHTS) as inner:
                parts = parts_of(layers, lambda layer, side: _variables(inner, layer, side, len(content)))
                used = {each for part in parts for each in part.variables}
                notes = left_out(recurrent_groups(datasets_below(inner)), used)
            return keras_models(parts, name, weights, notes, keras_kinds(config))
        except InputError as error:
            raise placed(error, name) from None


def _variables(file: Any, layer: KerasLayer, side: str, size: int) -> dict[str, Stored]:
    """The variables 0, 1 and 2 of a layer's cell."""
    path = layer.path
    if not is_there(file, path) and is_there(file, _FOLDERS[1]):
        path = path.replace(_FOLDERS[0], _FOLDERS[1])
    stem = f"{path}/{side}_layer" if side else path
    names = [f"{stem}/cell/vars/{number}" for number in range(3 if layer.use_bias else 2)]
    return {each: stored_at(file, each, size) for each in names}
