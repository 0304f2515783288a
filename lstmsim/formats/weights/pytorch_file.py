"""PyTorch's own files (`.pt`, `.pth`): state dictionaries out of the zip format and the old stream, nothing executed.

Zip (since PyTorch 1.6): `NAME/data.pkl` and one member `NAME/data/KEY` per storage. Old: pickles of a mark, a version,
the machine's sizes, the object and the storages' keys, then for each storage 8 bytes of length and its numbers.
Sources: torch/serialization.py and torch/_utils.py of PyTorch.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import PurePath
from typing import IO, Any

import numpy as np

from lstmsim.errors import InputError
from lstmsim.formats.imported import ImportedModel, bounded_file, placed
from lstmsim.formats.weights.pickle_data import Global, load_data
from lstmsim.formats.weights.pytorch_names import PYTORCH_NAMES, import_groups, is_recurrent_name
from lstmsim.formats.weights.tensors import FLOAT_BYTES, Stored, decoded
from lstmsim.formats.weights.zip_members import open_zip, read_member
from lstmsim.formats.wording import show
from lstmsim.numerics.weights import Floats

__all__ = ["import_pytorch"]

MAX_PICKLE = 64 * 2**20
MAX_RANK = 8
_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_STORAGES = {
    "DoubleStorage": "F64",
    "FloatStorage": "F32",
    "HalfStorage": "F16",
    "BFloat16Storage": "BF16",
    **{f"{name}Storage": name for name in ("Long", "Int", "Short", "Char", "Byte", "Bool")},
}


@dataclass(frozen=True)
class _Storage:
    """A run of numbers outside the pickle: `count` of them under `key`."""

    kind: str
    key: str
    count: int


@dataclass(frozen=True)
class _Tensor:
    """A view of a storage; offset and strides in elements."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> _Tensor:
    if not isinstance(storage, _Storage) or not _sizes((offset,)) or not _sizes(shape) or not _sizes(strides):
        raise TypeError
    if len(shape) != len(strides):
        raise ValueError
    return _Tensor(storage, offset, shape, strides)


def _sizes(values: Any) -> bool:
    known = isinstance(values, tuple) and len(values) <= MAX_RANK
    return known and all(type(each) is int and 0 <= each < 2**62 for each in values)


def _parameter(data: Any, *_: Any) -> _Tensor:
    if not isinstance(data, _Tensor):
        raise TypeError
    return data


def _ordered(*pairs: Any) -> dict[Any, Any]:
    found = {}
    for key, value in pairs[0] if pairs else ():
        if not isinstance(key, str | int):
            raise TypeError
        found[key] = value
    return found


def _size(values: Any = ()) -> tuple[int, ...]:
    if not _sizes(values):
        raise TypeError
    return tuple(values)


#: The whole list of globals: tensors, their storages, and the containers and small values around them.
_CALLS: Mapping[tuple[str, str], Callable[..., Any] | None] = {
    ("collections", "OrderedDict"): _ordered,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch", "Size"): _size,
    ("torch", "device"): lambda *_: "device",
    **{("torch", name): None for name in _STORAGES},
}


class _Storages(dict[str, _Storage]):
    """The storages that a pickle's persistent ids mean, by key."""

    def find(self, value: Any) -> _Storage:
        """The storage of ('storage', class, key, device, count), in old files with a view beside it."""
        if not isinstance(value, tuple) or len(value) not in (5, 6) or value[0] != "storage":
            raise TypeError
        _, kind, key, _, count, *view = value
        known = isinstance(kind, Global) and kind.name in _STORAGES
        if not known or not isinstance(key, str) or not _sizes((count,)):
            raise TypeError
        if view and view[0] is not None:
            raise InputError("shares storages between tensors in a way that only very old PyTorch did; save it anew")
        found = self.setdefault(key, _Storage(_STORAGES[kind.name], key, count))
        if found != _Storage(_STORAGES[kind.name], key, count):
            raise InputError(f"is damaged: it states two lengths or kinds of storage {show(key)}")
        return found


def _none(value: Any) -> Any:
    """Persistent ids have no place in the small pickles around the object."""
    raise TypeError


#: A storage's content; `InputError` if the file has not as many bytes.
_Fetch = Callable[[_Storage], bytes]


def import_pytorch(path: str | os.PathLike[str], *, weights: bool = True) -> list[ImportedModel]:
    """The recurrent layers in a PyTorch file; `InputError` for anything but plain tensors. Nothing is executed.

    >>> import_pytorch("no-such-file.pt")
    Traceback (most recent call last):
    lstmsim.errors.InputError: no-such-file.pt: no such file or folder
    """
    name = os.fspath(path)
    with bounded_file(name, "a PyTorch file") as (file, size):
        start = file.read(4)
        file.seek(0)
        try:
            if start == b"PK\x03\x04":
                return _from_zip(file, name, weights)
            return _from_stream(file, size, name, weights)
        except InputError as error:
            raise placed(error, name) from None


def _from_zip(file: IO[bytes], name: str, weights: bool) -> list[ImportedModel]:
    with open_zip(file) as archive:
        names = set(archive.namelist())
        pickles = [each for each in names if each == "data.pkl" or each.endswith("/data.pkl")]
        if len(pickles) != 1 or any(PurePath(each).name == "constants.pkl" for each in names):
            raise InputError("is no PyTorch file of tensors (a zip file with one data.pkl); TorchScript is not read")
        folder = pickles[0].removesuffix("data.pkl")
        if f"{folder}byteorder" in names and read_member(archive, f"{folder}byteorder", 100).strip() != b"little":
            raise InputError("was written on a big-endian machine, only little-endian numbers are read")
        value = load_data(io.BytesIO(read_member(archive, pickles[0], MAX_PICKLE)), _CALLS, _Storages().find)

        @lru_cache(maxsize=1)
        def fetch(storage: _Storage) -> bytes:
            content = read_member(archive, f"{folder}data/{storage.key}", storage.count * FLOAT_BYTES[storage.kind])
            return _checked(content, storage)

        return _models(value, fetch, name, weights)


