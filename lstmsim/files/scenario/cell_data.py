"""Cells as plain data, in the layout of `cells:` in model and scenario files."""

from __future__ import annotations

from typing import Any

from lstmsim.files.yaml.text import OnOneLine
from lstmsim.model.cell import Cell, Stage

__all__ = ["cell_data"]


def cell_data(cell: Cell) -> dict[str, Any]:
    """Give a cell as plain data, which `lstmsim.files.scenario.cell_entries.read_cells` reads back.

    >>> from lstmsim.model.cells import cell
    >>> cell_data(cell("rnn"))["nodes"]
    {'hf': 'tanh a', "h'": 'quantize hf'}
    """
    nodes = {node.name: " ".join([node.operation, *map(_word, node.inputs)]) for node in cell.nodes}
    stages = [_stage(stage) for stage in cell.stages]
    data = {"source": cell.source, "stages": stages, "nodes": nodes, "states": OnOneLine(cell.states)}
    return data | {"parameters": list(cell.parameters)}


def _word(value: str | float) -> str:
    return value if isinstance(value, str) else repr(value)


def _stage(stage: Stage) -> dict[str, Any]:
    gates: dict[str, Any] = {}
    for gate in stage.gates:
        plain = len(gate.sums) == 1 and gate.sums[0].name == gate.name
        sums = {each.name: list(each.vectors) for each in gate.sums}
        gates[gate.name] = sums[gate.name] if plain else sums
    return {"rows": stage.rows, "gates": gates}
