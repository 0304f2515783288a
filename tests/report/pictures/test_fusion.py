"""The picture of a fused graph: nothing overlaps, lines go down past boxes, everything that is drawn is explained."""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.model.fusion.graph import Graph, Node
from lstmsim.model.fusion.library import named_graph
from lstmsim.model.fusion.planner import planned
from lstmsim.studies.fuse.picture import layered, plot


@pytest.mark.parametrize("seed", range(20))
def test_boxes_of_random_graphs_do_not_touch_and_no_line_goes_behind_one(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(1, 25)
    sizes = {each: (rng.uniform(0.3, 2.0), rng.uniform(0.2, 0.5)) for each in range(count)}
    edges = [(a, b) for a, b in combinations(range(count), 2) if rng.random() < 0.15]
    drawing = layered(sizes, edges, (0.2, 0.3))

    def box(each: int) -> tuple[float, float, float, float]:
        (x, y), (width, height) = drawing.centres[each], sizes[each]
        return x - width / 2, x + width / 2, y - height / 2, y + height / 2

    for a, b in combinations(range(count), 2):
        left, right, top, bottom = box(a)
        other = box(b)
        assert right < other[0] or other[1] < left or bottom < other[2] or other[3] < top, (a, b)
    for each in range(count):
        left, right, top, bottom = box(each)
        assert left > -1e-9
        assert right < drawing.width + 1e-9
        assert top > -1e-9
        assert bottom < drawing.height + 1e-9
    for (start, end), route in drawing.routes.items():
        heights = [box(start)[3], *(y for _, y in route), box(end)[2]]
        assert heights == sorted(heights), (start, end)
        # upright from where it enters a layer to where it leaves it
        for (x, top), (same, bottom) in zip(route[::2], route[1::2], strict=True):
            assert x == same
            for each in range(count):
                inside = box(each)
                assert not (inside[0] < x < inside[1] and top < (inside[2] + inside[3]) / 2 < bottom), (start, end)


def test_what_is_read_first_stands_at_the_top_if_it_must() -> None:
    sizes = dict.fromkeys(range(4), (1.0, 1.0))
    edges = [(0, 1), (1, 2), (3, 2)]
    assert layered(sizes, edges).centres[3][1] == layered(sizes, edges).centres[1][1]
    assert layered(sizes, edges, first={3}).centres[3][1] == layered(sizes, edges).centres[0][1]


def test_every_operation_and_every_scheme_is_in_the_picture(tmp_path: Path) -> None:
    graph = named_graph("figure-4")
    figure = plot(planned(graph), tmp_path / "g.svg", title="figure 4")
    text = (tmp_path / "g.svg").read_text()
    for node in graph.nodes:
        assert f">{node.name}" in text, node.name
    assert "sub-graph 0: 147 blocks of 1,024 threads, 576 bytes shared" in text
    badges = [each.get_text() for each in figure.axes[0].texts if each.get_bbox_patch() is not None]
    assert [each for each in badges if len(each) < 4] == ["S0", "G", "G", "G+O"]
    legend = figure.axes[0].get_legend()
    assert legend is not None
    reported = " | ".join(each.get_text() for each in legend.get_texts())
    for words in (
        "0.0: row group, backbone r1, pack: 147 x 1,024 threads",
        "0.1: row group, backbone r3, split: 128 x 1,024 threads",
        "S: shared memory",
        "G: global memory",
        "above a box: all blocks meet before it",
        "below: all blocks meet at the end",
        "/4: in 4 pieces",
    ):
        assert words in reported
    # the sample of what is inlined has the colour of such a box
    samples = dict(zip((each.get_text() for each in legend.get_texts()), legend.legend_handles, strict=True))
    fills = {box.get_facecolor() for box in figure.axes[0].patches}
    assert samples["pale: inlined where it is read"].get_facecolor() in fills
    assert "R: register" not in reported
    plot(planned(graph), tmp_path / "again.svg", title="figure 4")
    assert (tmp_path / "again.svg").read_text() == text


def test_sub_graphs_stand_apart_with_what_they_read_of_each_other(tmp_path: Path) -> None:
    plot(planned(named_graph("cycle")), tmp_path / "g.svg")
    text = (tmp_path / "g.svg").read_text()
    assert "sub-graph 0: 1 block of 64 threads" in text
    assert "sub-graph 1" in text
    # a stands in its own sub-graph, before the product, and in the other sub-graph
    assert text.count(">a: 8 x 8<") == 2
    assert text.count(">a<") == 1


def test_too_many_nodes_are_refused_and_a_graph_without_any_part_is_drawn(tmp_path: Path) -> None:
    nodes = [Node("n0", "input", (), (2,))]
    nodes += [Node(f"n{at}", "negate", (f"n{at - 1}",), (2,)) for at in range(1, 700)]
    with pytest.raises(InputError, match="picture: 700 nodes; at most 600 are drawn"):
        plot(planned(Graph("long", tuple(nodes), ("n699",))))
    two = (Node("x", "input", (), (2, 2)), Node("p", "matmul", ("x", "x"), (2, 2)))
    plot(planned(Graph("p", two, ("p",))), tmp_path / "p.svg")
    assert ">p<" in (tmp_path / "p.svg").read_text()


@pytest.mark.slow
def test_a_notebook_shows_it() -> None:
    report = lstmsim.run_fusion("softmax", sizes={"rows": 2}, modes=["stitch"], cycles=False)
    assert lstmsim.plot_fusion(report)._repr_png_().startswith(b"\x89PNG\r\n")
    with pytest.raises(InputError, match="timeline: stitch was not simulated: ask for cycles"):
        lstmsim.plot_kernels(report)


def test_a_dollar_in_a_name_is_no_formula(tmp_path: Path) -> None:
    nodes = (Node("x", "input", (), (2,)), Node("$\\foo$", "tanh", ("x",), (2,)))
    report = lstmsim.run_fusion(Graph("$\\bar$", nodes, ("$\\foo$",)), modes=["stitch"])
    lstmsim.plot_fusion(report, tmp_path / "g.svg")
    assert "$\\foo$" in (tmp_path / "g.svg").read_text()
    lstmsim.plot_kernels(report, tmp_path / "k.svg")
    assert "$\\bar$ by stitch" in (tmp_path / "k.svg").read_text()
