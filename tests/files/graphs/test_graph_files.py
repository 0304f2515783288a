"""Graph files: what is read, what is refused at which place, what is written, and that no file is an internal error."""

from __future__ import annotations

import json
import math
import os
import random
from pathlib import Path

import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.graphs import Shape, following_shape, graph_of_document, graph_text, read_graph, write_graph
from lstmsim.files.yaml.document import document_of
from lstmsim.model.fusion.graph import Graph, Node
from lstmsim.model.fusion.graph_rules import mistakes

CASES = json.loads((Path(__file__).parents[2] / "data" / "contract_cases_fusion.json").read_text())
#: Damaged files: 60 in the usual run, 1,000 and more in the long one.
EXAMPLES = max(1000, int(os.environ["LSTMSIM_EXAMPLES"])) if "LSTMSIM_EXAMPLES" in os.environ else 40

GOOD = """name: tail
about: [an example]
outputs: [y, r]
nodes:
  - {name: x, op: input, shape: [2, 6]}
  - {name: w, op: input, shape: [6, 4]}
  - {name: p, op: matmul, inputs: [x, w]}
  - {name: t, op: transpose, inputs: [p], perm: [1, 0]}
  - {name: s, op: slice, inputs: [t], start: [1, 0], size: [3, 2]}
  - {name: m, op: maximum, inputs: [s, -.inf]}
  - {name: r, op: reduce_sum, inputs: [m], axes: [1]}
  - {name: b, op: broadcast, inputs: [r], dims: [1], shape: [5, 3]}
  - {name: y, op: power, inputs: [b, 2]}
"""


def read(folder: Path, text: str, name: str = "a.yaml") -> Graph:
    (folder / name).write_text(text)
    return read_graph(folder / name)


def refusals(folder: Path, text: str, name: str = "a.yaml") -> list[str]:
    """The sentences about a wrong file, without the folder."""
    with pytest.raises(InputError) as caught:
        read(folder, text, name)
    return [str(each).removeprefix(f"{folder}{os.sep}") for each in caught.value.mistakes]


def test_a_graph_is_what_its_file_says(tmp_path: Path) -> None:
    graph = read(tmp_path, GOOD)
    assert (graph.name, graph.about, graph.outputs) == ("tail", ("an example",), ("y", "r"))
    assert [node.shape for node in graph.nodes] == [
        (2, 6),
        (6, 4),
        (2, 4),
        (4, 2),
        (3, 2),
        (3, 2),
        (3,),
        (5, 3),
        (5, 3),
    ]
    assert [node.axes for node in graph.nodes[3:8]] == [(1, 0), (1, 0), (), (1,), (1,)]
    assert graph.nodes[5].inputs == ("s", -math.inf)
    assert graph.nodes[8].inputs == ("b", 2.0)
    assert not mistakes(graph)


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_written_files_read_back_as_the_same_graph(suffix: str, tmp_path: Path) -> None:
    graphs = [graph_of_document(document_of(case["graph"]), "graph") for case in CASES]
    strange = Node('1: "x", -', "input", (), (2,)), Node("Infinity", "add", ('1: "x", -', math.inf), (2,))
    graphs += [read(tmp_path, GOOD), Graph("no", strange, ("Infinity",), ("Infinity: -Infinity", "ü"))]
    for graph in graphs:
        write_graph(tmp_path / f"b{suffix}", graph)
        assert read_graph(tmp_path / f"b{suffix}") == graph


def test_graphs_of_the_golden_cases_are_read_node_for_node() -> None:
    for case in CASES:
        graph = graph_of_document(document_of(case["graph"]), "graph")
        for node, data in zip(graph.nodes, case["graph"]["nodes"], strict=True):
            axes = next((data[key] for key in ("axes", "dims", "perm", "start") if key in data), [])
            own = [node.name, node.op, list(node.inputs), list(node.shape), list(node.axes)]
            assert own == [data["name"], data["op"], data["inputs"], data["shape"], axes]


WRONG = [
    (
        "w, op: input, shape: [6, 4]",
        "w, op: input",
        "6:5: nodes.1.shape: required key is missing: the shape of 'input'",
    ),
    ("perm: [1, 0]", "dims: [1, 0]", "8:43: nodes.3.dims: 'transpose' has no dims; did you mean 'perm'?"),
    (", perm: [1, 0]", "", "8:5: nodes.3.perm: required key is missing: 'transpose' needs it"),
    ("start: [1, 0], size", "start: [1, 0], shape: [3, 2], size", None),
    ("size: [3, 2]", "shape: [3, 1], size: [3, 2]", "9:75: nodes.4.size: must be equal to shape, [3, 1], got [3, 2]"),
    ("axes: [1]", "axis: [1]", "11:44: nodes.6.axis: unknown key; did you mean 'axes'?"),
    (
        "inputs: [b, 2]",
        "inputs: [b, true]",
        "13:38: nodes.8.inputs.1: must be the name of a node or a number, got true",
    ),
    ("inputs: [b, 2]", "inputs: [b, 1e400]", None),
    ("inputs: [b, 2]", f"inputs: [b, {10**400}]", "13:38: nodes.8.inputs.1: must be at most 3.40282e+38, got a number"),
    ("inputs: [b, 2]", "inputs: [b, .nan]", "13:38: nodes.8.inputs.1: must be a number, got not-a-number (NaN)"),
    ("outputs: [y, r]", "outputs: [y, q]", "3:14: outputs.1: no node is called 'q'"),
    ("name: m,", "name: 3,", "10:12: nodes.5.name: must be text, got 3"),
    ("shape: [5, 3]", "shape: [5, 3.0]", "12:65: nodes.7.shape.1: must be a whole number, got 3.0; write 3"),
    ("nodes:\n", "nodes: 7\nnods:\n", "a.yaml:4:8: nodes: must be a list, got 7"),
]


