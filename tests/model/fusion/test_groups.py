"""Candidates and groups: the golden cases, and rules that they do not pin down; docs/fusion.md, section 3."""

from __future__ import annotations

from typing import Any

import pytest

from lstmsim.model.fusion.graph import Graph, Sketch
from lstmsim.model.fusion.library import named_graph
from lstmsim.model.fusion.mapping import Grouping, candidates_of, grouped, outputs_of
from lstmsim.model.fusion.planner import clusters
from tests.model.fusion.golden import cases, graph_of


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_the_golden_cases(case: dict[str, Any]) -> None:
    graph = graph_of(case)
    for nodes, plan in zip(clusters(graph)[0], case["expect"]["plans"], strict=True):
        grouping = grouped(graph, nodes)
        assert _names(graph, grouping.candidates) == plan["stages"]
        assert _names(graph, grouping.free) == plan["free"]
        wanted = [{key: value for key, value in group.items() if key != "mapping"} for group in plan["groups"]]
        assert _reported(graph, grouping) == wanted


def _names(graph: Graph, numbers: Any) -> list[str]:
    return [graph.nodes[number].name for number in numbers]


def _reported(graph: Graph, grouping: Grouping) -> list[dict[str, Any]]:
    return [
        {
            "members": _names(graph, group.members),
            "backbone": graph.nodes[group.backbone].name,
            "sub_backbones": _names(graph, group.sub_backbones),
            "kind": group.kind,
            "rows": group.rows,
            "length": group.length,
        }
        for group in grouping.groups
    ]


def _only(graph: Graph, **settings: bool) -> Grouping:
    """The grouping of a graph of one sub-graph."""
    (nodes,) = clusters(graph)[0]
    return grouped(graph, nodes, **settings)


def _members(graph: Graph, grouping: Grouping) -> list[list[str]]:
    return [_names(graph, group.members) for group in grouping.groups]


def _because(grouping: Grouping, about: str, node: str) -> str:
    (reason,) = [each.because for each in grouping.decisions if (each.about, each.node) == (about, node)]
    return reason


def test_why_something_is_stored() -> None:
    draw = Sketch()
    x = draw.input("x", (4, 8))
    s = draw.reduce("reduce_sum", "s", x, (1,))
    root = draw.element("sqrt", "root", s)
    cheap = draw.element("abs", "cheap", s)
    both = draw.element("add", "both", *(draw.broadcast(f"{each}b", each, (4, 8), (0,)) for each in (root, cheap)))
    draw.element("tanh", "unread", both)
    product = draw.matmul("product", draw.element("exp", "e", both), draw.input("W", (8, 8)))
    graph = draw.graph("g", (product, draw.element("negate", "out", both)))
    nodes = clusters(graph)[0][0]
    assert _names(graph, outputs_of(graph, nodes)) == ["unread", "e", "out"]
    assert {each.node: each.because for each in candidates_of(graph, nodes)} == {
        "s": "it is a reduce",
        "root": "sqrt is heavy and rootb repeats it 8 times",
        "unread": "nobody reads it",
        "e": "product reads it outside of the sub-graph",
        "out": "it is an output of the graph",
    }


def test_a_broadcast_is_always_in_the_subgraph_of_what_it_repeats() -> None:
    """Even where only another sub-graph reads it, for nothing can lie between the two."""
    draw = Sketch()
    x = draw.input("x", (4,))
    heavy = draw.element("tanh", "heavy", x)
    matrix = draw.reshape("matrix", heavy, (2, 2))
    product = draw.matmul("product", matrix, draw.input("W", (2, 2)))
    repeated = draw.broadcast("repeated", heavy, (1, 4), (1,))
    back = draw.reshape("back", product, (1, 4))
    graph = draw.graph("g", (draw.element("add", "y", back, repeated),))
    first, second = clusters(graph)[0]
    assert (_names(graph, first), _names(graph, second)) == (["heavy", "matrix", "repeated"], ["back", "y"])
    assert {each.node: each.because for each in candidates_of(graph, first)} == {
        "heavy": "tanh is heavy and repeated repeats it 1 time",
        "matrix": "product reads it outside of the sub-graph",
        "repeated": "y reads it outside of the sub-graph",
    }


def test_what_only_a_broadcast_reads_is_free() -> None:
    """The doubled scale has no candidate; what it reads from outside makes no group either."""
    draw = Sketch()
    x, scale = draw.input("x", (4, 8)), draw.input("scale", (8,))
    twice = draw.element("multiply", "twice", scale, 2.0)
    spread = draw.broadcast("spread", twice, (4, 8), (1,))
    graph = draw.graph("g", (draw.reduce("reduce_sum", "s", draw.element("multiply", "m", x, spread), (1,)),))
    grouping = _only(graph)
    assert _names(graph, grouping.free) == ["twice"]
    assert _members(graph, grouping) == [["spread", "m", "s"]]
    assert _because(grouping, "group", "twice") == "no candidate is connected with it but through a broadcast"


def test_two_that_read_the_same_from_outside_are_one_group() -> None:
    draw = Sketch()
    x = draw.input("x", (4, 8))
    graph = draw.graph("g", (draw.element("tanh", "a", x), draw.element("exp", "b", x)))
    nodes = [1, 2]
    assert [(group.members, group.backbone) for group in grouped(graph, nodes).groups] == [((1, 2), 1)]


