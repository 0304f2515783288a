"""Cells that people write with products and activations, single steps, and nn.RNN by PyTorch's newer exporter."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from lstmsim.base.errors import InputError
from lstmsim.importers.imported import ImportedModel
from lstmsim.importers.onnx.file import read_onnx
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from tests.importers.onnx.runs import theirs
from tests.importers.onnx.test_unrolled import HIDDEN, INPUT, STEPS, Unrolled, check, imported, refusal


class Hand(Unrolled):
    """A network under construction, with operations by name."""

    def __init__(self, seed: int = 0, folded: bool = False) -> None:
        super().__init__("lstm", folded=folded, seed=seed)
        self.one = self.stored("one", np.float32(1))

    def __getattr__(self, kind: str) -> Callable[..., str]:
        if kind not in ("Add", "Sub", "Mul", "Tanh", "Sigmoid", "Relu"):
            raise AttributeError(kind)
        return lambda *inputs: self.op(kind, *inputs)[0]

    def linear(self, name: str, source: str, width: int, units: int) -> str:
        self.stored(f"{name}.weight", self.random.normal(size=(units, width)) * 0.5)
        self.stored(f"{name}.bias", self.random.normal(size=units) * 0.5)
        return self.op("Gemm", source, f"{name}.weight", f"{name}.bias", transB=1)[0]

    def joined(self, *names: str) -> str:
        return self.op("Concat", *names, axis=1)[0]

    def cut(self, whole: str, count: int) -> list[str]:
        """Parts as `chunk` becomes: bounds worked out from the shape."""
        shape = self.op("Gather", *self.op("Shape", whole), self.stored("axis1", np.array([1])), axis=0)[0]
        size = self.op("Div", self.Add(shape, self.stored("rest", np.array([count - 1]))), self.number(count))[0]
        ends = [self.number(0), *(self.Mul(size, self.number(part + 1)) for part in range(count))]
        return [self.op("Slice", whole, *pair, "axis1")[0] for pair in itertools.pairwise(ends)]

    def number(self, number: int) -> str:
        return self.stored(f"number{number}", np.array([number]))

    def sliced(self, whole: str, count: int) -> list[str]:
        """Parts as `a[:, 4:8]` becomes, the last without an end."""
        ends = [HIDDEN * part for part in range(count)] + [2**63 - 1]
        places = [[self.number(each) for each in (*pair, 1, 1)] for pair in itertools.pairwise(ends)]
        return [self.op("Slice", whole, *each)[0] for each in places]

    def split(self, whole: str, count: int) -> list[str]:
        return self.op("Split", whole, parts=count, axis=-1, num_outputs=count)


def lstm(net: Hand, gates: list[str], c: str) -> tuple[str, str]:
    i, f, g, o = gates
    c = net.Add(net.Mul(net.Sigmoid(f), c), net.Mul(net.Sigmoid(i), net.Tanh(g)))
    return net.Mul(net.Sigmoid(o), net.Tanh(c)), c


def two_linears(cut: str) -> Any:
    def step(net: Hand, x: str, h: str, c: str) -> tuple[str, str]:
        whole = net.Add(net.linear("w", x, INPUT, 4 * HIDDEN), net.linear("u", h, HIDDEN, 4 * HIDDEN))
        return lstm(net, getattr(net, cut)(whole, 4), c)

    return step


def one_linear(net: Hand, x: str, h: str, c: str) -> tuple[str, str]:
    """The gates in another order."""
    f, i, o, g = net.split(net.linear("l", net.joined(x, h), INPUT + HIDDEN, 4 * HIDDEN), 4)
    return lstm(net, [i, f, g, o], c)


def h_before_x(net: Hand, x: str, h: str, c: str) -> tuple[str, str]:
    return lstm(net, net.sliced(net.linear("l", net.joined(h, x), INPUT + HIDDEN, 4 * HIDDEN), 4), c)


def a_linear_for_each_gate(net: Hand, x: str, h: str, c: str) -> tuple[str, str]:
    both = net.joined(x, h)
    return lstm(net, [net.linear(f"l{gate}", both, INPUT + HIDDEN, HIDDEN) for gate in "ifgo"], c)


def gates_added_apart(net: Hand, x: str, h: str, c: str) -> tuple[str, str]:
    own = net.split(net.linear("w", x, INPUT, 4 * HIDDEN), 4)
    other = net.sliced(net.linear("u", h, HIDDEN, 4 * HIDDEN), 4)
    return lstm(net, [net.Add(*each) for each in zip(own, other, strict=True)], c)


def new_h(net: Hand, form: int, h: str, z: str, n: str) -> str:
    if form == 0:
        return net.Add(net.Mul(net.Sub(net.one, z), n), net.Mul(z, h))
    if form == 1:
        return net.Add(net.Mul(z, net.Sub(h, n)), n)
    if form == 2:
        return net.Add(net.Mul(net.Sub(net.one, z), h), net.Mul(z, n))
    return net.Add(h, net.Mul(z, net.Sub(n, h)))


def gru(form: int) -> Any:
    """The reset gate after the product; r and z from sums, n apart."""

    def step(net: Hand, x: str, h: str, c: str) -> tuple[str, str]:
        whole = net.Add(net.linear("a", x, INPUT, 2 * HIDDEN), net.linear("b", h, HIDDEN, 2 * HIDDEN))
        r, z = net.split(net.Sigmoid(whole), 2)
        other = net.linear("d", h, HIDDEN, HIDDEN)
        n = net.Tanh(net.Add(net.linear("c", x, INPUT, HIDDEN), net.Mul(r, other)))
        return new_h(net, form, h, z, n), c

    return step


def gru_lbr0(form: int) -> Any:
    """The reset gate before the product: two products of vectors put together."""

    def step(net: Hand, x: str, h: str, c: str) -> tuple[str, str]:
        z, r = net.cut(net.Sigmoid(net.linear("g", net.joined(x, h), INPUT + HIDDEN, 2 * HIDDEN)), 2)
        n = net.Tanh(net.linear("n", net.joined(x, net.Mul(r, h)), INPUT + HIDDEN, HIDDEN))
        return new_h(net, form, h, z, n), c

    return step


def rnn(net: Hand, x: str, h: str, c: str) -> tuple[str, str]:
    return net.Tanh(net.linear("l", net.joined(x, h), INPUT + HIDDEN, HIDDEN)), c


CELLS = {
    "split": ("lstm", two_linears("split")),
    "chunk": ("lstm", two_linears("cut")),
    "slice": ("lstm", two_linears("sliced")),
    "one linear": ("lstm", one_linear),
    "h before x": ("lstm", h_before_x),
    "four": ("lstm", a_linear_for_each_gate),
    "apart": ("lstm", gates_added_apart),
    "rnn": ("rnn", rnn),
    **{f"gru {form}": ("gru", gru(form)) for form in range(4)},
    **{f"gru-lbr0 {form}": ("gru-lbr0", gru_lbr0(form)) for form in range(4)},
}


def loop(step: Any, seed: int = 0) -> Any:
    net = Hand(seed)
    h, c, outputs = net.zero(), net.zero(), []
    for at in range(STEPS):
        h, c = step(net, net.frame(at), h, c)
        outputs.append(h)
    return net.model(outputs)


@pytest.mark.halved
@pytest.mark.parametrize("name", CELLS)
def test_a_cell_written_by_hand_is_a_layer(name: str, tmp_path: Path) -> None:
    kind, step = CELLS[name]
    model = loop(step)
    (single,) = imported(model, tmp_path)
    own = single.model.layers[0]
    assert (own.cell.name, own.hidden, own.input, single.steps) == (kind, HIDDEN, INPUT, STEPS)
    other_sign = "gate z has its weights with the other sign: 1 - sigmoid(a) is sigmoid(-a)"
    assert (other_sign in single.notes) == (name[-1] in "23")
    check(model, single)


def test_weights_of_gates_that_differ_are_refused(tmp_path: Path) -> None:
    """One gate reads another vector: everything else fits."""

    def step(net: Hand, x: str, h: str, c: str) -> tuple[str, str]:
        both, other = net.joined(x, h), net.joined(net.Relu(x), h)
        reads = {"i": both, "f": both, "g": both, "o": other}
        return lstm(net, [net.linear(f"l{gate}", reads[gate], INPUT + HIDDEN, HIDDEN) for gate in "ifgo"], c)

    assert "step 1 is no sum of one product with x and one with h" in refusal(loop(step), tmp_path)


def test_gates_of_sizes_that_only_an_input_tells_are_refused(tmp_path: Path) -> None:
    def step(net: Hand, x: str, h: str, c: str) -> tuple[str, str]:
        net.inputs.append(helper.make_tensor_value_info("sizes", TensorProto.INT64, [4]))
        whole = net.Add(net.linear("w", x, INPUT, 4 * HIDDEN), net.linear("u", h, HIDDEN, 4 * HIDDEN))
        return lstm(net, net.op("Split", whole, "sizes", parts=4, axis=-1), c)

    assert "what looks like a recurrent layer" in refusal(loop(step), tmp_path)


def test_an_equation_of_no_nn_layer_is_pointed_to_its_page(tmp_path: Path) -> None:
    def minimal(net: Hand, x: str, h: str, c: str) -> tuple[str, str]:
        f = net.Sigmoid(net.linear("f", net.joined(x, h), INPUT + HIDDEN, HIDDEN))
        return net.Add(net.Mul(f, h), net.Mul(net.Sub(net.one, f), net.Tanh(net.linear("n", x, INPUT, HIDDEN)))), c

    text = refusal(loop(minimal), tmp_path)
    assert "what looks like a recurrent layer unrolled over 4 steps" in text
    assert text.endswith("write its cell as a graph (docs/howto/add_a_cell.md)")


def exported(layers: int, *, kind: str = "Tanh", turned: bool = False, bias: bool = True) -> Any:
    """Write nn.RNN as torch 2.13 does: one product of all frames, of which each step has a slice."""
    net, source, width = Hand(3), "x", INPUT
    for layer in range(layers):
        for name, shape in (("ih", (width, HIDDEN)), ("hh", (HIDDEN, HIDDEN))):
            net.stored(f"w_{name}_l{layer}", net.random.normal(size=shape) * 0.5)
            net.stored(f"r.bias_{name}_l{layer}", net.random.normal(size=HIDDEN) * 0.5 * bias)
        whole = net.Add(net.op("MatMul", source, f"w_ih_l{layer}")[0], f"r.bias_ih_l{layer}")
        if turned:
            whole = net.op("Slice", whole, *map(net.number, (-1, -(2**63), 0, -1)))[0]
        h = net.stored(f"folded_l{layer}", net.arrays[f"r.bias_hh_l{layer}"].reshape(1, 1, -1))
        outputs = []
        for at in range(STEPS):
            bounds = [net.number(each) for each in (at, at + 1, 0)]
            frame = net.op("Squeeze", *net.op("Slice", whole, *bounds), net.number(0))[0]
            if at:
                h = net.Add(net.op("MatMul", h, f"w_hh_l{layer}")[0], f"r.bias_hh_l{layer}")
            h = net.op(kind, net.Add(h, frame))[0]
            outputs.append(h)
        source, width = net.op("Concat", *(outputs[::-1] if turned else outputs), axis=0)[0], HIDDEN
    net.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, 1, INPUT])]
    net.nodes.append(helper.make_node("Identity", [source], ["y"]))
    graph = helper.make_graph(
        net.nodes, "g", net.inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], net.tensors
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize(
    ("layers", "given"), [(1, {}), (1, {"kind": "Relu"}), (2, {}), (1, {"turned": True}), (2, {"bias": False})], ids=str
)
def test_rnn_by_the_newer_exporter(layers: int, given: dict[str, Any], tmp_path: Path) -> None:
    model = exported(layers, **given)
    (single,) = imported(model, tmp_path)
    assert [each.cell.name for each in single.model.layers] == ["rnn-relu" if "kind" in given else "rnn"] * layers
    assert single.model.layers[0].reverse == given.get("turned", False)
    assert single.nodes == tuple(f"4 steps of r.l{number}" for number in range(layers))
    assert single.steps == STEPS
    assert single.operators is not None
    assert single.operators.left_out == 0
    check(model, single)


@pytest.mark.parametrize(("bounds", "whole"), [((-1, -(2**63)), True), ((-1, -STEPS - 1), True), ((-1, -STEPS), False)])
def test_frames_of_a_part_turned_around_are_not_those_of_the_whole(
    bounds: tuple[int, int], whole: bool, tmp_path: Path
) -> None:
    """`x[-1:-n:-1]` has the last frame first, but not the first one."""
    net = Hand()
    tensor = net.op("Slice", "x", *map(net.number, (*bounds, 0, -1)))[0]
    h, outputs = net.zero(), []
    for at in range(STEPS if whole else STEPS - 1):
        frame = net.op("Gather", tensor, net.stored(f"at{at}", np.array(at)), axis=0)[0]
        h, _ = rnn(net, frame, h, "")
        outputs.append(h)
    model = net.model(outputs[::-1] if whole else outputs)
    (single,) = imported(model, tmp_path)
    assert (single.model.layers[0].reverse, single.steps) == (whole, STEPS if whole else STEPS - 1)
    assert ("l.weight reads what Slice 'n0' gives: a run takes that as its frames" in single.notes) == (not whole)
    if whole:
        check(model, single)


def one_step(kind: str, *, width: int = INPUT, names: tuple[str, ...] = ("x", "h", "c"), whole: bool = False) -> Any:
    """Write nn.LSTMCell, nn.GRUCell or nn.RNNCell once, with its states as inputs, or as parts of one input."""
    net = Unrolled(kind, folded=False, seed=5)
    net.weights("rnn", width)
    shapes = [[1, width], [1, HIDDEN], [1, HIDDEN]][: 3 if kind == "lstm" else 2]
    states = list(names[1:])
    if whole:
        shapes, names = [shapes[0], [2, 1, HIDDEN]], (names[0], "state")
        states = [net.op("Gather", "state", net.stored(f"at{at}", np.array(at)), axis=0)[0] for at in range(2)]
    net.inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip(names, shapes, strict=False)
    ]
    h, c = net.step("rnn", names[0], states[0], states[-1])
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ([h, c] if c != h else [h])]
    if kind != "lstm":
        outputs = outputs[:1]
    graph = helper.make_graph(net.nodes, "g", net.inputs, outputs, initializer=net.tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def run_steps(model: Any, single: ImportedModel, width: int, kind: str, names: tuple[str, ...]) -> None:
    """Feed the network its own states for several steps; compare with one run of the imported model."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(9).normal(size=(STEPS, 1, width)).astype(np.float32)
    states, rows = [np.zeros((1, HIDDEN), np.float32)] * (2 if kind == "lstm" else 1), []
    for each in x:
        feeds = dict(zip(names, (each, *states), strict=False))
        if len(session.get_inputs()) == 2 and kind == "lstm":
            feeds = {names[0]: each, "state": np.stack(states)}
        states = session.run(None, feeds)
        rows.append(states[0][0])
    assert single.network is not None
    outputs = run_network(float_arithmetic(single.network), single.network.stimulus(np.float64(x[:, 0]))).output()
    np.testing.assert_allclose(outputs, rows, atol=1e-6)


