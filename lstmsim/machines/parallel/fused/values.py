"""Where the values of a fused kernel lie, and how warps get them, operands first; docs/fusion.md, section 10.1."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import Ints, Mask, Memory, Narrow
from lstmsim.machines.parallel.writing.streams import Result, Warps
from lstmsim.model.fusion.graph import CONSTANT, OPERATIONS, Graph
from lstmsim.model.fusion.mapping import outputs_of
from lstmsim.model.fusion.plan import GLOBAL, SHARED, VALUE_BYTES, PlannedKernel, Stage
from lstmsim.model.fusion.schemes import operand_elements, positions, ranks


@dataclass(frozen=True, eq=False)
class Pieces:
    """Which partial of a split result each block makes: its blocks are numbered in order."""

    keys: Ints  # shape (n,); result * blocks + block, ascending
    piece: Ints  # shape (n,); the partial
    blocks: int  # of the kernel

    @classmethod
    def made(cls, graph: Graph, stage: Stage, blocks: int) -> Pieces:
        """The partials of a stage."""
        results = positions(graph, stage.node, np.arange(len(stage.work.block)))[0]
        keys = np.unique(results * blocks + stage.work.block)
        result = keys // blocks
        return cls(keys, np.arange(len(keys)) - np.searchsorted(result, result), blocks)

    def of(self, results: Ints, blocks: Ints) -> Ints:
        """The partials of some results in some blocks."""
        at = np.searchsorted(self.keys, results * self.blocks + blocks[:, None])
        return self.piece[np.minimum(at, len(self.keys) - 1)]


class Homes:
    """Where the values of a kernel lie.

    outputs: candidates that somebody outside of the kernel wants.
    arrays: names of the arrays of all nodes; partials: of those of partials, by the number of the reduce.
    shared: address in shared memory of each element of a `shared` candidate, by its number.
    pieces: which partials blocks make, by the number of the reduce.
    """

    def __init__(self, graph: Graph, kernel: PlannedKernel, partials: Mapping[int, str]) -> None:
        self.graph, self.kernel, self.partials = graph, kernel, partials
        inside = kernel.inlined.union(kernel.stage_of)
        self.outputs = frozenset(outputs_of(graph, sorted(inside))).intersection(kernel.stage_of)
        self.arrays = [node.name for node in graph.nodes]
        begins = np.cumsum([0, *kernel.buffers])
        shared = [each for each in kernel.stages if each.scheme == SHARED]
        self.shared: Mapping[int, Ints] = {
            each.node: begins[each.buffer] + VALUE_BYTES * ranks(each.owners.block) for each in shared
        }
        split = [stage for stage in kernel.stages if stage.partials]
        self.pieces = {each.node: Pieces.made(graph, each, kernel.blocks) for each in split}


def arrays_of(graph: Graph, kernels: Sequence[PlannedKernel]) -> tuple[tuple[Memory, ...], dict[int, str]]:
    """The arrays of a run of kernels: all nodes by number, then partials as they come; and names of the latter."""
    memories = [Memory(node.name, node.size) for node in graph.nodes]
    names: dict[int, str] = {}
    for kernel in kernels:
        for stage in kernel.stages:
            if stage.partials and stage.node not in names:
                node = graph.nodes[stage.node]
                names[stage.node] = f"{node.name} (partials)"
                memories.append(Memory(names[stage.node], node.size * stage.partials))
    return tuple(memories), names


#: In place of the index of an instruction: none is needed; nobody knows of any.
NOTHING, MISSING = -1, -2
#: Tables of so many turns are put together before they are searched.
_PARTS = 8
#: Odd numbers, by which lanes and warps are told apart in a key.
_FACTORS = np.random.default_rng(18).integers(1, 1 << 63, 66, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


class Table:
    """The elements of a node that warps need.

    warps: whose.
    elements: shape (n, lanes); 0 where a lane is off.
    on: shape (n, lanes); which lanes take part; True: all.
    """

    def __init__(self, warps: Warps, elements: Ints, on: Mask | bool) -> None:
        self.warps, self.elements = warps, elements
        self.on = on if on is True or not np.all(on) else True

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """Shape (n,); one number for a warp and its elements. Different ones are equal by a chance of 2^-64 only."""
        elements = self.elements.astype(np.uint64) + np.uint64(1)
        if self.on is not True:
            elements = elements * self.on
        # sums and products of 64 bits, whatever is above them falls off
        rows: NDArray[np.uint64] = (elements * _FACTORS[: elements.shape[1]]).sum(axis=1, dtype=np.uint64)
        warps: NDArray[np.uint64] = self.warps.numbers.astype(np.uint64) * _FACTORS[-2]
        mixed: NDArray[np.uint64] = (rows ^ (rows >> np.uint64(29))) * _FACTORS[-1] + warps
        return mixed

    def part(self, mask: Mask) -> Table:
        """The rows of a mask, shape (n,)."""
        if mask.all():
            return self
        return Table(self.warps.part(mask), self.elements[mask], True if self.on is True else np.asarray(self.on)[mask])


class Memo:
    """Where warps have which values."""

    def __init__(self) -> None:
        self._known: dict[int, list[tuple[NDArray[np.uint64], Narrow]]] = {}

    def places(self, node: int, table: Table) -> Narrow:
        """Shape (n,); the index of the instruction that gave a node's elements, `NOTHING` or `MISSING`."""
        result = np.full(len(table.elements), MISSING, np.int32)
        for keys, places in self._known.get(node, ()):
            at = np.searchsorted(keys, table.keys)
            at[at == len(keys)] = 0
            hit = keys[at] == table.keys
            result[hit] = places[at[hit]]
        return result

    def add(self, node: int, table: Table, places: Narrow) -> None:
        """Remember where the elements of a node are, which nobody has known of before."""
        parts = self._known.setdefault(node, [])
        if len(parts) == _PARTS:
            keys = np.concatenate([each for each, _ in parts])
            before = np.concatenate([each for _, each in parts])
            order = np.argsort(keys)
            parts[:] = [(keys[order], before[order])]
        order = np.argsort(table.keys)
        parts.append((table.keys[order], places[order]))

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()


