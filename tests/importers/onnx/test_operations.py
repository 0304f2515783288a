"""ONNX nodes as operations of graphs: the same numbers as onnxruntime's, and the operations that are expected."""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.importers.onnx.operations import graph_of_onnx, read_onnx_graph
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.graph_rules import mistakes
from tests.importers.onnx.fused import called, compared, computed, saved

RNG = np.random.default_rng(18)
_BEGIN = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def numbers_of_its_own() -> None:
    """Each test draws the same numbers, whatever ran before."""
    RNG.bit_generator.state = _BEGIN


#: Damaged files: 150 in the usual run, 1,000 and more in the long one.
EXAMPLES = max(1000, int(os.environ["LSTMSIM_EXAMPLES"])) if "LSTMSIM_EXAMPLES" in os.environ else 150


class Net:
    """A network under construction; every node's result is an output of it."""

    def __init__(self, version: int = 20) -> None:
        self.version = version
        self.inputs: list[onnx.ValueInfoProto] = []
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.given: dict[str, np.ndarray] = {}
        self.outputs: list[str] = []

    def input(self, name: str, *dims: int | str, low: float = -2.0, high: float = 2.0, **sizes: int) -> str:
        """An input, with numbers that are drawn; sizes: of the dims that are texts."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))
        shape = [sizes[each] if isinstance(each, str) else each for each in dims]
        self.given[name] = RNG.uniform(low, high, shape).astype(np.float32)
        return name

    def store(self, name: str, value: object, kind: type = np.float32) -> str:
        self.tensors.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def list(self, *numbers: int) -> str:
        return self.store(f"list{len(self.tensors)}", numbers, np.int64)

    def node(self, kind: str, *inputs: str, count: int = 1, inner: bool = False, **attributes: object) -> str:
        names = [f"{kind.lower()}{len(self.nodes)}"] + [f"more{len(self.nodes)}.{at}" for at in range(1, count)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        self.outputs += [] if inner else names
        return names[0]

    def model(self, outputs: Sequence[str] | None = None) -> onnx.ModelProto:
        kinds = onnx.shape_inference.infer_shapes(self._model([]), data_prop=True)
        types = {each.name: each.type.tensor_type.elem_type for each in kinds.graph.value_info}
        wanted = self.outputs if outputs is None else outputs
        return self._model([helper.make_tensor_value_info(name, types.get(name, 1), None) for name in wanted])

    def _model(self, outputs: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "g", self.inputs, outputs, initializer=self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.version)], ir_version=9)


def ops(graph: Graph) -> Counter[str]:
    return Counter(node.op for node in graph.nodes)


def test_operators_on_elements(tmp_path: Path) -> None:
    net = Net()
    x, y = net.input("x", 2, 3, 4), net.input("y", 3, 1)
    up = net.input("up", 4, low=0.5)
    slope = net.store("slope", RNG.uniform(0, 1, (3, 1)))
    for kind in ("Abs", "Exp", "Tanh", "Sigmoid", "Round", "Neg", "Relu", "Softplus", "Softsign", "Sign", "Floor"):
        net.node(kind, x)
    for kind in ("Ceil", "HardSwish", "Mish", "LeakyRelu", "Elu", "Selu", "Celu", "HardSigmoid", "ThresholdedRelu"):
        net.node(kind, x)
    for kind in ("Log", "Sqrt", "Reciprocal"):
        net.node(kind, up)
    for kind in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean"):
        net.node(kind, x, y)
    net.node("Max", x, y, up)
    net.node("Elu", x, alpha=0.3)
    net.node("Celu", x, alpha=0.3)
    net.node("Selu", x, alpha=0.3, gamma=2.0)
    net.node("Shrink", x, lambd=0.7, bias=0.2)
    net.node("PRelu", x, slope)
    net.node("Pow", up, y)
    net.node("Pow", x, net.store("two", 2.0))
    net.node("Clip", x, net.store("low", -0.5), net.store("high", 0.75))
    net.node("Clip", x, "", "high")
    for kind in ("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"):
        net.node("Where", net.node(kind, x, y, inner=True), x, y)
    less, more = net.node("Less", x, y, inner=True), net.node("Greater", x, up, inner=True)
    for kind in ("And", "Or", "Xor"):
        net.node("Cast", net.node(kind, less, more, inner=True), to=1)
    net.node("Cast", net.node("Not", less, inner=True), to=1)
    net.node("Cast", net.node("Cast", x, inner=True, to=7), to=1)
    net.node("Cast", net.node("Cast", net.node("Floor", x, inner=True), inner=True, to=9), to=1)
    read = compared(saved(net.model(), tmp_path), net.given)
    assert len(read.sources) == len(net.outputs)
    assert not called(read.graph)
    assert not mistakes(read.graph)


def test_operators_that_move_and_reduce(tmp_path: Path) -> None:
    net = Net()
    x, y = net.input("x", 2, 3, 4), net.input("y", 2, 6, 5, 4)
    net.node("Transpose", x)
    net.node("Transpose", x, perm=[1, 2, 0])
    net.node("Reshape", x, net.list(0, -1))
    net.node("Flatten", y, axis=2)
    net.node("Squeeze", net.node("Unsqueeze", x, net.list(0, -1), inner=True), net.list(0))
    net.node("Expand", x, net.list(5, 1, 1, 4))
    net.node("Tile", x, net.list(2, 1, 3))
    net.node("Slice", y, net.list(1, -3), net.list(5, 2**62), net.list(1, 2))
    net.node("Split", y, net.list(1, 3, 2), count=3, axis=1)
    net.node("Split", y, count=2, axis=1, num_outputs=2)
    for kind in ("Sum", "Max", "Min", "Mean", "L1", "L2", "SumSquare", "LogSumExp"):
        axes = [net.list(1, -1)] if kind != "Sum" else []
        net.node(f"Reduce{kind}", y, *axes, keepdims=0)
        net.node(f"Reduce{kind}", y, *axes)
    for kind in ("Softmax", "LogSoftmax"):
        net.node(kind, y)
        net.node(kind, y, axis=1)
    net.node("LpNormalization", x)
    net.node("LpNormalization", x, axis=1, p=1)
    net.node("GlobalAveragePool", y)
    net.node("GlobalMaxPool", y)
    scale, shift = net.store("scale", RNG.uniform(0.5, 2, (5, 4))), net.store("shift", RNG.uniform(-1, 1, (5, 4)))
    net.node("LayerNormalization", y, scale, shift, axis=2, epsilon=1e-3, count=3)
    six = [net.store(f"six{at}", RNG.uniform(0.5, 2, 6)) for at in range(4)]
    net.node("InstanceNormalization", y, *six[:2])
    net.node("BatchNormalization", y, *six)
    net.node("MeanVarianceNormalization", y, axes=[0, 2])
    read = compared(saved(net.model(), tmp_path), net.given)
    assert len(read.sources) == len(net.outputs)
    assert not called(read.graph)


def test_groups_of_channels_are_normalised(tmp_path: Path) -> None:
    """Until version 21 scale and shift were numbers of a group, since then of a channel."""
    for version, numbers in ((18, 3), (21, 6)):
        net = Net(version)
        scale, shift = (net.store(name, RNG.uniform(0.5, 2, numbers)) for name in ("scale", "shift"))
        x = net.input("x", 2, 6, 5, 4)
        net.node("GroupNormalization", x, scale, shift, num_groups=3, epsilon=1e-3)
        net.node("GroupNormalization", net.input("y", 2, 6), scale, shift, num_groups=3)
        read = compared(saved(net.model(), tmp_path), net.given)
        assert len(read.sources) == 2
        assert not called(read.graph)
    net.node("GroupNormalization", x, scale, shift, num_groups=4)
    with pytest.raises(InputError, match="must have as many channels in every group, got 6 in 4 groups"):
        graph_of_onnx(saved(net.model(), tmp_path))


def test_a_softmax_is_five_operations_and_a_reduce_is_not_reshaped_twice(tmp_path: Path) -> None:
    net = Net()
    net.node("Softmax", net.input("x", 8, 256))
    graph = graph_of_onnx(saved(net.model(), tmp_path))
    kinds = ["input", "reduce_max", "broadcast", "subtract", "exp", "reduce_sum", "broadcast", "divide"]
    assert [node.op for node in graph.nodes] == kinds
    assert graph.outputs == ("softmax0",)


def test_old_versions_mean_what_they_meant(tmp_path: Path) -> None:
    net = Net(11)
    x = net.input("x", 2, 3, 4)
    net.node("Softmax", x)
    net.node("LogSoftmax", x, axis=2)
    net.node("ReduceSum", x, axes=[1], keepdims=0)
    net.node("Unsqueeze", x, axes=[0])
    net.node("Squeeze", "unsqueeze3", axes=[0])
    compared(saved(net.model(), tmp_path), net.given)
    net = Net(6)
    x = net.input("x", 2, 3, 4)
    net.node("Clip", x, min=-0.5, max=0.5)
    compared(saved(net.model(), tmp_path), net.given)


def test_products_read_their_weights_turned(tmp_path: Path) -> None:
    net = Net()
    x, c = net.input("x", 5, 8), net.input("c", 6)
    w = net.store("w", RNG.uniform(-1, 1, (6, 8)))
    net.node("Gemm", x, w, c, transB=1, alpha=0.5, beta=2.0)
    net.node("MatMul", x, net.node("Transpose", w, inner=True))
    read = compared(saved(net.model(), tmp_path), net.given)
    # the turned weight is one parameter, no operation
    assert ops(read.graph)["transpose"] == 0
    assert [node.shape for node in read.graph.nodes if node.name.startswith("w")] == [(8, 6)]


def test_numbers_quantised_at_run_time(tmp_path: Path) -> None:
    net = Net()
    x = net.input("x", 4, 16)
    net.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], ["q", "s", "z"]))
    w = net.store("w", RNG.integers(0, 255, (16, 8)), np.uint8)
    zero = net.store("zero", 120, np.uint8)
    product = net.node("MatMulInteger", "q", w, "z", zero, inner=True)
    scale = net.node("Mul", "s", net.store("ws", 0.02), inner=True)
    net.node("Mul", net.node("Cast", product, to=1, inner=True), scale)
    read = compared(saved(net.model(), tmp_path), net.given, tolerance=1e-4)
    assert [ops(read.graph)[kind] for kind in ("matmul", "round", "reduce_max", "reduce_min")] == [1, 2, 1, 1]
    # the column sums of the weights are stored: the correction by the zero point is two operations behind the product
    assert any(name.startswith("column sums") for name in read.values)


def test_sizes_that_are_computed_from_shapes(tmp_path: Path) -> None:
    net = Net()
    x = net.input("x", "batch", "steps", 8, batch=3, steps=5)
    shape = net.node("Shape", x, inner=True)
    first = net.node("Gather", shape, net.store("zero", 0, np.int64), inner=True)
    rows = net.node("Unsqueeze", first, net.list(0), inner=True)
    wanted = net.node("Concat", rows, net.list(-1), inner=True, axis=0)
    net.node("Reshape", x, wanted)
    mask = net.node("ConstantOfShape", shape, inner=True, value=helper.make_tensor("v", 1, [1], [2.0]))
    net.node("Add", x, mask)
    steps = net.node("Gather", shape, net.store("one", 1, np.int64), inner=True)
    count = net.node("Range", "zero", steps, "one", inner=True)
    net.node("Add", x, net.node("Unsqueeze", net.node("Cast", count, to=1, inner=True), net.list(1), inner=True))
    read = compared(saved(net.model(), tmp_path), net.given, {"batch": 3, "steps": 5})
    assert read.graph.about[0] == "from a.onnx, with batch 3, steps 5"
    # only the additions and the reshape are left
    assert set(ops(read.graph)) == {"add", "broadcast", "input", "reshape"}


def test_calls_of_libraries_are_named(tmp_path: Path) -> None:
    net = Net()
    x = net.input("x", 6, 2, 8)
    state = [net.store(f"r{at}", RNG.uniform(-0.5, 0.5, (1, 16, 8 if at == 0 else 4))) for at in range(2)]
    net.node("LSTM", x, *state, count=3, hidden_size=4)
    net.node("Tanh", "more0.1")
    net.node("Concat", x, x, axis=2)
    net.node("Gather", x, net.store("last", -1, np.int64), axis=0)
    net.node("Slice", x, net.list(0), net.list(6), net.list(0), net.list(2))
    net.node("Erf", x)
    read = compared(saved(net.model(), tmp_path), net.given)
    kinds = {node.name: node.op for node in read.graph.nodes if node.name in called(read.graph)}
    assert set(kinds.values()) == {"lstm", "lstm_result_2", "concat", "gather", "onnx_slice", "erf"}
    assert any(
        "Slice with output 'slice4' is a call of a library: it takes every n-th element" in each
        for each in read.graph.about
    )
    # the last states are a slice of the states
    assert [node.inputs for node in read.graph.nodes if node.op == "slice"] == [("lstm0",)]
    assert sum("call of a library" in each for each in read.graph.about) == 7


def test_what_is_not_known_is_left_out_and_said(tmp_path: Path) -> None:
    net = Net()
    x = net.input("x", 4, 4)
    places = net.node("NonZero", x, inner=True)
    net.node("Tanh", net.node("Cast", places, to=1, inner=True))
    net.node("Exp", x)
    net.inputs.append(helper.make_tensor_value_info("idle", TensorProto.FLOAT, [3]))
    graph = graph_of_onnx(saved(net.model(), tmp_path))
    assert graph.outputs == ("exp3",)
    assert graph.about[1] == "output 'tanh2' is left out: NonZero with output 'nonzero0' has results of unknown shape"
    # each reason once
    assert sum("NonZero" in each for each in graph.about) == 1
    assert "'idle' of the network's inputs: no operation of the graph reads it" in graph.about
    net.outputs = ["tanh2"]
    with pytest.raises(InputError, match="output 'tanh2' is left out"):
        graph_of_onnx(saved(net.model(), tmp_path))


def test_what_no_output_reads_is_told_on_its_own(tmp_path: Path) -> None:
    net = Net()
    x = net.input("x", 4, 4)
    net.node("NonZero", x, inner=True)
    net.node("Exp", x)
    graph = graph_of_onnx(saved(net.model(), tmp_path))
    assert "NonZero with output 'nonzero0' is left out: it has results of unknown shape" in graph.about


def test_a_stated_size_of_0_is_not_called_open(tmp_path: Path) -> None:
    net = Net()
    net.node("Exp", net.input("x", 0, "n", n=3))
    path = saved(net.model(), tmp_path)
    with pytest.raises(InputError) as error:
        graph_of_onnx(path, {"n": 3})
    (mistake,) = error.value.mistakes
    said = "the network's inputs state a size of 0, so there is nothing to compute; a number in its place may be given"
    assert mistake.sentence == f"{said}: x[0]=N"
    with pytest.raises(InputError, match="leave sizes open; a number is needed for each: n=N"):
        graph_of_onnx(path, {"x[0]": 2})
    assert graph_of_onnx(path, {"n": 3, "x[0]": 2}).nodes[0].shape == (2, 3)


def test_a_loop_that_all_hangs_on_is_named_with_the_reason(tmp_path: Path) -> None:
    go, out = (helper.make_tensor_value_info(each, TensorProto.BOOL, []) for each in ("go", "on"))
    turn = helper.make_tensor_value_info("turn", TensorProto.INT64, [])
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"])], "body", [turn, go], [out])
    net = Net()
    net.outputs = [net.node("Loop", "", "", body=body)]
    with pytest.raises(InputError, match=r"is left out: Loop with output '\w+' repeats its body"):
        graph_of_onnx(saved(net.model(), tmp_path))


def test_branches_and_functions(tmp_path: Path) -> None:
    def branch(kind: str) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(kind, 1, None)
        return helper.make_graph([helper.make_node(kind, ["x"], [kind])], kind, [], [out])

    net = Net()
    x = net.input("x", 3, 4)
    yes = net.store("yes", False, bool)
    net.node("If", yes, then_branch=branch("Tanh"), else_branch=branch("Exp"))
    read = compared(saved(net.model(), tmp_path), net.given)
    assert set(ops(read.graph)) == {"input", "exp"}
    net = Net()
    net.inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    net.given["c"] = np.array(True)
    net.input("x", 3, 4)
    net.node("If", "c", then_branch=branch("Tanh"), else_branch=branch("Exp"))
    read = compared(saved(net.model(), tmp_path), net.given)
    assert set(ops(read.graph)) == {"input", "tanh"}
    assert any("its then_branch is taken" in each for each in read.graph.about)
    assert x == "x"


REFUSED = [
    ({}, "size: the network's inputs leave sizes open; a number is needed for each: batch=N"),
    ({"batch": 2, "bach": 3}, "size: no input leaves a size 'bach' open; did you mean 'batch'?"),
    ({"batch": 0}, "size: 'batch' must be a whole number from 1 to 16777216, got 0"),
]


@pytest.mark.parametrize(("sizes", "sentence"), REFUSED)
def test_open_sizes_need_numbers(sizes: dict[str, int], sentence: str, tmp_path: Path) -> None:
    net = Net()
    net.node("Tanh", net.input("x", "batch", 4, batch=2))
    with pytest.raises(InputError) as caught:
        graph_of_onnx(saved(net.model(), tmp_path), sizes)
    assert str(caught.value).endswith(sentence)


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    for kind, inputs, attributes, said in [
        ("Add", ("x", "y"), {}, "do not fit each other"),
        ("MatMul", ("x", "x"), {}, "multiplies the shapes (3, 4) and (3, 4)"),
        ("Transpose", ("x",), {"perm": [0, 2]}, "the axes [0, 2] are not those of the shape (3, 4)"),
        ("Softmax", ("x",), {"axis": 5}, "names axis 5 of 2"),
        ("Reshape", ("x", "shape"), {}, "cannot become"),
        ("Tanh", (), {}, "has no input 0"),
    ]:
        net = Net()
        net.input("x", 3, 4)
        net.input("y", 5)
        net.store("shape", [5, 5], np.int64)
        net.nodes.append(helper.make_node(kind, inputs, ["out"], **attributes))
        model = net._model([helper.make_tensor_value_info("out", 1, None)])
        with pytest.raises(InputError) as caught:
            graph_of_onnx(saved(model, tmp_path))
        assert f"{kind} with output 'out'" in str(caught.value)
        assert said in str(caught.value)


def test_a_layer_normalised_step_as_pytorch_exports_it(tmp_path: Path) -> None:
    hidden, net = 16, Net(17)
    x, c = net.input("x", 3, hidden), net.input("c", 3, hidden)
    w, b = net.store("w", RNG.uniform(-1, 1, (4 * hidden, hidden))), net.store("b", RNG.uniform(-1, 1, 4 * hidden))
    norms = [net.store(f"n{at}", RNG.uniform(0.5, 1.5, (4 if at < 2 else 1) * hidden)) for at in range(4)]
    gates = net.node("LayerNormalization", net.node("Gemm", x, w, b, inner=True, transB=1), *norms[:2], inner=True)
    net.nodes.append(helper.make_node("Split", [gates], ["i", "f", "g", "o"], axis=1))
    i, f, o = (net.node("Sigmoid", each, inner=True) for each in "ifo")
    ig = net.node("Mul", i, net.node("Tanh", "g", inner=True), inner=True)
    c2 = net.node("Add", net.node("Mul", f, c, inner=True), ig)
    net.node("Mul", o, net.node("Tanh", net.node("LayerNormalization", c2, *norms[2:], inner=True), inner=True))
    read = compared(saved(net.model([c2, net.outputs[-1]]), tmp_path), net.given)
    # the same operations as the project's own graph of such a step, but for the bias and its broadcast
    counted = ops(read.graph)
    assert (counted["reduce_sum"], counted["slice"], counted["rsqrt"]) == (4, 4, 2)
    assert sum(counted.values()) - counted["input"] - counted["matmul"] == 43 + 2


def test_attention_pooling(tmp_path: Path) -> None:
    """The pooling of textgenrnn: a softmax over time of one score for each step, and the weighted sum of the steps."""
    net = Net(17)
    x, w = net.input("x", 2, 40, 356), net.store("w", RNG.uniform(-1, 1, (356, 1)))
    score = net.node("Squeeze", net.node("MatMul", x, w, inner=True), net.list(2), inner=True)
    top = net.node("ReduceMax", score, axes=[-1], inner=True)
    grown = net.node("Exp", net.node("Sub", score, top, inner=True), inner=True)
    total = net.node("ReduceSum", grown, net.list(-1), inner=True)
    share = net.node("Unsqueeze", net.node("Div", grown, total, inner=True), net.list(2), inner=True)
    net.node("ReduceSum", net.node("Mul", x, share, inner=True), net.list(1), keepdims=0)
    read = compared(saved(net.model(), tmp_path), net.given)
    # kept axes of size 1 leave no reshape but the one behind the product
    assert ops(read.graph) == Counter(
        {"input": 2, "reduce_sum": 2, "broadcast": 3, "matmul": 1, "reshape": 1, "reduce_max": 1}
        | dict.fromkeys(("subtract", "exp", "divide", "multiply"), 1)
    )


def test_a_projection_with_rows_of_length_one(tmp_path: Path) -> None:
    """The head of Resemblyzer's encoder: a linear layer, relu, and each row divided by its length."""
    net = Net(17)
    x = net.input("x", 4, 256)
    w, b = net.store("w", RNG.uniform(-0.1, 0.1, (256, 256))), net.store("b", RNG.uniform(-0.1, 0.1, 256))
    relu = net.node("Relu", net.node("Gemm", x, w, b, inner=True, transB=1), inner=True)
    length = net.node("ReduceL2", relu, axes=[1], inner=True)
    floor = net.node("Clip", length, net.store("least", 1e-12), inner=True)
    net.node("Div", relu, net.node("Expand", floor, net.node("Shape", relu, inner=True), inner=True))
    read = compared(saved(net.model(), tmp_path), net.given)
    kinds = Counter(input=3, broadcast=2, maximum=2)
    assert ops(read.graph) == kinds + Counter(["matmul", "add", "multiply", "reduce_sum", "sqrt", "divide"])
    assert all(node.shape != (4, 1) for node in read.graph.nodes)


DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


@pytest.mark.slow
def test_networks_that_pytorch_exported(tmp_path: Path) -> None:
    """Real files: what onnx carries along for its own tests, with the numbers that PyTorch gave."""
    right = 0
    for folder in sorted((*(DATA / "pytorch-operator").iterdir(), *(DATA / "pytorch-converted").iterdir())):
        network = onnx.load(folder / "model.onnx")
        stored = {each.name for each in network.graph.initializer}
        inputs = [each.name for each in network.graph.input if each.name not in stored]
        given = {name: _numbers(folder, f"input_{at}") for at, name in enumerate(inputs)}
        read = read_onnx_graph(folder / "model.onnx")
        if not called(read.graph):
            ours = computed(read, given)
            for at, each in enumerate(network.graph.output):
                np.testing.assert_allclose(ours[each.name], _numbers(folder, f"output_{at}"), 1e-5, 1e-5)
            right += 1
    # the others hold convolutions and poolings
    assert right >= 60


def _numbers(folder: Path, name: str) -> np.ndarray:
    tensor = onnx.TensorProto()
    tensor.ParseFromString((folder / "test_data_set_0" / f"{name}.pb").read_bytes())
    return numpy_helper.to_array(tensor)


@pytest.mark.skipif("LSTMSIM_EXAMPLES" not in os.environ, reason="LSTMSIM_EXAMPLES asks for long versions")
def test_the_examples_of_all_operators(tmp_path: Path) -> None:
    """The examples of ONNX's own pages, whose axes and shapes are stored, as in files."""
    from onnx.backend.test.case.node import collect_testcases

    right = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        network = case.model
        arrays = [each for data in (case.data_sets or [])[:1] for part in data for each in part]
        plain = all(isinstance(each, np.ndarray) and each.dtype in (np.float32, np.int64, bool) for each in arrays)
        if network is None or not plain or not case.data_sets or "training" in case.name:
            continue
        inputs, outputs = case.data_sets[0]
        given = dict(zip((each.name for each in network.graph.input), inputs, strict=False))
        for name, value in list(given.items())[1:]:
            if value.dtype == np.int64:
                network.graph.initializer.append(numpy_helper.from_array(value, name))
        try:
            read = read_onnx_graph(saved(network, tmp_path))
        except InputError:
            continue
        if not called(read.graph):
            ours = computed(read, given)
            for each, value in zip(network.graph.output, outputs, strict=False):
                if each.name in ours:
                    np.testing.assert_allclose(ours[each.name], value.astype(float), 1e-4, 1e-5, err_msg=case.name)
                    right += 1
    assert right > 500


