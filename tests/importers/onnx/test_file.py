"""Recurrent models in ONNX networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from onnx import helper

from lstmsim.importers.onnx.file import ImportedNetwork, read_onnx
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer
from tests.importers.onnx.graphs import Graph, branches, save

LSTM, GRU, RNN = cell("lstm"), cell("gru"), cell("rnn")


def squeezed(graph: Graph, output: str) -> str:
    """Remove the axis of directions from an output sequence, so that a layer above can read it."""
    return graph.node("Squeeze", [output, graph.node("Constant", [], f"{output}_one", value_ints=[1])], f"{output}_s")


def stacks(network: ImportedNetwork) -> list[tuple[Layer, ...]]:
    return [each.model.layers for each in network.models]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("directions", [1, 2])
def test_one_node(kind: str, directions: int, tmp_path: Path) -> None:
    graph = Graph()
    graph.recurrent(kind, graph.input("x", "steps", 1, 24), 24, 16, directions=directions)
    network = read_onnx(save(graph, tmp_path / "speech.onnx"))
    assert stacks(network) == [(Layer(cell(kind.lower()), 16, 24, directions == 2),)]
    imported = network.models[0]
    assert imported.model.name == "speech"
    assert imported.nodes == (f"{kind} 'rnn'",)
    assert imported.source == f"speech.onnx (written by 'pytest'): {kind} 'rnn'"
    assert imported.notes == ()


@pytest.mark.parametrize("directions", [1, 2])
def test_peepholes_and_the_other_gru_are_cells_of_their_own(directions: int, tmp_path: Path) -> None:
    graph = Graph()
    frames = graph.input("x", 5, 1, 4)
    peepholes = {7: graph.weight("p", directions, 18)}
    graph.recurrent("LSTM", frames, 4, 6, name="l", directions=directions, inputs=peepholes)
    for name, before in (("unsaid", None), ("said", 0)):
        graph.recurrent("GRU", frames, 4, 6, name=name, directions=directions, linear_before_reset=before)
    layers = stacks(read_onnx(save(graph, tmp_path / "a.onnx")))
    both = directions == 2
    assert layers == [(Layer(cell(name), 6, 4, both),) for name in ("lstm-peephole", "gru-lbr0", "gru-lbr0")]


@pytest.mark.parametrize("layout", [0, 1])
def test_states_are_checked_in_both_layouts(layout: int, tmp_path: Path) -> None:
    graph = Graph()
    states = [graph.input(name, *((2, 3, 16) if layout == 0 else (3, 2, 16))) for name in ("h", "c")]
    lengths = graph.input("lengths", 3)
    inputs = {4: lengths, 5: states[0], 6: states[1]}
    graph.recurrent("LSTM", graph.input("x", None, None, 24), 24, 16, directions=2, inputs=inputs, layout=layout)
    assert stacks(read_onnx(save(graph, tmp_path / "a.onnx"))) == [(Layer(LSTM, 16, 24, True),)]


def test_hidden_size_may_be_left_out(tmp_path: Path) -> None:
    graph = Graph()
    graph.recurrent("RNN", graph.input("x", 5, 1, 4), 4, 6, hidden_size=None)
    assert stacks(read_onnx(save(graph, tmp_path / "a.onnx"))) == [(Layer(RNN, 6, 4),)]


def test_a_stack_through_what_exporters_put_between(tmp_path: Path) -> None:
    graph = Graph()
    first = graph.recurrent("LSTM", graph.input("x", 5, 1, 4), 4, 6, name="l0", directions=2)
    turned = graph.node("Transpose", [first], "t", perm=[0, 2, 1, 3])
    shape = graph.node("Constant", [], "shape", value_ints=[0, 0, -1])
    below = graph.node("Dropout", [graph.node("Reshape", [turned, shape], "r")], "d")
    second = graph.recurrent("GRU", below, 12, 5, name="l1")
    flat = graph.node("Squeeze", [second, graph.node("Constant", [], "one", value_ints=[1])], "s")
    graph.recurrent("RNN", graph.node("Cast", [flat], "k", to=1), 5, 3, name="l2")
    network = read_onnx(save(graph, tmp_path / "a.onnx"))
    assert stacks(network) == [(Layer(LSTM, 6, 4, True), Layer(GRU, 5, 12), Layer(RNN, 3, 5))]
    assert network.models[0].nodes == ("LSTM 'l0'", "GRU 'l1'", "RNN 'l2'")


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 0)])
def test_two_directions_put_together_by_hand(order: tuple[int, int], tmp_path: Path) -> None:
    graph = Graph()
    first = graph.recurrent("LSTM", graph.input("x", 5, 1, 4), 4, 6, name="l0", directions=2)
    places = [graph.node("Constant", [], f"n{at}", value_int=side) for at, side in enumerate(order)]
    sides = [graph.node("Gather", [first, place], f"g{at}", axis=1) for at, place in enumerate(places)]
    graph.recurrent("LSTM", graph.node("Concat", sides, "both", axis=-1), 12, 6, name="l1")
    network = read_onnx(save(graph, tmp_path / "a.onnx"))
    # A layer above reads the forward half before the backward half; no other order is a stack.
    assert [len(layers) for layers in stacks(network)] == ([2] if order == (0, 1) else [1, 1])


def test_layers_with_compute_between_are_models_of_their_own(tmp_path: Path) -> None:
    graph = Graph()
    first = graph.recurrent("LSTM", graph.input("x", 5, 1, 4), 4, 6, name="enc/l0")
    product = graph.node("MatMul", [first, graph.weight("m", 6, 6)], "p")
    graph.recurrent("LSTM", product, 6, 6, name="dec/l0")
    network = read_onnx(save(graph, tmp_path / "a.onnx"))
    assert [each.model.name for each in network.models] == ["a-enc-l0", "a-dec-l0"]
    assert stacks(network) == [(Layer(LSTM, 6, 4),), (Layer(LSTM, 6, 6),)]


def skip_connection(graph: Graph, first: str) -> str:
    flat = graph.node("Squeeze", [first], "s")
    return graph.node("Concat", [flat, graph.input("other", 5, 1, 2)], "c", axis=-1)


def two_frames_in_one(graph: Graph, first: str) -> str:
    return graph.node("Reshape", [first, graph.node("Constant", [], "n", value_ints=[-1, 1, 12])], "c")


def last_state(graph: Graph, first: str) -> str:
    return graph.node("Identity", [f"{first}h"], "c")


@pytest.mark.parametrize(
    ("link", "width", "note"),
    [
        (skip_connection, 8, "reads LSTM 'l0' and input 'other' through Concat, Squeeze"),
        (
            two_frames_in_one,
            12,
            "reads LSTM 'l0' through Reshape 'node_c', which folds or splits axes: a model of its own",
        ),
        (last_state, 6, "reads the last state of LSTM 'l0': a model of its own"),
    ],
)
def test_links_that_are_no_stack_are_noted(link: Any, width: int, note: str, tmp_path: Path) -> None:
    graph = Graph()
    first = graph.recurrent("LSTM", graph.input("x", 5, 1, 4), 4, 6, name="l0")
    graph.recurrent("LSTM", link(graph, first), width, 6, name="l1")
    network = read_onnx(save(graph, tmp_path / "a.onnx"))
    assert stacks(network) == [(Layer(LSTM, 6, 4),), (Layer(LSTM, 6, width),)]
    assert note in "".join(network.models[1].notes)


def test_two_readers_of_one_layer(tmp_path: Path) -> None:
    graph = Graph()
    flat = squeezed(graph, graph.recurrent("GRU", graph.input("x", 5, 1, 4), 4, 6, name="base"))
    for name in ("left", "right"):
        graph.recurrent("GRU", flat, 6, 6, name=name)
    network = read_onnx(save(graph, tmp_path / "a.onnx"))
    assert [each.model.name for each in network.models] == ["a-base", "a-left", "a-right"]
    assert "reads GRU 'base', which other layers read too" in network.models[2].notes[0]


def test_branches_give_a_model_each(tmp_path: Path) -> None:
    graph = Graph()
    branches("LSTM", (6, 7), graph, graph.input("x", 5, 1, 4), 4)
    network = read_onnx(save(graph, tmp_path / "a.onnx"))
    assert [each.model.name for each in network.models] == ["a-then-then-rnn", "a-else-else-rnn"]
    assert stacks(network) == [(Layer(LSTM, 6, 4),), (Layer(LSTM, 7, 4),)]
    assert network.models[1].nodes == ("LSTM 'else/rnn' in else_branch of If 'by_rate'",)


def test_equal_branches_are_given_once(tmp_path: Path) -> None:
    graph = Graph()
    branches("LSTM", (6, 6), graph, graph.input("x", 5, 1, 4), 4)
    network = read_onnx(save(graph, tmp_path / "a.onnx"))
    assert [each.model.name for each in network.models] == ["a"]
    text = "stands also for LSTM 'else/rnn' in else_branch of If 'by_rate', of which only one runs"
    assert network.models[0].notes == (text,)


def test_equal_layers_beside_each_other_are_two_models(tmp_path: Path) -> None:
    graph = Graph()
    frames = graph.input("x", 5, 1, 4)
    for name in ("left", "right"):
        graph.recurrent("LSTM", frames, 4, 6, name=name)
    assert len(read_onnx(save(graph, tmp_path / "a.onnx")).models) == 2


@pytest.mark.parametrize(("size", "dead"), [(2, "else"), (0, "then")])
def test_a_branch_that_never_runs_is_named(size: int, dead: str, tmp_path: Path) -> None:
    """A condition that is a size which the file states, as PyTorch's `if len(state)` becomes."""
    graph = Graph()
    frames = graph.input("x", 5, 1, 4)
    shape = graph.node("Shape", [graph.input("state", size, 1, 4) if size else graph.weight("state", 0)], "s")
    first = graph.node("Gather", [shape, graph.node("Constant", [], "at", value_int=0)], "first")
    graph.node("Cast", [first], "rate", to=9)
    branches("LSTM", (6, 7), graph, frames, 4)
    notes = [each.notes for each in read_onnx(save(graph, tmp_path / "a.onnx")).models]
    live = "then" if dead == "else" else "else"
    text = f"LSTM '{dead}/rnn' in {dead}_branch of If 'by_rate' never runs: the file fixes that If 'by_rate' takes its"
    assert sorted(notes) == [(), (f"{text} {live}_branch",)]


