"""Members of zip files, read into memory: bounded while inflating and never written, so a member's path is harmless."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from lstmsim.base.errors import InputError
from lstmsim.base.wording import show

__all__ = ["open_zip", "read_member"]

MAX_MEMBERS = 100_000
#: Bytes that zipfile may ask for at once: a directory of some 200,000 members.
_MAX_READ = 32 * 2**20
#: Weights hardly shrink; a member that grows more than this when inflated is no network.
_MAX_RATIO, _SMALL = 20, 2**20
_DAMAGE = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
    KeyError,
    IndexError,
    OverflowError,
    struct.error,
    zlib.error,
)


class _Bounded:
    """A file that refuses large reads: a zip file may state any length for its directory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(_MAX_READ + 1 if size < 0 else min(size, _MAX_READ + 1))
        if len(content) > _MAX_READ:
            raise InputError("is no zip file that can be read: its directory is too large")
        return content


@contextmanager
def open_zip(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open a zip file; `InputError` for everything that is wrong with it, also later in the block."""
    try:
        with zipfile.ZipFile(_Bounded(file)) as archive:
            if len(archive.infolist()) > MAX_MEMBERS:
                raise InputError(f"is a zip file of more than {MAX_MEMBERS} members")
            yield archive
    except _DAMAGE:
        raise InputError("is a zip file that is damaged or cut off") from None


def read_member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """Read one member's content.

    name: the member.
    limit: most bytes of its content.

    `InputError` if there is no such member, it is encrypted, or it inflates to more than `limit` bytes.

    >>> import io
    >>> buffer = io.BytesIO()
    >>> with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
    ...     archive.writestr("bomb", bytes(10**7))
    >>> with open_zip(buffer) as archive:
    ...     read_member(archive, "bomb", 10**8)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    lstmsim.InputError: its member 'bomb' inflates to 10000000 bytes, from ...: no network does
    """
    same = [each for each in archive.infolist() if each.filename == name]
    if len(same) != 1:
        raise InputError(f"has {'no' if not same else 'more than one'} member {show(name)}")
    info = same[0]
    if info.flag_bits & 1:
        raise InputError(f"its member {show(name)} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"its member {show(name)} is compressed in a way that is not read")
    if info.file_size > limit:
        raise InputError(f"its member {show(name)} has {info.file_size} bytes, at most {limit} are read")
    if info.file_size > _SMALL + _MAX_RATIO * info.compress_size:
        grown = f"inflates to {info.file_size} bytes, from {info.compress_size}: no network does"
        raise InputError(f"its member {show(name)} {grown}")
    parts, size = [], 0
    with archive.open(info) as member:
        # Reading one byte more than stated shows a member that states too little.
        while size <= info.file_size and (part := member.read(min(2**20, info.file_size + 1 - size))):
            parts.append(part)
            size += len(part)
    if size != info.file_size:
        raise InputError(f"its member {show(name)} has not the {info.file_size} bytes that it states")
    return b"".join(parts)
