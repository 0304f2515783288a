"""Graphs of operations in YAML and JSON files (docs/fusion.md): mistakes have their lines, written files read back."""

from __future__ import annotations

import json
import math
import os
from math import prod
from pathlib import PurePath
from typing import Annotated, Any

import numpy as np

from lstmsim.base.bounds import MAX_ELEMENTS, MAX_GRAPH_NODES, MAX_RANK
from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import whole_file
from lstmsim.base.keys import Entry, Key
from lstmsim.base.wording import listed, show
from lstmsim.files.scenario.request_schema import Name
from lstmsim.files.scenario.schema import Text, Word, WrongPaths, check, usable
from lstmsim.files.yaml.document import Document, scalar_text
from lstmsim.files.yaml.source import read_document
from lstmsim.model.fusion.graph import OPERATIONS, REDUCES, Graph, Node, mistaken_name
from lstmsim.model.fusion.graph_rules import AXES_KEYS, checked_graph, located_mistakes, remarks

Places = Annotated[list[int], Key(high=MAX_RANK)]

#: Keys that become `Node.axes`; an operation has at most one of them.
ANY_AXES_KEYS = ("axes", "dims", "perm", "start")


class NodeEntry(Entry):
    """A node; `lstmsim.model.fusion.graph.Node` says what the keys mean."""

    name: Annotated[Name, Key("the name of the result")]
    op: Annotated[Word, Key("the operation", low=1)]
    inputs: Annotated[list[Any], Key("names of nodes, or numbers", high=MAX_GRAPH_NODES)] = []  # noqa: RUF012 - a key
    shape: Annotated[Places | None, Key("sizes of the result")] = None
    axes: Annotated[Places | None, Key("of a reduce: the axes that vanish")] = None
    dims: Annotated[Places | None, Key("of a broadcast: the result's axis of each axis of the operand")] = None
    perm: Annotated[Places | None, Key("of a transpose: the operand's axis of each axis of the result")] = None
    start: Annotated[Places | None, Key("of a slice: where it starts in each axis")] = None
    size: Annotated[Places | None, Key("of a slice: the sizes of the result, as shape")] = None


class GraphEntry(Entry):
    """A graph."""

    name: Annotated[Name, Key("the name of the graph")] = ""
    about: Annotated[tuple[Text, ...], Key("sentences on where it is from", high=1000)] = ()
    outputs: Annotated[list[Word], Key("names of the nodes that are wanted", high=MAX_GRAPH_NODES)]
    nodes: Annotated[list[NodeEntry], Key("the nodes, each after its operands", low=1, high=MAX_GRAPH_NODES)]


def following_shape(op: str, operands: list[Shape], axes: Shape) -> Shape | None:
    """The shape of a result; None if it does not follow, or its operands are wrong."""
    if not operands:
        return None
    first = operands[0]
    if op in OPERATIONS:
        return first
    if op in REDUCES:
        return tuple(size for axis, size in enumerate(first) if axis not in axes)
    if op == "transpose":
        return tuple(first[axis] for axis in axes) if sorted(axes) == list(range(len(first))) else None
    if op == "matmul" and len(operands) == 2:
        return _product(*operands)
    return None


def _product(a: Shape, b: Shape) -> Shape | None:
    if len(a) < 2 or len(b) < 2:
        return None
    try:
        outer = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        return None
    return (*outer, a[-2], b[-1])


Shape = tuple[int, ...]
#: What a node has in place of a key that is wrong, so that its other keys are judged too.
_INSTEAD = {"name": "?", "op": "?"}


