"""Cells of random graphs: every operation, numbers, parameters, states, means, one or two stages."""

from __future__ import annotations

import random

from lstmsim.model.cell import OPERATIONS, REDUCTIONS, Cell, Node, stage_of
from lstmsim.model.cell_rules import mistakes

__all__ = ["random_cell"]


def random_cell(seed: int) -> Cell:
    """A cell that keeps all rules; the same one for the same seed."""
    own = random.Random(seed)
    while True:
        made = _drawn(own, f"own{seed}")
        if not mistakes(made):
            return made


def _drawn(own: random.Random, name: str) -> Cell:
    two = own.random() < 0.4
    stages = [stage_of(own.choice(("a[x h] b{bx[x] bh[h]}", "a[x h] b[x h]", "a[x] b[x]")))]
    nodes: list[Node] = []
    sums = [each.name for each in stages[0].sums]
    nodes += _nodes(own, "n", [*sums, "s", "h"] if own.random() < 0.3 else [*sums, "s"], own.randint(3, 7))
    if two:
        vector = own.choice([each.name for each in nodes if each.operation not in REDUCTIONS])
        nodes.append(Node("v", "quantize", (vector,)))
        stages.append(stage_of(own.choice(("c[v]", "c[x v]", "c{cx[x] cv[v]}"))))
        known = [each.name for each in (*stages[1].sums, *nodes) if each.name != "v"]
        nodes += _nodes(own, "w", known, own.randint(2, 5))
    nodes += _folded(nodes, [*sums, *(each.name for each in stages[-1].sums)])
    last = nodes[-1].name
    nodes.append(Node("h'", "quantize", (last,)))
    kept = own.choice([each.name for each in nodes])
    return Cell(name, tuple(stages), tuple(nodes), {"h": "h'", "s": kept}, ("p", "q"))


def _nodes(own: random.Random, prefix: str, names: list[str], count: int) -> list[Node]:
    """Nodes over some names: each reads what is there, and perhaps a number or a parameter."""
    known, nodes = list(names), []
    operations = [each for each in OPERATIONS if each != "quantize"] + list(REDUCTIONS)
    for number in range(count):
        operation = own.choice(operations)
        inputs: list[str | float] = [own.choice(known)]
        if operation in REDUCTIONS and own.random() < 0.5:
            inputs.append(own.choice(known))
        if operation in OPERATIONS and OPERATIONS[operation] == 2:
            other: str | float = own.choice([own.choice(known), own.choice(known), own.choice(("p", "q")), 0.3, -1.7])
            inputs = [inputs[0], other] if own.random() < 0.5 else [other, inputs[0]]
        nodes.append(Node(f"{prefix}{number}", operation, tuple(inputs)))
        known.append(nodes[-1].name)
    return nodes


def _folded(nodes: list[Node], sums: list[str]) -> list[Node]:
    """Nodes that add up all that nobody has read, so that everything leads to h."""
    read = {name for each in nodes for name in each.sources}
    loose = [name for name in (*sums, *(each.name for each in nodes), "p", "q", "s") if name not in read]
    loose = [each for each in loose if each != "v"]
    folded: list[Node] = []
    total = nodes[-1].name
    for number, name in enumerate(each for each in loose if each != total):
        folded.append(Node(f"f{number}", ("add", "maximum", "multiply")[number % 3], (total, name)))
        total = folded[-1].name
    return folded
