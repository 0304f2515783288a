"""Networks that the ONNX reader refuses, and the sentences that say why."""

from __future__ import annotations

import builtins
import os
import random
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import helper

from lstmsim.base.bounded import MAX_BYTES
from lstmsim.base.errors import InputError
from lstmsim.importers.onnx import graph as onnx_graph
from lstmsim.importers.onnx.file import read_onnx
from tests.importers.onnx.graphs import Graph, save
from tests.strategies import examples


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_onnx(path)
    text = str(caught.value)
    assert all(line.startswith(str(path)) for line in text.splitlines())
    return text.replace(str(path), "FILE")


@pytest.mark.parametrize(
    ("kind", "attributes", "inputs", "sentence"),
    [
        ("LSTM", {}, {7: "flat"}, "contradict hidden_size 6: P is [24], expected [1, 18]"),
        ("LSTM", {"clip": 0.0}, {}, "has clip 0, must be above 0"),
        ("GRU", {"clip": -2.0}, {}, "has clip -2, must be above 0"),
        ("RNN", {"clip": float("nan")}, {}, "has clip nan, must be above 0"),
        ("LSTM", {"activations": ["Sigmoid", "Tanh"]}, {}, "has activations 'Sigmoid' and 'Tanh': 2, expected 3"),
        ("RNN", {"activations": ["Rleu"]}, {}, "'Rleu' cannot be simulated; did you mean 'Relu'?"),
        ("RNN", {"activations": ["ThresholdedRelu"]}, {}, "'ThresholdedRelu' cannot be simulated"),
        ("RNN", {"activations": ["Affine"]}, {}, "has 0 numbers as activation_alpha, expected 1: one for each"),
        (
            "GRU",
            {"activations": ["HardSigmoid", "Tanh"], "activation_alpha": [0.2, 0.3]},
            {},
            "has 2 numbers as activation_alpha, expected 1",
        ),
        (
            "RNN",
            {"activations": ["LeakyRelu"], "activation_alpha": [float("inf")]},
            {},
            "has a number in activation_alpha that is not finite",
        ),
        (
            "RNN",
            {"activations": ["Relu", "Tanh"], "direction": "bidirectional"},
            {},
            "the two directions of a layer must have the same",
        ),
        ("LSTM", {"direction": "sideways"}, {}, "has direction 'sideways'"),
        ("LSTM", {"hidden_size": 7}, {}, "contradict hidden_size 7: W is [1, 24, 4], expected [1, 28, 4]; R is"),
        ("LSTM", {"direction": "bidirectional"}, {}, "W is [1, 24, 4], expected [2, 24, 4]"),
        ("LSTM", {"hidden_size": 0}, {}, "hidden_size is 0, must be between 1 and"),
        ("LSTM", {"hidden_size": "many"}, {}, "hidden_size is 0"),
        ("GRU", {}, {1: "flat"}, "W is [24], expected three dimensions"),
        (
            "GRU",
            {},
            {1: "nowhere"},
            "the shape of W cannot be read from the file: nothing in the file is called 'nowhere'",
        ),
        ("GRU", {}, {1: "made"}, "the shape of W cannot be read from the file: 'made' is computed by MatMul"),
        ("GRU", {}, {2: ""}, "the shape of R cannot be read from the file: the input is left out"),
        ("GRU", {}, {3: "flat"}, "B is [24], expected [1, 36]"),
        ("GRU", {}, {5: "state"}, "initial_h is [1, 1, 16], expected [1, ?, 6]"),
        ("GRU", {}, {0: "state"}, "X is [1, 1, 16], expected [?, ?, 4]"),
    ],
)
def test_a_node_that_cannot_be_simulated(
    kind: str, attributes: dict[str, Any], inputs: dict[int, str], sentence: str, tmp_path: Path
) -> None:
    graph = Graph()
    graph.weight("flat", 24)
    graph.input("state", 1, 1, 16)
    graph.node("MatMul", ["flat", "state"], "made")
    graph.recurrent(kind, graph.input("x", 5, 1, 4), 4, 6, name="/net/rnn", inputs=inputs, **attributes)
    text = refusal(save(graph, tmp_path / "a.onnx"))
    assert text.startswith(f"FILE: {kind} '/net/rnn': ")
    assert sentence in text
    assert "\n" not in text


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("directions", [1, 2])
def test_default_activations_written_out_are_fine(kind: str, directions: int, tmp_path: Path) -> None:
    names = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}[kind] * directions
    graph = Graph()
    frames = graph.input("x", 5, 1, 4)
    graph.recurrent(kind, frames, 4, 6, directions=directions, activations=names, input_forget=0)
    assert len(read_onnx(save(graph, tmp_path / "a.onnx")).models) == 1


