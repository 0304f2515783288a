"""Where each candidate's value lies, by who reads it (docs/fusion.md, section 6), and what kernels read and evaluate.

Index maps say which elements of an operand are needed; elements are numbered row-major. An operation between
candidates is evaluated anew by everyone who needs it, and for every occurrence as an operand. A deep expression has
many paths, so occurrences of the same elements are kept once, with how often they occur.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.model.fusion.graph import (
    CHEAP,
    COMPUTE,
    CONSTANT,
    HEAVY,
    INPUT,
    MOVE,
    OPERATIONS,
    REDUCE,
    REDUCES,
    Graph,
    Node,
)
from lstmsim.model.fusion.plan import GLOBAL, OUTPUT, REGISTER, SCHEMES, SHARED, VALUE_BYTES, Owners, PlannedKernel

Ints = NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.float64)

#: A table of a whole map is made if one of so many elements is asked for.
_TABLE = 4


def operand_elements(graph: Graph, number: int, operand: int, elements: Ints) -> Ints:
    """The elements of an operand that elements of a node need. A map that changes nothing returns the same array.

    >>> nodes = (Node("x", "input", (), (3,)), Node("y", "broadcast", ("x",), (2, 3), (1,)))
    >>> operand_elements(Graph("g", nodes, ("y",)), 1, 0, np.array([0, 4])).tolist()
    [0, 1]
    """
    node, source = graph.nodes[number], graph.nodes[operand]
    if node.op not in ("broadcast", "transpose", "slice"):
        return elements
    if _TABLE * elements.size >= node.size:
        # a table of the whole map is made by views, without a division for each axis of each element
        table = moved(node.op, np.arange(source.size).reshape(source.shape), node.shape, node.axes)
        return np.asarray(table.reshape(-1)[elements])
    axes = np.unravel_index(elements, node.shape) if node.shape else ()
    if node.op == "broadcast":
        wanted = [axes[axis] for axis in node.axes]
    elif node.op == "transpose":
        back = np.argsort(node.axes)
        wanted = [axes[axis] for axis in back]
    else:
        wanted = [axis + start for axis, start in zip(axes, node.axes, strict=True)]
    return _flat(wanted, source.shape, elements)


def reduced_elements(graph: Graph, number: int, elements: Ints, position: Ints) -> Ints:
    """The element of a reduce's operand at a position of a result.

    >>> nodes = (Node("x", "input", (), (5, 4, 6)), Node("y", "reduce_sum", ("x",), (5, 6), (1,)))
    >>> reduced_elements(Graph("g", nodes, ("y",)), 1, np.array([7]), np.array([0, 1])).tolist()
    [25, 31]
    """
    node, source = graph.nodes[number], graph.nodes[graph.operands[number][0]]
    kept, gone = _axes(node, source)
    strides = [prod(source.shape[axis + 1 :]) for axis in range(len(source.shape))]
    base = _spread(elements, [source.shape[axis] for axis in kept], [strides[axis] for axis in kept])
    return base + _spread(position, [source.shape[axis] for axis in gone], [strides[axis] for axis in gone])


def positions(graph: Graph, number: int, elements: Ints) -> tuple[Ints, Ints]:
    """The result and the position along the reduced axes of elements of a reduce's operand."""
    node, source = graph.nodes[number], graph.nodes[graph.operands[number][0]]
    kept, gone = _axes(node, source)
    places = np.unravel_index(elements, source.shape)
    return tuple(  # type: ignore[return-value]
        _flat([places[axis] for axis in some], tuple(source.shape[axis] for axis in some), elements)
        for some in (kept, gone)
    )


def ranks(block: NDArray[np.int32]) -> Ints:
    """The place of each element among those of its block."""
    order = np.argsort(block, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(block))]) if block.size else np.zeros(1, np.int64)
    rank = np.empty(block.size, np.int64)
    rank[order] = np.arange(block.size) - starts[block[order]]
    return rank


def _axes(node: Node, source: Node) -> tuple[list[int], list[int]]:
    return [axis for axis in range(len(source.shape)) if axis not in node.axes], list(node.axes)


def _spread(elements: Ints, sizes: list[int], strides: list[int]) -> Ints:
    """Row-major numbers in a tensor of some sizes, as addresses with other strides."""
    address = np.zeros_like(elements)
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        elements, place = np.divmod(elements, size)
        address = address + place * stride
    return address


