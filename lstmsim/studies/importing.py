"""Networks of other frameworks, turned into model files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from typing import TYPE_CHECKING, Annotated, Any

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import Path, takes

if TYPE_CHECKING:
    from lstmsim.importers.imported import ImportedModel


@record
class ImportRequest:
    """The file of a network, and the model file that it becomes."""

    file: Annotated[
        Path,
        Key("File of the network: .onnx, .safetensors, .keras, .h5, .pt, .jit, .pth, .ckpt, .bin; it is not executed."),
    ]
    out: Annotated[
        Path | None,
        Key(
            "Model file to write (.yaml), with its weights next to it; several models are numbered.",
            flag="--out",
            follows="FILE's name here, as .yaml; nothing in Python",
            metavar="FILE",
        ),
    ] = None
    _: KW_ONLY
    name: Annotated[str | None, Key("Name of the model.", follows="FILE's name", metavar="NAME")] = None
    licence: Annotated[str | None, Key("Licence of the network, kept in the model file.", metavar="TEXT")] = None
    weights: Annotated[bool, Key("Read and write shapes only (in Python weights=False).")] = True
    heads: Annotated[bool, Key("Turn plain products after the last layer into dense layers (ONNX).")] = False
    cell: Annotated[
        str | None,
        Key("Cell of an RNN if FILE does not say it: tanh (rnn) or relu (rnn-relu).", choices=("rnn", "rnn-relu")),
    ] = None
    force: Annotated[bool, Key("Replace model files and weights that are there already.")] = False


@takes(ImportRequest)
def import_model(request: ImportRequest) -> tuple[ImportedModel, ...]:
    """Read the recurrent parts of a network's file, each as a model that a job can run.

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

    check_name(request.name)
    read = import_weights(request.file, weights=request.weights, heads=request.heads, cell=request.cell)
    models = renamed(read, request.name)
    if request.out is not None:
        targets = targets_of(os.fspath(request.out), len(models))
        # All names are looked at before the first file is written.
        there = [each for each in targets if os.path.lexists(each)]
        if there and not request.force:
            raise InputError([Mistake(each, "exists already; force=True replaces it") for each in there])
        for model, path in zip(models, targets, strict=True):
            save_model(model, path, licence=request.licence, force=request.force)
    return tuple(models)


def scenario_of(file: str, chip: str | None, steps: int | None) -> tuple[Any, list[str]]:
    """Make the scenario of a network's or a model's file, a job for each model, and notes on what the network loses.

    chip, steps: None for other files, which are scenarios; a network may set its steps.
    """
    from lstmsim.files.scenario.scenario_file import model_and_steps
    from lstmsim.files.yaml.source import read_document
    from lstmsim.importers.files import SUFFIXES, import_weights

    if chip is None and steps is None and not file.lower().endswith(SUFFIXES):
        return file, []
    models: Sequence[Any] = ()
    name, notes = os.path.basename(file), list[str]()
    if file.lower().endswith(SUFFIXES):
        models = import_weights(file)
        notes += [f"note: {note}" for each in models for note in each.notes]
        notes += filter(None, [models[0].operators.warning()] if models[0].operators else [])
    elif os.path.isfile(file) and "jobs" in read_document(file).data:
        keys = {"--chip": (chip, f"chip={chip}"), "--steps": (steps, f"jobs.0.steps={steps}")}
        text = "only with a network's or a model's file; in a scenario it is --set"
        raise InputError([Mistake(at, f"{text} {key}") for at, (given, key) in keys.items() if given is not None])
    known = [each.steps for each in models] or [model_and_steps(file)[1]]
    text = f"is missing: {name} has no chip (`lstmsim list chips`); `lstmsim import` makes a model for scenarios of it"
    refuse(
        [Mistake("--chip", text)] if chip is None else [],
        [Mistake("--steps", f"is missing: how many time steps to simulate; lstmsim reads no number from {name}")]
        if not all(known) and not steps
        else [],
    )
    jobs = [{"model": each, **({} if steps is None else {"steps": steps})} for each in models or [file]]
    return {"name": os.path.splitext(name)[0], "chip": chip, "jobs": jobs}, notes


def check_name(name: str | None) -> None:
    """Refuse a name of a model that nobody could read."""
    if name is not None and not (name.strip() and name.isprintable()):
        raise InputError(Mistake("name", f"expected printable letters, got {name!r}"))


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
