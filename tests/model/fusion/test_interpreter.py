"""Kernels of every mode give numpy's numbers, and a plan that is wrong in one point is a fault."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.graph import Graph, Node
from lstmsim.model.fusion.interpreter.checks import difference, difference_of_run
from lstmsim.model.fusion.interpreter.run import Fault, executed
from lstmsim.model.fusion.library import named_graph
from lstmsim.model.fusion.plan import (
    GLOBAL,
    MODES,
    OUTPUT,
    REGISTER,
    SHARED,
    FusionDevice,
    Owners,
    PlannedKernel,
    Stage,
)
from lstmsim.model.fusion.planner import planned
from lstmsim.model.fusion.schemes import drawn_inputs, evaluated
from tests.model.fusion.golden import cases, device_of, graph_of
from tests.model.fusion.random_graphs import DEVICES, random_graph

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "12"))
V100 = FusionDevice()


#: Figure 7 takes as long as nearly all others; figure 4 is as large a graph.
DEAR = {"fusion-1-03"}


@pytest.mark.halved
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            each, id=f"{each['name']}-{each['graph']['name']}", marks=pytest.mark.long if each["name"] in DEAR else ()
        )
        for each in cases()
    ],
)
def test_golden_graphs_give_the_numbers_of_numpy(case):
    graph, device = graph_of(case), device_of(case)
    plan = planned(graph, device)
    for mode in MODES:
        far = difference_of_run(graph, kernels_of(graph, plan, device, mode), device)
        assert far.equal, (mode, far)
        assert far.elements >= sum(graph.nodes[number].size for number in graph.output_numbers)


@pytest.mark.slow
def test_random_graphs_give_the_numbers_of_numpy_on_every_device():
    seen = Counter()
    for seed in range(EXAMPLES):
        graph = random_graph(seed)
        inputs = drawn_inputs(graph, seed)
        for place, (name, device) in enumerate(DEVICES.items()):
            plan = planned(graph, device)
            # kernels of baselines hardly depend on the device
            for mode in MODES if place == seed % len(DEVICES) else MODES[-1:]:
                values = executed(graph, kernels_of(graph, plan, device, mode), inputs, device)
                far = difference(graph, values, inputs)
                assert far.equal, (seed, name, mode, far)
            for each in plan.subgraphs:
                seen.update(group.mapping.kind for group in each.groups)
                seen.update(stage.scheme for stage in each.kernel.stages)
                seen.update(decision.about for decision in each.decisions)
                seen["blocks"] += each.kernel.blocks > 1
                seen["free"] += bool(each.free)
    kinds = ("pack", "split", "column", "element", "adapted", REGISTER, SHARED, GLOBAL, OUTPUT)
    assert not {*kinds, "edge", "overflow", "wave", "blocks", "free"} - set(+seen), seen


@cache
def stitched(name: str) -> tuple[Graph, FusionDevice, PlannedKernel]:
    """The graph, the device and the first kernel of a golden case."""
    case = next(each for each in cases() if each["graph"]["name"] == name)
    graph, device = graph_of(case), device_of(case)
    return graph, device, planned(graph, device).subgraphs[0].kernel


def changed(kernel: PlannedKernel, graph: Graph, name: str, **fields: object) -> PlannedKernel:
    """A kernel with one stage changed."""
    number = graph.numbers[name]
    stages = tuple(replace(each, **fields) if each.node == number else each for each in kernel.stages)
    return replace(kernel, stages=stages)


def in_one_buffer(kernel: PlannedKernel) -> PlannedKernel:
    """A kernel whose shared values all lie in the same place."""
    stages = tuple(replace(each, buffer=0) if each.scheme == SHARED else each for each in kernel.stages)
    return replace(kernel, stages=stages, buffers=(max(kernel.buffers),))


def moved(stage: Stage, by: int) -> Owners:
    """Other blocks own the results."""
    return Owners(stage.owners.block + np.int32(by), stage.owners.thread)


FAULTS: dict[str, tuple[str, Callable[[PlannedKernel, Graph], PlannedKernel], str]] = {
    "global to shared": (
        "fig7",
        lambda kernel, graph: changed(
            replace(kernel, buffers=(40000,), shared_bytes=40128), graph, "Pw.1", scheme=SHARED, buffer=0
        ),
        r"kernel .*, stage R.2: block \d+, thread \d+ reads element \d+ of Pw.1: it lies in shared memory of block \d+",
    ),
    "shared to register": (
        "softmax-64x256",
        lambda kernel, graph: changed(kernel, graph, "max", scheme=REGISTER),
        r"stage s: block 0, thread 1 reads element 0 of max: it lies in a register of block 0, thread 0",
    ),
    "to output": (
        "softmax-64x256",
        lambda kernel, graph: changed(kernel, graph, "max", scheme=OUTPUT),
        "reads element 0 of max: no stage was to read it",
    ),
    "no barrier before a stage": (
        "fig7",
        lambda kernel, graph: changed(kernel, graph, "R.2", grid_barrier=False),
        r"stage R.2: .* of Pw.1: no grid barrier came since it was written",
    ),
    "no barrier at the end": (
        "reduce-4x2048",
        lambda kernel, graph: replace(kernel, end_barrier=False),
        "stage y: its partials are combined by nobody",
    ),
    "split without partials": (
        "reduce-4x2048",
        lambda kernel, graph: changed(kernel, graph, "y", partials=0),
        "4 blocks have a part of one result, but it is not planned as split",
    ),
    "too few partials": (
        "reduce-4x2048",
        lambda kernel, graph: changed(kernel, graph, "y", partials=3),
        "4 blocks have a part of one result, but 3 partials are planned",
    ),
    "one buffer for all": (
        "ln-lstm-16x128",
        lambda kernel, graph: in_one_buffer(kernel),
        r"lies there now \(buffer 0\)",
    ),
    "no such buffer": (
        "softmax-64x256",
        lambda kernel, graph: changed(kernel, graph, "max", buffer=7),
        "in buffer 7, which there is not",
    ),
    "buffer too small": (
        "overflow-200x300",
        lambda kernel, graph: replace(kernel, buffers=tuple(4 for _ in kernel.buffers)),
        r"a block has \d+ elements of it, \d+ bytes, in buffer 0 of 4",
    ),
    "more shared memory than planned": (
        "softmax-64x256",
        lambda kernel, graph: replace(kernel, shared_bytes=kernel.scratch),
        "its buffers and scratch have more than",
    ),
    "stages out of order": (
        "softmax-64x256",
        lambda kernel, graph: replace(kernel, stages=kernel.stages[::-1]),
        "of max: in shared memory, nothing was written there yet",
    ),
    "global, out of order": (
        "fig7",
        lambda kernel, graph: replace(kernel, stages=kernel.stages[::-1]),
        "it was not computed yet",
    ),
    "register, out of order": (
        "lstm-1x64",
        lambda kernel, graph: replace(kernel, stages=kernel.stages[::-1]),
        "of c2: it was not computed yet",
    ),
    "computed elsewhere": (
        "softmax-64x256",
        lambda kernel, graph: changed(
            replace(kernel, blocks=kernel.blocks + 1), graph, "max", owners=moved(kernel.stages[0], 1)
        ),
        "block 0 computes result 0, which is to lie in block 1",
    ),
    "owned by others": (
        "softmax-64x256",
        lambda kernel, graph: changed(
            replace(kernel, blocks=kernel.blocks + 1), graph, "y", owners=moved(kernel.stages[-1], 1)
        ),
        "stage y: others compute it than own it",
    ),
    "no such block": (
        "softmax-64x256",
        lambda kernel, graph: replace(kernel, blocks=kernel.blocks - 1),
        r"block \d+ is to compute, of \d+",
    ),
    "no such thread": (
        "softmax-64x256",
        lambda kernel, graph: replace(kernel, threads=32),
        r"thread \d+ is to compute, of 32",
    ),
    "an inlined reduce": (
        "softmax-64x256",
        lambda kernel, graph: replace(
            kernel, stages=kernel.stages[1:], inlined=kernel.inlined | {kernel.stages[0].node}
        ),
        "max is to be evaluated where it is read, but it is no such operation",
    ),
    "an output that is not written": (
        "softmax-64x256",
        lambda kernel, graph: changed(kernel, graph, "y", written=False),
        "no kernel writes y",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_plan_that_is_wrong_in_one_point_is_a_fault(name):
    case, change, said = FAULTS[name]
    graph, device, kernel = stitched(case)
    with pytest.raises(Fault, match=said):
        executed(graph, [change(kernel, graph)], drawn_inputs(graph), device)


def test_a_fault_says_where():
    graph, device, kernel = stitched("softmax-64x256")
    with pytest.raises(Fault) as caught:
        executed(graph, [changed(kernel, graph, "max", scheme=REGISTER)], drawn_inputs(graph), device)
    fault = caught.value
    assert (fault.stage, fault.node, fault.element, fault.block, fault.thread) == ("s", "max", 0, 0, 1)
    assert fault.kernel == kernel.name
    assert str(fault).endswith(f": {fault.why}")


def test_too_many_blocks_for_a_barrier_wait_for_ever():
    graph, device, kernel = stitched("fig4")
    fewer = replace(device, sms=kernel.blocks // device.resident(kernel.threads, kernel.shared_bytes))
    assert fewer.wave(kernel.threads, kernel.shared_bytes) < kernel.blocks
    with pytest.raises(Fault, match=f"{kernel.blocks} meet at a grid barrier, but only"):
        executed(graph, [kernel], drawn_inputs(graph), fewer)
    # without barrier they come one after the other
    graph, device, kernel = stitched("softmax-64x256")
    one = replace(device, sms=1, max_blocks=1)
    assert difference_of_run(graph, [kernel], one).equal
    with pytest.raises(Fault, match=f"no block of {kernel.threads} threads"):
        executed(graph, [kernel], drawn_inputs(graph), replace(device, max_warps=kernel.threads // device.warp - 1))


def test_two_kernels_that_write_the_same_are_a_fault():
    graph, device, kernel = stitched("softmax-64x256")
    with pytest.raises(Fault, match="another kernel has written it already"):
        executed(graph, [kernel, kernel], drawn_inputs(graph), device)


def test_kernels_run_as_soon_as_what_they_read_is_there():
    graph = named_graph("ln-lstm", {"batch": 2, "hidden": 8})
    kernels = kernels_of(graph, planned(graph, V100), V100, "op")
    assert difference_of_run(graph, kernels[::-1], V100).largest == difference_of_run(graph, kernels, V100).largest


def test_parts_of_blocks_are_joined_in_order():
    # 2^53 swallows a one, but not two of them at once
    values = np.zeros(96)
    values[[0, 1, 2]] = 2.0**53, 1, 1
    x, y = Node("x", "input", (), (96,)), Node("y", "reduce_sum", ("x",), (), (0,))
    graph = Graph("sum", (x, y), ("y",))
    whole = planned(graph, V100).subgraphs[0].kernel
    split = planned(graph, FusionDevice(sms=3, max_blocks=1, split_length=16)).subgraphs[0].kernel
    assert (whole.stages[0].partials, split.stages[0].partials) == (0, 3)
    assert executed(graph, [whole], {0: values}, V100)[1] == 2.0**53
    assert executed(graph, [whole], {0: values[::-1]}, V100)[1] == 2.0**53 + 2
    values = np.zeros(96)
    values[[0, 32, 64]] = 2.0**53, 1, 1
    assert executed(graph, [split], {0: values}, V100)[1] == 2.0**53
    turned = replace(split.stages[0].work, block=2 - split.stages[0].work.block)
    other = replace(split, stages=(replace(split.stages[0], work=turned),))
    assert executed(graph, [other], {0: values}, V100)[1] == 2.0**53 + 2


def test_a_difference_is_seen():
    x, y = Node("x", "input", (), (3,)), Node("y", "log", ("x",), (3,))
    graph, inputs = Graph("log", (x, y), ("y",)), {0: np.array([1.0, -1.0, 0.0])}
    same = {number: value for number, value in enumerate(evaluated(graph, inputs)) if number}
    assert difference(graph, same, inputs).largest == 0.0
    assert difference(graph, {1: np.array([0.0, np.nan, 0.0])}, inputs).largest == np.inf
    assert difference(graph, {1: np.array([0.0, 1.0, -np.inf])}, inputs).largest == np.inf
    assert not difference(graph, {1: np.array([2e-6, np.nan, -np.inf])}, inputs).equal
