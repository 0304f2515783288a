"""Weights of ONNX networks, against ONNX's own reference evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from lstmsim.base.errors import InputError
from lstmsim.importers.files import import_weights
from lstmsim.importers.onnx.file import read_onnx
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Stimulus
from tests.importers.onnx.graphs import GATES, Graph, branches, save

CELLS = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn"}


class Filled(Graph):
    """A graph whose weights have values."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.random = np.random.default_rng(seed)

    def weight(self, name: str, *dims: int) -> str:
        return self.store(name, self.random.normal(0, 0.5, dims).astype(np.float32))

    def store(self, name: str, array: np.ndarray) -> str:
        self.tensors.append(numpy_helper.from_array(array, name))
        return name


def output(path: Path, x: np.ndarray) -> np.ndarray:
    (imported,) = import_weights(path)
    assert imported.network is not None
    return run_network(float_arithmetic(imported.network), Stimulus(x)).output()


def reference(path: Path, x: np.ndarray) -> np.ndarray:
    """Run an imported network: outputs [steps, directions x hidden]."""
    (y,) = ReferenceEvaluator(onnx.load(path)).run(None, {"x": x[:, None].astype(np.float32)})
    return y[:, :, 0].reshape(len(x), -1)


@pytest.mark.slow
@given(
    st.sampled_from(["LSTM", "peepholes", "GRU", "lbr0", "RNN"]), st.integers(1, 6), st.integers(1, 6), st.booleans()
)
def test_the_numbers_are_those_of_the_reference_evaluator(
    tmp_path_factory: Any, what: str, hidden: int, width: int, bias: bool
) -> None:
    kind = {"peepholes": "LSTM", "lbr0": "GRU"}.get(what, what)
    graph = Filled(hidden)
    inputs = {} if bias else {3: ""}
    if what == "peepholes":
        inputs[7] = graph.weight("P", 1, 3 * hidden)
    given = {"linear_before_reset": 0} if what == "lbr0" else {}
    graph.recurrent(kind, graph.input("x", "n", 1, width), width, hidden, inputs=inputs, **given)
    path = save(graph.proto("rnn_Y"), tmp_path_factory.mktemp("w") / "a.onnx")
    x = np.random.default_rng(5).normal(size=(4, width))
    np.testing.assert_allclose(output(path, x), reference(path, x), rtol=0, atol=3e-6)
    (imported,) = import_weights(path)
    wanted = {"peepholes": "lstm-peephole", "lbr0": "gru-lbr0"}.get(what) or CELLS[kind]
    assert imported.model.layers[0].cell.name == wanted
    assert imported.notes == ()
    assert read_onnx(path).models[0].model == imported.model


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_each_direction_has_its_own_weights(kind: str, tmp_path: Path) -> None:
    """The reference evaluator has only one direction, so each direction is compared alone."""
    both = Filled(3)
    both.recurrent(kind, both.input("x", "n", 1, 3), 3, 2, directions=2)
    x = np.random.default_rng(5).normal(size=(4, 3))
    y = output(save(both, tmp_path / "both.onnx"), x)
    for side, frames in ((0, x), (1, x[::-1])):
        one = Filled()
        one.recurrent(kind, one.input("x", "n", 1, 3), 3, 2)
        one.tensors = [
            numpy_helper.from_array(numpy_helper.to_array(each)[side : side + 1], each.name) for each in both.tensors
        ]
        wanted = reference(save(one.proto("rnn_Y"), tmp_path / "one.onnx"), frames)
        np.testing.assert_allclose(y[:, 2 * side : 2 * side + 2], wanted[:: 1 - 2 * side], rtol=0, atol=3e-6)


