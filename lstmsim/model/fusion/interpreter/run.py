"""Planned kernels, executed on numbers: a read that the scheme does not allow, or that comes too soon, is a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import LstmsimError
from lstmsim.base.wording import listed
from lstmsim.model.fusion.graph import CHEAP, COMPUTE, CONSTANT, HEAVY, INPUT, MOVE, OPERATIONS, REDUCE, REDUCES, Graph
from lstmsim.model.fusion.plan import GLOBAL, REGISTER, SHARED, VALUE_BYTES, FusionDevice, Owners, PlannedKernel, Stage
from lstmsim.model.fusion.schemes import library_call, occurrences, operand_elements, positions, ranks, start_of


def evaluated_stage(
    graph: Graph, stage: int, elements: Ints, ends: Set[int], read: Callable[[int, Ints], Values]
) -> Values:
    """The values that a stage computes of what it reads: of a reduce those of its operand."""
    found = occurrences(graph, stage, elements, ends)
    places = {number: [each.elements for each in some] for number, some in found.items()}
    values: dict[int, list[Values]] = {}
    with np.errstate(all="ignore"):
        for number in sorted(places):
            if number in ends and number != stage:
                values[number] = [read(number, some) for some in places[number]]
                continue
            node, values[number] = graph.nodes[number], []
            for some in places[number]:
                operands = [
                    float(value)
                    if operand == CONSTANT
                    else values[operand][_place(places[operand], operand_elements(graph, number, operand, some))]
                    for value, operand in zip(node.inputs, graph.operands[number], strict=True)
                ]
                # a move only says which elements; what has numbers for operands alone is one number
                computed = OPERATIONS[node.op].function(*operands) if node.op in OPERATIONS else operands[0]
                values[number].append(np.broadcast_to(np.asarray(computed, np.float64), some.shape))
    return values[start_of(graph, stage)][0]


def read_by(graph: Graph, stage: int, ends: Set[int]) -> set[int]:
    """The nodes among `ends` that a stage reads."""
    return {each for each in occurrences(graph, stage, np.zeros(0, np.int64), ends) if each in ends and each != stage}


def _place(known: list[Ints], elements: Ints) -> int:
    """Where elements stand among what is known."""
    return next(at for at, some in enumerate(known) if some is elements or np.array_equal(some, elements))


class Fault(LstmsimError):
    """A kernel reads what it cannot have, waits for ever, or leaves something out: its plan is wrong."""

    def __init__(
        self,
        why: str,
        kernel: str = "",
        stage: str = "",
        node: str = "",
        element: int = -1,
        block: int = -1,
        thread: int = -1,
    ) -> None:
        """Say why, in which kernel and stage (empty: in none), and which element of which node is read by whom."""
        self.why, self.kernel, self.stage, self.node = why, kernel, stage, node
        self.element, self.block, self.thread = element, block, thread
        where = ", ".join(f"{what} {name}" for what, name in (("kernel", kernel), ("stage", stage)) if name)
        read = f"block {block}, thread {thread} reads element {element} of {node}: " if node else ""
        super().__init__(f"{where}: {read}{why}" if where else why)


#: A word of shared memory knows whose it is: node times this, plus element.
_NODES = 1 << 40
_NOBODY = -1


@dataclass(frozen=True, eq=False)
class Reader:
    """Who reads: the node that is computed, and block and thread of each element that it evaluates."""

    stage: int
    block: NDArray[np.int32]
    thread: NDArray[np.int32]


@dataclass(eq=False)
class KernelMemory:
    """Values of the stages of one running kernel, what it reads from outside, and how often all blocks have met."""

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
        """Store what a stage computed, where its scheme says."""
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
        """The elements of a node, one for each of the reader's; a fault if it cannot have one."""
        stage = self.kernel.stage_of.get(number)
        if stage is None:
            return self.device[number][elements]
        if stage.scheme == SHARED:
            return self._from_shared(stage, elements, reader)
        if stage.scheme not in (GLOBAL, REGISTER):
            raise self._fault("no stage was to read it", number, elements, reader)
        if number not in (self._global if stage.scheme == GLOBAL else self._registers):
            raise self._fault("it was not computed yet", number, elements, reader)
        if stage.scheme == REGISTER:
            return self._from_registers(stage, elements, reader)
        written, values = self._global[number]
        if written >= self.barriers:
            raise self._fault("no grid barrier came since it was written", number, elements, reader)
        return values[elements]

    def _from_registers(self, stage: Stage, elements: Ints, reader: Reader) -> Values:
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
        buffer = stage.buffer
        if not 0 <= buffer < len(self.kernel.buffers):
            raise self._fault(f"it is to lie in shared memory, in buffer {buffer}, which there is not", stage.node)
        room = self.kernel.buffers[buffer]
        if rank.size and VALUE_BYTES * (most := int(rank.max()) + 1) > room:
            said = f"a block has {most} elements of it, {VALUE_BYTES * most} bytes, in buffer {buffer} of {room}"
            raise self._fault(said, stage.node)
        return np.asarray(rank[elements] + self._starts[buffer])

    def _fault(
        self, why: str, number: int, elements: Ints | None = None, reader: Reader | None = None, at: int = 0
    ) -> Fault:
        name = self.graph.nodes[number].name
        if reader is None or elements is None:
            return Fault(why, self.kernel.name, name)
        stage = self.graph.nodes[reader.stage].name
        who = int(elements[at]), int(reader.block[at]), int(reader.thread[at])
        return Fault(why, self.kernel.name, stage, name, *who)


