"""Rules on what depends on what in a cell: order, circles, rows, and whether everything leads to h.

Each rule yields the mistakes of a cell as (place, sentence) pairs. The rules take it that names and numbers of inputs
are right. `lstmsim.model.cell_rules.mistakes` calls all rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError

from lstmsim.model.cell import REDUCTIONS, Cell, Gate, Node
from lstmsim.model.segments import kinds, ordered, segments

__all__ = [
    "Mistakes",
    "all_used",
    "circle",
    "definitions",
    "in_order",
    "rows_agree",
    "streamed_in_time",
    "sum_place",
]

#: Mistakes of a cell, each with its place and a sentence.
Mistakes = Iterator[tuple[str, str]]


def in_order(cell: Cell) -> Cell:
    """The cell with each node listed after the nodes that it reads, so that no walk over the nodes goes deep.

    cell: a cell without circles.

    >>> from lstmsim.model.cells import cell
    >>> gru = cell("gru")
    >>> in_order(replace(gru, nodes=gru.nodes[::-1])).nodes[-1].name
    "h'"
    """
    return replace(cell, nodes=ordered(cell))


def _gates(cell: Cell) -> Iterator[tuple[str, Gate]]:
    for number, stage in enumerate(cell.stages):
        for gate in stage.gates:
            yield f"stages.{number}.gates.{gate.name}", gate


def sum_place(place: str, gate: Gate, name: str) -> str:
    """The place of a sum of the gate at `place`: the same place if it is the only sum and has the name of the gate."""
    return place if [each.name for each in gate.sums] == [gate.name] else f"{place}.{name}"


def definitions(cell: Cell) -> Iterator[tuple[str, str, str]]:
    """Yield (place, what it is, name) of everything that has a name."""
    for place, gate in _gates(cell):
        yield place, "gate", gate.name
        names = Counter(each.name for each in gate.sums)
        for name, times in names.items():
            repeated = times if name != gate.name else times - 1
            yield from [(sum_place(place, gate, name), "sum", name)] * repeated
    for name in cell.states:
        yield f"states.{name}", "state", name
    for index, name in enumerate(cell.parameters):
        yield f"parameters.{index}", "parameter", name
    for node in cell.nodes:
        yield f"nodes.{node.name}", "node", node.name


def circle(cell: Cell) -> Mistakes:
    """The rule that no node reads itself, directly or through other nodes."""
    try:
        ordered(cell)
    except CycleError as error:
        names = error.args[1][:0:-1]
        listed = [node.name for node in cell.nodes]
        start = names.index(min(names, key=listed.index))
        names = [*names[start:], *names[: start + 1]]
        path = " -> ".join(names if len(names) < 12 else [*names[:9], "...", names[-1]])
        yield f"nodes.{names[0]}", f"reads itself by {path}; what comes from the step before is a state"


def streamed_in_time(cell: Cell) -> Mistakes:
    """The rule that every vector of a stage is known before the stage begins."""
    level = {each.name: number for number, stage in enumerate(cell.stages) for each in stage.sums}
    nodes = {node.name: node for node in cell.nodes}
    for node in ordered(cell):
        level[node.name] = max((level.get(each, 0) for each in node.sources), default=0)
    for place, gate in _gates(cell):
        number = int(place.split(".")[1])
        for each in gate.sums:
            for vector in each.vectors:
                if vector in nodes and level[vector] >= number:
                    when = "this stage" if level[vector] == number else f"stage {level[vector]}"
                    text = f"reads {vector!r}, which is known only behind {when}: an earlier one must give it"
                    yield sum_place(place, gate, each.name), text


def rows_agree(cell: Cell) -> Mistakes:
    """The rule that names which meet in a node, a state or a stage have the same rows."""
    rows_of = kinds(cell)
    for node in cell.nodes:
        yield from _mixed(cell, node, rows_of)
    for state, target in cell.states.items():
        if rows_of[target] == "scalar":
            yield f"states.{state}", f"must be one number per unit, node {target!r} is one for all units"
        elif rows_of[state] != rows_of[target]:
            yield f"states.{state}", f"has rows {rows_of[state]}, but its next value {target!r} rows {rows_of[target]}"
    for place, gate in _gates(cell):
        for each in gate.sums:
            for vector in each.vectors:
                if vector != "x" and rows_of[vector] == "scalar":
                    yield sum_place(place, gate, each.name), f"{vector!r} is one number for all units, no vector"
    if cell.projected and rows_of[cell.output] == "hidden":
        yield "states.h", "has rows hidden, but the cell has a projection: h is what it projects"
    for segment in segments(cell):
        for node in (*segment.nodes, *segment.reductions):
            rows = next(
                (rows_of[each] for each in node.sources if rows_of.get(each, "scalar") != "scalar"), segment.rows
            )
            if rows != segment.rows:
                text = f"has rows {rows}, but comes behind stage {segment.stage}, whose rows are {segment.rows}"
                yield f"nodes.{node.name}", text


def _mixed(cell: Cell, node: Node, rows_of: Mapping[str, str]) -> Mistakes:
    place = f"nodes.{node.name}"
    scalars = [each for each in node.sources if rows_of.get(each) == "scalar"]
    vectors = [each for each in node.sources if each not in scalars]
    if scalars and node.operation in REDUCTIONS:
        yield place, f"{node.operation} is over units, {scalars[0]!r} is one number for all of them"
    if vectors and all(each in cell.parameters for each in vectors):
        yield place, f"reads parameter {vectors[0]!r} beside no number of the same units: combine it with a vector"
    first = {rows_of[each]: each for each in reversed(vectors) if each in rows_of}
    if len(first) > 1:
        yield place, f"mixes {' and '.join(f'rows {rows} ({name})' for rows, name in sorted(first.items()))}"


def all_used(cell: Cell) -> Mistakes:
    """The rule that everything leads to h, directly or through states and streamed vectors."""
    reads = {node.name: set(node.sources) for node in cell.nodes}
    reads |= {each.name: set(each.vectors) for each in cell.sums}
    # A state that a product or node reads stands for the node that gave it in the step before.
    reads |= {state: {target} for state, target in cell.states.items()}
    reached, fresh = {"h"}, {"h"}
    while fresh:
        fresh = set().union(*(reads.get(name, set()) for name in fresh)) - reached
        reached |= fresh
    for place, what, name in definitions(cell):
        split = what == "gate" and all(each.name != name for each in cell.sums)
        if name not in reached and not split:
            yield place, f"{what if what != 'gate' else 'sum'} {name!r} feeds nothing that leads to h"
