"""An ONNX file becomes a graph of operations."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounded import placed
from lstmsim.base.bounds import MAX_AXIS
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.wording import listed, nearest, show
from lstmsim.importers.onnx.external import DataFiles
from lstmsim.importers.onnx.file import parsed_network
from lstmsim.importers.onnx.graph import open_scopes
from lstmsim.importers.onnx.operations.drawing import Drawing
from lstmsim.importers.onnx.operations.values import Value
from lstmsim.importers.onnx.operations.walk import Walk
from lstmsim.importers.onnx.quantized import dequantise
from lstmsim.importers.onnx.sizes import empty_sizes, size_names
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.graph_rules import checked_graph, remarks

__all__ = ["OnnxGraph", "graph_of_onnx", "read_onnx_graph"]

_MOST_TOLD = 20


@record
class OnnxGraph:
    """A graph and where its values are in the file.

    graph: the graph.
    sources: name of each output of the graph -> name of the network's output.
    values: name of each input of the graph whose numbers the file holds -> these.
    """

    graph: Graph
    sources: Mapping[str, str]
    values: Mapping[str, Value]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """The numbers of an input that the file holds."""
        return np.asarray(self.values[name].array, np.float64)


def graph_of_onnx(path: str | os.PathLike[str], sizes: Mapping[str, int] | None = None) -> Graph:
    """Make a graph of an ONNX file.

    path: the file.
    sizes: a number for each size that the network's inputs leave open, by its name there.

    `InputError` for a damaged file, for an open size without a number, or if no output can be reached. What is not
    expanded is a call of a library; the graph's `about` names it, and whatever was left out.

    >>> graph_of_onnx("no-such-file.onnx")
    Traceback (most recent call last):
    lstmsim.InputError: no-such-file.onnx: no such file or folder
    """
    return read_onnx_graph(path, sizes).graph


def read_onnx_graph(path: str | os.PathLike[str], sizes: Mapping[str, int] | None = None) -> OnnxGraph:
    """Make a graph of an ONNX file, with the numbers that it holds; arguments and errors as of `graph_of_onnx`."""
    name = os.fspath(path)
    network = parsed_network(name)
    try:
        return _read(network, name, dict(sizes or {}))
    except UnicodeDecodeError:
        raise InputError(Mistake(name, "is damaged: a name in it is not UTF-8")) from None
    except InputError as error:
        raise placed(error, name) from None


def _read(network: Any, name: str, sizes: dict[str, int]) -> OnnxGraph:
    _check_sizes(network, sizes)
    dequantise(network, None)
    scopes = open_scopes(network)
    draw = Drawing(network.ByteSize())
    walk = Walk(network, scopes[0], draw, DataFiles(name))
    walk.start(sizes)
    outputs, about, reasons = [], [], []
    for info in network.graph.output:
        value = walk.known(scopes[0], str(info.name))
        if value is None:
            reasons.append(walk.why(scopes[0], str(info.name)))
            about.append(f"output {show(str(info.name))} is left out: {reasons[-1]}")
        elif value.stored:
            about.append(f"output {show(str(info.name))} is left out: it does not depend on the inputs")
        else:
            outputs.append((str(info.name), value))
    if not outputs:
        raise InputError([Mistake("", each) for each in about] or "has no output")
    apart: dict[int, tuple[str, Value]] = {}
    for label, value in outputs:
        same = apart.setdefault(value.number, (label, value))[0]
        about += [f"output {show(label)} is the same as {show(same)}"] if same != label else []
    ordered = list(apart.values())
    nodes, names, stored = draw.nodes([value for _, value in ordered])
    graph = Graph(PurePath(name).stem, tuple(nodes), tuple(names))
    text = (*_origin(network, name, sizes), *about, *walk.told(reasons), *_unread(network, graph))
    graph = checked_graph(Graph(graph.name, graph.nodes, graph.outputs, text))
    graph = Graph(graph.name, graph.nodes, graph.outputs, (*text, *remarks(graph)))
    return OnnxGraph(graph, dict(zip(names, (label for label, _ in ordered), strict=True)), stored)


def _check_sizes(network: Any, sizes: Mapping[str, int]) -> None:
    """Every open size needs a number, and every number a size."""
    wanted = size_names(network)
    wrong = [
        Mistake("size", f"no input leaves a size {show(each)} open{nearest(each, wanted) or _there(wanted)}")
        for each in sizes
        if each not in wanted
    ]
    wrong += [
        Mistake("size", f"{show(each)} must be a whole number from 1 to {MAX_AXIS}, got {show(number)}")
        for each, number in sizes.items()
        if each in wanted and (type(number) is not int or not 1 <= number <= MAX_AXIS)
    ]
    missing, none = [each for each in wanted if each not in sizes], set(empty_sizes(network))
    for names, told in (
        ([each for each in missing if each not in none], "leave sizes open; a number is needed for each"),
        (
            [each for each in missing if each in none],
            "state a size of 0, so there is nothing to compute; a number in its place may be given",
        ),
    ):
        words = " ".join(f"{each}=N" for each in names[:_MOST_TOLD])
        wrong += [Mistake("size", f"the network's inputs {told}: {words}")] if names else []
    if wrong:
        raise InputError(wrong)


def _there(wanted: list[str]) -> str:
    return f"; open are {listed(wanted, 'and')}" if wanted else ": all its sizes are stated"


def _origin(network: Any, name: str, sizes: Mapping[str, int]) -> list[str]:
    producer = " ".join(str(network.producer_name).split())
    words = ", ".join(f"{key} {number}" for key, number in sizes.items())
    by = f", written by {show(producer)}" if producer else ""
    return [f"from {PurePath(name).name}{by}{f', with {words}' if words else ''}"]


def _unread(network: Any, graph: Graph) -> list[str]:
    stored = {str(each.name) for each in network.graph.initializer}
    names = {node.name for node in graph.nodes}
    idle = [show(str(each.name)) for each in network.graph.input if each.name not in stored | names]
    return [f"{listed(idle, 'and')} of the network's inputs: no operation of the graph reads it"] if idle else []
