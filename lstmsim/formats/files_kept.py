"""What was read is not written over: who reads a file notes it here, who writes one asks first.

A command looks at its outputs before it begins (`lstmsim.cli.outputs`), by what its scenario names. This is the second
guard, which needs no list of names: it knows what was in fact opened. A command has a ledger of its own; what Python
code calls shares that of the process, so that no picture, trace or report takes the place of a scenario, model or
arrival file that was loaded before. What lstmsim itself wrote, and nobody changed since, is no user's file: a notebook
that writes outputs, reads them as frames and is run again writes them again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lstmsim.errors import InputError, Mistake

__all__ = ["Identity", "identity_of", "note_read", "note_written", "own_ledger", "refuse_if_read", "was_read"]

#: What two names of one file have in common: device and number on it; the whole path where there is no file yet.
Identity = tuple[int, int] | str


#: Tells a file as it was left: device, number, time of the last change in ns, size in bytes.
_Mark = tuple[int, int, int, int]


class _Ledger:
    """Files that were read: their whole paths, and the path of each by its identity when it was read; and the marks
    of those that were written."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.by_identity: dict[Identity, str] = {}
        self.written: set[_Mark] = set()


_LEDGER: ContextVar[_Ledger] = ContextVar("_LEDGER", default=_Ledger())  # noqa: B039 (that of the process is meant)


@contextmanager
def own_ledger() -> Iterator[None]:
    """The block has a ledger of its own, empty at its beginning: what was read before it may be written over.

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
    """What all names of a file share: links of both kinds, other spellings of a case that the file system ignores.

    >>> identity_of(__file__) == identity_of(os.path.join(os.path.dirname(__file__), ".", os.path.basename(__file__)))
    True
    """
    real = _whole(path)
    try:
        found = os.stat(real)
    except (OSError, ValueError):
        return real
    return found.st_dev, found.st_ino


def _whole(path: str | os.PathLike[str]) -> str:
    """The path from the root on, without links; as it stands if it is none."""
    try:
        return os.path.realpath(path)
    except ValueError:  # a null character in it
        return os.fspath(path)


def _mark(name: str) -> _Mark | None:
    """The mark of a plain file; None for anything else."""
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else None


def note_written(path: str | os.PathLike[str]) -> None:
    """Note that a file was written here: it may be written again, also when it has been read meanwhile."""
    mark = _mark(_whole(path))
    if mark is not None:
        _LEDGER.get().written.add(mark)


def note_read(path: str | os.PathLike[str]) -> None:
    """Note that a file is read; what is no plain file is not noted, for nothing takes its place."""
    name = _whole(path)
    mark, ledger = _mark(name), _LEDGER.get()
    if mark is not None and mark not in ledger.written:
        ledger.paths.add(name)
        ledger.by_identity[identity_of(name)] = name


def was_read(path: str | os.PathLike[str]) -> bool:
    """Whether that file, under this or another name, has been read.

    >>> was_read("no-such-file.yaml")
    False
    """
    ledger, name = _LEDGER.get(), _whole(path)
    if name in ledger.paths:
        return os.path.exists(name)
    other = ledger.by_identity.get(identity_of(name))
    # The number of a file that is gone may have been given to another one since.
    return other is not None and identity_of(other) == identity_of(name)


def refuse_if_read(path: str | os.PathLike[str]) -> None:
    """`InputError` if that file has been read: it is an input, and would be lost."""
    if was_read(path):
        raise InputError(Mistake(os.fspath(path), "is also the input; expected another file"))