def _flat(places: list[Ints], shape: tuple[int, ...], like: Ints) -> Ints:
    address = np.zeros(np.shape(like), np.int64)
    for place, size in zip(places, shape, strict=True):
        address = address * size + place
    return address


def moved(op: str, value: NDArray[Number], shape: tuple[int, ...], axes: tuple[int, ...]) -> NDArray[Number]:
    """What an operation that moves elements makes of a tensor."""
    if op == "reshape":
        return value.reshape(shape)
    if op == "transpose":
        return value.transpose(axes)
    if op == "slice":
        return value[tuple(slice(start, start + size) for start, size in zip(axes, shape, strict=True))]
    # numpy wants the operand's axes ascending in the result
    order = np.argsort(axes)
    sizes = [1] * len(shape)
    for axis in axes:
        sizes[axis] = shape[axis]
    return np.broadcast_to(value.transpose(order).reshape(sizes), shape)


Values = NDArray[np.float64]


def drawn_inputs(graph: Graph, seed: int = 0) -> dict[int, Values]:
    """Numbers for all inputs, from 0.25 to 1.75, so that logarithms and roots are there."""
    rng = np.random.default_rng(seed)
    return {
        number: rng.uniform(0.25, 1.75, node.shape) for number, node in enumerate(graph.nodes) if node.kind == INPUT
    }


def library_call(graph: Graph, number: int, values: Mapping[int, Values]) -> Values:
    """What a compute-intensive node gives: a matrix product, or drawn numbers where the call is not known here."""
    node = graph.nodes[number]
    if node.op == "matmul":
        a, b = (values[operand] for operand in graph.operands[number])
        return np.asarray(np.matmul(a, b))
    return np.random.default_rng(number).uniform(0.25, 1.75, node.shape)


def evaluated(graph: Graph, inputs: Mapping[int, Values]) -> list[Values]:
    """The value of every node, by the numbers of the inputs."""
    values: dict[int, Values] = {}
    with np.errstate(all="ignore"):
        for number, node in enumerate(graph.nodes):
            operands = [
                values[place] if place != CONSTANT else np.asarray(each, np.float64)
                for each, place in zip(node.inputs, graph.operands[number], strict=True)
            ]
            if node.kind == INPUT:
                values[number] = np.asarray(inputs[number], np.float64).reshape(node.shape)
            elif node.kind == COMPUTE:
                values[number] = library_call(graph, number, values)
            elif node.op in REDUCES:
                values[number] = REDUCES[node.op].reduce(operands[0], axis=node.axes)
            elif node.op in OPERATIONS:
                values[number] = np.asarray(OPERATIONS[node.op].function(*operands))
            else:
                values[number] = moved(node.op, operands[0], node.shape, node.axes)
    return [values[number] for number in range(len(graph.nodes))]


#: Index maps that were applied: what was done to which elements -> these elements (which keeps them alive, for they are
#: known by their identity) and what became of them.
Maps = dict[tuple[object, ...], tuple[Ints, Ints]]


@dataclass(frozen=True, eq=False)
class Occurrence:
    """Elements of a node that a stage needs, in the order of those it evaluates, and how often these occur."""

    elements: Ints
    times: int


def start_of(graph: Graph, stage: int) -> int:
    """Where the expression of a stage begins: the operand of a reduce, else the node itself."""
    return graph.operands[stage][0] if graph.nodes[stage].kind == REDUCE else stage


def occurrences(
    graph: Graph, stage: int, elements: Ints, ends: Set[int], maps: Maps | None = None
) -> dict[int, list[Occurrence]]:
    """All that a stage evaluates or reads, by node. What is read from outside, or is one of `ends`, is read only."""
    first, maps = start_of(graph, stage), {} if maps is None else maps
    pending = {first: [Occurrence(elements, 1)]}
    reached: dict[int, list[Occurrence]] = {}
    while pending:
        # operands have smaller numbers: all occurrences of the largest one are known
        number = max(pending)
        reached[number] = merged = _merged(pending.pop(number))
        if number in ends and not (number == first == stage):
            continue
        for operand in graph.operands[number]:
            if operand != CONSTANT:
                pending.setdefault(operand, []).extend(
                    Occurrence(_mapped(graph, number, operand, each.elements, maps), each.times) for each in merged
                )
    return reached


