"""Kernels as compilers make them, and the pass switched on part by part; docs/fusion.md, section 9."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

import numpy as np

from lstmsim.base.records import record
from lstmsim.model.fusion.graph import CONSTANT, REDUCE, Graph
from lstmsim.model.fusion.mapping import candidates_of, group_of, in_order, mapped, outputs_of, owners_by_rule
from lstmsim.model.fusion.plan import (
    COLUMN,
    ELEMENT,
    GLOBAL,
    OUTPUT,
    ROW,
    FusionDevice,
    FusionPlan,
    Group,
    Owners,
    PlannedKernel,
    Stage,
    ThreadMapping,
    up,
)
from lstmsim.model.fusion.planner import first_wave, planned, scratch_of
from lstmsim.model.fusion.schemes import reduced_elements

#: Threads of a block of a compiler's kernels: at most for a reduce, always for elements.
MOST_THREADS, ELEMENT_THREADS = 1024, 256


#: The roots of a sub-graph by mode: the operations that become a kernel each.
BASELINES: Mapping[str, Callable[[Graph, Sequence[int]], tuple[int, ...]]] = {
    "op": lambda graph, nodes: tuple(nodes),
    "xla": lambda graph, nodes: tuple(graph.numbers[each.node] for each in candidates_of(graph, nodes)),
    "tvm": lambda graph, nodes: tuple(
        each
        for outputs in [outputs_of(graph, nodes)]
        for each in nodes
        if graph.nodes[each].kind == REDUCE or each in outputs
    ),
}


def kernels_of(graph: Graph, plan: FusionPlan, device: FusionDevice, mode: str) -> tuple[PlannedKernel, ...]:
    """All kernels of a graph by one of `MODES`, in the order in which they run."""
    if mode == "stitch":
        return in_order(graph, [each.kernel for each in plan.subgraphs])
    subgraphs = [each.nodes for each in plan.subgraphs]
    return root_kernels(graph, subgraphs, device, mode, lambda group: baseline_mapping(group, device))


def baseline_mapping(group: Group, device: FusionDevice) -> ThreadMapping:
    """The mapping that a compiler gives to a kernel: a block for each row, 32 columns a block, an element a thread."""
    warp, most = device.warp, MOST_THREADS // device.warp * device.warp
    # fewer on a small multiprocessor; the limit of a block for the pass is not a compiler's
    while most > warp and not device.resident(most, 0):
        most -= warp
    if group.kind == ROW:
        threads = min(most, up(group.length, warp) * warp)
        return ThreadMapping("pack", group.rows, threads, threads, 1, 1, 1, group.length)
    if group.kind == COLUMN:
        threads = min(most, group.length * warp)
        return ThreadMapping(COLUMN, up(group.rows, warp), threads, warp, 1, 1, 1, group.length)
    threads = min(ELEMENT_THREADS, most)
    return ThreadMapping(ELEMENT, up(group.rows, threads), threads, threads, 1, 1, 1, group.rows)


def root_kernels(
    graph: Graph,
    subgraphs: Sequence[Sequence[int]],
    device: FusionDevice,
    mode: str,
    mapping: Callable[[Group], ThreadMapping],
) -> tuple[PlannedKernel, ...]:
    """A kernel for each root of each sub-graph, in the order of the roots: that in which they run."""
    kernels: list[PlannedKernel] = []
    known: dict[object, tuple[Owners, Owners]] = {}
    for place, nodes in enumerate(subgraphs):
        inside, roots = frozenset(nodes), BASELINES[mode](graph, nodes)
        for root in roots:
            group = group_of(graph, (root,), {root})
            threads = mapping(group)
            source = graph.nodes[graph.operands[root][0]].shape if group.kind == COLUMN else ()
            # roots that are alike share the arrays of their owners
            key = (group.kind, group.rows, group.length, threads, source, source and graph.nodes[root].axes)
            if key not in known:
                work = owners = owners_by_rule(graph, group, threads, device)
                if group.kind != ELEMENT:
                    firsts = reduced_elements(graph, root, np.arange(group.rows), np.zeros(group.rows, np.int64))
                    owners = Owners(work.block[firsts], work.thread[firsts])
                known[key] = work, owners
            # a split result is combined at the end, since other kernels cannot read partials
            split = threads.pieces if threads.pieces > 1 else 0
            stage = Stage(root, GLOBAL if split else OUTPUT, True, *known[key], partials=split)
            kernels.append(_kernel(graph, place, stage, _inlined(graph, root, inside - set(roots)), threads, device))
    # all that a root reads has a lower number, so this order is always possible
    return tuple(sorted(kernels, key=lambda kernel: kernel.stages[0].node))


def _inlined(graph: Graph, root: int, inner: Set[int]) -> frozenset[int]:
    """The operations that a root's kernel evaluates besides it."""
    reached: set[int] = set()
    waiting = [root]
    while waiting:
        some = {operand for operand in graph.operands[waiting.pop()] if operand != CONSTANT and operand in inner}
        waiting += some - reached
        reached |= some
    return frozenset(reached)