def test_a_projection_is_recognised(tmp_path: Path) -> None:
    graph = Graph()
    # PyTorch 2.13 exports nn.LSTM(24, 16, proj_size=8) with these shapes.
    states = {5: graph.input("h", 1, 1, 8), 6: graph.input("c", 1, 1, 16)}
    graph.recurrent("LSTM", graph.input("x", 5, 1, 24), 24, 8, inputs=states)
    text = refusal(save(graph, tmp_path / "a.onnx"))
    assert "LSTM 'rnn': its parts contradict hidden_size 8: initial_c is [1, 1, 16], expected [1, ?, 8]" in text
    assert "proj_size" in text


def test_a_wrong_state_is_not_called_a_projection(tmp_path: Path) -> None:
    graph = Graph()
    graph.recurrent("LSTM", graph.input("x", 5, 1, 24), 24, 8, inputs={5: graph.input("h", 1, 1, 16)})
    assert "proj_size" not in refusal(save(graph, tmp_path / "a.onnx"))


def test_every_node_is_named_in_one_go(tmp_path: Path) -> None:
    graph = Graph()
    frames = graph.input("x", 5, 1, 4)
    for number in range(30):
        graph.recurrent("LSTM", frames, 4, 6, name=f"n{number}", clip=-1.0)
    lines = refusal(save(graph, tmp_path / "a.onnx")).splitlines()
    assert [line.split(":")[1] for line in lines[:2]] == [" LSTM 'n0'", " LSTM 'n1'"]
    assert lines[-1] == "FILE: and 10 more like these"


def test_recurrent_operators_of_others(tmp_path: Path) -> None:
    graph = Graph()
    graph.nodes.append(helper.make_node("DynamicQuantizeLSTM", ["x"], ["y"], name="q", domain="com.microsoft"))
    text = refusal(save(graph, tmp_path / "a.onnx"))
    assert (
        text
        == "FILE: DynamicQuantizeLSTM 'q': belongs to 'com.microsoft', only ONNX's own LSTM, GRU and RNN can be read"
    )


def unrolled(steps: int, *, shared: bool) -> Graph:
    graph = Graph()
    hidden = graph.input("h", 1, 8)
    recurrence = graph.node("Transpose", [graph.weight("R", 8, 8)], "R_t")
    for step in range(steps):
        matrix = recurrence if shared else graph.weight(f"R{step}", 8, 8)
        product = graph.node("MatMul", [hidden, matrix], f"p{step}")
        hidden = graph.node(
            "Tanh", [graph.node("Add", [product, graph.input(f"x{step}", 1, 8)], f"a{step}")], f"h{step}"
        )
    return graph


def test_an_unrolled_layer_is_recognised(tmp_path: Path) -> None:
    text = refusal(save(unrolled(7, shared=True), tmp_path / "a.onnx"))
    assert "unrolled over 7 steps or more, from MatMul 'node_p0' on" in text
    assert text.endswith(": no nn layer is recognised in it, write its cell as a graph (docs/howto/add_a_cell.md)")
    assert "dynamo" not in text


def test_layers_with_weights_of_their_own_are_not_called_unrolled(tmp_path: Path) -> None:
    text = refusal(save(unrolled(7, shared=False), tmp_path / "a.onnx"))
    assert text == "FILE: holds no LSTM, GRU or RNN node; it has 7 MatMul, 7 Add, 7 Tanh, 1 Transpose"


def test_a_cell_written_out_is_suspected(tmp_path: Path) -> None:
    graph = Graph()
    graph.node("Gemm", [graph.input("x", 1, 4), graph.weight("w", 4, 4)], "p")
    for number, kind in enumerate(("Sigmoid", "Sigmoid", "Sigmoid", "Tanh", "Tanh")):
        graph.node(kind, ["p"], f"s{number}")
    for number in range(3):
        graph.node("Mul", ["s0", f"s{number}"], f"m{number}")
    text = refusal(save(graph, tmp_path / "a.onnx"))
    assert "its 1 Gemm, 3 Sigmoid, 2 Tanh and 3 Mul may be a recurrent cell written out" in text


def test_nodes_in_a_circle(tmp_path: Path) -> None:
    graph = Graph()
    one = graph.node("Constant", [], "one", value_ints=[1])
    for name, other in (("a", "b"), ("b", "a")):
        graph.recurrent("LSTM", graph.node("Squeeze", [f"{other}_Y", one], f"{other}_s"), 6, 6, name=name)
    assert "in a circle" in refusal(save(graph, tmp_path / "a.onnx"))