Ints = NDArray[np.int64]


#: Blocks with so many elements are run at once: blocks only meet at grid barriers, so that nothing changes by that.
AT_ONCE = 1 << 16


def run_stage(graph: Graph, kernel: PlannedKernel, stage: Stage, memory: KernelMemory) -> None:
    """Compute a stage in all blocks and store it; `Fault` if it reads what it cannot have."""
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
    pairs = ((work.block, owners.block), (work.thread, owners.thread))
    return all(one is other or np.array_equal(one, other) for one, other in pairs)


def _runs(block: NDArray[np.int32]) -> Iterator[Ints]:
    """Elements block by block, ascending in each; some blocks at a time."""
    ordered = bool(np.all(block[1:] >= block[:-1]))
    order = np.arange(block.size) if ordered else np.argsort(block, kind="stable")
    ends = np.flatnonzero(np.diff(block[order])) + 1
    start = 0
    while start < block.size:
        # the last end of a block within reach, or else the next one
        at = int(np.searchsorted(ends, start + AT_ONCE, "right"))
        some = [int(end) for end in ends[max(0, at - 1) : at + 1] if end > start]
        end = some[0] if some and block.size > start + AT_ONCE else block.size
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
    """Values of the same place, joined one after the other."""
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


Values = NDArray[np.float64]


def executed(
    graph: Graph, kernels: Sequence[PlannedKernel], inputs: Mapping[int, Values], device: FusionDevice
) -> dict[int, Values]:
    """The values that lie in memory of the device when all kernels have run, library calls in between, by node.

    kernels: of one mode, all of the graph; in any order, for each runs as soon as all that it reads is there.

    `Fault` if a plan is wrong: a value is read where or when it cannot be, kernels wait for each other, a grid barrier
    waits for blocks that never start, an output is missing.
    """
    memory = {
        number: np.asarray(inputs[number], np.float64).reshape(-1)
        for number, node in enumerate(graph.nodes)
        if node.kind == INPUT
    }
    kernels_left = list(kernels)
    calls_left = [number for number, node in enumerate(graph.nodes) if node.kind == COMPUTE]
    while kernels_left or calls_left:
        before = len(kernels_left) + len(calls_left)
        calls_left = [number for number in calls_left if not _called(graph, number, memory)]
        kernels_left = [kernel for kernel in kernels_left if not _ran(graph, kernel, memory, device)]
        if len(kernels_left) + len(calls_left) == before:
            raise _no_order(graph, kernels_left, calls_left, memory)
    if missing := sorted(graph.output_numbers - set(memory)):
        raise Fault(f"no kernel writes {listed([graph.nodes[each].name for each in missing], 'or')}")
    return {number: value.reshape(graph.nodes[number].shape) for number, value in memory.items()}


