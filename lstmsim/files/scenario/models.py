"""Checked entries of models, cells and precision become `Model`s, `Cell`s and `Precision`.

Layers must chain, cells must exist and their graphs must be sound; paths of weights are resolved.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lstmsim.base.checkers import DataPath
from lstmsim.base.errors import InputError
from lstmsim.base.keys import entry_values
from lstmsim.base.wording import listed, nearest, show
from lstmsim.files.catalog import input_files
from lstmsim.files.scenario.schema import CellEntry, LayerEntry, ModelFile, PrecisionEntry, StageEntry
from lstmsim.files.yaml.document import Document, usable, wrong_keys
from lstmsim.model.cell import Cell, Gate, Node, Stage, Sum
from lstmsim.model.cell_rules import in_order, mistakes
from lstmsim.model.cells import CELLS
from lstmsim.model.model import Layer, Model, Precision

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def read_cells(document: Document, path: DataPath, wrong: list[DataPath]) -> Mapping[str, Cell | None]:
    """Read the cells under the key `cells` of a mapping: name -> cell; None for a cell with a noted mistake."""
    holder = document.at(path)
    entries = holder.get("cells") if isinstance(holder, dict) else None
    cells: dict[str, Cell | None] = {}
    for name, data in (entries if isinstance(entries, dict) else {}).items():
        place = (*path, "cells", name)
        if name in CELLS:
            document.blame(place, f"{show(name)} is a built-in cell, take another name", key=True)
            continue
        cells[name] = None
        keys = wrong_keys(place, wrong)
        entry = usable(CellEntry, data, keys)
        if not name or not name.isprintable() or name != name.strip():
            text = f"a cell's name must be printable text without spaces around it, got {show(name)}"
            document.blame(place, text, key=True)
        elif entry is not None and not keys - {"source"}:
            cells[name] = _cell(document, place, name, entry)
    return cells


def _cell(document: Document, place: DataPath, name: str, entry: CellEntry) -> Cell | None:
    nodes, complete = [], True
    for node, text in entry.nodes.items():
        if text.strip():
            nodes.append(node_of(node, text))
        else:
            sentence = f"must be an operation and its inputs, for example 'sigmoid i', got {show(text)}"
            document.blame((*place, "nodes", node), sentence)
            complete = False
    if not complete:
        return None
    stages = tuple(_stage(each) for each in entry.stages)
    cell = Cell(name, stages, tuple(nodes), dict(entry.states), tuple(entry.parameters), entry.source)
    wrong = mistakes(cell)
    # A name may hold points, so the places are looked up, not cut at them.
    paths = {".".join(map(str, each)): each for each in _paths(document.at(place))} if wrong else {}
    for where, text in wrong:
        document.blame((*place, *paths.get(where, ())), text)
    return None if wrong else in_order(cell)


def _stage(entry: StageEntry) -> Stage:
    return Stage(
        tuple(
            Gate(name, tuple(Sum(each, tuple(vectors)) for each, vectors in sums.items()))
            if isinstance(sums, dict)
            else Gate(name, (Sum(name, tuple(sums)),))
            for name, sums in entry.gates.items()
        ),
        entry.rows,
    )


def node_of(name: str, text: str) -> Node:
    """Make a node of its text in a file: the operation, then the inputs. A word that looks like a number is a number.

    >>> node_of("a", "subtract 1 r")
    Node(name='a', operation='subtract', inputs=(1.0, 'r'))
    """
    operation, *inputs = text.split()
    return Node(name, operation, tuple(float(each) if _NUMBER.fullmatch(each) else each for each in inputs))


def _paths(data: Any, path: DataPath = ()) -> Iterator[DataPath]:
    yield path
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, each in pairs:
        yield from _paths(each, (*path, key))


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


_CALIBRATION: DataPath = ("precision", "calibration")


class Numbers(NamedTuple):
    """The numbers of a scenario.

    precision: the widths.
    given: whether the scenario has the key `precision`.
    calibration: name of a model -> the file of its frames.
    """

    precision: Precision
    given: bool
    calibration: dict[str, str]


def read_precision(
    document: Document, wrong: list[DataPath], models: Sequence[Model | None], *, given: bool
) -> Numbers:
    """Read the key `precision` of a document. Mistakes between its keys are noted in the document.

    >>> from lstmsim.files.yaml.document import document_of
    >>> read_precision(document_of({"precision": {"weight_bits": 6}}), [], [], given=True).precision.weight_bits
    6
    """
    keys = wrong_keys(("precision",), wrong)
    entry = usable(PrecisionEntry, document.data.get("precision"), keys) or PrecisionEntry()
    precision = Precision(**{key: value for key, value in entry_values(entry).items() if key != "calibration"})
    for key, text in precision.mistakes():
        document.blame(("precision", key), text)
    return Numbers(precision, given, _calibration(document, entry, models))


def _calibration(document: Document, entry: PrecisionEntry, models: Sequence[Model | None]) -> dict[str, str]:
    """Give the file of each model by its name: one file for all models, or a file for each name in a mapping."""
    names = list(dict.fromkeys(model.name for model in models if model is not None))
    if entry.calibration is None:
        return {}
    if isinstance(entry.calibration, str):
        return dict.fromkeys(names, frames_path(document, _CALIBRATION, entry.calibration))
    for name in entry.calibration:
        if name not in names and None not in models:
            hint = nearest(name, names) or f"; there are: {', '.join(names[:8])}"
            document.blame((*_CALIBRATION, name), f"no job has a model called {show(name)}{hint}", key=True)
    return {name: frames_path(document, (*_CALIBRATION, name), file) for name, file in entry.calibration.items()}