def _from_stream(file: IO[bytes], size: int, name: str, weights: bool) -> list[ImportedModel]:
    # In memory, for a pickle may state any length.
    stream = io.BytesIO(file.read(MAX_PICKLE))
    if not stream.getvalue().startswith(b"\x80"):
        raise InputError("is no PyTorch file: neither a zip file nor a pickle")
    mark = load_data(stream, {}, _none)
    if mark != _MAGIC:
        raise InputError("is a pickle, but not one of PyTorch's; pickles can run anything and are never unpickled")
    version, machine = load_data(stream, {}, _none), load_data(stream, {}, _none)
    if version != _VERSION or not isinstance(machine, dict) or machine.get("little_endian") is not True:
        raise InputError(f"is no PyTorch file of version {_VERSION} from a little-endian machine")
    storages = _Storages()
    value, keys = load_data(stream, _CALLS, storages.find), load_data(stream, {}, _none)
    if not isinstance(keys, list) or not all(isinstance(each, str) for each in keys):
        raise InputError("is damaged: its list of storages is none")
    places = _places(file, stream.tell(), size, keys, storages)

    @lru_cache(maxsize=1)
    def fetch(storage: _Storage) -> bytes:
        if storage.key not in places:
            raise InputError(f"has no storage {show(storage.key)}")
        file.seek(places[storage.key])
        return _checked(file.read(storage.count * FLOAT_BYTES[storage.kind]), storage)

    return _models(value, fetch, name, weights)


_BYTES = {**FLOAT_BYTES, "Long": 8, "Int": 4, "Short": 2, "Char": 1, "Byte": 1, "Bool": 1}


def _places(file: IO[bytes], start: int, size: int, keys: list[str], known: Mapping[str, _Storage]) -> dict[str, int]:
    """Where in an old file each storage's numbers begin."""
    places = {}
    for key in keys:
        file.seek(start)
        count = int.from_bytes(file.read(8), "little")
        storage = known.get(key)
        if storage is None or storage.count != count:
            raise InputError(f"is damaged: storage {show(key)} has not the length that its tensors state")
        places[key] = start + 8
        start += 8 + count * _BYTES[storage.kind]
        if start > size:
            raise InputError(f"is cut off: storage {show(key)} ends at byte {start}, the file has {size}")
    return places


def _checked(content: bytes, storage: _Storage) -> bytes:
    if len(content) != storage.count * FLOAT_BYTES[storage.kind]:
        text = f"has {len(content)} bytes, its {storage.count} numbers need {storage.count * FLOAT_BYTES[storage.kind]}"
        raise InputError(f"is damaged or cut off: storage {show(storage.key)} {text}")
    return content


def _containers(value: Any) -> Iterator[tuple[tuple[str, ...], dict[Any, Any] | list[Any] | tuple[Any, ...]]]:
    """Every dictionary, list and tuple in a value, once, with the texts that lead to it; it may contain itself."""
    seen: set[int] = set()
    waiting: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while waiting:
        path, each = waiting.pop()
        if isinstance(each, dict | list | tuple) and id(each) not in seen:
            seen.add(id(each))
            yield path, each
            items = each.items() if isinstance(each, dict) else enumerate(each)
            # Some paths only: they are for names, and a chain of a million links would make them long.
            inner = [((*path, str(key)[:80]) if len(path) < 8 else path, below) for key, below in items]
            waiting += reversed(inner)


def _models(value: Any, fetch: _Fetch, name: str, weights: bool) -> list[ImportedModel]:
    """The recurrent layers of every state dictionary in what the file holds."""
    found = []
    for path, each in _containers(value):
        if isinstance(each, dict):
            own = {key: item for key, item in each.items() if isinstance(key, str) and isinstance(item, _Tensor)}
            if any(is_recurrent_name(key) for key in own):
                found.append((path, own))
    if not found:
        raise InputError(f"holds no recurrent layer by PyTorch's names: {PYTORCH_NAMES}")
    single = len(found) == 1
    tensors = {
        key if single else ".".join((*path, key)): _stored(tensor, fetch)
        for path, own in found
        for key, tensor in own.items()
    }
    return import_groups(tensors, name, weights=weights)


def _stored(tensor: _Tensor, fetch: _Fetch) -> Stored:
    storage, width = tensor.storage, _BYTES[tensor.storage.kind]

    def read() -> Floats:
        last = tensor.offset + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.strides, strict=True))
        if 0 in tensor.shape or prod(tensor.shape) > storage.count or last >= storage.count:
            raise InputError(f"has a tensor beyond the {storage.count} numbers of storage {show(storage.key)}")
        numbers = decoded(storage.kind, fetch(storage)[tensor.offset * width : (last + 1) * width])
        # the step of a dimension of one means nothing, and may be any number
        sizes = zip(tensor.shape, tensor.strides, strict=True)
        steps = tuple(step * numbers.itemsize if size > 1 else 0 for size, step in sizes)
        return np.array(np.lib.stride_tricks.as_strided(numbers, tensor.shape, steps, writeable=False))

    return Stored(tensor.storage.kind, tensor.shape, read)
