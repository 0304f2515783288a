"""Weights of an ONNX network that lie in other files beside it (external data, what PyTorch's exporter writes).

Only plain files in the model's own folder or below are opened: no absolute path, no `..`, no link that leads out, no
file with a second name. Places and lengths are compared with the file before any memory is taken.
Source: external data in the specification of ONNX (docs/ExternalData.md): location, offset, length.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import PureWindowsPath
from typing import Any

from lstmsim.base.bounded import LFS_POINTER, MAX_BYTES
from lstmsim.base.errors import InputError
from lstmsim.base.files_kept import note_read
from lstmsim.base.wording import show
from lstmsim.importers.onnx.graph import Scope

__all__ = ["DataFiles", "data_files_of", "is_external"]

_EXTERNAL = 1
_TENSOR, _TENSORS = 4, 9
#: Digits of the largest file that any file system holds.
_MAX_DIGITS = 19
_ONE_FILE = "export the network as one file (external_data=False), or read shapes only (--no-weights)"


def is_external(tensor: Any) -> bool:
    """Say whether the numbers of a TensorProto lie in another file."""
    return bool(tensor.data_location == _EXTERNAL)


class DataFiles:
    """The data files of one network. A file is opened when a tensor in it is needed, for that tensor's bytes only.

    model: path of the ONNX file; locations count from its folder.
    total: bytes read so far; each range of a file counts once, and at most 2 GB are read.

    >>> from onnx import TensorProto
    >>> far = TensorProto(name="w", dims=[2], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    >>> _ = far.external_data.add(key="location", value="../passwords")
    >>> DataFiles("speech.onnx").read(far, 8)
    Traceback (most recent call last):
    lstmsim.InputError: its weights 'w' are in '../passwords', which leaves the network's folder: never opened
    """

    def __init__(self, model: str) -> None:
        self._folder = os.path.realpath(os.path.dirname(model) or ".")
        self._ranges: set[tuple[str, int, int]] = set()
        self.total = 0

    def read(self, tensor: Any, size: int) -> bytes:
        """Read the `size` bytes of a tensor; `InputError` if its file is missing, too short or may not be opened."""
        fields = {str(each.key): str(each.value) for each in tensor.external_data}
        location = fields.get("location", "")
        what = f"its weights {show(str(tensor.name))} are in {show(location)}"
        path = self._path(location, what)
        offset = _whole(fields.get("offset") or "0", f"{what}: offset")
        length = _whole(fields.get("length") or str(size), f"{what}: length")
        if length != size:
            raise InputError(f"{what} in {length} bytes, but their shape needs {size}: the network is damaged")
        self._count((path, offset, size), what)
        return _content(path, offset, size, what)

    def _path(self, location: str, what: str) -> str:
        """The real path of a location in the model's folder."""
        if not location or "\0" in location:
            raise InputError(f"{what}, which is no file name: the network is damaged")
        # The spelling of Windows is refused on all systems, so that a network means the same everywhere.
        away = "\\" in location or PureWindowsPath(location).drive or location.startswith("/")
        if away or ".." in location.split("/"):
            raise InputError(f"{what}, which leaves the network's folder: never opened")
        path = os.path.join(self._folder, location)
        try:
            real = os.path.realpath(path)
            there = os.path.lexists(path)
        except (OSError, ValueError):
            raise InputError(f"{what}, which is no file name: the network is damaged") from None
        if not real.startswith(os.path.join(self._folder, "")):
            raise InputError(f"{what}, a link that leaves the network's folder: never opened; copy the file itself")
        if not there:
            raise InputError(f"{what}, but there is no such file beside the network: fetch it too, {_ONE_FILE}")
        return real

    def _count(self, span: tuple[str, int, int], what: str) -> None:
        if span not in self._ranges:
            self._ranges.add(span)
            self.total += span[2]
        if self.total > MAX_BYTES:
            raise InputError(f"{what}; its recurrent layers have more than the 2 GB of weights that are read here")


def _content(path: str, offset: int, size: int, what: str) -> bytes:
    """Bytes of a plain file, which is checked through the same descriptor that reads it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            _check_file(os.fstat(descriptor), what)
            note_read(path)
            with open(descriptor, "rb", closefd=False) as file:
                if file.read(len(LFS_POINTER)) == LFS_POINTER:
                    text = "which is a Git LFS pointer, not the weights: fetch them with git lfs pull"
                    raise InputError(f"{what}, {text}")
                length = os.fstat(descriptor).st_size
                if offset + size > length:
                    text = f"{what} at bytes {offset} to {offset + size}, but the file has {length}"
                    raise InputError(f"{text}: it is cut off or belongs to another network")
                file.seek(offset)
                return file.read(size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InputError(f"{what}, which cannot be read: {error.strerror}") from None


def _check_file(about: os.stat_result, what: str) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise InputError(f"{what}, which is no plain file: never opened")
    if about.st_nlink > 1:
        # A hard link does not tell where its other names are: perhaps outside the folder.
        raise InputError(f"{what}, which has another name too (a hard link): never opened; copy the file itself")


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise InputError(f"{what} is {show(text)}, expected a whole number of bytes from 0 on")
    return int(text)


def data_files_of(scopes: list[Scope], model: str) -> tuple[str, ...]:
    """List every existing file that a network names for its data: no output may replace one.

    A file that may not be opened is in the list too.

    scopes: the network.
    model: path of the ONNX file.

    >>> data_files_of([], "speech.onnx")
    ()
    """
    folder = os.path.dirname(model)
    locations = dict.fromkeys(
        str(each.value)
        for scope in scopes
        for tensor in _tensors(scope)
        for each in tensor.external_data
        if each.key == "location" and "\0" not in str(each.value)
    )
    paths = (os.path.join(folder, location) for location in locations)
    return tuple(path for path in paths if os.path.isfile(path))


def _tensors(scope: Scope) -> Iterator[Any]:
    """The tensors of a scope: initializers, and tensors in attributes of its nodes; a sparse tensor holds two."""
    stored = [*scope.tensors.values()]
    for node in scope.nodes:
        for each in node.attribute:
            stored += [each.t] if each.type == _TENSOR else list(each.tensors) if each.type == _TENSORS else []
    for tensor in stored:
        yield from (tensor.values, tensor.indices) if hasattr(tensor, "indices") else (tensor,)
