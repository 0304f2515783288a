"""LSTM nodes with 8-bit weights (`DynamicQuantizeLSTM` of com.microsoft) as LSTM nodes with the weights that they mean.

onnxruntime's dynamic quantisation writes such nodes. Source: the operator's page in onnxruntime's contrib operators: W
[directions, input, 4 x hidden], R [directions, hidden, 4 x hidden], each with scales and zero points for a direction or
for each column of a direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.importers.onnx.external import DataFiles, is_external
from lstmsim.importers.weights.tensors import shape_text

__all__ = ["dequantise", "rounding_notes", "whole_numbers"]

_KIND, _DOMAIN = "DynamicQuantizeLSTM", "com.microsoft"
_GRAPH, _GRAPHS, _FLOAT, _UINT8, _INT8 = 5, 10, 1, 2, 3
_TYPES = {_FLOAT: "<f4", _UINT8: "u1", _INT8: "i1", 4: "<u2", 5: "<i2", 6: "<i4"}
#: Where a matrix, its scales and its zero points stand among the inputs.
_MATRICES = {"W": (1, 8, 9), "R": (2, 10, 11)}
_COPIES, _SPARE = 16, 2**20

_Tensors = Mapping[str, Any]


def dequantise(network: Any, files: DataFiles | None) -> dict[str, str]:
    """Turn the nodes `DynamicQuantizeLSTM` of a network into LSTM nodes, in place.

    The result maps the name of each new W to the old name of its node. A node whose weights are no tensors of the
    graphs around it is left unchanged.

    network: the parsed file.
    files: the data files beside it; None if only shapes are wanted, so that the new tensors stay empty.

    `InputError` for weights that are wrong.
    """
    names: dict[str, str] = {}
    left = _COPIES * network.ByteSize() + _SPARE
    for node, tensors in _nodes(network.graph):
        if any(name not in tensors for name in _names(node)):
            continue
        place = f"{_KIND} {show(str(node.name))}"
        # Only the 8-bit form has inputs 8 to 11; input 7, P, is the same in both forms.
        kept = [str(each) for each in node.input[:8]]
        for name, places in _MATRICES.items():
            parts = [tensors[str(node.input[at])] if at < len(node.input) else None for at in places]
            kept[places[0]] = f"{name} of {node.name} dequantised, {len(network.graph.initializer)}"
            tensor = network.graph.initializer.add(name=kept[places[0]], data_type=_FLOAT)
            try:
                left -= _fill(tensor, parts, files)
            except InputError as error:
                raise InputError([Mistake(place, f"{name} {each.sentence}") for each in error.mistakes]) from None
            if left < 0:
                raise InputError("repeats its weights more often than any network does")
        node.op_type, node.domain = "LSTM", ""
        del node.input[:]
        node.input.extend(kept)
        names[kept[1]] = place
    return names


def rounding_notes(names: Sequence[str]) -> list[str]:
    """Note what a model with nodes of 8-bit weights leaves out; names: the old names of these nodes.

    >>> rounding_notes([])
    []
    """
    if not names:
        return []
    have = f"{listed(names, 'and')} {'has' if len(names) == 1 else 'have'} 8-bit weights, read as the numbers they mean"
    return [f"{have}; the original also rounds x and h at each step, by ranges found at run time: not simulated"]


def _names(node: Any) -> list[str]:
    """The inputs of a node that must be tensors."""
    return [str(node.input[at]) if at < len(node.input) else "" for places in _MATRICES.values() for at in places]


def _nodes(graph: Any) -> Iterator[tuple[Any, _Tensors]]:
    """The nodes of this kind in a graph and in the graphs inside it, each with the tensors that it can see."""
    waiting: list[tuple[Any, _Tensors]] = [(graph, {})]
    while waiting:
        graph, outer = waiting.pop()
        # A chain of bodies without tensors of their own shares one table.
        own = {str(each.name): each for each in graph.initializer}
        tensors = {**outer, **own} if own else outer
        for node in graph.node:
            if node.op_type == _KIND and node.domain == _DOMAIN:
                yield node, tensors
            for each in node.attribute:
                bodies = [each.g] if each.type == _GRAPH else list(each.graphs) if each.type == _GRAPHS else []
                waiting += [(body, tensors) for body in bodies]


def _fill(tensor: Any, parts: list[Any], files: DataFiles | None) -> int:
    """Give `tensor` the shape and the numbers of the ordinary LSTM; the result is the bytes of these numbers."""
    matrix, scale, zero = parts
    shape = tuple(int(size) for size in matrix.dims)
    if len(shape) != 3 or min(shape) < 1:
        raise InputError(f"is {shape_text(shape)}, expected [directions, inputs, 4 x hidden]")
    directions, width, rows = shape
    tensor.dims.extend((directions, rows, width))
    if files is None:
        return 0
    around = [tuple(int(size) for size in each.dims) for each in (scale, zero)]
    for name, own in zip(("its scales", "its zero points"), around, strict=True):
        if own not in ((directions,), (directions, rows)):
            raise InputError(
                f"has {name} of shape {shape_text(own)}, expected [{directions}] or [{directions}, {rows}]"
            )
    if matrix.data_type not in (_UINT8, _INT8) or zero.data_type != matrix.data_type or scale.data_type != _FLOAT:
        raise InputError("holds other kinds of numbers than 8 bits with float32 scales")
    numbers, scales, zeros = (_array(each, files) for each in parts)
    scales, zeros = (each.reshape(directions, 1, -1) for each in (scales, zeros))
    real = (numbers.astype(np.float32) - zeros.astype(np.float32)) * scales
    tensor.raw_data = np.ascontiguousarray(real.transpose(0, 2, 1), "<f4").tobytes()
    return len(tensor.raw_data)


def whole_numbers(tensor: Any, files: DataFiles) -> NDArray[Any]:
    """Read the stored numbers of a tensor of 8, 16 or 32 bits.

    tensor: the TensorProto.
    files: the data files beside the network.

    `ValueError` for other kinds of numbers; `InputError` if there are not as many as the shape states.
    """
    if not hasattr(tensor, "data_type") or tensor.data_type not in _TYPES or tensor.data_type == _FLOAT:
        raise ValueError
    if min(tensor.dims, default=1) < 0:
        raise InputError(f"is damaged: the tensor {show(str(tensor.name))} has a size below 0")
    return _array(tensor, files)


def _array(tensor: Any, files: DataFiles) -> NDArray[Any]:
    """A tensor's numbers; `InputError` if there are not as many as its shape states."""
    kind = np.dtype(_TYPES[tensor.data_type])
    shape = tuple(int(size) for size in tensor.dims)
    count = prod(shape)
    if is_external(tensor):
        return np.frombuffer(files.read(tensor, count * kind.itemsize), kind).reshape(shape)
    stored = tensor.float_data if tensor.data_type == _FLOAT else tensor.int32_data
    if len(tensor.raw_data) == count * kind.itemsize:
        return np.frombuffer(tensor.raw_data, kind).reshape(shape)
    if tensor.raw_data or len(stored) != count:
        raise InputError(f"is damaged or cut off: {show(str(tensor.name))} has not the {count} numbers of its shape")
    return np.array(stored).astype(kind).reshape(shape)
