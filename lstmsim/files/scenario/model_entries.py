"""Checked model entries become `Model`s: layers must chain, cells must exist, and paths of weights are resolved."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lstmsim.base.errors import InputError
from lstmsim.base.wording import listed, nearest, show
from lstmsim.files.catalog import input_files
from lstmsim.files.scenario.cell_entries import read_cells
from lstmsim.files.scenario.schema import LayerEntry, ModelFile
from lstmsim.files.yaml.checks import usable, wrong_keys
from lstmsim.files.yaml.document import DataPath, Document
from lstmsim.model.cell import Cell
from lstmsim.model.cells import CELLS
from lstmsim.model.model import Layer, Model

__all__ = ["STAND_IN", "file_path", "frames_path", "read_model"]

#: Layers in place of wrong ones, where only the rest of a model is looked at.
STAND_IN = {"layers": [{"cell": "lstm", "hidden": 1, "input": 1}]}


def read_model(
    document: Document, path: DataPath, wrong: list[DataPath], shared: Mapping[str, Cell | None] | None = None
) -> Model | None:
    """Read a model; None if it has mistakes. Layers that do not chain, unknown and wrong cells are noted as mistakes.

    path: path of the model in the document.
    wrong: paths of the mistakes in single keys, which have been noted before.
    shared: cells of the scenario. A layer takes a cell of the model first, then of the scenario, then a built-in cell.
    """
    data = document.at(path)
    cells = {**CELLS, **(shared or {}), **read_cells(document, path, wrong)}
    keys = wrong_keys(path, wrong) - {"layers"}
    entries = data.get("layers") if isinstance(data, dict) else None
    if not isinstance(entries, list) or not entries:
        return None
    known = [_known_cell(document, (*path, "layers", index), each, cells) for index, each in enumerate(entries)]
    layers = []
    for index, each in enumerate(entries):
        place = (*path, "layers", index)
        entry = usable(LayerEntry, each, wrong_keys(place, wrong))
        if entry is None:
            return None
        layers.append(_layer(entry, cells))
    head = usable(ModelFile, data, keys, STAND_IN)
    if head is None:
        return None
    name = head.name or f"model-{layers[0].cell.name}-{layers[0].hidden}"
    weights = file_path(document, (*path, "weights"), head.weights)
    try:
        model = Model(name, tuple(layers), head.layer_order, weights, head.states_from, head.states_whole)
    except InputError as error:
        for mistake in error.mistakes:
            parts = mistake.place.removeprefix(f"model {name}: ").split(".")
            document.blame((*path, *(int(part) if part.isdigit() else part for part in parts)), mistake.sentence)
        return None
    return model if all(known) else None


def _layer(entry: LayerEntry, cells: Mapping[str, Cell | None]) -> Layer:
    """Make a layer. An unknown cell gets a stand-in, so that the rest of the stack can still be checked."""
    instead = CELLS["rnn" if entry.projection is None else "lstm-projection"]
    cell = cells.get(entry.cell) or instead
    return Layer(cell, entry.hidden, entry.input, entry.bidirectional, entry.projection, entry.reverse)


def _known_cell(document: Document, place: DataPath, layer: Any, cells: Mapping[str, Cell | None]) -> bool:
    """Tell whether the layer names a right cell; an unknown cell is noted in the document."""
    name = layer.get("cell") if isinstance(layer, dict) else None
    if isinstance(name, str) and name not in cells:
        hint = nearest(name, cells) or f"; there are: {listed(cells, 'and')}"
        document.blame((*place, "cell"), f"no cell called {show(name)}{hint}")
        return False
    return not isinstance(name, str) or cells[name] is not None


def file_path(document: Document, path: DataPath, name: str | None) -> str:
    """Resolve the name of a file against the folder of the file that holds the name; empty for None.

    path: path of the name in the document. A name in data or on the command line is resolved against the document's
    folder.
    """
    if name is None:
        return ""
    folder = document.folder
    for cut in range(len(path), -1, -1):
        place = document.values.get(path[:cut])
        if place is not None:
            folder = Path(place.file).parent if place.line else document.folder
            break
    return str(folder / name)


def frames_path(document: Document, path: DataPath, name: str | None) -> str:
    """Resolve the name of a file of frames as `file_path` does; a missing file may be one that comes with lstmsim."""
    file = file_path(document, path, name)
    # only missing files are looked up, because a scenario may have thousands of jobs
    if name is None or os.path.lexists(file):
        return file
    return str(input_files().get(name, file))