#: What a value of a node asks for: another node's elements. It is sent their places.
Asks = Generator[tuple[int, Table], Narrow, Narrow]


class Values:
    """The elements that some warps evaluate, with the results that they have from before.

    homes: where values lie.
    """

    def __init__(self, homes: Homes) -> None:
        self.homes = homes
        self._kept, self._turn = Memo(), Memo()
        self._keeps = True
        self._stage = -1

    def begin(self, stage: int, keeps: bool) -> None:
        """Begin a stage."""
        self._stage, self._keeps = stage, keeps

    def end_turn(self) -> None:
        """Forget what does not stay."""
        self._turn.clear()

    def of(self, node: int, table: Table) -> Result:
        """The instruction that gives the elements of a node, of each warp; those that are needed are written."""
        # a deep expression is walked through with a stack of its own
        stack = [self._value(node, table)]
        answer: Narrow | None = None
        while stack:
            try:
                asked = stack[-1].send(answer) if answer is not None else next(stack[-1])
                stack.append(self._value(*asked))
                answer = None
            except StopIteration as done:
                stack.pop()
                answer = done.value
        assert answer is not None
        return Result(table.warps.numbers, answer)

    def _value(self, node: int, table: Table) -> Asks:
        """The places of a node's elements; asks for its operands."""
        places = self._known(node, table)
        missing = places == MISSING
        if not missing.any():
            return places
        part = table.part(missing)
        made = yield from self._made(node, part)
        (self._kept if self._keeps else self._turn).add(node, part, made)
        places[missing] = made
        return places

    def _known(self, node: int, table: Table) -> Narrow:
        places = self._kept.places(node, table)
        if not self._keeps:
            turn = self._turn.places(node, table)
            places = np.where(turn == MISSING, places, turn)
        return places

    def _made(self, node: int, table: Table) -> Asks:
        homes, warps, on = self.homes, table.warps, table.on
        stage = homes.kernel.stage_of.get(node)
        if stage is not None and node != self._stage:
            if stage.scheme == SHARED:
                return warps.lds(homes.shared[node][table.elements], on).places
            if stage.scheme != GLOBAL:
                return np.full(len(warps), NOTHING, np.int32)
            if stage.partials:
                return self.combined(node, stage.partials, table).places
            return warps.ldg(homes.arrays[node], table.elements, on).places
        if stage is None and node not in homes.kernel.inlined:
            return warps.ldg(homes.arrays[node], table.elements, on).places
        return (yield from self._evaluated(node, table))

    def combined(self, node: int, pieces: int, table: Table) -> Result:
        """The sum of the partials of a split reduce."""
        warps, on = table.warps, table.on
        total: Result | None = None
        for piece in range(pieces):
            loaded = warps.ldg(self.homes.partials[node], table.elements * pieces + piece, on)
            total = warps.fma(1, [loaded, total])
        assert total is not None
        return total

    def _evaluated(self, node: int, table: Table) -> Asks:
        graph, warps = self.homes.graph, table.warps
        waits: list[Result] = []
        for operand in graph.operands[node]:
            if operand != CONSTANT:
                elements = operand_elements(graph, node, operand, table.elements)
                needed = table if elements is table.elements else Table(warps, elements, table.on)
                waits.append(Result(warps.numbers, (yield operand, needed)))
        operation = OPERATIONS.get(graph.nodes[node].op)
        if operation is None:
            return waits[0].places if waits else np.full(len(warps), NOTHING, np.int32)
        if operation.sfu:
            waits = [warps.sfu(operation.sfu, waits)]
        if operation.fma:
            waits = [warps.fma(operation.fma, waits)]
        return waits[0].places
