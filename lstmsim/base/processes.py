"""Programs of others that are looked for and run: never a dependence, and never left running.

A program ends with the one that started it, also when that gets SIGTERM or SIGHUP, and so do scratch folders. Its own
temporary files (TMPDIR) are in such a folder. On Linux it also ends when lstmsim is killed (SIGKILL).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import IO, Any

from lstmsim.base.endings import cleaning_up
from lstmsim.base.errors import LstmsimError, Mistake, refuse
from lstmsim.base.records import record

#: `prctl` of Linux: the signal that a process gets when the one that started it ends.
_PARENT_DEATH = 1


@record
class Ran:
    """What a program has written on standard output, and on standard error."""

    output: str
    errors: str


def missing(place: str, programs: Sequence[tuple[str, str]]) -> None:
    """`InputError`, on the option that needs them, with every program (name, package that has it) that is not there."""
    mistakes = [
        Mistake(place, f"there is no program {name}; install {package} (apt install {package})")
        for name, package in programs
        if shutil.which(name) is None
    ]
    refuse(mistakes)


@contextmanager
def scratch_folder(purpose: str) -> Iterator[str]:
    """Give a new folder for files of programs, named after a purpose; it is gone after the block, whatever ends it."""
    with cleaning_up(), tempfile.TemporaryDirectory(prefix=f"lstmsim-{purpose}-") as folder:
        yield folder


def run_program(arguments: Sequence[str], folder: str | None = None, seconds: float = 3600) -> Ran:
    """Run a program to its end in a folder (None: the present one); whatever it has started ends with it.

    `LstmsimError` if it fails, or takes more than `seconds`.
    """
    with scratch_folder("run") as temporary:
        output, errors, code = _ended(arguments, folder, seconds, temporary)
    if code:
        said = [line for line in (errors or output).splitlines() if line.strip()]
        text = f"{arguments[0]} failed with code {code}"
        raise LstmsimError("\n  ".join([text, *said[:20]]))
    return Ran(output, errors)


@contextmanager
def ending_child(arguments: Sequence[str], folder: str | None = None) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Start a program; give what it reads and what it says. It is over after the block, whatever ends that.

    A program that reads its standard input also ends with this process, by the end of its input.
    """
    with scratch_folder("run") as temporary:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(list(arguments), **pipes, **_apart(folder, temporary))
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdin, process.stdout
        finally:
            _kill(process)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()


def _apart(folder: str | None, temporary: str) -> dict[str, Any]:
    """How programs are started: in a session of their own, so that compilers which they have started end with them."""
    own = {**os.environ, "LC_ALL": "C", "TMPDIR": temporary}
    return {"cwd": folder, "env": own, "start_new_session": True, "preexec_fn": _ends_with_parent()}


@cache
def _ends_with_parent() -> Callable[[], object] | None:
    """What a new process calls first, so that the system kills it when lstmsim is gone; None where it cannot."""
    if sys.platform != "linux":
        return None
    import ctypes

    return partial(ctypes.CDLL(None).prctl, _PARENT_DEATH, signal.SIGKILL.value)


def _kill(process: subprocess.Popen[Any]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _ended(arguments: Sequence[str], folder: str | None, seconds: float, temporary: str) -> tuple[str, str, int]:
    """Run a program to its end; give what it wrote, and its exit code."""
    process = subprocess.Popen(
        list(arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        **_apart(folder, temporary),
    )
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise LstmsimError(f"{arguments[0]} was ended after {seconds:g} seconds") from None
    finally:
        if process.poll() is None:
            _kill(process)
            process.communicate()
    return output, errors, process.returncode
