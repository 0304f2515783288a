"""The keys of graph files."""

from __future__ import annotations

from typing import Annotated, Any

from lstmsim.base.bounds import MAX_GRAPH_NODES, MAX_RANK
from lstmsim.base.keys import Key
from lstmsim.files.scenario.schema_types import Name, Text, Word
from lstmsim.files.yaml.entry import Entry

__all__ = ["AXES_KEYS", "GraphEntry", "NodeEntry"]

Places = Annotated[list[int], Key(high=MAX_RANK)]

#: Keys that become `Node.axes`; an operation has at most one of them.
AXES_KEYS = ("axes", "dims", "perm", "start")


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
