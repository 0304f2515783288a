"""Where values lie, when blocks meet, and when all is planned anew; docs/fusion.md, sections 6 and 7."""

from __future__ import annotations

import pytest

from lstmsim.base.errors import InputError
from lstmsim.model.fusion import library as examples
from lstmsim.model.fusion.graph import Graph, Sketch
from lstmsim.model.fusion.interpreter.checks import difference_of_run
from lstmsim.model.fusion.plan import FusionDevice, PlannedSubgraph, Stage
from lstmsim.model.fusion.planner import buffered, grid_barriers, planned

V100 = FusionDevice()


def only(graph: Graph, device: FusionDevice = V100) -> PlannedSubgraph:
    """The only sub-graph of a graph, executed."""
    plan = planned(graph, device)
    (subgraph,) = plan.subgraphs
    assert difference_of_run(graph, [subgraph.kernel], device).equal
    return subgraph


def stage(graph: Graph, subgraph: PlannedSubgraph, name: str) -> Stage:
    return subgraph.kernel.stage_of[graph.numbers[name]]


def because(subgraph: PlannedSubgraph, about: str, node: str) -> list[str]:
    return [f"{each.chosen}: {each.because}" for each in subgraph.decisions if (each.about, each.node) == (about, node)]


def row_values(*functions: str) -> Graph:
    """Functions of rows of 64 times 100 elements, each read for every second element of its row by another thread."""
    draw = Sketch()
    x = draw.input("x", (64, 100))
    s = draw.reduce("reduce_sum", "s", x, (1,))
    value = draw.element("subtract", "d", x, draw.broadcast("sb", s, (64, 100), (0,)))
    total = ""
    for number, function in enumerate(functions):
        wide = draw.broadcast(f"w{number}", draw.element(function, f"t{number}", value), (64, 2, 100), (0, 2))
        total = draw.element("add", f"a{number}", wide, total) if total else wide
    return draw.graph("rows", [draw.reduce("reduce_sum", "o", total, (1, 2))])


def test_of_equal_values_the_last_leaves_shared_memory_first() -> None:
    graph = row_values("tanh", "sigmoid", "exp")
    roomy = only(graph)
    sizes = {stage(graph, roomy, f"t{number}").bytes for number in range(3)}
    assert len(sizes) == 1
    (size,) = sizes
    tight = only(graph, FusionDevice(shared_limit=roomy.kernel.shared_bytes - 1))
    assert [graph.nodes[number].name for number in tight.overflowed] == ["t2"]
    assert stage(graph, tight, "t2").scheme == "global"
    assert stage(graph, tight, "t1").bytes == size
    tightest = only(graph, FusionDevice(shared_limit=1))
    assert [graph.nodes[number].name for number in tightest.overflowed] == ["t2", "t1", "t0", "s"]
    # scratch alone may be more than the limit
    assert tightest.kernel.shared_bytes == tightest.kernel.scratch > 1


def test_where_blocks_meet_all_of_them_are_on_the_device() -> None:
    """Eight blocks of 64 threads fit on the device, but not with the shared memory that they ask for."""
    graph = examples.figure_4(64, 8, 16, 4)
    device = FusionDevice(sms=2, block_threads=64, split_length=32, shared_bytes=1024, shared_limit=1024, max_warps=64)
    subgraph = only(graph, device)
    kernel = subgraph.kernel
    assert kernel.grid_barriers
    assert kernel.blocks <= kernel.wave < device.wave(device.block_threads, 0)
    (first, *_) = because(subgraph, "wave", graph.nodes[subgraph.nodes[0]].name)
    assert first.startswith(f"planned anew for {kernel.wave} blocks instead of {device.wave(64, 0)}: ")


def test_without_a_barrier_blocks_may_come_one_after_the_other() -> None:
    kernel = only(examples.softmax(64, 256), FusionDevice(sms=1, max_blocks=1)).kernel
    assert (kernel.grid_barriers, kernel.wave) == (0, 1)


def test_a_reduce_is_never_in_a_register() -> None:
    draw = Sketch()
    s = draw.reduce("reduce_sum", "s", draw.input("x", (8, 32)), (1,))
    graph = draw.graph("g", [draw.element("tanh", "t", s)])
    subgraph = only(graph)
    assert stage(graph, subgraph, "s").scheme == "shared"
    assert "it is a reduce" in because(subgraph, "scheme", "s")[0]


def test_what_its_own_thread_reads_is_in_a_register_and_still_goes_out() -> None:
    draw = Sketch()
    a = draw.element("tanh", "a", draw.input("x", (100,)))
    graph = draw.graph("g", [a, draw.element("exp", "b", a)])
    one = stage(graph, only(graph), "a")
    assert (one.scheme, one.written, one.bytes, one.buffer) == ("register", True, 0, -1)


