"""Values that are written over while other warps, or later turns, still read them."""

from __future__ import annotations

from dataclasses import replace

from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.interpreter.checks import overlap_remarks, overlaps
from lstmsim.model.fusion.library import named_graph
from lstmsim.model.fusion.plan import FusionDevice
from lstmsim.model.fusion.planner import planned
from tests.model.fusion.random_graphs import random_graph


def names(graph: Graph) -> list[tuple[str, str, str]]:
    """Stage, reader and value of each overlap of the first kernel."""
    some = overlaps(graph, planned(graph, FusionDevice()).subgraphs[0].kernel)
    return [tuple(graph.nodes[each].name for each in (one.stage, one.reader, one.value)) for one in some]


def test_later_turns_read_what_the_first_turn_wrote_over():
    graph = named_graph("overflow")
    assert names(graph) == [("t", "t", "s")]
    (said,) = overlap_remarks(graph, [planned(graph, FusionDevice()).subgraphs[0].kernel])
    assert said.startswith(
        "t writes over s in buffer 0 of shared memory, which other warps or later turns of t still read:"
    )


def test_rows_of_one_warp_or_with_barriers_do_not_overlap():
    # t = tanh(x - s), written over s: a row is one warp and one turn, so that its threads go in step
    assert names(named_graph("overflow", {"rows": 160, "length": 32})) == []
    for name in ("ln-lstm", "softmax", "log-softmax", "l2-norm", "attention", "figure-4", "figure-7"):
        graph = named_graph(name)
        assert names(graph) == [], name


def test_only_values_in_the_same_buffer_overlap():
    graph = named_graph("overflow")
    kernel = planned(graph, FusionDevice()).subgraphs[0].kernel
    apart = tuple(replace(each, buffer=place) for place, each in enumerate(kernel.stages))
    assert overlaps(graph, replace(kernel, stages=apart)) == ()


def test_overlaps_are_seldom():
    some = [
        bool(overlaps(graph, each.kernel))
        for graph in map(random_graph, range(60))
        for each in planned(graph).subgraphs
    ]
    assert 1 <= sum(some) <= len(some) // 20
