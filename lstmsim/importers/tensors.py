"""Tensors in a file that are not decoded yet, floating-point arrays made of them, and stacked gates taken apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.model.cell import Cell
from lstmsim.model.numerics.weights import LARGEST, Floats, PassWeights

#: Kinds of number that weights can have, by the names of the safetensors format, and their bytes.
FLOAT_BYTES: Mapping[str, int] = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}


@dataclass(frozen=True, eq=False)
class Stored:
    """A tensor in a file; kind: a key of `FLOAT_BYTES` or any other word; read: decodes the numbers, perhaps slowly."""

    kind: str
    shape: tuple[int, ...]
    read: Callable[[], Floats]


def decoded(kind: str, content: bytes | memoryview) -> Floats:
    """Decode little-endian numbers, one after another; half precision becomes float32, exactly."""
    if kind == "BF16":
        wide: NDArray[np.uint32] = np.left_shift(np.frombuffer(content, "<u2").astype(np.uint32), np.uint32(16))
        return wide.view(np.float32)
    return single_or_double(np.frombuffer(content, _DTYPES[kind]))


def single_or_double(array: Floats) -> Floats:
    """Copy an array as float64 if it has numbers of more than 4 bytes, else as float32."""
    return array.astype(np.float64 if array.dtype.itemsize > 4 else np.float32)


def shape_text(shape: tuple[int, ...]) -> str:
    """Format a shape for a message.

    >>> shape_text((3, 2))
    '[3, 2]'
    """
    return f"[{', '.join(map(str, shape[:8]))}{', ...' if len(shape) > 8 else ''}]"


def floats(tensors: Mapping[str, Stored], expected: Mapping[str, tuple[int, ...]]) -> dict[str, Floats]:
    """Decode tensors.

    tensors: name to tensor.
    expected: the names to decode, and their shapes; a name that `tensors` lacks is left out.

    One `InputError` for all tensors that have another shape, are not floating-point, or hold NaN, infinity or numbers
    above 1e12.

    >>> floats({"w": Stored("I64", (2,), lambda: np.zeros(2))}, {"w": (2,)})
    Traceback (most recent call last):
    lstmsim.InputError: w: holds I64, expected F64, F32, F16 or BF16
    """
    arrays: dict[str, Floats] = {}
    mistakes = []
    for name, shape in expected.items():
        stored = tensors.get(name)
        if stored is None:
            continue
        text = ""
        if stored.kind not in FLOAT_BYTES:
            text = f"holds {stored.kind}, expected F64, F32, F16 or BF16"
        elif stored.shape != shape:
            text = f"has shape {shape_text(stored.shape)}, expected {shape_text(shape)}"
        else:
            try:
                arrays[name] = stored.read().reshape(shape)
                text = _wrong_number(arrays[name]) if prod(shape) else "is empty"
            except InputError as error:
                text = str(error)
        if text:
            mistakes.append(Mistake(name if name.isprintable() and len(name) < 200 else show(name), text))
    if mistakes:
        raise InputError(mistakes)
    return arrays


def _wrong_number(array: Floats) -> str:
    finite = np.isfinite(array)
    if not finite.all():
        place = np.unravel_index(int(np.argmin(finite)), array.shape)
        return f"holds {array[place]} at {shape_text(tuple(map(int, place)))}, expected finite numbers"
    return "" if np.abs(array).max() <= LARGEST else "holds numbers above 1e12, expected weights"


@dataclass(frozen=True, eq=False)
class Stacked:
    """Weights of one layer in one direction, with the gates of each matrix below each other.

    x, h, x_bias, h_bias have [gates x hidden] rows; `more`: matrices of no gate by (sum, vector).
    """

    x: Floats
    h: Floats
    x_bias: Floats | None = None
    h_bias: Floats | None = None
    more: Mapping[tuple[str, str], Floats] = field(default_factory=dict)
    parameters: Mapping[str, Floats] = field(default_factory=dict)


def unstacked(cell: Cell, order: Sequence[str], parts: Stacked) -> PassWeights:
    """Take stacked gates apart into the weights of a pass."""
    matrices = dict(parts.more)
    biases: dict[str, Floats] = {}
    hidden = len(parts.x) // len(order)
    gates = {gate.name: gate for gate in cell.gates}
    for place, name in enumerate(order):
        rows = slice(place * hidden, (place + 1) * hidden)
        for each in gates[name].sums:
            addends = []
            for vector in each.vectors:
                matrix, bias = (parts.x, parts.x_bias) if vector == "x" else (parts.h, parts.h_bias)
                matrices[each.name, vector] = matrix[rows]
                addends += [bias[rows]] if bias is not None else []
            if addends:
                biases[each.name] = addends[0] if len(addends) == 1 else _total(addends)
    return PassWeights(matrices, biases, parts.parameters)


def _total(biases: Sequence[Floats]) -> Floats:
    kind = np.result_type(*biases)
    total: Floats = np.sum([each.astype(np.float64) for each in biases], axis=0).astype(kind)
    return total
