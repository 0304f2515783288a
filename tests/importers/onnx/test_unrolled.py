"""Cells that PyTorch's exporters write out step by step become layers again, or are refused by a sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.scenario_file import load_model
from lstmsim.files.scenario.written import write_model_file
from lstmsim.importers.imported import ImportedModel
from lstmsim.importers.onnx.file import read_onnx
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from tests.importers.onnx.runs import theirs

HIDDEN, INPUT, STEPS = 4, 5, 4
GATES = {"lstm": 4, "gru": 3, "rnn": 1, "rnn-relu": 1}


class Unrolled:
    """A network as torch 2.13 writes nn.LSTMCell, nn.GRUCell or nn.RNNCell in a loop.

    folded: whether the first product with h is worked out, as the dynamo exporter does it; the TorchScript exporter
        does not.
    """

    def __init__(self, kind: str, *, folded: bool, bias: bool = True, seed: int = 0) -> None:
        self.kind, self.folded, self.bias = kind, folded, bias
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []
        self.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, 1, INPUT])]
        self.arrays: dict[str, NDArray[np.float32]] = {}

    def op(self, kind: str, *inputs: str, parts: int = 1, **attributes: Any) -> list[str]:
        outputs = [f"v{len(self.nodes)}_{part}" for part in range(parts)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=f"n{len(self.nodes)}", **attributes))
        return outputs

    def stored(self, name: str, array: Any) -> str:
        array = np.asarray(array)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        if name not in self.arrays:
            self.arrays[name] = array
            self.tensors.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, cell: str, width: int) -> None:
        rows = GATES[self.kind] * HIDDEN
        for name, shape in (("weight_ih", (rows, width)), ("weight_hh", (rows, HIDDEN))):
            self.stored(f"{cell}.{name}", self.random.normal(size=shape) * 0.5)
        for name in ("bias_ih", "bias_hh") if self.bias else ():
            self.stored(f"{cell}.{name}", self.random.normal(size=rows) * 0.5)

    def product(self, cell: str, side: str, source: str) -> str:
        biases = [f"{cell}.bias_{side}"] if self.bias else []
        if side == "hh" and self.folded and source in self.arrays:
            value = self.arrays[source] @ self.arrays[f"{cell}.weight_hh"].T
            return self.stored(f"{cell}.folded", value + (self.arrays[biases[0]] if biases else 0))
        if biases or self.folded:
            return self.op("Gemm", source, f"{cell}.weight_{side}", *biases, transB=1)[0]
        turned = self.stored(f"{cell}.turned_{side}", self.arrays[f"{cell}.weight_{side}"].T)
        return self.op("MatMul", source, turned)[0]

    def parts(self, whole: str) -> list[str]:
        count = GATES[self.kind]
        if self.folded:
            return self.op("Split", whole, parts=count, axis=-1, num_outputs=count)
        return self.op("Split", whole, self.stored("sizes", np.full(count, HIDDEN)), parts=count, axis=1)

    def step(self, cell: str, x: str, h: str, c: str) -> tuple[str, str]:
        """The cell's equations in the order of torch's decompositions."""
        if self.kind == "gru":
            own, other = self.parts(self.product(cell, "ih", x)), self.parts(self.product(cell, "hh", h))
            reset, update = (self.op("Sigmoid", *self.op("Add", other[gate], own[gate]))[0] for gate in range(2))
            new = self.op("Tanh", *self.op("Add", own[2], *self.op("Mul", other[2], reset)))[0]
            return self.op("Add", *self.op("Mul", *self.op("Sub", h, new), update), new)[0], c
        whole = self.op("Add", self.product(cell, "hh", h), self.product(cell, "ih", x))[0]
        if self.kind != "lstm":
            return self.op("Tanh" if self.kind == "rnn" else "Relu", whole)[0], c
        i, f, g, o = self.parts(whole)
        i, f, o = (self.op("Sigmoid", each)[0] for each in (i, f, o))
        kept, added = self.op("Mul", f, c), self.op("Mul", i, *self.op("Tanh", g))
        c = self.op("Add", *kept, *added)[0]
        return self.op("Mul", o, *self.op("Tanh", c))[0], c

    def frame(self, at: int, *, how: str = "Gather") -> str:
        if how == "Gather":
            return self.op("Gather", "x", self.stored(f"at{at}", np.array(at)), axis=0)[0]
        places = [self.stored(f"at{each}s", np.array([each])) for each in (at, at + 1, 0)]
        return self.op("Squeeze", *self.op("Slice", "x", *places), places[2])[0]

    def zero(self) -> str:
        return self.stored("zeros", np.zeros((1, HIDDEN)))

    def model(self, outputs: list[str]) -> Any:
        axis = self.stored("axis", np.array([0]))
        rows = [self.op("Unsqueeze", each, axis)[0] for each in outputs]
        self.nodes.append(helper.make_node("Concat", rows, ["y"], axis=0))
        output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "g", self.inputs, [output], initializer=self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def layer(net: Unrolled, *, h: str = "", c: str = "", order: list[int] | None = None, how: str = "Gather") -> Any:
    """Make one cell over all frames in an order; its outputs are in the order of time."""
    net.weights("cell", INPUT)
    outputs = {}
    h, c = h or net.zero(), c or net.zero()
    for at in order or range(STEPS):
        h, c = net.step("cell", net.frame(at, how=how), h, c)
        outputs[at] = h
    return net.model([outputs[at] for at in sorted(outputs)])


def imported(model: Any, folder: Path) -> list[ImportedModel]:
    (folder / "a.onnx").write_bytes(model.SerializeToString())
    return list(read_onnx(folder / "a.onnx", weights=True).models)


def refusal(model: Any, folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        imported(model, folder)
    return str(caught.value)


def check(model: Any, single: ImportedModel, **more: NDArray[np.float32]) -> None:
    """Check that the imported model computes what the network does."""
    x = np.random.default_rng(9).normal(size=(STEPS, 1, INPUT)).astype(np.float32)
    y = theirs(model, {"x": x, **more})[:, 0]
    assert single.network is not None
    stimulus = single.network.stimulus(x[:, 0].astype(np.float64))
    np.testing.assert_allclose(run_network(float_arithmetic(single.network), stimulus).output(), y, atol=1e-6)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("folded", [False, True], ids=["torchscript", "dynamo"])
@pytest.mark.parametrize("kind", GATES)
def test_a_cell_in_a_loop_is_one_layer(kind: str, folded: bool, bias: bool, tmp_path: Path) -> None:
    model = layer(Unrolled(kind, folded=folded, bias=bias))
    (single,) = imported(model, tmp_path)
    own = single.model.layers[0]
    assert (own.cell.name, own.hidden, own.input, own.reverse) == (kind, HIDDEN, INPUT, False)
    assert single.steps == STEPS
    assert "written out over 4 steps in the order of the frames" in single.notes[0]
    check(model, single)


def test_the_model_file_states_the_steps(tmp_path: Path) -> None:
    (single,) = imported(layer(Unrolled("lstm", folded=True)), tmp_path)
    text = write_model_file(single.model, tmp_path / "m.yaml", source="s", steps=single.steps)
    assert "\nsteps: 4\n" in text
    assert load_model(tmp_path / "m.yaml") == single.model


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("how", ["Gather", "Slice"])
def test_frames_from_the_last_to_the_first_are_a_reverse_layer(kind: str, how: str, tmp_path: Path) -> None:
    model = layer(Unrolled(kind, folded=True), order=[3, 2, 1, 0], how=how)
    (single,) = imported(model, tmp_path)
    assert single.model.layers[0].reverse
    check(model, single)


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_cells_above_each_other_are_a_stack(folded: bool, turned: bool, tmp_path: Path) -> None:
    net = Unrolled("lstm", folded=folded)
    net.weights("a", INPUT)
    net.weights("b", HIDDEN)
    h, c, below = net.zero(), net.zero(), []
    for at in range(STEPS):
        h, c = net.step("a", net.frame(at), h, c)
        below.append(h)
    h, c, above = net.zero(), net.zero(), []
    for each in below[::-1] if turned else below:
        h, c = net.step("b", each, h, c)
        above.append(h)
    model = net.model(above[::-1] if turned else above)
    (single,) = imported(model, tmp_path)
    assert [each.reverse for each in single.model.layers] == [False, turned]
    assert single.nodes == ("4 steps of a", "4 steps of b")
    check(model, single)


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_states_that_the_file_fixes_are_kept(kind: str, folded: bool, tmp_path: Path) -> None:
    net = Unrolled(kind, folded=folded, seed=4)
    h, c = (net.stored(name, net.random.normal(size=(1, HIDDEN))) for name in ("h0", "c0"))
    model = layer(net, h=h, c=c)
    (single,) = imported(model, tmp_path)
    assert single.network is not None
    assert set(single.network.initial[0, 0]) == ({"h", "c"} if kind == "lstm" else {"h"})
    check(model, single)


def test_states_that_are_inputs_begin_at_0_and_that_is_said(tmp_path: Path) -> None:
    net = Unrolled("lstm", folded=False)
    for name in ("first_h", "first_c"):
        net.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, HIDDEN]))
    model = layer(net, h="first_h", c="first_c")
    (single,) = imported(model, tmp_path)
    assert single.notes[1:] == (
        "initial h is the input 'first_h'; a run begins at 0",
        "initial c is the input 'first_c'; a run begins at 0",
    )
    zero = np.zeros((1, HIDDEN), np.float32)
    check(model, single, first_h=zero, first_c=zero)


def test_states_that_are_computed_are_named(tmp_path: Path) -> None:
    net = Unrolled("gru", folded=False)
    net.inputs.append(helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, HIDDEN]))
    (single,) = imported(layer(net, h=net.op("Sigmoid", "image")[0]), tmp_path)
    assert single.model.states_from == "node Sigmoid 'n0'"


def test_a_decoder_that_feeds_back_is_refused(tmp_path: Path) -> None:
    net = Unrolled("lstm", folded=False)
    net.weights("cell", HIDDEN)
    h, c = net.zero(), net.zero()
    net.inputs.append(helper.make_tensor_value_info("start", TensorProto.FLOAT, [1, HIDDEN]))
    y, outputs = "start", []
    for _ in range(3):
        h, c = net.step("cell", y, h, c)
        y = h
        outputs.append(h)
    text = refusal(net.model(outputs), tmp_path)
    assert "a lstm written out over 3 steps" in text
    assert "step 1 reads the output of the step before, as a decoder does that feeds back its output" in text


@pytest.mark.parametrize(
    ("order", "sentence"),
    [([0, 2, 1, 3], "its steps read frames 0, 2, 1, 3: only all of them in order"), ([1, 2, 3], "read frames 1, 2, 3")],
)
def test_frames_out_of_order_are_refused(order: list[int], sentence: str, tmp_path: Path) -> None:
    assert sentence in refusal(layer(Unrolled("gru", folded=True), order=order), tmp_path)


def test_fewer_steps_than_frames_are_said(tmp_path: Path) -> None:
    (single,) = imported(layer(Unrolled("gru", folded=True), order=[0, 1, 2]), tmp_path)
    assert single.notes[-1] == "cell has 3 steps for 4 frames: no step of it reads the others"


def test_what_is_done_with_a_frame_before_it_is_read_is_refused(tmp_path: Path) -> None:
    net = Unrolled("gru", folded=True)
    net.weights("cell", INPUT)
    h, outputs = net.zero(), []
    for at in range(STEPS):
        h, _ = net.step("cell", net.op("Relu", net.frame(at))[0], h, "")
        outputs.append(h)
    assert "step 0 reads Relu 'n1', which is not shown to be frame 0 of one tensor" in refusal(
        net.model(outputs), tmp_path
    )


@pytest.mark.parametrize("part", ["weight_ih", "weight_hh", "bias_ih", "bias_hh"])
def test_steps_with_weights_of_their_own_are_no_layer(part: str, tmp_path: Path) -> None:
    """Only the last step is changed; if it were read like the other steps, the outputs would be wrong."""
    net = Unrolled("lstm", folded=False)
    model = layer(net)
    other = model.graph.initializer.add()
    other.CopyFrom(numpy_helper.from_array(net.arrays[f"cell.{part}"] * 1.01, "other"))
    last = [node for node in model.graph.node if f"cell.{part}" in node.input][-1]
    last.input[list(last.input).index(f"cell.{part}")] = "other"
    if part.startswith("bias"):
        assert "step 3 has a bias of its own" in refusal(model, tmp_path)
        return
    # the last step is another cell; the other three steps are a layer, and a note says so
    (single,) = imported(model, tmp_path)
    assert single.steps == STEPS - 1
    assert single.notes[-1] == "cell has 3 steps for 4 frames: no step of it reads the others"


def test_weights_that_are_stored_once_for_each_step_are_compared(tmp_path: Path) -> None:
    net = Unrolled("lstm", folded=False)
    model = layer(net)
    for at, node in enumerate(model.graph.node):
        for place, name in enumerate(node.input):
            if name.startswith("cell."):
                model.graph.initializer.append(numpy_helper.from_array(net.arrays[name], f"{name}_{at}"))
                node.input[place] = f"{name}_{at}"
    (single,) = imported(model, tmp_path)
    check(model, single)


def nodes_of_one_step(kind: str, order: list[int], *, cells: int = 1, feed_back: bool = False) -> Any:
    """Write cells as PyTorch's exporter of scripted modules does: a node for each turn, which passes its states on."""
    net = Unrolled("lstm", folded=False)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    axis = net.stored("axis", np.array([0]))
    states: dict[int, list[str]] = {}
    for number in range(cells):
        width = HIDDEN if number or feed_back else INPUT
        for name, shape in (
            ("W", (1, gates * HIDDEN, width)),
            ("R", (1, gates * HIDDEN, HIDDEN)),
            ("B", (1, 2 * gates * HIDDEN)),
        ):
            net.stored(f"{number}.{name}", net.random.normal(size=shape) * 0.5)
        states[number] = [net.stored(f"{number}.{name}0", net.random.normal(size=(1, HIDDEN))) for name in "hc"]
    outputs = {}
    for at in order:
        x = states[0][0] if feed_back else net.frame(at)
        for number in range(cells):
            begin = [net.op("Unsqueeze", each, axis)[0] for each in states[number][: 2 if kind == "LSTM" else 1]]
            names = [net.op("Unsqueeze", x, axis)[0], *(f"{number}.{name}" for name in "WRB"), "", *begin]
            given = {"linear_before_reset": 1} if kind == "GRU" else {}
            given_states = net.op(kind, *names, parts=1 + len(begin), hidden_size=HIDDEN, **given)[1:]
            states[number] = [net.op("Squeeze", each, axis)[0] for each in given_states]
            x = states[number][0]
        outputs[at] = x
    return net.model([outputs[at] for at in sorted(outputs)])


