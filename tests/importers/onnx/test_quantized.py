"""LSTM nodes with 8-bit weights are read as the numbers that these mean; a note says what else the original rounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from lstmsim.base.errors import InputError
from lstmsim.importers.files import import_weights
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from tests.importers.onnx.graphs import save
from tests.importers.onnx.test_weights import Filled

NOTE = "the original also rounds x and h at each step, by ranges found at run time: not simulated"


class Rounded(Filled):
    """A graph with one LSTM of 8-bit weights, and the same graph with the numbers that they mean."""

    def __init__(self, directions: int = 1, columns: bool = False, kind: type = np.int8, hidden: int = 4) -> None:
        super().__init__(5)
        self.meant: list[onnx.TensorProto] = []
        inputs, rows = [self.input("x", "n", 1, 3), "", "", "B"], 4 * hidden
        for name, width in (("W", 3), ("R", hidden)):
            limits = np.iinfo(kind)
            numbers = self.random.integers(limits.min, limits.max + 1, (directions, width, rows)).astype(kind)
            shape = (directions, rows) if columns else (directions,)
            scale = self.random.uniform(0.002, 0.01, shape).astype(np.float32)
            # onnxruntime takes only these zero points if each column has its own.
            zero = np.full(shape, 0 if kind is np.int8 and columns else 100).astype(kind)
            inputs[{"W": 1, "R": 2}[name]] = self.store(name, numbers)
            for each, array in (("scale", scale), ("zero", zero)):
                self.store(f"{name}_{each}", array)
            wide = scale.reshape(directions, 1, -1).astype(np.float64)
            real = (numbers.astype(np.float64) - zero.reshape(directions, 1, -1).astype(np.float64)) * wide
            self.meant.append(numpy_helper.from_array(real.transpose(0, 2, 1).astype(np.float32), name))
        self.meant.append(numpy_helper.from_array(self.random.normal(0, 0.5, (directions, 2 * rows)).astype("f4"), "B"))
        self.tensors.append(self.meant[-1])
        self.given = {"hidden_size": hidden, "direction": "bidirectional" if directions == 2 else "forward"}
        scales = ["W_scale", "W_zero", "R_scale", "R_zero"]
        self.nodes.append(
            helper.make_node(
                "DynamicQuantizeLSTM", [*inputs, *[""] * 4, *scales], ["y"], "q", domain="com.microsoft", **self.given
            )
        )

    def plain(self) -> onnx.GraphProto:
        """The LSTM with the numbers that the 8-bit weights mean."""
        node = helper.make_node("LSTM", ["x", "W", "R", "B"], ["y"], "plain", **self.given)
        return helper.make_graph([node], "plain", self.inputs, self.proto("y").output, self.meant)


def run(path: Path, x: np.ndarray) -> np.ndarray:
    ort = pytest.importorskip("onnxruntime")
    model = onnx.load(path)
    model.ir_version = 8
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {"x": x[:, None].astype("f4")})
    return y[:, :, 0].reshape(len(x), -1)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
def test_the_numbers_are_those_that_the_weights_mean(
    directions: int, columns: bool, kind: type, tmp_path: Path
) -> None:
    graph = Rounded(directions, columns, kind)
    path = save(graph.proto("y"), tmp_path / "a.onnx")
    (imported,) = import_weights(path)
    assert imported.network is not None
    x = np.random.default_rng(3).normal(size=(6, 3))
    y = run_network(float_arithmetic(imported.network), imported.network.stimulus(x)).output()
    np.testing.assert_allclose(y, run(save(graph.plain(), tmp_path / "plain.onnx"), x), rtol=0, atol=1e-6)
    # The original rounds more, so outputs are near but not equal.
    difference = np.abs(y - run(path, x)).max()
    assert 1e-5 < difference < 0.05
    assert len(imported.notes) == 1
    assert imported.notes[0].startswith("DynamicQuantizeLSTM 'q' has 8-bit weights, read as the numbers they mean; ")
    assert imported.notes[0].endswith(NOTE)
    shapes = import_weights(path, weights=False)[0]
    assert (shapes.model, shapes.notes) == (imported.model, imported.notes)


def test_weights_in_a_data_file(tmp_path: Path) -> None:
    graph = Rounded()
    inside = import_weights(save(graph.proto("y"), tmp_path / "a.onnx"))[0].network
    model = onnx.load(tmp_path / "a.onnx")
    onnx.save(model, tmp_path / "b.onnx", save_as_external_data=True, location="b.data", size_threshold=0)
    outside = import_weights(tmp_path / "b.onnx")[0].network
    assert inside is not None
    assert outside is not None
    np.testing.assert_array_equal(
        inside.passes[0][0].matrices["g", "h"], outside.passes[0][0].matrices["g", "h"], strict=True
    )
    (tmp_path / "b.data").unlink()
    assert import_weights(tmp_path / "b.onnx", weights=False)[0].network is None


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("W", np.zeros((1, 3), np.int8), "W is [1, 3], expected [directions, inputs, 4 x hidden]"),
        ("W_scale", np.ones(7, np.float32), "W has its scales of shape [7], expected [1] or [1, 16]"),
        ("R_zero", np.ones((2, 16), np.int8), "R has its zero points of shape [2, 16]"),
        ("R_zero", np.ones(1, np.uint8), "R holds other kinds of numbers than 8 bits with float32 scales"),
        ("W_scale", np.full(1, np.nan, np.float32), "W holds nan"),
    ],
)
def test_weights_that_are_wrong(name: str, array: np.ndarray, words: str, tmp_path: Path) -> None:
    graph = Rounded()
    graph.tensors = [each for each in graph.tensors if each.name != name]
    graph.store(name, array)
    with pytest.raises(InputError) as caught:
        import_weights(save(graph.proto("y"), tmp_path / "a.onnx"))
    assert words in str(caught.value)


def test_weights_cut_off(tmp_path: Path) -> None:
    graph = Rounded()
    graph.tensors[0].raw_data = graph.tensors[0].raw_data[:-1]
    with pytest.raises(InputError, match="'W' has not the 48 numbers that its shape states"):
        import_weights(save(graph.proto("y"), tmp_path / "a.onnx"))


def test_weights_that_are_computed_are_refused(tmp_path: Path) -> None:
    graph = Rounded()
    graph.tensors = [each for each in graph.tensors if each.name != "W_scale"]
    graph.input("W_scale", 1)
    with pytest.raises(InputError, match=r"belongs to 'com\.microsoft'"):
        import_weights(save(graph.proto("y"), tmp_path / "a.onnx"))
