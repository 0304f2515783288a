"""The worked examples of docs/fusion.md, section 11, as they stand there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lstmsim.model.fusion import library as examples
from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.graph import Graph, Sketch
from lstmsim.model.fusion.mapping import mapped
from lstmsim.model.fusion.plan import MODES, FusionDevice, FusionPlan, Group, PlannedSubgraph, ThreadMapping
from lstmsim.model.fusion.planner import planned

V100 = FusionDevice()
#: Sixteen multiprocessors that take one block of 1024 threads each.
IDLE = FusionDevice(sms=16, max_warps=32, max_blocks=1)


def only(graph: Graph, device: FusionDevice = V100) -> PlannedSubgraph:
    """The only sub-graph of a graph."""
    (subgraph,) = planned(graph, device).subgraphs
    return subgraph


def mapping_of(subgraph: PlannedSubgraph, group: int = 0) -> ThreadMapping:
    mapping = subgraph.groups[group].mapping
    assert mapping is not None
    return mapping


def schemes(graph: Graph, subgraph: PlannedSubgraph) -> dict[str, str]:
    return {graph.nodes[stage.node].name: stage.scheme for stage in subgraph.kernel.stages}


def barriers(graph: Graph, subgraph: PlannedSubgraph) -> list[str]:
    before = [graph.nodes[stage.node].name for stage in subgraph.kernel.stages if stage.grid_barrier]
    return before + ["end"] * subgraph.kernel.end_barrier


def named(graph: Graph, numbers: Sequence[int]) -> list[str]:
    return [graph.nodes[number].name for number in numbers]


def kernel_counts(plan: FusionPlan, device: FusionDevice = V100) -> list[int]:
    return [len(kernels_of(plan.graph, plan, device, mode)) for mode in MODES]


def rows(count: int, length: int) -> Graph:
    draw = Sketch()
    return draw.graph("rows", [draw.reduce("reduce_sum", "y", draw.input("x", (count, length)), (1,))])


def test_figure_3() -> None:
    draw = Sketch()
    graph = draw.graph("figure-3", [draw.reduce("reduce_min", "y", draw.input("x", (5, 4, 6)), (1,))])
    subgraph = only(graph)
    group, mapping = subgraph.groups[0], mapping_of(subgraph)
    assert (group.kind, group.rows, group.length) == ("column", 30, 4)
    assert (mapping.blocks, mapping.threads, mapping.pieces) == (1, 128, 1)


def test_figure_5_on_idle_multiprocessors() -> None:
    mapping = mapping_of(only(rows(4, 2048), IDLE))
    assert (mapping.kind, mapping.blocks, mapping.pieces, mapping.piece) == ("split", 16, 4, 512)


def test_figure_5_many_short_rows() -> None:
    # 23438 tiles of 32 rows; the tensor itself would take seconds
    mapping = mapped(Group((1,), 1, (), "row", 750000, 32), V100, V100.wave(1024, 0))
    assert mapping == ThreadMapping("pack", 160, 1024, 32, 32, 147, 1, 32)


def test_figure_5_few_long_rows() -> None:
    mapping = mapping_of(only(rows(64, 30000)))
    assert (mapping.kind, mapping.blocks, mapping.pieces, mapping.piece) == ("split", 128, 2, 15008)


def test_figures_4_and_6() -> None:
    graph = examples.figure_4(2048, 8, 64, 64)
    plan = planned(graph)
    (subgraph,) = plan.subgraphs
    first, second = subgraph.groups
    assert (named(graph, [first.backbone]), named(graph, first.sub_backbones)) == (["r1"], ["r2"])
    assert (named(graph, [second.backbone]), named(graph, second.sub_backbones)) == (["r3"], ["r4"])
    assert (first.rows, first.length) == (16384, 64)
    assert mapping_of(subgraph) == ThreadMapping("pack", 147, 1024, 64, 16, 7, 1, 64)
    assert mapping_of(subgraph, 1) == ThreadMapping("split", 128, 1024, 1024, 1, 1, 2, 1024)
    assert schemes(graph, subgraph) == {"r1": "shared", "r2": "global", "r3": "global", "r4": "global"}
    assert [stage.partials for stage in subgraph.kernel.stages] == [0, 0, 2, 64]
    assert barriers(graph, subgraph) == ["r3", "r4", "end"]
    assert subgraph.kernel.shared_bytes == 4 * 112 + 128
    assert kernel_counts(plan) == [10, 4, 4, 1]


def test_figure_7() -> None:
    graph = examples.figure_7(32, 64, 256)
    plan = planned(graph)
    (subgraph,) = plan.subgraphs
    assert [named(graph, [each.backbone, *each.sub_backbones]) for each in subgraph.groups] == [
        ["R.1", "Pw.1"],
        ["R.2", "M.1"],
    ]
    assert schemes(graph, subgraph) == {"R.1": "shared", "Pw.1": "global", "R.2": "global", "M.1": "output"}
    mapping = mapping_of(subgraph, 1)
    assert (subgraph.groups[1].rows, subgraph.groups[1].length) == (32, 16384)
    assert (mapping.pieces, mapping.piece) == (5, 3296)
    assert kernel_counts(plan) == [10, 4, 3, 1]


def test_cycle() -> None:
    graph = examples.cycle(64)
    plan = planned(graph)
    assert [named(graph, each.nodes) for each in plan.subgraphs] == [["a"], ["y", "s"]]
    assert [(named(graph, [each.operand, each.reader]), named(graph, each.path)) for each in plan.refused] == [
        (["a", "y"], ["p"])
    ]
    about = [each for each in plan.subgraphs[1].decisions if each.about == "edge"]
    assert "p lies between them" in about[0].because


def test_overflow() -> None:
    graph = examples.overflow(200, 2, 300)
    roomy, tight = only(graph), only(graph, FusionDevice(shared_limit=2048))
    t = graph.numbers["t"]
    assert (roomy.kernel.stage_of[t].scheme, roomy.kernel.stage_of[t].bytes, roomy.overflowed) == ("shared", 2400, ())
    assert (tight.kernel.stage_of[t].scheme, tight.overflowed) == ("global", (t,))
    assert (barriers(graph, roomy), barriers(graph, tight)) == ([], ["o"])
    assert [each.node for each in tight.decisions if each.about == "overflow"] == ["t"]


def test_layer_normalised_lstm() -> None:
    graph = examples.ln_lstm(8, 256, 256)
    plan = planned(graph)
    (subgraph,) = plan.subgraphs
    (group,) = subgraph.groups
    kernel = subgraph.kernel
    assert (len(subgraph.nodes), named(graph, [group.backbone])) == (43, ["ln.sum"])
    assert (kernel.blocks, kernel.threads) == (8, 1024)
    shared = [stage for stage in kernel.stages if stage.scheme == "shared"]
    assert (len(shared), len(kernel.buffers)) == (7, 5)
    assert kernel_counts(plan) == [43, 8, 6, 1]


def test_plain_lstm() -> None:
    graph = examples.lstm_tail(1, 64, 64)
    plan = planned(graph)
    (subgraph,) = plan.subgraphs
    assert (len(subgraph.nodes), subgraph.groups[0].kind) == (15, "element")
    assert schemes(graph, subgraph) == {"c2": "register", "h2": "output"}
    assert kernel_counts(plan) == [15, 2, 2, 1]


@pytest.mark.parametrize(("hidden", "meetings"), [(64, 0), (512, 7), (2048, 7)])
def test_the_published_split_has_seven_grid_barriers_at_batch_1(hidden: int, meetings: int) -> None:
    graph = examples.ln_lstm(1, hidden, hidden)
    assert only(graph).kernel.grid_barriers == meetings
    assert only(graph, FusionDevice(split_rule="costed")).kernel.grid_barriers == 0