CHAINS = [("LSTM", [0, 1, 2, 3], 1), ("GRU", [3, 2, 1, 0], 1), ("RNN", [0, 1, 2, 3], 1), ("LSTM", [0, 1, 2, 3], 2)]


@pytest.mark.parametrize(("kind", "order", "cells"), CHAINS)
def test_nodes_of_one_step_are_one_layer(kind: str, order: list[int], cells: int, tmp_path: Path) -> None:
    model = nodes_of_one_step(kind, order, cells=cells)
    (single,) = imported(model, tmp_path)
    assert len(single.model.layers) == cells
    assert (single.steps, single.model.layers[0].reverse) == (STEPS, order[0] > 0)
    check(model, single)
    table = single.operators
    assert table is not None
    assert table.left_out == 0


def test_nodes_of_one_step_that_feed_back_are_refused(tmp_path: Path) -> None:
    text = refusal(nodes_of_one_step("LSTM", [0, 1, 2, 3], feed_back=True), tmp_path)
    assert "4 steps that begin at LSTM" in text
    assert "step 0 reads what is not shown to be frame 0 of one tensor" in text


def changed(model: Any, random: np.random.Generator) -> None:
    """Replace one operation, or exchange two operands or results."""
    others = {"Sigmoid": "Tanh", "Tanh": "Sigmoid", "Add": "Mul", "Mul": "Add", "Sub": "Add"}
    nodes = model.graph.node[: len(model.graph.node) - STEPS - 1]
    node = nodes[random.integers(len(nodes))]
    if node.op_type in others and random.integers(2):
        node.op_type = others[node.op_type]
        return
    alike = [each for each in nodes if each.op_type == node.op_type]
    other = alike[random.integers(len(alike))]
    if len(node.output) > 1:
        node.output[0], node.output[1] = node.output[1], node.output[0]
    elif len(node.input) > 1:
        node.input[1], other.input[1] = other.input[1], node.input[1]


@pytest.mark.slow
def test_a_changed_operation_is_never_read_as_the_cell(tmp_path: Path) -> None:
    """A changed network is refused, or the import still computes what the network does."""
    refused = kept = 0
    for seed in range(int(os.environ.get("LSTMSIM_EXAMPLES", 40))):
        random = np.random.default_rng(seed)
        model = layer(Unrolled(["lstm", "gru", "rnn"][seed % 3], folded=seed % 2 == 0, seed=seed))
        changed(model, random)
        try:
            theirs(model, {"x": np.zeros((STEPS, 1, INPUT), np.float32)})
        except Exception:
            continue
        try:
            models = imported(model, tmp_path)
        except InputError:
            refused += 1
            continue
        if len(models) == 1 and models[0].steps == STEPS:
            kept += 1
            check(model, models[0])
    assert refused > 10
    assert kept > 5
