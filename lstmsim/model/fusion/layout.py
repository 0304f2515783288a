"""One attempt at a sub-graph: who computes what, where values lie, when blocks meet; docs/fusion.md, 5 to 7."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from lstmsim.base.records import record
from lstmsim.base.wording import counted
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.groups import Grouping
from lstmsim.model.fusion.indexing import ranks
from lstmsim.model.fusion.mapping import mapped, mapping_decision, owners_by_rule, propagated, work_of
from lstmsim.model.fusion.plan import (
    ELEMENT,
    GLOBAL,
    SHARED,
    VALUE_BYTES,
    Decision,
    FusionDevice,
    Group,
    Owners,
    Stage,
    ThreadMapping,
)
from lstmsim.model.fusion.schemes import Placed, Reads, Reason, first_read, schemes

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

    across: candidates that lie in device memory for other blocks.
    split: those of them whose results are split over blocks.

    >>> grid_barriers([3, 5, 8], {3: [], 5: [3], 8: [5]}, {3, 8}, {8}, {8})
    (frozenset({5}), True)
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
    """A buffer for each shared value. A stage may read a buffer and write its own value over it.

    requests: bytes of each candidate that lies in shared memory.
    last_reader: number of the last stage that reads each of these.

    >>> buffered([1, 4, 6, 9], {1: 400, 4: 100, 6: 200}, {1: 4, 4: 9, 6: 9})
    Buffers(sizes=(400, 200), of={1: 0, 4: 0, 6: 1})
    """
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
    """Make an attempt.

    subject: the sub-graph.
    wave: how many blocks the grid should have at most.
    overflowed: candidates that must not lie in shared memory.
    """
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
