"""The steps from a compiler's kernels to the pass: what each has, and that each computes what the graph says."""

from __future__ import annotations

import numpy as np
import pytest

from lstmsim.model.fusion.baselines import ABLATION, AblationStep, ablation
from lstmsim.model.fusion.graph import Graph, Sketch
from lstmsim.model.fusion.interpreter.run import executed
from lstmsim.model.fusion.library import named_graph
from lstmsim.model.fusion.plan import FusionDevice
from lstmsim.model.fusion.planner import planned
from lstmsim.model.fusion.schemes import drawn_inputs, evaluated
from tests.model.fusion.random_graphs import DEVICES, random_graph


def _steps(graph: Graph, device: FusionDevice) -> dict[str, AblationStep]:
    return {each.name: each for each in ablation(graph, planned(graph, device), device)}


def _equal_numpy(graph: Graph, step: AblationStep, device: FusionDevice) -> None:
    inputs = drawn_inputs(graph)
    wanted = evaluated(graph, inputs)
    values = executed(graph, step.kernels, inputs, device)
    for number in graph.output_numbers:
        np.testing.assert_allclose(values[number].reshape(-1), wanted[number].reshape(-1), rtol=1e-6, atol=1e-9)


@pytest.mark.halved
@pytest.mark.parametrize("name", DEVICES)
def test_every_step_computes_what_the_graph_says(name: str) -> None:
    device = DEVICES[name]
    for seed in range(4):
        graph = random_graph(seed)
        for step in _steps(graph, device).values():
            _equal_numpy(graph, step, device)


def test_the_second_step_only_chooses_other_threads() -> None:
    """One row of 4096 elements: a compiler gives it one block of 1024, the pass 128 blocks, which then meet."""
    draw = Sketch()
    x = draw.input("x", (1, 4096))
    graph = draw.graph("g", (draw.element("sqrt", "r", draw.reduce("reduce_sum", "s", x, (1,))),))
    steps, device = _steps(graph, FusionDevice()), FusionDevice()
    assert list(steps) == list(ABLATION)
    before, after = steps["xla"].kernels, steps["mapped"].kernels
    assert [each.name for each in before] == [each.name for each in after] == ["s", "r"]
    assert [(each.blocks, each.threads, each.grid_barriers) for each in before] == [(1, 1024, 0), (1, 256, 0)]
    assert [(each.blocks, each.threads, each.grid_barriers) for each in after] == [(128, 32, 1), (1, 32, 0)]
    assert after[0].stages[0].partials == 128
    _equal_numpy(graph, steps["mapped"], device)


def test_in_the_second_step_a_split_keeps_to_the_wave() -> None:
    """The pass may use 4 blocks of 64 threads. Scratch memory takes all 256 bytes: only 2 fit on the device."""
    device = FusionDevice(sms=2, max_warps=4, shared_bytes=256, shared_limit=256, block_threads=64, split_length=16)
    draw = Sketch()
    graph = draw.graph("g", (draw.reduce("reduce_sum", "s", draw.input("x", (1, 256)), (1,)),))
    (kernel,) = _steps(graph, device)["mapped"].kernels
    assert device.wave(64, 0) == 4
    assert kernel.wave == 2
    assert (kernel.blocks, kernel.stages[0].partials) == (2, 2)
    _equal_numpy(graph, _steps(graph, device)["mapped"], device)


def test_in_the_third_step_each_candidate_chooses_for_itself() -> None:
    """Attention: the weighted sum takes other blocks than the scores; with shared threads one value less is global."""
    graph, device = named_graph("attention", {}), FusionDevice()
    steps = _steps(graph, device)
    (apart,), (stitched,) = steps["stored"].kernels, steps["stitch"].kernels
    assert [each.node for each in apart.stages] == [each.node for each in stitched.stages]
    assert (apart.blocks, stitched.blocks) == (119, 40)
    assert sum(each.scheme == "global" for each in apart.stages) > sum(
        each.scheme == "global" for each in stitched.stages
    )