def test_branches_above_a_common_layer_are_two_stacks(tmp_path: Path) -> None:
    graph = Graph()
    flat = squeezed(graph, graph.recurrent("LSTM", graph.input("x", 5, 1, 4), 4, 6, name="base"))
    branches("GRU", (3, 2), graph, flat, 6)
    network = read_onnx(save(graph, tmp_path / "a.onnx"))
    assert stacks(network) == [(Layer(LSTM, 6, 4), Layer(GRU, size, 6)) for size in (3, 2)]


def test_a_layer_above_an_if_that_only_rearranges(tmp_path: Path) -> None:
    graph = Graph()
    first = graph.recurrent("LSTM", graph.input("x", 5, 1, 4), 4, 6, name="l0")
    one, other = Graph(), Graph()
    one.node("Identity", [squeezed(one, first)], "p")
    other.node("Reshape", [first, other.node("Constant", [], "kept", value_ints=[0, -1, 6])], "q")
    graph.nodes.append(helper.make_node("If", ["b"], ["y"], then_branch=one.proto("p"), else_branch=other.proto("q")))
    graph.recurrent("LSTM", "y", 6, 6, name="l1")
    assert [len(layers) for layers in stacks(read_onnx(save(graph, tmp_path / "a.onnx")))] == [2]


