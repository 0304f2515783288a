"""Pipeline depths of a cell's graph in the tail unit: when each value of a unit is there, counted from the unit's turn.

A unit's turn in a segment (`lstmsim.model.segments`) starts its part of the graph; what comes from elsewhere is
there by then. Reductions add `tail_width` units a turn in a tree, then turn after turn in an accumulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from lstmsim.model.cell import OPERATIONS, REDUCTIONS, Cell, Node
from lstmsim.model.segments import Segment, segments

__all__ = ["begins", "depths", "reduction_cycles"]


def reduction_cycles(node: Node, latency: Mapping[str, int], tail_width: int) -> int:
    """From a unit's last input until the reduction over all units is known, if it was the last unit.

    Squares, a tree over `tail_width` units with all their inputs, one addition to the running sum, times 1/n.

    >>> default = {"elementwise_multiply": 4, "elementwise_add": 4}
    >>> reduction_cycles(Node("m", "mean", ("a",)), default, 64)
    32
    """
    levels = (tail_width * len(node.inputs) - 1).bit_length()
    squares = latency["elementwise_multiply"] if node.operation == "mean_square" else 0
    return squares + (levels + 1) * latency["elementwise_add"] + latency["elementwise_multiply"]


def begins(node: Node, depth: Mapping[str, int], segment: Segment) -> int:
    """Cycles from a unit's turn until all of the node's inputs are there."""
    own = {each.name for each in (*segment.nodes, *segment.reductions, *segment.scalars)}
    return max((depth[each] for each in node.sources if each in own), default=0)


def depths(cell: Cell, latency: Mapping[str, int], tail_width: int) -> Mapping[str, int]:
    """For every node: cycles from a unit's turn in the node's segment until its value is there.

    For a reduction and what is made of it: from the last unit's turn.

    >>> from lstmsim.model.cells import cell
    >>> default = dict(activation=8, elementwise_multiply=4, elementwise_add=4, quantize=4, divide=16)
    >>> [depths(cell(name), default, 64)["h'"] for name in ("lstm", "gru", "rnn")]
    [32, 40, 12]
    """
    return _depths(cell, tuple(sorted(latency.items())), tail_width)


@lru_cache(maxsize=1024)
def _depths(cell: Cell, latency: tuple[tuple[str, int], ...], tail_width: int) -> Mapping[str, int]:
    cycles = dict(latency)
    depth: dict[str, int] = {}
    for segment in segments(cell):
        for node in (*segment.nodes, *segment.reductions, *segment.scalars):
            if node.operation in REDUCTIONS:
                own = reduction_cycles(node, cycles, tail_width)
            else:
                own = cycles[OPERATIONS[node.operation][1]]
            depth[node.name] = begins(node, depth, segment) + own
    return MappingProxyType(depth)
