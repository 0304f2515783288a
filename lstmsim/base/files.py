"""Files that are read with a sentence on failure, written whole or not at all, and never written over what was read.

Readers note each file, and writers ask before they write; this is the second guard after the command's own check of its
outputs. Each command has its own ledger of files; calls from Python share that of the process. A file that lstmsim
itself wrote, and that nobody changed since, may be written again. A file is written without a name (Linux `O_TMPFILE`)
and gets its name when it is complete, so a killed process leaves neither half a file nor litter; where the file system
cannot do that, a hidden file in the same folder is used.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import IO, Any, Literal

from lstmsim.base.errors import InputError, LstmsimError, Mistake

#: What all names of one file have in common: its device and its number on it, or its whole path if it does not exist.
Identity = tuple[int, int] | str


#: The state in which a file was left: device, number, time of the last change in ns, size in bytes.
_Mark = tuple[int, int, int, int]


class _Ledger:
    """The files that were read, whole paths and identities, and marks of those that were written."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.by_identity: dict[Identity, str] = {}
        self.written: set[_Mark] = set()


_LEDGER: ContextVar[_Ledger] = ContextVar("_LEDGER", default=_Ledger())  # noqa: B039 (that of the process is meant)


@contextmanager
def own_ledger() -> Iterator[None]:
    """Give the block a ledger of its own. The ledger is empty: files that were read before may be written over."""
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
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return _whole(path)
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


#: `w`: text (UTF-8, `\n`), `wb`: bytes, `wz`: text through gzip (without a time stamp: equal text, equal bytes).
Mode = Literal["w", "wb", "wz"]

#: Errors of the machine, not of the user's input.
_MACHINE = {
    errno.ENOSPC: "no space left on the disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than the system allows",
    errno.EIO: "the disk reports an input/output error",
}
_USER = {
    errno.ENOENT: "no such file or folder",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EISDIR: "is a folder, expected a file",
    errno.EACCES: "permission denied",
    errno.EPERM: "operation not permitted",
    errno.EROFS: "the file system is read-only",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "the symbolic links lead in a circle",
}


def explained(error: OSError, path: str) -> LstmsimError:
    """The error as one sentence with its path; an `InputError` if another path would help."""
    if error.errno in _MACHINE:
        return LstmsimError(f"{path}: {_MACHINE[error.errno]}; nothing was written to it")
    return InputError(Mistake(path, _USER.get(error.errno or 0, error.strerror or str(error))))


@contextmanager
def readable_file(path: str | os.PathLike[str], *, kept: bool = True) -> Iterator[io.BufferedReader]:
    """Open an existing file for reading bytes; kept: no output may replace it. `InputError` if it cannot be opened."""
    try:
        file = open(path, "rb")  # noqa: SIM115 (opening is guarded, the caller's block is not)
    except (OSError, ValueError) as error:
        raise explained(_as_os_error(error), os.fspath(path)) from None
    if kept:
        note_read(path)
    with file:
        yield file


@contextmanager
def whole_file(path: str | os.PathLike[str], mode: Mode = "w") -> Iterator[IO[Any]]:
    """Open a file to write. It appears under `path` only if the `with` block ends well.

    A symbolic link stays, and its target is replaced. The file keeps the mode of the old file. `-` is standard output;
    it, devices and pipes are written directly.
    `InputError` for a path that cannot be written, and for a file that was read as an input. `LstmsimError` for a full
    disk.
    """
    name = os.fspath(path)
    if name == "-":
        with _wrapped(sys.stdout.buffer, mode) as sink:
            yield sink
        sys.stdout.buffer.flush()
        return
    try:
        if _is_direct(name):
            # Append, because /dev/stdout may be a file that other programs have written to.
            with open(name, "ab") as device, _wrapped(device, mode) as sink:
                yield sink
        else:
            refuse_if_read(name)
            with _replacing(os.path.realpath(name)) as raw, _wrapped(raw, mode) as sink:
                yield sink
            note_written(name)
    except BrokenPipeError:
        raise
    except _PathError as error:
        raise explained(error.cause, name) from None
    except OSError as error:
        # The block may fail with errors of its own; errors of the disk are explained here wherever they arise.
        if error.errno in _MACHINE:
            raise explained(error, name) from None
        raise


