"""Rules that no golden case pins down: what docs/fusion.md says of small graphs, worked out by hand."""

from __future__ import annotations

from math import prod
from typing import Any

from lstmsim.model.fusion.graph import Graph, Node
from lstmsim.model.fusion.plan import FusionDevice, PlannedSubgraph, ThreadMapping
from lstmsim.model.fusion.planner import planned
from tests.model.fusion.plain import agree


def graph_of(outputs: str, *nodes: tuple[Any, ...]) -> Graph:
    """A graph of nodes (name, operation, operands, shape, axes)."""
    made = tuple(
        Node(name, op, tuple(inputs), tuple(shape), *map(tuple, axes)) for name, op, inputs, shape, *axes in nodes
    )
    return Graph("by hand", made, tuple(outputs.split()))


def the_plan(graph: Graph, device: FusionDevice) -> PlannedSubgraph:
    """The plan of the only sub-graph, which the plain model has as well."""
    assert agree(graph, device)
    (plan,) = planned(graph, device).subgraphs
    return plan


def mapping_of(plan: PlannedSubgraph, group: int = 0) -> ThreadMapping:
    mapping = plan.groups[group].mapping
    assert mapping is not None
    return mapping


def summed(*shape: int, axis: int = -1) -> Graph:
    """The sum of x over one axis."""
    axis %= len(shape)
    left = [size for place, size in enumerate(shape) if place != axis]
    return graph_of("s", ("x", "input", [], shape), ("s", "reduce_sum", ["x"], left, [axis]))


def first_row_spread(rows: int) -> Graph:
    """The sum of the first of some rows, for 100 readers."""
    return graph_of(
        "y",
        ("x", "input", [], [rows, 64]),
        ("s", "reduce_sum", ["x"], [rows], [1]),
        ("a", "slice", ["s"], [1], [0]),
        ("r", "reshape", ["a"], []),
        ("b", "broadcast", ["r"], [100]),
        ("y", "tanh", ["b"], [100]),
    )


def test_an_element_group_follows_blocks_that_are_at_most_twice_as_full_as_the_mean() -> None:
    two, three = (the_plan(first_row_spread(rows), FusionDevice()) for rows in (2, 3))
    # all 100 elements in one of two blocks: 100 * 2 <= 2 * 100
    assert (mapping_of(two, 1).kind, mapping_of(two, 1).blocks) == ("adapted", 2)
    assert {each.node: each.scheme for each in two.kernel.stages} == {1: "shared", 5: "output"}
    # 100 * 3 > 2 * 100
    assert (mapping_of(three, 1).kind, mapping_of(three, 1).blocks) == ("element", 1)


def test_of_equal_values_the_last_one_leaves_shared_memory() -> None:
    x, shape = ("x", "input", [], [4, 64]), [4, 64]
    graph = graph_of(
        "y",
        x,
        ("s", "reduce_sum", ["x"], [4], [1]),
        ("m", "reduce_max", ["x"], [4], [1]),
        ("sb", "broadcast", ["s"], shape, [0]),
        ("mb", "broadcast", ["m"], shape, [0]),
        ("d", "subtract", ["x", "sb"], shape),
        ("y", "multiply", ["d", "mb"], shape),
    )
    # a block has one row: 4 bytes for each of s and m, 8 for its two warps
    roomy, tight = (the_plan(graph, FusionDevice(shared_limit=limit)) for limit in (16, 15))
    assert (roomy.overflowed, roomy.kernel.shared_bytes) == ((), 16)
    assert (tight.overflowed, tight.kernel.shared_bytes) == ((2,), 12)
    assert tight.kernel.grid_barriers == 1


def test_columns_fill_the_device_before_they_are_split() -> None:
    device = FusionDevice(sms=2, max_blocks=1)
    narrow, wide = (mapping_of(the_plan(summed(100, rows, axis=0), device)) for rows in (32, 96))
    # one tile of columns for two places: two pieces of 50
    assert (narrow.blocks, narrow.threads, narrow.pieces, narrow.piece) == (2, 1024, 2, 50)
    # three tiles for two places: none is split, a block has two of them
    assert (wide.blocks, wide.threads, wide.tasks, wide.pieces, wide.piece) == (2, 1024, 2, 1, 100)


def test_blocks_that_meet_all_fit_at_once() -> None:
    # 32 blocks of 64 threads fit on the multiprocessor, but only 4 of those that ask for 256 of its 1024 bytes
    device = FusionDevice(sms=1, block_threads=64, split_length=16, shared_bytes=1024)
    assert (device.wave(64, 0), device.wave(64, 8)) == (32, 4)
    plan = the_plan(summed(1, 4096), device)
    assert (plan.kernel.blocks, plan.kernel.wave, plan.kernel.end_barrier) == (4, 4, True)
    assert (mapping_of(plan).pieces, mapping_of(plan).piece) == (4, 1024)
    # rows that no barrier follows may wait for each other
    assert the_plan(summed(32, 16), device).kernel.blocks == 32


def test_a_costed_split_is_worth_its_barrier() -> None:
    costed = FusionDevice(split_rule="costed")
    # 9 turns of 400 cycles take less than a grid barrier of 3830, 10 take more
    pieces = [mapping_of(the_plan(summed(1, 1024 * turns), costed)).pieces for turns in (9, 10)]
    assert (pieces[0], pieces[1] > 1) == (1, True)
    # a block of columns takes 32 elements of each in a turn
    pieces = [mapping_of(the_plan(summed(length, 32, axis=0), costed)).pieces for length in (288, 289)]
    assert (pieces[0], pieces[1] > 1) == (1, True)


def test_operations_behind_a_broadcast_alone_belong_to_no_group() -> None:
    graph = graph_of(
        "y",
        ("p", "input", [], [8]),
        ("x", "input", [], [4, 8]),
        ("t", "multiply", ["p", 2.0], [8]),
        ("b", "broadcast", ["t"], [4, 8], [1]),
        ("y", "add", ["x", "b"], [4, 8]),
    )
    plan = the_plan(graph, FusionDevice())
    assert plan.free == (2,)
    assert [each.members for each in plan.groups] == [(3, 4)]


def test_indices_travel_from_the_result_of_a_reduce_to_its_operand() -> None:
    shape = [3, 70]
    graph = graph_of(
        "y",
        ("x", "input", [], [3, 100]),
        ("z", "input", [], shape),
        ("s", "reduce_sum", ["x"], [3], [1]),
        ("t", "reduce_sum", ["z"], [3], [1]),
        ("y", "add", ["s", "t"], [3]),
    )
    plan = the_plan(graph, FusionDevice(sms=1, max_blocks=2))
    # rows of 128 threads, two side by side: rows 0 and 1 in block 0, row 2 in block 1
    assert (mapping_of(plan).lanes, mapping_of(plan).per_block) == (128, 2)
    stage = plan.kernel.stage_of[3]
    assert stage.owners.block.tolist() == [0, 0, 1]
    assert stage.owners.thread.tolist() == [0, 128, 0]
    assert stage.work.block.tolist() == [0] * 140 + [1] * 70
    # position l: thread l, whatever thread has the result
    assert stage.work.thread.tolist() == [*range(70)] * (prod(shape) // 70)
