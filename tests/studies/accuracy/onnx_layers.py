"""An independent oracle: the same weights as one ONNX node, run by onnxruntime. Needs both packages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from lstmsim.model.model import Layer
from lstmsim.model.numerics.weights import PassWeights

Run = Callable[[NDArray[np.floating], NDArray[np.floating]], NDArray[np.float64]]

#: ONNX operator, and for each gate in ONNX's order the sums here that read x and h.
_GATES = {
    "lstm": ("LSTM", (("i", "i"), ("o", "o"), ("f", "f"), ("g", "g"))),
    "gru": ("GRU", (("z", "z"), ("r", "r"), ("nx", "nh"))),
}


def onnx_layer(layer: Layer, weights: PassWeights) -> Run:
    """Make a function from x [steps, input] and h before the first step [hidden] to h [steps, hidden], in float32."""
    operator, gates = _GATES[layer.cell.name]
    inputs = {
        "W": np.concatenate([weights.matrices[x, "x"] for x, _ in gates])[None],
        "R": np.concatenate([weights.matrices[h, "h"] for _, h in gates])[None],
        "B": np.concatenate(
            [weights.biases[x] for x, _ in gates]
            + [np.zeros(layer.hidden) if x == h else weights.biases[h] for x, h in gates]
        )[None],
    }
    attributes = {"linear_before_reset": 1} if operator == "GRU" else {}
    node = helper.make_node(
        operator, ["X", "W", "R", "B", "", "initial_h"], ["Y"], hidden_size=layer.hidden, **attributes
    )
    graph = helper.make_graph(
        [node],
        "layer",
        [
            helper.make_tensor_value_info("X", TensorProto.FLOAT, ["steps", 1, layer.input]),
            helper.make_tensor_value_info("initial_h", TensorProto.FLOAT, [1, 1, layer.hidden]),
        ],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["steps", 1, 1, layer.hidden])],
        [numpy_helper.from_array(each.astype(np.float32), name) for name, each in inputs.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def run(x: NDArray[np.floating], initial: NDArray[np.floating]) -> NDArray[np.float64]:
        feeds = {"X": x.astype(np.float32)[:, None], "initial_h": initial.astype(np.float32)[None, None]}
        return np.asarray(session.run(["Y"], feeds)[0], np.float64)[:, 0, 0]

    return run
