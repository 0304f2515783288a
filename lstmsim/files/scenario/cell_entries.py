"""Checked cell entries become `Cell`s; the graph of a cell is checked here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lstmsim.base.wording import show
from lstmsim.files.scenario.schema import CellEntry, StageEntry
from lstmsim.files.yaml.checks import usable, wrong_keys
from lstmsim.files.yaml.document import DataPath, Document
from lstmsim.model.cell import Cell, Gate, Node, Stage, Sum
from lstmsim.model.cell_rules import in_order, mistakes
from lstmsim.model.cells import CELLS

__all__ = ["node_of", "read_cells"]

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def read_cells(document: Document, path: DataPath, wrong: list[DataPath]) -> Mapping[str, Cell | None]:
    """Read the cells under the key `cells` of a mapping: name -> cell; None for a cell with a noted mistake.

    document: the document, in which mistakes are noted.
    path: path of the mapping.
    wrong: paths of the mistakes that have been noted before.
    """
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
