"""Bounds for the readers of all formats: on the size of a file, and on the number of mistakes that are told."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import readable_file

__all__ = ["LFS_POINTER", "MAX_BYTES", "bounded_file", "capped", "placed"]

#: Most bytes that protobuf itself can hold. The other formats have the same bound here.
MAX_BYTES = 2**31 - 1
MAX_MISTAKES = 20
#: The first bytes of the pointer that stands for a file which Git LFS has not fetched.
LFS_POINTER = b"version https://git-lfs"


@contextmanager
def bounded_file(path: str | os.PathLike[str], what: str) -> Iterator[tuple[BufferedReader, int]]:
    """Open an existing file of at most 2 GB for reading; gives the file and its size in bytes.

    what: the expected content, in words (`an ONNX network`).
    `InputError` if there is no such file, or if it is empty, too large, a pipe or a Git LFS pointer.

    >>> with bounded_file("no-such-file.pt", "a PyTorch file"):
    ...     pass
    Traceback (most recent call last):
    lstmsim.InputError: no-such-file.pt: no such file or folder
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
    """The error with the file's name before every place. Of many mistakes only the first 20 are kept.

    >>> print(placed(InputError("is damaged"), "a.pt"))
    a.pt: is damaged
    """
    mistakes = [
        each if each.place.startswith(name) else Mistake(f"{name}: {each.place}" if each.place else name, each.sentence)
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
