"""One LSTM, GRU or RNN node of an ONNX network as a layer, or the sentences that say why it cannot be one.

Sources: the ONNX operator pages of LSTM, GRU and RNN (inputs, shapes, attributes and their defaults).

The cell of a recurrent ONNX node: a built-in cell, or a changed one if the node's attributes ask for more.

Unusual activations, `clip` and `input_forget` become operations of the cell. Where the text of the operators leaves a
choice, this module does what onnxruntime 1.31 does: `clip` bounds the inputs of the gates' activations, but not c
before the last activation of an LSTM; the activations that have alpha and beta take these numbers in order.
Sources: the ONNX operator pages of LSTM, GRU and RNN; onnxruntime, onnxruntime/core/providers/cpu/rnn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.wording import listed, nearest, show
from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, Shape, attributes, integer, node_input, resolve, text
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.model.cell import Cell, Node, Stage
from lstmsim.model.cell_rules import MAX_CONSTANT, in_order
from lstmsim.model.cells import cell, graph
from lstmsim.model.model import Layer

#: ONNX's default activations of each operator: f, then g, then h.
USUAL = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
#: For each node of a built-in cell that is an activation: its place in `USUAL`.
_ROLES = {"LSTM": {"it": 0, "ft": 0, "ot": 0, "gt": 1, "ct": 2}, "GRU": {"rt": 0, "zt": 0, "nt": 1}, "RNN": {"hf": 0}}
#: How many of alpha and beta these activations need: ONNX has no default, or onnxruntime does not keep it.
_NEEDS = {"Affine": 2, "ScaledTanh": 2}
_DEFAULTS: Mapping[str, tuple[float, ...]] = {"HardSigmoid": (0.2, 0.5), "LeakyRelu": (0.01,), "Elu": (1.0,)}
#: Operations of each activation. `v`: its input; `n`: the node that it replaces and names; `a`: alpha; `b`: beta.
_GRAPHS: Mapping[str, str] = {
    "Sigmoid": "{n} sigmoid {v}",
    "Tanh": "{n} tanh {v}",
    "Relu": "{n} relu {v}",
    "HardSigmoid": "{n}_m multiply {v} {a}; {n}_a add {n}_m {b}; {n}_r maximum {n}_a 0; {n} minimum {n}_r 1",
    "Affine": "{n}_m multiply {v} {a}; {n} add {n}_m {b}",
    "ScaledTanh": "{n}_m multiply {v} {b}; {n}_t tanh {n}_m; {n} multiply {n}_t {a}",
    "LeakyRelu": "{n}_m multiply {v} {a}; {n} {leak} {v} {n}_m",
    "Elu": "{n}_i minimum {v} 0; {n}_e exp {n}_i; {n}_s subtract {n}_e 1; {n}_m multiply {n}_s {a}; "
    "{n}_r relu {v}; {n} add {n}_r {n}_m",
    "Softsign": "{n}_n multiply {v} -1; {n}_a maximum {v} {n}_n; {n}_s add {n}_a 1; {n} divide {v} {n}_s",
    "Softplus": "{n}_n multiply {v} -1; {n}_l log_sigmoid {n}_n; {n} multiply {n}_l -1",
}
_LISTS = ("activation_alpha", "activation_beta")
#: ONNX's recurrent operators, and the cell of each.
RECURRENT = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn"}
_DIRECTIONS = ("forward", "reverse", "bidirectional")


@dataclass(frozen=True)
class _Activation:
    name: str
    numbers: tuple[float, ...] = ()

    @property
    def word(self) -> str:
        """Its part of the name of a cell."""
        own = () if self.numbers == _DEFAULTS.get(self.name) else self.numbers
        return "_".join([self.name.lower(), *map(repr, own)])

    def nodes(self, name: str, source: str | float) -> tuple[Node, ...]:
        """The operations that compute node `name` from a source."""
        alpha, beta = (*map(repr, self.numbers), "", "")[:2]
        leak = "maximum" if self.numbers and self.numbers[0] <= 1 else "minimum"
        return graph(_GRAPHS[self.name].format(n=name, v=source, a=alpha, b=beta, leak=leak))


def _cell_of(kind: str, peepholes: bool, given: Mapping[str, Any], directions: int) -> Cell | list[str]:
    base = _base(kind, peepholes, given)
    activations, clip = _activations(kind, given, directions), _clip(given)
    coupled = kind == "LSTM" and bool(integer(dict(given), "input_forget", 0))
    refused = [each for each in (activations, clip) if isinstance(each, str)]
    if refused:
        return refused
    assert not isinstance(activations, str)
    assert not isinstance(clip, str)
    usual = tuple(_Activation(name) for name in USUAL[kind])
    if activations == usual and clip is None and not coupled:
        return base
    if kind == "RNN" and activations == (_Activation("Relu"),) and clip is None:
        return cell("rnn-relu")
    words = [base.name, *(each.word for each in activations if activations != usual)]
    words += [f"clip_{clip!r}"] * (clip is not None) + ["coupled"] * coupled
    changed = replace(base, name="-".join(words), nodes=_nodes(kind, base, activations, clip))
    if coupled:
        changed = _with_coupled_gates(changed)
    return in_order(replace(changed, source=_source(kind, base, activations, clip, coupled)))


def cell_notes(own: Cell) -> tuple[str, ...]:
    """Note how a cell reads the text of ONNX's operators, if the text leaves a choice."""
    if "c" in own.states and any(node.name.endswith("_c") for node in own.nodes):
        return (
            f"cell {own.name} clips what goes into its gates' activations, as onnxruntime does; it does not clip c",
        )
    return ()


