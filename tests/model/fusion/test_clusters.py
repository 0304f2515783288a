"""What becomes one kernel: clusters against a slow model, refused edges, and speed; docs/fusion.md, section 2."""

from __future__ import annotations

import random
from itertools import pairwise
from time import perf_counter
from typing import Any

import pytest

from lstmsim.model.fusion.graph import INPUT, Graph, Node, Sketch
from lstmsim.model.fusion.library import named_graph
from lstmsim.model.fusion.planner import clusters, refusal
from tests.model.fusion.golden import cases, graph_of


def _drawn(seed: int, count: int) -> Graph:
    """A graph of additions and matrix products, of which each reads something near or something far."""
    rng = random.Random(seed)
    nodes = [Node("n0", "input", (), (2, 2))]
    for number in range(1, count):
        some = [f"n{rng.randrange(max(0, number - rng.choice((3, 12))), number)}" for _ in range(2)]
        nodes.append(Node(f"n{number}", "matmul" if rng.random() < 0.25 else "add", tuple(some), (2, 2)))
    return Graph(f"drawn {seed}", tuple(nodes), (nodes[-1].name,))


def _slowly(graph: Graph) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Section 2 to the letter: every question is a walk over the graph of clusters."""
    of = {number: number for number, node in enumerate(graph.nodes) if node.kind != INPUT}

    def leads(start: int, end: int) -> bool:
        waiting, seen = [start], {start}
        while waiting:
            cluster = waiting.pop()
            for node in of:
                if of[node] == cluster:
                    for place in {of[reader] for reader in graph.readers[node]} - seen:
                        if place != end:
                            seen.add(place)
                            waiting.append(place)
                        elif cluster != start:
                            return True
        return False

    edges = [
        (operand, node)
        for node in of
        for operand in dict.fromkeys(graph.operands[node])
        if graph.nodes[node].intensive and graph.nodes[operand].intensive
    ]
    while True:
        refused, joined = [], False
        for operand, node in edges:
            a, b = sorted((of[operand], of[node]))
            if a != b and (leads(a, b) or leads(b, a)):
                refused.append((operand, node))
            elif a != b:
                joined = True
                of = {number: a if place == b else place for number, place in of.items()}
        if not joined:
            parts: dict[int, list[int]] = {}
            for number, place in of.items():
                if graph.nodes[number].intensive:
                    parts.setdefault(place, []).append(number)
            return [parts[place] for place in sorted(parts)], refused


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_the_golden_cases(case: dict[str, Any]) -> None:
    graph = graph_of(case)
    names = [node.name for node in graph.nodes]
    subgraphs, refused = clusters(graph)
    assert [[names[each] for each in some] for some in subgraphs] == case["expect"]["subgraphs"]
    assert [[names[each.operand], names[each.reader]] for each in refused] == case["expect"]["refused_edges"]


def test_drawn_graphs_as_a_slow_model_has_them() -> None:
    refusals = 0
    for seed in range(60):
        graph = _drawn(seed, 24)
        subgraphs, refused = clusters(graph)
        assert ([list(each) for each in subgraphs], [(each.operand, each.reader) for each in refused]) == _slowly(graph)
        for edge in refused:
            _the_path_is_one(graph, subgraphs, edge.operand, edge.reader, edge.path)
        refusals += len(refused)
    # the graphs would show nothing if no cycle were near
    assert refusals > 50


def _the_path_is_one(
    graph: Graph, subgraphs: tuple[tuple[int, ...], ...], operand: int, reader: int, path: tuple[int, ...]
) -> None:
    """From the operand's cluster to the reader's, each step an edge of the graph or inside of a cluster."""
    of = {number: place for place, some in enumerate(subgraphs) for number in some}
    assert path
    assert not {of.get(each) for each in path} & {of[operand], of[reader]}
    assert any(of.get(each) == of[operand] for each in graph.operands[path[0]])
    assert any(of.get(each) == of[reader] for each in graph.readers[path[-1]])
    for before, after in pairwise(path):
        assert after in graph.readers[before] or of.get(before) == of.get(after) is not None


@pytest.mark.parametrize("product_behind", [True, False])
def test_a_path_may_lead_through_a_cluster_from_one_of_its_nodes_to_another(product_behind: bool) -> None:
    """No edge leads from d to e: only because c made one cluster of them does b come after a."""
    draw = Sketch()
    x, w = draw.input("x", (2, 2)), draw.input("w", (2, 2))
    a = draw.element("tanh", "a", x)
    d = draw.element("abs", "d", draw.matmul("p", a, w))
    e = draw.element("exp", "e", w)
    c = draw.element("add", "c", d, e)
    b = draw.element("add", "b", a, draw.matmul("q", e, w) if product_behind else e)
    graph = draw.graph("g", (b, c))
    names = [node.name for node in graph.nodes]
    subgraphs, (edge,) = clusters(graph)
    parts = [["a"], ["d", "e", "c"], ["b"]] if product_behind else [["a"], ["d", "e", "c", "b"]]
    assert [[names[each] for each in some] for some in subgraphs] == parts
    assert (names[edge.operand], names[edge.reader]) == ("a", "b")
    assert [names[each] for each in edge.path] == (["p", "d", "e", "q"] if product_behind else ["p"])


def test_a_refused_edge_says_what_lies_between() -> None:
    graph = named_graph("cycle", {})
    (edge,) = clusters(graph)[1]
    reported = refusal(graph, edge)
    assert (reported.about, reported.node, reported.chosen) == ("edge", "y", "not in one kernel with a")
    assert reported.because.startswith("one kernel of both would wait for itself: p lies between them")


def test_a_thousand_nodes_are_quick() -> None:
    graph = _drawn(1, 1000)
    before = perf_counter()
    subgraphs, refused = clusters(graph)
    assert len(subgraphs) > 20
    assert len(refused) > 100
    assert perf_counter() - before < 2