def _mapped(graph: Graph, number: int, operand: int, elements: Ints, maps: Maps) -> Ints:
    """As `operand_elements`; of equal maps the same array."""
    node = graph.nodes[number]
    if node.kind != MOVE:
        return elements
    key = (node.op, node.axes, node.shape, graph.nodes[operand].shape, id(elements))
    if key not in maps:
        maps[key] = elements, operand_elements(graph, number, operand, elements)
    return maps[key][1]


def _merged(some: list[Occurrence]) -> list[Occurrence]:
    """The same occurrences, those of equal elements as one."""
    for key_of in (lambda elements: id(elements), lambda elements: elements.tobytes()):
        known: dict[object, Occurrence] = {}
        for each in some:
            before = known.setdefault(key := key_of(each.elements), Occurrence(each.elements, 0))
            known[key] = Occurrence(before.elements, before.times + each.times)
        some = list(known.values())
        if len(some) == 1:
            break
    return some


def first_read(graph: Graph, stage: int, elements: Ints, target: int, ends: Set[int]) -> Ints | None:
    """The elements of a candidate that a stage reads first in its expression, depth first; None if it reads none."""
    first, leads = start_of(graph, stage), {target}
    for number in range(target + 1, first + 1):
        inner = number not in ends or (number == first == stage)
        if inner and leads.intersection(graph.operands[number]):
            leads.add(number)
    if first not in leads:
        return None
    number = first
    while number != target:
        operand = next(each for each in graph.operands[number] if each in leads)
        elements = operand_elements(graph, number, operand, elements)
        number = operand
    return elements


@dataclass(frozen=True, eq=False)
class Placed:
    """A candidate with those who evaluate elements (of a reduce, its operand's), and those who own the result."""

    node: int
    work: Owners
    owners: Owners


@record
class Reason:
    """The scheme of a candidate, why, and which stage demanded it (-1: none).

    partials: 0, or the most blocks that one result is split over.
    """

    scheme: str
    reader: int
    because: str
    partials: int = 0


#: For each stage what it reads of other stages: node -> elements, one array for each place where they stand.
Reads = Mapping[int, Mapping[int, Sequence[Ints]]]


def all_reads(graph: Graph, candidates: Sequence[int], ends: Set[int]) -> Reads:
    """What each stage reads of the others, down to candidates: the element read for each one that it evaluates."""
    stored = frozenset(candidates)
    reads: dict[int, dict[int, list[Ints]]] = {}
    maps: Maps = {}
    whole = cache(np.arange)
    for stage in candidates:
        reached = occurrences(graph, stage, whole(graph.nodes[start_of(graph, stage)].size), ends, maps)
        reads[stage] = {
            number: [each.elements for each in some]
            for number, some in sorted(reached.items())
            if number in stored and number != stage
        }
    return reads


