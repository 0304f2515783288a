"""ONNX networks as graphs of operations: what stands around recurrent nodes, expanded into what fusion knows.

A node becomes operations of `docs/fusion.md`, section 1, or a call of a library. The same rules fold constants.
"""

from lstmsim.importers.onnx.operations.reader import OnnxGraph, graph_of_onnx, read_onnx_graph

__all__ = ["OnnxGraph", "graph_of_onnx", "read_onnx_graph"]
