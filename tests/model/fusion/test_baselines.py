"""The kernels of the baselines: how many, what they move, who computes what; docs/fusion.md, section 9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lstmsim.model.fusion.baselines import BASELINES, baseline_mapping, root_kernels
from lstmsim.model.fusion.graph import Graph, Sketch
from lstmsim.model.fusion.library import named_graph
from lstmsim.model.fusion.plan import FusionDevice, Group, PlannedKernel
from lstmsim.model.fusion.planner import clusters
from lstmsim.model.fusion.schemes import counted
from tests.model.fusion.golden import cases, device_of, graph_of


def _kernels(made: Graph, mode: str, device: FusionDevice | None = None) -> tuple[PlannedKernel, ...]:
    device = device or FusionDevice()
    return root_kernels(made, clusters(made)[0], device, mode, lambda group: baseline_mapping(group, device))


@pytest.mark.halved
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_the_golden_cases(case: dict[str, Any]) -> None:
    made = graph_of(case)
    for mode in BASELINES:
        kernels = _kernels(made, mode, device_of(case))
        counts = counted(made, kernels)
        numbers = {
            "kernels": len(kernels),
            "read": counts.read,
            "written": counts.written,
            "recomputed": counts.recomputed,
        }
        assert numbers == case["expect"]["modes"][mode], mode


def test_which_operations_are_roots() -> None:
    """Of a softmax: op all, xla reduces and outputs too, and a heavy operation that is repeated only there."""
    draw = Sketch()
    x = draw.input("x", (4, 8))
    s = draw.reduce("reduce_sum", "s", draw.element("exp", "e", x), (1,))
    inverse = draw.broadcast("b", draw.element("reciprocal", "r", s), (4, 8), (0,))
    graph = draw.graph("g", (draw.element("multiply", "y", x, inverse),))
    (nodes,) = clusters(graph)[0]
    roots = {mode: [graph.nodes[each].name for each in BASELINES[mode](graph, nodes)] for mode in BASELINES}
    assert roots == {"op": ["e", "s", "r", "b", "y"], "xla": ["s", "r", "y"], "tvm": ["s", "y"]}
    inlined = {
        kernel.name: [graph.nodes[each].name for each in sorted(kernel.inlined)] for kernel in _kernels(graph, "tvm")
    }
    assert inlined == {"s": ["e"], "y": ["r", "b"]}


@pytest.mark.parametrize(
    ("shape", "axes", "blocks", "threads", "last"),
    [
        # a block for each row, whole warps, and no more than 1024 threads
        ((5, 40), (1,), 5, 64, [(4, 39)]),
        ((5, 3000), (1,), 5, 1024, [(4, 2999 - 2048)]),
        # 32 columns a block; 2000 elements of a column go over 32 warps again and again
        ((3, 70), (0,), 3, 96, [(2, 2 * 32 + 5)]),
        ((2000, 70), (0,), 3, 1024, [(2, 1999 % 32 * 32 + 5)]),
    ],
)
def test_threads_of_a_reduce(
    shape: tuple[int, ...], axes: tuple[int, ...], blocks: int, threads: int, last: list[tuple[int, int]]
) -> None:
    draw = Sketch()
    graph = draw.graph("g", (draw.reduce("reduce_sum", "s", draw.input("x", shape), axes),))
    (kernel,) = _kernels(graph, "xla")
    (stage,) = kernel.stages
    assert (kernel.blocks, kernel.threads) == (blocks, threads)
    assert [(stage.work.block[-1], stage.work.thread[-1])] == last
    # a result is owned by whoever owns its first element
    firsts = np.arange(0, graph.nodes[0].size, shape[1]) if axes == (1,) else np.arange(shape[1])
    assert stage.owners.block.tolist() == stage.work.block[firsts].tolist()
    assert stage.owners.thread.tolist() == stage.work.thread[firsts].tolist()
    assert (kernel.scratch, kernel.shared_bytes, kernel.buffers) == (threads // 8, threads // 8, ())
    assert (stage.scheme, stage.written, kernel.end_barrier) == ("output", True, False)


def test_threads_of_elements() -> None:
    """256 threads, even for a single element, and one element each, however many blocks that are."""
    for size, blocks in ((1, 1), (256, 1), (1_000_000, 3907)):
        draw = Sketch()
        graph = draw.graph("g", (draw.element("tanh", "y", draw.input("x", (size,))),))
        (kernel,) = _kernels(graph, "op")
        (stage,) = kernel.stages
        assert (kernel.blocks, kernel.threads, kernel.scratch) == (blocks, 256, 0)
        assert (stage.work.block[-1], stage.work.thread[-1]) == divmod(size - 1, 256)
        assert stage.work is stage.owners


def test_roots_that_are_alike_share_their_arrays() -> None:
    graph = named_graph("ln-lstm", {"batch": 16, "hidden": 256, "input": 256})
    kernels = _kernels(graph, "op")
    arrays = {id(kernel.stages[0].work.block): kernel.stages[0].work.block.size for kernel in kernels}
    assert len(kernels) == 43
    assert sorted(arrays.values()) == [16, 16 * 256, 16 * 256, 16 * 1024, 16 * 1024]


def test_registers_are_what_the_resident_blocks_leave() -> None:
    """1024 threads twice on an SM: 32 each. One warp 32 times: 64 each. 8 warps 8 times: 32 each."""
    assert FusionDevice().launch_registers(1024, 0) == 32
    assert FusionDevice().launch_registers(32, 0) == 64
    assert FusionDevice().launch_registers(256, 0) == 32
    # two blocks by shared memory: 128 each; one alone may not have more than 255
    assert FusionDevice().launch_registers(256, 49152) == 128
    assert FusionDevice().launch_registers(32, 49152) == 255
    # 65536 / (3 * 7 * 32) = 97.5, in eights
    assert FusionDevice().launch_registers(224, 32768) == 96
    # a block that does not fit has numbers too
    assert FusionDevice(max_warps=16).launch_registers(1024, 0) == 64


def test_a_small_multiprocessor_takes_what_fits_and_settings_of_the_pass_change_nothing() -> None:
    row = Group((1,), 1, (), "row", 5, 3000)
    column, elements = Group((1,), 1, (), "column", 40, 3000), Group((1,), 1, (), "element", 1000, 1)
    small, settings = FusionDevice(max_warps=6), FusionDevice(block_threads=64, element_threads=32)
    assert [baseline_mapping(each, small).threads for each in (row, column, elements)] == [192, 192, 192]
    assert baseline_mapping(elements, small).blocks == 6
    assert [baseline_mapping(each, settings).threads for each in (row, column, elements)] == [1024, 1024, 256]
