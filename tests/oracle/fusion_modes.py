"""Section 9 of docs/fusion.md: kernels of the baselines, bytes, evaluations."""

from __future__ import annotations

from typing import Any

from tests.oracle.fusion_graph import CHEAP, HEAVY, Graph, up
from tests.oracle.fusion_groups import candidates_of, outputs_of
from tests.oracle.fusion_mapping import Device, Owners, resident
from tests.oracle.fusion_plan import Kernel, Plan, launched, stage_of

MODES = ("op", "xla", "tvm", "stitch")


def roots_of(graph: Graph, nodes: list[int], mode: str) -> list[int]:
    if mode == "op":
        return nodes
    outputs = outputs_of(graph, nodes)
    return [v for v in candidates_of(graph, nodes) if mode == "xla" or graph.reduces(v) or v in outputs]


def one_root(graph: Graph, number: int, root: int, ends: set[int], device: Device) -> Kernel:
    """The baseline mapping."""
    warp, most = device["warp"], 1024
    while not resident(device, most, 0):
        most -= warp
    if graph.reduces(root):
        (u,) = graph.known(root)
        parts = graph.parts(root)
        rank, axes = len(graph.shapes[u]), graph.nodes[root]["axes"]
        work: list[Any] = [None] * graph.sizes[u]
        if sorted(axes) == list(range(rank - len(axes), rank)):
            blocks, threads = len(parts), min(most, up(len(parts[0]), warp) * warp)
            for p, part in enumerate(parts):
                for place, e in enumerate(part):
                    work[e] = (p, place % threads)
        else:
            blocks, threads = up(len(parts), warp), min(most, len(parts[0]) * warp)
            for p, part in enumerate(parts):
                for place, e in enumerate(part):
                    work[e] = (p // warp, place % (threads // warp) * warp + p % warp)
        owners: Owners = [work[part[0]] for part in parts]
    else:
        threads = min(most, 256)
        blocks = up(graph.sizes[root], threads)
        work = owners = [(e // threads, e % threads) for e in range(graph.sizes[root])]
    stage = stage_of(graph, root, work, owners)
    stage.output = stage.written = True
    kernel = Kernel(number, [stage], ends | {root}, blocks, threads)
    kernel.scratch = kernel.shared = kernel.before = 4 * up(threads, warp) if graph.reduces(root) else 0
    return launched(kernel, device)


def reads_of(graph: Graph, kernel: Kernel) -> set[int]:
    """What a kernel reads from outside."""
    own = {stage.node for stage in kernel.stages}
    return {v for stage in kernel.stages for v, _ in graph.tree(stage.node, kernel.ends) if v in kernel.ends} - own


def kernels_of(graph: Graph, plans: list[Plan], mode: str, device: Device) -> list[Kernel]:
    """The kernels in an order that the graph allows, lowest first node first."""
    made = []
    for number, plan in enumerate(plans):
        if mode == "stitch":
            made.append(plan.kernel)
            continue
        roots = roots_of(graph, plan.nodes, mode)
        ends = set(roots) | {u for v in plan.nodes for u in graph.known(v) if u not in plan.nodes}
        made += [one_root(graph, number, root, ends, device) for root in roots]
    there = {v for v, op in enumerate(graph.ops) if op == "input"}
    # calls of libraries are kernels that are not ours
    waiting: list[Any] = [v for v, op in enumerate(graph.ops) if op != "input" and not graph.light(v)] + made
    reads = [set(graph.known(each)) if isinstance(each, int) else reads_of(graph, each) for each in waiting]
    firsts = [
        each if isinstance(each, int) else min(plans[each.subgraph].nodes) if mode == "stitch" else each.stages[0].node
        for each in waiting
    ]
    ordered, left = [], set(range(len(waiting)))
    while left:
        place = min((each for each in left if reads[each] <= there), key=lambda each: (firsts[each], each))
        left.remove(place)
        kernel = waiting[place]
        there |= {kernel} if isinstance(kernel, int) else {stage.node for stage in kernel.stages if stage.written}
        if not isinstance(kernel, int):
            ordered.append(kernel)
    return ordered


def counted(graph: Graph, kernels: list[Kernel]) -> dict[str, int]:
    """Kernels, bytes read and written, evaluations beyond the first."""
    total = {"kernels": len(kernels), "read": 0, "written": 0, "recomputed": 0}
    for kernel in kernels:
        own = {stage.node: stage for stage in kernel.stages}
        read: dict[int, set[int]] = {}
        evaluated: dict[int, set[int]] = {}
        evaluations = 0
        for stage in kernel.stages:
            for v, elements in graph.tree(stage.node, kernel.ends):
                if v in kernel.ends and v != stage.node:
                    if v not in own or own[v].scheme == "global":
                        read.setdefault(v, set()).update(elements)
                elif graph.ops[v] in CHEAP + HEAVY:
                    evaluations += len(elements)
                    evaluated.setdefault(v, set()).update(elements)
        total["read"] += 4 * sum(map(len, read.values()))
        total["written"] += 4 * sum(graph.sizes[v] for v, stage in own.items() if stage.written)
        total["recomputed"] += evaluations - sum(map(len, evaluated.values()))
    return total
