"""Keras 3 model files (`.keras`): a zip of config.json and an HDF5 file of weights, both read in memory.

Keras stores `kernel` [input, gates x hidden], `recurrent_kernel` [hidden, gates x hidden] and `bias` as variables 0, 1
and 2 of a cell; gates i f c o and z r h (keras.io: LSTM, GRU). Needs the package h5py (extra `keras`). Links out of a
dataset's own file, virtual datasets and external storage are refused before anything is read.
"""

from __future__ import annotations

import io
import os
from math import prod
from pathlib import PurePath
from typing import Any

import numpy as np

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.imported import ImportedModel, bounded_file, model_names, model_stem, placed
from lstmsim.formats.weights.gates import Stacked, unstacked
from lstmsim.formats.weights.keras_config import KerasLayer, keras_layers
from lstmsim.formats.weights.tensors import Stored, floats, shape_text
from lstmsim.formats.weights.zip_members import open_zip, read_member
from lstmsim.numerics.weights import Floats, Network, PassWeights
from lstmsim.workload.cells import cell
from lstmsim.workload.model import Layer, Model

__all__ = ["import_keras"]

MAX_CONFIG = 16 * 2**20
MAX_WEIGHTS = 2**30
_WEIGHTS = "model.weights.h5"
_ORDERS = {"lstm": "ifgo", "gru": "zrn", "gru-lbr0": "zrn", "rnn": "a"}
_KINDS = {2: "F16", 4: "F32", 8: "F64"}

#: A layer, its passes, and what a reader of the file calls it.
_Part = tuple[KerasLayer, Layer, tuple[PassWeights, ...]]


def import_keras(path: str | os.PathLike[str], *, weights: bool = True) -> list[ImportedModel]:
    """The recurrent layers in a `.keras` file; `InputError` if there is none or one cannot be simulated.

    Layers that feed each other directly with whole sequences become one model.

    >>> import_keras("no-such-file.keras")
    Traceback (most recent call last):
    lstmsim.errors.InputError: no-such-file.keras: no such file or folder
    """
    name = os.fspath(path)
    with bounded_file(name, "a Keras file") as (file, _):
        start = file.read(4)
        file.seek(0)
        try:
            if start != b"PK\x03\x04":
                old = "; old .h5 files can be saved anew by Keras 3" if start == b"\x89HDF" else ""
                raise InputError(f"is no Keras 3 file: it is no zip file{old}")
            with open_zip(file) as archive:
                found = keras_layers(read_member(archive, "config.json", MAX_CONFIG))
                content = read_member(archive, _WEIGHTS, MAX_WEIGHTS)
            return _models(_parts(content, found), name, weights)
        except InputError as error:
            raise placed(error, name) from None


def _parts(content: bytes, layers: list[KerasLayer]) -> list[_Part]:
    try:
        import h5py
    except ImportError:
        raise InputError("reading Keras files needs the extra: pip install 'lstmsim[keras]'") from None
    parts: list[_Part] = []
    mistakes: list[Mistake] = []
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            for layer in layers:
                try:
                    parts.append(_part(file, layer, len(content)))
                except InputError as error:
                    mistakes += [
                        Mistake(f"layer {layer.name!r}: {each.place}", each.sentence) for each in error.mistakes
                    ]
    except InputError:
        raise
    except Exception:
        # HDF5 reports damage by many classes of error; none of them is of this package.
        raise InputError(Mistake(_WEIGHTS, "is no HDF5 file, or is damaged or cut off")) from None
    if mistakes:
        raise InputError(mistakes)
    return parts


def _part(file: Any, layer: KerasLayer, size: int) -> _Part:
    """A layer with the weights of its directions."""
    sides = ["forward_layer/", "backward_layer/"] if layer.merge else [""]
    rows = len(_ORDERS[layer.cell]) * layer.hidden
    stored: dict[str, Stored] = {}
    expected: dict[str, tuple[int, ...]] = {}
    width = None
    for side in sides:
        names = [f"{layer.path}/{side}cell/vars/{number}" for number in range(3 if layer.use_bias else 2)]
        stored |= {name: _dataset(file, name, size) for name in names}
        kernel = stored[names[0]].shape
        width = width or (kernel[0] if len(kernel) == 2 else 1)
        bias = (2, rows) if layer.cell == "gru" else (rows,)
        expected |= dict(zip(names, [(width, rows), (layer.hidden, rows), bias], strict=False))
    arrays = floats(stored, expected)
    own = Layer(cell(layer.cell), layer.hidden, width or 1, bool(layer.merge))
    passes = tuple(_pass(layer, arrays, f"{layer.path}/{side}cell/vars/") for side in sides)
    return layer, own, passes


def _pass(layer: KerasLayer, arrays: dict[str, Floats], stem: str) -> PassWeights:
    kernel, recurrent, bias = (arrays.get(f"{stem}{number}") for number in range(3))
    assert kernel is not None
    assert recurrent is not None
    own, other = (bias[0], bias[1]) if bias is not None and bias.ndim == 2 else (bias, None)
    parts = Stacked(np.ascontiguousarray(kernel.T), np.ascontiguousarray(recurrent.T), own, other)
    return unstacked(cell(layer.cell), _ORDERS[layer.cell], parts)


def _dataset(file: Any, path: str, size: int) -> Stored:
    """One dataset, looked at before it is read; every step to it must be a hard link inside the file."""
    import h5py

    each: Any = file
    for part in path.split("/"):
        link = each.get(part, getlink=True) if isinstance(each, h5py.Group) else None
        if link is None:
            raise InputError(Mistake(path, "is missing"))
        if not isinstance(link, h5py.HardLink):
            raise InputError(Mistake(path, "is a link to somewhere else, which is never followed"))
        each = each[part]
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


def _models(parts: list[_Part], file: str, weights: bool) -> list[ImportedModel]:
    """Layers that chain as one model, the others one each."""
    stacks: list[list[_Part]] = []
    by_path: dict[str, list[_Part]] = {}
    for part in parts:
        stack = by_path.get(part[0].below)
        if stack is not None and stack[-1][0].path == part[0].below and _chains(stack[-1], part):
            stack.append(part)
        else:
            stack = [part]
            stacks.append(stack)
        by_path[part[0].path] = stack
    names = model_names(model_stem(file), [stack[0][0].name for stack in stacks])
    return [_model(name, stack, PurePath(file).name, weights) for name, stack in zip(names, stacks, strict=True)]


def _chains(lower: _Part, upper: _Part) -> bool:
    whole = lower[0].sequences and lower[0].merge in ("", "concat")
    return whole and lower[1].output == upper[1].input


def _model(name: str, stack: list[_Part], file: str, weights: bool) -> ImportedModel:
    model = Model(name, tuple(layer for _, layer, _ in stack))
    network = Network(model, tuple(passes for _, _, passes in stack))
    nodes = tuple(each.name for each, _, _ in stack)
    notes = tuple(
        f"layer {each.name!r} joins its directions by {each.merge!r}; here they stand side by side"
        for each, _, _ in stack
        if each.merge not in ("", "concat")
    )
    return ImportedModel(model, nodes, f"{file}: {', '.join(nodes)}", notes, network if weights else None)
