"""A group without reduce takes the blocks of a group that it reads; docs/fusion.md, section 5.4."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np

from lstmsim.base.records import record
from lstmsim.base.wording import counted
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.indexing import ranks
from lstmsim.model.fusion.plan import Decision, Group, Owners, ThreadMapping
from lstmsim.model.fusion.trees import first_read

__all__ = ["Adapted", "Earlier", "adaptation_decision", "adapted"]

#: How many times the mean the fullest block may have.
_FULLEST = 2


@record
class Earlier:
    """A candidate of a group that is mapped already.

    owners: of its elements.
    mapping: of its group.
    """

    owners: Owners
    mapping: ThreadMapping


@record
class Adapted:
    """What became of the attempt to adapt a group.

    mapping, owners: who computes the backbone; None if the group does not adapt.
    because: why it does or does not, a sentence without a full stop.
    """

    mapping: ThreadMapping | None
    owners: Owners | None
    because: str


def adapted(graph: Graph, group: Group, earlier: Mapping[int, Earlier], ends: Set[int]) -> Adapted:
    """Give each element of a group the block that owns what it reads of an earlier group, if no block has far too many.

    graph: the graph.
    group: a group of kind `element`.
    earlier: the candidates of earlier groups.
    ends: the candidates of the sub-graph, and what it reads from outside.
    """
    elements = np.arange(group.rows)
    for number in sorted(earlier):
        read = first_read(graph, group.backbone, elements, number, ends)
        if read is not None:
            return _following(graph.nodes[number].name, earlier[number], read)
    return Adapted(None, None, "it reads no candidate of an earlier group")


def _following(name: str, one: Earlier, read: np.ndarray) -> Adapted:
    """Whether a group may have the blocks of what it reads."""
    block = one.owners.block[read]
    counts = np.bincount(block, minlength=one.mapping.blocks)
    there = counted(one.mapping.blocks, "block")
    said = f"the fullest of the {there} of {name} would have {counts.max()} of {block.size} elements"
    if one.mapping.blocks == 1:
        said = f"the one block of {name} would have all {block.size} elements"
    if counts.max() * one.mapping.blocks > _FULLEST * block.size:
        return Adapted(None, None, f"{said}, more than {_FULLEST} times the mean")
    threads = one.mapping.threads
    mapping = ThreadMapping("adapted", one.mapping.blocks, threads, threads, 1, 1, 1, block.size)
    thread = (ranks(block) % threads).astype(np.int32)
    return Adapted(mapping, Owners(block, thread), f"{said}, at most {_FULLEST} times the mean")


def adaptation_decision(graph: Graph, group: Group, tried: Adapted) -> Decision:
    """Why a group took over the blocks of another one.

    graph: the graph.
    group: the group.
    tried: what `adapted` made of it.
    """
    mapping = tried.mapping
    chosen = "blocks by the rule for elements"
    if mapping is not None:
        chosen = f"{counted(mapping.blocks, 'block')} of {mapping.threads} threads"
    return Decision("mapping", graph.nodes[group.backbone].name, chosen, tried.because)
