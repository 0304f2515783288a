"""Model files as text: the layout that `lstmsim.files.scenario.scenario_file.load_model` reads."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import whole_file
from lstmsim.base.files_kept import note_read, own_ledger
from lstmsim.files.scenario.cell_data import cell_data
from lstmsim.files.yaml.text import scalar_text, yaml_text
from lstmsim.model.cells import CELLS
from lstmsim.model.model import Layer, Model

if TYPE_CHECKING:
    from lstmsim.importers.imported import ImportedModel
    from lstmsim.model.numerics.weights import Network

__all__ = ["model_text", "save_model", "weights_path", "write_model_file"]

_WIDTH = 118


def model_text(
    model: Model, *, source: str, licence: str | None = None, notes: Iterable[str] = (), steps: int | None = None
) -> str:
    """Write a model as the text of a model file: comments first, then the model.

    source: where the model comes from.
    licence: licence of the model; None: not stated.
    notes: further comments.
    steps: steps of a job that states none.

    >>> from lstmsim.model.cells import cell
    >>> print(model_text(Model("m", (Layer(cell("gru"), 8, 4),)), source="an example"), end="")
    # Recurrent network of 1 layer: gru of 8 units over 4 inputs.
    name: m
    source: an example
    layers:
      - {cell: gru, hidden: 8, input: 4}
    layer_order: layer
    """
    lines = [line for text in (_summary(model), *notes) for line in _comment(text)]
    lines += [f"name: {scalar_text(model.name)}", f"source: {scalar_text(source)}"]
    if licence is not None:
        lines.append(f"licence: {scalar_text(licence)}")
    lines += ["layers:", *(f"  - {_entry(layer)}" for layer in model.layers), f"layer_order: {model.layer_order}"]
    if steps is not None:
        lines.append(f"steps: {steps}")
    if model.weights:
        lines.append(f"weights: {scalar_text(model.weights)}")
    if model.states_from:
        lines.append(f"states_from: {scalar_text(model.states_from)}")
        lines += [] if model.states_whole else ["states_whole: false"]
    cells = {layer.cell.name: cell_data(layer.cell) for layer in model.layers if layer.cell.name not in CELLS}
    return "\n".join(lines) + "\n" + (yaml_text({"cells": cells}) if cells else "")


def write_model_file(
    model: Model,
    path: str | os.PathLike[str],
    *,
    source: str,
    licence: str | None = None,
    notes: Iterable[str] = (),
    network: Network | None = None,
    steps: int | None = None,
) -> str:
    """Write a model file, whole or not at all, and return its text.

    path: the file.
    source, licence, notes, steps: as of `model_text`.
    network: numbers of the model. They go into `weights_path(path)`, which the model file names: both files are written
    or none. None: there are no numbers.
    `InputError` if a file cannot be written.

    >>> import tempfile, pathlib
    >>> from lstmsim.model.cells import cell
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "m.yaml")
    ...     text = write_model_file(Model("m", (Layer(cell("gru"), 8, 4),)), path, source="an example")
    ...     path.read_text() == text
    True
    """
    if network is None:
        text = model_text(model, source=source, licence=licence, notes=notes, steps=steps)
        with whole_file(path, "w") as stream:
            stream.write(text)
        return text
    from lstmsim.importers.files import write_weights

    beside = weights_path(path)
    there = os.path.lexists(beside)
    model = replace(model, weights=os.path.basename(beside))
    text = model_text(model, source=source, licence=licence, notes=notes, steps=steps)
    about = {"source": _encodable(source)} | ({"licence": _encodable(licence)} if licence is not None else {})
    try:
        with whole_file(path, "w") as stream:
            stream.write(text)
            write_weights(network, beside, about)
    except BaseException:
        if not there:
            with suppress(OSError):
                os.unlink(beside)
        raise
    return text


def save_model(
    imported: ImportedModel, path: str | os.PathLike[str], *, licence: str | None = None, force: bool = False
) -> str:
    """Write an imported model as a model file with its weights beside it as .safetensors. Returns the file's path.

    imported: result of `import_weights`, `from_torch` or `from_keras`.
    path: file to write, `.yaml` or `.yml`.
    licence: licence of the network, kept in the file.
    force: whether to replace files that are there; files that the network was read from are never replaced.
    `InputError` if a file is there already (without `force`), or cannot be written. Then nothing is written.

    >>> import lstmsim, pathlib, tempfile
    >>> from lstmsim.model.cells import cell
    >>> imported = lstmsim.ImportedModel(Model("speech", (Layer(cell("gru"), 8, 4),)), ("gru",), "an example")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(imported, pathlib.Path(folder, "speech.yaml"))
    ...     report = lstmsim.simulate({"chip": "column-npu-64k", "jobs": [{"model": path, "steps": 20}]})
    >>> report.jobs[0].name
    'speech'
    """
    if not hasattr(imported, "files"):
        text = (
            f"expects an ImportedModel, as lstmsim.import_model gives it; got a value of type {type(imported).__name__}"
        )
        raise InputError(Mistake("save_model", text))
    name = os.fspath(path)
    if not name.lower().endswith((".yaml", ".yml")):
        raise InputError(Mistake(name, "expected a file name that ends in .yaml or .yml"))
    wanted = [name, *([weights_path(name)] if imported.network else [])]
    there = [each for each in wanted if os.path.lexists(each)]
    if there and not force:
        raise InputError([Mistake(each, "exists already; force=True replaces it") for each in there])
    # Only the files that the network was read from may not be replaced. A model file that a simulation has read since
    # may be replaced, because `force` says so.
    with own_ledger():
        for each in imported.files:
            note_read(each)
        write_model_file(
            imported.model,
            name,
            source=imported.source,
            licence=licence,
            notes=imported.comments(),
            network=imported.network,
            steps=imported.steps,
        )
    return name


def weights_path(path: str | os.PathLike[str]) -> str:
    """Name the file of a model's numbers, which stands beside the model's own file `path`.

    >>> weights_path("speech.yaml")
    'speech.safetensors'
    """
    return os.path.splitext(os.fspath(path))[0] + ".safetensors"


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _summary(model: Model) -> str:
    layers = [
        f"{layer.cell.name} of {layer.hidden} units{' in each direction' if layer.bidirectional else ''} "
        f"over {layer.input} inputs{', in reverse' if layer.reverse else ''}"
        for layer in model.layers[:4]
    ]
    count = len(model.layers)
    rest = ", ..." if count > len(layers) else ""
    return f"Recurrent network of {count} layer{'s' if count > 1 else ''}: {', '.join(layers)}{rest}."


def _entry(layer: Layer) -> str:
    more = "" if layer.projection is None else f", projection: {layer.projection}"
    more += ", bidirectional: true" if layer.bidirectional else ""
    more += ", reverse: true" if layer.reverse else ""
    return f"{{cell: {scalar_text(layer.cell.name)}, hidden: {layer.hidden}, input: {layer.input}{more}}}"


def _comment(text: str) -> list[str]:
    """Write text as comment lines; letters that YAML does not allow become question marks."""
    words = "".join(letter if letter.isprintable() else " " if letter.isspace() else "?" for letter in text)
    return textwrap.wrap(words, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_long_words=False)