def typed(name: str, array: np.ndarray, kind: int) -> TensorProto:
    """Make a tensor in the typed field of its kind, not as raw bytes."""
    flat = array.ravel()
    if kind in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
        bits = flat.astype(np.float16).view(np.uint16) if kind == TensorProto.FLOAT16 else _upper(flat)
        return TensorProto(name=name, data_type=kind, dims=array.shape, int32_data=bits.astype(int).tolist())
    values = {"float_data" if kind == TensorProto.FLOAT else "double_data": flat.tolist()}
    return TensorProto(name=name, data_type=kind, dims=array.shape, **values)


def _upper(flat: np.ndarray) -> np.ndarray:
    return (flat.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_kinds_of_numbers(kind: int, raw: bool, tmp_path: Path) -> None:
    graph = Filled()
    # Multiples of an eighth are exact in every kind of number.
    arrays = {"W": np.arange(8.0).reshape(1, 4, 2) / 8, "R": -np.arange(16.0).reshape(1, 4, 4) / 8}
    for name, array in arrays.items():
        each = typed(name, array, kind)
        if raw:
            each = TensorProto(name=name, data_type=kind, dims=array.shape)
            wide = {TensorProto.DOUBLE: "f8", TensorProto.FLOAT: "f4", TensorProto.FLOAT16: "f2"}.get(kind)
            each.raw_data = array.astype(wide).tobytes() if wide else _upper(array.ravel()).tobytes()
        graph.tensors.append(each)
    graph.nodes.append(helper.make_node("RNN", [graph.input("x", 5, 1, 2), "W", "R"], ["y"], name="r", hidden_size=4))
    (imported,) = import_weights(save(graph, tmp_path / "a.onnx"))
    assert imported.network is not None
    matrices = imported.network.passes[0][0].matrices
    np.testing.assert_array_equal(matrices["a", "x"], arrays["W"][0])
    np.testing.assert_array_equal(matrices["a", "h"], arrays["R"][0])
    assert matrices["a", "x"].dtype == (np.float64 if kind == TensorProto.DOUBLE else np.float32)


def test_weights_behind_what_exporters_put_there(tmp_path: Path) -> None:
    """PyTorch's exporter writes weights like this without constant folding; the reference evaluator is the oracle."""
    graph = Filled()
    graph.weight("turned", 4, 12)
    graph.weight("second", 12, 3)
    one = graph.node("Transpose", ["turned"], "t", perm=[1, 0])
    parts = []
    for number, (start, end) in enumerate(((0, 3), (9, 12), (3, 9))):
        bounds = [
            graph.node("Constant", [], f"c{number}{name}", value_ints=[value])
            for name, value in (("s", start), ("e", end), ("a", 0))
        ]
        parts.append(graph.node("Slice", [one, *bounds], f"part{number}"))
    axes = graph.node("Constant", [], "axes", value_ints=[0])
    joined = graph.node("Unsqueeze", [graph.node("Concat", parts, "joined", axis=0), axes], "W")
    sizes = graph.node("Constant", [], "sizes", value_ints=[1, -1, 3])
    recurrent = graph.node("Identity", [graph.node("Reshape", ["second", sizes], "shaped")], "R")
    held = numpy_helper.from_array(np.arange(24, dtype=np.float32).reshape(1, 24) / 50)
    bias = graph.node("Constant", [], "B", value=held)
    graph.recurrent("LSTM", graph.input("x", "n", 1, 4), 4, 3, inputs={1: joined, 2: recurrent, 3: bias})
    graph.tensors = [each for each in graph.tensors if each.name in ("turned", "second")]
    path = save(graph.proto("rnn_Y"), tmp_path / "a.onnx")
    x = np.random.default_rng(5).normal(size=(4, 4))
    np.testing.assert_allclose(output(path, x), reference(path, x), rtol=0, atol=3e-6)


@pytest.mark.parametrize("what", ["computed", "given", "integers"])
def test_weights_that_are_no_constants_leave_the_shapes(what: str, tmp_path: Path) -> None:
    graph = Filled()
    origin = {
        "given": lambda: graph.input("w", 1, 16, 3),
        "computed": lambda: graph.node("MatMul", [graph.weight("m", 1, 16, 5), graph.weight("n", 1, 5, 3)], "w"),
        "integers": lambda: graph.store("w", np.ones((1, 16, 3), np.int32)),
    }[what]()
    if what == "computed":
        graph.inputs.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, (1, 16, 3)))
    graph.recurrent("LSTM", graph.input("x", 5, 1, 3), 3, 4, inputs={1: origin})
    proto = graph.proto()
    if what == "computed":
        proto.value_info.append(proto.input.pop(0))
    (imported,) = import_weights(save(proto, tmp_path / "a.onnx"))
    assert imported.network is None
    assert [layer.hidden for layer in imported.model.layers] == [4]
    assert imported.notes[0].startswith("W of LSTM 'rnn' comes from ")
    assert imported.notes[0].endswith(": only its shapes are read")


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_weights(path)
    return str(caught.value).replace(str(path), "FILE")


