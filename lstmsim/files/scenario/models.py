"""Checked entries of models, cells, chips and precision become descriptions; mistakes between their keys are noted."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_origin

from lstmsim.base.bounds import MAX_CORES
from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError
from lstmsim.base.keys import Described, entry_values, keys_of
from lstmsim.base.records import record
from lstmsim.base.wording import listed, nearest, show
from lstmsim.files.catalog import input_files
from lstmsim.files.scenario.schema import (
    CellEntry,
    LayerEntry,
    ModelFile,
    PrecisionEntry,
    ScenarioFile,
    StageEntry,
    WrongPaths,
    core_entry,
    usable,
)
from lstmsim.files.yaml.document import LABEL, Document
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.machines.target import Fault, Target
from lstmsim.model.cell import Cell, Gate, Node, Stage, Sum
from lstmsim.model.cell_rules import in_order, mistakes
from lstmsim.model.cells import CELLS
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.scenario import Chip

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def read_cells(
    document: Document, holder: Any, path: DataPath, wrong: WrongPaths, right: Mapping[str, CellEntry] | None = None
) -> Mapping[str, Cell | None]:
    """Read the cells under the key `cells` of a mapping: name -> cell; None for a cell with a noted mistake.

    holder, path: the mapping, and its path in the document.
    right: the entries of the cells if no entry of the document has mistakes.
    """
    entries = holder.get("cells") if isinstance(holder, dict) else None
    cells: dict[str, Cell | None] = {}
    for name, data in (entries if isinstance(entries, dict) else {}).items():
        place = (*path, "cells", name)
        if name in CELLS:
            document.blame(place, f"{show(name)} is a built-in cell, take another name", key=True)
            continue
        cells[name] = None
        keys = wrong.below(place) if right is None else set()
        entry = usable(CellEntry, data, keys) if right is None else right[name]
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
    """Make a node of its text in a file: the operation, then the inputs; what looks like a number is a number."""
    operation, *inputs = text.split()
    return Node(name, operation, tuple(float(each) if _NUMBER.fullmatch(each) else each for each in inputs))


def _paths(data: Any, path: DataPath = ()) -> Iterator[DataPath]:
    yield path
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, each in pairs:
        yield from _paths(each, (*path, key))


#: Layers in place of wrong ones, where only the rest of a model is looked at.
STAND_IN = {"layers": [{"cell": "lstm", "hidden": 1, "input": 1}]}


def read_models(document: Document, wrong: WrongPaths, order: ScenarioFile | None) -> list[Model | None]:
    """Read the model of each job entry; None for a wrong model.

    order: the entry of the document, if it has no mistakes.
    """
    cells = read_cells(document, document.data, (), wrong, None if order is None else order.cells)
    jobs = document.data.get("jobs")
    # equal models become one object, because other functions tell models apart by identity
    one: dict[tuple[object, ...], Model] = {}
    models: list[Model | None] = []
    for index, data in enumerate(jobs if isinstance(jobs, list) else []):
        model = None
        if isinstance(data, dict) and "model" in data:
            path, entry = ("jobs", index, "model"), None if order is None else order.jobs[index].model
            model = read_model(document, data["model"], path, wrong, cells, entry)
        if model is not None:
            model = one.setdefault((model, model.weights, model.states_from, model.states_whole), model)
        models.append(model)
    return models


def read_model(
    document: Document,
    data: Any,
    path: DataPath,
    wrong: WrongPaths,
    shared: Mapping[str, Cell | None] | None = None,
    right: ModelFile | None = None,
) -> Model | None:
    """Read a model; None if it has mistakes. A cell is one of the model, else a shared one, else a built-in one.

    data, path: the model's data, and their path in the document.
    right: the model's entry, if no entry of the document has mistakes.
    """
    own = read_cells(document, data, path, wrong, None if right is None else right.cells)
    cells = {**CELLS, **(shared or {}), **own}
    entries = data.get("layers") if isinstance(data, dict) else None
    if not isinstance(entries, list) or not entries:
        return None
    known = [_known_cell(document, (*path, "layers", index), each, cells) for index, each in enumerate(entries)]
    layers = []
    for index, each in enumerate(entries):
        entry = right.layers[index] if right else usable(LayerEntry, each, wrong.below((*path, "layers", index)))
        if entry is None:
            return None
        # an unknown cell gets a stand-in, so that the rest of the stack can still be checked
        instead = CELLS["rnn" if entry.projection is None else "lstm-projection"]
        cell = cells.get(entry.cell) or instead
        layers.append(Layer(cell, entry.hidden, entry.input, entry.bidirectional, entry.projection, entry.reverse))
    head = right or usable(ModelFile, data, wrong.below(path) - {"layers"}, STAND_IN)
    if head is None:
        return None
    name = head.name or f"model-{layers[0].cell.name}-{layers[0].hidden}"
    weights = file_path(document, (*path, "weights"), head.weights)
    try:
        model = Model(name, tuple(layers), head.layer_order, weights, head.states_from, head.states_whole)
    except InputError as error:
        for mistake in error.mistakes:
            parts = mistake.location.removeprefix(f"model {name}: ").split(".")
            document.blame((*path, *(int(part) if part.isdigit() else part for part in parts)), mistake.sentence)
        return None
    if weights and all(known):
        from lstmsim.importers.files import wrong_shape

        text = wrong_shape(weights, model)
        if text:
            document.blame((*path, "weights"), f"do not fit this model: {text}")
    return model if all(known) else None


def _known_cell(document: Document, place: DataPath, layer: Any, cells: Mapping[str, Cell | None]) -> bool:
    """Tell whether the layer names a right cell; an unknown cell is noted in the document."""
    name = layer.get("cell") if isinstance(layer, dict) else None
    if isinstance(name, str) and name not in cells:
        hint = nearest(name, cells) or f"; there are: {listed(cells, 'and')}"
        document.blame((*place, "cell"), f"no cell called {show(name)}{hint}")
        return False
    return not isinstance(name, str) or cells[name] is not None


def file_path(document: Document, path: DataPath, name: str | None) -> str:
    """Resolve the name of a file against the folder of the file that holds the name; empty for None."""
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
    """Widths of a scenario's numbers, whether it has the key `precision`, and files of frames by a model's name."""

    precision: Precision
    given: bool
    calibration: Mapping[str, str]
    own_width: bool = False  # whether the file states the width of weights


def read_numbers(document: Document, wrong: WrongPaths, chip: ChipRead, models: Sequence[Model | None]) -> Numbers:
    """Read the key `precision` of a document, and note what is wrong in it and the width of the chip's weights."""
    given, stated = "precision" in document.data, document.data.get("precision", {})
    bits = _one_width(document, chip.widths, stated.get("weight_bits") if isinstance(stated, dict) else None)
    if isinstance(stated, dict) and bits is not None:
        # the one width of weights is that of `precision` or, if `precision` states none, that of the cores
        stated = document.data["precision"] = {**stated, "weight_bits": bits}
    if not given and not stated:
        return Numbers(Precision(), False, {})
    entry = usable(PrecisionEntry, stated, wrong.below(("precision",))) or PrecisionEntry()
    precision = Precision(**{key: value for key, value in entry_values(entry).items() if key != "calibration"})
    for key, text in precision.mistakes():
        document.blame(("precision", key), text)
    return Numbers(precision, given, _calibration(document, entry, models), bits is not None)


