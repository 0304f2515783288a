"""A cell's graph cut into segments: the tail unit does each segment in one go.

A stage has one segment, and one more after each reduction. A segment runs when its inputs are there. The first segment
of a stage runs as the sums of each row block arrive. A later segment runs when the reductions of the segment before it
are known, and these need all row blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from graphlib import TopologicalSorter
from types import MappingProxyType

from lstmsim.base.records import record
from lstmsim.model.cell import REDUCTIONS, Cell, Node

__all__ = ["Segment", "kinds", "ordered", "segment_of", "segments", "segments_by_stage"]


@record
class Segment:
    """One go of the tail over all units.

    stage, index: they order the segments.
    rows: the rows of the stage.
    nodes: operations on each unit.
    reductions: operations over all units.
    scalars: operations on the results of reductions.
    """

    stage: int
    index: int
    rows: str
    nodes: tuple[Node, ...]
    reductions: tuple[Node, ...]
    scalars: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names that come from outside: sums, states, parameters, nodes of earlier segments, scalars."""
        own = {node.name for node in (*self.nodes, *self.reductions, *self.scalars)}
        every = (source for node in (*self.nodes, *self.reductions, *self.scalars) for source in node.sources)
        return tuple(dict.fromkeys(source for source in every if source not in own))


def kinds(cell: Cell) -> Mapping[str, str]:
    """Name of the cell -> its rows: `hidden` or `projection` (one number for each unit), or `scalar`.

    Parameters have the rows of the first node that reads them.

    >>> from lstmsim.model.cells import cell
    >>> kinds(cell("lstm-projection"))["p"], kinds(cell("lstm-layernorm"))["muc"]
    ('projection', 'scalar')
    """
    return _kinds(cell)


@lru_cache(maxsize=256)
def _kinds(cell: Cell) -> Mapping[str, str]:
    rows_of = {each.name: stage.rows for stage in cell.stages for each in stage.sums}
    rows_of |= {name: "scalar" for node in cell.nodes if node.operation in REDUCTIONS for name in (node.name,)}
    nodes = ordered(cell)
    before = -1
    while before != len(rows_of):
        before = len(rows_of)
        for node in nodes:
            _spread(cell, node, rows_of)
        unknown = [name for name in cell.states if name not in rows_of]
        if unknown and before == len(rows_of):
            rows_of[unknown[0]] = "hidden"
    return MappingProxyType(rows_of)


def _spread(cell: Cell, node: Node, rows_of: dict[str, str]) -> None:
    """Note the rows of a node, of its inputs and of the states that it gives, as far as they are known."""
    rows = [rows_of[each] for each in node.sources if rows_of.get(each, "scalar") != "scalar"]
    if node.name not in rows_of:
        open_ = any(each not in rows_of and each not in cell.parameters for each in node.sources)
        if open_ and not rows:
            return
        rows_of[node.name] = rows[0] if rows else "scalar"
    for each in node.sources:
        if each in cell.parameters and rows:
            rows_of.setdefault(each, rows[0])
    for state, target in cell.states.items():
        if target == node.name:
            rows_of.setdefault(state, rows_of[node.name])


@lru_cache(maxsize=256)
def ordered(cell: Cell) -> tuple[Node, ...]:
    """The nodes in an order in which each comes after the nodes that it reads.

    `graphlib.CycleError` if there is a circle.

    >>> from lstmsim.model.cells import cell
    >>> [node.name for node in ordered(cell("rnn"))]
    ['hf', "h'"]
    """
    names = {node.name: node for node in cell.nodes}
    reads = {node.name: [each for each in node.sources if each in names] for node in cell.nodes}
    return tuple(names[name] for name in TopologicalSorter(reads).static_order())


@lru_cache(maxsize=256)
def segments(cell: Cell) -> tuple[Segment, ...]:
    """The segments of a cell in the order in which the tail does them.

    >>> from lstmsim.model.cells import cell
    >>> [(each.stage, each.index) for each in segments(cell("lstm-layernorm"))]
    [(0, 0), (0, 1), (0, 2)]
    """
    level: dict[str, tuple[int, int]] = {
        each.name: (number, 0) for number, stage in enumerate(cell.stages) for each in stage.sums
    }
    rows_of = kinds(cell)
    rows: dict[tuple[int, int], tuple[list[Node], list[Node], list[Node]]] = {
        (number, 0): ([], [], []) for number in range(len(cell.stages))
    }
    after: dict[str, tuple[int, int]] = {}
    for node in ordered(cell):
        home = max((after.get(each) or level.get(each, (0, 0)) for each in node.sources), default=(0, 0))
        if node.operation in REDUCTIONS:
            rows.setdefault(home, ([], [], []))[1].append(node)
            level[node.name] = home
            after[node.name] = (home[0], home[1] + 1)
        elif rows_of[node.name] == "scalar":
            reduced = max((level[each] for each in node.sources if each in after), default=home)
            rows.setdefault(reduced, ([], [], []))[2].append(node)
            level[node.name] = reduced
            after[node.name] = (reduced[0], reduced[1] + 1)
        else:
            rows.setdefault(home, ([], [], []))[0].append(node)
            level[node.name] = home
    return tuple(
        Segment(stage, index, cell.stages[stage].rows, *(tuple(each) for each in parts))
        for (stage, index), parts in sorted(rows.items())
    )


@lru_cache(maxsize=256)
def segments_by_stage(cell: Cell) -> tuple[tuple[Segment, ...], ...]:
    """The segments of each stage of a cell.

    >>> from lstmsim.model.cells import cell
    >>> [len(each) for each in segments_by_stage(cell("lstm-projection"))]
    [1, 1]
    """
    every = segments(cell)
    return tuple(tuple(each for each in every if each.stage == stage) for stage in range(len(cell.stages)))


@lru_cache(maxsize=4096)
def segment_of(cell: Cell, node: str) -> tuple[int, int]:
    """(stage, index) of the segment that gives the value of a node. `KeyError` if there is none.

    >>> from lstmsim.model.cells import cell
    >>> segment_of(cell("gru-lbr0"), "rh"), segment_of(cell("gru-lbr0"), "h'")
    ((0, 0), (1, 0))
    """
    for each in segments(cell):
        if any(own.name == node for own in (*each.nodes, *each.reductions, *each.scalars)):
            return each.stage, each.index
    raise KeyError(node)
