"""A fused graph as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.plan import Group, PlannedKernel, PlannedSubgraph, Stage
from lstmsim.studies.fuse.runs import FusionRow

if TYPE_CHECKING:
    from lstmsim.studies.fuse.run import FusionReport

__all__ = ["SCHEMA", "fusion_json", "group_json", "row_json"]

SCHEMA = "lstmsim/fusion/1"


def fusion_json(report: FusionReport) -> dict[str, Any]:
    """Give a fused graph as plain data of schema `lstmsim/fusion/1`."""
    graph, device, strongest = report.graph, report.asked.device, report.strongest
    names = [node.name for node in graph.nodes]
    return {
        "schema": SCHEMA,
        "wrong": list(report.wrong),
        "graph": {
            "name": graph.name,
            "source": report.source,
            "about": list(graph.about),
            "nodes": len(graph.nodes),
            "memory_intensive": sum(node.intensive for node in graph.nodes),
            "elements": report.asked.elements,
            "outputs": list(graph.outputs),
        },
        "chip": report.chip.name,
        "frequency_mhz": report.chip.frequency_mhz,
        "engine": report.engine,
        "seed": report.asked.seed,
        "device": {each.name: getattr(device, each.name) for each in fields(device)},
        "subgraphs": [_subgraph_json(graph, each) for each in report.plan.subgraphs],
        "refused_edges": [
            {"operand": names[each.operand], "reader": names[each.reader], "path": [names[at] for at in each.path]}
            for each in report.plan.refused
        ],
        "mode": report.mode,
        "modes": [row_json(each, report) for each in report.rows],
        "told": _told_json(report.told),
        "strongest_baseline": None if strongest is None else strongest.name,
        "ratio_to_strongest": report.ratio,
        "loses": None if report.ratio is None else report.ratio > 1,
        "other_rule": None if report.other is None else row_json(report.other, report),
        "ablations": [row_json(each, report) for each in report.ablations],
        "left_out": list(report.asked.fused.left_out),
        "remarks": list(report.remarks),
    }


def _subgraph_json(graph: Graph, plan: PlannedSubgraph) -> dict[str, Any]:
    names = [node.name for node in graph.nodes]
    return {
        "nodes": [names[each] for each in plan.nodes],
        "groups": [group_json(names, each) for each in plan.groups],
        "free": [names[each] for each in plan.free],
        "kernel": _kernel_json(plan.kernel),
        "stages": [_stage_json(graph, plan, each) for each in plan.kernel.stages],
        "overflowed": [names[each] for each in plan.overflowed],
        "decisions": [
            {"about": each.about, "node": each.node, "chosen": each.chosen, "because": each.because}
            for each in plan.decisions
        ],
    }


def group_json(names: Sequence[str], group: Group) -> dict[str, Any]:
    """A group with its mapping, operations by their names.

    names: of all nodes of the graph, in order.
    group: the group.
    """
    return {
        "members": [names[each] for each in group.members],
        "backbone": names[group.backbone],
        "sub_backbones": [names[each] for each in group.sub_backbones],
        "kind": group.kind,
        "rows": group.rows,
        "length": group.length,
        "mapping": None if group.mapping is None else asdict(group.mapping),
    }


def _stage_json(graph: Graph, plan: PlannedSubgraph, stage: Stage) -> dict[str, Any]:
    node = graph.nodes[stage.node]
    return {
        "node": node.name,
        "op": node.op,
        "shape": list(node.shape),
        "group": next((at for at, each in enumerate(plan.groups) if stage.node in each.members), None),
        "scheme": stage.scheme,
        "written": stage.written,
        "partials": stage.partials,
        "grid_barrier_before": stage.grid_barrier,
        "buffer": None if stage.buffer < 0 else stage.buffer,
        "bytes": stage.bytes,
    }


def _kernel_json(kernel: PlannedKernel) -> dict[str, Any]:
    """A kernel in short as plain data."""
    return {
        "name": kernel.name,
        "subgraph": kernel.subgraph,
        "blocks": kernel.blocks,
        "threads": kernel.threads,
        "wave": kernel.wave,
        "registers": kernel.registers,
        "shared_bytes": kernel.shared_bytes,
        "shared_bytes_before_reuse": kernel.shared_bytes_before_reuse,
        "buffers": list(kernel.buffers),
        "scratch": kernel.scratch,
        "grid_barriers": kernel.grid_barriers,
        "end_barrier": kernel.end_barrier,
    }


def row_json(row: FusionRow, report: FusionReport) -> dict[str, Any]:
    """A way to cut the graph as plain data.

    row: the way.
    report: whose it is.
    """
    return {
        "name": row.name,
        "kernels": len(row.kernels),
        "read_bytes": row.counts.read,
        "written_bytes": row.counts.written,
        "dram_bytes": None if row.figures is None else row.figures.dram_bytes,
        "l2_bytes": None if row.figures is None else row.figures.l2_bytes,
        "recomputed": row.counts.recomputed,
        "grid_barriers": row.grid_barriers,
        "waves": row.waves,
        "shared_bytes": max((each.shared_bytes for each in row.kernels), default=0),
        "shared_bytes_before_reuse": max((each.shared_bytes_before_reuse for each in row.kernels), default=0),
        "occupancy": row.mean(row.occupancy),
        "cores_used": row.mean(row.cores),
        "makespan_cycles": row.cycles,
        "us": row.us(report.chip.frequency_mhz),
        "launch_share": row.launches,
        "ratio_to_strongest": report.ratio_of(row),
        "refused": row.refused or None,
        "executed": _checked_json(row),
    }


def _checked_json(row: FusionRow) -> dict[str, Any] | None:
    if row.checked is None:
        return None
    difference = row.checked.difference
    return {
        "equal_to_numpy": row.checked.equal,
        "largest_difference": None if difference is None else min(difference.largest, 1e308),
        "elements": 0 if difference is None else difference.elements,
        "not_finite": 0 if difference is None else difference.endless,
        "fault": row.checked.fault or None,
    }


def _told_json(row: FusionRow) -> dict[str, Any]:
    """What is known of each kernel of a row, and of its run."""
    figures = row.figures
    spans = [None] * len(row.kernels) if figures is None else figures.kernels
    kernels = []
    for kernel, counts, span in zip(row.kernels, row.counts.kernels, spans, strict=True):
        told = {**_kernel_json(kernel), "read_bytes": counts.read, "written_bytes": counts.written}
        told |= {"recomputed": counts.recomputed, "occupancy": row.occupancy(kernel), "cores_used": row.cores(kernel)}
        told |= {} if span is None else {"arrives": span.arrives, "ends": span.ends, "cycles": span.cycles}
        kernels.append(told)
    if figures is None:
        return {"name": row.name, "kernels": kernels}
    return {
        "name": row.name,
        "kernels": kernels,
        "launch_cycles": figures.launch,
        "accounts": dict(figures.accounts),
        "account_cycles": figures.account_cycles,
        "counts": dict(figures.counts),
        "busy": list(figures.busy),
    }
