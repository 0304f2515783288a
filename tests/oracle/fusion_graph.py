"""Graphs of docs/fusion.md, section 1, as golden cases write them: lists and loops alone."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

CHEAP = ["add", "subtract", "multiply", "maximum", "minimum", "negate", "abs", "copy", "greater", "select", "round"]
HEAVY = ["tanh", "sigmoid", "exp", "log", "power", "divide", "sqrt", "rsqrt", "reciprocal"]
MOVE = ["broadcast", "reshape", "transpose", "slice"]
REDUCE = ["reduce_sum", "reduce_max", "reduce_min"]


def up(a: int, b: int) -> int:
    return -(-a // b)


def coordinates(flat: int, shape: list[int]) -> list[int]:
    place = []
    for size in reversed(shape):
        place.append(flat % size)
        flat //= size
    return place[::-1]


def flat_of(place: list[int], shape: list[int]) -> int:
    flat = 0
    for at, size in zip(place, shape, strict=True):
        flat = flat * size + at
    return flat


class Graph:
    """Nodes by number; an operand is a number of a node, or None for a plain number."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.nodes: list[dict[str, Any]] = case["nodes"]
        number = {node["name"]: place for place, node in enumerate(self.nodes)}
        self.names = list(number)
        self.ops = [node["op"] for node in self.nodes]
        self.shapes = [list(node["shape"]) for node in self.nodes]
        self.sizes = [prod(shape) for shape in self.shapes]
        self.operands = [
            [number[each] if isinstance(each, str) else None for each in node["inputs"]] for node in self.nodes
        ]
        self.outputs = {number[name] for name in case["outputs"]}
        self.readers: list[list[int]] = [[] for _ in self.nodes]
        for reader, operands in enumerate(self.operands):
            for operand in operands:
                if operand is not None and reader not in self.readers[operand]:
                    self.readers[operand].append(reader)
        self.index = cache(self._index)
        self.parts = cache(self._parts)

    def light(self, v: int) -> bool:
        """Whether a node is memory-intensive."""
        return self.ops[v] in CHEAP + HEAVY + MOVE + REDUCE

    def reduces(self, v: int) -> bool:
        return self.ops[v] in REDUCE

    def known(self, v: int) -> list[int]:
        """The operands that are nodes."""
        return [each for each in self.operands[v] if each is not None]

    def _index(self, v: int, u: int) -> list[int]:
        """For each element of v the element of its operand u that it needs."""
        node, shape, other = self.nodes[v], self.shapes[v], self.shapes[u]
        if self.ops[v] not in ("broadcast", "transpose", "slice"):
            return list(range(self.sizes[v]))
        needed = []
        for e in range(self.sizes[v]):
            place = coordinates(e, shape)
            if self.ops[v] == "broadcast":
                source = [place[axis] for axis in node["dims"]]
            elif self.ops[v] == "transpose":
                source = [0] * len(place)
                for axis, at in zip(node["perm"], place, strict=True):
                    source[axis] = at
            else:
                source = [at + start for at, start in zip(place, node["start"], strict=True)]
            needed.append(flat_of(source, other))
        return needed

    def _parts(self, v: int) -> list[list[int]]:
        """For each result of a reduce the elements of its operand, by their position along the reduced axes."""
        (u,) = self.known(v)
        shape, axes = self.shapes[u], self.nodes[v]["axes"]
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        parts: list[list[int]] = [[] for _ in range(self.sizes[v])]
        for e in range(self.sizes[u]):
            place = coordinates(e, shape)
            parts[flat_of([place[axis] for axis in kept], [shape[axis] for axis in kept])].append(e)
        return parts

    def tree(self, stage: int, ends: set[int]) -> list[tuple[int, list[int]]]:
        """The expression of a stage: each occurrence of a node, depth first, with the element for each work element."""
        found: list[tuple[int, list[int]]] = []

        def visit(v: int, elements: list[int], root: bool) -> None:
            found.append((v, elements))
            if v in ends and not root:
                return
            for u in self.known(v):
                index = self.index(v, u)
                visit(u, [index[e] for e in elements], False)

        first = self.known(stage)[0] if self.reduces(stage) else stage
        visit(first, list(range(self.sizes[first])), not self.reduces(stage))
        return found