def _kernel(
    graph: Graph, subgraph: int, stage: Stage, inlined: frozenset[int], mapping: ThreadMapping, device: FusionDevice
) -> PlannedKernel:
    node = graph.nodes[stage.node]
    scratch = scratch_of(graph, [stage.node], mapping.threads, device)
    return PlannedKernel(
        name=node.name,
        subgraph=subgraph,
        stages=(stage,),
        inlined=inlined,
        blocks=mapping.blocks,
        threads=mapping.threads,
        shared_bytes=scratch,
        shared_bytes_before_reuse=scratch,
        buffers=(),
        scratch=scratch,
        registers=device.launch_registers(mapping.threads, scratch),
        wave=device.wave(mapping.threads, scratch),
        end_barrier=stage.partials > 0,
        register_elements=device.register_elements,
    )


#: What each step adds to the one before, by name.
ABLATION = {
    "xla": "one kernel for each candidate, with a compiler's threads",
    "mapped": "the same kernels, with threads chosen by shape: rows packed or split",
    "stored": "one kernel, which stores its candidates; each of them chooses its own threads",
    "stitch": "one kernel, in which candidates that an index connects share their threads",
}


@record
class AblationStep:
    """A step of `ABLATION`: what it adds, and its kernels in the order in which they run."""

    name: str
    meaning: str
    kernels: tuple[PlannedKernel, ...]


def ablation(graph: Graph, plan: FusionPlan, device: FusionDevice) -> tuple[AblationStep, ...]:
    """The steps from a compiler's kernels to the pass; `InputError` as of `planned`."""
    subgraphs = [each.nodes for each in plan.subgraphs]
    kernels = {
        "xla": kernels_of(graph, plan, device, "xla"),
        "mapped": root_kernels(graph, subgraphs, device, "xla", lambda group: _in_a_wave(graph, group, device)),
        "stored": kernels_of(graph, planned(graph, device, apart=True), device, "stitch"),
        "stitch": kernels_of(graph, plan, device, "stitch"),
    }
    return tuple(AblationStep(name, meaning, kernels[name]) for name, meaning in ABLATION.items())


def _in_a_wave(graph: Graph, group: Group, device: FusionDevice) -> ThreadMapping:
    """The mapping of a root alone. A split result has a grid barrier, so its blocks must be on the device at once."""
    wave = first_wave(device)
    while True:
        mapping = mapped(group, device, wave)
        room = device.wave(mapping.threads, scratch_of(graph, group.members, mapping.threads, device))
        if mapping.pieces == 1 or mapping.blocks <= room:
            return mapping
        # where not even one block fits, the machine refuses the kernel
        wave = max(1, min(wave - 1, room))
