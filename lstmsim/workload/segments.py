"""A cell's graph cut into what the tail unit does in one go: per stage one segment, and one more after each reduction.

A segment runs when its inputs are there: the first of a stage as each row block's sums arrive, a later one when the
reductions of the one before are known, which takes all row blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from graphlib import TopologicalSorter
from types import MappingProxyType

from lstmsim.records import record
from lstmsim.workload.cell import REDUCTIONS, Cell, Node

__all__ = ["Segment", "kinds", "ordered", "segment_of", "segments"]


@record
class Segment:
    """One go over all units: `nodes` per unit; then `reductions` over all units and the `scalars` made of them.

    `stage` and `index` order the segments; `rows` are those of the stage.
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
    """For every name of the cell: `hidden` or `projection` (one number per unit), or `scalar`.

    Parameters have the rows of the first node that reads them.

    >>> from lstmsim.workload.cells import cell
    >>> kinds(cell("lstm-projection"))["p"], kinds(cell("lstm-layernorm"))["muc"]
    ('projection', 'scalar')
    """
    return _kinds(cell)


@lru_cache(maxsize=256)
def _kinds(cell: Cell) -> Mapping[str, str]:
    found = {each.name: stage.rows for stage in cell.stages for each in stage.sums}
    found |= {name: "scalar" for node in cell.nodes if node.operation in REDUCTIONS for name in (node.name,)}
    nodes = ordered(cell)
    before = -1
    while before != len(found):
        before = len(found)
        for node in nodes:
            _spread(cell, node, found)
        unknown = [name for name in cell.states if name not in found]
        if unknown and before == len(found):
            found[unknown[0]] = "hidden"
    return MappingProxyType(found)


def _spread(cell: Cell, node: Node, found: dict[str, str]) -> None:
    """Give a node, what it reads and the states it feeds their rows, as far as they are known."""
    rows = [found[each] for each in node.sources if found.get(each, "scalar") != "scalar"]
    if node.name not in found:
        open_ = any(each not in found and each not in cell.parameters for each in node.sources)
        if open_ and not rows:
            return
        found[node.name] = rows[0] if rows else "scalar"
    for each in node.sources:
        if each in cell.parameters and rows:
            found.setdefault(each, rows[0])
    for state, target in cell.states.items():
        if target == node.name:
            found.setdefault(state, found[node.name])


@lru_cache(maxsize=256)
def ordered(cell: Cell) -> tuple[Node, ...]:
    """The nodes so that each comes after those it reads; `graphlib.CycleError` if there is a circle.

    >>> from lstmsim.workload.cells import cell
    >>> [node.name for node in ordered(cell("rnn"))]
    ['hf', "h'"]
    """
    names = {node.name: node for node in cell.nodes}
    reads = {node.name: [each for each in node.sources if each in names] for node in cell.nodes}
    return tuple(names[name] for name in TopologicalSorter(reads).static_order())


@lru_cache(maxsize=256)
def segments(cell: Cell) -> tuple[Segment, ...]:
    """The segments of a cell in the order in which the tail does them.

    >>> from lstmsim.workload.cells import cell
    >>> [(each.stage, each.index) for each in segments(cell("lstm-layernorm"))]
    [(0, 0), (0, 1), (0, 2)]
    """
    level: dict[str, tuple[int, int]] = {
        each.name: (number, 0) for number, stage in enumerate(cell.stages) for each in stage.sums
    }
    found = kinds(cell)
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
        elif found[node.name] == "scalar":
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


def segment_of(cell: Cell, node: str) -> tuple[int, int]:
    """(stage, index) of the segment that gives a node's value.

    >>> from lstmsim.workload.cells import cell
    >>> segment_of(cell("gru-lbr0"), "rh"), segment_of(cell("gru-lbr0"), "h'")
    ((0, 0), (1, 0))
    """
    for each in segments(cell):
        if any(own.name == node for own in (*each.nodes, *each.reductions, *each.scalars)):
            return each.stage, each.index
    raise KeyError(node)
