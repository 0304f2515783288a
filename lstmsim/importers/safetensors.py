"""The safetensors format: 8 bytes of length, a JSON header, raw numbers. Read and written with the standard library.

Source: the format's own description (huggingface/safetensors, README): header first, offsets without holes, keys once.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from lstmsim.base.bounded import bounded_file, placed
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import whole_file
from lstmsim.base.wording import show
from lstmsim.importers.tensors import FLOAT_BYTES, Stored, decoded
from lstmsim.model.numerics.weights import Floats

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
    """What a file holds: name to tensor, in the order of the names, and texts on the file (source, licence)."""

    tensors: Mapping[str, Stored]
    metadata: Mapping[str, str]


class _Duplicate(ValueError):
    """A key of the header comes twice."""


def read_safetensors(path: str | os.PathLike[str]) -> Safetensors:
    """Read the tensors of a safetensors file, not decoded yet; `InputError` with every mistake in the header.

    >>> read_safetensors("no-such-file.safetensors")
    Traceback (most recent call last):
    lstmsim.InputError: no-such-file.safetensors: no such file or folder
    """
    name = os.fspath(path)
    with bounded_file(name, "a safetensors file") as (file, size):
        try:
            header, start = _header(file.read(8), file, size)
            entries = _entries(header, size - start)
        except InputError as error:
            raise placed(error, name) from None
        content = memoryview(file.read(size - start))
    if len(content) != size - start:
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
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _Duplicate(next(key for key, count in counts.items() if count > 1))
    return mapping


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
    if mistakes:
        raise InputError(mistakes)
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
    """Write arrays as a safetensors file; equal content gives equal bytes, and numbers are aligned to 8 bytes.

    path: the file.
    tensors: name to array; float64 is written as F64, everything else as F32.
    metadata: texts on the file.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.safetensors")
    ...     write_safetensors(path, {"w": np.ones((2, 3))}, {"licence": "MIT"})
    ...     content = read_safetensors(path)
    >>> content.tensors["w"].shape, content.metadata
    ((2, 3), {'licence': 'MIT'})
    """
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
