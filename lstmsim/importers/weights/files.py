"""Weights in files: lstmsim's own files are written and read, files of other frameworks are imported."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from lstmsim.base.bounded import placed
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.importers.weights.canonical import (
    canonical_network,
    canonical_shapes,
    canonical_states,
    canonical_tensors,
    is_canonical,
)
from lstmsim.importers.weights.imported import ImportedModel
from lstmsim.importers.weights.pytorch_models import import_groups
from lstmsim.importers.weights.pytorch_names import Group, groups, layers_of, network_of
from lstmsim.importers.weights.pytorch_norms import whole_weights
from lstmsim.importers.weights.safetensors import read_safetensors, write_safetensors
from lstmsim.importers.weights.tensors import Stored
from lstmsim.model.model import Model
from lstmsim.model.numerics.weights import Network, States

__all__ = ["RNN_CELLS", "SUFFIXES", "import_weights", "read_states", "read_weights", "write_weights"]

#: Endings of the files that can be imported.
SUFFIXES = (".onnx", ".safetensors", ".keras", ".h5", ".hdf5", ".pt", ".pth", ".ckpt", ".bin", ".pth.tar")
#: The cells that an RNN can be if its file does not hold its function.
RNN_CELLS = ("rnn", "rnn-relu")


def write_weights(network: Network, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Write a network's numbers as safetensors in lstmsim's layout.

    network: float64 numbers are written as F64, all others as F32.
    path: the file.
    metadata: texts on the file (source, licence).

    >>> import tempfile, pathlib
    >>> from lstmsim.model.numerics.weights import random_network
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> model = Model("m", (Layer(cell("gru"), 4, 3),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "m.safetensors")
    ...     write_weights(random_network(model, seed=1), path, {"licence": "MIT"})
    ...     read_weights(path, model).passes[0][0].matrices["nx", "x"].shape
    (4, 3)
    """
    write_safetensors(path, canonical_tensors(network), metadata)


def read_weights(path: str | os.PathLike[str], model: Model) -> Network:
    """Read a model's numbers from a safetensors file in lstmsim's layout or with PyTorch's names.

    `InputError` with every tensor that is missing, unknown, of the wrong shape or not finite.
    """
    name = os.fspath(path)
    tensors = read_safetensors(name).tensors
    try:
        if is_canonical(tensors):
            return canonical_network(tensors, model)
        tensors = whole_weights(tensors)
        modules = groups(tensors)
        if modules:
            return network_of(tensors, _fitting(tensors, modules, model), model)
        some = next(iter(canonical_shapes(model)))
        raise InputError(
            f"holds no tensor of model {show(model.name)}: expected names like {some} or PyTorch's weight_ih_l0; "
            f"it has {listed([show(each) for each in list(tensors)[:3]], 'and')}"
        )
    except InputError as error:
        raise placed(error, name) from None


def read_states(path: str | os.PathLike[str], model: Model) -> States:
    """Read the states before the first step from a safetensors file with tensors like `layers.0.forward.initial.h`.

    `InputError` with every tensor that is unknown, of the wrong shape or not finite.
    """
    name = os.fspath(path)
    tensors = read_safetensors(name).tensors
    try:
        return canonical_states(tensors, model)
    except InputError as error:
        raise placed(error, name) from None


def _fitting(tensors: Mapping[str, Stored], modules: list[Group], model: Model) -> Group:
    """The only module of a file, or the only module whose shapes are those of the model."""
    if len(modules) == 1:
        return modules[0]
    fitting, same = [], show(model.name)
    function = next((layer.cell.name for layer in model.layers if layer.cell.name in RNN_CELLS), "rnn")
    for group in modules:
        try:
            fitting += [group] if layers_of(tensors, group, function) == model.layers else []
        except InputError:
            continue
    if len(fitting) == 1:
        return fitting[0]
    how = f"several of which have the shapes of model {same}" if fitting else f"none of which has those of model {same}"
    titles = listed([show(group.title) for group in fitting or modules][:8], "and")
    raise InputError(
        f"holds {len(modules)} recurrent modules, {how}: {titles}; lstmsim import writes one file for each"
    )


def import_weights(
    path: str | os.PathLike[str], *, weights: bool = True, heads: bool = False, cell: str | None = None
) -> list[ImportedModel]:
    """Import every recurrent model in a file of another framework. Nothing in a file is ever executed.

    path: the file; its suffix is one of `SUFFIXES` and tells the format.
    weights: False reads shapes only.
    heads: whether plain products behind the last recurrent layer become `dense` layers; only ONNX files say what such
        a product reads.
    cell: `rnn` (tanh) or `rnn-relu`, the cell of an RNN if the file does not hold its function.

    `InputError` names what is wrong.

    >>> import_weights("speech.txt")
    Traceback (most recent call last):
    lstmsim.InputError: speech.txt: expected a file name that ends in .onnx, .safetensors, .keras, .h5, .hdf5, \
.pt, .pth, .ckpt, .bin or .pth.tar
    """
    name = os.fspath(path)
    if not name.lower().endswith(SUFFIXES):
        raise InputError(Mistake(name, f"expected a file name that ends in {listed(SUFFIXES)}"))
    if cell is not None and cell not in RNN_CELLS:
        raise InputError(Mistake("--cell", f"expected {listed(RNN_CELLS)}, got {show(cell)}"))
    models = _imported(name, os.path.splitext(name)[1].lower(), weights, heads, cell)
    return [replace(each, files=(os.path.abspath(name), *each.files)) for each in models]


def _imported(name: str, suffix: str, weights: bool, heads: bool, cell: str | None) -> list[ImportedModel]:
    if suffix == ".onnx":
        from lstmsim.importers.onnx.file import read_onnx

        if cell is not None:
            raise InputError(Mistake(name, f"an ONNX file says what its RNNs are; leave out --cell {cell}"))
        return list(read_onnx(name, weights=weights, heads=heads).models)
    if heads:
        raise InputError(
            Mistake(name, f"heads can be taken from .onnx only: {suffix} does not say what a product reads")
        )
    if suffix == ".safetensors":
        tensors = read_safetensors(name).tensors
        try:
            return import_groups(tensors, name, weights=weights, cell=cell)
        except InputError as error:
            raise placed(error, name) from None
    if suffix in (".keras", ".h5", ".hdf5"):
        from lstmsim.importers.weights.keras_file import import_keras

        return import_keras(name, weights=weights, cell=cell)
    from lstmsim.importers.weights.pytorch_file import import_pytorch

    return import_pytorch(name, weights=weights, cell=cell)