def _base(kind: str, peepholes: bool, given: Mapping[str, Any]) -> Cell:
    if kind == "LSTM":
        return cell("lstm-peephole" if peepholes else "lstm")
    if kind == "GRU":
        return cell("gru" if integer(dict(given), "linear_before_reset", 0) else "gru-lbr0")
    return cell("rnn")


def _source(kind: str, base: Cell, activations: tuple[_Activation, ...], clip: float | None, coupled: bool) -> str:
    text = f"ONNX {kind} as {base.name}, activations {' '.join(each.word for each in activations)}"
    text += f", clip {clip!r}" if clip is not None else ""
    return text + (", input_forget (f = 1 - i)" if coupled else "")


def _short(number: float) -> float:
    """A number of single precision as its shortest text: 0.2, not 0.200000003."""
    return float(str(np.float32(number)))


def _clip(given: Mapping[str, Any]) -> float | str | None:
    """The bound; None if no number that a run can hold reaches it; or why it is no bound."""
    if "clip" not in given:
        return None
    clip = _short(given["clip"].f)
    if not clip > 0:
        return f"has clip {clip:g}, must be above 0"
    return clip if clip <= MAX_CONSTANT else None


def _activations(kind: str, given: Mapping[str, Any], directions: int) -> tuple[_Activation, ...] | str:
    usual = USUAL[kind]
    texts = (
        [bytes(each).decode("utf-8", "replace") for each in given["activations"].strings] * 1
        if ("activations" in given)
        else []
    )
    if not texts:
        texts = list(usual) * directions
    if len(texts) != len(usual) * directions:
        return f"has activations {_listed(texts)}: {len(texts)}, expected {len(usual) * directions}"
    known = {name.lower(): name for name in _GRAPHS}
    names = [known.get(each.lower(), "") for each in texts]
    if "" in names:
        wrong = texts[names.index("")]
        hint = nearest(wrong, _GRAPHS) or f"; there are {listed(_GRAPHS, 'and')}"
        return f"has activations {_listed(texts)}: {show(wrong)} cannot be simulated{hint}"
    activations = _with_numbers(names, given)
    if isinstance(activations, str):
        return activations
    if activations[: len(usual)] * directions != activations:
        return f"has activations {_listed(texts)}: the two directions of a layer must have the same"
    return activations[: len(usual)]


def _listed(texts: list[str]) -> str:
    return listed([show(each) for each in texts], "and")


def _with_numbers(names: list[str], given: Mapping[str, Any]) -> tuple[_Activation, ...] | str:
    """Each activation with its alpha and beta; activations take these numbers in order."""
    lists = [[_short(each) for each in given[key].floats] if key in given else [] for key in _LISTS]
    takes = [[name for name in names if _takes(name) > place] for place in range(2)]
    for key, numbers, takers in zip(_LISTS, lists, takes, strict=True):
        needed = sum(name in _NEEDS for name in takers)
        if takers and (len(numbers) not in (0, len(takers)) or (needed and not numbers)):
            return f"has {len(numbers)} numbers as {key}, expected {len(takers)}: one for each activation that takes it"
        if not all(np.isfinite(numbers)) or max(map(abs, numbers), default=0) > MAX_CONSTANT:
            return f"has a number in {key} that is not finite, or larger than {MAX_CONSTANT:g}"
    left = [iter(each) for each in lists]
    activations = []
    for name in names:
        usual = _DEFAULTS.get(name, (0.0,) * _NEEDS.get(name, 0))
        activations.append(_Activation(name, tuple(next(left[place], each) for place, each in enumerate(usual))))
    return tuple(activations)


def _takes(name: str) -> int:
    return _NEEDS.get(name, len(_DEFAULTS.get(name, ())))


def _nodes(kind: str, base: Cell, activations: tuple[_Activation, ...], clip: float | None) -> tuple[Node, ...]:
    """The base's nodes with other activations, whose inputs are clipped unless the input is the state c."""
    nodes: list[Node] = []
    for node in base.nodes:
        role = _ROLES[kind].get(node.name)
        if role is None:
            nodes.append(node)
            continue
        source = node.inputs[0]
        if clip is not None and role < 2:
            low, high = f"{node.name}_l", f"{node.name}_c"
            nodes += [Node(low, "maximum", (source, -clip)), Node(high, "minimum", (low, clip))]
            source = high
        nodes += activations[role].nodes(node.name, source)
    return tuple(nodes)


def _with_coupled_gates(own: Cell) -> Cell:
    """The LSTM without a forget gate of its own: f = 1 - i."""
    others = [node for node in own.nodes if node.name not in ("fp", "fs") and not node.name.startswith("ft")]
    nodes = [Node("ft", "subtract", (1.0, "it")), *others]
    stages = tuple(Stage(tuple(gate for gate in stage.gates if gate.name != "f"), stage.rows) for stage in own.stages)
    parameters = tuple(name for name in own.parameters if name != "pf")
    return replace(own, stages=stages, nodes=tuple(nodes), parameters=parameters)


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
    """Read the layer that a recurrent node describes, or give the sentences that say why it describes none."""
    node = scope.nodes[index]
    given = attributes(scope, node)
    kind = str(node.op_type)
    direction = text(given, "direction", "forward")
    refused = [] if direction in _DIRECTIONS else [f"has direction {show(direction)}, must be {listed(_DIRECTIONS)}"]
    own = _cell_of(kind, bool(node_input(node, 7)), given, 2 if direction == "bidirectional" else 1)
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
    """Whether c (or the gates) belong to more units than h has: the mark of a projection after h."""
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
