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


@record
class Earlier:
    """A candidate of a group that is mapped already.

    owners: of its elements.
    mapping: of its group.
    """

    owners: Owners
    mapping: ThreadMapping


@record
class Adapted:
    """What became of the attempt to adapt a group.

    mapping, owners: who computes the backbone; None if the group does not adapt.
    because: why it does or does not, a sentence without a full stop.
    """

    mapping: ThreadMapping | None
    owners: Owners | None
    because: str


def adapted(graph: Graph, group: Group, earlier: Mapping[int, Earlier], ends: Set[int]) -> Adapted:
    """Give each element of a group the block that owns what it reads of an earlier group, if no block has far too many.

    graph: the graph.
    group: a group of kind `element`.
    earlier: the candidates of earlier groups.
    ends: the candidates of the sub-graph, and what it reads from outside.
    """
    elements = np.arange(group.rows)
    for number in sorted(earlier):
        read = first_read(graph, group.backbone, elements, number, ends)
        if read is not None:
            return _following(graph.nodes[number].name, earlier[number], read)
    return Adapted(None, None, "it reads no candidate of an earlier group")


def _following(name: str, one: Earlier, read: np.ndarray) -> Adapted:
    """Whether a group may have the blocks of what it reads."""
    block = one.owners.block[read]
    counts = np.bincount(block, minlength=one.mapping.blocks)
    there = counted(one.mapping.blocks, "block")
    said = f"the fullest of the {there} of {name} would have {counts.max()} of {block.size} elements"
    if one.mapping.blocks == 1:
        said = f"the one block of {name} would have all {block.size} elements"
    if counts.max() * one.mapping.blocks > _FULLEST * block.size:
        return Adapted(None, None, f"{said}, more than {_FULLEST} times the mean")
    threads = one.mapping.threads
    mapping = ThreadMapping("adapted", one.mapping.blocks, threads, threads, 1, 1, 1, block.size)
    thread = (ranks(block) % threads).astype(np.int32)
    return Adapted(mapping, Owners(block, thread), f"{said}, at most {_FULLEST} times the mean")


def adaptation_decision(graph: Graph, group: Group, tried: Adapted) -> Decision:
    """Why a group took over the blocks of another one."""
    mapping = tried.mapping
    chosen = "blocks by the rule for elements"
    if mapping is not None:
        chosen = f"{counted(mapping.blocks, 'block')} of {mapping.threads} threads"
    return Decision("mapping", graph.nodes[group.backbone].name, chosen, tried.because)


def grid_barriers(
    stages: Sequence[int], reads: Mapping[int, Collection[int]], across: Set[int], split: Set[int], outputs: Set[int]
) -> tuple[frozenset[int], bool]:
    """The stages before which all blocks meet, and whether they meet at the end.

    stages: the candidates in order.
    reads: the candidates that each stage reads.
    across: candidates that lie in device memory for other blocks.
    split: those of them whose results are split over blocks.
    outputs: what the sub-graph puts out.

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
    """Buffers of shared memory of a block.

    sizes: bytes of each.
    of: number of the buffer of each candidate that has one.
    """

    sizes: tuple[int, ...]
    of: Mapping[int, int]


def buffered(stages: Sequence[int], requests: Mapping[int, int], last_reader: Mapping[int, int]) -> Buffers:
    """A buffer for each shared value. A stage may read a buffer and write its own value over it.

    stages: the candidates in order.
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
        if enough:
            number = min(enough, key=lambda each: sizes[each])
        elif free:
            number = max(free, key=lambda each: sizes[each])
            sizes[number] = requests[stage]
        else:
            number = len(sizes)
            sizes.append(requests[stage])
            until.append(stage)
        of[stage], until[number] = number, last_reader[stage]
    return Buffers(tuple(sizes), of)


def most_of_a_block(owners: Owners) -> int:
    """The most elements that one block owns.

    >>> most_of_a_block(Owners(np.int32([0, 2, 2]), np.int32([0, 0, 1])))
    2
    """
    return int(np.bincount(owners.block).max()) if owners.block.size else 0


