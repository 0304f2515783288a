"""Where the values of a running kernel lie: registers, shared memory of blocks, memory of the device.

A read that the scheme does not allow, that comes too soon, or that finds something else in its place is a fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.fusion.device import VALUE_BYTES
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.indexing import ranks
from lstmsim.model.fusion.interpreter.faults import Fault
from lstmsim.model.fusion.plan import GLOBAL, REGISTER, SHARED, PlannedKernel, Stage

__all__ = ["KernelMemory", "Reader"]

Ints = NDArray[np.int64]
Values = NDArray[np.float64]

#: A word of shared memory knows whose it is: node times this, plus element.
_NODES = 1 << 40
_NOBODY = -1


@dataclass(frozen=True, eq=False)
class Reader:
    """Who reads.

    stage: number of the node that is computed.
    block, thread: shape (n,); of each element that it evaluates.
    """

    stage: int
    block: NDArray[np.int32]
    thread: NDArray[np.int32]


@dataclass(eq=False)
class KernelMemory:
    """Values of the stages of one running kernel.

    graph: the graph.
    kernel: the kernel.
    device: values in memory of the device, flat, by node: what is read from outside.
    barriers: how often all blocks have met.
    """

    graph: Graph
    kernel: PlannedKernel
    device: dict[int, Values]
    barriers: int = 0
    _registers: dict[int, Values] = field(default_factory=dict)
    _global: dict[int, tuple[int, Values]] = field(default_factory=dict)
    _ranks: dict[int, Ints] = field(default_factory=dict)

    def __post_init__(self) -> None:
        words = [size // VALUE_BYTES for size in self.kernel.buffers]
        self._starts = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
        self._shared = np.zeros((self.kernel.blocks, int(self._starts[-1])))
        self._whose = np.full(self._shared.shape, _NOBODY, np.int64)

    def write(self, stage: Stage, values: Values) -> None:
        """Store what a stage computed, where its scheme says.

        stage: the stage.
        values: shape (n,); of all its elements.
        """
        if stage.scheme == REGISTER:
            self._registers[stage.node] = values
        elif stage.scheme == SHARED:
            place = self._place(stage, np.arange(values.size))
            self._shared[stage.owners.block, place] = values
            self._whose[stage.owners.block, place] = stage.node * _NODES + np.arange(values.size)
        if stage.scheme == GLOBAL or stage.written:
            self._global[stage.node] = self.barriers, values

    def written(self) -> dict[int, Values]:
        """What the kernel leaves in memory of the device; a fault if nobody combines the partials of a result."""
        for stage in self.kernel.stages:
            if stage.written and stage.partials and self._global[stage.node][0] >= self.barriers:
                raise self._fault("its partials are combined by nobody, for no grid barrier follows", stage.node)
        return {stage.node: self._global[stage.node][1] for stage in self.kernel.stages if stage.written}

    def read(self, number: int, elements: Ints, reader: Reader) -> Values:
        """The elements of a node, one for each of the reader's; a fault if it cannot have one.

        number: of a stage of this kernel, or of a node outside.
        elements: shape (n,).
        reader: who reads.
        """
        stage = self.kernel.stage_of.get(number)
        if stage is None:
            return self.device[number][elements]
        if stage.scheme == GLOBAL:
            return self._from_global(stage, elements, reader)
        if stage.scheme == SHARED:
            return self._from_shared(stage, elements, reader)
        if stage.scheme == REGISTER:
            return self._from_registers(stage, elements, reader)
        raise self._fault("no stage was to read it", number, elements, reader, 0)

    def _from_global(self, stage: Stage, elements: Ints, reader: Reader) -> Values:
        if stage.node not in self._global:
            raise self._fault("it was not computed yet", stage.node, elements, reader, 0)
        written, values = self._global[stage.node]
        if written >= self.barriers:
            raise self._fault("no grid barrier came since it was written", stage.node, elements, reader, 0)
        return values[elements]

    def _from_registers(self, stage: Stage, elements: Ints, reader: Reader) -> Values:
        if stage.node not in self._registers:
            raise self._fault("it was not computed yet", stage.node, elements, reader, 0)
        block, thread = stage.owners.block[elements], stage.owners.thread[elements]
        for at in np.flatnonzero((block != reader.block) | (thread != reader.thread))[:1]:
            why = f"it lies in a register of block {block[at]}, thread {thread[at]}"
            raise self._fault(why, stage.node, elements, reader, int(at))
        return self._registers[stage.node][elements]

    def _from_shared(self, stage: Stage, elements: Ints, reader: Reader) -> Values:
        block, place = stage.owners.block[elements], self._place(stage, elements)
        for at in np.flatnonzero(block != reader.block)[:1]:
            why = f"it lies in shared memory of block {block[at]}"
            raise self._fault(why, stage.node, elements, reader, int(at))
        whose = self._whose[block, place]
        for at in np.flatnonzero(whose != stage.node * _NODES + elements)[:1]:
            other = self._whose[block[at], place[at]]
            lies = "nothing was written there yet"
            if other != _NOBODY:
                lies = f"element {other % _NODES} of {self.graph.nodes[other // _NODES].name} lies there now"
            why = f"in shared memory, {lies} (buffer {stage.buffer})"
            raise self._fault(why, stage.node, elements, reader, int(at))
        return self._shared[block, place]

    def _place(self, stage: Stage, elements: Ints) -> Ints:
        """Words of shared memory where elements of a stage lie."""
        rank = self._ranks.get(id(stage.owners.block))
        if rank is None:
            rank = self._ranks[id(stage.owners.block)] = ranks(stage.owners.block)
        if not 0 <= stage.buffer < len(self.kernel.buffers):
            raise self._fault(
                f"it is to lie in shared memory, in buffer {stage.buffer}, which there is not", stage.node
            )
        room = self.kernel.buffers[stage.buffer]
        if rank.size and VALUE_BYTES * (most := int(rank.max()) + 1) > room:
            raise self._fault(
                f"a block has {most} elements of it, {VALUE_BYTES * most} bytes, in buffer {stage.buffer} of {room}",
                stage.node,
            )
        places: Ints = rank[elements] + self._starts[stage.buffer]
        return places

    def _fault(
        self, why: str, number: int, elements: Ints | None = None, reader: Reader | None = None, at: int = 0
    ) -> Fault:
        name = self.graph.nodes[number].name
        if reader is None or elements is None:
            return Fault(why, self.kernel.name, name)
        return Fault(
            why,
            self.kernel.name,
            self.graph.nodes[reader.stage].name,
            name,
            int(elements[at]),
            int(reader.block[at]),
            int(reader.thread[at]),
        )