def test_functions_that_call_each_other_without_end(tmp_path: Path) -> None:
    imports = [helper.make_opsetid("local", 1)]
    calls = [helper.make_node("F", ["x"], [f"y{number}"], domain="local") for number in range(10)]
    function = helper.make_function("local", "F", ["x"], ["y0"], calls, imports)
    graph = Graph()
    graph.nodes.append(helper.make_node("F", ["x"], ["y"], domain="local"))
    assert "functions that call each other without end" in refusal(save(graph, tmp_path / "a.onnx", [function]))


def towers(height: int, width: int) -> tuple[Graph, list[Any]]:
    """Make functions of which each calls the next `width` times: width ** height nodes."""
    imports = [helper.make_opsetid("local", 1), helper.make_opsetid("", 18)]
    functions = []
    for level in range(height):
        kind, domain = (f"F{level - 1}", "local") if level else ("Identity", "")
        calls = [helper.make_node(kind, ["x"], [f"y{number}"], domain=domain) for number in range(width)]
        functions.append(helper.make_function("local", f"F{level}", ["x"], ["y0"], calls, imports))
    graph = Graph()
    graph.recurrent("RNN", graph.input("x", 5, 1, 4), 4, 6)
    graph.nodes.append(helper.make_node(f"F{height - 1}", ["x"], ["top"], domain="local"))
    return graph, functions


def test_a_small_file_cannot_ask_for_any_number_of_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    make = onnx_graph.Scope.__post_init__
    monkeypatch.setattr(onnx_graph.Scope, "__post_init__", lambda scope: (made.append(scope), make(scope))[1])
    graph, functions = towers(height=6, width=9)
    path = save(graph, tmp_path / "a.onnx", functions)
    assert path.stat().st_size < 4000
    assert "calls of functions come to more than 50000 nodes" in refusal(path)
    assert made == []
    graph, functions = towers(height=4, width=9)
    scopes = onnx_graph.open_scopes(onnx.load(save(graph, path, functions), load_external_data=False))
    # the main graph, and one scope for each call
    assert len(scopes) == len(made) == 1 + 1 + 9 + 81 + 729


@pytest.mark.slow
def test_a_large_file_without_functions_is_read(tmp_path: Path) -> None:
    graph = Graph()
    graph.recurrent("RNN", graph.input("x", 5, 1, 4), 4, 6)
    name = "rnn_Y"
    for number in range(onnx_graph.MAX_NODES // 10):
        name = graph.node("Identity", [name], f"i{number}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_graph, "MAX_NODES", 100)
        assert len(read_onnx(save(graph, tmp_path / "a.onnx")).models) == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><html></html>", "is no ONNX network"),
        (b"PK\x03\x04" + bytes(100), "is no ONNX network"),
        (b"\x08\x08", "is no ONNX network"),
        (b"\xff" * 1000, "is no ONNX network"),
    ],
)
def test_files_that_are_no_network(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(content)
    assert sentence in refusal(path)


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    assert "folder" in refusal(tmp_path)
    assert "no such file" in refusal(tmp_path / "none.onnx")
    pipe = tmp_path / "pipe.onnx"
    os.mkfifo(pipe)
    assert "device or a pipe" in refusal(pipe)


def test_files_above_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert "more than the 2 GB" in refusal(path)


def test_text_formats_are_not_guessed_from_the_name(tmp_path: Path) -> None:
    graph = Graph()
    graph.recurrent("RNN", graph.input("x", 5, 1, 4), 4, 6)
    assert len(read_onnx(save(graph, tmp_path / "a.json")).models) == 1


def test_damaged_files_never_give_anything_but_a_sentence(tmp_path: Path) -> None:
    graph = Graph()
    first = graph.recurrent("LSTM", graph.input("x", 5, 1, 4), 4, 6, name="l0")
    axes = graph.node("Constant", [], "one", value_ints=[1])
    graph.recurrent("GRU", graph.node("Squeeze", [first, axes], "s"), 6, 6, name="l1")
    whole = save(graph, tmp_path / "a.onnx").read_bytes()
    path, chance = tmp_path / "b.onnx", random.Random(7)
    refused = 0
    count = examples(300)
    for number in range(count):
        content = bytearray(whole)
        if number % 3 == 0:
            del content[chance.randrange(len(content)) :]
        else:
            for _ in range(chance.randint(1, 4)):
                content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content)
        try:
            read_onnx(path)
        except InputError:
            refused += 1
    assert refused > count / 3


def test_without_the_package_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph()
    graph.recurrent("RNN", graph.input("x", 5, 1, 4), 4, 6)
    path = save(graph, tmp_path / "a.onnx")
    load = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == onnx.__name__:
            raise ModuleNotFoundError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"reading ONNX needs the extra: pip install 'lstmsim\[onnx\]'"):
        read_onnx(path)
