"""The pass: sub-graphs, groups, thread mappings, schemes, barriers, buffers, until it fits; docs/fusion.md, 2 and 7."""

from __future__ import annotations

from collections.abc import Collection

from lstmsim.base.errors import InputError, Mistake
from lstmsim.model.fusion.graph import CONSTANT, INPUT, REDUCE, Graph
from lstmsim.model.fusion.groups import grouped, outputs_of
from lstmsim.model.fusion.layout import Layout, Subject, laid_out
from lstmsim.model.fusion.plan import (
    PIECE,
    SHARED,
    VALUE_BYTES,
    Decision,
    FusionDevice,
    FusionPlan,
    PlannedKernel,
    PlannedSubgraph,
    Refused,
    up,
)
from lstmsim.model.fusion.schemes import all_reads


class _Clusters:
    """Clusters of nodes, and which of them lead to which, while they are joined.

    A set of nodes is an integer with a bit for each; that makes a question about all paths one operation.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        nodes = graph.nodes
        self.of = list(range(len(nodes)))
        self.members = {number: 1 << number for number, node in enumerate(nodes) if node.kind != INPUT}
        self.operands = dict.fromkeys(self.members, 0)
        self.after = dict.fromkeys(self.members, 0)
        for number in reversed(self.members):
            for reader in graph.readers[number]:
                self.operands[reader] |= self.members[number]
                self.after[number] |= self.after[reader] | self.members[reader]

    def apart(self, a: int, b: int) -> bool:
        """Whether another cluster lies on a path from a cluster to one that reads it."""
        # such a path enters its end from a cluster that comes after its beginning
        return bool(self.after[a] & self.operands[b])

    def join(self, a: int, b: int) -> None:
        """Make one cluster of two; the lower number stays."""
        a, b = sorted((a, b))
        for number in _numbers(self.members[b]):
            self.of[number] = a
        members = self.members[a] | self.members.pop(b)
        operands = (self.operands[a] | self.operands.pop(b)) & ~members
        after = (self.after[a] | self.after.pop(b)) & ~members
        self.members[a], self.operands[a], self.after[a] = members, operands, after
        for other, reached in self.after.items():
            if reached & members:
                self.after[other] |= after | members

    def path(self, a: int, b: int) -> tuple[int, ...]:
        """Nodes on a shortest path from a cluster to another over at least one other: where it enters and leaves."""
        target = self.members[b]
        reached: dict[int, tuple[int, ...]] = {a: ()}
        for cluster in (waiting := [a]):
            for number in _numbers(self.members[cluster]):
                for reader in self.graph.readers[number]:
                    place = self.of[reader]
                    here = (*reached[cluster], number) if cluster != a else ()
                    if place == b and cluster != a:
                        return tuple(dict.fromkeys(here))
                    if place not in reached and self.after[place] & target:
                        reached[place] = (*here, reader)
                        waiting.append(place)
        return ()


def _numbers(members: int) -> list[int]:
    """The numbers in a set, ascending."""
    return [number for number, bit in enumerate(reversed(f"{members:b}")) if bit == "1"]


def clusters(graph: Graph) -> tuple[tuple[tuple[int, ...], ...], tuple[Refused, ...]]:
    """The sub-graphs of a graph, ascending, and the edges over which two of them were not joined."""
    nodes = graph.nodes
    edges = [
        (operand, number)
        for number, node in enumerate(nodes)
        if node.intensive
        for operand in dict.fromkeys(graph.operands[number])
        if operand != CONSTANT and nodes[operand].intensive
    ]
    state = _Clusters(graph)
    joined = True
    while joined:
        joined = False
        for operand, reader in edges:
            a, b = state.of[operand], state.of[reader]
            if a != b and not state.apart(a, b):
                state.join(a, b)
                joined = True
    subgraphs = tuple(
        tuple(_numbers(members)) for first, members in sorted(state.members.items()) if nodes[first].intensive
    )
    refused = tuple(
        Refused(operand, reader, state.path(state.of[operand], state.of[reader]))
        for operand, reader in edges
        if state.of[operand] != state.of[reader]
    )
    return subgraphs, refused


def refusal(graph: Graph, refused: Refused) -> Decision:
    """Why an edge joined nothing, in words."""
    names = [node.name for node in graph.nodes]
    path, operand, reader = (
        " -> ".join(names[each] for each in refused.path),
        names[refused.operand],
        names[refused.reader],
    )
    said = f"one kernel of both would wait for itself: {path} lies between them"
    return Decision(
        "edge", reader, f"not in one kernel with {operand}", f"{said} and must run after {operand} and before {reader}"
    )


#: The device that is meant where none is named.
_USUAL = FusionDevice()


def planned(graph: Graph, device: FusionDevice = _USUAL, *, apart: bool = False) -> FusionPlan:
    """The plan of a graph: which operations become one kernel, who computes what, where values lie.

    apart: whether each candidate is a group of its own; for ablations.
    `InputError` if not even one block of a kernel fits on a multiprocessor.

    >>> from lstmsim.model.fusion.graph import Node
    >>> x, s = Node("x", "input", (), (4, 8)), Node("s", "reduce_sum", ("x",), (4,), (1,))
    >>> b, d = Node("b", "broadcast", ("s",), (4, 8), (0,)), Node("d", "divide", ("x", "b"), (4, 8))
    >>> kernel = planned(Graph("rows", (x, s, b, d), ("d",))).subgraphs[0].kernel
    >>> [(each.node, each.scheme) for each in kernel.stages], kernel.blocks, kernel.threads
    ([(1, 'shared'), (3, 'output')], 4, 32)
    """
    wave = first_wave(device)
    parts, refused = clusters(graph)
    subgraphs = tuple(
        _settled(_subject(graph, device, nodes, apart), number, wave, refused) for number, nodes in enumerate(parts)
    )
    return FusionPlan(graph, subgraphs, refused)


def first_wave(device: FusionDevice) -> int:
    """How many blocks a grid has at most, until more is known; docs/fusion.md, section 5."""
    wave = device.wave(device.block_threads, 0)
    if wave < 1:
        said = f"no block of {device.block_threads} threads fits on a multiprocessor"
        raise InputError(Mistake("block_threads", f"{said}; expected fewer threads or more registers or warps"))
    return wave


def scratch_of(graph: Graph, stages: Collection[int], threads: int, device: FusionDevice) -> int:
    """Bytes of shared memory in which the warps of a block leave their part of a reduce."""
    has_reduce = any(graph.nodes[number].kind == REDUCE for number in stages)
    return VALUE_BYTES * up(threads, device.warp) if has_reduce else 0


def _subject(graph: Graph, device: FusionDevice, nodes: tuple[int, ...], apart: bool) -> Subject:
    """A sub-graph with what does not depend on the mapping."""
    grouping = grouped(graph, nodes, apart)
    inside = frozenset(nodes)
    outside = {each for number in nodes for each in graph.operands[number] if each not in inside and each != CONSTANT}
    ends = frozenset(grouping.candidates) | outside
    reads = all_reads(graph, grouping.candidates, ends)
    return Subject(graph, device, nodes, grouping, frozenset(outputs_of(graph, nodes)), reads, ends)


def _settled(subject: Subject, number: int, wave: int, refused: tuple[Refused, ...]) -> PlannedSubgraph:
    """The first attempt that fits on the device: in the shared memory of a block, and in one wave if blocks meet."""
    overflowed: list[int] = []
    changes: list[Decision] = []
    nodes, limit = subject.graph.nodes, subject.device.shared_limit
    while True:
        layout = laid_out(subject, wave, frozenset(overflowed))
        kernel = _kernel(subject, layout, number)
        shared = [each for each in layout.stages if each.scheme == SHARED]
        if kernel.shared_bytes > limit and shared:
            # the one with the most bytes leaves shared memory, of equal ones the last
            most = max(shared, key=lambda each: (each.bytes, each.node))
            overflowed.append(most.node)
            said = f"{kernel.shared_bytes:,} bytes of shared memory are more than {limit:,}"
            because = f"{said} and its {most.bytes:,} are the most of one value"
            chosen = "leaves shared memory for device memory"
            changes.append(Decision("overflow", nodes[most.node].name, chosen, because))
        elif kernel.wave < 1:
            said = f"no block of {kernel.threads} threads with {kernel.shared_bytes} bytes of shared memory fits"
            has = f"which gives whole pieces of {PIECE} and has {subject.device.shared_bytes}"
            raise InputError(Mistake("shared_bytes", f"{said} on a multiprocessor, {has}"))
        elif kernel.grid_barriers and kernel.blocks > kernel.wave:
            narrower = min(wave - 1, kernel.wave)
            chosen = f"planned anew for {narrower:,} blocks instead of {wave:,}"
            said = f"of {kernel.blocks:,} only {kernel.wave:,} are on the device at once"
            because = f"blocks wait for each other, and {said}"
            changes.append(Decision("wave", nodes[subject.nodes[0]].name, chosen, because))
            wave = narrower
        else:
            break
    edges = tuple(refusal(subject.graph, each) for each in refused if each.reader in subject.nodes)
    decisions = (*edges, *subject.grouping.decisions, *changes, *layout.decisions)
    return PlannedSubgraph(subject.nodes, layout.groups, subject.grouping.free, kernel, tuple(overflowed), decisions)


def _kernel(subject: Subject, layout: Layout, number: int) -> PlannedKernel:
    """The kernel of an attempt."""
    device = subject.device
    mappings = [each.mapping for each in layout.groups if each.mapping is not None]
    threads = max(each.threads for each in mappings)
    scratch = scratch_of(subject.graph, subject.grouping.candidates, threads, device)
    shared = sum(layout.buffers) + scratch
    return PlannedKernel(
        name=f"stitch {number}",
        subgraph=number,
        stages=layout.stages,
        inlined=frozenset(subject.nodes) - frozenset(subject.grouping.candidates),
        blocks=max(each.blocks for each in mappings),
        threads=threads,
        shared_bytes=shared,
        shared_bytes_before_reuse=sum(each.bytes for each in layout.stages) + scratch,
        buffers=layout.buffers,
        scratch=scratch,
        registers=device.launch_registers(threads, shared),
        wave=device.wave(threads, shared),
        end_barrier=layout.end_barrier,
        register_elements=device.register_elements,
    )
