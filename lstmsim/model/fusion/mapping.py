"""Candidates, groups and their order, thread mappings, and owners of elements; docs/fusion.md, 2, 3, 5 and 10."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.base.wording import counted
from lstmsim.model.fusion.graph import COMPUTE, CONSTANT, HEAVY, REDUCE, Graph
from lstmsim.model.fusion.plan import (
    COLUMN,
    ELEMENT,
    ROW,
    Decision,
    FusionDevice,
    Group,
    Owners,
    PlannedKernel,
    ThreadMapping,
    up,
)
from lstmsim.model.fusion.schemes import operand_elements, positions, reduced_elements, start_of


def outputs_of(graph: Graph, nodes: Sequence[int]) -> tuple[int, ...]:
    """What leaves a sub-graph: outputs of the graph, what others read, and what nobody reads."""
    inside = set(nodes)
    return tuple(number for number in nodes if _why_output(graph, number, inside))


def candidates_of(graph: Graph, nodes: Sequence[int]) -> tuple[Decision, ...]:
    """The candidates of a sub-graph in order, each with why it is one."""
    inside = set(nodes)
    reasons = {number: _reasons(graph, number, inside) for number in nodes}
    return tuple(
        Decision("candidate", graph.nodes[number].name, "is stored", "; ".join(each))
        for number, each in reasons.items()
        if each
    )


def _reasons(graph: Graph, number: int, inside: set[int]) -> list[str]:
    """All that makes an operation a candidate."""
    node = graph.nodes[number]
    reasons = ["it is a reduce"] if node.kind == REDUCE else []
    broadcasts = [each for each in graph.readers[number] if each in inside and graph.nodes[each].op == "broadcast"]
    if node.kind == HEAVY and broadcasts:
        times = graph.nodes[broadcasts[0]].size // node.size
        repeated = f"{graph.nodes[broadcasts[0]].name} repeats it {counted(times, 'time')}"
        reasons.append(f"{node.op} is heavy and {repeated}")
    output = _why_output(graph, number, inside)
    return [*reasons, output] if output else reasons


def _why_output(graph: Graph, number: int, inside: set[int]) -> str:
    """Why an operation is an output of its sub-graph; empty if it is none."""
    if number in graph.output_numbers:
        return "it is an output of the graph"
    readers = graph.readers[number]
    outside = [each for each in readers if each not in inside]
    if outside:
        return f"{graph.nodes[outside[0]].name} reads it outside of the sub-graph"
    return "" if readers else "nobody reads it"


@record
class Grouping:
    """How a sub-graph falls into groups without mapping, and why.

    candidates, free: operations that are stored, and those of no group, ascending.
    cut: reduces through which no index travels, because they reduce rows and their group columns, or the other way.
    """

    candidates: tuple[int, ...]
    groups: tuple[Group, ...]
    free: tuple[int, ...]
    cut: frozenset[int]
    decisions: tuple[Decision, ...]


def reduce_kind(graph: Graph, number: int) -> str:
    """`row` if a reduce takes the last axes of its operand, else `column`."""
    node = graph.nodes[number]
    rank = len(graph.nodes[graph.operands[number][0]].shape)
    return ROW if sorted(node.axes) == list(range(rank - len(node.axes), rank)) else COLUMN


def grouped(graph: Graph, nodes: Sequence[int], apart: bool = False) -> Grouping:
    """The groups of a sub-graph; `apart`: each candidate is a group of its own, for no index travels at one."""
    chosen = candidates_of(graph, nodes)
    candidates = tuple(graph.numbers[each.node] for each in chosen)
    stored = set(candidates)
    cut: dict[int, Decision] = {}
    while True:
        parts = _components(graph, nodes, set(cut), stored if apart else set())
        groups = [group_of(graph, part, stored) for part in parts if stored.intersection(part)]
        mixed = {
            number: _lost(graph, number, group)
            for group in groups
            for number in group.members
            if graph.nodes[number].kind == REDUCE and number not in cut and reduce_kind(graph, number) != group.kind
        }
        if not mixed:
            break
        cut |= mixed
    free = tuple(sorted(number for part in parts if not stored.intersection(part) for number in part))
    names = [node.name for node in graph.nodes]
    travels = "an index travels between the two without passing a broadcast"
    alone = (
        "each candidate is a group of its own" if apart else "no candidate is connected with it but through a broadcast"
    )
    decisions = (
        *chosen,
        *(cut[number] for number in sorted(cut)),
        *(_led(graph, group) for group in groups),
        *(
            Decision("group", names[number], f"takes its threads from {names[group.backbone]}", travels)
            for group in groups
            for number in group.sub_backbones
        ),
        *(
            Decision("group", names[each], "belongs to no group and is evaluated where it is read", alone)
            for each in free
        ),
    )
    return Grouping(candidates, tuple(groups), free, frozenset(cut), decisions)


def _components(graph: Graph, nodes: Sequence[int], cut: Set[int], closed: Set[int]) -> list[tuple[int, ...]]:
    """What is connected in the index graph, by first operation. What is read from outside connects and is left out."""
    leader: dict[int, int] = {number: number for number in nodes}

    def lead(number: int) -> int:
        leader.setdefault(number, number)
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    for number in nodes:
        if graph.nodes[number].op == "broadcast" or number in cut or number in closed:
            continue
        for operand in graph.operands[number]:
            if operand != CONSTANT and operand not in closed:
                leader[lead(operand)] = lead(number)
    parts: dict[int, list[int]] = {}
    for number in nodes:
        parts.setdefault(lead(number), []).append(number)
    return sorted(map(tuple, parts.values()))


def group_of(graph: Graph, members: tuple[int, ...], candidates: Set[int]) -> Group:
    """Operations as a group with its backbone, without mapping; at least one of the candidates is a member."""
    stored = [number for number in members if number in candidates]
    reduces = [number for number in stored if graph.nodes[number].kind == REDUCE]
    if reduces:
        backbone = max(reduces, key=lambda number: (_operand_size(graph, number), -number))
        kind, rows = reduce_kind(graph, backbone), graph.nodes[backbone].size
        length = _operand_size(graph, backbone) // rows
    else:
        backbone = max(stored, key=lambda number: (graph.nodes[number].size, -number))
        kind, rows, length = ELEMENT, graph.nodes[backbone].size, 1
    return Group(members, backbone, tuple(each for each in stored if each != backbone), kind, rows, length)


def _operand_size(graph: Graph, number: int) -> int:
    return graph.nodes[graph.operands[number][0]].size


def _lost(graph: Graph, number: int, group: Group) -> Decision:
    """Why no index travels through a reduce."""
    name, leading = graph.nodes[number].name, graph.nodes[group.backbone].name
    largest = f"has the largest operand of the group ({_operand_size(graph, group.backbone):,} elements)"
    because = f"it reduces {reduce_kind(graph, number)}s and {leading}, which {largest}, reduces {group.kind}s"
    return Decision("edge", name, f"no index travels from {graph.nodes[graph.operands[number][0]].name} to it", because)


def _led(graph: Graph, group: Group) -> Decision:
    """Why an operation is the backbone of its group."""
    if group.kind == ELEMENT:
        because = f"the group has no reduce, and of its candidates it has the most elements ({group.rows:,})"
    else:
        because = f"of the reduces of the group it has the largest operand ({group.rows:,} x {group.length:,} elements)"
    chosen = f"leads a group of {counted(len(group.members), 'operation')}, {group.kind}"
    return Decision("group", graph.nodes[group.backbone].name, chosen, because)


def in_order(graph: Graph, kernels: Sequence[PlannedKernel]) -> tuple[PlannedKernel, ...]:
    """Kernels in an order that the graph allows; arguments and errors as of `steps`."""
    return tuple(step for step in steps(graph, kernels) if not isinstance(step, int))


def steps(graph: Graph, kernels: Sequence[PlannedKernel]) -> tuple[PlannedKernel | int, ...]:
    """Kernels, and numbers of compute-intensive nodes, in an order that the graph allows.

    Of what could run next it is the one with the lowest first operation, whether others evaluate that anew or not; of
    equal ones the first. `InputError` if kernels wait for each other.
    """
    calls = [number for number, node in enumerate(graph.nodes) if node.kind == COMPUTE]
    items: list[PlannedKernel | int] = [*calls, *kernels]
    nodes: list[set[int]] = [{number} for number in calls]
    nodes += [{stage.node for stage in kernel.stages} | kernel.inlined for kernel in kernels]
    firsts = [min(inside) for inside in nodes]
    maker = {number: place for place, number in enumerate(calls)}
    maker |= {stage.node: place for place, kernel in enumerate(kernels, len(calls)) for stage in kernel.stages}
    waits = [
        {maker[operand] for number in inside for operand in graph.operands[number] if operand in maker} - {place}
        for place, inside in enumerate(nodes)
    ]
    order = lowest_first(firsts, waits)
    if len(order) < len(items):
        names = [item.name for place, item in enumerate(items) if place not in order and not isinstance(item, int)]
        raise InputError(f"{graph.name}: the kernels {', '.join(names)} wait for each other: no order is possible")
    return tuple(items[place] for place in order)


def lowest_first(firsts: Sequence[int], waits: Sequence[Set[int]]) -> list[int]:
    """Places in an order in which each comes after those it waits for; what waits for itself is missing.

    >>> lowest_first([0, 1, 2], [{2}, set(), set()])
    [1, 2, 0]
    """
    open_waits = [len(each) for each in waits]
    readers: list[list[int]] = [[] for _ in waits]
    for place, some in enumerate(waits):
        for each in some:
            readers[each].append(place)
    ready = [(firsts[place], place) for place, count in enumerate(open_waits) if not count]
    heapify(ready)
    order = []
    while ready:
        _, place = heappop(ready)
        order.append(place)
        for reader in readers[place]:
            open_waits[reader] -= 1
            if not open_waits[reader]:
                heappush(ready, (firsts[reader], reader))
    return order


def mapped(group: Group, device: FusionDevice, wave: int) -> ThreadMapping:
    """The mapping of a group by the rule for its kind, for a grid of at most `wave` blocks."""
    rows, length, warp = group.rows, group.length, device.warp
    if group.kind == ELEMENT:
        threads = min(device.element_threads, up(rows, warp) * warp)
        tiles = up(rows, threads)
        tasks = up(tiles, wave)
        return ThreadMapping(ELEMENT, up(tiles, tasks), threads, threads, 1, tasks, 1, rows)
    if group.kind == COLUMN:
        return _columns(group, device, wave)
    if not _whole_row(group, device, wave):
        piece = up(up(length, wave // rows), warp) * warp
        pieces, lanes = up(length, piece), min(device.block_threads, piece)
        if pieces > 1:
            return ThreadMapping("split", rows * pieces, lanes, lanes, 1, 1, pieces, piece)
    lanes = min(device.block_threads, up(length, warp) * warp)
    # no more rows in a block than bring the grid into one wave
    per_block = max(1, min(device.block_threads // lanes, up(rows, wave)))
    tiles = up(rows, per_block)
    tasks = up(tiles, wave)
    return ThreadMapping("pack", up(tiles, tasks), per_block * lanes, lanes, per_block, tasks, 1, length)


def _whole_row(group: Group, device: FusionDevice, wave: int) -> str:
    """Why a row is not split; empty if it may be."""
    if group.length <= device.split_length:
        return f"no row is longer than {counted(device.split_length, 'element')}"
    if group.rows >= wave:
        return f"{counted(group.rows, 'row')} are enough for {counted(wave, 'block')}"
    return _not_worth(up(group.length, device.block_threads), device)


def _not_worth(turns: int, device: FusionDevice) -> str:
    """Why a result is not worth a grid barrier; empty if it is, or if nobody asks."""
    cycles = turns * device.turn_cycles
    if device.split_rule == "paper" or cycles > device.grid_cycles:
        return ""
    cost = f"{counted(turns, 'turn')} of {device.turn_cycles:,} cycles"
    return f"{cost} in one block cost no more than a grid barrier of {device.grid_cycles:,}"


def _columns(group: Group, device: FusionDevice, wave: int) -> ThreadMapping:
    tiles, turns = up(group.rows, device.warp), up(group.length, device.block_threads // device.warp)
    whole = tiles >= wave or _not_worth(turns, device)
    tasks, cut = up(tiles, wave), 1 if whole else max(1, min(wave // tiles, turns))
    piece = up(group.length, cut)
    pieces = up(group.length, piece)
    threads = min(device.block_threads, piece * device.warp)
    return ThreadMapping(COLUMN, up(tiles, tasks) * pieces, threads, device.warp, 1, tasks, pieces, piece)


def owners_by_rule(graph: Graph, group: Group, mapping: ThreadMapping, device: FusionDevice) -> Owners:
    """Who owns the elements of the backbone's operand; in a group of elements, of its result."""
    if group.kind == ELEMENT:
        element = np.arange(group.rows)
        return _owners(element // mapping.threads // mapping.tasks, element % mapping.threads)
    operand = graph.operands[group.backbone][0]
    elements = np.arange(graph.nodes[operand].size)
    if group.kind == ROW:
        row, column = elements // group.length, elements % group.length
        if mapping.pieces > 1:
            return _owners(row * mapping.pieces + column // mapping.piece, column % mapping.piece % mapping.threads)
        thread = row % mapping.per_block * mapping.lanes + column % mapping.lanes
        return _owners(row // mapping.per_block // mapping.tasks, thread)
    result, position = positions(graph, group.backbone, elements)
    tile, lane, high = result // device.warp, result % device.warp, mapping.threads // device.warp
    if mapping.pieces > 1:
        block = tile * mapping.pieces + position // mapping.piece
        return _owners(block, position % mapping.piece % high * device.warp + lane)
    return _owners(tile // mapping.tasks, position % high * device.warp + lane)


def _owners(block: np.ndarray, thread: np.ndarray) -> Owners:
    return Owners(block.astype(np.int32), thread.astype(np.int32))


def mapping_decision(graph: Graph, group: Group, mapping: ThreadMapping, device: FusionDevice, wave: int) -> Decision:
    """Why a group has its mapping, with the numbers."""
    size = f"{counted(mapping.blocks, 'block')} of {counted(mapping.threads, 'thread')}"
    pieces = f"split over {counted(mapping.pieces, 'block')}, {counted(mapping.piece, 'element')} each"
    times = "" if mapping.tasks == 1 else f", {counted(mapping.tasks, 'time')}"
    chosen = {
        "split": f"each row is {pieces}",
        "pack": f"a block takes {counted(mapping.per_block, 'row')} of {counted(mapping.lanes, 'thread')}{times}",
        COLUMN: f"a block takes {device.warp} columns side by side{times if mapping.pieces == 1 else ', ' + pieces}",
        ELEMENT: f"a block takes {counted(mapping.threads, 'element')}{times}",
    }[mapping.kind]
    because = _why(group, mapping, device, wave)
    return Decision("mapping", graph.nodes[group.backbone].name, f"{size}; {chosen}", because)


def _why(group: Group, mapping: ThreadMapping, device: FusionDevice, wave: int) -> str:
    """Why a mapping splits, packs or does neither."""
    length = counted(group.length, "element")
    if group.kind == ELEMENT:
        return f"{counted(group.rows, 'element')}: {_spread(up(group.rows, mapping.threads), wave, device)}"
    if group.kind == ROW:
        many = f"{counted(group.rows, 'row')} of {length}"
        if mapping.pieces > 1:
            return f"{many}, longer than {device.split_length:,}, would fill only {group.rows:,} of {wave:,} blocks"
        why = _whole_row(group, device, wave) or f"{counted(wave, 'block')} are too few to give each row two"
        return f"{why}; {many}: {_spread(up(group.rows, mapping.per_block), wave, device)}"
    tiles = up(group.rows, device.warp)
    many = f"{counted(group.rows, 'column')} of {length}"
    if mapping.pieces > 1:
        return f"{many} would fill only {tiles:,} of {wave:,} blocks"
    turns = up(group.length, device.block_threads // device.warp)
    why = "" if tiles >= wave else _not_worth(turns, device) or f"a block is done in {counted(turns, 'turn')}"
    return "; ".join(filter(None, (why, f"{many}: {_spread(tiles, wave, device)}")))


def _spread(tiles: int, wave: int, device: FusionDevice) -> str:
    """How many tiles there are for how many blocks: those of the largest size, as the kernel's is not known yet."""
    first = wave == device.wave(device.block_threads, 0)
    which = f" of {device.block_threads:,} threads that are on the device at once" if first else ", as planned anew"
    return f"{counted(tiles, 'tile')} for {counted(wave, 'block')}{which}"


Ints = NDArray[np.int64]

#: Stands for the owner of an element that has none yet.
_NOBODY = -1


def propagated(
    graph: Graph, group: Group, mapping: ThreadMapping, start: Owners, cut: Set[int] = frozenset()
) -> dict[int, Owners]:
    """The owners of all that indices reach from the backbone, by node. Tensors owned alike share the arrays."""
    walk = _Walk(graph, group, mapping, cut)
    walk.known[start_of(graph, group.backbone)] = start
    while walk.waiting:
        walk.look(min(walk.waiting))
    for number in walk.holed:
        # elements without owner are dealt out over blocks and threads by their number
        own = walk.known[number]
        elements, empty = np.arange(own.block.size), own.block == _NOBODY
        block = np.where(empty, elements * mapping.blocks // max(1, elements.size), own.block)
        walk.known[number] = _owners(block, np.where(empty, elements % mapping.threads, own.thread))
    return walk.known


def work_of(
    graph: Graph, group: Group, mapping: ThreadMapping, number: int, owners: Mapping[int, Owners], cut: Set[int]
) -> Owners:
    """Who evaluates what for a candidate: of a reduce the elements of its operand, else those of its result.

    owners: of the group, as `propagated` gives them.
    cut: reduces of the graph that lost the edge to their operand.
    """
    if graph.nodes[number].kind != REDUCE:
        return owners[number]
    operand = graph.operands[number][0]
    if number not in cut or number == group.backbone:
        return owners[operand]
    return _backward(graph, number, operand, owners[number], mapping)


class _Walk:
    """Nodes whose owners are known while indices travel, and those that were not looked at yet."""

    def __init__(self, graph: Graph, group: Group, mapping: ThreadMapping, cut: Set[int]) -> None:
        self.graph, self.mapping = graph, mapping
        self.known: dict[int, Owners] = {}
        self.looked: set[int] = set()
        self.holed: set[int] = set()  # known ones of which some elements have no owner
        self.sources = {
            number: [each for each in graph.operands[number] if each != CONSTANT]
            for number in group.members
            if graph.nodes[number].op != "broadcast" and (number not in cut or number == group.backbone)
        }

    @property
    def waiting(self) -> set[int]:
        return self.known.keys() - self.looked

    def look(self, number: int) -> None:
        """Take a node's indices on to its readers and then to its operands."""
        self.looked.add(number)
        for reader in self.graph.readers[number]:
            if number in self.sources.get(reader, ()):
                self._forward(number, reader)
        for operand in self.sources.get(number, ()):
            if operand not in self.known:
                self.known[operand] = _backward(self.graph, number, operand, self.known[number], self.mapping)
                if number in self.holed or self.graph.nodes[number].op == "slice":
                    self._count_holes(operand)

    def _forward(self, number: int, reader: int) -> None:
        if reader in self.known and reader not in self.holed:
            return
        given = _forward(self.graph, number, reader, self.known[number])
        if reader in self.known:
            before = self.known[reader]
            empty = before.block == _NOBODY
            given = _owners(np.where(empty, given.block, before.block), np.where(empty, given.thread, before.thread))
        self.known[reader] = given
        if number in self.holed or reader in self.holed:
            self._count_holes(reader)

    def _count_holes(self, number: int) -> None:
        if (self.known[number].block == _NOBODY).any():
            self.holed.add(number)
        else:
            self.holed.discard(number)


def _forward(graph: Graph, number: int, reader: int, owners: Owners) -> Owners:
    """Each element of the reader belongs to whom the element belongs that it is made of, of a reduce the first one."""
    node = graph.nodes[reader]
    if node.kind == REDUCE:
        places = reduced_elements(graph, reader, np.arange(node.size), np.zeros(1, np.int64))
    else:
        elements = np.arange(node.size)
        places = operand_elements(graph, reader, number, elements)
        if places is elements:
            return owners
    return Owners(owners.block[places], owners.thread[places])


def _backward(graph: Graph, number: int, operand: int, owners: Owners, mapping: ThreadMapping) -> Owners:
    """The elements of the operand belong to whom the element belongs that is made of them."""
    node, size = graph.nodes[number], graph.nodes[operand].size
    if node.kind == REDUCE:
        result, position = positions(graph, number, np.arange(size))
        block = owners.block[result]
        thread = (position % mapping.threads).astype(np.int32)
        return Owners(block, np.where(block == _NOBODY, np.int32(_NOBODY), thread))
    elements = np.arange(node.size)
    places = operand_elements(graph, number, operand, elements)
    if places is elements:
        return owners
    block, thread = np.full(size, _NOBODY, np.int32), np.full(size, _NOBODY, np.int32)
    block[places], thread[places] = owners.block, owners.thread
    return Owners(block, thread)