def _one_width(document: Document, widths: Sequence[tuple[DataPath, int]], bits: int | None) -> int | None:
    """Give the width of weights; None if neither `precision` nor a core states it. Other widths of cores are noted."""
    for path, own in widths:
        bits = own if bits is None else bits
        if own != bits:
            text = f"must be {bits}, as in `precision` or on the cores before, got {own}: all numbers have one width"
            document.blame(path, text)
    return bits


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


@record
class ChipRead:
    """A chip as far as it has been read."""

    cores: tuple[Any, ...] = ()  # None for a wrong one
    known: bool = False  # whether the number of cores is right
    target: Target | None = None  # its machine; None: the kind is unknown, or there are no cores
    chip: Chip | None = None  # None if there are mistakes in it
    idle: tuple[Fault, ...] = ()  # faults of the keys that change nothing; not noted yet
    widths: tuple[tuple[DataPath, int], ...] = ()  # widths of weights that cores state, with the paths of their keys


def read_chip(document: Document, data: Any, path: DataPath, wrong: WrongPaths, entry: Any = None) -> ChipRead:
    """Read a chip. Mistakes between the keys of a core, between cores, or between keys are noted in the document.

    data, path: the chip's data, and their path in the document.
    entry: the chip's entry, if no entry of the document has mistakes.
    """
    target, before = _machine(data), len(document.mistakes)
    if target is None:
        return ChipRead()
    entries = data.get("cores")
    if not isinstance(entries, list):
        return ChipRead(idle=tuple(target.without_effect(data)))
    cores, known = _read_cores(document, target, entries, (*path, "cores"), wrong, entry and entry.cores)
    asked = [(index, target.weight_width(each)) for index, each in enumerate(entries) if isinstance(each, dict)]
    widths = tuple(((*path, "cores", index, width[0]), width[1]) for index, width in asked if width is not None)
    idle = tuple(target.without_effect(data))
    if len(cores) > MAX_CORES:
        document.blame((*path, "cores"), f"must be at most {MAX_CORES} cores, counts included")
        return ChipRead(idle=idle, widths=widths)
    for sentence in target.faults_of_all([core for core in cores if core is not None]):
        document.blame((*path, "cores"), sentence)
    if known and None not in cores and not (wrong and wrong.below(path) & set(keys_of(target.chip))):
        # each number is right by itself
        for fault in target.chip_faults(data, cores):
            blame(document, path, fault)
    right = entry is not None and len(document.mistakes) == before
    chip = target.chip_of({**data, "name": entry.name}, cores) if right else None
    return ChipRead(tuple(cores), known, target, chip, idle, widths)


