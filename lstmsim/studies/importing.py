"""Networks of other frameworks, turned into model files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lstmsim.base.errors import InputError, Mistake
from lstmsim.studies.shared.loading import Path

if TYPE_CHECKING:
    from lstmsim.importers.imported import ImportedModel


def import_model(
    file: Path,
    out: Path | None = None,
    *,
    name: str | None = None,
    licence: str | None = None,
    weights: bool = True,
    heads: bool = False,
    cell: str | None = None,
    force: bool = False,
) -> tuple[ImportedModel, ...]:
    """Read the recurrent parts of a network's file, each as a model that a job can run.

    file: .onnx, .safetensors, .keras, .h5, .pt, .pth, .ckpt or .bin; nothing in it is executed.
    out: the model file to write (.yaml), with its weights beside it; several models are numbered. None: nothing is
    written, and the models live in memory.
    name: of the model; the file's name unless given.
    licence: of the network, kept in the model file.
    weights: False reads shapes only.
    heads: make dense layers of plain products behind the last layer (ONNX).
    cell: `rnn` or `rnn-relu`, what an RNN is whose file does not say.
    force: replace model files that are there already.

    `InputError` if the file cannot be read, or if a file to write is there already.

    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from lstmsim.importers.tensors import write_safetensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "speech.safetensors")
    ...     tensors = {"weight_ih_l0": np.zeros((32, 4)), "weight_hh_l0": np.zeros((32, 8))}
    ...     write_safetensors(file, tensors)
    ...     import_model(file)[0].model.layers[0].hidden
    8
    """
    from lstmsim.files.scenario.written import save_model
    from lstmsim.importers.files import import_weights

    if name is not None and not (name.strip() and name.isprintable()):
        raise InputError(Mistake("name", f"expected printable letters, got {name!r}"))
    models = renamed(import_weights(file, weights=weights, heads=heads, cell=cell), name)
    if out is not None:
        targets = targets_of(os.fspath(out), len(models))
        # All names are looked at before the first file is written.
        there = [each for each in targets if os.path.lexists(each)]
        if there and not force:
            raise InputError([Mistake(each, "exists already; force=True replaces it") for each in there])
        for model, path in zip(models, targets, strict=True):
            save_model(model, path, licence=licence, force=force)
    return tuple(models)


def renamed(models: Sequence[ImportedModel], name: str | None) -> list[ImportedModel]:
    """Give the models the name `name` (None: they keep theirs), numbered where they are several."""
    if name is None:
        return list(models)
    names = [name] if len(models) == 1 else [f"{name}-{number}" for number in range(1, len(models) + 1)]
    return [replace(each, model=replace(each.model, name=own)) for each, own in zip(models, names, strict=True)]


def targets_of(target: str, count: int) -> list[str]:
    """Give the names of so many model files: `target` itself for one, else `target` with -1, -2 ... before its suffix.

    >>> targets_of("a.yaml", 1), targets_of("a.yaml", 2)
    (['a.yaml'], ['a-1.yaml', 'a-2.yaml'])
    """
    stem, suffix = os.path.splitext(target)
    return [target] if count == 1 else [f"{stem}-{number}{suffix}" for number in range(1, count + 1)]
