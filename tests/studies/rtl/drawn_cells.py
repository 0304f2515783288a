"""Random cells: gates with one or two sums, nodes of all operations, states, parameters, stages, reductions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

__all__ = ["Choices", "own_cell"]

T = TypeVar("T")

# fmt: off
#: Names that mean something to a language or a module, that differ in one sign alone, or that are not of this alphabet.
NASTY = [
    "before", "cell", "table", "config", "use", "design", "bit", "wire", "reg", "clock", "reset", "d_valid", "sums",
    "y", "n_a", "a'", "A", "σ", "begin", "h_", "x0", "D",
]
# fmt: on


class Choices(ABC):
    """Answers to questions."""

    @abstractmethod
    def whole(self, low: int, high: int) -> int:
        """A whole number, both ends included."""

    @abstractmethod
    def one(self, options: Sequence[T]) -> T:
        """One of the options."""


class _Cell:
    """A cell under construction.

    pool: values with a number for each unit; scalars: values with one number for all; unread: values nobody reads yet.
    """

    def __init__(self, ask: Choices) -> None:
        self.ask = ask
        self.pool: list[str] = []
        self.scalars: list[str] = []
        self.unread: list[str] = []
        self.nodes: dict[str, str] = {}
        self.names = [each for each in NASTY for _ in range(1)]

    def name(self) -> str:
        if self.names and self.ask.one([True, False]):
            return self.names.pop(self.ask.whole(0, len(self.names) - 1))
        return f"v{len(self.nodes)}"

    def node(self, operation: str, *inputs: str) -> str:
        name = self.name()
        while name in self.nodes:
            name += "_"
        self.nodes[name] = " ".join((operation, *inputs))
        self.unread = [each for each in self.unread if each not in inputs]
        return name

    def value(self) -> str:
        """A value with a number for each unit, rather one that nobody reads yet."""
        units = [each for each in self.unread if each not in self.scalars]
        return self.ask.one(units if units and self.ask.one([True, True, False]) else self.pool)

    def keep(self, name: str) -> str:
        self.pool.append(name)
        self.unread.append(name)
        return name

    def one_input(self) -> None:
        operation = self.ask.one(["sigmoid", "tanh", "relu", "log_sigmoid", "exp", "quantize"])
        value = self.value()
        if operation == "exp":
            value = self.node("minimum", value, "1.0")
        self.keep(self.node(operation, value))

    def two_inputs(self, parameters: Sequence[str], divide: bool) -> None:
        operations = ["add", "subtract", "maximum", "minimum", "multiply"] + ["divide"] * divide
        operation = self.ask.one(operations)
        left = self.value()
        others = [*self.pool, *self.scalars, *parameters, "0.5", "-1.25", "0", "3"]
        right = self.ask.one([each for each in others if each != left] or ["1"])
        if operation == "divide":
            right = self.node("add", self.node("sigmoid", self.value()), "0.5")
        elif self.ask.one([True, False]):
            left, right = right, left
        self.keep(self.node(operation, left, right))

    def reduction(self) -> None:
        values = [self.value() for _ in range(self.ask.one([1, 1, 2]))]
        name = self.node(self.ask.one(["mean", "mean_square"]), *dict.fromkeys(values))
        if self.ask.one([True, False]):
            name = self.node("rsqrt", self.node("add", self.node("multiply", name, name), "0.1"))
        self.scalars.append(name)
        self.unread.append(name)

    def joined(self) -> str:
        """One value that all unread ones lead to."""
        value = self.keep(self.node(self.ask.one(["tanh", "sigmoid", "relu"]), self.value()))
        while len(self.unread) > 1:
            other = next(each for each in self.unread if each != value)
            value = self.keep(self.node(self.ask.one(["add", "subtract", "multiply", "maximum"]), value, other))
        return value


def own_cell(ask: Choices, plain: bool) -> dict[str, Any]:
    """A cell as an entry of `cells`; plain: one stage, one segment, no parameters."""
    made = _Cell(ask)
    states = ["c", "s"][: ask.one([0, 0, 1, 2])]
    parameters = [] if plain else ["p", "table"][: ask.one([0, 1, 2])]
    made.names = [each for each in made.names if each not in parameters]
    vectors = ask.one([["x", "h"], ["x", "h"], ["x"]])
    stages = [{"gates": _gates(ask, made, "g", vectors)}]
    for state in states:
        made.keep(state)
    _nodes(ask, made, parameters, plain)
    if not plain and ask.one([True, False]):
        own = made.node("quantize", made.value())
        stages.append({"gates": _gates(ask, made, "k", ask.one([[own], ["x", own], ["x", "h", own]]))})
        made.pool.append(own)
        _nodes(ask, made, parameters, plain)
    unused = [each for each in parameters if not any(each in text.split() for text in made.nodes.values())]
    for each in unused:
        made.keep(made.node("multiply", made.value(), each))
    source = made.joined()
    h = made.node("quantize", source)
    units = [each for each in made.pool if each in made.nodes]
    return {
        "stages": stages,
        "nodes": made.nodes,
        "states": {"h": h} | {each: ask.one(units) for each in states},
        "parameters": parameters,
        "source": "drawn",
    }


def _gates(ask: Choices, made: _Cell, letter: str, vectors: Sequence[str]) -> dict[str, Any]:
    gates: dict[str, Any] = {}
    for number in range(ask.whole(1, 3)):
        name = f"{letter}{number}"
        if len(vectors) > 1 and ask.one([True, False, False]):
            order = vectors if ask.one([True, False]) else vectors[::-1]
            gates[name] = {f"{name}a": list(order[:1]), f"{name}b": list(order[1:])}
            made.keep(f"{name}a")
            made.keep(f"{name}b")
        else:
            gates[name] = list(vectors)
            made.keep(name)
    return gates


def _nodes(ask: Choices, made: _Cell, parameters: Sequence[str], plain: bool) -> None:
    for _ in range(ask.whole(1, 4)):
        kind = ask.one(["one", "two", "two"] if plain else ["one", "two", "two", "reduction"])
        if kind == "one":
            made.one_input()
        elif kind == "two":
            made.two_inputs(parameters, divide=not plain)
        else:
            made.reduction()