STEP_CASES: list[tuple[str, dict[str, Any]]] = [
    ("lstm", {}),
    ("gru", {}),
    ("rnn", {}),
    ("rnn-relu", {}),
    ("lstm", {"width": HIDDEN}),
    ("rnn", {"width": HIDDEN}),
    ("lstm", {"whole": True, "width": HIDDEN}),
]


@pytest.mark.parametrize(("kind", "given"), STEP_CASES, ids=str)
def test_one_step_with_its_states_as_inputs(kind: str, given: dict[str, Any], tmp_path: Path) -> None:
    model, width = one_step(kind, **given), given.get("width", INPUT)
    (single,) = imported(model, tmp_path)
    own = single.model.layers[0]
    assert (own.cell.name, own.hidden, own.input, single.steps) == (kind, HIDDEN, width, None)
    assert single.nodes == ("1 step of rnn",)
    assert single.notes[0].startswith("rnn is one step, up to ")
    which = "part of the input 'state'" if "whole" in given else "the input 'h'"
    assert f"initial h is {which}; a run begins at 0" in single.notes
    run_steps(model, single, width, kind, ("x", "h", "c"))


@pytest.mark.parametrize(("h", "named"), [("history", False), ("hidden_state", True), ("h0", True)])
def test_a_step_whose_h_nothing_tells_is_refused(h: str, named: bool, tmp_path: Path) -> None:
    """Two inputs of equal width, and matrices without names of torch: the name of an input decides, or nothing."""
    names = ("first", h, "third")
    model = one_step("lstm", width=HIDDEN, names=names)
    for tensor in model.graph.initializer:
        for node in model.graph.node:
            for place, name in enumerate(node.input):
                if name == tensor.name:
                    node.input[place] = name.replace("rnn.weight", "matrix")
        tensor.name = tensor.name.replace("rnn.weight", "matrix")
    if not named:
        text = "a step of a lstm up to Mul 'n12': nothing tells which of 'first' and 'history' is h and which is x"
        assert text in refusal(model, tmp_path)
        return
    (single,) = imported(model, tmp_path)
    run_steps(model, single, HIDDEN, "lstm", names)


