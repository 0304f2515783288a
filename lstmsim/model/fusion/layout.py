"""One attempt at a sub-graph: who computes what, where values lie, when blocks meet; docs/fusion.md, sections 5 to 7.

Whether it fits on the device is asked by `lstmsim.model.fusion.planner`, which makes the next attempt.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from lstmsim.model.fusion.adaptation import Earlier, adaptation_decision, adapted
from lstmsim.model.fusion.device import VALUE_BYTES, FusionDevice
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.groups import Grouping
from lstmsim.model.fusion.mapping import mapped, mapping_decision, owners_by_rule
from lstmsim.model.fusion.owners import propagated, work_of
from lstmsim.model.fusion.plan import ELEMENT, GLOBAL, SHARED, Decision, Group, Owners, Stage, ThreadMapping
from lstmsim.model.fusion.schemes import Placed, Reads, Reason, schemes
from lstmsim.model.fusion.shared import Buffers, buffered, grid_barriers, most_of_a_block

__all__ = ["Layout", "Subject", "laid_out"]


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
