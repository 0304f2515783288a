"""What the pass and its plain model say, in one form, so that they can be compared."""

from __future__ import annotations

import random
from dataclasses import asdict
from typing import Any

from lstmsim.base.errors import InputError
from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.plan import MODES, FusionDevice, FusionPlan, Owners, PlannedKernel, ThreadMapping
from lstmsim.model.fusion.planner import planned
from lstmsim.model.fusion.schemes import counted
from tests.oracle import fusion_modes, fusion_plan
from tests.oracle.fusion_graph import Graph as PlainGraph

ATTRIBUTES = {"broadcast": "dims", "transpose": "perm", "slice": "start"}
CHOICES: dict[str, list[Any]] = {
    "sms": [1, 2, 3, 5, 80],
    "warp": [32, 32, 64],
    "max_warps": [16, 32, 64],
    "max_blocks": [1, 2, 4, 32],
    "registers": [8192, 32768, 65536],
    "shared_bytes": [1024, 4096, 98304],
    "shared_limit": [128, 256, 512, 1024, 4096],
    "block_threads": [64, 128, 256, 1024],
    "element_threads": [64, 128, 256],
    "split_length": [4, 16, 64, 1024],
    "split_rule": ["paper", "costed"],
    "turn_cycles": [400, 100],
    "grid_cycles": [100, 900, 3830],
    "register_elements": [1, 1, 2, 8],
}


def odd_device(seed: int) -> FusionDevice:
    """A random device."""
    draw = random.Random(seed)
    return FusionDevice(**{name: draw.choice(values) for name, values in CHOICES.items()})


def plain_graph(graph: Graph) -> PlainGraph:
    """A graph as golden cases write it."""
    nodes = [
        {"name": node.name, "op": node.op, "inputs": list(node.inputs), "shape": list(node.shape)}
        | {ATTRIBUTES.get(node.op, "axes"): list(node.axes)}
        for node in graph.nodes
    ]
    return PlainGraph({"nodes": nodes, "outputs": list(graph.outputs)})


def _pairs(owners: Owners) -> list[tuple[int, int]]:
    return list(zip(owners.block.tolist(), owners.thread.tolist(), strict=True))


def vars_of(mapping: ThreadMapping | None) -> dict[str, Any]:
    """The numbers of a mapping."""
    assert mapping is not None
    return asdict(mapping)


def kernel_told(kernel: PlannedKernel) -> dict[str, Any]:
    """All that a planned kernel says."""
    stages = kernel.stages
    return {
        "subgraph": kernel.subgraph,
        "stages": [
            (each.node, each.scheme, each.written, each.partials, each.grid_barrier, each.buffer, each.bytes)
            for each in stages
        ],
        "grid": (kernel.blocks, kernel.threads, kernel.registers, kernel.wave, kernel.end_barrier),
        "shared": (kernel.shared_bytes, kernel.shared_bytes_before_reuse, list(kernel.buffers), kernel.scratch),
        "work": [_pairs(each.work) for each in stages],
        "owners": [_pairs(each.owners) for each in stages],
    }


def plain_kernel_told(kernel: fusion_plan.Kernel) -> dict[str, Any]:
    """The same of a plain kernel."""
    stages = kernel.stages
    return {
        "subgraph": kernel.subgraph,
        "stages": [
            (each.node, each.scheme, each.written, each.pieces, each.barrier, each.buffer, each.bytes)
            for each in stages
        ],
        "grid": (kernel.blocks, kernel.threads, kernel.registers, kernel.wave, kernel.end_barrier),
        "shared": (kernel.shared, kernel.before, kernel.buffers, kernel.scratch),
        "work": [each.work for each in stages],
        "owners": [each.owners for each in stages],
    }


def plan_told(plan: FusionPlan) -> list[Any]:
    """All that a plan says of groups and refused edges."""
    reported: list[Any] = [[(each.operand, each.reader) for each in plan.refused]]
    for each in plan.subgraphs:
        groups = [
            (list(g.members), g.backbone, list(g.sub_backbones), g.kind, g.rows, g.length, vars_of(g.mapping))
            for g in each.groups
        ]
        reported += [list(each.nodes), groups, list(each.free), list(each.overflowed), kernel_told(each.kernel)]
    return reported


def plain_plan_told(plans: list[fusion_plan.Plan], refused: list[tuple[int, int]]) -> list[Any]:
    """The same of plain plans."""
    reported: list[Any] = [refused]
    for each in plans:
        groups = [(g.members, g.backbone, g.subs, g.kind, g.rows, g.length, g.mapping) for g in each.groups]
        reported += [each.nodes, groups, each.free, each.overflowed, plain_kernel_told(each.kernel)]
    return reported


def agree(graph: Graph, device: FusionDevice) -> bool:
    """The pass and the model say the same in every mode, owners of all elements included; False if both refuse."""
    plain, numbers, possible = plain_graph(graph), asdict(device), True
    for apart in (True, False):
        try:
            plain_plans, refused = fusion_plan.plans(plain, numbers, apart)
        except ZeroDivisionError:  # not one block fits
            try:
                planned(graph, device, apart=apart)
            except InputError:
                possible = False
                continue
            raise
        plan = planned(graph, device, apart=apart)
        assert plan_told(plan) == plain_plan_told(plain_plans, refused)
    if possible:
        for mode in MODES:
            kernels = kernels_of(graph, plan, device, mode)
            plain_kernels = fusion_modes.kernels_of(plain, plain_plans, mode, numbers)
            assert list(map(kernel_told, kernels)) == list(map(plain_kernel_told, plain_kernels))
            counts = counted(graph, kernels)
            assert {
                "kernels": len(kernels),
                "read": counts.read,
                "written": counts.written,
                "recomputed": counts.recomputed,
            } == fusion_modes.counted(plain, plain_kernels)
    return possible
