"""PyTorch's tensors as its pickles describe them: views of storages that lie outside the pickle.

Sources: torch/_utils.py, torch/_tensor.py and torch/serialization.py of PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from lstmsim.base.errors import InputError
from lstmsim.base.wording import show
from lstmsim.importers.weights.pickle_data import Global
from lstmsim.importers.weights.tensors import FLOAT_BYTES, Stored, decoded
from lstmsim.model.numerics.weights import Floats

__all__ = ["BYTES", "CALLS", "Fetch", "Storage", "StorageTable", "Tensor", "stored_tensor"]

MAX_RANK = 8
#: Kinds of number that are read for no weight, and their bytes.
_OTHER_BYTES = {
    "Long": 8,
    "Int": 4,
    "Short": 2,
    "Char": 1,
    "Byte": 1,
    "Bool": 1,
    "QInt8": 1,
    "QUInt8": 1,
    "QInt32": 4,
    "ComplexFloat": 8,
    "ComplexDouble": 16,
}
_STORAGES = {
    "DoubleStorage": "F64",
    "FloatStorage": "F32",
    "HalfStorage": "F16",
    "BFloat16Storage": "BF16",
    **{f"{name}Storage": name for name in _OTHER_BYTES},
}
#: Bytes of one number of each kind of storage.
BYTES: Mapping[str, int] = {**FLOAT_BYTES, **_OTHER_BYTES}


@dataclass(frozen=True)
class Storage:
    """A run of numbers outside the pickle.

    kind: the kind of number, a key of `BYTES`.
    key: where the run is in the file.
    count: how many numbers it has.
    """

    kind: str
    key: str
    count: int


@dataclass(frozen=True)
class Tensor:
    """A view of a storage.

    storage: where the numbers are.
    offset: elements before the first number.
    shape: elements in each dimension.
    strides: elements between neighbours in each dimension.
    """

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> Tensor:
    if not isinstance(storage, Storage) or not _sizes((offset,)) or not _sizes(shape) or not _sizes(strides):
        raise TypeError
    if len(shape) != len(strides):
        raise ValueError
    return Tensor(storage, offset, shape, strides)


def _sizes(values: Any) -> bool:
    known = isinstance(values, tuple) and len(values) <= MAX_RANK
    return known and all(type(each) is int and 0 <= each < 2**62 for each in values)


def _parameter(data: Any, *_: Any) -> Tensor:
    if not isinstance(data, Tensor):
        raise TypeError
    return data


def _ordered(*pairs: Any) -> dict[Any, Any]:
    entries = {}
    for key, value in pairs[0] if pairs else ():
        if not isinstance(key, str | int):
            raise TypeError
        entries[key] = value
    return entries


def _size(values: Any = ()) -> tuple[int, ...]:
    if not _sizes(values):
        raise TypeError
    return tuple(values)


def _typed(function: Any, _: Any, arguments: Any, *__: Any) -> Tensor:
    """A tensor with attributes, from the function that makes it, its class, the function's arguments, and the rest."""
    if not isinstance(function, Global) or not isinstance(arguments, tuple):
        raise TypeError
    made = CALLS.get((function.module, function.name))
    if made not in (_rebuild_tensor, _parameter):
        raise TypeError
    tensor: Tensor = made(*arguments)
    return tensor


#: The whole list of globals with a meaning: tensors, their storages, and the containers and small values around them.
CALLS: Mapping[tuple[str, str], Callable[..., Any] | None] = {
    ("collections", "OrderedDict"): _ordered,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter,
    ("torch._tensor", "_rebuild_from_type_v2"): _typed,
    ("collections", "defaultdict"): lambda *_: {},
    ("torch", "Size"): _size,
    ("torch", "device"): lambda *_: "device",
    **{("torch", name): None for name in _STORAGES},
}


class StorageTable(dict[str, Storage]):
    """The storages that a pickle's persistent ids mean: key to storage."""

    def find(self, value: Any) -> Any:
        """Give the storage of a persistent id, and keep it.

        value: ('storage', class, key, device, count); old files have a view as sixth element.

        `InputError` if the kind of number is not known, or two ids contradict each other.
        """
        if isinstance(value, tuple) and len(value) == 4 and value[0] == "module":
            # Old files put the source code of a module's class beside the class; only its name is kept.
            return value[1]
        if not isinstance(value, tuple) or len(value) not in (5, 6) or value[0] != "storage":
            raise TypeError
        _, kind, key, _, count, *view = value
        if not isinstance(kind, Global):
            raise TypeError
        if kind.name not in _STORAGES:
            raise InputError(f"has numbers of a kind that is not known here: {kind}")
        if not isinstance(key, str) or not _sizes((count,)):
            raise TypeError
        if view and view[0] is not None:
            raise InputError("shares storages between tensors in a way that only very old PyTorch did; save it anew")
        storage = self.setdefault(key, Storage(_STORAGES[kind.name], key, count))
        if storage != Storage(_STORAGES[kind.name], key, count):
            raise InputError(f"is damaged: it states two lengths or kinds of storage {show(key)}")
        return storage


#: Gives a storage's content; `InputError` if the file has fewer bytes.
Fetch = Callable[[Storage], bytes]


def stored_tensor(tensor: Tensor, fetch: Fetch) -> Stored:
    """Make a `Stored` of a tensor.

    fetch: gives the bytes of a storage.

    `InputError`, when the numbers are read, if the tensor lies beyond its storage.
    """
    storage, width = tensor.storage, BYTES[tensor.storage.kind]

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
