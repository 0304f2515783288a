"""Streams of fused kernels against a writer that goes from warp to warp; golden cycles by plain models alone."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.parallel.fused.kernels import fused_run
from lstmsim.model.fusion import library as examples
from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.plan import MODES, FusionDevice
from lstmsim.model.fusion.planner import planned
from tests.machines.parallel.golden_device import device_of
from tests.machines.parallel.test_plain_kernels import reported
from tests.model.fusion.golden import cases
from tests.model.fusion.plain import odd_device, plain_graph
from tests.model.fusion.random_graphs import random_graph
from tests.oracle import fusion_modes, fusion_plan
from tests.oracle.fusion_graph import Graph as PlainGraph
from tests.oracle.fusion_streams import Code, cycles

LONG = "LSTMSIM_EXAMPLES" in os.environ
#: Random graphs: 4 in the usual run, at least 300 in the long one (LSTMSIM_EXAMPLES).
COUNT = max(300, int(os.environ["LSTMSIM_EXAMPLES"])) if LONG else 4
#: Golden cases that are timed by the plain device in the usual run.
QUICK = ("fusion-1-00",)


@pytest.mark.parametrize(
    "case", [each for each in cases() if LONG or each["name"] in QUICK], ids=lambda case: case["name"]
)
def test_the_model_has_the_golden_cycles(case) -> None:
    graph, expect, device = PlainGraph(case["graph"]), case["expect"].get("cycles", {}), case["device"]
    made, _ = fusion_plan.plans(graph, device)
    machine = device_of({"preset": "v100"})
    for mode, wanted in expect.items():
        if wanted is not None and (LONG or mode == "stitch"):
            assert cycles(graph, fusion_modes.kernels_of(graph, made, mode, device), device, machine) == wanted


def without_order(streams: list[Any]) -> list[Any]:
    """Streams whose waits stand in order, each once, and none that another wait has waited for: no cycle differs."""
    return [[thinned(warp) for warp in block] for block in streams]


def thinned(stream: list[Any]) -> list[Any]:
    """One of these streams."""
    before: list[set[int]] = []
    made = []
    for kind, count, waits, *rest in stream:
        earlier = set[int]().union(*(before[each] for each in waits))
        made.append([kind, count, sorted(set(waits) - earlier), *rest])
        before.append(earlier | set(waits))
    return made


def plain_told(code: Code) -> list[Any]:
    """The streams of a plain kernel."""
    return [
        [
            [
                [each["kind"], each["count"], each["waits"], each.get("lsu", 0)]
                + ([each["access"].array, each["access"].sectors] if "access" in each else ["", []])
                for each in warp.stream
            ]
            for warp in block
        ]
        for block in code.blocks
    ]


def agree(graph: Graph, device: FusionDevice) -> bool:
    """The streams of all kernels of all modes are the same; False if there is no plan."""
    try:
        plan = planned(graph, device)
    except InputError:
        return False
    machine = device_of({"preset": "v100", "sms": device.sms, "warp": device.warp})
    plain, numbers = plain_graph(graph), asdict(device)
    plain_plans, _ = fusion_plan.plans(plain, numbers)
    for mode in MODES:
        run = fused_run(graph, kernels_of(graph, plan, device, mode), machine)
        arrays = [(f"n{v}", size) for v, size in enumerate(plain.sizes)]
        kernels = fusion_modes.kernels_of(plain, plain_plans, mode, numbers)
        for kernel, made in zip(run.kernels, kernels, strict=True):
            code = Code(plain, made, numbers, arrays, machine.core.banks)
            code.write()
            names = {memory.name: name for memory, (name, _) in zip(run.arrays, arrays, strict=False)} | {"": ""}
            streams = [
                [[[*each[:4], names[each[4]], each[5]] for each in warp] for warp in block]
                for block in reported(run, kernel)
            ]
            assert without_order(streams) == without_order(plain_told(code))
            assert (kernel.shape.registers, kernel.shape.shared) == (made.registers, made.shared)
            assert kernel.shape.persistent == (made.end_barrier or any(stage.barrier for stage in made.stages))
        assert [memory.elements for memory in run.arrays] == [size for _, size in arrays]
    return True


def test_streams_of_random_graphs() -> None:
    written = [agree(random_graph(seed), odd_device(seed)) for seed in range(COUNT)]
    assert sum(written) > COUNT // 2


@pytest.mark.slow
def test_streams_on_v100() -> None:
    assert all(agree(random_graph(seed), FusionDevice()) for seed in range(1000, 1000 + COUNT // 2))


@pytest.mark.slow
def test_threads_keep_what_is_no_more_than_they_have_registers_for() -> None:
    """A warp has a row of 96 elements, three a thread: each is read once, or by each of the three stages."""
    graph, loads = examples.softmax(2, 96), {}
    for kept in (2, 3):
        device = FusionDevice(block_threads=32, register_elements=kept)
        assert agree(graph, device)
        kernels = kernels_of(graph, planned(graph, device), device, "stitch")
        run = fused_run(graph, kernels, device_of({"preset": "v100"}))
        (row, _) = (warp for block in reported(run, run.kernels[0]) for warp in block)
        loads[kept] = sum(each[0] == "ldg" for each in row)
    assert loads == {2: 9, 3: 3}
