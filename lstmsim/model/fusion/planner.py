"""The pass: sub-graphs, thread mappings, schemes, barriers, buffers, until all fits; docs/fusion.md, 2 and 5 to 7."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.wording import counted
from lstmsim.model.fusion.graph import CONSTANT, INPUT, REDUCE, Graph
from lstmsim.model.fusion.mapping import (
    Grouping,
    grouped,
    mapped,
    mapping_decision,
    outputs_of,
    owners_by_rule,
    propagated,
    work_of,
)
from lstmsim.model.fusion.plan import (
    ELEMENT,
    GLOBAL,
    PIECE,
    SHARED,
    VALUE_BYTES,
    Decision,
    FusionDevice,
    FusionPlan,
    Group,
    Owners,
    PlannedKernel,
    PlannedSubgraph,
    Refused,
    Stage,
    ThreadMapping,
    up,
)
from lstmsim.model.fusion.schemes import Placed, Reads, Reason, all_reads, first_read, ranks, schemes

#: How many times the mean the fullest block may have.
_FULLEST = 2


#: Candidates of groups that are mapped already: who owns their elements, and the mapping of their group.
Earlier = Mapping[int, tuple[Owners, ThreadMapping]]


def adapted(
    graph: Graph, group: Group, earlier: Earlier, ends: Set[int]
) -> tuple[tuple[ThreadMapping, Owners] | None, str]:
    """Give each element of a group the block that owns what it reads of an earlier group, if no block has far too many.

    None if the group does not adapt; the text says why it does or does not.
    """
    elements = np.arange(group.rows)
    reads = ((each, first_read(graph, group.backbone, elements, each, ends)) for each in sorted(earlier))
    number, read = next(((each, read) for each, read in reads if read is not None), (-1, elements))
    if number < 0:
        return None, "it reads no candidate of an earlier group"
    name, (owners, of) = graph.nodes[number].name, earlier[number]
    block = owners.block[read]
    counts = np.bincount(block, minlength=of.blocks)
    said = (
        f"the fullest of the {counted(of.blocks, 'block')} of {name} would have {counts.max()} of {block.size} elements"
    )
    if of.blocks == 1:
        said = f"the one block of {name} would have all {block.size} elements"
    if counts.max() * of.blocks > _FULLEST * block.size:
        return None, f"{said}, more than {_FULLEST} times the mean"
    mapping = ThreadMapping("adapted", of.blocks, of.threads, of.threads, 1, 1, 1, block.size)
    thread = (ranks(block) % of.threads).astype(np.int32)
    return (mapping, Owners(block, thread)), f"{said}, at most {_FULLEST} times the mean"


def grid_barriers(
    stages: Sequence[int], reads: Mapping[int, Collection[int]], across: Set[int], split: Set[int], outputs: Set[int]
) -> tuple[frozenset[int], bool]:
    """The stages before which all blocks meet, and whether they meet at the end.

    across, split: candidates that lie in device memory for other blocks, and those whose results are split over blocks.
    """
    before: set[int] = set()
    written: set[int] = set()  # by stages since the last barrier, and read across blocks
    for stage in stages:
        if written.intersection(reads[stage]):
            before.add(stage)
            written.clear()
        if stage in across:
            written.add(stage)
    return frozenset(before), bool(written & split & outputs)


@record
class Buffers:
    """Bytes of the buffers of shared memory of a block, and the number of the buffer of each candidate that has one."""

    sizes: tuple[int, ...]
    of: Mapping[int, int]


def buffered(stages: Sequence[int], requests: Mapping[int, int], last_reader: Mapping[int, int]) -> Buffers:
    """A buffer for each shared value, of so many bytes. A stage may read a buffer and write its own value over it."""
    sizes: list[int] = []
    until: list[int] = []  # the last stage that reads what is in each buffer
    of: dict[int, int] = {}
    for stage in stages:
        if stage not in requests:
            continue
        free = [number for number, last in enumerate(until) if last <= stage]
        enough = [number for number in free if sizes[number] >= requests[stage]]
        if not free:
            free = [len(sizes)]
            sizes.append(0)
            until.append(stage)
        number = min(enough, key=lambda each: sizes[each]) if enough else max(free, key=lambda each: sizes[each])
        sizes[number] = max(sizes[number], requests[stage])
        of[stage], until[number] = number, last_reader[stage]
    return Buffers(tuple(sizes), of)


@dataclass(frozen=True, eq=False)
class Subject:
    """A sub-graph with what no attempt changes; `ends`: candidates, and what is read from outside."""

    graph: Graph
    device: FusionDevice
    nodes: tuple[int, ...]
    grouping: Grouping
    outputs: frozenset[int]
    reads: Reads
    ends: frozenset[int]


@dataclass(frozen=True, eq=False)
class Layout:
    """What an attempt came to: mapped groups, stages, bytes of buffers, and why all this is so."""

    groups: tuple[Group, ...]
    stages: tuple[Stage, ...]
    end_barrier: bool
    buffers: tuple[int, ...]
    decisions: tuple[Decision, ...]


def laid_out(subject: Subject, wave: int, overflowed: Set[int]) -> Layout:
    """Make an attempt for a grid of at most `wave` blocks; overflowed: candidates that leave shared memory."""
    graph, order, reads, outputs = subject.graph, subject.grouping.candidates, subject.reads, subject.outputs
    groups, placed, decisions = _mapped_groups(subject, wave)
    reasons = schemes(graph, placed, reads, overflowed)
    across = {number for number, reason in reasons.items() if reason.scheme == GLOBAL}
    split = {number for number, reason in reasons.items() if reason.partials}
    before, end = grid_barriers(order, reads, across, split, outputs)
    shared = [each for each in placed if reasons[each.node].scheme == SHARED]
    requests = {each.node: VALUE_BYTES * int(np.bincount(each.owners.block).max(initial=0)) for each in shared}
    last_reader = {number: max(stage for stage, read in reads.items() if number in read) for number in requests}
    buffers = buffered(order, requests, last_reader)
    stages = tuple(
        Stage(
            node=each.node,
            scheme=reasons[each.node].scheme,
            written=each.node in outputs or each.node in across,
            work=each.work,
            owners=each.owners,
            partials=reasons[each.node].partials,
            grid_barrier=each.node in before,
            buffer=buffers.of.get(each.node, -1),
            bytes=requests.get(each.node, 0),
        )
        for each in placed
    )
    decisions += [
        Decision("scheme", graph.nodes[number].name, reason.scheme, reason.because)
        for number, reason in reasons.items()
    ]
    decisions += _barrier_decisions(subject, before, end, reasons)
    decisions += _buffer_decisions(graph, buffers, requests, last_reader)
    return Layout(groups, stages, end, buffers.sizes, tuple(decisions))


def _mapped_groups(subject: Subject, wave: int) -> tuple[tuple[Group, ...], list[Placed], list[Decision]]:
    """The groups with their mapping, and the candidates in order with those who compute them."""
    graph, cut = subject.graph, subject.grouping.cut
    groups, decisions = [], []
    placed: dict[int, Placed] = {}
    earlier: dict[int, tuple[Owners, ThreadMapping]] = {}
    for group in subject.grouping.groups:
        mapping, start, decision = _mapping(subject, group, wave, earlier)
        owners = propagated(graph, group, mapping, start, cut)
        for number in (group.backbone, *group.sub_backbones):
            work = work_of(graph, group, mapping, number, owners, cut)
            placed[number] = Placed(number, work, owners[number])
            earlier[number] = owners[number], mapping
        groups.append(replace(group, mapping=mapping))
        decisions.append(decision)
    return tuple(groups), [placed[number] for number in subject.grouping.candidates], decisions


def _mapping(subject: Subject, group: Group, wave: int, earlier: Earlier) -> tuple[ThreadMapping, Owners, Decision]:
    """Who computes a group, and owns its backbone's elements."""
    graph, device = subject.graph, subject.device
    because = ""
    if group.kind == ELEMENT and earlier:
        taken, because = adapted(graph, group, earlier, subject.ends)
        if taken is not None:
            chosen = f"{counted(taken[0].blocks, 'block')} of {taken[0].threads} threads"
            return *taken, Decision("mapping", graph.nodes[group.backbone].name, chosen, because)
        because += "; "
    mapping = mapped(group, device, wave)
    decision = mapping_decision(graph, group, mapping, device, wave)
    decision = replace(decision, because=because + decision.because)
    return mapping, owners_by_rule(graph, group, mapping, device), decision


