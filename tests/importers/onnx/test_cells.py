"""ONNX's activations, clip, input_forget and directions: the imported network computes what onnxruntime computes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from lstmsim.files.scenario.scenario_file import load_model
from lstmsim.files.scenario.written import write_model_file
from lstmsim.importers.onnx.file import read_onnx
from lstmsim.model.cells import CELLS
from lstmsim.model.model import Precision
from lstmsim.model.numerics.fixed import fixed_arithmetic
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Stimulus

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
HIDDEN, INPUT, STEPS = 6, 5, 7


def arrays_of(kind: str, directions: int, *, peepholes: bool = False, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Frames and weights large enough to reach the bounds of a clip, small enough for activations without bounds."""
    rng, rows = np.random.default_rng(seed), GATES[kind] * HIDDEN
    shapes = {"x": (STEPS, 1, INPUT), "W": (directions, rows, INPUT), "R": (directions, rows, HIDDEN)}
    shapes["B"] = (directions, 2 * rows)
    shapes |= {"P": (directions, 3 * HIDDEN)} if peepholes else {}
    scale = {"x": 1.0, "W": 0.5, "R": 0.3, "B": 0.5, "P": 0.5}
    return {name: (rng.normal(size=shape) * scale[name]).astype(np.float32) for name, shape in shapes.items()}


