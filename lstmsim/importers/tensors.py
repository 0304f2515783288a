"""Tensors in a file that are not decoded yet, stacked gates taken apart, and the safetensors format, read and written.

Source: the format's own description (huggingface/safetensors, README): header first, offsets without holes, keys once.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounded import bounded_file, placed
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.files import whole_file
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
    """Format a shape for a message."""
    return f"[{', '.join(map(str, shape[:8]))}{', ...' if len(shape) > 8 else ''}]"


def floats(tensors: Mapping[str, Stored], expected: Mapping[str, tuple[int, ...]]) -> dict[str, Floats]:
    """Decode those of the tensors that are expected, name to shape; a name that is not there is left out.

    One `InputError` for all tensors that have another shape, are not floating-point, or hold NaN, infinity or numbers
    above 1e12.
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
    refuse(mistakes)
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
                total = np.sum([part.astype(np.float64) for part in addends], axis=0)
                biases[each.name] = addends[0] if len(addends) == 1 else total.astype(np.result_type(*addends))
    return PassWeights(matrices, biases, parts.parameters)


#: Bytes of the longest header: room for some 100,000 tensors.
MAX_HEADER = 16 * 2**20
MAX_RANK = 16
#: The key of a header that names no tensor.
METADATA = "__metadata__"
_BITS = {kind: 8 * size for kind, size in FLOAT_BYTES.items()} | {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"), 8),
    **dict.fromkeys(("U16", "I16"), 16),
    **dict.fromkeys(("U32", "I32"), 32),
    **dict.fromkeys(("U64", "I64"), 64),
}


@dataclass(frozen=True, eq=False)
class Safetensors:
    """The content of a file: name to tensor, in the order of the names, and texts on the file (source, licence)."""

    tensors: Mapping[str, Stored]
    metadata: Mapping[str, str]


class _Duplicate(ValueError):
    """A key of the header comes twice."""


def read_safetensors(path: str | os.PathLike[str], *, numbers: bool = True) -> Safetensors:
    """Read the tensors of a safetensors file, not decoded yet; `InputError` with every mistake in the header.

    numbers: False reads the header only, for kinds and shapes.
    """
    name = os.fspath(path)
    with bounded_file(name, "a safetensors file") as (file, size):
        try:
            header, start = _header(file.read(8), file, size)
            entries = _entries(header, size - start)
        except InputError as error:
            raise placed(error, name) from None
        content = memoryview(file.read(size - start) if numbers else b"")
    if numbers and len(content) != size - start:
        raise InputError(Mistake(name, "changed while it was read"))
    tensors = {key: _stored(kind, shape, content[begin:end]) for key, (kind, shape, begin, end) in entries.items()}
    return Safetensors(tensors, header.get(METADATA) or {})


def _stored(kind: str, shape: tuple[int, ...], content: memoryview) -> Stored:
    return Stored(kind, shape, lambda: decoded(kind, content))


def _header(start: bytes, file: Any, size: int) -> tuple[dict[str, Any], int]:
    """The parsed header and the offset of the first number."""
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > size - 8:
        text = f"states a header of {length} bytes" if len(start) == 8 else f"has only {size} bytes"
        raise InputError(f"is no safetensors file, or is cut off: {text}, the file has {size}")
    if length > MAX_HEADER:
        raise InputError(f"states a header of {length} bytes, more than the {MAX_HEADER} that are read")
    text = file.read(length)
    if not text.startswith(b"{"):
        raise InputError("is no safetensors file: its header does not begin with {")
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    except _Duplicate as error:
        raise InputError(f"its header holds the key {show(str(error))} twice") from None
    except (ValueError, RecursionError):
        raise InputError("is no safetensors file, or is damaged: its header is no JSON") from None
    metadata = header.get(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(each, str) for each in metadata.values()):
        raise InputError(Mistake(METADATA, "expected a mapping of texts"))
    return header, 8 + length


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if twice:
        raise _Duplicate(twice[0])
    return dict(pairs)


def _entries(header: dict[str, Any], size: int) -> dict[str, tuple[str, tuple[int, ...], int, int]]:
    """Kind, shape and offsets of every tensor; `InputError` unless the tensors fill `size` bytes without overlap."""
    entries, mistakes = {}, []
    for key in sorted(header):
        if key != METADATA:
            entry = _entry(header[key], size)
            if isinstance(entry, str):
                mistakes.append(Mistake(show(key), entry))
            else:
                entries[key] = entry
    end = 0
    for key, entry in sorted(entries.items(), key=lambda item: item[1][2:]):
        if entry[2] != end:
            how = "overlaps the tensor before it" if entry[2] < end else "leaves a hole before it"
            mistakes.append(Mistake(show(key), f"{how}: it begins at {entry[2]}, expected {end}"))
        end = max(end, entry[3])
    if not mistakes and end != size:
        mistakes.append(Mistake("", f"has {size} bytes of numbers, its header describes {end}"))
    refuse(mistakes)
    return entries


def _entry(entry: Any, size: int) -> tuple[str, tuple[int, ...], int, int] | str:
    """One tensor's description, or what is wrong with it."""
    if not isinstance(entry, dict):
        return "expected a mapping of dtype, shape and data_offsets"
    kind, shape, offsets = entry.get("dtype"), _whole(entry.get("shape")), _whole(entry.get("data_offsets"))
    if not isinstance(kind, str) or shape is None or offsets is None or len(offsets) != 2:
        return "expected dtype (a text), shape and data_offsets (whole numbers from 0 on)"
    begin, end = offsets
    if not begin <= end <= size:
        return f"lies at bytes {show(begin)} to {show(end)}, outside the {size} bytes of numbers in the file"
    if kind in _BITS and prod(shape) * _BITS[kind] != 8 * (end - begin):
        wanted = prod(shape) * _BITS[kind] // 8
        return f"has {end - begin} bytes, its shape and {kind} need {show(wanted)}"
    return kind if kind in _BITS else show(kind), shape, begin, end


def _whole(numbers: Any) -> tuple[int, ...] | None:
    """A short list of sizes; None if the value is anything else."""
    known = isinstance(numbers, list) and len(numbers) <= MAX_RANK
    return tuple(numbers) if known and all(type(each) is int and 0 <= each < 2**63 for each in numbers) else None


def write_safetensors(
    path: str | os.PathLike[str], tensors: Mapping[str, Floats], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays as a safetensors file, float64 as F64 and all else as F32; equal content gives equal bytes."""
    arrays = {key: np.asarray(each, "<f8" if each.dtype == np.float64 else "<f4") for key, each in tensors.items()}
    header: dict[str, Any] = {METADATA: dict(sorted(metadata.items()))} if metadata else {}
    end = 0
    # The wider numbers come first: then all numbers are aligned.
    names = sorted(arrays, key=lambda key: (-arrays[key].itemsize, key))
    for key in names:
        array = arrays[key]
        kind = "F64" if array.itemsize == 8 else "F32"
        header[key] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with whole_file(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for key in names:
            file.write(arrays[key].tobytes())
