"""Kernels, run one after the other, as soon as all that they read is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.wording import listed
from lstmsim.model.fusion.device import FusionDevice
from lstmsim.model.fusion.evaluate import library_call
from lstmsim.model.fusion.graph import CONSTANT, Graph
from lstmsim.model.fusion.interpreter.expressions import read_by
from lstmsim.model.fusion.interpreter.faults import Fault
from lstmsim.model.fusion.interpreter.memory import KernelMemory
from lstmsim.model.fusion.interpreter.stages import run_stage
from lstmsim.model.fusion.operations import CHEAP, COMPUTE, HEAVY, INPUT, MOVE
from lstmsim.model.fusion.plan import PlannedKernel

__all__ = ["executed"]

Values = NDArray[np.float64]


def executed(
    graph: Graph, kernels: Sequence[PlannedKernel], inputs: Mapping[int, Values], device: FusionDevice
) -> dict[int, Values]:
    """The values that lie in memory of the device when all kernels have run, library calls in between, by node.

    graph: the graph.
    kernels: of one mode, all of the graph; in any order, for each runs as soon as all that it reads is there.
    inputs: number of each input -> its value.
    device: the numbers of the device.

    `Fault` if a plan is wrong: a value is read where or when it cannot be, kernels wait for each other, a grid barrier
    waits for blocks that never start, an output is missing.
    """
    memory = {
        number: np.asarray(inputs[number], np.float64).reshape(-1)
        for number, node in enumerate(graph.nodes)
        if node.kind == INPUT
    }
    kernels_left = list(kernels)
    calls_left = [number for number, node in enumerate(graph.nodes) if node.kind == COMPUTE]
    while kernels_left or calls_left:
        before = len(kernels_left) + len(calls_left)
        calls_left = [number for number in calls_left if not _called(graph, number, memory)]
        kernels_left = [kernel for kernel in kernels_left if not _ran(graph, kernel, memory, device)]
        if len(kernels_left) + len(calls_left) == before:
            raise _no_order(graph, kernels_left, calls_left, memory)
    if missing := sorted(graph.output_numbers - set(memory)):
        raise Fault(f"no kernel writes {listed([graph.nodes[each].name for each in missing], 'or')}")
    return {number: value.reshape(graph.nodes[number].shape) for number, value in memory.items()}


def _called(graph: Graph, number: int, memory: dict[int, Values]) -> bool:
    """Whether a library call had its operands, and gave its result."""
    operands = [each for each in graph.operands[number] if each != CONSTANT]
    if not memory.keys() >= set(operands):
        return False
    values = {each: memory[each].reshape(graph.nodes[each].shape) for each in operands}
    with np.errstate(all="ignore"):
        memory[number] = np.asarray(library_call(graph, number, values), np.float64).reshape(-1)
    return True


def _ran(graph: Graph, kernel: PlannedKernel, memory: dict[int, Values], device: FusionDevice) -> bool:
    """Whether a kernel had all that it reads, and ran."""
    if not memory.keys() >= _outside(graph, kernel):
        return False
    _check(graph, kernel, device)
    own = KernelMemory(graph, kernel, memory)
    for stage in kernel.stages:
        own.barriers += stage.grid_barrier
        run_stage(graph, kernel, stage, own)
    own.barriers += kernel.end_barrier
    for number, values in own.written().items():
        if number in memory:
            raise Fault("another kernel has written it already", kernel.name, graph.nodes[number].name)
        memory[number] = values
    return True


def _outside(graph: Graph, kernel: PlannedKernel) -> set[int]:
    """The nodes outside a kernel that it reads."""
    ends = kernel.ends(graph)
    return set().union(*(read_by(graph, stage.node, ends) for stage in kernel.stages)) - set(kernel.stage_of)


def _check(graph: Graph, kernel: PlannedKernel, device: FusionDevice) -> None:
    """A kernel that the device cannot run, or that has no such threads, is a fault before it starts."""
    for number in sorted(kernel.inlined):
        if graph.nodes[number].kind not in (CHEAP, HEAVY, MOVE):
            raise Fault(
                f"{graph.nodes[number].name} is to be evaluated where it is read, but it is no such operation",
                kernel.name,
            )
    wave = device.wave(kernel.threads, kernel.shared_bytes)
    if not wave:
        raise Fault(
            f"no block of {kernel.threads} threads and {kernel.shared_bytes} bytes of shared memory fits", kernel.name
        )
    if kernel.grid_barriers and kernel.blocks > wave:
        raise Fault(
            f"its blocks wait for each other for ever: {kernel.blocks} meet at a grid barrier, but only {wave} are on"
            " the device at once",
            kernel.name,
        )
    if sum(kernel.buffers) + kernel.scratch > kernel.shared_bytes:
        raise Fault(
            f"its buffers and scratch have more than its {kernel.shared_bytes} bytes of shared memory", kernel.name
        )
    for stage in kernel.stages:
        for owners in (stage.work, stage.owners):
            for name, of, count in (("block", owners.block, kernel.blocks), ("thread", owners.thread, kernel.threads)):
                if of.size and (of.min() < 0 or of.max() >= count):
                    wrong = of.min() if of.min() < 0 else of.max()
                    raise Fault(f"{name} {wrong} is to compute, of {count}", kernel.name, graph.nodes[stage.node].name)


def _no_order(graph: Graph, kernels: list[PlannedKernel], calls: list[int], memory: dict[int, Values]) -> Fault:
    """Why nothing can run any more."""
    waits = [(kernel.name, sorted(_outside(graph, kernel) - memory.keys())) for kernel in kernels] + [
        (graph.nodes[each].name, sorted(set(graph.operands[each]) - memory.keys() - {CONSTANT})) for each in calls
    ]
    told = "; ".join(
        f"{name} waits for {listed([graph.nodes[each].name for each in some], 'and')}" for name, some in waits[:4]
    )
    more = f"; and {len(waits) - 4} more" if len(waits) > 4 else ""
    return Fault(f"nothing can run any more: {told}{more}")