def test_a_result_that_another_block_computes_is_read_from_device_memory() -> None:
    """Indices reach `r` from its reader, and its operand by a transpose: the two have owners of their own."""
    draw = Sketch()
    x = draw.input("x", (8, 8, 1))
    big = draw.element("tanh", "big", draw.input("wide", (100, 8)))
    turned = draw.reshape("v", draw.transpose("t", x, (1, 0, 2)), (8, 8))
    r = draw.reduce("reduce_sum", "r", x, (2,))
    part = draw.slice("part", big, (0, 0), (8, 8))
    w = draw.element("add", "w", draw.element("add", "y", turned, r), part)
    graph = draw.graph("g", [w, draw.reduce("reduce_sum", "b", big, (1,))])
    subgraph = only(graph)
    one = stage(graph, subgraph, "r")
    assert (one.work.block[1], one.owners.block[1]) == (1, 0)
    assert (one.scheme, one.partials) == ("global", 0)
    assert stage(graph, subgraph, "w").grid_barrier
    assert because(subgraph, "scheme", "r") == ["global: block 1 computes its element 1, which belongs to block 0"]


def test_a_barrier_serves_all_that_was_written_before_it() -> None:
    reads = {1: [], 2: [], 5: [2], 6: [1], 8: [1, 6]}
    before, end = grid_barriers([1, 2, 5, 6, 8], reads, {1, 2, 6}, {2}, {2, 8})
    # 6 reads what was written before 5; 8 what was written since
    assert (before, end) == ({5, 8}, False)


def test_partials_that_go_out_need_a_barrier_after_them() -> None:
    assert grid_barriers([1, 2], {1: [], 2: []}, {1}, {1}, {1}) == (frozenset(), True)
    assert grid_barriers([1, 2], {1: [], 2: [1]}, {1}, {1}, {1}) == ({2}, False)
    # not split: its owner wrote it
    assert grid_barriers([1, 2], {1: [], 2: []}, {1}, set(), {1}) == (frozenset(), False)


def test_the_smallest_buffer_that_is_large_enough_is_taken() -> None:
    requests = {1: 400, 2: 100, 3: 200, 7: 90, 8: 150, 9: 500}
    last = {1: 4, 2: 5, 3: 6, 7: 20, 8: 20, 9: 20}
    stages = [*range(1, 10)]
    # 7 takes the one of 100, 8 that of 200; 9 the largest free one, which grows
    assert buffered(stages, requests, last).of == {1: 0, 2: 1, 3: 2, 7: 1, 8: 2, 9: 0}
    assert buffered(stages, requests, last).sizes == (500, 100, 200)


def test_a_buffer_is_not_taken_while_it_is_read() -> None:
    assert buffered([1, 2, 3], {1: 8, 2: 8, 3: 8}, {1: 3, 2: 9, 3: 9}).of == {1: 0, 2: 1, 3: 0}
    assert buffered([1, 2, 3], {1: 8, 2: 8, 3: 8}, {1: 4, 2: 9, 3: 9}).of == {1: 0, 2: 1, 3: 2}


def test_every_stage_has_its_reasons() -> None:
    subgraph = only(examples.attention(3, 20, 16))
    names = [each.node for each in subgraph.decisions if each.about == "scheme"]
    assert names == ["score", "max", "sum", "a", "y"]
    assert because(subgraph, "scheme", "max") == [
        "global: one result is split over up to 20 blocks, so its readers combine their partials"
    ]
    assert because(subgraph, "barrier", "y") == [
        "all blocks meet at the end: the partials of y, which goes out, are combined by the owners of its results"
    ]
    assert because(subgraph, "buffer", "a") == [
        "buffer 0 of 4 bytes for 4 bytes: score was there, which nobody reads after a"
    ]


def test_a_device_that_takes_no_block_is_refused() -> None:
    graph = examples.softmax(4, 64)
    with pytest.raises(InputError, match="no block of 1024 threads fits on a multiprocessor"):
        planned(graph, FusionDevice(registers=1024))
    said = r"shared_bytes: no block of 64 threads with 16 bytes .* fits .* gives whole pieces of 256 and has 255$"
    with pytest.raises(InputError, match=said):
        planned(graph, FusionDevice(shared_bytes=255, shared_limit=255))


def test_each_candidate_alone_is_a_group_for_ablations() -> None:
    graph = examples.ln_lstm(8, 16, 16)
    together, apart = (planned(graph, V100, apart=each).subgraphs[0] for each in (False, True))
    assert (len(together.groups), len(apart.groups)) == (1, len(together.kernel.stages))
    assert difference_of_run(graph, [apart.kernel], V100).equal
