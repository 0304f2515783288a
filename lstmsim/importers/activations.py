"""Activations that cells of other frameworks may have in place of tanh and sigmoid, and built-in cells with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lstmsim.model.cell import Cell, Node
from lstmsim.model.cell_rules import in_order
from lstmsim.model.cells import cell, graph

#: ONNX's default activations of each operator: f, then g, then h.
USUAL = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
#: For each node of a built-in cell that is an activation: its place in `USUAL`.
_ROLES = {"LSTM": {"it": 0, "ft": 0, "ot": 0, "gt": 1, "ct": 2}, "GRU": {"rt": 0, "zt": 0, "nt": 1}, "RNN": {"hf": 0}}
#: How many of alpha and beta these activations need: ONNX has no default, or onnxruntime does not keep it.
NEEDS = {"Affine": 2, "ScaledTanh": 2}
DEFAULTS: Mapping[str, tuple[float, ...]] = {"HardSigmoid": (0.2, 0.5), "LeakyRelu": (0.01,), "Elu": (1.0,)}
#: Operations of each activation. `v`: its input; `n`: the node that it replaces and names; `a`: alpha; `b`: beta.
GRAPHS: Mapping[str, str] = {
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


@dataclass(frozen=True)
class Activation:
    """An activation by its ONNX name, with its alpha and beta; `Linear`, which only Keras names, computes nothing."""

    name: str
    numbers: tuple[float, ...] = ()

    @property
    def word(self) -> str:
        """Its part of the name of a cell."""
        own = () if self.numbers == DEFAULTS.get(self.name) else self.numbers
        return "_".join([self.name.lower(), *map(repr, own)])

    def nodes(self, name: str, source: str | float) -> tuple[Node, ...]:
        """The operations that compute node `name` from a source."""
        alpha, beta = (*map(repr, self.numbers), "", "")[:2]
        leak = "maximum" if self.numbers and self.numbers[0] <= 1 else "minimum"
        return graph(GRAPHS[self.name].format(n=name, v=source, a=alpha, b=beta, leak=leak))


def with_activations(
    base: Cell, kind: str, activations: tuple[Activation, ...], framework: str, clip: float | None = None
) -> Cell:
    """Give a built-in cell, whose operator is `kind`, activations in the order of `USUAL`; clip: the bound of their
    inputs, unless the input is the state c; framework: the origin, in words.
    """
    usual = tuple(Activation(name) for name in USUAL[kind])
    if activations == usual and clip is None:
        return base
    if kind == "RNN" and activations == (Activation("Relu"),) and clip is None:
        return cell("rnn-relu")
    words = [base.name, *(each.word for each in activations if activations != usual)]
    words += [f"clip_{clip!r}"] * (clip is not None)
    nodes: list[Node] = []
    same: dict[str, str] = {}
    for node in base.nodes:
        role = _ROLES[kind].get(node.name)
        if role is None:
            inputs = tuple(same.get(each, each) if isinstance(each, str) else each for each in node.inputs)
            nodes.append(replace(node, inputs=inputs))
            continue
        source = node.inputs[0]
        if clip is not None and role < 2:
            low, high = f"{node.name}_l", f"{node.name}_c"
            nodes += [Node(low, "maximum", (source, -clip)), Node(high, "minimum", (low, clip))]
            source = high
        if activations[role].name == "Linear":
            same[node.name] = str(source)
        else:
            nodes += activations[role].nodes(node.name, source)
    changed = replace(base, name="-".join(words), nodes=tuple(nodes))
    text = f"{framework} {kind} as {base.name}, activations {' '.join(each.word for each in activations)}"
    return in_order(replace(changed, source=text + (f", clip {clip!r}" if clip is not None else "")))
