"""The rules that make a graph a cell, on names, shapes, order, circles and rows. Each rule has a sentence of its own.

Each rule yields the mistakes of a cell as (key path, sentence) pairs; `mistakes` calls all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from graphlib import CycleError
from itertools import chain, islice

from lstmsim.model.cell import OPERATIONS, REDUCTIONS, ROWS, Cell, Gate, Node, kinds, ordered, segments

#: Mistakes of a cell, each with its place and a sentence.
Mistakes = Iterator[tuple[str, str]]


def in_order(cell: Cell) -> Cell:
    """The cell with each node listed after the nodes that it reads, so that no walk over the nodes goes deep."""
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
                    text = f"reads {vector!r}, which is known only after {when}: an earlier stage must give it"
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
                text = f"has rows {rows}, but follows stage {segment.stage}, whose rows are {segment.rows}"
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


MAX_GATES = 100
MAX_NODES = 1000
#: Most mistakes of a cell that are reported.
MAX_MISTAKES = 100
MAX_NAME = 100
#: Largest constant, the same as for the weights of a network: far above anything that a machine can hold.
MAX_CONSTANT = 1e12


@lru_cache(maxsize=256)
def mistakes(cell: Cell) -> tuple[tuple[str, str], ...]:
    """List what is wrong with a cell, as (place, sentence) pairs. Places look like `nodes.ct` or `stages.0.gates.i`.

    Rows and the order of stages are judged only if names, inputs and circles are right. If there are no mistakes,
    `lstmsim.model.cell` can cut the graph.
    """
    if len(cell.gates) > MAX_GATES or len(cell.stages) > MAX_GATES or len(cell.sums) > MAX_NODES:
        return (("stages", f"must have at most {MAX_GATES} gates and {MAX_NODES} sums in all"),)
    if len(cell.nodes) > MAX_NODES:
        return (("nodes", f"must be at most {MAX_NODES}, got {len(cell.nodes)}"),)
    # Each group of rules needs a cell that keeps the rules of the groups before it.
    for group in ((_names, _stages, _nodes, _states), (circle,), (streamed_in_time,), (rows_agree, all_used)):
        wrong = tuple(islice(chain.from_iterable(rule(cell) for rule in group), MAX_MISTAKES))
        if wrong:
            return wrong
        if group == (circle,):
            cell = in_order(cell)
    return ()


def _show(name: str) -> str:
    """A name in quotes, printable and not too long."""
    return repr(name) if len(name) <= 60 else f"{name[:57]!r}..."


def _near(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word[:200], list(known), n=1)
    return f"; did you mean {_show(close[0])}?" if close else ""


def _names(cell: Cell) -> Mistakes:
    """The rule that all names differ. Only a gate and one of its own sums may have the same name."""
    taken = {"x": "the input"}
    for place, what, name in definitions(cell):
        if not name.rstrip("'").isidentifier() or len(name) > MAX_NAME:
            yield place, f"{_show(name)} is no name: at most {MAX_NAME} letters, digits and _, then perhaps '"
        elif name in taken:
            yield place, f"the name {_show(name)} is taken by {taken[name]}{_other_name(name, what, taken[name])}"
        taken.setdefault(name, f"a {what}")


def _other_name(name: str, what: str, owner: str) -> str:
    return f""": call the node {_show(name + "'")}, for example""" if (what, owner) == ("node", "a state") else ""


def _stages(cell: Cell) -> Mistakes:
    if not cell.stages:
        yield "stages", "must hold at least one stage"
    for number, stage in enumerate(cell.stages):
        if stage.rows not in ROWS:
            yield f"stages.{number}.rows", f"must be {' or '.join(ROWS)}, got {_show(stage.rows)}"
        if not stage.gates:
            yield f"stages.{number}.gates", "must hold at least one gate"
        for gate in stage.gates:
            yield from _gate(cell, number, gate)
    if cell.stages and all("x" not in stage.vectors for stage in cell.stages):
        yield "stages", "no gate reads x, the input"
    if cell.projected and all(stage.rows != "hidden" for stage in cell.stages):
        yield "stages", "no stage has rows hidden: there is nothing to project"


def _gate(cell: Cell, number: int, gate: Gate) -> Mistakes:
    place = f"stages.{number}.gates.{gate.name}"
    if not gate.sums:
        yield place, "must hold at least one sum"
    known = ("x", "h", *(node.name for node in cell.nodes if node.operation == "quantize"))
    for each in gate.sums:
        own = sum_place(place, gate, each.name)
        if not each.vectors:
            yield own, "must read at least one vector: x, h or a quantize node of an earlier stage"
        for vector in dict.fromkeys(each.vectors):
            if vector not in known:
                yield own, f"{_show(vector)} is no vector{_near(vector, known) or _no_vector(cell, vector)}"
    for vector, times in Counter(name for each in gate.sums for name in each.vectors).items():
        if times > 1:
            yield place, f"reads {_show(vector)} {times} times: a row has each vector's columns once"
    first = cell.stages[number].gates[0]
    if set(gate.vectors) != set(first.vectors):
        has, others = (" and ".join(map(_show, each.vectors)) or "nothing" for each in (gate, first))
        yield place, f"reads {has}, but gate {_show(first.name)} {others}: all gates of a stage read the same vectors"


def _no_vector(cell: Cell, name: str) -> str:
    if any(node.name == name for node in cell.nodes):
        return ": what is streamed comes from a quantize node"
    return "; vectors are x, h and quantize nodes of earlier stages"


def _nodes(cell: Cell) -> Mistakes:
    operations = (*OPERATIONS, *REDUCTIONS)
    known = {*(each.name for each in cell.sums), *cell.states, *cell.parameters, *(each.name for each in cell.nodes)}
    for node in cell.nodes:
        place = f"nodes.{node.name}"
        if node.operation not in operations:
            hint = _near(node.operation, operations) or f"; there are: {', '.join(operations)}"
            yield place, f"unknown operation {_show(node.operation)}{hint}"
        elif node.operation in OPERATIONS and len(node.inputs) != (count := OPERATIONS[node.operation]):
            inputs = "1 input" if count == 1 else f"{count} inputs"
            yield place, f"{node.operation} takes {inputs}, got {len(node.inputs)}"
        elif not node.inputs:
            yield place, f"{node.operation} takes at least 1 input, got 0"
        for each in dict.fromkeys(node.sources):
            if each not in known:
                yield place, _unknown_input(cell, each, known)
        yield from _constants(cell, node)


def _unknown_input(cell: Cell, name: str, known: Iterable[str]) -> str:
    if name == "x":
        return "reads x, which only the products of a stage read"
    gate = next((each for each in cell.gates if each.name == name), None)
    if gate is not None:
        return f"reads gate {_show(name)}, whose parts are apart: {', '.join(_show(each.name) for each in gate.sums)}"
    hint = _near(name, known) or "; inputs are sums, states, parameters, nodes and numbers"
    return f"unknown input {_show(name)}{hint}"


def _constants(cell: Cell, node: Node) -> Mistakes:
    place = f"nodes.{node.name}"
    numbers = [each for each in node.inputs if not isinstance(each, str)]
    for number in numbers:
        if not math.isfinite(number):
            yield place, f"a number must be finite, got {number}"
        elif abs(number) > MAX_CONSTANT:
            yield place, f"a number must be at most {MAX_CONSTANT:g}, got {number:g}"
    if numbers and node.operation in REDUCTIONS:
        yield place, f"{node.operation} is over units: it reads no numbers"
    if node.inputs and all(each in cell.parameters for each in node.sources):
        yield place, "reads only numbers and parameters, which never change: make its result a parameter"


def _states(cell: Cell) -> Mistakes:
    nodes = {node.name: node for node in cell.nodes}
    if "h" not in cell.states:
        yield "states", "there must be a state h, the output"
    for state, target in cell.states.items():
        place = f"states.{state}"
        if target not in nodes:
            yield place, f"must name the node that gives its next value, got {_show(target)}{_near(target, nodes)}"
        elif state == "h" and nodes[target].operation != "quantize":
            text = "h is streamed and must come from a quantize node"
            yield place, f"{text}, {_show(target)} is {_show(nodes[target].operation)}"
