"""How owners travel from the backbone to all that indices reach; docs/fusion.md, sections 5.4 and 5.5."""

from __future__ import annotations

import numpy as np

from lstmsim.model.fusion.graph import Graph, Sketch
from lstmsim.model.fusion.mapping import grouped, mapped, owners_by_rule, propagated, work_of
from lstmsim.model.fusion.plan import FusionDevice, Owners, ThreadMapping
from lstmsim.model.fusion.planner import planned

V100 = FusionDevice()


def owners_of(graph: Graph, group: int = 0) -> dict[str, Owners]:
    """The owners of all that indices reach in a group of the graph's operations, by name."""
    nodes = [number for number, node in enumerate(graph.nodes) if node.intensive]
    grouping = grouped(graph, nodes)
    some = grouping.groups[group]
    mapping = mapped(some, V100, 160)
    start = owners_by_rule(graph, some, mapping, V100)
    known = propagated(graph, some, mapping, start, grouping.cut)
    return {graph.nodes[number].name: owners for number, owners in sorted(known.items())}


def test_an_operation_on_elements_has_the_very_arrays_of_its_operand() -> None:
    draw = Sketch()
    x = draw.input("x", (4, 8))
    y = draw.reshape("y", draw.element("tanh", "t", x), (32,))
    z = draw.element("add", "z", y, draw.input("other", (32,)))
    owners = owners_of(draw.graph("g", [draw.reduce("reduce_sum", "s", z, (0,))]))
    assert owners["x"] is owners["t"] is owners["y"] is owners["z"] is owners["other"]