def test_rows_lead_and_columns_lose_their_edge() -> None:
    """Both reduces read z. Of equal operands the first leads; then the column stands alone with what reads it."""
    draw = Sketch()
    z = draw.element("tanh", "z", draw.input("x", (6, 6)))
    rows = draw.reduce("reduce_sum", "rows", z, (1,))
    columns = draw.reduce("reduce_max", "columns", z, (0,))
    graph = draw.graph("g", (rows, draw.element("sqrt", "r", columns)))
    grouping = _only(graph)
    assert _reported(graph, grouping) == [
        {"members": ["z", "rows"], "backbone": "rows", "sub_backbones": [], "kind": "row", "rows": 6, "length": 6},
        {
            "members": ["columns", "r"],
            "backbone": "columns",
            "sub_backbones": ["r"],
            "kind": "column",
            "rows": 6,
            "length": 6,
        },
    ]
    assert _names(graph, sorted(grouping.cut)) == ["columns"]
    assert _because(grouping, "edge", "columns") == (
        "it reduces columns and rows, which has the largest operand of the group (36 elements), reduces rows"
    )


def test_losing_an_edge_makes_new_groups_that_are_looked_at_again() -> None:
    """The column reduce leaves the rows' group with a row reduce behind it, which then loses its edge too."""
    draw = Sketch()
    z = draw.element("tanh", "z", draw.input("x", (6, 4, 5)))
    rows = draw.reduce("reduce_sum", "rows", z, (2,))
    columns = draw.reduce("reduce_sum", "columns", z, (0,))
    behind = draw.reduce("reduce_sum", "behind", columns, (1,))
    graph = draw.graph("g", (rows, behind))
    grouping = _only(graph)
    assert _names(graph, sorted(grouping.cut)) == ["columns", "behind"]
    assert _members(graph, grouping) == [["z", "rows"], ["columns"], ["behind"]]
    assert _because(grouping, "edge", "behind").endswith(
        "columns, which has the largest operand of the group (120 elements), reduces columns"
    )


def test_a_reduce_that_lost_its_edge_may_stay_in_the_group_by_its_result() -> None:
    draw = Sketch()
    z = draw.element("tanh", "z", draw.input("x", (6, 6)))
    rows, columns = draw.reduce("reduce_sum", "rows", z, (1,)), draw.reduce("reduce_sum", "columns", z, (0,))
    graph = draw.graph("g", (draw.element("add", "y", rows, columns),))
    grouping = _only(graph)
    assert _members(graph, grouping) == [["z", "rows", "columns", "y"]]
    assert _names(graph, sorted(grouping.cut)) == ["columns"]


@pytest.mark.parametrize(
    ("shape", "axes", "kind"),
    [((4, 6), (1,), "row"), ((4, 6), (0, 1), "row"), ((4,), (0,), "row"), ((2, 4, 6), (1, 2), "row"),
     ((4, 6), (0,), "column"), ((2, 4, 6), (0, 2), "column"), ((2, 4, 6), (1,), "column")],
)  # fmt: skip
def test_a_row_is_reduced_along_the_last_axes(shape: tuple[int, ...], axes: tuple[int, ...], kind: str) -> None:
    draw = Sketch()
    graph = draw.graph("g", (draw.reduce("reduce_sum", "s", draw.input("x", shape), axes),))
    (group,) = _only(graph).groups
    assert group.kind == kind
    assert group.rows * group.length == graph.nodes[0].size


def test_the_largest_operand_leads_not_the_first_reduce() -> None:
    """Not where the pass of the paper would begin either: a later reduce of more elements leads."""
    draw = Sketch()
    small = draw.reduce("reduce_sum", "small", draw.input("a", (6, 4)), (1,))
    large = draw.reduce("reduce_sum", "large", draw.input("b", (6, 50)), (1,))
    graph = draw.graph("g", (draw.element("add", "y", small, large),))
    (group,) = _only(graph).groups
    assert (graph.nodes[group.backbone].name, _names(graph, group.sub_backbones)) == ("large", ["small", "y"])
    assert _because(_only(graph), "group", "small") == "an index travels between the two without passing a broadcast"


def test_without_reduce_the_largest_candidate_leads_and_of_equal_ones_the_first() -> None:
    draw = Sketch()
    x = draw.input("x", (8, 4))
    parts = [
        draw.slice(name, x, (start, 0), (size, 4)) for name, start, size in (("a", 0, 2), ("b", 0, 3), ("c", 5, 3))
    ]
    graph = draw.graph("g", tuple(draw.element("tanh", f"{part}t", part) for part in parts))
    group = grouped(graph, range(1, len(graph.nodes))).groups[0]
    assert (graph.nodes[group.backbone].name, group.kind, group.rows, group.length) == ("bt", "element", 12, 1)


def test_candidates_apart_are_groups_of_their_own() -> None:
    graph = named_graph("softmax", {"rows": 4, "length": 8})
    grouping = _only(graph, apart=True)
    assert [len(group.members) for group in grouping.groups] == [1] * len(grouping.candidates)
    assert _names(graph, grouping.free) == ["maxb", "d", "e", "sb"]
    assert not grouping.cut
    assert _because(grouping, "group", "d") == "each candidate is a group of its own"