@dataclass(frozen=True, eq=False)
class Subject:
    """A sub-graph with what does not change from attempt to attempt.

    graph: the graph it is of.
    device: the numbers of the device.
    nodes: its operations.
    grouping: its groups, without mapping.
    outputs: what it puts out.
    reads: what each stage reads of the others.
    ends: its candidates, and what it reads from outside.
    """

    graph: Graph
    device: FusionDevice
    nodes: tuple[int, ...]
    grouping: Grouping
    outputs: frozenset[int]
    reads: Reads
    ends: frozenset[int]


@dataclass(frozen=True, eq=False)
class Layout:
    """What an attempt came to.

    groups: with their mapping.
    stages: in order.
    end_barrier: whether all blocks meet at the end.
    buffers: bytes of each buffer of shared memory.
    decisions: why all this is so.
    """

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
    groups, placed, decisions = _mapped_groups(subject, wave)
    reasons = schemes(subject.graph, placed, subject.reads, overflowed)
    before, end = _barriers(subject, reasons)
    requests = {
        each.node: VALUE_BYTES * most_of_a_block(each.owners) for each in placed if reasons[each.node].scheme == SHARED
    }
    last_reader = {number: max(_readers(subject.reads, number)) for number in requests}
    buffers = buffered(subject.grouping.candidates, requests, last_reader)
    stages = tuple(
        Stage(
            node=each.node,
            scheme=reasons[each.node].scheme,
            written=each.node in subject.outputs or reasons[each.node].scheme == GLOBAL,
            work=each.work,
            owners=each.owners,
            partials=reasons[each.node].partials,
            grid_barrier=each.node in before,
            buffer=buffers.of.get(each.node, -1),
            bytes=requests.get(each.node, 0),
        )
        for each in placed
    )
    decisions += _scheme_decisions(subject.graph, reasons)
    decisions += _barrier_decisions(subject, before, end, reasons)
    decisions += _buffer_decisions(subject.graph, buffers, requests, last_reader)
    return Layout(groups, stages, end, buffers.sizes, tuple(decisions))


def _mapped_groups(subject: Subject, wave: int) -> tuple[tuple[Group, ...], list[Placed], list[Decision]]:
    """The groups with their mapping, and the candidates in order with those who compute them."""
    graph, cut = subject.graph, subject.grouping.cut
    groups, decisions = [], []
    placed: dict[int, Placed] = {}
    earlier: dict[int, Earlier] = {}
    for group in subject.grouping.groups:
        mapping, start, decision = _mapping(subject, group, wave, earlier)
        owners = propagated(graph, group, mapping, start, cut)
        for number in (group.backbone, *group.sub_backbones):
            work = work_of(graph, group, mapping, number, owners, cut)
            placed[number] = Placed(number, work, owners[number])
            earlier[number] = Earlier(owners[number], mapping)
        groups.append(replace(group, mapping=mapping))
        decisions.append(decision)
    return tuple(groups), [placed[number] for number in subject.grouping.candidates], decisions


def _mapping(
    subject: Subject, group: Group, wave: int, earlier: Mapping[int, Earlier]
) -> tuple[ThreadMapping, Owners, Decision]:
    """Who computes a group, and owns its backbone's elements."""
    graph, device = subject.graph, subject.device
    because = ""
    if group.kind == ELEMENT and earlier:
        tried = adapted(graph, group, earlier, subject.ends)
        if tried.mapping is not None and tried.owners is not None:
            return tried.mapping, tried.owners, adaptation_decision(graph, group, tried)
        because = f"{tried.because}; "
    mapping = mapped(group, device, wave)
    decision = mapping_decision(graph, group, mapping, device, wave)
    decision = replace(decision, because=because + decision.because)
    return mapping, owners_by_rule(graph, group, mapping, device), decision


def _readers(reads: Reads, number: int) -> list[int]:
    return [stage for stage, read in reads.items() if number in read]


def _barriers(subject: Subject, reasons: Mapping[int, Reason]) -> tuple[frozenset[int], bool]:
    across = {number for number, reason in reasons.items() if reason.scheme == GLOBAL}
    split = {number for number, reason in reasons.items() if reason.partials}
    return grid_barriers(subject.grouping.candidates, subject.reads, across, split, subject.outputs)


def _scheme_decisions(graph: Graph, reasons: Mapping[int, Reason]) -> list[Decision]:
    return [
        Decision("scheme", graph.nodes[number].name, reason.scheme, reason.because)
        for number, reason in reasons.items()
    ]


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
