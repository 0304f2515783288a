"""Sections 6 and 7 of docs/fusion.md: stages, schemes, barriers, shared memory, the loop of new plans."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.oracle import fusion_mapping as by
from tests.oracle.fusion_graph import Graph, up
from tests.oracle.fusion_groups import Group, candidates_of, edges_of, groups_of, outputs_of, subgraphs
from tests.oracle.fusion_mapping import Device, Owners


@dataclass
class Stage:
    """A candidate. `work`: owners of what it evaluates; `blocks`: of each result of a reduce, ascending."""

    node: int
    work: Owners
    owners: Owners
    scheme: str = "output"
    output: bool = False
    written: bool = False
    blocks: list[list[int]] = field(default_factory=list)
    barrier: bool = False
    buffer: int = -1
    bytes: int = 0

    @property
    def pieces(self) -> int:
        """0 if no result is split."""
        most = max(map(len, self.blocks), default=1)
        return most if most > 1 else 0


@dataclass
class Kernel:
    """What one kernel does; `ends`: what its expressions end at."""

    subgraph: int
    stages: list[Stage]
    ends: set[int]
    blocks: int
    threads: int
    buffers: list[int] = field(default_factory=list)
    scratch: int = 0
    shared: int = 0
    before: int = 0
    wave: int = 0
    registers: int = 0
    end_barrier: bool = False


@dataclass
class Plan:
    nodes: list[int]
    groups: list[Group]
    free: list[int]
    kernel: Kernel
    overflowed: list[int]


def launched(kernel: Kernel, device: Device) -> Kernel:
    """Section 7.5."""
    here, warps = by.resident(device, kernel.threads, kernel.shared), up(kernel.threads, device["warp"])
    kernel.wave = here * device["sms"]
    room = device["registers"] // (here * warps * device["warp"]) if here else 0
    kernel.registers = min(255, room // 8 * 8)
    return kernel


def mapped(
    graph: Graph, nodes: list[int], groups: list[Group], cut: set[int], device: Device, w: int, apart: bool
) -> dict[int, Stage]:
    """Section 5: the stages with their owners."""
    candidates = candidates_of(graph, nodes)
    ends = set(candidates) | {u for v in nodes for u in graph.known(v) if u not in nodes}
    edges = edges_of(graph, nodes, cut, apart)
    done: dict[int, tuple[Group, Owners]] = {}
    stages = {}
    for group in groups:
        start = graph.known(group.backbone)[0] if graph.reduces(group.backbone) else group.backbone
        if group.kind == "row":
            group.mapping, owners = by.row(device, group.rows, group.length, w)
        elif group.kind == "column":
            group.mapping, owners = by.column(device, graph.parts(group.backbone), group.length, w)
        else:
            group.mapping, owners = by.adapted(graph, group, ends, done) or by.element(device, group.rows, w)
        known = by.propagated(graph, group, edges, start, owners)
        threads = group.mapping["threads"]
        assert isinstance(threads, int)
        for v in [group.backbone, *group.subs]:
            work = known[v]
            if graph.reduces(v):
                (u,) = graph.known(v)
                away = v != group.backbone and (u, v) not in edges
                work = by.backward(graph, v, u, known[v], threads) if away else known[u]
            stages[v] = stage_of(graph, v, work, known[v])
            done[v] = group, known[v]
    return {v: stages[v] for v in candidates}


def stage_of(graph: Graph, v: int, work: Owners, owners: Owners) -> Stage:
    blocks = [sorted({work[e][0] for e in part}) for part in graph.parts(v)] if graph.reduces(v) else []
    return Stage(v, work, owners, blocks=blocks)


def schemes(graph: Graph, stages: dict[int, Stage], ends: set[int], overflowed: list[int]) -> dict[int, list[int]]:
    """Section 6; for each candidate the stages that read it."""
    readers: dict[int, list[int]] = {v: [] for v in stages}
    order = ["output", "register", "shared", "global"]
    for v, stage in stages.items():
        if stage.pieces or v in overflowed:
            stage.scheme = "global"
    for v, stage in stages.items():
        for c, elements in graph.tree(v, ends):
            if c not in stages or c == v:
                continue
            source = stages[c]
            pairs = [(stage.work[i], source.owners[e]) for i, e in enumerate(elements)]
            asked = "register"
            if graph.reduces(c) or any(reading[1] != owning[1] for reading, owning in pairs):
                asked = "shared"
            if any(reading[0] != owning[0] for reading, owning in pairs):
                asked = "global"
            source.scheme = max(source.scheme, asked, key=order.index)
            if v not in readers[c]:
                readers[c].append(v)
    for v, stage in stages.items():  # section 12: computed elsewhere than where the result belongs
        if stage.blocks and readers[v] and any(b[0] != o[0] for b, o in zip(stage.blocks, stage.owners, strict=True)):
            stage.scheme = "global"
    return readers


def buffers(stages: dict[int, Stage], readers: dict[int, list[int]]) -> list[int]:
    """Section 7.2."""
    sizes: list[int] = []
    last: list[int] = []
    for v, stage in stages.items():
        if stage.scheme != "shared":
            continue
        stage.bytes = 4 * max(Counter(block for block, _ in stage.owners).values())
        free = [b for b in range(len(sizes)) if last[b] <= v]
        large = [b for b in free if sizes[b] >= stage.bytes]
        if large:
            stage.buffer = min(large, key=lambda b: sizes[b])
        elif free:
            stage.buffer = max(free, key=lambda b: sizes[b])
        else:
            stage.buffer = len(sizes)
            sizes.append(0)
            last.append(0)
        sizes[stage.buffer] = max(sizes[stage.buffer], stage.bytes)
        last[stage.buffer] = max(readers[v])
    return sizes


def planned(graph: Graph, number: int, nodes: list[int], device: Device, apart: bool = False) -> Plan:
    """One sub-graph, planned anew until shared memory and the wave suffice."""
    outputs = outputs_of(graph, nodes)
    w, overflowed = by.wave(device, device["block_threads"], 0), list[int]()
    while True:
        groups, free, cut = groups_of(graph, nodes, apart)
        stages = mapped(graph, nodes, groups, cut, device, w, apart)
        ends = set(stages) | {u for v in nodes for u in graph.known(v) if u not in nodes}
        readers = schemes(graph, stages, ends, overflowed)
        sizes = buffers(stages, readers)
        blocks = max(int(str(group.mapping["blocks"])) for group in groups)
        threads = max(int(str(group.mapping["threads"])) for group in groups)
        scratch = 4 * up(threads, device["warp"]) if any(graph.reduces(v) for v in stages) else 0
        kernel = Kernel(number, list(stages.values()), ends, blocks, threads, sizes, scratch)
        kernel.shared = sum(sizes) + scratch
        kernel.before = sum(stage.bytes for stage in kernel.stages) + scratch
        pending = set[int]()
        for v, stage in stages.items():
            if pending & {c for c, _ in graph.tree(v, ends) if c != v}:
                stage.barrier, pending = True, set()
            if stage.scheme == "global":
                pending.add(v)
            stage.output = v in outputs
            stage.written = v in outputs or stage.scheme == "global"
        kernel.end_barrier = any(stages[v].pieces and v in outputs for v in pending)
        shared = [v for v, stage in stages.items() if stage.scheme == "shared"]
        if kernel.shared > device["shared_limit"] and shared:
            overflowed.append(max(shared, key=lambda v: (stages[v].bytes, v)))
            continue
        room = by.wave(device, threads, kernel.shared)
        if (kernel.end_barrier or any(stage.barrier for stage in kernel.stages)) and blocks > room:
            w = min(w - 1, room)
            continue
        return Plan(nodes, groups, free, launched(kernel, device), overflowed)


def plans(graph: Graph, device: Device, apart: bool = False) -> tuple[list[Plan], list[tuple[int, int]]]:
    """All sub-graphs, and the refused edges."""
    found, refused = subgraphs(graph)
    return [planned(graph, number, nodes, device, apart) for number, nodes in enumerate(found)], refused


def reported(graph: Graph, plan: Plan) -> dict[str, Any]:
    """A plan as golden cases have it."""
    name, kernel = graph.names, plan.kernel
    stages = kernel.stages
    return {
        "groups": [
            {
                "members": [name[v] for v in group.members],
                "backbone": name[group.backbone],
                "sub_backbones": [name[v] for v in group.subs],
                "kind": group.kind,
                "rows": group.rows,
                "length": group.length,
                "mapping": group.mapping,
            }
            for group in plan.groups
        ],
        "free": [name[v] for v in plan.free],
        "stages": [name[stage.node] for stage in stages],
        "schemes": {name[stage.node]: stage.scheme for stage in stages},
        "grid_barriers_before": [name[stage.node] for stage in stages if stage.barrier] + ["end"] * kernel.end_barrier,
        "shared_bytes_before_reuse": kernel.before,
        "shared_bytes": kernel.shared,
        "buffers": {name[stage.node]: stage.buffer for stage in stages if stage.buffer >= 0},
        "overflowed": [name[v] for v in plan.overflowed],
        "blocks": kernel.blocks,
        "threads": kernel.threads,
        "wave": kernel.wave,
        "registers": kernel.registers,
    }