def test_damaged_networks_get_a_sentence(tmp_path: Path) -> None:
    net = Net(17)
    x = net.input("x", 2, 3, 4)
    norm = net.node("LayerNormalization", x, net.store("g", np.ones(4)), net.store("h", np.ones(4)))
    net.node("MatMul", net.node("Reshape", norm, net.list(0, -1)), net.store("w", np.ones((12, 5))))
    net.node("Split", net.node("Transpose", norm, perm=[2, 0, 1]), net.list(1, 3), count=2)
    net.node("Slice", norm, net.list(1), net.list(3), net.list(2))
    net.node("ReduceSum", net.node("Expand", norm, net.list(5, 2, 3, 4)), net.list(0, 2))
    net.node("Conv", norm, net.store("k", np.ones((2, 3, 2))))
    whole = net.model().SerializeToString()
    rng, refused = random.Random(18), 0
    for number in range(EXAMPLES):
        content = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(content))
            content[at : at + rng.choice((0, 1, 1, 4))] = rng.randbytes(rng.choice((0, 1, 1, 3)))
        path = tmp_path / f"f{number}.onnx"
        path.write_bytes(bytes(content))
        said = list[str]()
        try:
            assert not mistakes(graph_of_onnx(path)), number
        except InputError as error:
            said = [str(each) for each in error.mistakes]
        refused += bool(said)
        assert all("\n" not in each and str(path) in each for each in said), said
    assert refused > EXAMPLES / 3


