"""The golden model against ONNX's reference evaluator, onnxruntime, and equations written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Network, Stimulus, random_network, random_stimulus

#: (hidden, input, steps): ones, primes, multiples of nothing.
SHAPES = [(1, 1, 1), (1, 5, 3), (7, 1, 4), (13, 11, 5), (16, 8, 6), (31, 3, 2)]

#: Cell to (operator, gates in ONNX's order as (sums over x, sums over h), attributes).
ONNX: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], dict[str, Any]]] = {
    "lstm": ("LSTM", ("i", "o", "f", "g"), ("i", "o", "f", "g"), {}),
    "lstm-peephole": ("LSTM", ("i", "o", "f", "g"), ("i", "o", "f", "g"), {}),
    "gru": ("GRU", ("z", "r", "nx"), ("z", "r", "nh"), {"linear_before_reset": 1}),
    "gru-lbr0": ("GRU", ("z", "r", "n"), ("z", "r", "n"), {"linear_before_reset": 0}),
    "rnn": ("RNN", ("a",), ("a",), {}),
    "rnn-relu": ("RNN", ("a",), ("a",), {"activations": ["Relu"]}),
}


def network_of(
    name: str, hidden: int, width: int, both: bool = False, projection: int | None = None, reverse: bool = False
) -> Network:
    layer = Layer(cell(name), hidden, width, both, projection, reverse)
    return random_network(Model(name, (layer,)), seed=hidden * 100 + width)


def onnx_model(network: Network, steps: int) -> tuple[Any, dict[str, NDArray[np.float32]]]:
    """Make a model of one recurrent node with the network's weights as inputs; states begin at 0."""
    from onnx import TensorProto, helper

    layer = network.model.layers[0]
    operator, over_x, over_h, attributes = ONNX[layer.cell.name]
    feeds: dict[str, list[NDArray[Any]]] = {"W": [], "R": [], "B": [], "P": []}
    for weights in network.passes[0]:
        h_vector = {"gru-lbr0": {"n": "rh"}}.get(layer.cell.name, {})
        feeds["W"].append(np.concatenate([weights.matrices[each, "x"] for each in over_x]))
        feeds["R"].append(np.concatenate([weights.matrices[each, h_vector.get(each, "h")] for each in over_h]))
        apart = [each if each not in over_x else "" for each in over_h]
        zero = np.zeros(layer.hidden)
        halves = [weights.biases[each] for each in over_x] + [weights.biases[each] if each else zero for each in apart]
        feeds["B"].append(np.concatenate(halves))
        if layer.cell.parameters:
            feeds["P"].append(np.concatenate([weights.parameters[each] for each in ("pi", "po", "pf")]))
    arrays = {name: np.stack(each).astype(np.float32) for name, each in feeds.items() if each}
    names = ["x", "W", "R", "B"] + (["", "", "", "P"] if "P" in arrays else [])
    direction = "bidirectional" if layer.bidirectional else "reverse" if layer.reverse else "forward"
    if "activations" in attributes:
        attributes = {"activations": attributes["activations"] * layer.directions}
    node = helper.make_node(operator, names, ["y"], hidden_size=layer.hidden, direction=direction, **attributes)
    shapes = {"x": [steps, 1, layer.input], **{name: list(each.shape) for name, each in arrays.items()}}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), arrays


def golden(network: Network, stimulus: Stimulus, dtype: Any = np.float64) -> NDArray[np.float64]:
    return run_network(float_arithmetic(network, dtype), stimulus).output()


#: The reference evaluator's RNN knows no Relu.
@pytest.mark.parametrize("name", [name for name in ONNX if name != "rnn-relu"])
@pytest.mark.parametrize("shape", SHAPES)
def test_onnx_reference(name: str, shape: tuple[int, int, int]) -> None:
    reference = pytest.importorskip("onnx.reference")
    hidden, width, steps = shape
    network = network_of(name, hidden, width)
    stimulus = random_stimulus(network.model, steps, seed=1)
    model, arrays = onnx_model(network, steps)
    feeds = {"x": stimulus.x[:, None, :].astype(np.float32), **arrays}
    # its product of a row and a column now and then sets the flag of invalid numbers, although none is in the result
    with np.errstate(invalid="ignore"):
        y = reference.ReferenceEvaluator(model).run(None, feeds)[0]
    np.testing.assert_allclose(golden(network, stimulus), y[:, 0, 0], atol=2e-6)


