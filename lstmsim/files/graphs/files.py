"""Graph files: read with every mistake at its line, and written so that they read back as the same graph."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import whole_file
from lstmsim.base.wording import listed
from lstmsim.files.graphs.reading import graph_of_document
from lstmsim.files.yaml.document import document_of
from lstmsim.files.yaml.source import read_document
from lstmsim.files.yaml.text import scalar_text
from lstmsim.model.fusion.graph import Graph, Node
from lstmsim.model.fusion.graph_rules import AXES_KEYS, checked_graph
from lstmsim.model.fusion.operations import REDUCES

__all__ = ["SUFFIXES", "graph_from_data", "graph_text", "is_graph_file", "read_graph", "write_graph"]

#: Endings of graph files.
SUFFIXES = (".yaml", ".yml", ".json")


def is_graph_file(name: str) -> bool:
    """Whether a text ends as graph files do.

    >>> is_graph_file("tail.yaml"), is_graph_file("ln-lstm")
    (True, False)
    """
    return name.lower().endswith(SUFFIXES)


def read_graph(path: str | os.PathLike[str]) -> Graph:
    """Read a graph file.

    path: the file, YAML or JSON.

    `InputError` with every mistake, each with file, line and column.

    >>> read_graph("no-such-graph.yaml")
    Traceback (most recent call last):
    lstmsim.InputError: no file called 'no-such-graph.yaml'
    """
    return graph_of_document(read_document(path), PurePath(path).stem)


def graph_from_data(data: Mapping[str, Any], name: str = "graph") -> Graph:
    """Make a graph of data that is laid out as in a graph file.

    data: keys `nodes`, `outputs`, perhaps `name` and `about`.
    name: of the graph if the data has none.

    `InputError` with every mistake.

    >>> nodes = [{"name": "x", "op": "input", "shape": [4]}, {"name": "y", "op": "tanh", "inputs": ["x"]}]
    >>> graph_from_data({"nodes": nodes, "outputs": ["y"]}).nodes[1].shape
    (4,)
    """
    return graph_of_document(document_of(data), name)


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
    """Write a graph as the text of a graph file, a line for each node.

    graph: without mistakes.
    as_json: JSON instead of YAML.

    >>> print(graph_text(Graph("g", (Node("x", "input", (), (4,)),), ("x",))), end="")
    name: g
    outputs: [x]
    nodes:
      - {name: x, op: input, shape: [4]}
    """
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
    """Write a graph file, whole or not at all.

    path: the file; its ending says whether it is YAML or JSON.
    graph: the graph.

    `InputError` for another ending, a path that cannot be written, or a graph with mistakes.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "g.yaml")
    ...     write_graph(path, Graph("g", (Node("x", "input", (), (4,)),), ("x",)))
    ...     read_graph(path).nodes
    (Node(name='x', op='input', inputs=(), shape=(4,), axes=()),)
    """
    name = os.fspath(path)
    if not is_graph_file(name):
        raise InputError(Mistake(name, f"expected a file name that ends in {listed(SUFFIXES)}"))
    checked_graph(graph)
    with whole_file(name, "w") as file:
        file.write(graph_text(graph, as_json=name.lower().endswith(".json")))
