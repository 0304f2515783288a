"""HDF5 files, checked before anything in them is read: no link is followed and no other file is opened.

Links to elsewhere, virtual datasets and external storage are refused. So is a dataset that states more numbers than the
file has bytes, and an attribute that holds references. Needs the package h5py (extra `keras`).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.importers.weights.tensors import Stored, shape_text
from lstmsim.model.numerics.weights import Floats

__all__ = ["child_groups", "datasets_below", "is_there", "open_hdf5", "stored_at", "text_attribute"]

MAX_DEPTH = 40
MAX_OBJECTS = 100_000
_KINDS = {2: "F16", 4: "F32", 8: "F64"}


@contextmanager
def open_hdf5(content: bytes, place: str) -> Iterator[Any]:
    """Open an HDF5 file in memory.

    content: the whole file.
    place: where the file is from, for errors.

    `InputError` at `place` for everything that is wrong with the file, also later in the block.
    """
    try:
        import h5py
    except ImportError:
        raise InputError("reading Keras files needs the extra: pip install 'lstmsim[keras]'") from None
    if not _sound_heaps(content):
        raise InputError(Mistake(place, "is no HDF5 file, or is damaged or cut off"))
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            yield file
    except InputError:
        raise
    except Exception:
        # HDF5 reports damage by many classes of error, and has no common class for them.
        raise InputError(Mistake(place, "is no HDF5 file, or is damaged or cut off")) from None


def _sound_heaps(content: bytes) -> bool:
    """Whether the heaps of texts can be walked through: HDF5 never ends at an entry that states no size.

    Source: HDF5 file format specification, III.E, global heap.
    """
    place, count = content.find(b"GCOL\x01\0\0\0"), 0
    while place >= 0:
        at, end = place + 16, place + int.from_bytes(content[place + 8 : place + 16], "little")
        if end > len(content):
            return False
        while at + 16 <= end:
            index, size = (
                int.from_bytes(content[at : at + 2], "little"),
                int.from_bytes(content[at + 8 : at + 16], "little"),
            )
            step = 16 + -(-size // 8) * 8 if index else size
            count += 1
            if not 0 < step <= end - at or count > MAX_OBJECTS:
                return False
            at += step
        place = content.find(b"GCOL\x01\0\0\0", place + 8)
    return True


def _step(group: Any, name: str, path: str) -> Any:
    """The object that `name` means in a group; None if there is none. Only hard links inside the file are followed."""
    import h5py

    link = group.get(name, getlink=True) if isinstance(group, h5py.Group) else None
    if link is None:
        return None
    if not isinstance(link, h5py.HardLink):
        raise InputError(Mistake(path, "is a link to somewhere else, which is never followed"))
    return group[name]


def is_there(file: Any, path: str) -> bool:
    """Say whether the file has anything at a path of hard links."""
    each = file
    for part in path.split("/"):
        each = _step(each, part, path)
        if each is None:
            return False
    return True


def stored_at(file: Any, path: str, size: int) -> Stored:
    """Give one dataset of a file, not read yet.

    path: names of groups and of the dataset, joined by `/`; each must be a hard link inside the file.
    size: bytes of the file; a dataset cannot hold more.

    `InputError` if there is no such dataset or it holds no floating-point numbers.
    """
    import h5py

    each: Any = file
    for part in path.split("/"):
        each = _step(each, part, path)
        if each is None:
            raise InputError(Mistake(path, "is missing"))
    if not isinstance(each, h5py.Dataset):
        raise InputError(Mistake(path, "is a group, expected a dataset"))
    return _stored(each, path, size)


def _stored(each: Any, path: str, size: int) -> Stored:
    if each.is_virtual or each.external:
        raise InputError(Mistake(path, "takes its numbers from other files, which are never opened"))
    shape = tuple(int(length) for length in each.shape or ())
    if each.dtype.kind != "f" or each.dtype.itemsize not in _KINDS:
        raise InputError(Mistake(path, f"holds {each.dtype}, expected floating-point numbers"))
    if prod(shape) * each.dtype.itemsize > size:
        text = f"has shape {shape_text(shape)}, which needs more bytes than the whole file of {size} has"
        raise InputError(Mistake(path, text))

    def read() -> Floats:
        wide = np.float64 if each.dtype.itemsize == 8 else np.float32
        return np.asarray(each[()], wide)

    return Stored(_KINDS[each.dtype.itemsize], shape, read)


def child_groups(file: Any, path: str = "") -> list[str]:
    """List the names of the groups in the group at `path`, sorted; links to elsewhere are left out."""
    import h5py

    group = file[path] if path else file
    hard = [name for name in group if isinstance(group.get(name, getlink=True), h5py.HardLink)]
    return sorted(name for name in hard if group.get(name, getclass=True) is h5py.Group)


def datasets_below(file: Any, path: str = "") -> dict[str, tuple[str, ...]]:
    """List every group at and below `path` that holds datasets: its path to the names of its datasets, sorted.

    Links to elsewhere are left out. `InputError` beyond 40 levels or 100,000 objects: groups that hold each other
    would have no end.
    """
    import h5py

    datasets: dict[str, tuple[str, ...]] = {}
    waiting, count = [(path, 0)], 0
    while waiting:
        own, depth = waiting.pop()
        group = file[own] if own else file
        names = [name for name in sorted(group) if isinstance(group.get(name, getlink=True), h5py.HardLink)]
        count += len(names)
        if depth > MAX_DEPTH or count > MAX_OBJECTS:
            text = f"holds more than {MAX_OBJECTS} objects, or groups more than {MAX_DEPTH} deep"
            raise InputError(Mistake(show(own[:200]), text))
        kinds = {name: group.get(name, getclass=True) for name in names}
        own_data = tuple(name for name in names if kinds[name] is h5py.Dataset)
        if own_data:
            datasets[own] = own_data
        stem = f"{own}/" if own else ""
        waiting += [(f"{stem}{name}", depth + 1) for name in reversed(names) if kinds[name] is h5py.Group]
    return datasets


def text_attribute(file: Any, name: str, limit: int) -> bytes | None:
    """Read one text attribute at the file's top; None if there is none.

    limit: most bytes of the text.

    `InputError` if the attribute is no single text or is longer.
    """
    if name not in file.attrs:
        return None
    identity = file.attrs.get_id(name)
    kind = identity.dtype
    if identity.shape != () or kind.kind not in "OS" or (kind.kind == "O" and not _is_text(kind)):
        raise InputError(Mistake(name, "is no text"))
    value = file.attrs[name] if kind.kind == "O" or kind.itemsize <= limit else b"x" * (limit + 1)
    content = value.encode("utf-8", "replace") if isinstance(value, str) else bytes(value)
    if len(content) > limit:
        raise InputError(Mistake(name, f"is a text of more than {limit} bytes"))
    return content


def _is_text(kind: Any) -> bool:
    import h5py

    return h5py.check_string_dtype(kind) is not None