def test_a_dense_layer_of_two_inputs_is_no_step(tmp_path: Path) -> None:
    net = Hand()
    net.inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, HIDDEN]) for name in ("a", "b")]
    y = net.Tanh(net.Add(net.linear("v", "a", HIDDEN, HIDDEN), net.linear("w", "b", HIDDEN, HIDDEN)))
    assert "holds no LSTM, GRU or RNN node" in refusal(net.model([y]), tmp_path)


@pytest.mark.parametrize("every", [False, True])
def test_a_loop_that_gives_its_cell_state(every: bool, tmp_path: Path) -> None:
    """The exporter drops the last h, which nobody reads: the last step is matched from its c."""
    net = Hand()
    states, h, c = [], net.zero(), net.zero()
    for at in range(STEPS):
        h, c = two_linears("split")(net, net.frame(at), h, c)
        states.append(c)
    del net.nodes[-3:]
    (single,) = imported(net.model(states if every else states[-1:]), tmp_path)
    assert single.steps == STEPS
    assert single.notes[1:] == ("the network reads only the cell state c of u.weight: what a run gives is h",)


@pytest.mark.parametrize("instead", ["c as it is", "another value"])
def test_a_last_step_that_makes_another_h_is_no_step(instead: str, tmp_path: Path) -> None:
    """Its c is right, and its h is o * c, or o * tanh(something else): it was read as the last step by its c alone."""
    net = Hand()
    outputs, h, c = [], net.zero(), net.zero()
    for at in range(STEPS):
        h, c = two_linears("split")(net, net.frame(at), h, c)
        outputs.append(h)
    (tanh,) = (node for node in net.nodes if node.op_type == "Tanh" and node.input[0] == c)
    if instead == "c as it is":
        tanh.op_type = "Identity"
    else:
        tanh.input[0] = outputs[0]
    (single,) = imported(net.model(outputs), tmp_path)
    assert single.steps == STEPS - 1
    assert f"has {STEPS - 1} steps for {STEPS} frames: no step of it reads the others" in single.notes[-1]


def test_a_node_that_gives_its_cell_state(tmp_path: Path) -> None:
    net = Hand()
    for name, shape in (("W", (1, 4 * HIDDEN, INPUT)), ("R", (1, 4 * HIDDEN, HIDDEN))):
        net.stored(name, net.random.normal(size=shape))
    nodes = [helper.make_node("LSTM", ["x", "W", "R"], ["Y", "h", "c"], name="r", hidden_size=HIDDEN)]
    text = "the network reads only the cell state c of LSTM 'r': what a run gives is h"
    for read, notes in ((["c"], (text,)), (["c", "h"], ()), (["c", "Y"], ())):
        outputs = [helper.make_tensor_value_info(each, TensorProto.FLOAT, None) for each in read]
        graph = helper.make_graph(nodes, "g", net.inputs, outputs, initializer=net.tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        assert imported(model, tmp_path)[0].notes == notes


def test_what_a_layer_reads_is_named_if_it_is_computed(tmp_path: Path) -> None:
    net = Hand()
    h, outputs, tensor = net.zero(), [], net.Relu("x")
    for at in range(STEPS):
        frame = net.op("Gather", tensor, net.stored(f"at{at}", np.array(at)), axis=0)[0]
        h, _ = rnn(net, frame, h, "")
        outputs.append(h)
    (single,) = imported(net.model(outputs), tmp_path)
    assert "l.weight reads what Relu 'n0' gives: a run takes that as its frames" in single.notes


def mutated(model: Any, random: np.random.Generator) -> None:
    """Replace one operation, or exchange inputs of two operations."""
    others = {"Sigmoid": "Tanh", "Tanh": "Sigmoid", "Add": "Mul", "Mul": "Add", "Sub": "Add"}
    nodes = model.graph.node[: len(model.graph.node) - STEPS - 1]
    node = nodes[random.integers(len(nodes))]
    if node.op_type in others and random.integers(2):
        node.op_type = others[node.op_type]
        return
    alike = [each for each in nodes if each.op_type == node.op_type and len(each.input) == len(node.input)]
    other = alike[random.integers(len(alike))]
    one = two = random.integers(len(node.input))
    node.input[one], other.input[two] = other.input[two], node.input[one]


@pytest.mark.slow
def test_a_changed_cell_is_never_read_as_the_cell(tmp_path: Path) -> None:
    """A changed network is refused, or the import still computes what the network does."""
    refused = kept = 0
    cells = [*CELLS.values()]
    for seed in range(int(os.environ.get("LSTMSIM_EXAMPLES", 60))):
        random = np.random.default_rng(seed)
        layers = 1 + seed % 2 if seed % 7 == 0 else 1
        model = exported(layers) if seed % 7 == 0 else loop(cells[seed % len(cells)][1], seed)
        mutated(model, random)
        try:
            theirs(model, {"x": np.zeros((STEPS, 1, INPUT), np.float32)})
        except Exception:
            continue
        (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
        try:
            models = read_onnx(tmp_path / "a.onnx", weights=True).models
        except InputError:
            refused += 1
            continue
        if len(models) == 1 and models[0].steps == STEPS and len(models[0].model.layers) == layers:
            kept += 1
            check(model, models[0])
    assert refused > 10
    assert kept > 5


def changed_step(kind: str, before: str, after: str) -> Any:
    """Write a step with something between an input and a state before it, or between a new state and its output."""
    net = Unrolled(kind, folded=False, seed=5)
    net.weights("rnn", INPUT)
    states = {"h": "h", "c": "c"}
    given = list(states)[: 2 if kind == "lstm" else 1]
    shapes = {"x": [1, INPUT], **{name: [1, HIDDEN] for name in given}}
    net.inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in shapes.items()]

    def change(how: str, value: str) -> str:
        if how == "flip":
            places = (-1, -HIDDEN - 1, 1, -1)
            return net.op("Slice", value, *(net.stored(f"p{each}", np.array([each])) for each in places))[0]
        if how == "roll":
            one, rest = net.op("Split", value, net.stored("p", np.array([1, HIDDEN - 1])), parts=2, axis=1)
            return net.op("Concat", rest, one, axis=1)[0]
        return net.op(how, value)[0]

    if before == "shared":
        states["c"] = "h"
    elif before == "zeros":
        states["c"] = net.zero()
    elif before:
        how, name = before.split()
        states[name] = change(how, name)
    new = dict(zip("hc", net.step("rnn", "x", states["h"], states["c"]), strict=True))
    outputs = [new[name] for name in given]
    if after == "head":
        outputs = [change("Relu", new["h"]), *outputs]
    elif after == "missing":
        outputs = outputs[:1]
    elif after:
        how, name = after.split()
        outputs = [change(how, new[each]) if each == name else new[each] for each in given]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(net.nodes, "g", net.inputs, infos, initializer=net.tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


CHANGED_STEPS = [
    ("lstm", "shared", "", "one input gives both its h and its c"),
    ("lstm", "zeros", "", "its c is not an input of the network"),
    ("lstm", "Neg c", "", "its c is not an input of the network"),
    ("lstm", "roll c", "", "its c is not an input of the network"),
    ("lstm", "flip h", "", "its h is not an input of the network"),
    ("gru", "flip h", "", "its h is not an input of the network"),
    ("lstm", "", "missing", "its new c is not an output of the network"),
    ("lstm", "", "Tanh c", "its new c is not an output of the network"),
    ("lstm", "", "roll h", "its new h is not an output of the network"),
    ("gru", "", "flip h", "its new h is not an output of the network"),
    ("gru", "", "Relu h", "its new h is not an output of the network"),
]


@pytest.mark.parametrize(("kind", "before", "after", "sentence"), CHANGED_STEPS)
def test_a_step_whose_states_are_changed_is_refused(
    kind: str, before: str, after: str, sentence: str, tmp_path: Path
) -> None:
    assert sentence in refusal(changed_step(kind, before, after), tmp_path)


def test_a_head_beside_the_states_of_a_step_is_accepted(tmp_path: Path) -> None:
    (single,) = imported(changed_step("lstm", "", "head"), tmp_path)
    assert single.nodes == ("1 step of rnn",)