@pytest.mark.parametrize(("old", "new", "sentence"), WRONG)
def test_a_mistake_is_told_where_it_stands(old: str, new: str, sentence: str | None, tmp_path: Path) -> None:
    assert GOOD.count(old) == 1
    text = GOOD.replace(old, new)
    if sentence is None:
        read(tmp_path, text)
    else:
        reported = refusals(tmp_path, text)
        assert any(sentence in each for each in reported), reported
        # what only follows from it is not told
        assert len([each for each in reported if "nods" not in each]) == 1, reported


def test_mistakes_of_all_kinds_are_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("axes: [1]", "axis: [1]").replace("op: power", "op: powwer").replace("[6, 4]", "[5, 4]")
    reported = refusals(tmp_path, text)
    assert [each.split(": ")[1] for each in reported] == ["nodes.6.axis", "nodes.2.inputs.1", "nodes.8.op"]


def test_remarks_stand_in_about(tmp_path: Path) -> None:
    graph = read(tmp_path, GOOD.replace("op: power, inputs: [b, 2]", "op: gather, inputs: [b, 2], shape: [1]"))
    assert graph.about[0] == "an example"
    assert graph.about[1].startswith("the operation gather ('y') is a call of a library")


def test_damaged_files_get_a_sentence(tmp_path: Path) -> None:
    rng = random.Random(18)
    sources = [
        GOOD,
        *(
            graph_text(graph_of_document(document_of(case["graph"]), "graph"), as_json=at % 2 == 0)
            for at, case in enumerate(CASES)
        ),
    ]
    words = ["", "x", "0", "-1", "[", "]", "{", "}", ":", ",", "null", "true", "1e9", "99999999999", "'", '"', "&a *a"]
    words += ["reduce_sum", "slice", "axes", "\n", "  ", ".nan", "[[]]", "{a: b}", "\x00", "é", "op: input", "1.5"]
    refused = 0
    sources = [each for each in sources if len(each) < 3000]
    for number in range(EXAMPLES):
        text = rng.choice(sources)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(words) + text[at + rng.choice((0, 1, 1, 2, 5, 30)) :]
        path = tmp_path / f"f{number}.{rng.choice(('yaml', 'json'))}"
        path.write_text(text)
        wrong = list[str]()
        try:
            assert not mistakes(read_graph(path)), text
        except InputError as error:
            wrong = [str(each) for each in error.mistakes]
        refused += bool(wrong)
        assert all("\n" not in each and str(path) in each for each in wrong), text
    assert refused > EXAMPLES / 2


def test_an_ending_that_is_none_and_a_graph_that_is_none(tmp_path: Path) -> None:
    graph = read(tmp_path, GOOD)
    with pytest.raises(InputError, match=r"expected a file name that ends in \.yaml, \.yml or \.json"):
        write_graph(tmp_path / "a.txt", graph)
    with pytest.raises(InputError, match="no node is called 'q'"):
        write_graph(tmp_path / "b.yaml", Graph("g", graph.nodes, ("q",)))
    assert not (tmp_path / "b.yaml").exists()


@pytest.mark.parametrize(
    ("op", "operands", "axes", "shape"),
    [
        ("add", [(2, 3), (2, 3)], (), (2, 3)),
        ("reduce_sum", [(2, 3, 4)], (0, 2), (3,)),
        ("transpose", [(2, 3, 4)], (2, 0, 1), (4, 2, 3)),
        ("transpose", [(2, 3)], (1, 1), None),
        ("matmul", [(2, 3), (3, 4)], (), (2, 4)),
        ("matmul", [(5, 1, 2, 3), (6, 3, 4)], (), (5, 6, 2, 4)),
        ("matmul", [(5, 2, 3), (4, 3, 4)], (), None),
        # no product: vectors, and one operand alone
        ("matmul", [(3,), (3, 4)], (), None),
        ("matmul", [(2, 3), (3,)], (), None),
        ("matmul", [(2, 3)], (), None),
        ("add", [], (), None),
    ],
)
def test_what_shape_follows(op: str, operands: list[Shape], axes: Shape, shape: Shape | None) -> None:
    assert following_shape(op, operands, axes) == shape
