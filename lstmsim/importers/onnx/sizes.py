"""One run of an ONNX network: all sizes, the multiply-accumulates of each node, and what becomes of it in an import.

Products of matrices and filters are counted as the operator pages of ONNX define them; an implementation may do fewer
or more. Operators that only move numbers, or compute each number alone, have none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lstmsim.importers.imported import DENSE, FOLDED, LEFT_OUT, SIMULATED, kinds_named
from lstmsim.importers.onnx.graph import (
    DEFAULT_DOMAINS,
    Scope,
    Shape,
    Value,
    attributes,
    broadcast,
    integer,
    label,
    node_input,
    product,
    resolve,
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
#: Operators of ONNX whose work is no product of given matrices, so that a count would be a guess.
_OPEN = kinds_named("DFT STFT Attention LinearAttention DeformConv Scan Loop")
#: Operators of other domains that multiply no matrices.
_IDLE = kinds_named(
    "BiasGelu FastGelu Gelu LayerNormalization SkipLayerNormalization EmbedLayerNormalization DequantizeLinear "
    "QuantizeLinear QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu QLinearConcat QLinearSoftmax "
    "SimplifiedLayerNormalization SkipSimplifiedLayerNormalization QuickGelu"
)
#: A node: its scope and its index there.
Key = tuple[Scope, int]
#: Each output (node, index) with the nodes that read it, and the index of their input.
_Readers = dict[tuple[Key, int], list[tuple[Key, int]]]
#: Operations that hand every number on, unchanged or in another arrangement.
_MOVING = kinds_named("Transpose Squeeze Unsqueeze Reshape Flatten Identity Cast CastLike Dropout")
#: Operations between a network's states and its inputs and outputs: they also take a layer's part, or join the parts.
_SHARING = _MOVING | {"Slice", "Split", "Gather", "Concat", "Expand"}
_FIXED = frozenset(("Shape", "Size"))
_RANDOM = kinds_named("RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli")
_STATES_IN, _STATES_OUT = (5, 6), (1, 2)


def open_sizes(network: Any) -> list[str]:
    """Name the sizes that a network's inputs leave open, at most 30; a size without a name is `input[axis]`."""
    return list(open_dims(network))[:_MAX_OPEN]


def open_dims(network: Any) -> dict[str, Any]:
    """Map the names of the sizes of a network's inputs that are no numbers above 0 to these sizes."""
    stored = {each.name for each in network.graph.initializer}
    dims: dict[str, Any] = {}
    for info in network.graph.input:
        for axis, dim in enumerate(() if info.name in stored else info.type.tensor_type.shape.dim):
            if dim.dim_value <= 0:
                dims.setdefault(_size_name(info, axis), dim)
    return dims