def _called(graph: Graph, number: int, memory: dict[int, Values]) -> bool:
    """Whether a library call had its operands, and gave its result."""
    operands = [each for each in graph.operands[number] if each != CONSTANT]
    if not memory.keys() >= set(operands):
        return False
    values = {each: memory[each].reshape(graph.nodes[each].shape) for each in operands}
    with np.errstate(all="ignore"):
        memory[number] = np.asarray(library_call(graph, number, values), np.float64).reshape(-1)
    return True


def _ran(graph: Graph, kernel: PlannedKernel, memory: dict[int, Values], device: FusionDevice) -> bool:
    """Whether a kernel had all that it reads, and ran."""
    if not memory.keys() >= _outside(graph, kernel):
        return False
    _check(graph, kernel, device)
    own = KernelMemory(graph, kernel, memory)
    for stage in kernel.stages:
        own.barriers += stage.grid_barrier
        run_stage(graph, kernel, stage, own)
    own.barriers += kernel.end_barrier
    for number, values in own.written().items():
        if number in memory:
            raise Fault("another kernel has written it already", kernel.name, graph.nodes[number].name)
        memory[number] = values
    return True


def _outside(graph: Graph, kernel: PlannedKernel) -> set[int]:
    """The nodes outside a kernel that it reads."""
    ends = kernel.ends(graph)
    return set().union(*(read_by(graph, stage.node, ends) for stage in kernel.stages)) - set(kernel.stage_of)


def _check(graph: Graph, kernel: PlannedKernel, device: FusionDevice) -> None:
    """A kernel that the device cannot run, or that has no such threads, is a fault before it starts."""
    threads, room = kernel.threads, kernel.shared_bytes
    wave, said = device.wave(threads, room), ""
    if other := [number for number in sorted(kernel.inlined) if graph.nodes[number].kind not in (CHEAP, HEAVY, MOVE)]:
        said = f"{graph.nodes[other[0]].name} is to be evaluated where it is read, but it is no such operation"
    elif not wave:
        said = f"no block of {threads} threads and {room} bytes of shared memory fits"
    elif kernel.grid_barriers and kernel.blocks > wave:
        waits = f"its blocks wait for each other for ever: {kernel.blocks} meet at a grid barrier"
        said = f"{waits}, but only {wave} are on the device at once"
    elif sum(kernel.buffers) + kernel.scratch > room:
        said = f"its buffers and scratch have more than its {room} bytes of shared memory"
    if said:
        raise Fault(said, kernel.name)
    for stage in kernel.stages:
        for owners in (stage.work, stage.owners):
            for name, of, count in (("block", owners.block, kernel.blocks), ("thread", owners.thread, kernel.threads)):
                if of.size and (of.min() < 0 or of.max() >= count):
                    wrong = of.min() if of.min() < 0 else of.max()
                    raise Fault(f"{name} {wrong} is to compute, of {count}", kernel.name, graph.nodes[stage.node].name)


def _no_order(graph: Graph, kernels: list[PlannedKernel], calls: list[int], memory: dict[int, Values]) -> Fault:
    """Why nothing can run any more."""
    waits = [(kernel.name, sorted(_outside(graph, kernel) - memory.keys())) for kernel in kernels] + [
        (graph.nodes[each].name, sorted(set(graph.operands[each]) - memory.keys() - {CONSTANT})) for each in calls
    ]
    reported = "; ".join(
        f"{name} waits for {listed([graph.nodes[each].name for each in some], 'and')}" for name, some in waits[:4]
    )
    more = f"; and {len(waits) - 4} more" if len(waits) > 4 else ""
    return Fault(f"nothing can run any more: {reported}{more}")