def _barrier_decisions(subject: Subject, before: Set[int], end: bool, reasons: Mapping[int, Reason]) -> list[Decision]:
    """Why all blocks meet."""
    names = [node.name for node in subject.graph.nodes]
    decisions = []
    written: list[str] = []
    for stage in subject.grouping.candidates:
        if stage in before:
            read = [names[each] for each in subject.reads[stage] if names[each] in written]
            said = f"it reads {' and '.join(read)}, which other blocks have written since the last time"
            decisions.append(Decision("barrier", names[stage], "all blocks meet before it", said))
            written = []
        if reasons[stage].scheme == GLOBAL:
            written.append(names[stage])
    if end:
        split = [names[each] for each in sorted(subject.outputs) if names[each] in written and reasons[each].partials]
        said = f"the partials of {' and '.join(split)}, which goes out, are combined by the owners of its results"
        decisions.append(Decision("barrier", split[-1], "all blocks meet at the end", said))
    return decisions


def _buffer_decisions(
    graph: Graph, buffers: Buffers, requests: Mapping[int, int], last_reader: Mapping[int, int]
) -> list[Decision]:
    """Why a value has its buffer."""
    decisions = []
    for number, buffer in buffers.of.items():
        before = [each for each, other in buffers.of.items() if other == buffer and each < number]
        because = "the values of all other buffers are still read" if buffer else "it is the first value"
        if before:
            name, last = graph.nodes[before[-1]].name, graph.nodes[last_reader[before[-1]]].name
            because = f"{name} was there, which nobody reads after {last}"
        chosen = f"buffer {buffer} of {buffers.sizes[buffer]} bytes for {requests[number]} bytes"
        decisions.append(Decision("buffer", graph.nodes[number].name, chosen, because))
    return decisions


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
    """
    wave = first_wave(device)
    parts, refused = clusters(graph)
    subgraphs = tuple(
        _settled(_subject(graph, device, nodes, apart), number, wave, refused) for number, nodes in enumerate(parts)
    )
    return FusionPlan(graph, subgraphs, refused)


def first_wave(device: FusionDevice) -> int:
    """How many blocks a grid has at most, until more is known; docs/fusion.md, section 5."""
    if (wave := device.wave(device.block_threads, 0)) < 1:
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