def graph_of_document(document: Document, name: str) -> Graph:
    """Make a graph of the document of a graph file; `InputError` with every mistake."""
    entry, wrong = check(GraphEntry, document)
    if any(path[:1] != ("nodes",) or len(path) < 2 or not _can_be_named(document, path) for path in wrong):
        raise InputError(document.reported())
    builder = _Builder(document, wrong)
    nodes = tuple(builder.node(number) for number in range(len(document.data["nodes"])))
    data = document.data
    graph = Graph(str(data.get("name", name)), nodes, tuple(data["outputs"]), tuple(data.get("about", ())))
    for path, sentence in located_mistakes(graph, builder.broken):
        document.blame(path, sentence)
    if document.mistakes or entry is None:
        raise InputError(document.reported())
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
        """Make a node of its keys without mistakes."""
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
        """The axes, dims, perm or start that the operation needs; another of these keys is a mistake."""
        own = "axes" if entry.op in REDUCES else AXES_KEYS.get(entry.op, "")
        if mistaken_name(entry.op):
            return ()
        for key in (*ANY_AXES_KEYS, "size"):
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
            known_already = number in self.broken or len(known) < len(operands) or mistaken_name(entry.op)
            if not known_already:
                self._blame(number, "shape", f"required key is missing: the shape of {show(entry.op)} does not follow")
            self.broken.add(number)
            return ()
        if prod(shape) > MAX_ELEMENTS:
            self.broken.add(number)
        return shape


def _operand(value: Any) -> Any:
    """A name as it is, a number as a float; the rules report all else, and numbers that are too large."""
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return value
    return value


#: Endings of graph files.
SUFFIXES = (".yaml", ".yml", ".json")


def is_graph_file(name: str) -> bool:
    """Whether a text ends as graph files do."""
    return name.lower().endswith(SUFFIXES)


def read_graph(path: str | os.PathLike[str]) -> Graph:
    """Read a graph file, YAML or JSON; `InputError` with every mistake, each with file, line and column."""
    return graph_of_document(read_document(path), PurePath(path).stem)


def _node_data(node: Node) -> dict[str, Any]:
    data: dict[str, Any] = {"name": node.name, "op": node.op}
    if node.inputs:
        data["inputs"] = list(node.inputs)
    data["shape"] = list(node.shape)
    key = "axes" if node.op in REDUCES else AXES_KEYS.get(node.op)
    if key:
        data[key] = list(node.axes)
    return data


def graph_text(graph: Graph, *, as_json: bool = False) -> str:
    """Write a graph as the text of a graph file, a line for each node."""
    rows = [_node_data(node) for node in graph.nodes]
    if as_json:
        head = [f'"name": {_json(graph.name)}', *([f'"about": {_json(graph.about)}'] if graph.about else [])]
        nodes = ",\n  ".join(map(_json, rows))
        return "{" + ",\n ".join([*head, f'"outputs": {_json(graph.outputs)}', f'"nodes": [\n  {nodes}\n ]']) + "}\n"
    about = [f"  - {scalar_text(each)}" for each in graph.about]
    lines = [f"  - {{{', '.join(f'{key}: {_yaml(value)}' for key, value in row.items())}}}" for row in rows]
    head = [f"name: {scalar_text(graph.name)}", *(["about:", *about] if about else [])]
    return "\n".join([*head, f"outputs: {_yaml(list(graph.outputs))}", "nodes:", *lines]) + "\n"


def _yaml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    if isinstance(value, float) and math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    return scalar_text(value)


def _json(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {_json(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, float) and math.isinf(value):
        # JSON has no word for infinity; a number that is too large is read as it
        return "1e999" if value > 0 else "-1e999"
    return json.dumps(value)


def write_graph(path: str | os.PathLike[str], graph: Graph) -> None:
    """Write a graph file, whole or not at all; its ending says whether it is YAML or JSON.

    `InputError` for another ending, a path that cannot be written, or a graph with mistakes.
    """
    name = os.fspath(path)
    if not is_graph_file(name):
        raise InputError(Mistake(name, f"expected a file name that ends in {listed(SUFFIXES)}"))
    checked_graph(graph)
    with whole_file(name, "w") as file:
        file.write(graph_text(graph, as_json=name.lower().endswith(".json")))