@pytest.mark.halved
@pytest.mark.parametrize("name", ONNX)
@pytest.mark.parametrize(
    ("shape", "way"),
    [
        # in the usual run each way has half of the shapes
        pytest.param(shape, way, marks=pytest.mark.long if (number + at) % 2 else ())
        for number, shape in enumerate(SHAPES)
        for at, way in enumerate(("forward", "both", "reverse"))
    ],
)
def test_onnxruntime(name: str, shape: tuple[int, int, int], way: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    hidden, width, steps = shape
    network = network_of(name, hidden, width, way == "both", reverse=way == "reverse")
    stimulus = random_stimulus(network.model, steps, seed=2)
    model, arrays = onnx_model(network, steps)
    feeds = {"x": stimulus.x[:, None, :].astype(np.float32), **arrays}
    y = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    expected = np.concatenate([y[:, direction, 0] for direction in range(y.shape[1])], axis=1)
    for dtype in (np.float32, np.float64):
        np.testing.assert_allclose(golden(network, stimulus, dtype), expected, atol=5e-6)


def sigmoid(v: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.5 * (1 + np.tanh(v / 2))


def projected(w: Any, x: NDArray[np.float64], hidden: int) -> list[NDArray[np.float64]]:
    """nn.LSTM with proj_size: h = W_hr (o * tanh(c))."""
    h, c, out = np.zeros(w.matrices["p", "m"].shape[0]), np.zeros(hidden), []
    for frame in x:
        i, f, g, o = (w.matrices[k, "x"] @ frame + w.matrices[k, "h"] @ h + w.biases[k] for k in "ifgo")
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = w.matrices["p", "m"] @ (sigmoid(o) * np.tanh(c)) + w.biases["p"]
        out.append(h)
    return out


def normalised(w: Any, x: NDArray[np.float64], hidden: int) -> list[NDArray[np.float64]]:
    """Ba et al. 2016: LN over all four gates of each product, LN of c before the output."""

    def norm(v: NDArray[np.float64]) -> NDArray[np.float64]:
        return (v - v.mean()) / np.sqrt(v.var() + 1e-5)

    h, c, out, p = np.zeros(hidden), np.zeros(hidden), [], w.parameters
    for frame in x:
        a = norm(np.concatenate([w.matrices[f"{k}x", "x"] @ frame + w.biases[f"{k}x"] for k in "ifgo"]))
        b = norm(np.concatenate([w.matrices[f"{k}h", "h"] @ h + w.biases[f"{k}h"] for k in "ifgo"]))
        scale_x, scale_h = (np.concatenate([p[f"a{side}{k}"] for k in "ifgo"]) for side in "xh")
        i, f, g, o = np.split(a * scale_x + b * scale_h + np.concatenate([p[f"b{k}"] for k in "ifgo"]), 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(norm(c) * p["ac"] + p["bc"])
        out.append(h)
    return out


def slstm(w: Any, x: NDArray[np.float64], hidden: int) -> list[NDArray[np.float64]]:
    """xLSTM's scalar memory without its stabiliser, which must not change h."""
    h, c, n, out = np.zeros(hidden), np.zeros(hidden), np.zeros(hidden), []
    for frame in x:
        i, f, z, o = (w.matrices[k, "x"] @ frame + w.matrices[k, "h"] @ h + w.biases[k] for k in "ifzo")
        c = sigmoid(f) * c + np.exp(i) * np.tanh(z)
        n = sigmoid(f) * n + np.exp(i)
        h = sigmoid(o) * c / n
        out.append(h)
    return out


def mingru(w: Any, x: NDArray[np.float64], hidden: int) -> list[NDArray[np.float64]]:
    """The parallel form: h_t is a sum over all candidates, each times the product of (1 - z) of later steps."""
    z = sigmoid(x @ w.matrices["z", "x"].T + w.biases["z"])
    n = x @ w.matrices["n", "x"].T + w.biases["n"]
    return [
        sum((z[k] * n[k] * np.prod(1 - z[k + 1 : t + 1], axis=0) for k in range(t + 1)), np.zeros(hidden))
        for t in range(len(x))
    ]


def dense(w: Any, x: NDArray[np.float64], hidden: int) -> list[NDArray[np.float64]]:
    return list(x @ w.matrices["y", "x"].T + w.biases["y"])


def rnn_relu(w: Any, x: NDArray[np.float64], hidden: int) -> list[NDArray[np.float64]]:
    """h = max(0, W x + R h + b)."""
    h, out = np.zeros(hidden), []
    for frame in x:
        h = np.maximum(0, w.matrices["a", "x"] @ frame + w.matrices["a", "h"] @ h + w.biases["a"])
        out.append(h)
    return out


EQUATIONS = {
    "rnn-relu": rnn_relu,
    "lstm-projection": projected,
    "lstm-layernorm": normalised,
    "slstm": slstm,
    "mingru": mingru,
    "dense": dense,
    "dense-relu": lambda w, x, hidden: [np.maximum(0, y) for y in dense(w, x, hidden)],
    "dense-tanh": lambda w, x, hidden: [np.tanh(y) for y in dense(w, x, hidden)],
    "dense-sigmoid": lambda w, x, hidden: [1 / (1 + np.exp(-y)) for y in dense(w, x, hidden)],
}


@pytest.mark.halved
@pytest.mark.parametrize("name", EQUATIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_equations_written_out(name: str, shape: tuple[int, int, int]) -> None:
    hidden, width, steps = shape
    network = network_of(name, hidden, width, projection=(hidden + 1) // 2 if name == "lstm-projection" else None)
    stimulus = random_stimulus(network.model, steps, seed=3)
    expected = np.array(EQUATIONS[name](network.passes[0][0], stimulus.x, hidden))
    np.testing.assert_allclose(golden(network, stimulus), expected, atol=1e-9)


def test_every_cell_has_an_independent_model() -> None:
    from lstmsim.model.cells import CELLS

    assert set(CELLS) == set(ONNX) | set(EQUATIONS)


def test_initial_states_and_layers_chain() -> None:
    layer = Layer(cell("gru"), 5, 4)
    network = random_network(Model("two", (layer, Layer(cell("lstm"), 3, 5))), seed=9)
    x = random_stimulus(network.model, 6, seed=9).x
    whole = run_network(float_arithmetic(network), Stimulus(x))
    first = run_network(float_arithmetic(network), Stimulus(x[:2]))
    states = {(number, 0): first.passes[number][0].states for number in range(2)}
    rest = run_network(float_arithmetic(network), Stimulus(x[2:], states))
    np.testing.assert_allclose(np.concatenate([first.output(), rest.output()]), whole.output(), atol=1e-12)
    # h alone is enough for the GRU: the state that h is quantized from starts as h
    only_h = {(0, 0): {"h": first.passes[0][0].states["h"]}, (1, 0): first.passes[1][0].states}
    np.testing.assert_allclose(
        run_network(float_arithmetic(network), Stimulus(x[2:], only_h)).output(), whole.output()[2:], atol=1e-12
    )
