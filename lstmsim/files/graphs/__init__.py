"""Graphs of operations in files: YAML and JSON as `docs/fusion.md` describes nodes, read and written."""

from lstmsim.files.graphs.files import SUFFIXES, graph_from_data, graph_text, is_graph_file, read_graph, write_graph

__all__ = ["SUFFIXES", "graph_from_data", "graph_text", "is_graph_file", "read_graph", "write_graph"]
