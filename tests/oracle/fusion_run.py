"""Section 8 of docs/fusion.md: kernels executed element by element, and reads that cannot be."""

from __future__ import annotations

from functools import reduce
from typing import Any

from lstmsim.model.fusion.graph import OPERATIONS
from tests.oracle.fusion_graph import HEAVY, Graph
from tests.oracle.fusion_mapping import Device, wave
from tests.oracle.fusion_plan import Kernel, Stage

SCALAR: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": max,
    "minimum": min,
    "negate": lambda a: -a,
    "abs": abs,
    "copy": lambda a: a,
    "greater": lambda a, b: float(a > b),
    "select": lambda c, a, b: a if c else b,
    "round": round,
    "broadcast": lambda a: a,
    "reshape": lambda a: a,
    "transpose": lambda a: a,
    "slice": lambda a: a,
    "reduce_sum": lambda a, b: a + b,
    "reduce_max": max,
    "reduce_min": min,
    # heavy functions are the package's own: others differ in the last bit
    **{name: OPERATIONS[name].function for name in HEAVY},
}


class Fault(Exception):
    """A read that cannot be."""


class Run:
    """A kernel while it runs. `device`: values of nodes in memory of the device, by node."""

    def __init__(self, graph: Graph, kernel: Kernel, memory: dict[int, list[Any]]) -> None:
        self.graph, self.kernel, self.memory = graph, kernel, memory
        self.own = {stage.node: stage for stage in kernel.stages}
        self.values: dict[int, dict[int, float]] = {}
        self.partials: dict[int, dict[int, dict[int, float]]] = {}
        self.holder: dict[tuple[int, int], int] = {}
        self.seen = set[int]()

    def run(self) -> None:
        before: list[Stage] = []
        for stage in self.kernel.stages:
            if stage.barrier:
                self.seen |= {each.node for each in before}
            self.compute(stage)
            before.append(stage)
        if self.kernel.end_barrier:
            self.seen |= {each.node for each in before}
        for stage in self.kernel.stages:
            if stage.output:
                if stage.pieces and stage.node not in self.seen:
                    raise Fault(f"{stage.node}: partials are combined before a barrier")
                size = range(self.graph.sizes[stage.node])
                self.memory[stage.node] = [self.result(stage, e) for e in size]

    def compute(self, stage: Stage) -> None:
        graph, v = self.graph, stage.node
        if graph.reduces(v):
            (u,) = graph.known(v)
            parts: dict[int, dict[int, list[float]]] = {}
            for p, elements in enumerate(graph.parts(v)):
                for e in elements:
                    got = self.of(u, e, stage, stage.work[e])
                    parts.setdefault(p, {}).setdefault(stage.work[e][0], []).append(got)
            join = SCALAR[graph.ops[v]]
            self.partials[v] = {
                p: {block: reduce(join, some) for block, some in sorted(each.items())} for p, each in parts.items()
            }
            if not stage.pieces:
                self.values[v] = {p: next(iter(each.values())) for p, each in self.partials[v].items()}
        else:
            self.values[v] = {e: self.of(v, e, stage, who) for e, who in enumerate(stage.work)}
        if stage.scheme == "shared":
            for block in {block for block, _ in stage.owners}:
                self.holder[block, stage.buffer] = v

    def of(self, v: int, e: int, stage: Stage, who: tuple[int, int]) -> float:
        """An element as a thread of a stage gets it."""
        graph = self.graph
        if v in self.kernel.ends and (v != stage.node):
            return self.read(v, e, who)
        numbers = iter(graph.nodes[v]["inputs"])
        operands = [
            float(number) if u is None else self.of(u, graph.index(v, u)[e], stage, who)
            for u, number in zip(graph.operands[v], numbers, strict=True)
        ]
        return float(SCALAR[graph.ops[v]](*operands))

    def read(self, v: int, e: int, who: tuple[int, int]) -> float:
        if v not in self.own:
            if v not in self.memory:
                raise Fault(f"{v} is not there yet")
            return float(self.memory[v][e])
        stage = self.own[v]
        owner = stage.owners[e]
        if stage.scheme == "register" and owner != who:
            raise Fault(f"{v}: {who} reads a register of {owner}")
        if stage.scheme == "shared" and (owner[0] != who[0] or self.holder[owner[0], stage.buffer] != v):
            raise Fault(f"{v}: {who} reads shared memory of {owner}, or another value")
        if stage.scheme == "global" and v not in self.seen:
            raise Fault(f"{v}: {who} reads it before a barrier")
        if stage.scheme == "output":
            raise Fault(f"{v} is read though nobody does")
        return self.result(stage, e)

    def result(self, stage: Stage, e: int) -> float:
        if not stage.pieces:
            return self.values[stage.node][e]
        return float(reduce(SCALAR[self.graph.ops[stage.node]], self.partials[stage.node][e].values()))


def executed(
    graph: Graph, kernels: list[Kernel], memory: dict[int, list[Any]], calls: dict[int, list[Any]], device: Device
) -> None:
    """Fill in what kernels write. `memory`: inputs; `calls`: what library calls give once their operands are there."""
    own = [{stage.node for stage in kernel.stages} for kernel in kernels]
    reads = [
        {v for stage in kernel.stages for v, _ in graph.tree(stage.node, kernel.ends) if v in kernel.ends} - some
        for kernel, some in zip(kernels, own, strict=True)
    ]
    waiting = list(range(len(kernels)))
    while waiting:
        for v in sorted(calls):
            if set(graph.known(v)) <= memory.keys():
                memory[v] = calls[v]
        ready = [each for each in waiting if reads[each] <= memory.keys()]
        if not ready:
            raise Fault("kernels wait for each other")
        kernel = kernels[ready[0]]
        waiting.remove(ready[0])
        meets = kernel.end_barrier or any(stage.barrier for stage in kernel.stages)
        if meets and kernel.blocks > wave(device, kernel.threads, kernel.shared):
            raise Fault("blocks wait for blocks that are not there")
        Run(graph, kernel, memory).run()
