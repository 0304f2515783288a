"""The rules that make a graph a cell, on names, shapes and order of stages, sums, nodes and states.

Each rule has a sentence of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from itertools import chain, islice

from lstmsim.model.cell import OPERATIONS, REDUCTIONS, ROWS, Cell, Gate, Node
from lstmsim.model.cell_flow import (
    Mistakes,
    all_used,
    circle,
    definitions,
    in_order,
    rows_agree,
    streamed_in_time,
    sum_place,
)

__all__ = ["MAX_GATES", "MAX_MISTAKES", "MAX_NODES", "mistakes"]

MAX_GATES = 100
MAX_NODES = 1000
#: Most mistakes of a cell that are told.
MAX_MISTAKES = 100
MAX_NAME = 100
#: Largest constant, the same as for the weights of a network: far above anything that a machine can hold.
MAX_CONSTANT = 1e12


def mistakes(cell: Cell) -> list[tuple[str, str]]:
    """List what is wrong with a cell, as (place, sentence) pairs. Places look like `nodes.ct` or `stages.0.gates.i`.

    Rows and the order of stages are judged only if names, inputs and circles are right. If there are no mistakes,
    `lstmsim.model.segments` can cut the graph.

    >>> from lstmsim.model.cell import stage_of
    >>> from lstmsim.model.cells import graph
    >>> mistakes(Cell("c", (stage_of("a[x h]"),), graph("t tanhh a; h' quantize t"), {"h": "h'"}))
    [('nodes.t', "unknown operation 'tanhh'; did you mean 'tanh'?")]
    """
    return list(_mistakes(cell))


@lru_cache(maxsize=256)
def _mistakes(cell: Cell) -> tuple[tuple[str, str], ...]:
    if len(cell.gates) > MAX_GATES or len(cell.stages) > MAX_GATES or len(cell.sums) > MAX_NODES:
        return (("stages", f"must have at most {MAX_GATES} gates and {MAX_NODES} sums in all"),)
    if len(cell.nodes) > MAX_NODES:
        return (("nodes", f"must be at most {MAX_NODES}, got {len(cell.nodes)}"),)
    # Each group of rules needs a cell that keeps the rules of the groups before it.
    for group in ((_names, _stages, _nodes, _states), (circle,), (streamed_in_time,), (rows_agree, all_used)):
        mistakes = tuple(islice(chain.from_iterable(rule(cell) for rule in group), MAX_MISTAKES))
        if mistakes:
            return mistakes
        if group == (circle,):
            cell = in_order(cell)
    return ()


def _show(name: str) -> str:
    """A name in quotes, printable and not too long."""
    return repr(name) if len(name) <= 60 else f"{name[:57]!r}..."


def _near(word: str, known: Iterable[str]) -> str:
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
