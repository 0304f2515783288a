"""How far executed kernels are from numpy, and where a stage writes over what is still read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.model.fusion.graph import REDUCE, Graph
from lstmsim.model.fusion.interpreter.run import executed
from lstmsim.model.fusion.plan import SHARED, FusionDevice, PlannedKernel, Stage
from lstmsim.model.fusion.schemes import all_reads, drawn_inputs, evaluated, positions, ranks

Values = NDArray[np.float64]

#: Differences up to this are equal; docs/fusion.md, section 8.
TOLERANCE = 1e-6


@record
class Difference:
    """How far executed kernels are from numpy.

    largest: the largest |value - numpy's| / max(1, |numpy's|), first at `node`; infinite where only one is a number.
    elements: how many were compared: all that lies in memory of the device at the end, inputs left out.
    endless: how many of numpy's are infinite or no number: equal ones of these tell little.
    """

    largest: float
    node: str
    elements: int
    endless: int = 0

    @property
    def equal(self) -> bool:
        """Whether all is equal within `TOLERANCE`."""
        return self.largest <= TOLERANCE


def difference_of_run(
    graph: Graph, kernels: Sequence[PlannedKernel], device: FusionDevice, seed: int = 0
) -> Difference:
    """Execute kernels on drawn inputs, and compare with numpy; `Fault` if a plan is wrong."""
    inputs = drawn_inputs(graph, seed)
    return difference(graph, executed(graph, kernels, inputs, device), inputs)


def difference(graph: Graph, values: Mapping[int, Values], inputs: Mapping[int, Values]) -> Difference:
    """Compare values of nodes with numpy, by the numbers of the inputs."""
    expected = evaluated(graph, inputs)
    compared = sorted(set(values) - set(inputs))
    far = [(_largest(values[number], expected[number]), -number) for number in compared]
    largest, place = max(far, default=(0.0, 0))
    return Difference(
        largest=largest,
        node=graph.nodes[-place].name if far else "",
        elements=sum(graph.nodes[number].size for number in compared),
        endless=sum(int(np.count_nonzero(~np.isfinite(expected[number]))) for number in compared),
    )


def _largest(value: Values, expected: Values) -> float:
    with np.errstate(all="ignore"):
        far = np.abs(value - expected) / np.maximum(1.0, np.abs(expected))
    same = (value == expected) | (np.isnan(value) & np.isnan(expected))
    far = np.where(same, 0.0, np.where(np.isfinite(far), far, np.inf))
    return float(far.max(initial=0.0))


Ints = NDArray[np.int64]


@record
class Overlap:
    """A stage that writes over a value of which other warps, or later turns of its own threads, still read elements.

    stage, reader, value: numbers of stages; buffer: of the buffer of shared memory.
    """

    stage: int
    reader: int
    value: int
    buffer: int


def overlaps(graph: Graph, kernel: PlannedKernel, warp: int = 32) -> tuple[Overlap, ...]:
    """Stages of a kernel that need a block barrier before their writes, which no plan has; warp: threads in step."""
    shared = [stage for stage in kernel.stages if stage.scheme == SHARED]
    if len({stage.buffer for stage in shared}) == len(shared):
        return ()
    ends = kernel.ends(graph)
    reads = all_reads(graph, [stage.node for stage in kernel.stages], ends)
    writes = cache(lambda place: _Writes(graph, kernel.stages[place], warp))
    some = []
    for place, stage in enumerate(kernel.stages):
        before = [each for each in shared if each.buffer == stage.buffer and each.node < stage.node]
        if stage.scheme != SHARED or not before:
            continue
        # what was there before the last one is gone already
        value = before[-1]
        for earlier in range(place, -1, -1):
            reader = kernel.stages[earlier]
            elements = reads[reader.node].get(value.node, ())
            if elements and writes(place).are_early(value, reader, elements):
                some.append(Overlap(stage.node, reader.node, value.node, stage.buffer))
            if not earlier or _all_meet(kernel.stages[earlier - 1], reader, writes, earlier):
                break
    return tuple(some)


def overlap_remarks(graph: Graph, kernels: Iterable[PlannedKernel], warp: int = 32) -> tuple[str, ...]:
    """A sentence on each overlap without a full stop; arguments as of `overlaps`, for several kernels."""
    names = [node.name for node in graph.nodes]
    return tuple(
        f"{names[each.stage]} writes over {names[each.value]} in buffer {each.buffer} of shared memory, which other"
        f" warps or later turns of {names[each.reader]} still read: the pass takes all reads of a stage to come before"
        " its writes; a real kernel needs one more block barrier there, which is not charged"
        for kernel in kernels
        for each in overlaps(graph, kernel, warp)
    )


def _all_meet(before: Stage, stage: Stage, writes: Callable[[int], _Writes], place: int) -> bool:
    """Whether the warps of a block meet between the reads of a stage and the writes of the next one."""
    return before.scheme == SHARED or stage.grid_barrier or writes(place - 1).together or writes(place).together


class _Writes:
    """Who writes which word of a buffer, and when."""

    def __init__(self, graph: Graph, stage: Stage, warp: int) -> None:
        self.graph, self.stage, self.warp = graph, stage, warp
        self.turn, result = _turns(graph, stage)
        who = stage.work.thread // warp
        self.written, self.writer = self.turn, who
        #: Whether warps share results, and so meet before these are written.
        self.together = False
        if graph.nodes[stage.node].kind == REDUCE:
            self.written = np.zeros(stage.owners.block.size, np.int64)
            self.written[result] = self.turn
            self.writer = np.full(self.written.size, np.iinfo(np.int32).max, np.int32)
            np.minimum.at(self.writer, result, who)
            self.together = bool((who != self.writer[result]).any())

    def are_early(self, value: Stage, reader: Stage, reads: Sequence[Ints]) -> bool:
        """Whether some word of a value is written by another warp than one that reads it, or in an earlier turn."""
        block, words, place = self.stage.owners.block, ranks(self.stage.owners.block), ranks(value.owners.block)
        shape = int(max(block.max(), value.owners.block.max())) + 1, 1 + int(max(words.max(), place.max()))
        turns, warps = np.full(shape, np.iinfo(np.int64).max), np.full(shape, -1)
        turns[block, words], warps[block, words] = self.written, self.writer
        who, own = reader.work.thread // self.warp, reader is self.stage
        for elements in reads:
            at = value.owners.block[elements], place[elements]
            early = (warps[at] >= 0) & (warps[at] != who) & (not self.together)
            if own:
                early |= turns[at] < self.turn
            if early.any():
                return True
        return False


def _turns(graph: Graph, stage: Stage) -> tuple[Ints, Ints]:
    """For each element that a stage evaluates: which of its thread's results it is for, and the result."""
    thread = stage.work.block.astype(np.int64) * (1 + int(stage.work.thread.max())) + stage.work.thread
    if graph.nodes[stage.node].kind != REDUCE:
        return ranks(_numbered(thread)), np.arange(thread.size)
    result, _ = positions(graph, stage.node, np.arange(thread.size))
    pairs, inverse = np.unique(thread * graph.nodes[stage.node].size + result, return_inverse=True)
    return ranks(_numbered(pairs // graph.nodes[stage.node].size))[inverse], result


def _numbered(keys: Ints) -> NDArray[np.int32]:
    return np.unique(keys, return_inverse=True)[1].astype(np.int32)