def test_values_that_are_no_weights(tmp_path: Path) -> None:
    for value, sentence in (
        (np.nan, "W holds nan at [0, 0, 0], expected finite"),
        (1e13, "W holds numbers above 1e12"),
    ):
        graph = Filled()
        bad = graph.store("w", np.full((1, 16, 3), value, np.float32))
        graph.recurrent("LSTM", graph.input("x", 5, 1, 3), 3, 4, inputs={1: bad})
        assert f"FILE: LSTM 'rnn': {sentence}" in refusal(save(graph, tmp_path / "a.onnx"))


@pytest.mark.parametrize("raw", [True, False])
def test_tensors_shorter_than_their_shape(raw: bool, tmp_path: Path) -> None:
    graph = Filled()
    graph.recurrent("LSTM", graph.input("x", 5, 1, 3), 3, 4)
    tensor = graph.tensors[0]
    if raw:
        tensor.raw_data = tensor.raw_data[:-4]
    else:
        tensor.float_data.extend([0.0] * 7)
        tensor.ClearField("raw_data")
    assert "the tensor 'rnn_W' has not the 48 numbers that its shape states" in refusal(
        save(graph, tmp_path / "a.onnx")
    )


def test_names_repeated_without_end(tmp_path: Path) -> None:
    graph = Filled()
    name = graph.weight("w", 1, 16, 3)
    for number in range(40):
        name = graph.node("Concat", [name] * 50, f"c{number}", axis=0)
    graph.recurrent("LSTM", graph.input("x", 5, 1, 3), 3, 4, inputs={1: name})
    proto = graph.proto()
    proto.value_info.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 16, 3)))
    with pytest.raises(InputError):
        import_weights(save(proto, tmp_path / "a.onnx"))


@pytest.mark.parametrize("equal", [True, False])
def test_branches_with_weights_of_their_own_are_models_of_their_own(equal: bool, tmp_path: Path) -> None:
    graph = Filled()
    branches("LSTM", (6, 6), graph, graph.input("x", 5, 1, 4), 4)
    arrays = {each.name: np.ones(tuple(each.dims), np.float32) for each in graph.tensors}
    if not equal:
        arrays["else/rnn_B"] *= 2
    graph.tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    path = save(graph, tmp_path / "a.onnx")
    assert len(import_weights(path)) == (1 if equal else 2)
    assert len(read_onnx(path).models) == 1


def test_peepholes_of_the_wrong_length(tmp_path: Path) -> None:
    graph = Filled()
    graph.recurrent("LSTM", graph.input("x", 5, 1, 3), 3, 4, inputs={7: graph.weight("P", 1, 13)})
    assert "contradict hidden_size 4: P is [1, 13], expected [1, 12]" in refusal(save(graph, tmp_path / "a.onnx"))


def test_barriers_are_counted_as_the_cells_have_them() -> None:
    assert {kind: len(order) for kind, order in {"LSTM": "iofc", "GRU": "zrh", "RNN": "a"}.items()} == GATES
