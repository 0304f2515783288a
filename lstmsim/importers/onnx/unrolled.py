"""Why an ONNX network without LSTM, GRU or RNN nodes may still hold a recurrent layer: exporters unroll some.

PyTorch's dynamo exporter writes nn.RNN as one product with the same matrix for each step, and cells step by step.
"""

from __future__ import annotations

from collections import Counter

from lstmsim.base.wording import listed
from lstmsim.importers.onnx.graph import Scope, Value, label, node_input, resolve
from lstmsim.importers.onnx.stacks import PASSING

__all__ = ["explain_absence"]

_PRODUCTS = ("MatMul", "Gemm")
#: Operations between one product with h and the next.
_BETWEEN = PASSING | {"Add", "Sub", "Mul", "Tanh", "Sigmoid", "Relu"}
_CANDIDATES = 8
_SHOWN_OPERATIONS = 8
_MAX_HOPS = 100
_ADVICE = "export nn.RNN, nn.LSTM or nn.GRU with dynamo=False, which keeps the layer as one node"


def explain_absence(scopes: list[Scope]) -> str:
    """Say what a network holds instead of recurrent nodes, and what to do if it holds an unrolled layer."""
    for scope in scopes:
        unrolled = _unrolled(scope)
        if unrolled:
            steps, first = unrolled
            return (
                f"holds no LSTM, GRU or RNN node, but what looks like a recurrent layer unrolled over {steps} steps, "
                f"from {label(scope, first)} on: {_ADVICE}"
            )
    counts = Counter(str(node.op_type) for scope in scopes for node in scope.nodes)
    common = [f"{count} {kind}" for kind, count in counts.most_common(_SHOWN_OPERATIONS)]
    more = len(counts) - len(common)
    rest = f" and {more} other kinds" if more else ""
    text = f"holds no LSTM, GRU or RNN node; it has {', '.join(common) or 'no nodes'}{rest}"
    written_out = next((_gates(scope) for scope in scopes if _gates(scope)), "")
    if written_out:
        text += f"; its {written_out} may be a recurrent cell written out operation by operation: {_ADVICE}"
    return text


def _gates(scope: Scope) -> str:
    """The operations of a graph in words, if they suffice for one GRU or LSTM step; else empty."""
    counts = Counter(str(node.op_type) for node in scope.nodes)
    products = sum(counts[kind] for kind in _PRODUCTS)
    if products < 1 or counts["Sigmoid"] < 2 or counts["Tanh"] < 1 or counts["Mul"] < 2:
        return ""
    kinds = [*(kind for kind in _PRODUCTS if counts[kind]), "Sigmoid", "Tanh", "Mul"]
    return listed([f"{counts[kind]} {kind}" for kind in kinds], "and")


def _unrolled(scope: Scope) -> tuple[int, int] | None:
    """How often a product feeds the next one with the same matrix, and the first such product; None if never."""
    uses: dict[int, tuple[tuple[Scope, str], str]] = {}
    for index, node in enumerate(scope.nodes):
        if node.op_type in _PRODUCTS:
            roots = [_matrix(scope, node_input(node, place)) for place in (0, 1)]
            if (roots[0] is None) != (roots[1] is None):
                place = 1 if roots[1] is not None else 0
                root = roots[place]
                assert root is not None
                uses[index] = (root, node_input(node, 1 - place))
    for matrix, count in Counter(root for root, _ in uses.values()).most_common(_CANDIDATES):
        steps = _longest_chain(scope, uses, matrix) if count > 1 else 0
        if steps > 1:
            return steps, min(index for index, (root, _) in uses.items() if root == matrix)
    return None


def _longest_chain(scope: Scope, uses: dict[int, tuple[tuple[Scope, str], str]], matrix: tuple[Scope, str]) -> int:
    depth: dict[str, int] = {}
    longest = 0
    for index, node in enumerate(scope.nodes):
        reached = 0
        if index in uses and uses[index][0] == matrix:
            reached = 1 + depth.get(uses[index][1], 0)
            longest = max(longest, reached)
        elif node.op_type in _BETWEEN:
            reached = max((depth.get(str(name), 0) for name in node.input), default=0)
        if reached:
            depth.update((str(name), reached) for name in node.output)
    return longest


def _matrix(scope: Scope, name: str) -> tuple[Scope, str] | None:
    """The stored matrix behind a name; None if the value is computed."""
    value: Value | None = resolve(scope, name)
    for _ in range(_MAX_HOPS):
        if value is None:
            return None
        if value.tensor is not None or (value.node is not None and value.node.op_type == "Constant"):
            return value.scope, value.name
        if value.node is None or value.node.op_type not in PASSING:
            return None
        value = resolve(value.scope, node_input(value.node, 0))
    return None
