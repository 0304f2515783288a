"""Weights behind DequantizeLinear are read as the numbers that they mean; a note names weights of 16 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from lstmsim.base.errors import InputError
from lstmsim.importers.files import import_weights
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from tests.importers.onnx.graphs import save
from tests.importers.onnx.test_weights import Filled

WIDTH, HIDDEN = 3, 4
ROWS = 4 * HIDDEN


class Scaled(Filled):
    """An LSTM whose W, and R if wanted, are whole numbers with a scale."""

    def scaled(
        self, name: str, shape: tuple[int, ...], kind: str = "i1", axis: int | None = None, zero: bool = True
    ) -> str:
        """Add a scaled weight; `axis`: the axis along which each place has its own scale, None: one scale for all."""
        limits = np.iinfo(kind)
        low, high = (-900, 900) if limits.bits > 8 else (limits.min, limits.max)
        self.store(f"{name}_q", self.random.integers(low, high + 1, shape).astype(kind))
        count = () if axis is None else (shape[axis],)
        self.store(f"{name}_s", self.random.uniform(0.001, 0.004, count).astype("f4"))
        parts = [f"{name}_q", f"{name}_s"]
        if zero:
            # onnxruntime takes only 0 as a zero point of 32 bits.
            self.store(f"{name}_z", self.random.integers(low // 10, 9, count).astype(kind) * (kind != "i4"))
            self.tensors[-1].data_type = self.tensors[-3].data_type
            parts.append(f"{name}_z")
        return self.node("DequantizeLinear", parts, name, **({} if axis is None else {"axis": axis}))

    def lstm(self, **weights: str) -> str:
        places = {{"W": 1, "R": 2, "B": 3}[name]: value for name, value in weights.items()}
        return self.recurrent("LSTM", self.input("x", "n", 1, WIDTH), WIDTH, HIDDEN, inputs=places)


def near(path: Path, **more: bool) -> tuple[str, ...]:
    """Check that an imported network computes what onnxruntime does, and give its notes."""
    ort = pytest.importorskip("onnxruntime")
    (imported,) = import_weights(path, **more)
    assert imported.network is not None, imported.notes
    x = np.random.default_rng(3).normal(size=(6, WIDTH))
    y = run_network(float_arithmetic(imported.network), imported.network.stimulus(x)).output()
    model = onnx.load(path)
    model.ir_version = 10
    options = ort.SessionOptions()
    # onnxruntime's optimiser rounds the input of a product of 8-bit weights, which the network does not ask for.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"x": x[:, None].astype("f4")})
    np.testing.assert_allclose(y, wanted.reshape(len(x), -1), rtol=0, atol=1e-6)
    return imported.notes


@pytest.mark.parametrize("axis", [None, 1, -1])
@pytest.mark.parametrize("kind", ["i1", "u1", "i4"])
def test_the_numbers_are_those_of_onnxruntime(kind: str, axis: int | None, tmp_path: Path) -> None:
    graph = Scaled(5)
    y = graph.lstm(W=graph.scaled("W", (1, ROWS, WIDTH), kind, axis))
    path = save(graph.proto(y), tmp_path / "a.onnx")
    bits = {"i1": 8, "u1": 8, "i4": 32}[kind]
    note = f"W of LSTM 'rnn' is stored as {bits}-bit numbers, read as what these mean"
    assert near(path) == (note,)
    assert import_weights(path, weights=False)[0].notes == (note,)


def test_without_zero_points_and_turned_afterwards(tmp_path: Path) -> None:
    graph = Scaled(5)
    turned = graph.node("Transpose", [graph.scaled("Rt", (1, HIDDEN, ROWS), axis=2, zero=False)], "R", perm=[0, 2, 1])
    y = graph.lstm(W=graph.scaled("W", (1, ROWS, WIDTH)), R=turned, B=graph.scaled("B", (1, 2 * ROWS), "i4"))
    (note,) = near(save(graph.proto(y), tmp_path / "a.onnx"))
    assert note == "W, R and B of LSTM 'rnn' are stored as 8-bit and 32-bit numbers, read as what these mean"


def test_whole_numbers_that_are_clipped(tmp_path: Path) -> None:
    """Brevitas writes its weights so; without one of the bounds, the operation is named."""
    for bounds, sentence in ((("low", "high"), ""), (("low",), "a node DequantizeLinear whose arguments are not read")):
        graph = Scaled(5)
        graph.scaled("W", (1, ROWS, WIDTH))
        for name, number in (("low", -100), ("high", 90)):
            graph.store(name, np.array(number, np.int8))
        dequantised = graph.nodes.pop()
        dequantised.input[0] = graph.node("Clip", ["W_q", *bounds], "W_c")
        graph.nodes.append(dequantised)
        path = save(graph.proto(graph.lstm(W="W")), tmp_path / "a.onnx")
        if sentence:
            (imported,) = import_weights(path)
            assert sentence in imported.notes[-1]
        else:
            assert near(path) == ("W of LSTM 'rnn' is stored as 8-bit numbers, read as what these mean",)


def test_a_head(tmp_path: Path) -> None:
    graph = Scaled(5)
    axes = graph.store("one", np.array([1]))
    y = graph.node("Squeeze", [graph.lstm(), axes], "y")
    y = graph.node("MatMul", [y, graph.scaled("M", (HIDDEN, 5), "u1", 1)], "mm")
    (note,) = near(save(graph.proto(y), tmp_path / "a.onnx"), heads=True)
    assert note == "the matrix of MatMul 'node_mm' is stored as 8-bit numbers, read as what these mean"


@pytest.mark.parametrize(
    ("kind", "other"),
    [("Mul", (ROWS, 1)), ("Div", ()), ("Add", (1, 1, WIDTH)), ("Sub", (1,))]
    + [(kind, None) for kind in ("Neg", "Tanh", "Sigmoid", "Sqrt")],
)
def test_constants_computed_from_constants(kind: str, other: tuple[int, ...] | None, tmp_path: Path) -> None:
    graph = Scaled(5)
    positive = graph.store("W0", graph.random.uniform(0.1, 1, (1, ROWS, WIDTH)).astype("f4"))
    names = (
        [positive] if other is None else [positive, graph.store("o", graph.random.uniform(0.5, 2, other).astype("f4"))]
    )
    y = graph.lstm(W=graph.node(kind, names, "W"))
    assert near(save(graph.proto(y), tmp_path / "a.onnx")) == ()


def test_constants_that_grow_endlessly_or_have_16_bits_are_not_computed(tmp_path: Path) -> None:
    graph, name = Scaled(5), "d0"
    graph.store(name, np.zeros((), "f4"))
    for at in range(40):
        name = graph.node("Add", [name, name], f"d{at + 1}")
    bias = graph.node("Add", [name, graph.weight("b", 1, 2 * ROWS)], "B")
    with pytest.raises(InputError, match="repeats its weights"):
        import_weights(save(graph.proto(graph.lstm(B=bias)), tmp_path / "a.onnx"))
    graph = Scaled(5)
    half = graph.store("half", np.ones((1, ROWS, WIDTH), np.float16))
    path = save(graph.proto(graph.lstm(W=graph.node("Neg", [half], "W"))), tmp_path / "b.onnx")
    (imported,) = import_weights(path)
    assert imported.network is None
    assert imported.notes[-1] == "W of LSTM 'rnn' comes from a node Neg in 16 bits: only its shapes are read"


def test_in_a_data_file(tmp_path: Path) -> None:
    graph = Scaled(5)
    y = graph.lstm(W=graph.scaled("W", (1, ROWS, WIDTH), axis=1))
    inside = import_weights(save(graph.proto(y), tmp_path / "a.onnx"))[0].network
    model = onnx.load(tmp_path / "a.onnx")
    onnx.save(model, tmp_path / "b.onnx", save_as_external_data=True, location="b.data", size_threshold=0)
    outside = import_weights(tmp_path / "b.onnx")[0].network
    assert inside is not None
    assert outside is not None
    np.testing.assert_array_equal(
        inside.passes[0][0].matrices["g", "x"], outside.passes[0][0].matrices["g", "x"], strict=True
    )


@pytest.mark.parametrize(
    ("name", "array", "given"),
    [
        ("W_s", np.ones(5, "f4"), {}),
        ("W_s", np.ones((1, ROWS), "f4"), {}),
        ("W_z", np.zeros(ROWS, "i1"), {}),
        ("W_z", np.zeros((), "u1"), {}),
        ("W_q", np.zeros((1, ROWS, WIDTH), "i8"), {}),
        ("W_s", np.ones((), "f4"), {"block_size": 2}),
        ("W_s", np.ones((), "f4"), {"output_dtype": 10}),
    ],
)
def test_what_does_not_fit_is_read_as_shapes(
    name: str, array: np.ndarray, given: dict[str, int], tmp_path: Path
) -> None:
    graph = Scaled(5)
    y = graph.lstm(W=graph.scaled("W", (1, ROWS, WIDTH)))
    graph.tensors = [each for each in graph.tensors if each.name != name]
    graph.store(name, array)
    graph.nodes[0].attribute.extend(onnx.helper.make_attribute(*each) for each in given.items())
    (imported,) = import_weights(save(graph.proto(y), tmp_path / "a.onnx"))
    assert imported.network is None
    assert "W of LSTM 'rnn' comes from a node DequantizeLinear whose arguments" in imported.notes[-1]


def test_whole_numbers_cut_off(tmp_path: Path) -> None:
    graph = Scaled(5)
    y = graph.lstm(W=graph.scaled("W", (1, ROWS, WIDTH)))
    graph.tensors[0].raw_data = graph.tensors[0].raw_data[:-1]
    with pytest.raises(InputError, match="'W_q' has not the 48 numbers that its shape states"):
        import_weights(save(graph.proto(y), tmp_path / "a.onnx"))


def test_a_scale_of_16_bits_gives_numbers_of_16_bits(tmp_path: Path) -> None:
    graph = Scaled(5)
    y = graph.lstm(W=graph.scaled("W", (1, ROWS, WIDTH)))
    graph.tensors = [each for each in graph.tensors if each.name != "W_s"]
    graph.store("W_s", np.array(0.00321, np.float16))
    (imported,) = import_weights(save(graph.proto(y), tmp_path / "a.onnx"))
    assert imported.network is not None
    made = imported.network.passes[0][0].matrices["g", "x"]
    np.testing.assert_array_equal(made, made.astype(np.float16))
    assert (
        imported.notes[1] == "the weights of LSTM 'rnn' have 16 bits (F16); they are the same here, the sums are wider"
    )


def test_weights_of_16_bits(tmp_path: Path) -> None:
    graph = Filled(5)
    shapes = {"W": (1, ROWS, WIDTH), "R": (1, ROWS, HIDDEN), "B": (1, 2 * ROWS)}
    names = [graph.store(name, graph.random.normal(0, 0.5, shape).astype("f2")) for name, shape in shapes.items()]
    x = graph.node("Cast", [graph.input("x", "n", 1, WIDTH)], "half", to=10)
    y = graph.recurrent("LSTM", x, WIDTH, HIDDEN, inputs=dict(zip((1, 2, 3), names, strict=True)))
    (imported,) = import_weights(save(graph.proto(y), tmp_path / "a.onnx"))
    assert imported.network is not None
    note = imported.notes[-1]
    assert note == "the weights of LSTM 'rnn' have 16 bits (F16); they are the same here, the sums are wider"


def test_numbers_of_16_bits_that_the_network_widens_are_no_matter(tmp_path: Path) -> None:
    graph = Filled(5)
    wide = graph.node(
        "Cast", [graph.store("half", graph.random.normal(0, 1, (1, ROWS, WIDTH)).astype("f2"))], "W", to=1
    )
    y = graph.recurrent("LSTM", graph.input("x", "n", 1, WIDTH), WIDTH, HIDDEN, inputs={1: wide})
    assert near(save(graph.proto(y), tmp_path / "a.onnx")) == ()
