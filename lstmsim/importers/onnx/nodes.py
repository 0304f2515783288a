"""One LSTM, GRU or RNN node of an ONNX network as a layer, or the sentences that say why it cannot be one.

Sources: the ONNX operator pages of LSTM, GRU and RNN (inputs, shapes, attributes and their defaults).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.wording import listed, show
from lstmsim.importers.onnx.cells import cell_of
from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, attributes, node_input, resolve
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.values import Shape, integer, text
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer

__all__ = ["RECURRENT", "foreign_recurrent", "is_recurrent", "read_layer"]

#: ONNX's recurrent operators, and the cell of each.
RECURRENT = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn"}
_DIRECTIONS = ("forward", "reverse", "bidirectional")


def is_recurrent(node: Any) -> bool:
    """Say whether a node is one of ONNX's own recurrent operators."""
    return node.op_type in RECURRENT and node.domain in DEFAULT_DOMAINS


def foreign_recurrent(node: Any) -> bool:
    """Say whether a node has the name of a recurrent operator of another domain, such as `DynamicQuantizeLSTM`."""
    return node.domain not in DEFAULT_DOMAINS and any(kind in str(node.op_type).upper() for kind in RECURRENT)


@dataclass(frozen=True)
class _Sizes:
    """The sizes that a node states, before its parts are compared."""

    kind: str
    gates: int
    directions: int
    hidden: int
    input: int
    batch_first: bool


def read_layer(shapes: Shapes, scope: Scope, index: int) -> Layer | list[str]:
    """Read the layer that a recurrent node describes, or give the sentences that say why it describes none.

    shapes: the shapes of the network.
    scope, index: the node.
    """
    node = scope.nodes[index]
    given = attributes(scope, node)
    kind = str(node.op_type)
    direction = text(given, "direction", "forward")
    refused = [] if direction in _DIRECTIONS else [f"has direction {show(direction)}, must be {listed(_DIRECTIONS)}"]
    own = cell_of(kind, bool(node_input(node, 7)), given, 2 if direction == "bidirectional" else 1)
    if refused or isinstance(own, list):
        return refused + (own if isinstance(own, list) else [])
    sizes = _sizes(shapes, scope, node, given)
    if isinstance(sizes, str):
        return [sizes]
    for what, size in (("hidden_size", sizes.hidden), ("the width of its input", sizes.input)):
        if not 1 <= size <= MAX_SIZE:
            refused.append(f"{what} is {size}, must be between 1 and {MAX_SIZE}")
    refused = refused or _disagreements(shapes, scope, node, sizes)
    return refused or Layer(own, sizes.hidden, sizes.input, sizes.directions == 2, reverse=direction == "reverse")


def _sizes(shapes: Shapes, scope: Scope, node: Any, given: dict[str, Any]) -> _Sizes | str:
    kind = str(node.op_type)
    weights, recurrence = shapes.of(scope, node_input(node, 1)), shapes.of(scope, node_input(node, 2))
    for name, place, shape in (("W", 1, weights), ("R", 2, recurrence)):
        if shape is None:
            return f"the shape of {name} cannot be read from the file: {_origin(scope, node, place)}"
        if len(shape) != 3:
            return f"{name} is {_show(shape)}, expected three dimensions: directions, gates x hidden, columns"
    assert weights is not None
    assert recurrence is not None
    hidden = integer(given, "hidden_size", recurrence[2] or 0)
    width = weights[2]
    if width is None:
        frames = shapes.of(scope, node_input(node, 0))
        width = frames[-1] if frames else None
    if width is None:
        return f"the width of its input cannot be read from the file: {_origin(scope, node, 1)}"
    directions = 2 if text(given, "direction", "forward") == "bidirectional" else 1
    gates = len(cell(RECURRENT[kind]).gates)
    return _Sizes(kind, gates, directions, hidden, width, bool(integer(given, "layout", 0)))


def _disagreements(shapes: Shapes, scope: Scope, node: Any, sizes: _Sizes) -> list[str]:
    """Sentences on inputs whose shapes contradict hidden_size, the direction, or each other."""
    rows = sizes.gates * sizes.hidden
    state: Shape = (
        (None, sizes.directions, sizes.hidden) if sizes.batch_first else (sizes.directions, None, sizes.hidden)
    )
    wanted: list[tuple[str, int, Shape]] = [
        ("W", 1, (sizes.directions, rows, sizes.input)),
        ("R", 2, (sizes.directions, rows, sizes.hidden)),
        ("B", 3, (sizes.directions, 2 * rows)),
        ("initial_h", 5, state),
        *([("initial_c", 6, state), ("P", 7, (sizes.directions, 3 * sizes.hidden))] if sizes.kind == "LSTM" else []),
        ("X", 0, (None, None, sizes.input)),
    ]
    sentences, projected = [], False
    for name, place, expected in wanted:
        shape = shapes.of(scope, node_input(node, place))
        if shape is None or _fits(shape, expected):
            continue
        sentences.append(f"{name} is {_show(shape)}, expected {_show(expected)}")
        projected |= sizes.kind == "LSTM" and _looks_projected(name, shape, sizes)
    if not sentences:
        return []
    sentence = f"its parts contradict hidden_size {sizes.hidden}: {'; '.join(sentences)}"
    if projected:
        sentence += (
            "; this looks like an nn.LSTM with proj_size, which ONNX cannot express and PyTorch's dynamo exporter "
            "writes wrongly: export it without proj_size"
        )
    return [sentence]


def _looks_projected(name: str, shape: Shape, sizes: _Sizes) -> bool:
    """Whether c (or the gates) belong to more units than h has: the mark of a projection behind h."""
    if name == "initial_c":
        return len(shape) == 3 and (shape[2] or 0) > sizes.hidden
    return name == "R" and shape[2] == sizes.hidden and (shape[1] or 0) > sizes.gates * sizes.hidden


def _fits(shape: Shape, expected: Shape) -> bool:
    return len(shape) == len(expected) and all(
        size is None or wanted is None or size == wanted for size, wanted in zip(shape, expected, strict=True)
    )


def _show(shape: Shape) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def _origin(scope: Scope, node: Any, place: int) -> str:
    """Where a value comes from, in words that explain why its shape is unknown."""
    name = node_input(node, place)
    value = resolve(scope, name)
    if value is None:
        return f"nothing in the file is called {show(name)}" if name else "the input is left out"
    if value.node is not None:
        return f"{show(name)} is computed by {value.node.op_type}"
    return f"{show(name)} is an input without a fixed shape"