def test_fuse_reads_the_same_graph(tmp_path: Path) -> None:
    net = Net()
    net.node("Softmax", net.input("x", "batch", 8, batch=2))
    path = saved(net.model(), tmp_path)
    assert lstmsim.load_graph(path, ["batch=2"]) == graph_of_onnx(path, {"batch": 2})
    lstmsim.save_graph(lstmsim.load_graph(path, {"batch": 2}), tmp_path / "b.yaml")
    assert lstmsim.load_graph(tmp_path / "b.yaml").nodes == graph_of_onnx(path, {"batch": 2}).nodes


def test_numbers_that_are_not_4_bytes_in_the_network_are_told(tmp_path: Path) -> None:
    net = Net()
    x = net.input("x", 3, 4)
    # shapes are numbers of 64 bits, which are known and cost nothing
    net.node("Reshape", x, net.node("Shape", x, inner=True))
    assert len(graph_of_onnx(saved(net.model(), tmp_path)).about) == 1
    net.node("Cast", net.node("Cast", x, to=TensorProto.INT8, inner=True), to=TensorProto.DOUBLE)
    assert graph_of_onnx(saved(net.model(), tmp_path)).about[1:] == (
        "whole numbers of 16 bits and less count as 4 bytes each, as all numbers of a graph",
        "numbers of 64 bits count as 4 bytes each, as all numbers of a graph",
    )
