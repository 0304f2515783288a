"""Files that were read are not written over. Readers note each file here, and writers ask before they write.

A command checks its outputs before it begins (`lstmsim.cli.outputs`), by the files that its scenario names. This module
is the second guard. It needs no list of names, because it knows which files were opened. Each command has a ledger of
its own. Calls from Python share the ledger of the process, so that no picture, trace or report replaces a scenario,
model or arrival file that was loaded before. A file that lstmsim itself wrote, and that nobody changed since, may be
written again: a notebook may write outputs, read them as frames, and be run again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lstmsim.base.errors import InputError, Mistake

__all__ = ["Identity", "identity_of", "note_read", "note_written", "own_ledger", "refuse_if_read", "was_read"]

#: What all names of one file have in common: its device and its number on it, or its whole path if it does not exist.
Identity = tuple[int, int] | str


#: The state in which a file was left: device, number, time of the last change in ns, size in bytes.
_Mark = tuple[int, int, int, int]


class _Ledger:
    """The files that were read and written.

    paths: whole paths of files that were read.
    by_identity: identity of a file when it was read -> its whole path.
    written: marks of files that were written.
    """

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.by_identity: dict[Identity, str] = {}
        self.written: set[_Mark] = set()


_LEDGER: ContextVar[_Ledger] = ContextVar("_LEDGER", default=_Ledger())  # noqa: B039 (that of the process is meant)


@contextmanager
def own_ledger() -> Iterator[None]:
    """Give the block a ledger of its own. The ledger is empty: files that were read before may be written over.

    >>> with own_ledger():
    ...     note_read(__file__)
    ...     was_read(__file__)
    True
    >>> with own_ledger():
    ...     was_read(__file__)
    False
    """
    token = _LEDGER.set(_Ledger())
    try:
        yield
    finally:
        _LEDGER.reset(token)


def identity_of(path: str) -> Identity:
    """The identity of a file, the same for all its names: links of both kinds, and other cases of letters.

    >>> identity_of(__file__) == identity_of(os.path.join(os.path.dirname(__file__), ".", os.path.basename(__file__)))
    True
    """
    real = _whole(path)
    try:
        status = os.stat(real)
    except (OSError, ValueError):
        return real
    return status.st_dev, status.st_ino


def _whole(path: str | os.PathLike[str]) -> str:
    """The path from the root on, without links; the text itself if it is no path."""
    try:
        return os.path.realpath(path)
    except ValueError:  # a null character in it
        return os.fspath(path)


def _mark(name: str) -> _Mark | None:
    """The mark of a plain file; None for anything else."""
    try:
        status = os.stat(name)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None


def note_written(path: str | os.PathLike[str]) -> None:
    """Note that a file was written. It may be written again, even if it has been read meanwhile."""
    mark = _mark(_whole(path))
    if mark is not None:
        _LEDGER.get().written.add(mark)


def note_read(path: str | os.PathLike[str]) -> None:
    """Note that a file is read. Only plain files are noted, because nothing replaces other files."""
    name = _whole(path)
    mark, ledger = _mark(name), _LEDGER.get()
    if mark is not None and mark not in ledger.written:
        ledger.paths.add(name)
        ledger.by_identity[identity_of(name)] = name


def was_read(path: str | os.PathLike[str]) -> bool:
    """Whether a file has been read, under this or another name.

    >>> was_read("no-such-file.yaml")
    False
    """
    ledger, name = _LEDGER.get(), _whole(path)
    if name in ledger.paths:
        return os.path.exists(name)
    other = ledger.by_identity.get(identity_of(name))
    # The number of a file that was removed may have been given to another file since.
    return other is not None and identity_of(other) == identity_of(name)


def refuse_if_read(path: str | os.PathLike[str]) -> None:
    """`InputError` if a file has been read: it is an input, and would be lost."""
    if was_read(path):
        raise InputError(Mistake(os.fspath(path), "is also the input; expected another file"))