def test_a_reduce_belongs_to_the_owner_of_the_first_element() -> None:
    draw = Sketch()
    x = draw.input("x", (2, 3, 40))
    first = draw.reduce("reduce_sum", "first", x, (2,))
    owners = owners_of(draw.graph("g", [draw.reduce("reduce_max", "second", first, (1,))]))
    assert owners["first"].block.tolist() == owners["x"].block.reshape(6, 40)[:, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert owners["second"].block.tolist() == [0, 3]


def test_indices_travel_back_through_a_reduce_to_the_block_of_its_result() -> None:
    draw = Sketch()
    big = draw.input("big", (3, 100))
    # the largest operand leads; `small` is reached through the sum of both results
    small = draw.input("small", (3, 70))
    leading = draw.reduce("reduce_sum", "leading", big, (1,))
    other = draw.reduce("reduce_sum", "other", draw.element("tanh", "t", small), (1,))
    owners = owners_of(draw.graph("g", [draw.element("add", "y", leading, other)]))
    assert owners["other"] is owners["y"]
    threads = 128
    assert owners["t"].block.reshape(3, 70).tolist() == [[row] * 70 for row in range(3)]
    assert owners["small"].thread.reshape(3, 70).tolist() == [[place % threads for place in range(70)]] * 3


def test_a_transpose_takes_the_owners_along() -> None:
    draw = Sketch()
    turned = draw.transpose("turned", draw.input("x", (3, 2)), (1, 0))
    owners = owners_of(draw.graph("g", [draw.reduce("reduce_sum", "s", turned, (1,))]))
    assert owners["turned"].block.tolist() == [0, 0, 0, 1, 1, 1]
    assert owners["x"].block.tolist() == [0, 1, 0, 1, 0, 1]


def test_what_a_slice_leaves_is_dealt_out_unless_others_reach_it() -> None:
    draw = Sketch()
    x = draw.input("x", (2, 6))
    left = draw.slice("left", x, (0, 0), (2, 2))
    s = draw.reduce("reduce_sum", "s", left, (1,))
    owners = owners_of(draw.graph("g", [s]))
    blocks = 2
    assert owners["x"].block.tolist() == [0, 0, *(e * blocks // 12 for e in (2, 3, 4, 5)), 1, 1, *[1] * 4]
    assert owners["x"].thread.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 8, 9, 10, 11]


def test_a_known_operand_is_not_reached_again() -> None:
    """`x` is known from the left half, so the right half finds no owner for it and takes what is dealt out."""
    draw = Sketch()
    x = draw.input("x", (2, 6))
    left = draw.slice("left", x, (0, 0), (2, 2))
    right = draw.slice("right", x, (0, 4), (2, 2))
    s = draw.reduce("reduce_sum", "s", draw.element("add", "both", left, right), (1,))
    owners = owners_of(draw.graph("g", [s]))
    # both halves have the owners of their sum: x is known from the half that comes first
    assert owners["right"] is owners["both"] is owners["left"]
    assert owners["x"].block.reshape(2, 6)[:, 4:].tolist() == [[0, 0], [1, 1]]
    assert owners["x"].thread.reshape(2, 6)[:, 4:].tolist() == [[4, 5], [10, 11]]


def test_a_reduce_that_lost_its_edge_works_in_the_blocks_of_its_results() -> None:
    draw = Sketch()
    x = draw.input("x", (40, 50))
    rows = draw.reduce("reduce_sum", "rows", x, (1,))
    columns = draw.reduce("reduce_sum", "columns", x, (0,))
    first = draw.slice("part", columns, (0,), (40,))
    graph = draw.graph("g", [draw.element("add", "y", rows, first)])
    nodes = [number for number, node in enumerate(graph.nodes) if node.intensive]
    grouping = grouped(graph, nodes)
    (group,) = grouping.groups
    number = graph.numbers["columns"]
    assert grouping.cut == {number}
    mapping = mapped(group, V100, 160)
    known = propagated(graph, group, mapping, owners_by_rule(graph, group, mapping, V100), grouping.cut)
    work = work_of(graph, group, mapping, number, known, grouping.cut)
    place = np.arange(2000)
    assert np.array_equal(work.block, known[number].block[place % 50])
    assert np.array_equal(work.thread, place // 50 % mapping.threads)


def adaptation(rows: int, read: int) -> ThreadMapping:
    """The mapping of elements that all read `read` of some sums."""
    draw = Sketch()
    sums = draw.reduce("reduce_sum", "sums", draw.input("x", (rows, 64)), (1,))
    some = draw.slice("some", sums, (0,), (read,))
    wide = draw.broadcast("wide", some, (read, 6), (0,))
    plan = planned(draw.graph("g", [draw.element("multiply", "y", wide, draw.input("b", (read, 6)))]), V100)
    mapping = plan.subgraphs[0].groups[1].mapping
    assert mapping is not None
    return mapping


def test_the_fullest_block_may_have_twice_the_mean() -> None:
    # each block has one sum: 6 elements of 6 * read, over `rows` blocks; 6 * rows <= 2 * 6 * read
    assert adaptation(8, 4) == ThreadMapping("adapted", 8, 64, 64, 1, 1, 1, 24)
    assert adaptation(9, 4).kind == "element"


def test_elements_of_an_adapted_block_are_dealt_over_its_threads() -> None:
    draw = Sketch()
    sums = draw.reduce("reduce_sum", "sums", draw.input("x", (3, 32)), (1,))
    wide = draw.broadcast("wide", sums, (50, 3), (1,))
    plan = planned(draw.graph("g", [draw.element("multiply", "y", wide, draw.input("b", (50, 3)))]), V100)
    owners = plan.subgraphs[0].kernel.stages[1].owners
    assert owners.block.reshape(50, 3).tolist() == [[0, 1, 2]] * 50
    assert owners.thread.reshape(50, 3)[:, 1].tolist() == [place % 32 for place in range(50)]
    (given,) = (each for each in plan.subgraphs[0].decisions if each.about == "mapping" and each.node == "y")
    assert given.chosen == "3 blocks of 32 threads"
    assert (
        given.because == "the fullest of the 3 blocks of sums would have 50 of 150 elements, at most 2 times the mean"
    )
