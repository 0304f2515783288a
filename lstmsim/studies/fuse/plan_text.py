"""The plan of a fused graph as text: sub-graphs, groups with their mappings, stages with their schemes, decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lstmsim.base.wording import counted
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.operations import COMPUTE
from lstmsim.model.fusion.plan import GLOBAL, OUTPUT, SHARED, Group, PlannedSubgraph, Stage, ThreadMapping
from lstmsim.report.figures_text import short_path
from lstmsim.report.tables import table
from lstmsim.studies.shared.product_text import wrapped

if TYPE_CHECKING:
    from lstmsim.studies.fuse.run import FusionReport

__all__ = ["decisions_text", "plan_text"]

#: Most names that are listed in a line.
_MOST_NAMES = 12
#: Most sub-graphs that are told in full, each with most so many stages.
_MOST_SUBGRAPHS, _MOST_STAGES = 8, 40


def plan_text(report: FusionReport) -> str:
    """The plan, sub-graph by sub-graph."""
    graph, plan = report.graph, report.plan
    calls = [node.name for node in graph.nodes if node.kind == COMPUTE]
    fused = sum(node.intensive for node in graph.nodes)
    told = (
        f"{counted(fused, 'memory-intensive operation')} in {counted(len(plan.subgraphs), 'sub-graph')}, a kernel each"
    )
    if calls:
        told += f"; left to a library: {_names(calls)}"
    lines = wrapped("plan", told)
    for each in plan.refused:
        operand, reader = graph.nodes[each.operand].name, graph.nodes[each.reader].name
        path = " -> ".join(graph.nodes[at].name for at in each.path)
        lines += wrapped("refused", f"{operand} -> {reader}: one kernel of both would be a cycle over {path}")
    parts = ["\n".join(lines)]
    parts += [_subgraph(graph, number, each) for number, each in enumerate(plan.subgraphs[:_MOST_SUBGRAPHS])]
    more = len(plan.subgraphs) - _MOST_SUBGRAPHS
    if more > 0:
        parts.append(f"and {counted(more, 'more sub-graph')}: --json has them")
    return "\n\n".join(parts)


def _subgraph(graph: Graph, number: int, plan: PlannedSubgraph) -> str:
    kernel = plan.kernel
    told = f"{counted(len(plan.nodes), 'operation')}; {counted(kernel.blocks, 'block')} of "
    told += (
        f"{counted(kernel.threads, 'thread')}, {kernel.registers} registers each; a wave is {kernel.wave:,} blocks; "
    )
    told += f"shared memory {kernel.shared_bytes:,} bytes a block"
    if kernel.shared_bytes_before_reuse > kernel.shared_bytes:
        told += f" ({kernel.shared_bytes_before_reuse:,} without reuse)"
    if kernel.grid_barriers:
        told += f"; {counted(kernel.grid_barriers, 'grid barrier')}"
        told += ", one of them at the end" if kernel.end_barrier and kernel.grid_barriers > 1 else ""
        told += " at the end" if kernel.end_barrier and kernel.grid_barriers == 1 else ""
    lines = wrapped(f"sub-graph {number}", told)
    for at, group in enumerate(plan.groups):
        lines += wrapped(f"  group {at}", _group(graph, group))
    if plan.free:
        lines += wrapped("  free", f"{_names([graph.nodes[each].name for each in plan.free])}: inlined where read")
    if plan.overflowed:
        names = _names([graph.nodes[each].name for each in plan.overflowed])
        lines += wrapped("  overflow", f"shared memory is too small: {names} went to global memory")
    rows = [["  stage", "operation", "elements", "group", "scheme", "", ""]]
    for stage in kernel.stages[:_MOST_STAGES]:
        rows.append(_stage(graph, plan, stage))
    lines += table(rows, left=[0, 1, 4, 5, 6])
    more = len(kernel.stages) - _MOST_STAGES
    lines += [f"  and {counted(more, 'more stage')}: --json has them"] if more > 0 else []
    return "\n".join(lines)


def _group(graph: Graph, group: Group) -> str:
    name = graph.nodes[group.backbone].name
    told = f"{group.kind}, backbone {name}"
    if group.kind != "element":
        told += f" ({counted(group.rows, 'result')} of {counted(group.length, 'element')})"
    if group.sub_backbones:
        told += f", sub-backbones {_names([graph.nodes[each].name for each in group.sub_backbones])}"
    if group.mapping is not None:
        told += f"; {_mapping(group.mapping)}"
    return told


def _mapping(of: ThreadMapping) -> str:
    """Which thread computes what, in words."""
    where = f"{counted(of.blocks, 'block')} of {counted(of.threads, 'thread')}"
    told = f"{of.kind}: {where}{_SIDES.get(of.kind, '')}"
    if of.kind == "pack":
        told += f", {of.per_block:,} rows side by side" if of.per_block > 1 else ""
        told += f", {of.lanes:,} threads a row"
    if of.pieces > 1:
        told += f", {of.pieces:,} blocks share a result, {of.piece:,} elements each"
    return told + (f", {of.tasks:,} one after the other" if of.tasks > 1 else "")


#: What a kind of mapping means beside its numbers.
_SIDES = {"column": ", 32 results side by side", "adapted": ", those of the group that it reads"}


def _stage(graph: Graph, plan: PlannedSubgraph, stage: Stage) -> list[str]:
    node = graph.nodes[stage.node]
    group = next((str(at) for at, each in enumerate(plan.groups) if stage.node in each.members), "-")
    marks = []
    if stage.grid_barrier:
        marks.append("grid barrier before")
    if stage.partials:
        marks.append(f"split in {stage.partials}")
    if stage.written and stage.scheme not in (GLOBAL, OUTPUT):
        marks.append("output")
    where = f"buffer {stage.buffer}, {stage.bytes:,} bytes" if stage.scheme == SHARED else ""
    return [f"  {short_path(node.name, 28)}", node.op, f"{node.size:,}", group, stage.scheme, where, ", ".join(marks)]


def decisions_text(report: FusionReport) -> str:
    """Why the plan is so: all decisions, sub-graph by sub-graph."""
    parts = []
    for number, each in enumerate(report.plan.subgraphs):
        rows = [[f"  {one.about}", short_path(one.node, 28)] for one in each.decisions]
        heads = table(rows, left=[0, 1]) if rows else []
        width = max(map(len, heads), default=0) + 2
        lines = [f"decisions on sub-graph {number}"]
        for head, one in zip(heads, each.decisions, strict=True):
            lines += wrapped(head, f"{one.chosen}, because {one.because}", width)
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _names(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    shown = ", ".join(short_path(each, 28) for each in names[:_MOST_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown
