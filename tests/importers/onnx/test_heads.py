"""Products behind the last recurrent layer as dense layers: equal to onnxruntime, or left out with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from lstmsim.importers.files import import_weights
from lstmsim.importers.imported import ImportedModel
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from tests.cli import runner
from tests.importers.onnx.graphs import Graph, save
from tests.importers.onnx.test_weights import Filled

STEPS, BATCH, WIDTH, HIDDEN = 6, 2, 3, 4


class Net(Filled):
    """A recurrent layer and the operations that exporters put behind it."""

    def frames(self, *dims: int | str, directions: int = 1, kind: str = "LSTM") -> str:
        """Add a layer over frames of [time, batch, width] or other sizes; the result is the name of Y."""
        return self.recurrent(kind, self.input("x", *dims), WIDTH, HIDDEN, directions=directions)

    def numbers(self, name: str, *values: int) -> str:
        return self.node("Constant", [], name, value_ints=list(values))

    def squeezed(self, y: str) -> str:
        return self.node("Squeeze", [y, self.numbers("one", 1)], "squeezed")

    def linear(self, y: str, inputs: int, units: int, tag: str = "") -> str:
        """Add nn.Linear over three axes as PyTorch writes it."""
        y = self.node("MatMul", [y, self.weight(f"W{tag}", inputs, units)], f"mm{tag}")
        return self.node("Add", [self.weight(f"b{tag}", units), y], f"sum{tag}")


def time_first(net: Net) -> str:
    return net.linear(net.squeezed(net.frames("t", "b", WIDTH)), HIDDEN, 5)


def batch_first(net: Net) -> str:
    y = net.squeezed(net.frames("t", "b", WIDTH, kind="GRU"))
    return net.linear(net.node("Transpose", [y], "turned", perm=[1, 0, 2]), HIDDEN, 5)


def both_directions(net: Net) -> str:
    y = net.node("Transpose", [net.frames("t", "b", WIDTH, directions=2)], "sides", perm=[0, 2, 1, 3])
    return net.linear(net.node("Reshape", [y, net.numbers("sizes", 0, 0, -1)], "joined"), 2 * HIDDEN, 5)


def flat_gemm(net: Net) -> str:
    y = net.node("Reshape", [net.frames("t", "b", WIDTH), net.numbers("sizes", -1, HIDDEN)], "flat")
    return net.node("Gemm", [y, net.weight("W", 5, HIDDEN), net.weight("b", 5)], "sum", transB=1, alpha=1.0)


def gemm_without_bias(net: Net) -> str:
    y = net.node("Reshape", [net.frames(STEPS, 1, WIDTH), net.numbers("sizes", STEPS, HIDDEN)], "flat")
    return net.node("Gemm", [y, net.weight("W", HIDDEN, 5)], "sum")


def layers_of_an_mlp(net: Net) -> str:
    y = net.linear(net.squeezed(net.frames("t", "b", WIDTH)), HIDDEN, 7, "1")
    y = net.linear(net.node("Dropout", [net.node("Relu", [y], "relu")], "dropped"), 7, 6, "2")
    return net.node("Sigmoid", [net.linear(net.node("Tanh", [y], "tanh"), 6, 1, "3")], "end")


def matrix_turned_at_run_time(net: Net) -> str:
    y = net.squeezed(net.frames("t", "b", WIDTH))
    return net.node("MatMul", [y, net.node("Transpose", [net.weight("W", 5, HIDDEN)], "turned")], "sum")


def product(net: Net, units: int = 5) -> str:
    y = net.squeezed(net.frames("t", "b", WIDTH))
    return net.node("MatMul", [y, net.weight("W", HIDDEN, units)], "mm")


def one_bias_for_all_units(net: Net) -> str:
    return net.node("Add", [product(net), net.weight("b", 1)], "sum")


def a_scalar_bias(net: Net) -> str:
    return net.node("Add", [net.weight("b"), product(net)], "sum")


def one_bias_for_all_units_of_gemm(net: Net) -> str:
    y = net.node("Reshape", [net.frames("t", "b", WIDTH), net.numbers("sizes", -1, HIDDEN)], "flat")
    return net.node("Gemm", [y, net.weight("W", 5, HIDDEN), net.weight("b", 1)], "sum", transB=1)


def bias_taken_off(net: Net) -> str:
    return net.node("Tanh", [net.node("Sub", [product(net), net.weight("b", 5)], "less")], "tanh")


def bias_behind_a_reshape(net: Net) -> str:
    """Add a Dense layer over three axes as tf2onnx writes it."""
    y = net.node("Reshape", [net.frames("t", BATCH, WIDTH), net.numbers("sizes", -1, HIDDEN)], "flat")
    y = net.node("MatMul", [y, net.weight("W", HIDDEN, 5)], "mm")
    y = net.node("Reshape", [y, net.numbers("three", -1, BATCH, 5)], "folded")
    return net.node("Add", [y, net.weight("b", 5)], "sum")


def one_of_three_before_softmax(net: Net) -> str:
    """The softmax stays out: its input is compared."""
    y = net.linear(net.squeezed(net.frames("t", "b", WIDTH)), HIDDEN, 5)
    net.node("Softmax", [y], "softmax")
    return y


TAKEN: dict[Callable[[Net], str], list[str]] = {
    time_first: ["dense"],
    batch_first: ["dense"],
    both_directions: ["dense"],
    flat_gemm: ["dense"],
    gemm_without_bias: ["dense"],
    layers_of_an_mlp: ["dense-relu", "dense-tanh", "dense-sigmoid"],
    matrix_turned_at_run_time: ["dense"],
    one_bias_for_all_units: ["dense"],
    a_scalar_bias: ["dense"],
    one_bias_for_all_units_of_gemm: ["dense"],
    bias_taken_off: ["dense-tanh"],
    bias_behind_a_reshape: ["dense"],
    one_of_three_before_softmax: ["dense"],
}


def imported(net: Net, output: str, folder: Path, **more: bool) -> ImportedModel:
    (single,) = import_weights(save(net.proto(output), folder / "a.onnx"), heads=True, **more)
    return single


def expected(path: Path, x: np.ndarray) -> np.ndarray:
    """Run a network with onnxruntime: one row for each step and sequence, in the order of its output."""
    ort = pytest.importorskip("onnxruntime")
    model = onnx.load(path)
    model.ir_version = 8
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    y = session.run(None, {"x": x.astype(np.float32)})[0]
    return y.reshape(-1, y.shape[-1])


@pytest.mark.parametrize("build", TAKEN)
def test_the_numbers_are_those_of_onnxruntime(build: Callable[[Net], str], tmp_path: Path) -> None:
    net = Net(7)
    output = build(net)
    if build is one_of_three_before_softmax:
        path = save(net.proto("softmax"), tmp_path / "a.onnx")
        (single,) = import_weights(path, heads=True)
        save(net.proto(output), path)
    else:
        single = imported(net, output, tmp_path)
    assert [layer.cell.name for layer in single.model.layers[1:]] == TAKEN[build]
    assert single.notes == ()
    assert single.network is not None
    batch = 1 if build is gemm_without_bias else BATCH
    x = np.random.default_rng(3).normal(size=(STEPS, batch, WIDTH))
    own = np.stack(
        [
            run_network(float_arithmetic(single.network), single.network.stimulus(x[:, at])).output()
            for at in range(batch)
        ],
        axis=0 if build is batch_first else 1,
    )
    np.testing.assert_allclose(own.reshape(-1, own.shape[-1]), expected(tmp_path / "a.onnx", x), rtol=0, atol=1e-6)
    (shapes,) = import_weights(tmp_path / "a.onnx", heads=True, weights=False)
    assert shapes.model.layers == single.model.layers
    assert len(import_weights(tmp_path / "a.onnx")[0].model.layers) == 1


def last_step(net: Net) -> str:
    y = net.node("Gather", [net.squeezed(net.frames("t", "b", WIDTH)), net.numbers("last", -1)], "picked", axis=0)
    return net.linear(y, HIDDEN, 5)


def some_steps(net: Net) -> str:
    bounds = [net.numbers(name, value) for name, value in (("s", 0), ("e", 2), ("a", 0))]
    return net.linear(net.node("Slice", [net.squeezed(net.frames("t", "b", WIDTH)), *bounds], "some"), HIDDEN, 5)


def some_units(net: Net) -> str:
    bounds = [net.numbers(name, value) for name, value in (("s", 0), ("e", HIDDEN // 2), ("a", 2))]
    return net.linear(net.node("Slice", [net.squeezed(net.frames("t", "b", WIDTH)), *bounds], "some"), HIDDEN // 2, 5)


def some_sequences(net: Net) -> str:
    bounds = [net.numbers(name, value) for name, value in (("s", 0), ("e", 1), ("a", 1))]
    return net.linear(net.node("Slice", [net.squeezed(net.frames("t", "b", WIDTH)), *bounds], "some"), HIDDEN, 5)


def last_state(net: Net) -> str:
    net.frames("t", "b", WIDTH)
    return net.linear(net.node("Squeeze", ["rnn_Yh", net.numbers("zero", 0)], "state"), HIDDEN, 5)


def two_readers(net: Net) -> str:
    y = net.squeezed(net.frames("t", "b", WIDTH))
    return net.node("Add", [net.linear(y, HIDDEN, 5, "1"), net.linear(y, HIDDEN, 5, "2")], "both")


def scaled(net: Net) -> str:
    y = net.node("Reshape", [net.frames("t", "b", WIDTH), net.numbers("sizes", -1, HIDDEN)], "flat")
    return net.node("Gemm", [y, net.weight("W", HIDDEN, 5)], "sum", alpha=0.5)


def square_turned(net: Net) -> str:
    """Time and units have equal sizes: only their identity tells that the product is along the time."""
    y = net.squeezed(net.frames(HIDDEN, BATCH, WIDTH))
    return net.linear(net.node("Transpose", [y], "turned", perm=[2, 1, 0]), HIDDEN, 5)


def sides_interleaved(net: Net) -> str:
    y = net.node("Transpose", [net.frames("t", "b", WIDTH, directions=2)], "sides", perm=[0, 2, 3, 1])
    return net.linear(net.node("Reshape", [y, net.numbers("sizes", 0, 0, -1)], "joined"), 2 * HIDDEN, 5)


def two_steps_at_once(net: Net) -> str:
    y = net.squeezed(net.frames(STEPS, 1, WIDTH))
    return net.linear(net.node("Reshape", [y, net.numbers("sizes", STEPS // 2, 1, 2 * HIDDEN)], "pairs"), 2 * HIDDEN, 5)


def one_side_of_two(net: Net) -> str:
    y = net.node("Transpose", [net.frames("t", "b", WIDTH, directions=2)], "sides", perm=[0, 2, 1, 3])
    return net.linear(y, HIDDEN, 5)


def from_the_left(net: Net) -> str:
    y = net.node("Transpose", [net.squeezed(net.frames("t", "b", WIDTH))], "turned", perm=[0, 2, 1])
    return net.node("MatMul", [net.weight("W", 5, HIDDEN), y], "product")


def matrix_given_at_run_time(net: Net) -> str:
    return net.node("MatMul", [net.squeezed(net.frames("t", "b", WIDTH)), net.input("W", HIDDEN, 5)], "product")


def something_between(net: Net) -> str:
    return net.linear(net.node("Relu", [net.squeezed(net.frames("t", "b", WIDTH))], "relu"), HIDDEN, 5)


def turned_in_time(net: Net) -> str:
    bounds = [net.numbers(name, value) for name, value in (("s", -1), ("e", -(2**31)), ("a", 0), ("st", -1))]
    return net.linear(net.node("Slice", [net.squeezed(net.frames("t", "b", WIDTH)), *bounds], "flip"), HIDDEN, 5)


def features_split(net: Net) -> str:
    y = net.squeezed(net.frames("t", "b", WIDTH))
    return net.linear(net.node("Reshape", [y, net.numbers("sizes", 0, 0, HIDDEN // 2, 2)], "cut"), 2, 5)


def taken_off_the_bias(net: Net) -> str:
    return net.node("Sub", [net.weight("b", 5), product(net)], "less")


def a_bias_for_each_step(net: Net) -> str:
    y = net.squeezed(net.frames(STEPS, "b", WIDTH))
    y = net.node("MatMul", [y, net.weight("W", HIDDEN, 5)], "mm")
    return net.node("Add", [y, net.weight("b", STEPS, 1, 1)], "sum")


def a_bias_for_each_step_and_unit(net: Net) -> str:
    y = net.squeezed(net.frames(STEPS, "b", WIDTH))
    y = net.node("MatMul", [y, net.weight("W", HIDDEN, 5)], "mm")
    return net.node("Add", [y, net.weight("b", STEPS, 1, 5)], "sum")


def product_scaled(net: Net) -> str:
    return net.node("Mul", [product(net), net.weight("b", 5)], "scaled")


def sum_divided(net: Net) -> str:
    y = net.linear(net.squeezed(net.frames("t", "b", WIDTH)), HIDDEN, 5)
    return net.node("Div", [y, net.weight("temperature")], "divided")


def bias_along_another_axis(net: Net) -> str:
    """Batch and units have equal sizes: only their identity tells that the bias belongs to the batch."""
    y = net.node("MatMul", [net.squeezed(net.frames("t", 5, WIDTH)), net.weight("W", HIDDEN, 5)], "mm")
    y = net.node("Transpose", [y], "turned", perm=[0, 2, 1])
    return net.node("Add", [y, net.weight("b", 5)], "sum")


def product_read_twice(net: Net) -> str:
    y = product(net)
    return net.node("Mul", [net.node("Add", [y, net.weight("b", 5)], "sum"), y], "both")


NO_BIAS = "computes with a constant that is no bias of a dense layer (one number for each unit or one for all)"

LEFT_OUT = {
    taken_off_the_bias: f"Sub 'node_less' after MatMul 'node_mm' {NO_BIAS}",
    a_bias_for_each_step: f"Add 'node_sum' after MatMul 'node_mm' {NO_BIAS}",
    a_bias_for_each_step_and_unit: f"Add 'node_sum' after MatMul 'node_mm' {NO_BIAS}",
    product_scaled: f"Mul 'node_scaled' after MatMul 'node_mm' {NO_BIAS}",
    sum_divided: f"Div 'node_divided' after MatMul 'node_mm' {NO_BIAS}",
    bias_along_another_axis: f"Add 'node_sum' after MatMul 'node_mm' {NO_BIAS}",
    product_read_twice: f"Add 'node_sum' after MatMul 'node_mm' {NO_BIAS}",
    last_step: "MatMul 'node_mm' reads only what Gather 'node_picked' takes: it runs once, not at each step",
    some_steps: "MatMul 'node_mm' reads only what Slice 'node_some' takes: not all steps in their order",
    some_units: "MatMul 'node_mm' reads only what Slice 'node_some' takes: not all units of the layer in their order",
    some_sequences: "MatMul 'node_mm' reads only what Slice 'node_some' takes",
    last_state: "MatMul 'node_mm' reads the last state of LSTM 'rnn': it runs once, not at each step",
    two_readers: "MatMul 'node_mm1' and MatMul 'node_mm2' read the same values",
    scaled: "Gemm 'node_sum' scales or turns what it reads",
    square_turned: "MatMul 'node_mm' does not read whole outputs of the layer below",
    sides_interleaved: "MatMul 'node_mm' does not read whole outputs of the layer below",
    two_steps_at_once: "the network has no head",
    one_side_of_two: "MatMul 'node_mm' does not read whole outputs of the layer below",
    from_the_left: "the network has no head",
    matrix_given_at_run_time: "the matrix of MatMul 'node_product' is no constant of 4 inputs",
    something_between: "the network has no head",
    turned_in_time: "reads only what Slice 'node_flip' takes: not all steps in their order",
    features_split: "the network has no head",
}


@pytest.mark.parametrize("build", LEFT_OUT)
def test_what_is_not_proven_is_left_out(build: Callable[[Net], str], tmp_path: Path) -> None:
    net = Net(7)
    single = imported(net, build(net), tmp_path)
    assert len(single.model.layers) == 1
    assert single.operators is not None
    assert "dense layer" not in {each.outcome for each in single.operators.groups}
    assert any(LEFT_OUT[build] in note for note in single.notes), single.notes
    assert any("runs once" in note for note in single.notes) == ("runs once" in LEFT_OUT[build])
    assert all("--heads" not in line for line in single.operators.lines())


def test_a_second_head_that_is_none_is_named_beside_the_first(tmp_path: Path) -> None:
    net = Net(7)
    y = net.linear(net.squeezed(net.frames("t", "b", WIDTH)), HIDDEN, 5, "1")
    y = net.node("Mul", [net.linear(net.node("Identity", [y], "same"), 5, 6, "2"), net.weight("scale", 6)], "scaled")
    single = imported(net, y, tmp_path)
    assert [layer.hidden for layer in single.model.layers] == [HIDDEN, 5]
    assert single.notes == (f"Mul 'node_scaled' after MatMul 'node_mm2' {NO_BIAS}",)


def test_a_layer_whose_output_the_network_gives_too(tmp_path: Path) -> None:
    net = Net(7)
    end = net.linear(net.squeezed(net.frames("t", "b", WIDTH)), HIDDEN, 5)
    (single,) = import_weights(save(net.proto(end, "squeezed"), tmp_path / "a.onnx"), heads=True)
    assert len(single.model.layers) == 1
    assert "is also an output of the network" in single.notes[0]


def test_a_head_with_numbers_that_are_no_weights(tmp_path: Path) -> None:
    net = Net(7)
    y = net.squeezed(net.frames("t", "b", WIDTH))
    net.node("MatMul", [y, net.store("W", np.full((HIDDEN, 5), np.inf, np.float32))], "out")
    path = save(net.proto("out"), tmp_path / "a.onnx")
    with pytest.raises(Exception, match="MatMul 'node_out': matrix holds inf"):
        import_weights(path, heads=True)
    assert import_weights(path)[0].network is not None


def test_a_layer_and_its_head_inside_a_function(tmp_path: Path) -> None:
    graph, inner = Net(7), Net(7)
    inner.linear(inner.squeezed(inner.frames("t", "b", WIDTH)), HIDDEN, 5)
    names = [each.name for each in inner.tensors]
    body = helper.make_function("local", "net", ["x", *names], ["sum"], inner.nodes, [helper.make_opsetid("", 18)])
    graph.input("x", "t", "b", WIDTH)
    graph.tensors = inner.tensors
    graph.nodes.append(helper.make_node("net", ["x", *names], ["out"], domain="local"))
    (single,) = import_weights(save(graph.proto("out"), tmp_path / "a.onnx", [body]), heads=True)
    assert [layer.cell.name for layer in single.model.layers] == ["lstm", "dense"]
    assert single.network is not None


def test_the_command_makes_a_model_that_can_be_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    net = Net(7)
    save(net.proto(layers_of_an_mlp(net)), Path("a.onnx"))
    result = runner.call("import", "a.onnx", "--heads")
    assert result.exit_code == 0, result.output
    assert "dense-relu of 7 units over 4 inputs (MatMul 'node_mm1')" in result.stdout
    assert "warning" not in result.stderr
    Path("s.yaml").write_text("chip: column-npu-64k\njobs:\n  - {model: ./a.yaml, steps: 3}\n")
    result = runner.call("simulate", "s.yaml", "--check-numerics")
    assert result.exit_code == 0, result.output


def test_heads_of_other_formats_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(b"")
    result = runner.call("import", str(tmp_path / "a.pt"), "--heads")
    assert result.exit_code == 2
    assert "heads can be taken from .onnx only: .pt does not say" in result.stderr


def test_shapes_alone_make_heads_too(tmp_path: Path) -> None:
    """The weights are declared in a file that does not exist."""
    graph = Graph()
    y = graph.recurrent("LSTM", graph.input("x", "t", 1, 3), 3, 4)
    y = graph.node("Squeeze", [y, graph.node("Constant", [], "one", value_ints=[1])], "y")
    graph.node("MatMul", [y, graph.weight("m", 4, 9)], "out")
    path = save(graph.proto("out"), tmp_path / "a.onnx")
    (single,) = import_weights(path, heads=True, weights=False)
    assert [layer.hidden for layer in single.model.layers] == [4, 9]