def _read_cores(
    document: Document, target: Target, entries: list[Any], path: DataPath, wrong: WrongPaths, right: Any
) -> tuple[list[Any], bool]:
    """Read the cores, until they are too many. Also tell whether their number is right."""
    cores: list[Any] = []
    known = True
    # equal entries share one core; a core with mistakes is made again for each entry, so that each entry is blamed
    made: dict[str, Any] = {}
    for index, data in enumerate(entries):
        place = (*path, index)
        keys = wrong.below(place) if right is None else set()
        entry: Any = usable(core_entry(target.kind), data, keys) if right is None else right[index]
        known = known and entry is not None and "count" not in keys
        if entry is None or keys & target.together:
            cores.append(None)
        else:
            given = own_keys(data, keys)
            core = made.get(repr(given))
            if core is None:
                core = target.core_of(given)
                faults = [core] if isinstance(core, Fault) else target.core_faults(core)
                for fault in faults:
                    blame(document, place, fault)
                core = None if faults else core
            if core is not None:
                made[repr(given)] = core
            cores.extend([core] * min(entry.count, MAX_CORES + 1))
        if len(cores) > MAX_CORES:
            break
    return cores, known


def _machine(chip: Any) -> Target | None:
    """Give the machine of a chip's kind; None if the kind is unknown."""
    kind = chip.get("kind") if isinstance(chip, dict) else None
    return target_of(kind) if isinstance(kind, str) and kind in KINDS else None


def own_keys(entry: dict[str, Any], wrong: set[str | int]) -> dict[str, Any]:
    """Give the keys of a core: the keys of its entry without `count` and without wrong keys."""
    return {key: value for key, value in entry.items() if key != "count" and key not in wrong}


def blame(document: Document, place: DataPath, fault: Fault) -> None:
    """Note a fault of the entry at `place`. Of several keys, a key that the command line changed is blamed."""
    overridden = [key for key in fault.keys if document.place((*place, *key)).startswith(LABEL)]
    key = (overridden or fault.keys)[0]
    hint = nearest(str(key[-1]), fault.known) if fault.known else ""
    document.blame((*place, *key), f"{fault.sentence}{hint}", key=bool(fault.known))


_OF_SCENARIO = ("precision", "arrivals")
#: What every chip may have, beside the keys of its machine.
_OF_CHIP = ("sources",)


def left_out(path: DataPath) -> tuple[str, ...]:
    """Name the mappings right below a path of a scenario's data that may be left out, on any machine.

    Those of a chip are the parts that descriptions of machines have. The schema refuses a part of another machine, and
    then says which keys the chip has.
    """
    if not path:
        return _OF_SCENARIO
    if path[0] != "chip" or (len(path) == 2 and path[1] == "cores"):
        return ()
    of_core = path[1:2] == ("cores",)
    targets = [target_of(kind) for kind in KINDS]
    below = [_below(each.core, path[3:]) if of_core else _below(each.chip, path[1:]) for each in targets]
    own = _OF_CHIP if len(path) == 1 else ()
    return tuple(dict.fromkeys([*own, *(name for names in below for name in names)]))


def _below(description: type, path: DataPath) -> tuple[str, ...]:
    """The mappings right below a path into a description."""
    kind: Any = description
    steps = iter(path)
    for name in steps:
        key = keys_of(kind).get(str(name))
        # below several descriptions comes the name of one of them
        if key is None or not is_dataclass(key.kind) or (key.several and next(steps, None) is None):
            return ()
        kind = key.kind
    return tuple(name for name, key in keys_of(kind).items() if _is_mapping(key))


def _is_mapping(key: Described) -> bool:
    """Whether a file has a mapping there: of a description, of several by name, or of values."""
    return (is_dataclass(key.kind) and (not key.several or bool(key.key.named_by))) or get_origin(key.kind) is Mapping
