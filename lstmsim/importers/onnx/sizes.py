"""The sizes of one run of an ONNX network: numbers for the sizes that its inputs leave open, and all other sizes.

Multiply-accumulates of an ONNX operator in one run, from the shapes of its inputs and outputs.

Products of matrices and filters are counted as the operator pages of ONNX define them; an implementation may do fewer
or more. Operators that only move numbers, or compute each number alone, have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lstmsim.importers.onnx.graph import (
    DEFAULT_DOMAINS,
    Scope,
    Shape,
    attributes,
    broadcast,
    integer,
    kinds_named,
    label,
    node_input,
    product,
    version_of,
)
from lstmsim.importers.onnx.shapes import ComputedShapes, Shapes

#: A network of more nodes is listed, but its work is not counted.
MAX_COUNTED = 20_000
_MAX_OPEN = 30
#: The type of elements that are texts.
_TEXT = 8
_MAX_TRIALS = 6
_LARGEST_OUTPUT = 10_000
#: A number for each open size, which identifies it after any rearrangement: prime numbers above 2,000.
PRIMES = tuple(at for at in range(2001, 2500, 2) if all(at % by for by in range(3, 50, 2)))


def open_sizes(network: Any) -> list[str]:
    """Name the sizes that a network's inputs leave open, at most 30; a size without a name is `input[axis]`."""
    return size_names(network)[:_MAX_OPEN]


def size_names(network: Any) -> list[str]:
    """Name all sizes that a network's inputs leave open, as `open_sizes`."""
    return [name for name, _ in _open_dims(network)]


def empty_sizes(network: Any) -> list[str]:
    """Name those of `size_names` that are stated, as 0: some exporters write it for an open size."""
    return [name for name, dim in _open_dims(network) if dim.HasField("dim_value") and dim.dim_value == 0]


def _open_dims(network: Any) -> list[tuple[str, Any]]:
    """The sizes of a network's inputs that are no numbers above 0, each name once."""
    stored = {each.name for each in network.graph.initializer}
    dims: dict[str, Any] = {}
    for info in network.graph.input:
        for axis, dim in enumerate(() if info.name in stored else info.type.tensor_type.shape.dim):
            if dim.dim_value <= 0:
                dims.setdefault(_size_name(info, axis), dim)
    return list(dims.items())


def sizes_of_input(info: Any, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """The shape of an input in a run; None if it is no tensor of numbers, or a size has no number."""
    kind = info.type.tensor_type
    if not info.type.HasField("tensor_type") or not kind.HasField("shape") or kind.elem_type == _TEXT:
        return None
    shape = [
        int(dim.dim_value) if dim.dim_value > 0 else sizes.get(_size_name(info, axis))
        for axis, dim in enumerate(info.type.tensor_type.shape.dim)
    ]
    known = tuple(size for size in shape if size is not None)
    return known if len(known) == len(shape) else None


def output_sizes(network: Any) -> list[int]:
    """List the sizes that a network's outputs state: the length of the exporter's example may be among them."""
    dims = [dim.dim_value for info in network.graph.output for dim in info.type.tensor_type.shape.dim]
    return [size for size in dict.fromkeys(dims) if 1 < size <= _LARGEST_OUTPUT][:_MAX_TRIALS]


def _size_name(info: Any, axis: int) -> str:
    return str(info.type.tensor_type.shape.dim[axis].dim_param) or f"{info.name}[{axis}]"


@contextmanager
def sized(network: Any, scopes: list[Scope], sizes: Mapping[str, int]) -> Iterator[ComputedShapes]:
    """Give the shapes of all values of a run, for use inside the block."""
    main = scopes[0]
    before = main.declared
    infos = (*network.graph.value_info, *network.graph.output, *network.graph.input)
    main.declared = {
        str(info.name): tuple(
            int(dim.dim_value) if dim.dim_value > 0 else sizes.get(_size_name(info, axis))
            for axis, dim in enumerate(info.type.tensor_type.shape.dim)
        )
        for info in infos
        if info.type.tensor_type.HasField("shape")
    }
    try:
        yield _computed(scopes, version_of(network))
    finally:
        main.declared = before


def in_order(scopes: list[Scope]) -> Iterator[tuple[Scope, int]]:
    """Go through every node in the order of its graph; the nodes inside a node come before it."""
    waiting: list[tuple[Scope, int, bool]] = [(scopes[0], 0, False)] if scopes else []
    while waiting:
        scope, index, inside = waiting.pop()
        if index >= len(scope.nodes):
            continue
        if index in scope.children and not inside:
            waiting.append((scope, index, True))
            waiting += [(child, 0, False) for child in reversed(scope.children[index])]
            continue
        yield scope, index
        waiting.append((scope, index + 1, False))


def _computed(scopes: list[Scope], version: int) -> ComputedShapes:
    """The shapes of all values; each is worked out in the order of the nodes, so that no search goes far."""
    shapes = ComputedShapes(version)
    for scope, index in in_order(scopes):
        for name in scope.nodes[index].output:
            if name:
                shapes.of(scope, str(name))
    return shapes


def frames_of(shapes: Shapes, scope: Scope, index: int) -> tuple[int | None, int | None]:
    """Give steps and batch of a recurrent node's frames; None for a size that is not known."""
    node = scope.nodes[index]
    frames = shapes.of(scope, node_input(node, 0))
    if frames is None or len(frames) != 3:
        return None, None
    return (frames[1], frames[0]) if integer(attributes(scope, node), "layout", 0) else (frames[0], frames[1])


#: Operators of ONNX whose work is no product of given matrices, so that a count would be a guess.
_OPEN = kinds_named("DFT STFT Attention LinearAttention DeformConv Scan Loop")


def products(shapes: Shapes, scope: Scope, index: int) -> int | str:
    """Count the multiply-accumulates of a node, or say why they cannot be told."""
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
