"""Where the values of a fused kernel lie: addresses in shared memory, arrays, partials; docs/fusion.md, section 10."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import Memory
from lstmsim.model.fusion.candidates import outputs_of
from lstmsim.model.fusion.device import VALUE_BYTES
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.indexing import positions, ranks
from lstmsim.model.fusion.plan import SHARED, PlannedKernel, Stage

__all__ = ["Homes", "Pieces", "arrays_of", "homes_of"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Which partial of a split result each block makes: its blocks are numbered in order.

    keys: shape (n,); result * blocks + block, ascending.
    piece: shape (n,); the partial.
    blocks: of the kernel.
    """

    keys: Ints
    piece: Ints
    blocks: int

    @classmethod
    def made(cls, graph: Graph, stage: Stage, blocks: int) -> Pieces:
        """The partials of a stage.

        graph: the graph.
        stage: its results are split.
        blocks: of its kernel.
        """
        results = positions(graph, stage.node, np.arange(len(stage.work.block)))[0]
        keys = np.unique(results * blocks + stage.work.block)
        result = keys // blocks
        return cls(keys, np.arange(len(keys)) - np.searchsorted(result, result), blocks)

    def of(self, results: Ints, blocks: Ints) -> Ints:
        """The partials of some results in some blocks.

        results: shape (n, lanes); what a block has no part of gives any partial.
        blocks: shape (n,).
        """
        at = np.searchsorted(self.keys, results * self.blocks + blocks[:, None])
        return self.piece[np.minimum(at, len(self.keys) - 1)]


@dataclass(frozen=True, eq=False)
class Homes:
    """Where the values of a kernel lie.

    graph, kernel: the kernel and its graph.
    outputs: candidates that somebody outside of the kernel wants.
    arrays: names of the arrays of all nodes.
    partials: names of the arrays of partials, by the number of the reduce.
    shared: address in shared memory of each element of a `shared` candidate, by its number.
    pieces: which partials blocks make, by the number of the reduce.
    """

    graph: Graph
    kernel: PlannedKernel
    outputs: frozenset[int]
    arrays: Sequence[str]
    partials: Mapping[int, str]
    shared: Mapping[int, Ints]
    pieces: Mapping[int, Pieces]


def arrays_of(graph: Graph, kernels: Sequence[PlannedKernel]) -> tuple[tuple[Memory, ...], dict[int, str]]:
    """The arrays of a run of kernels: all nodes by number, then partials as they come; and names of the latter.

    graph: the graph.
    kernels: in the order in which they run.
    """
    memories = [Memory(node.name, node.size) for node in graph.nodes]
    names: dict[int, str] = {}
    for kernel in kernels:
        for stage in kernel.stages:
            if stage.partials and stage.node not in names:
                node = graph.nodes[stage.node]
                names[stage.node] = f"{node.name} (partials)"
                memories.append(Memory(names[stage.node], node.size * stage.partials))
    return tuple(memories), names


def homes_of(graph: Graph, kernel: PlannedKernel, partials: Mapping[int, str]) -> Homes:
    """Where the values of a kernel lie.

    graph, kernel: the kernel and its graph.
    partials: as from `arrays_of`.
    """
    inside = kernel.inlined.union(kernel.stage_of)
    split = [stage for stage in kernel.stages if stage.partials]
    begins = np.cumsum([0, *kernel.buffers])
    return Homes(
        graph,
        kernel,
        frozenset(outputs_of(graph, sorted(inside))).intersection(kernel.stage_of),
        [node.name for node in graph.nodes],
        partials,
        {
            each.node: begins[each.buffer] + VALUE_BYTES * ranks(each.owners.block)
            for each in kernel.stages
            if each.scheme == SHARED
        },
        {each.node: Pieces.made(graph, each, kernel.blocks) for each in split},
    )
