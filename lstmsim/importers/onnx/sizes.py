"""The sizes of one run of an ONNX network: numbers for the sizes that its inputs leave open, and all other sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lstmsim.importers.onnx.computed import ComputedShapes
from lstmsim.importers.onnx.graph import Scope, attributes, node_input
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.values import integer

__all__ = [
    "MAX_COUNTED",
    "PRIMES",
    "empty_sizes",
    "frames_of",
    "in_order",
    "open_sizes",
    "output_sizes",
    "size_names",
    "sized",
    "sizes_of_input",
]

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
    """The shape of an input in a run; None if it is no tensor of numbers, or a size has no number.

    info: what the network states of the input.
    sizes: name of each open size to its number.
    """
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
    """Give the shapes of all values of a run, for use inside the block.

    network: the parsed file.
    scopes: the same as `open_scopes` gave it; the shapes that its main graph states are replaced while the block runs.
    sizes: name of each open size to its number in the run.
    """
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
        yield _computed(scopes)
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


def _computed(scopes: list[Scope]) -> ComputedShapes:
    """The shapes of all values; each is worked out in the order of the nodes, so that no search goes far."""
    shapes = ComputedShapes()
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