def save(path: Path, kind: str, arrays: Mapping[str, NDArray[np.float32]], attributes: Mapping[str, Any]) -> None:
    names = ["x", "W", "R", "B", *(["", "", "", "P"] if "P" in arrays else [])]
    node = helper.make_node(kind, names, ["y"], name="node", hidden_size=HIDDEN, **attributes)
    frames = helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, 1, INPUT])
    tensors = [
        helper.make_tensor(name, TensorProto.FLOAT, array.shape, array.ravel())
        for name, array in arrays.items()
        if name != "x"
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", [frames], [output], initializer=tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    path.write_bytes(model.SerializeToString())


#: Operator, whether it has peepholes, attributes other than its defaults; and the name of its cell.
CASES: list[tuple[str, bool, dict[str, Any], str]] = [
    ("RNN", False, {"activations": ["Relu"]}, "rnn-relu"),
    ("RNN", False, {"activations": ["Relu"], "direction": "reverse"}, "rnn-relu"),
    ("RNN", False, {"activations": ["Relu"] * 2, "direction": "bidirectional"}, "rnn-relu"),
    ("RNN", False, {"activations": ["Sigmoid"]}, "rnn-sigmoid"),
    ("RNN", False, {"clip": 0.1}, "rnn-clip_0.1"),
    ("RNN", False, {"activations": ["Relu"], "clip": 0.5}, "rnn-relu-clip_0.5"),
    ("RNN", False, {"activations": ["LeakyRelu"]}, "rnn-leakyrelu"),
    ("RNN", False, {"activations": ["LeakyRelu"], "activation_alpha": [1.25]}, "rnn-leakyrelu_1.25"),
    ("RNN", False, {"activations": ["Elu"], "activation_alpha": [0.3]}, "rnn-elu_0.3"),
    ("RNN", False, {"activations": ["Softsign"]}, "rnn-softsign"),
    ("RNN", False, {"activations": ["Softplus"]}, "rnn-softplus"),
    (
        "RNN",
        False,
        {"activations": ["Affine"], "activation_alpha": [0.3], "activation_beta": [-0.1]},
        "rnn-affine_0.3_-0.1",
    ),
    (
        "RNN",
        False,
        {"activations": ["ScaledTanh"], "activation_alpha": [1.7], "activation_beta": [0.6]},
        "rnn-scaledtanh_1.7_0.6",
    ),
    ("LSTM", False, {"direction": "reverse"}, "lstm"),
    ("LSTM", False, {"activations": ["Sigmoid", "Relu", "Relu"]}, "lstm-sigmoid-relu-relu"),
    ("LSTM", False, {"activations": ["HardSigmoid", "Tanh", "Tanh"]}, "lstm-hardsigmoid-tanh-tanh"),
    (
        "LSTM",
        False,
        {
            "activations": ["LeakyRelu", "HardSigmoid", "Elu"] * 2,
            "activation_alpha": [0.3, 0.5, 0.7] * 2,
            "activation_beta": [0.1, 0.1],
            "direction": "bidirectional",
        },
        "lstm-leakyrelu_0.3-hardsigmoid_0.5_0.1-elu_0.7",
    ),
    ("LSTM", False, {"clip": 0.4}, "lstm-clip_0.4"),
    ("LSTM", True, {"clip": 0.4}, "lstm-peephole-clip_0.4"),
    ("LSTM", False, {"clip": 3.4e38}, "lstm"),
    ("LSTM", False, {"input_forget": 1}, "lstm-coupled"),
    ("LSTM", True, {"input_forget": 1, "clip": 0.4, "direction": "reverse"}, "lstm-peephole-clip_0.4-coupled"),
    ("GRU", False, {"clip": 0.4}, "gru-lbr0-clip_0.4"),
    ("GRU", False, {"clip": 0.4, "linear_before_reset": 1}, "gru-clip_0.4"),
    ("GRU", False, {"activations": ["HardSigmoid", "Relu"]}, "gru-lbr0-hardsigmoid-relu"),
    ("GRU", False, {"direction": "reverse", "linear_before_reset": 1}, "gru"),
]


@pytest.mark.halved
@pytest.mark.parametrize(("kind", "peepholes", "attributes", "name"), CASES)
def test_what_is_imported_computes_what_onnxruntime_does(
    kind: str, peepholes: bool, attributes: dict[str, Any], name: str, tmp_path: Path
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    arrays = arrays_of(kind, directions, peepholes=peepholes)
    save(tmp_path / "a.onnx", kind, arrays, attributes)
    session = runtime.InferenceSession(str(tmp_path / "a.onnx"), providers=["CPUExecutionProvider"])
    y = session.run(None, {"x": arrays["x"]})[0]
    (single,) = read_onnx(tmp_path / "a.onnx", weights=True).models
    network = single.network
    assert network is not None
    layer = network.model.layers[0]
    assert layer.cell.name == name
    assert layer.reverse == (attributes.get("direction") == "reverse")
    computed = run_network(float_arithmetic(network), Stimulus(arrays["x"][:, 0].astype(np.float64))).output()
    expected = np.concatenate([y[:, direction, 0] for direction in range(directions)], axis=1)
    np.testing.assert_allclose(computed, expected, atol=1e-6)
    # a file names the cell, and holds it if it is not built in
    write_model_file(single.model, tmp_path / "m.yaml", source="s", network=network)
    again = load_model(tmp_path / "m.yaml")
    assert again == single.model
    assert again.layers[0].cell.states == layer.cell.states
    assert again.layers[0].cell.source == layer.cell.source
    assert ("cells:" in (tmp_path / "m.yaml").read_text()) == (name not in CELLS)


@pytest.mark.parametrize("attributes", [{"activations": ["Relu"]}, {"clip": 0.4}, {"activations": ["Elu"]}])
def test_fixed_point_holds_what_calibration_reaches(attributes: dict[str, Any], tmp_path: Path) -> None:
    """If no activation bounds h, its format is as wide as the values of the floating-point run."""
    arrays = arrays_of("RNN", 1, seed=3)
    save(tmp_path / "a.onnx", "RNN", arrays | {"W": arrays["W"] * 30}, attributes)
    (single,) = read_onnx(tmp_path / "a.onnx", weights=True).models
    assert single.network is not None
    stimulus = Stimulus(arrays["x"][:, 0].astype(np.float64))
    exact = run_network(float_arithmetic(single.network), stimulus).output()
    arithmetic = fixed_arithmetic(single.network, stimulus, Precision(weight_bits=16, vector_bits=16))
    fixed = run_network(arithmetic, stimulus).output()
    assert np.abs(fixed - exact).max() < 0.01 * np.abs(exact).max()
    assert not arithmetic[0][0].overflowed


def test_a_clipped_lstm_says_what_is_clipped(tmp_path: Path) -> None:
    save(tmp_path / "a.onnx", "LSTM", arrays_of("LSTM", 1), {"clip": 2.0})
    (single,) = read_onnx(tmp_path / "a.onnx").models
    assert "clips what goes into its gates' activations, as onnxruntime does; it does not clip c" in single.notes[0]