def by_result(graph: Graph, number: int, values: NDArray[np.int32]) -> NDArray[np.int32]:
    """A number for each element of a reduce's operand, in order of the results: shape (results, elements of one)."""
    node, source = graph.nodes[number], graph.nodes[graph.operands[number][0]]
    kept = [axis for axis in range(len(source.shape)) if axis not in node.axes]
    turned = values.reshape(source.shape).transpose(kept + list(node.axes))
    return turned.reshape(node.size, source.size // max(1, node.size))


def partials_of(graph: Graph, number: int, work: Owners) -> int:
    """Over how many blocks a result of a candidate is split at most; 0 if none is."""
    if graph.nodes[number].kind != REDUCE:
        return 0
    blocks = by_result(graph, number, work.block)
    if not blocks.size or not (blocks != blocks[:, :1]).any():
        return 0
    ascending = np.sort(blocks, axis=1)
    return 1 + int((ascending[:, 1:] != ascending[:, :-1]).sum(axis=1).max())


def schemes(graph: Graph, placed: Sequence[Placed], reads: Reads, overflowed: Set[int]) -> dict[int, Reason]:
    """The scheme of every candidate: the strongest that any read of it by another stage demands."""
    return {each.node: _scheme(graph, each, placed, reads, overflowed) for each in placed}


def _scheme(graph: Graph, one: Placed, placed: Sequence[Placed], reads: Reads, overflowed: Set[int]) -> Reason:
    partials = partials_of(graph, one.node, one.work)
    readers = [each for each in placed if one.node in reads[each.node]]
    if partials:
        first = readers[0].node if readers else -1
        said = f"one result is split over up to {partials} blocks, so its readers combine their partials"
        return Reason(GLOBAL, first, said, partials)
    if not readers:
        return Reason(OUTPUT, -1, "no other stage reads it")
    # readers that read the same elements by the same threads demand the same: one of them speaks for all
    unlike: dict[tuple[int, ...], Placed] = {}
    for each in readers:
        arrays = (each.work.block, each.work.thread, *reads[each.node][one.node])
        unlike.setdefault(tuple(map(id, arrays)), each)
    demands = [_demand(graph, one, each, reads[each.node][one.node]) for each in unlike.values()]
    strongest = max(demands, key=lambda each: SCHEMES.index(each.scheme))
    if one.node in overflowed and strongest.scheme != GLOBAL:
        return Reason(GLOBAL, strongest.reader, "shared memory is too small for it")
    if strongest.scheme != GLOBAL and (said := _computed_elsewhere(graph, one)):
        return Reason(GLOBAL, strongest.reader, said)
    return strongest


def _computed_elsewhere(graph: Graph, one: Placed) -> str:
    """Why readers of the owner's block would not see results of a reduce; empty if they do."""
    if graph.nodes[one.node].kind != REDUCE:
        return ""
    blocks = by_result(graph, one.node, one.work.block)[:, 0]
    other = _first(blocks != one.owners.block)
    if other < 0:
        return ""
    return f"block {blocks[other]} computes its element {other}, which belongs to block {one.owners.block[other]}"


def _demand(graph: Graph, one: Placed, reader: Placed, reads: Sequence[Ints]) -> Reason:
    """The scheme that one stage's reads of a candidate demand."""
    name = graph.nodes[reader.node].name
    scheme, because = REGISTER, f"the thread that owns an element is the one that reads it for {name}"
    for elements in reads:
        block, thread = one.owners.block[elements], one.owners.thread[elements]
        other = _first(block != reader.work.block)
        if other >= 0:
            said = f"element {elements[other]} of block {block[other]} is read by block {reader.work.block[other]}"
            return Reason(GLOBAL, reader.node, f"{said} for {name}")
        other = _first(thread != reader.work.thread)
        if other >= 0 and scheme == REGISTER:
            said = f"element {elements[other]} of thread {thread[other]} is read by thread {reader.work.thread[other]}"
            scheme, because = SHARED, f"{said} of the same block for {name}"
    if scheme == REGISTER and graph.nodes[one.node].kind == REDUCE:
        return Reason(SHARED, reader.node, f"it is a reduce, whose threads leave the result to {name} of their block")
    return Reason(scheme, reader.node, because)


def _first(wrong: NDArray[np.bool_]) -> int:
    place = int(wrong.argmax()) if wrong.size else 0
    return place if wrong.size and wrong[place] else -1


@record
class KernelCounts:
    """Bytes that one kernel reads and writes in device memory, each element of each tensor once.

    recomputed: evaluations of cheap and heavy operations beyond the first one of each element in this kernel.
    """

    name: str
    read: int
    written: int
    recomputed: int


@record
class Counts:
    """What kernels read, write and evaluate anew, in their order."""

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
    """The bytes and evaluations of kernels, from what they read element by element."""
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
        size = graph.nodes[start_of(graph, stage.node)].size
        for number, some in occurrences(graph, stage.node, whole(size), ends, maps).items():
            for each in some:
                if number in ends and number != stage.node:
                    stage_read = kernel.stage_of.get(number)
                    if stage_read is None or stage_read.scheme == GLOBAL:
                        read.add(number, each.elements)
                elif graph.nodes[number].kind in (CHEAP, HEAVY):
                    evaluations += each.times * each.elements.size
                    evaluated.add(number, each.elements)
    written = sum(graph.nodes[stage.node].size for stage in kernel.stages if stage.written)
    return KernelCounts(kernel.name, VALUE_BYTES * read.count, VALUE_BYTES * written, evaluations - evaluated.count)
