"""Bounds for the readers of all formats: on the size of a file, of a member of a zip file, and on reported mistakes.

Members of zip files are read into memory, bounded while inflating, and never written, so a member's path is harmless.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from typing import IO

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import readable_file
from lstmsim.base.wording import show

#: Most bytes that protobuf itself can hold. The other formats have the same bound here.
MAX_BYTES = 2**31 - 1
MAX_MISTAKES = 20
#: The first bytes of the pointer that stands for a file which Git LFS has not fetched.
LFS_POINTER = b"version https://git-lfs"


@contextmanager
def bounded_file(path: str | os.PathLike[str], what: str) -> Iterator[tuple[BufferedReader, int]]:
    """Open an existing file of at most 2 GB for reading; gives file and size in bytes; what: the content in words.

    `InputError` if there is no such file, or if it is empty, too large, a pipe or a Git LFS pointer.
    """
    name = os.fspath(path)
    try:
        regular = not os.path.exists(name) or os.path.isdir(name) or stat.S_ISREG(os.stat(name).st_mode)
    except (OSError, ValueError):
        regular = True
    if not regular:
        raise InputError(Mistake(name, "is a device or a pipe, expected a file"))
    with readable_file(name) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_BYTES:
            raise InputError(Mistake(name, f"has {size} bytes, more than the 2 GB that {what} can have here"))
        if not size:
            raise InputError(Mistake(name, f"is empty, expected {what}"))
        try:
            if file.read(len(LFS_POINTER)) == LFS_POINTER:
                text = f"is a Git LFS pointer, not {what} itself: fetch it with git lfs pull"
                raise InputError(Mistake(name, text))
            file.seek(0)
            yield file, size
        except OSError as error:
            raise InputError(Mistake(name, f"cannot be read: {error.strerror}")) from None


def placed(error: InputError, name: str) -> InputError:
    """The error with the file's name before every location. Of many mistakes only the first 20 are kept.

    >>> print(placed(InputError("is damaged"), "a.pt"))
    a.pt: is damaged
    """
    mistakes = [
        each
        if each.location.startswith(name)
        else Mistake(f"{name}: {each.location}" if each.location else name, each.sentence)
        for each in capped(error.mistakes)
    ]
    return InputError(mistakes)


def capped(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """The first 20 mistakes, and how many more there are.

    >>> [each.sentence for each in capped([Mistake("", "wrong")] * 22)][-2:]
    ['wrong', 'and 2 more like these']
    """
    more = len(mistakes) - MAX_MISTAKES
    return [*mistakes[:MAX_MISTAKES], *([Mistake("", f"and {more} more like these")] if more > 0 else [])]


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
    """Read the content of one member.

    `InputError` if there is no such member, it is encrypted, or it inflates to more than `limit` bytes.
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
