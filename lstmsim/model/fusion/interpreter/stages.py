"""One stage of a kernel, run: all its blocks, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.indexing import positions
from lstmsim.model.fusion.interpreter.expressions import evaluated_stage
from lstmsim.model.fusion.interpreter.faults import Fault
from lstmsim.model.fusion.interpreter.memory import KernelMemory, Reader
from lstmsim.model.fusion.operations import REDUCE, REDUCES
from lstmsim.model.fusion.plan import REGISTER, SHARED, Owners, PlannedKernel, Stage

__all__ = ["run_stage"]

Ints = NDArray[np.int64]
Values = NDArray[np.float64]

#: Blocks with so many elements are run at once: blocks only meet at grid barriers, so that nothing changes by that.
AT_ONCE = 1 << 16


def run_stage(graph: Graph, kernel: PlannedKernel, stage: Stage, memory: KernelMemory) -> None:
    """Compute a stage in all blocks and store it; `Fault` if it reads what it cannot have.

    graph: the graph.
    kernel: the kernel.
    stage: one of its stages; those before it were run.
    memory: of the running kernel.
    """
    ends = kernel.ends(graph)
    reduces = graph.nodes[stage.node].kind == REDUCE
    if not reduces and not _alike(stage.work, stage.owners):
        raise Fault("others compute it than own it", kernel.name, graph.nodes[stage.node].name)
    values = np.empty(graph.nodes[stage.node].size)
    parts: list[tuple[Ints, Ints, Values]] = []
    for elements in _runs(stage.work.block):
        reader = Reader(stage.node, stage.work.block[elements], stage.work.thread[elements])
        computed = evaluated_stage(graph, stage.node, elements, ends, partial(memory.read, reader=reader))
        if reduces:
            parts.append(_parts(graph, stage.node, elements, reader.block, computed))
        else:
            values[elements] = computed
    if reduces:
        block, result, value = (np.concatenate(each) for each in zip(*parts, strict=True))
        _check_parts(graph, kernel, stage, block, result)
        values = _joined(graph.nodes[stage.node].op, result, value, values.size)
    memory.write(stage, values)


def _alike(work: Owners, owners: Owners) -> bool:
    return all(
        one is other or np.array_equal(one, other)
        for one, other in ((work.block, owners.block), (work.thread, owners.thread))
    )


def _runs(block: NDArray[np.int32]) -> Iterator[Ints]:
    """Elements block by block, ascending in each; some blocks at a time.

    block: shape (n,); of each element.
    """
    ordered = bool(np.all(block[1:] >= block[:-1]))
    order = np.arange(block.size) if ordered else np.argsort(block, kind="stable")
    ends = np.flatnonzero(np.diff(block[order])) + 1
    start = 0
    while start < block.size:
        # the last end of a block within reach, or else the next one
        at = int(np.searchsorted(ends, start + AT_ONCE, "right"))
        end = block.size
        if block.size > start + AT_ONCE:
            if at and ends[at - 1] > start:
                end = int(ends[at - 1])
            elif at < ends.size:
                end = int(ends[at])
        yield order[start:end]
        start = end


def _parts(
    graph: Graph, number: int, elements: Ints, block: NDArray[np.int32], values: Values
) -> tuple[Ints, Ints, Values]:
    """What each block has of each result: blocks ascending, results, and the values, joined in order of elements."""
    result, _ = positions(graph, number, elements)
    size = graph.nodes[number].size
    keys, inverse = np.unique(block * np.int64(size) + result, return_inverse=True)
    return keys // size, keys % size, _joined(graph.nodes[number].op, inverse, values, keys.size)


def _joined(op: str, place: Ints, values: Values, size: int) -> Values:
    """Values of the same place, joined one after the other.

    op: a reduce.
    place: shape (n,); of each value.
    values: shape (n,).
    size: how many places; each has a value.
    """
    with np.errstate(all="ignore"):
        if op == "reduce_sum":
            # adds in order
            return np.asarray(np.bincount(place, values, size), np.float64)
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(size))
        return np.asarray(REDUCES[op].reduceat(values[order], starts))


def _check_parts(graph: Graph, kernel: PlannedKernel, stage: Stage, block: Ints, result: Ints) -> None:
    """A result of several blocks must be planned so, and another one lies where it was computed."""
    name = graph.nodes[stage.node].name
    most = int(np.bincount(result).max())
    if most > max(1, stage.partials):
        planned = f"{stage.partials} partials are planned" if stage.partials else "it is not planned as split"
        raise Fault(f"{most} blocks have a part of one result, but {planned}", kernel.name, name)
    if stage.partials or stage.scheme not in (REGISTER, SHARED):
        return
    owner = stage.owners.block[result]
    for at in np.flatnonzero(owner != block)[:1]:
        why = f"block {block[at]} computes result {result[at]}, which is to lie in block {owner[at]}"
        raise Fault(why, kernel.name, name)
