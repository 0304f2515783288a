"""Multiply-accumulates of an ONNX operator in one run, from the shapes of its inputs and outputs.

Products of matrices and filters are counted as the operator pages of ONNX define them; an implementation may do fewer
or more. Operators that only move numbers, or compute each number alone, have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, attributes, label, node_input
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.values import Shape, broadcast, integer, kinds_named, product

__all__ = ["products"]

#: Operators of ONNX whose work is no product of given matrices, so that a count would be a guess.
_OPEN = kinds_named("DFT STFT Attention LinearAttention DeformConv Scan Loop")


def products(shapes: Shapes, scope: Scope, index: int) -> int | str:
    """Count the multiply-accumulates of a node, or say why they cannot be told.

    shapes: the shapes of the run.
    scope, index: the node; an operator without products counts 0.
    """
    node = scope.nodes[index]
    kind, domain = str(node.op_type), str(node.domain)
    rule = _RULES.get(kind) if domain in (*DEFAULT_DOMAINS, "com.microsoft") else None
    if rule is not None:
        try:
            count = rule(shapes, scope, node)
        except (ValueError, IndexError, TypeError, KeyError, UnicodeDecodeError):
            count = None
        return count if count is not None else f"the sizes at {label(scope, index)} are not known"
    if kind in _OPEN:
        return f"the work of {label(scope, index)} has no fixed number of products"
    if domain not in (*DEFAULT_DOMAINS, "ai.onnx.ml") and kind not in _IDLE:
        return f"{label(scope, index)} belongs to {domain!r}, whose operators are not known here"
    return 0


#: Operators of other domains that multiply no matrices.
_IDLE = kinds_named(
    "BiasGelu FastGelu Gelu LayerNormalization SkipLayerNormalization EmbedLayerNormalization DequantizeLinear "
    "QuantizeLinear QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu QLinearConcat QLinearSoftmax "
    "SimplifiedLayerNormalization SkipSimplifiedLayerNormalization QuickGelu"
)


def _known(shape: Shape | None) -> tuple[int, ...]:
    """A shape whose sizes are all known; `ValueError` if one is not."""
    if shape is None or None in shape:
        raise ValueError
    return tuple(size for size in shape if size is not None)


def _matmul(shapes: Shapes, scope: Scope, node: Any) -> int | None:
    second = 3 if node.op_type == "QLinearMatMul" else 1
    left, right = (_known(shapes.of(scope, node_input(node, place))) for place in (0, second))
    outer = broadcast([left[:-2], right[:-2]])
    rows = left[-2] if len(left) > 1 else 1
    columns = right[-1] if len(right) > 1 else 1
    return product((*_known(outer), rows, left[-1], columns))


def _gemm(shapes: Shapes, scope: Scope, node: Any) -> int | None:
    left, right = (_known(shapes.of(scope, node_input(node, place))) for place in (0, 1))
    columns = right[0] if integer(attributes(scope, node), "transB", 0) else right[1]
    return left[0] * left[1] * columns


def _conv(shapes: Shapes, scope: Scope, node: Any) -> int | None:
    filters = _known(shapes.of(scope, node_input(node, 3 if node.op_type == "QLinearConv" else 1)))
    places = _known(shapes.of(scope, str(node.output[0])))
    return product((*places, *filters[1:]))


def _conv_transpose(shapes: Shapes, scope: Scope, node: Any) -> int | None:
    places, filters = (_known(shapes.of(scope, node_input(node, place))) for place in (0, 1))
    return product((*places, *filters[1:]))


def _einsum(shapes: Shapes, scope: Scope, node: Any) -> int | None:
    """Products of one or two tensors; with more tensors, the implementation chooses the order."""
    text = bytes(attributes(scope, node)["equation"].s).decode().replace(" ", "")
    terms = text.split("->")[0].split(",")
    if len(terms) == 1:
        return 0
    if len(terms) > 2 or "." in text or len(terms) != len(node.input):
        return None
    sizes: dict[str, int] = {}
    for term, name in zip(terms, node.input, strict=True):
        for letter, size in zip(term, _known(shapes.of(scope, str(name))), strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    return product(sizes.values())


_RULES: dict[str, Callable[[Shapes, Scope, Any], int | None]] = {
    **dict.fromkeys(
        ("MatMul", "MatMulInteger", "QLinearMatMul", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"), _matmul
    ),
    "Gemm": _gemm,
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv", "FusedConv"), _conv),
    "ConvTranspose": _conv_transpose,
    "Einsum": _einsum,
}
