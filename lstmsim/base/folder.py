"""A folder of generated files: all of them or none, and nothing that others wrote is lost.

A list (`files.sha256`, as `sha256sum` writes it) says which files are lstmsim's, and which of them somebody changed.
Nothing outside the folder is touched: a symbolic link, a pipe or a file in the place of a folder is refused before
anything is written, and a line of the list that leads through one counts for nothing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from lstmsim.base.checks import is_unicode
from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.files import explained, note_written, refuse_if_read, whole_file
from lstmsim.base.records import record

#: The list of the files and their SHA-256.
LIST = "files.sha256"
#: How many files are named that are not as they were written.
_SAID = 5


@record
class Written:
    """What was done to a folder: files written (with the list), kept because somebody changed them, and removed."""

    written: tuple[str, ...]
    kept: tuple[str, ...]
    removed: tuple[str, ...]


def check_folder(folder: str, names: Mapping[str, object], *, replace: bool = False) -> None:
    """Refuse a folder before anything is written into it; replace: whether files that others wrote may be replaced.

    `InputError` if it cannot be written, a file is an input, or exists and was not written by lstmsim; if a
    parent of a file is no real folder (a file, a symbolic link), or something else stands in the place of a file.
    """
    if "\0" in folder or not is_unicode(folder):
        raise InputError(Mistake(f"folder {folder!r}", "is not a path"))
    real = os.path.realpath(folder)
    around = real if os.path.isdir(real) else os.path.dirname(real)
    if os.path.lexists(real) and not os.path.isdir(real):
        raise InputError(Mistake(f"folder {folder}", "is a file, expected a folder"))
    if not os.path.isdir(around):
        raise InputError(Mistake(f"folder {folder}", f"there is no folder {around}"))
    if not os.access(around, os.W_OK):
        raise InputError(Mistake(f"folder {folder}", f"no permission to write {around}"))
    known, mistakes = _list(real), list(_in_the_way(folder, real, LIST))
    # without a list that can be read, nothing is known of who wrote a file
    replaceable = replace or bool(mistakes)
    for name in names:
        path = _path(real, name)
        refuse_if_read(path)
        found = list(_in_the_way(folder, real, name))
        if not found and os.path.lexists(path) and name not in known and not replaceable:
            text = "exists and was not written by lstmsim: expected another folder, or --replace"
            found.append(Mistake(os.path.join(folder, name), text))
        mistakes += found
    if mistakes:
        # what stands in the place of a folder is in the way of all its files, and reported once
        raise InputError(list(dict.fromkeys(mistakes)))


def write_folder(folder: str, files: Mapping[str, str], *, replace: bool = False) -> Written:
    """Write files (content by path with `/`) into a folder: all of them, or none; `InputError` as `check_folder`.

    A new folder appears whole. In a folder that is there already, each file is replaced whole after all have been
    written beside it; files of an earlier call that are not among the new ones go, unless they were changed.
    replace: whether files are replaced that somebody has changed since they were written, or that others wrote.
    """
    check_folder(folder, {**files, LIST: ""}, replace=replace)
    real = os.path.realpath(folder)
    known = _list(real)
    new = {name: _digest(text.encode()) for name, text in files.items()}
    there = {name: content for name in known if (content := _content(real, name)) is not None}
    changed = {name for name, content in there.items() if _digest(content) not in (known[name], new.get(name))}
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


def refuse_changed(folder: str, reads: Callable[[str], bool], again: str) -> None:
    """Refuse a folder in which a file that is read is not as an earlier call wrote it: missing, changed, or a new one.

    reads: whether a file of that path (with `/`) is read.
    again: what the user can do.

    `InputError` with the files, and with what was expected.
    """
    if not os.path.isdir(folder):
        raise InputError(Mistake(f"folder {folder}", f"no such folder; {again}"))
    real = os.path.realpath(folder)
    known = _list(real)
    if LIST not in known:
        raise InputError(Mistake(os.path.join(folder, LIST), f"is missing or empty, expected a list of files; {again}"))
    read = sorted(name for name in known if reads(name))
    wrong = {name: words for name in read if (words := _changed(_content(real, name), known[name]))}
    # in all of the folder: a list that was cut short does not name a part of it
    there = (
        os.path.relpath(os.path.join(path, each), real).replace(os.sep, "/")
        for path, folders, names in os.walk(real)
        for each in (*folders, *names)
    )
    new = sorted(name for name in there if reads(name) and name not in known)
    wrong |= dict.fromkeys(new, f"is not in {LIST}, expected no such file")
    if wrong:
        mistakes = [Mistake(os.path.join(folder, *name.split("/")), wrong[name]) for name in [*wrong][:_SAID]]
        more = f"{len(wrong) - _SAID:,} more files are not as they were written; " if len(wrong) > _SAID else ""
        raise InputError([*mistakes, Mistake(f"folder {folder}", f"{more}{again}")])


def _changed(content: bytes | None, expected: str) -> str:
    """What is wrong with a file of the list; empty: it is as it was written."""
    if content is None:
        return "is missing or no regular file, expected the one that was written"
    if _digest(content) == expected:
        return ""
    digests = f"expected SHA-256 {expected[:12]}... ({LIST}), got {_digest(content)[:12]}..."
    return f"was changed or cut short since it was written: {digests} ({len(content):,} bytes)"


@contextmanager
def _staged(real: str, files: Mapping[str, str]) -> Iterator[str]:
    """A hidden folder with the files, next to the folder or in it; it is gone after the block."""
    around = real if os.path.isdir(real) else os.path.dirname(real)
    staged = os.path.join(around, f".lstmsim-{os.urandom(6).hex()}.part")
    os.mkdir(staged)
    try:
        try:
            for name, text in files.items():
                os.makedirs(os.path.dirname(_path(staged, name)), exist_ok=True)
                with whole_file(_path(staged, name)) as file:
                    file.write(text)
                if name.endswith(".sh"):
                    mode = os.stat(_path(staged, name)).st_mode
                    # who may read it may run it
                    os.chmod(_path(staged, name), mode | (mode & 0o444) >> 2)
        except OSError as error:
            raise explained(error, real) from None
        except LstmsimError as error:
            # the folder that was asked for, and not the hidden one
            raise LstmsimError(str(error).replace(staged, real)) from None
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _path(folder: str, name: str) -> str:
    return os.path.join(folder, *name.split("/"))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _in_the_way(folder: str, real: str, name: str) -> Iterator[Mistake]:
    """Tell what keeps a file from standing in a folder: the first part of its path that is not what it must be."""
    parts = name.split("/")
    for end in range(1, len(parts) + 1):
        path, is_file = os.path.join(real, *parts[:end]), end == len(parts)
        if not os.path.lexists(path):
            return
        mode = os.lstat(path).st_mode
        if not (stat.S_ISREG(mode) if is_file else stat.S_ISDIR(mode)):
            text = f"is {_kind(mode)}, expected {'a file' if is_file else 'a folder'}"
        elif not is_file and os.lstat(path).st_dev != os.lstat(real).st_dev:
            text = "is on another disk than the folder, so files cannot move there whole"
        elif not is_file and not os.access(path, os.W_OK):
            text = "no permission to write into this folder"
        else:
            continue
        yield Mistake(os.path.join(folder, *parts[:end]), text)
        return


def _kind(mode: int) -> str:
    """Say what stands at a path."""
    kinds = ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISDIR, "a folder"), (stat.S_ISREG, "a file"))
    return next((words for is_one, words in kinds if is_one(mode)), "a device, a pipe or a socket")


def _content(real: str, name: str) -> bytes | None:
    """The content of a regular file in a folder; None: there is none, or the way to it leaves the folder."""
    path = _path(real, name)
    if not os.path.lexists(path) or any(_in_the_way(real, real, name)):
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _list(real: str) -> dict[str, str]:
    """The files that an earlier call wrote into a folder, with their SHA-256, the list itself among them."""
    content = _content(real, LIST)
    try:
        lines = [] if content is None else content.decode().splitlines()
    except UnicodeDecodeError:
        lines = []
    if content is None or not lines:
        return {}
    pairs = [line.split("  ", 1) for line in lines if "  " in line]
    # a name in another spelling, such as ./a.txt, would be a second name of the same file
    known = {name: digest for digest, name in pairs if not {"", ".", ".."} & set(name.split("/"))}
    return {**known, LIST: _digest(content)}


def _removed(real: str, name: str) -> bool:
    """Remove a file, and the folders that are empty then; whether it was there."""
    path = _path(real, name)
    if _content(real, name) is None:
        return False
    os.unlink(path)
    above = os.path.dirname(path)
    while above != real and not os.listdir(above):
        os.rmdir(above)
        above = os.path.dirname(above)
    return True