def test_loop_bodies_see_outer_weights(tmp_path: Path) -> None:
    graph, body = Graph(), Graph()
    body.inputs = [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("go", 9, [])]
    body.recurrent("LSTM", body.input("state", 1, 1, 4), 4, 6)
    graph.tensors, body.tensors = body.tensors, []
    graph.nodes.append(helper.make_node("Loop", ["", "", "x"], ["y"], name="rounds", body=body.proto("go", "rnn_Y")))
    network = read_onnx(save(graph, tmp_path / "a.onnx"))
    assert stacks(network) == [(Layer(LSTM, 6, 4),)]
    assert network.models[0].notes == ("runs inside Loop 'rounds': its steps repeat in each turn",)


def test_local_functions_are_followed(tmp_path: Path) -> None:
    node = helper.make_node("LSTM", ["X", "W", "R"], ["Y"], name="inner")
    node.attribute.add(name="hidden_size", ref_attr_name="units", type=2)
    imports = [helper.make_opsetid("", 18)]
    function = helper.make_function("local", "Layer", ["X", "W", "R"], ["Y"], [node], imports, ["units"])
    graph = Graph()
    frames = graph.input("x", 5, 1, 4)
    for name, width in (("l0", 4), ("l1", 6)):
        weights = [graph.weight(f"{name}_W", 1, 24, width), graph.weight(f"{name}_R", 1, 24, 6)]
        call = helper.make_node("Layer", [frames, *weights], [name], name=f"call_{name}", domain="local", units=6)
        graph.nodes.append(call)
        frames = squeezed(graph, name)
    network = read_onnx(save(graph, tmp_path / "a.onnx", [function]))
    assert stacks(network) == [(Layer(LSTM, 6, 4), Layer(LSTM, 6, 6))]
    assert network.models[0].nodes[1] == "LSTM 'inner' in function Layer 'call_l1'"


def test_odd_file_names_become_model_names_that_model_files_allow(tmp_path: Path) -> None:
    graph = Graph()
    graph.recurrent("RNN", graph.input("x", 5, 1, 4), 4, 6)
    name = read_onnx(save(graph, tmp_path / "a\nb .onnx")).models[0].model.name
    assert name == "a-b"