def sizes_of_input(info: Any, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """The shape of an input in a run; None if it is no tensor of numbers, or a size has no number."""
    kind = info.type.tensor_type
    if not info.type.HasField("tensor_type") or not kind.HasField("shape") or kind.elem_type == _TEXT:
        return None
    shape = _sizes_of(info, sizes)
    known = tuple(size for size in shape if size is not None)
    return known if len(known) == len(shape) else None


def _sizes_of(info: Any, sizes: Mapping[str, int]) -> Shape:
    dims = enumerate(info.type.tensor_type.shape.dim)
    return tuple(int(dim.dim_value) if dim.dim_value > 0 else sizes.get(_size_name(info, axis)) for axis, dim in dims)


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
    shaped = (info for info in infos if info.type.tensor_type.HasField("shape"))
    main.declared = {str(info.name): _sizes_of(info, sizes) for info in shaped}
    shapes = ComputedShapes(version_of(network))
    try:
        # each shape is worked out in the order of the nodes, so that no search goes far
        for scope, index in in_order(scopes):
            for name in filter(None, scope.nodes[index].output):
                shapes.of(scope, str(name))
        yield shapes
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


def frames_of(shapes: Shapes, scope: Scope, index: int) -> tuple[int | None, int | None]:
    """Give steps and batch of a recurrent node's frames; None for a size that is not known."""
    node = scope.nodes[index]
    frames = shapes.of(scope, node_input(node, 0))
    if frames is None or len(frames) != 3:
        return None, None
    return (frames[1], frames[0]) if integer(attributes(scope, node), "layout", 0) else (frames[0], frames[1])


def products(shapes: Shapes, scope: Scope, index: int) -> int | str:
    """Count the multiply-accumulates of a node, or say why they are unknown."""
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


def _known(shape: Shape | None) -> tuple[int, ...]:
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


def outcomes(scopes: list[Scope], layers: set[Key], heads: set[Key]) -> dict[Key, str]:
    """Tell the outcome of every node; nodes that only hold others (`If`, `Loop`, calls of functions) have none."""
    became = dict.fromkeys(prepared(scopes) | _around(scopes, layers, heads), FOLDED)
    became |= dict.fromkeys(heads, DENSE) | dict.fromkeys(layers, SIMULATED)
    return {
        (scope, index): became.get((scope, index), LEFT_OUT)
        for scope in scopes
        for index in range(len(scope.nodes))
        if index not in scope.children
    }


def prepared(scopes: list[Scope]) -> set[Key]:
    """List the nodes whose results are the same in every run of equal sizes: only constants and shapes go into them."""
    open_nodes, done = set[Key](), set[Key]()
    for key in in_order(scopes):
        scope, index = key
        kind = scope.nodes[index].op_type
        values = [resolve(scope, str(name)) for name in scope.nodes[index].input if name]
        fixed = kind in _FIXED or (
            kind not in _RANDOM
            and not any(
                each.tensor is None and (each.node is None or (each.scope, each.index) in open_nodes)
                for each in values
                if each is not None
            )
        )
        # A node that holds other nodes is fixed only if all of these are.
        parts = [(child, at) for child in scope.children.get(index, []) for at in range(len(child.nodes))]
        if fixed and all(part not in open_nodes for part in parts):
            done.add(key)
        else:
            open_nodes.add(key)
    return done


def _around(scopes: list[Scope], layers: set[Key], heads: set[Key]) -> set[Key]:
    """Nodes between a layer and the next computation, before and after the layer."""
    readers = readers_of(scopes)
    # One set for each way of walking, so that no walk visits a node twice.
    above, below, states_in, states_out = (set[Key]() for _ in range(4))
    for key in layers | heads:
        scope, index = key
        node = scope.nodes[index]
        _up(scope, node_input(node, 0), _MOVING, above)
        _down(key, (0,), _MOVING, readers, below)
        if key in layers:
            for place in _STATES_IN:
                _up(scope, node_input(node, place), _SHARING, states_in)
            _down(key, _STATES_OUT, _SHARING, readers, states_out)
    return above | below | states_in | states_out


def readers_of(scopes: list[Scope]) -> _Readers:
    """Map each output to the nodes that read it."""
    readers: _Readers = defaultdict(list)
    for scope in scopes:
        for index, node in enumerate(scope.nodes):
            for place, name in enumerate(node.input if index not in scope.children else ()):
                for value in _sources(scope, str(name)):
                    readers[(value.scope, value.index), value.place].append(((scope, index), place))
    return readers


def _up(scope: Scope, name: str, kinds: frozenset[str], seen: set[Key]) -> None:
    waiting = [(scope, name)]
    while waiting:
        for value in _sources(*waiting.pop()):
            key, node = (value.scope, value.index), value.node
            if key not in seen and node.op_type in kinds and node.domain in DEFAULT_DOMAINS:
                seen.add(key)
                names = node.input if node.op_type == "Concat" else node.input[:1]
                waiting += [(value.scope, str(each)) for each in names]


def _down(start: Key, places: tuple[int, ...], kinds: frozenset[str], readers: _Readers, seen: set[Key]) -> None:
    waiting = [key for place in places for key, _ in readers.get((start, place), [])]
    while waiting:
        key = waiting.pop()
        node = key[0].nodes[key[1]]
        if key not in seen and node.op_type in kinds and node.domain in DEFAULT_DOMAINS:
            seen.add(key)
            waiting += [reader for place in range(len(node.output)) for reader, _ in readers.get((key, place), [])]


def _sources(scope: Scope, name: str) -> Iterator[Value]:
    """The nodes that make a value; the search goes into functions and all branches."""
    waiting, seen = [(scope, name)], 0
    while waiting and seen < 1000:
        seen += 1
        value = resolve(*waiting.pop())
        if value is None or value.node is None:
            continue
        bodies = value.scope.children.get(value.index, [])
        if bodies:
            waiting += [(body, body.outputs[value.place]) for body in bodies if value.place < len(body.outputs)]
        else:
            yield value
