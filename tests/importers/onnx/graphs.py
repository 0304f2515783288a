"""Small ONNX networks for tests, built with onnx.helper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def tensor(name: str, *dims: int) -> onnx.TensorProto:
    """Declare a weight in another file that does not exist: the import must do with its shape."""
    weight = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="missing.onnx.data")
    return weight


class Graph:
    """A graph under construction."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []
        self.inputs: list[Any] = []

    def input(self, name: str, *dims: int | str | None) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))
        return name

    def weight(self, name: str, *dims: int) -> str:
        self.tensors.append(tensor(name, *dims))
        return name

    def node(self, kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=f"node_{output}", **attributes))
        return output

    def recurrent(
        self,
        kind: str,
        frames: str,
        width: int,
        hidden: int,
        *,
        name: str = "rnn",
        directions: int = 1,
        inputs: dict[int, str] | None = None,
        **attributes: Any,
    ) -> str:
        """Add a recurrent node with fitting weights; the result is the name of its output sequence."""
        rows = GATES[kind] * hidden
        names = [
            frames,
            self.weight(f"{name}_W", directions, rows, width),
            self.weight(f"{name}_R", directions, rows, hidden),
            self.weight(f"{name}_B", directions, 2 * rows),
            *[""] * 4,
        ]
        for place, other in (inputs or {}).items():
            names[place] = other
        if kind == "GRU":
            attributes.setdefault("linear_before_reset", 1)
        if directions == 2:
            attributes.setdefault("direction", "bidirectional")
        attributes.setdefault("hidden_size", hidden)
        while not names[-1]:
            names.pop()
        node = helper.make_node(kind, names, [f"{name}_Y", f"{name}_Yh"], name=name)
        node.attribute.extend(
            helper.make_attribute(key, value) for key, value in attributes.items() if value is not None
        )
        self.nodes.append(node)
        return f"{name}_Y"

    def proto(self, *outputs: str, name: str = "graph") -> onnx.GraphProto:
        infos = [helper.make_tensor_value_info(each, TensorProto.FLOAT, None) for each in outputs]
        return helper.make_graph(self.nodes, name, self.inputs, infos, initializer=self.tensors)


def save(graph: Graph | onnx.GraphProto, path: Path, functions: Sequence[Any] = ()) -> Path:
    proto = graph.proto() if isinstance(graph, Graph) else graph
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(proto, functions=functions, opset_imports=imports, producer_name="pytest")
    path.write_bytes(model.SerializeToString())
    return path


def branches(kind: str, sizes: tuple[int, int], outer: Graph, frames: str, width: int) -> str:
    """Make an `If` with a recurrent node of each size in its branches; their weights are in the outer graph."""
    made = []
    for name, hidden in zip(("then", "else"), sizes, strict=True):
        inner = Graph()
        # Exporters put the weights into the outer graph.
        inner.recurrent(kind, frames, width, hidden, name=f"{name}/rnn")
        outer.tensors += inner.tensors
        inner.tensors = []
        made.append(inner.proto(f"{name}/rnn_Y"))
    outer.nodes.append(
        helper.make_node("If", ["rate"], ["out"], name="by_rate", then_branch=made[0], else_branch=made[1])
    )
    return "out"
