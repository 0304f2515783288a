"""What kernels read and write in device memory, and what they evaluate more than once; docs/fusion.md, section 9."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.operations import CHEAP, HEAVY, REDUCE
from lstmsim.model.fusion.plan import GLOBAL, VALUE_BYTES, PlannedKernel, Stage
from lstmsim.model.fusion.schemes import Maps, occurrences

Ints = NDArray[np.int64]


@record
class KernelCounts:
    """What one kernel reads, writes and evaluates anew.

    name: of the kernel.
    read, written: bytes of device memory; each element of each tensor once.
    recomputed: evaluations of cheap and heavy operations beyond the first one of each element in this kernel.
    """

    name: str
    read: int
    written: int
    recomputed: int


@record
class Counts:
    """What kernels read, write and evaluate anew.

    kernels: of each one, in their order.
    """

    kernels: tuple[KernelCounts, ...]

    @property
    def read(self) -> int:
        """Bytes that all kernels read from device memory."""
        return sum(each.read for each in self.kernels)

    @property
    def written(self) -> int:
        """Bytes that all kernels write to device memory."""
        return sum(each.written for each in self.kernels)

    @property
    def recomputed(self) -> int:
        """Evaluations beyond the first one of each element in its kernel, of all kernels."""
        return sum(each.recomputed for each in self.kernels)


def counted(graph: Graph, kernels: Sequence[PlannedKernel]) -> Counts:
    """The bytes and evaluations of kernels, from what they read element by element.

    graph: the graph.
    kernels: of any mode.
    """
    # the elements of a tensor of a size: of equal sizes the same array, so that all of them are known at a glance
    whole = cache(np.arange)
    maps: Maps = {}
    return Counts(tuple(_of_kernel(graph, kernel, whole, maps) for kernel in kernels))


class _Elements:
    """Which elements of which nodes occurred."""

    def __init__(self, graph: Graph, whole: Callable[[int], Ints]) -> None:
        self._graph, self._whole = graph, whole
        self._masks: dict[int, NDArray[np.bool_] | None] = {}

    def add(self, number: int, elements: Ints) -> None:
        size = self._graph.nodes[number].size
        if elements is self._whole(size):
            # no mask: all of them
            self._masks[number] = None
        elif (mask := self._masks.setdefault(number, np.zeros(size, bool))) is not None:
            mask[elements] = True

    @property
    def count(self) -> int:
        return sum(
            self._graph.nodes[number].size if mask is None else int(np.count_nonzero(mask))
            for number, mask in self._masks.items()
        )


def _of_kernel(graph: Graph, kernel: PlannedKernel, whole: Callable[[int], Ints], maps: Maps) -> KernelCounts:
    ends = kernel.ends(graph)
    read, evaluated, evaluations = _Elements(graph, whole), _Elements(graph, whole), 0
    for stage in kernel.stages:
        first = graph.operands[stage.node][0] if graph.nodes[stage.node].kind == REDUCE else stage.node
        for number, some in occurrences(graph, stage.node, whole(graph.nodes[first].size), ends, maps).items():
            for each in some:
                if number in ends and number != stage.node:
                    if _is_off_chip(kernel.stage_of.get(number)):
                        read.add(number, each.elements)
                elif graph.nodes[number].kind in (CHEAP, HEAVY):
                    evaluations += each.times * each.elements.size
                    evaluated.add(number, each.elements)
    written = sum(graph.nodes[stage.node].size for stage in kernel.stages if stage.written)
    return KernelCounts(kernel.name, VALUE_BYTES * read.count, VALUE_BYTES * written, evaluations - evaluated.count)


def _is_off_chip(stage: Stage | None) -> bool:
    """Whether what a kernel reads comes from device memory."""
    return stage is None or stage.scheme == GLOBAL
