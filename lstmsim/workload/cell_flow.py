"""What depends on what in a cell: order, circles, rows, and whether everything leads to h.

Each rule gives its mistakes as (place, sentence) pairs and takes names and numbers of inputs for right; together they
are `lstmsim.workload.cell_rules.mistakes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError

from lstmsim.workload.cell import REDUCTIONS, Cell, Gate, Node
from lstmsim.workload.segments import kinds, ordered, segments

__all__ = [
    "Found",
    "all_used",
    "circle",
    "definitions",
    "in_order",
    "rows_agree",
    "streamed_in_time",
    "sum_place",
]

#: Mistakes: place and sentence.
Found = Iterator[tuple[str, str]]


def in_order(cell: Cell) -> Cell:
    """A cell without circles, its nodes listed after those they read: so no walk over them goes deep.

    >>> from lstmsim.workload.cells import cell
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
    """The place of a sum of the gate at `place`: the same where it is the gate's only one, of its name."""
    return place if [each.name for each in gate.sums] == [gate.name] else f"{place}.{name}"


def definitions(cell: Cell) -> Iterator[tuple[str, str, str]]:
    """(place, what, name) of everything that has a name."""
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


def circle(cell: Cell) -> Found:
    """No node reads itself, be it by way of others."""
    try:
        ordered(cell)
    except CycleError as error:
        names = error.args[1][:0:-1]
        listed = [node.name for node in cell.nodes]
        start = names.index(min(names, key=listed.index))
        names = [*names[start:], *names[: start + 1]]
        path = " -> ".join(names if len(names) < 12 else [*names[:9], "...", names[-1]])
        yield f"nodes.{names[0]}", f"reads itself by {path}; what comes from the step before is a state"


def streamed_in_time(cell: Cell) -> Found:
    """Every vector of a stage is there before the stage begins."""
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


def rows_agree(cell: Cell) -> Found:
    """What meets in a node, a state or a stage has the same rows."""
    found = kinds(cell)
    for node in cell.nodes:
        yield from _mixed(cell, node, found)
    for state, target in cell.states.items():
        if found[target] == "scalar":
            yield f"states.{state}", f"must be one number per unit, node {target!r} is one for all units"
        elif found[state] != found[target]:
            yield f"states.{state}", f"has rows {found[state]}, but its next value {target!r} rows {found[target]}"
    for place, gate in _gates(cell):
        for each in gate.sums:
            for vector in each.vectors:
                if vector != "x" and found[vector] == "scalar":
                    yield sum_place(place, gate, each.name), f"{vector!r} is one number for all units, no vector"
    if cell.projected and found[cell.output] == "hidden":
        yield "states.h", "has rows hidden, but the cell has a projection: h is what it projects"
    for segment in segments(cell):
        for node in (*segment.nodes, *segment.reductions):
            rows = next((found[each] for each in node.sources if found.get(each, "scalar") != "scalar"), segment.rows)
            if rows != segment.rows:
                text = f"has rows {rows}, but comes behind stage {segment.stage}, whose rows are {segment.rows}"
                yield f"nodes.{node.name}", text


def _mixed(cell: Cell, node: Node, found: Mapping[str, str]) -> Found:
    place = f"nodes.{node.name}"
    scalars = [each for each in node.sources if found.get(each) == "scalar"]
    vectors = [each for each in node.sources if each not in scalars]
    if scalars and node.operation in REDUCTIONS:
        yield place, f"{node.operation} is over units, {scalars[0]!r} is one number for all of them"
    if vectors and all(each in cell.parameters for each in vectors):
        yield place, f"reads parameter {vectors[0]!r} beside no number of the same units: combine it with a vector"
    first = {found[each]: each for each in reversed(vectors) if each in found}
    if len(first) > 1:
        yield place, f"mixes {' and '.join(f'rows {rows} ({name})' for rows, name in sorted(first.items()))}"


def all_used(cell: Cell) -> Found:
    """Everything reaches h, if need be by way of states and streamed vectors."""
    reads = {node.name: set(node.sources) for node in cell.nodes}
    reads |= {each.name: set(each.vectors) for each in cell.sums}
    # A state in a product's or node's place stands for what gave it in the step before.
    reads |= {state: {target} for state, target in cell.states.items()}
    reached, fresh = {"h"}, {"h"}
    while fresh:
        fresh = set().union(*(reads.get(name, set()) for name in fresh)) - reached
        reached |= fresh
    for place, what, name in definitions(cell):
        split = what == "gate" and all(each.name != name for each in cell.sums)
        if name not in reached and not split:
            yield place, f"{what if what != 'gate' else 'sum'} {name!r} feeds nothing that leads to h"
