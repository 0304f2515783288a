"""PyTorch's own files (`.pt`, `.pth`): state dictionaries out of the zip format and the old stream, nothing executed.

Zip (since PyTorch 1.6): `NAME/data.pkl` and one member `NAME/data/KEY` per storage. Old: pickles of a mark, a version,
the machine's sizes, the object and the storages' keys, then for each storage 8 bytes of length and its numbers.
Sources: torch/serialization.py and torch/_utils.py of PyTorch.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from typing import IO, Any

from lstmsim.base.bounded import bounded_file, open_zip, placed, read_member
from lstmsim.base.errors import InputError
from lstmsim.base.wording import show
from lstmsim.importers.imported import ImportedModel
from lstmsim.importers.pytorch.modules import Source, states_in
from lstmsim.importers.pytorch.names import Fact, import_groups
from lstmsim.importers.pytorch.pickled import BYTES, CALLS, Fetch, Storage, StorageTable, load_data, stored_tensor
from lstmsim.importers.tensors import FLOAT_BYTES, Stored

MAX_PICKLE = 64 * 2**20
MAX_SOURCE = 2**20
_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001


def _none(value: Any) -> Any:
    """Refuse a persistent id: it has no place in the small pickles around the object."""
    raise TypeError


def import_pytorch(
    path: str | os.PathLike[str], *, weights: bool = True, cell: str | None = None
) -> list[ImportedModel]:
    """Import the recurrent layers in a PyTorch file. Nothing is executed."""
    name = os.fspath(path)
    with bounded_file(name, "a PyTorch file") as (file, size):
        start = file.read(4)
        file.seek(0)
        try:
            if start == b"PK\x03\x04":
                return _from_zip(file, name, weights, cell)
            return _from_stream(file, size, name, weights, cell)
        except InputError as error:
            raise placed(error, name) from None


def _from_zip(file: IO[bytes], name: str, weights: bool, cell: str | None) -> list[ImportedModel]:
    with open_zip(file) as archive:
        names = set(archive.namelist())
        pickles = [each for each in names if each == "data.pkl" or each.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise InputError("is no PyTorch file of tensors: a zip file with one data.pkl")
        folder = pickles[0].removesuffix("data.pkl")
        if f"{folder}byteorder" in names and read_member(archive, f"{folder}byteorder", 100).strip() != b"little":
            raise InputError("was written on a big-endian machine, only little-endian numbers are read")
        content = io.BytesIO(read_member(archive, pickles[0], MAX_PICKLE))
        value = load_data(content, CALLS, StorageTable().find, objects=True)

        @lru_cache(maxsize=1)
        def fetch(storage: Storage) -> bytes:
            content = read_member(archive, f"{folder}data/{storage.key}", storage.count * FLOAT_BYTES[storage.kind])
            return _checked(content, storage)

        return _models(value, fetch, name, weights, cell, _source(archive, folder))


def _from_stream(file: IO[bytes], size: int, name: str, weights: bool, cell: str | None) -> list[ImportedModel]:
    # Read into memory, because a pickle may state any length.
    stream = io.BytesIO(file.read(MAX_PICKLE))
    if not stream.getvalue().startswith(b"\x80"):
        raise InputError("is no PyTorch file: neither a zip file nor a pickle")
    mark = load_data(stream, {}, _none)
    if mark != _MAGIC:
        raise InputError("is a pickle, but not one of PyTorch's; pickles can run anything and are never unpickled")
    version, machine = load_data(stream, {}, _none), load_data(stream, {}, _none)
    if version != _VERSION or not isinstance(machine, dict) or machine.get("little_endian") is not True:
        raise InputError(f"is no PyTorch file of version {_VERSION} from a little-endian machine")
    storages = StorageTable()
    value, keys = load_data(stream, CALLS, storages.find, objects=True), load_data(stream, {}, _none)
    if not isinstance(keys, list) or not all(isinstance(each, str) for each in keys):
        raise InputError("is damaged: its list of storages is none")
    places = _places(file, stream.tell(), size, keys, storages)

    @lru_cache(maxsize=1)
    def fetch(storage: Storage) -> bytes:
        if storage.key not in places:
            raise InputError(f"has no storage {show(storage.key)}")
        file.seek(places[storage.key])
        return _checked(file.read(storage.count * FLOAT_BYTES[storage.kind]), storage)

    return _models(value, fetch, name, weights, cell, lambda kind: "")


def _places(file: IO[bytes], start: int, size: int, keys: list[str], known: Mapping[str, Storage]) -> dict[str, int]:
    """Where in an old file each storage's numbers begin."""
    places = {}
    for key in keys:
        file.seek(start)
        count = int.from_bytes(file.read(8), "little")
        storage = known.get(key)
        if storage is None or storage.count != count:
            raise InputError(f"is damaged: storage {show(key)} has not the length that its tensors state")
        places[key] = start + 8
        start += 8 + count * BYTES[storage.kind]
        if start > size:
            raise InputError(f"is cut off: storage {show(key)} ends at byte {start}, the file has {size}")
    return places


def _checked(content: bytes, storage: Storage) -> bytes:
    if len(content) != storage.count * FLOAT_BYTES[storage.kind]:
        text = f"has {len(content)} bytes, its {storage.count} numbers need {storage.count * FLOAT_BYTES[storage.kind]}"
        raise InputError(f"is damaged or cut off: storage {show(storage.key)} {text}")
    return content


def _source(archive: zipfile.ZipFile, folder: str) -> Source:
    """A function for the text of a class of TorchScript: `__torch__.a.b.C` stands in `code/__torch__/a/b.py`."""
    names = set(archive.namelist())

    @lru_cache(maxsize=8)
    def text_of(member: str) -> str:
        return read_member(archive, member, MAX_SOURCE).decode("utf-8", "replace") if member in names else ""

    def source(kind: str) -> str:
        *modules, own = kind.split(".")
        blocks = re.split(r"^class (\w+)\(", text_of(f"{folder}code/{'/'.join(modules)}.py"), flags=re.MULTILINE)
        return dict(zip(blocks[1::2], blocks[2::2], strict=True)).get(own, "")

    return source


def _models(
    value: Any, fetch: Fetch, name: str, weights: bool, cell: str | None, source: Source
) -> list[ImportedModel]:
    states = states_in(value, source)
    single = len(states) == 1
    tensors: dict[str, Stored] = {}
    facts: dict[str, Fact] = {}
    for each in states:
        path = () if single else each.path
        tensors |= {".".join((*path, key)): stored_tensor(tensor, fetch) for key, tensor in each.tensors.items()}
        facts |= {".".join((*path, title) if title else path): fact for title, fact in each.facts.items()}
    return import_groups(tensors, name, weights=weights, cell=cell, facts=facts)
