"""What was drawn becomes the nodes of a graph: those that lead to an output, each with a name of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lstmsim.model.fusion.graph import Node

__all__ = ["Drawn", "finished", "named"]

_MOST_LETTERS = 400


@dataclass
class Drawn:
    """A node in the making; the fields are those of `Node`, but operands are numbers of nodes (int) or numbers (float).

    name: need not be the only one of its kind.
    """

    op: str
    operands: tuple[int | float, ...]
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    name: str


def named(drawn: Sequence[Drawn], outputs: Iterable[int]) -> dict[int, str]:
    """The numbers of the nodes that lead to outputs, ascending, each with a name that no other one has.

    drawn: the nodes, each after its operands.
    outputs: numbers of nodes.
    """
    needed: set[int] = set()
    waiting = list(outputs)
    while waiting:
        number = waiting.pop()
        if number not in needed:
            needed.add(number)
            waiting += [each for each in drawn[number].operands if isinstance(each, int)]
    taken: dict[str, int] = {}
    return {number: _unused(drawn[number].name, taken) for number in sorted(needed)}


def finished(drawn: Sequence[Drawn], names: Mapping[int, str]) -> list[Node]:
    """The nodes that have names, in order.

    drawn, names: as of `named`, and what that gives.
    """
    nodes = []
    for number, name in names.items():
        each = drawn[number]
        operands = tuple(names[operand] if isinstance(operand, int) else operand for operand in each.operands)
        nodes.append(Node(name, each.op, operands, each.shape, each.axes))
    return nodes


def _unused(name: str, taken: dict[str, int]) -> str:
    """The name, with a number behind it if it is taken."""
    name = "".join(letter if letter.isprintable() else "?" for letter in name).strip()[:_MOST_LETTERS] or "value"
    own = name
    while own in taken:
        taken[name] += 1
        own = f"{name}.{taken[name]}"
    taken[own] = 1
    return own
