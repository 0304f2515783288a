"""A document becomes a graph; every mistake is told at the line of the value that it is in."""

from __future__ import annotations

from math import prod
from typing import Any

from lstmsim.base.bounds import MAX_ELEMENTS
from lstmsim.base.errors import InputError
from lstmsim.base.wording import show
from lstmsim.files.graphs.schema import AXES_KEYS, GraphEntry, NodeEntry
from lstmsim.files.graphs.shapes import following_shape
from lstmsim.files.yaml.checks import WrongPaths, check, usable
from lstmsim.files.yaml.document import DataPath, Document
from lstmsim.model.fusion.graph import Graph, Node
from lstmsim.model.fusion.graph_rules import AXES_KEYS as OWN_KEYS
from lstmsim.model.fusion.graph_rules import located_mistakes, remarks
from lstmsim.model.fusion.operations import REDUCES, mistaken_name

__all__ = ["graph_of_document"]

Shape = tuple[int, ...]
#: What a node has in place of a key that is wrong, so that its other keys are judged too.
_INSTEAD = {"name": "?", "op": "?"}


def graph_of_document(document: Document, name: str) -> Graph:
    """Make a graph of the document of a graph file; `InputError` with every mistake.

    document: as it was read.
    name: of the graph if the document has none.

    The graph's `about` ends with what a user may not expect of it.
    """
    entry, wrong = check(GraphEntry, document)
    if any(path[:1] != ("nodes",) or len(path) < 2 or not _can_be_named(document, path) for path in wrong):
        raise InputError(document.told())
    builder = _Builder(document, wrong)
    nodes = tuple(builder.node(number) for number in range(len(document.data["nodes"])))
    data = document.data
    graph = Graph(str(data.get("name", name)), nodes, tuple(data["outputs"]), tuple(data.get("about", ())))
    for path, sentence in located_mistakes(graph, builder.broken):
        document.blame(path, sentence)
    if document.mistakes or entry is None:
        raise InputError(document.told())
    more = tuple(each for each in remarks(graph) if each not in graph.about)
    return Graph(graph.name, nodes, graph.outputs, (*graph.about, *more))


def _can_be_named(document: Document, path: DataPath) -> bool:
    """Whether the node with a mistake has a name, so that others that read it can be judged."""
    data = document.at(path[:2])
    return isinstance(data, dict) and isinstance(data.get("name"), str) and "name" not in path[2:3]


class _Builder:
    """The maker of nodes; it knows which of them have mistakes that make further sentences about them untrue."""

    def __init__(self, document: Document, wrong: WrongPaths) -> None:
        self.document = document
        self.wrong = wrong
        self.broken: set[int] = set()
        self.shapes: dict[str, Shape] = {}

    def node(self, number: int) -> Node:
        """Make a node with what is right of it."""
        path: DataPath = ("nodes", number)
        data, keys = self.document.at(path), self.wrong.below(path)
        entry = usable(NodeEntry, data, keys, {key: word for key, word in _INSTEAD.items() if key in keys})
        if keys or entry is None:
            self.broken.add(number)
        if entry is None:
            return Node(str(data["name"]), "?", (), ())
        axes = self._axes(number, entry)
        operands = [self.shapes.get(each) for each in entry.inputs if isinstance(each, str)]
        shape = self._shape(number, entry, axes, operands)
        if number not in self.broken:
            self.shapes.setdefault(entry.name, shape)
        return Node(entry.name, entry.op, tuple(map(_operand, entry.inputs)), shape, axes)

    def _blame(self, number: int, key: str, sentence: str, *, at_key: bool = False) -> None:
        self.document.blame(("nodes", number, key), sentence, key=at_key)
        self.broken.add(number)

    def _axes(self, number: int, entry: NodeEntry) -> Shape:
        """What the operation needs of axes, dims, perm and start; another of these keys is a mistake."""
        own = "axes" if entry.op in REDUCES else OWN_KEYS.get(entry.op, "")
        if mistaken_name(entry.op):
            return ()
        for key in (*AXES_KEYS, "size"):
            if getattr(entry, key) is None or key == own or (key == "size" and own == "start"):
                continue
            hint = f"; did you mean {own!r}?" if own else ""
            self._blame(number, key, f"{show(entry.op)} has no {key}{hint}", at_key=True)
        if not own or number in self.broken:
            return ()
        axes = getattr(entry, own)
        if axes is None:
            self._blame(number, own, f"required key is missing: {show(entry.op)} needs it")
        return tuple(axes or ())

    def _shape(self, number: int, entry: NodeEntry, axes: Shape, operands: list[Shape | None]) -> Shape:
        """The shape as the file states it, or as it follows."""
        stated, size = entry.shape, entry.size if entry.op == "slice" else None
        if stated is not None:
            if size is not None and size != stated:
                self._blame(number, "size", f"must be equal to shape, {stated}, got {size}")
            return tuple(stated)
        if size is not None:
            return tuple(size)
        known = [each for each in operands if each is not None]
        shape = following_shape(entry.op, known, axes) if len(known) == len(operands) else None
        if shape is None:
            told = number in self.broken or len(known) < len(operands) or mistaken_name(entry.op)
            if not told:
                self._blame(number, "shape", f"required key is missing: the shape of {show(entry.op)} does not follow")
            self.broken.add(number)
            return ()
        if prod(shape) > MAX_ELEMENTS:
            self.broken.add(number)
        return shape


def _operand(value: Any) -> Any:
    """A name as it is, a number as a float; what is neither, or too large for one, is told by the rules."""
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return value
    return value
