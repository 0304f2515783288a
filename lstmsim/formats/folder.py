"""A folder of generated files: all of them or none, and nothing that others wrote is lost.

A list of the files (`files.sha256`, as `sha256sum` writes it) lies beside them. By it a later call knows which files
are its own, which of them somebody has changed since, and which are no longer needed.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.files import whole_file
from lstmsim.formats.files_kept import note_written, refuse_if_read
from lstmsim.records import record

__all__ = ["LIST", "Written", "check_folder", "write_folder"]

#: The list of the files and their SHA-256.
LIST = "files.sha256"


@record
class Written:
    """What was done to a folder.

    written: files that were written, in order, the list included.
    kept: files that somebody has changed since they were written: they stayed as they are.
    removed: files of an earlier call that no longer belong to it.
    """

    written: tuple[str, ...]
    kept: tuple[str, ...]
    removed: tuple[str, ...]


def check_folder(folder: str, names: Mapping[str, object], *, replace: bool = False) -> None:
    """Refuse a folder before anything is written into it.

    folder: that shall have the files; it need not exist, the folder around it must.
    names: paths of the files in it, with `/`; what they are mapped to does not matter.
    replace: whether files that others wrote may be replaced.

    `InputError` if it cannot be written, a file is an input, or stands there and was not written by lstmsim.
    """
    real = os.path.realpath(folder)
    around = real if os.path.isdir(real) else os.path.dirname(real)
    if os.path.lexists(real) and not os.path.isdir(real):
        raise InputError(Mistake(folder, "is a file, expected a folder"))
    if not os.path.isdir(around):
        raise InputError(Mistake(folder, f"there is no folder {around}"))
    if not os.access(around, os.W_OK):
        raise InputError(Mistake(folder, f"no permission to write {around}"))
    known, mistakes = _list(real), []
    for name in names:
        path = os.path.join(real, *name.split("/"))
        refuse_if_read(path)
        if os.path.isdir(path):
            mistakes.append(Mistake(os.path.join(folder, name), "is a folder, expected a file"))
        elif os.path.lexists(path) and name not in known and not replace:
            text = "stands there and was not written by lstmsim: expected another folder, or --replace"
            mistakes.append(Mistake(os.path.join(folder, name), text))
    if mistakes:
        raise InputError(mistakes)


def write_folder(folder: str, files: Mapping[str, str], *, replace: bool = False) -> Written:
    """Write files into a folder: all of them, or none.

    folder: is made if it is not there.
    files: the content of each file by its path in the folder, with `/`.
    replace: whether files are replaced that somebody has changed since they were written, or that others wrote.

    A new folder appears whole. In a folder that is there already, each file is replaced whole after all have been
    written beside it; files of an earlier call that are not among the new ones go, unless they were changed.
    `InputError` as `check_folder`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as around:
    ...     folder = os.path.join(around, "out")
    ...     first = write_folder(folder, {"a.txt": "1", "b/c.txt": "2"})
    ...     second = write_folder(folder, {"a.txt": "3"})
    ...     first.written, second.removed, sorted(os.listdir(folder))
    (('a.txt', 'b/c.txt', 'files.sha256'), ('b/c.txt',), ['a.txt', 'files.sha256'])
    """
    check_folder(folder, {**files, LIST: ""}, replace=replace)
    real = os.path.realpath(folder)
    known = _list(real)
    new = {name: _digest(text.encode()) for name, text in files.items()}
    changed = {
        name for name, digest in known.items() if _digest_of(_path(real, name)) not in (None, digest, new.get(name))
    }
    kept = tuple(name for name in files if name in changed and not replace)
    ready = {name: text for name, text in files.items() if name not in kept}
    ready[LIST] = "".join(f"{digest}  {name}\n" for name, digest in sorted(new.items()))
    with _staged(real, ready) as staged:
        if not os.path.isdir(real):
            os.rename(staged, real)
        else:
            for name in ready:
                os.makedirs(os.path.dirname(_path(real, name)), exist_ok=True)
                os.replace(_path(staged, name), _path(real, name))
    for name in ready:
        note_written(_path(real, name))
    removed = tuple(name for name in known if name not in files and name not in changed and name != LIST)
    return Written(tuple(ready), kept, tuple(name for name in removed if _removed(real, name)))


@contextmanager
def _staged(real: str, files: Mapping[str, str]) -> Iterator[str]:
    """A hidden folder with the files, beside the folder or in it; it is gone after the block."""
    around = real if os.path.isdir(real) else os.path.dirname(real)
    staged = os.path.join(around, f".lstmsim-{secrets.token_hex(6)}.part")
    os.mkdir(staged)
    try:
        for name, text in files.items():
            os.makedirs(os.path.dirname(_path(staged, name)), exist_ok=True)
            with whole_file(_path(staged, name)) as file:
                file.write(text)
            if name.endswith(".sh"):
                mode = os.stat(_path(staged, name)).st_mode
                # who may read it may run it
                os.chmod(_path(staged, name), mode | (mode & 0o444) >> 2)
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _path(folder: str, name: str) -> str:
    return os.path.join(folder, *name.split("/"))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest_of(path: str) -> str | None:
    """The SHA-256 of a file; None: it is not there."""
    try:
        with open(path, "rb") as file:
            return _digest(file.read())
    except OSError:
        return None


def _list(real: str) -> dict[str, str]:
    """The files that an earlier call wrote into a folder, with their SHA-256, the list itself among them."""
    try:
        with open(os.path.join(real, LIST), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = [line.split("  ", 1) for line in lines if "  " in line]
    known = {name: digest for digest, name in pairs if not os.path.isabs(name) and ".." not in name.split("/")}
    return {**known, LIST: _digest_of(os.path.join(real, LIST)) or ""}


def _removed(real: str, name: str) -> bool:
    """Remove a file, and the folders that are empty then; whether it was there."""
    path = _path(real, name)
    if not os.path.isfile(path):
        return False
    os.unlink(path)
    above = os.path.dirname(path)
    while above != real and not os.listdir(above):
        os.rmdir(above)
        above = os.path.dirname(above)
    return True