class _PathError(Exception):
    """An error about the target itself, and none of the block of the caller."""

    def __init__(self, cause: OSError) -> None:
        self.cause = cause
        super().__init__(str(cause))


def _as_os_error(error: OSError | ValueError) -> OSError:
    """The error as an OSError: Python refuses a path with a null character by a ValueError."""
    return error if isinstance(error, OSError) else OSError(errno.EINVAL, f"not a path ({error})")


def _is_direct(name: str) -> bool:
    """Whether `name` must not be replaced by a new file: it is a device, a pipe, or the name of an open file."""
    try:
        status = os.stat(name)
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise _PathError(_as_os_error(error)) from None
    if stat.S_ISDIR(status.st_mode):
        raise _PathError(IsADirectoryError(errno.EISDIR, "is a folder"))
    if not os.access(name, os.W_OK):
        raise _PathError(PermissionError(errno.EACCES, "write-protected"))
    return not stat.S_ISREG(status.st_mode) or os.path.abspath(name).startswith(("/dev/", "/proc/"))


@contextmanager
def _wrapped(raw: IO[bytes], mode: Mode) -> Iterator[IO[Any]]:
    """Open `raw` itself, or a text file on top of it. At the end all is written, and `raw` is still open."""
    if mode == "wb":
        yield raw
    elif mode == "w":
        with _text(raw) as text:
            yield text
    else:
        import gzip

        with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed, _text(packed) as text:
            yield text


@contextmanager
def _text(sink: Any) -> Iterator[io.TextIOWrapper]:
    """Open UTF-8 text on top of `sink`, which stays open."""
    text = io.TextIOWrapper(sink, encoding="utf-8", newline="\n")
    try:
        yield text
        text.flush()
    finally:
        # A text file closes the file below it when it is collected, unless the two are detached.
        with suppress(Exception):
            text.detach()


@contextmanager
def _replacing(target: str) -> Iterator[IO[bytes]]:
    """Open a new file that replaces `target`, complete and on the disk, if the block ends well."""
    folder = os.path.dirname(target)
    try:
        descriptor, hidden = _new_file(folder)
    except (OSError, ValueError) as error:
        raise _PathError(_as_os_error(error)) from None
    try:
        # This function closes the descriptor: a full disk may fail the flush inside close(), and nothing may leak then.
        with open(descriptor, "wb", closefd=False) as raw:
            yield raw
        try:
            _keep_mode(descriptor, target)
            os.fsync(descriptor)
            _publish(descriptor, hidden, folder, target)
            hidden = None
        except OSError as error:
            raise _PathError(error) from None
    finally:
        os.close(descriptor)
        if hidden:
            with suppress(OSError):
                os.unlink(hidden)


def _new_file(folder: str) -> tuple[int, str | None]:
    """A descriptor of an empty file in `folder`, and its name if it had to have one."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666), None
        except OSError as error:
            # Kernels and file systems without unnamed files answer with one of these.
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
    hidden = _hidden_name(folder)
    return os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666), hidden


def _hidden_name(folder: str) -> str:
    return os.path.join(folder, f".lstmsim-{os.urandom(6).hex()}.part")


def _keep_mode(descriptor: int, target: str) -> None:
    """Give the new file the mode of the old file, which writing into the old file would have kept."""
    with suppress(FileNotFoundError):
        os.fchmod(descriptor, stat.S_IMODE(os.stat(target).st_mode))


def _publish(descriptor: int, hidden: str | None, folder: str, target: str) -> None:
    """Give the finished file its name in one step."""
    if hidden is not None:
        os.replace(hidden, target)
        return
    source = f"/proc/self/fd/{descriptor}"
    try:
        # Without src_dir_fd Python calls link(), which does not follow the link in /proc.
        os.link(source, target, src_dir_fd=descriptor, follow_symlinks=True)
    except FileExistsError:
        hidden = _hidden_name(folder)
        try:
            os.link(source, hidden, src_dir_fd=descriptor, follow_symlinks=True)
            os.replace(hidden, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(hidden)
            raise
