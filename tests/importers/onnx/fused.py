"""Graphs of ONNX files, computed by numpy: inputs are given, stored numbers are the file's, calls are others'."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from lstmsim.importers.onnx.operations import OnnxGraph, read_onnx_graph
from lstmsim.model.fusion.graph import COMPUTE, INPUT, Graph, Node
from lstmsim.model.fusion.schemes import evaluated

Arrays = Mapping[str, np.ndarray]


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    (folder / "a.onnx").write_bytes(model.SerializeToString())
    return folder / "a.onnx"


def called(graph: Graph) -> list[str]:
    """The names of the nodes that are calls of libraries, without matrix products."""
    return [node.name for node in graph.nodes if node.kind == COMPUTE and node.op != "matmul"]


def computed(read: OnnxGraph, given: Arrays, calls: Arrays | None = None) -> dict[str, np.ndarray]:
    """The network's outputs by name.

    given: its inputs.
    calls: what library calls gave, by the names of their nodes.
    """
    known = calls or {}
    nodes = tuple(Node(each.name, INPUT, (), each.shape) if each.name in known else each for each in read.graph.nodes)
    graph = Graph(read.graph.name, nodes, read.graph.outputs)
    inputs = {}
    for number, node in enumerate(graph.nodes):
        if node.kind == INPUT:
            value = known.get(node.name, given.get(node.name))
            inputs[number] = np.asarray(read.numbers(node.name) if value is None else value, np.float64)
    values = evaluated(graph, inputs)
    return {read.sources[name]: values[graph.numbers[name]] for name in graph.outputs}


def run(model: onnx.ModelProto, given: Arrays, more: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """What onnxruntime gives for the outputs, and for values inside the network."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    there = [each.name for each in copy.graph.output]
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in more if name not in there)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    taken = {each.name: given[each.name] for each in session.get_inputs()}
    return dict(zip(names, session.run(names, taken), strict=True))


def compared(path: Path, given: Arrays, sizes: Mapping[str, int] | None = None, tolerance: float = 1e-5) -> OnnxGraph:
    """Read a file and compare all outputs of the graph with onnxruntime's."""
    read = read_onnx_graph(path, sizes)
    calls = called(read.graph)
    theirs = run(onnx.load(path), given, tuple(calls))
    ours = computed(read, given, {name: theirs[name] for name in calls})
    for name, value in ours.items():
        assert value.shape == theirs[name].shape
        np.testing.assert_allclose(value, theirs[name].astype(np.float64), tolerance, tolerance)
    return read
