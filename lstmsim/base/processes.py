"""Programs of others that are looked for and run: never a dependence, and never left running.

A program ends with the one that started it, also when that gets SIGTERM or SIGHUP, and so do scratch folders.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO, Any, NoReturn

from lstmsim.base.errors import LstmsimError, Mistake, refuse
from lstmsim.base.records import record

#: What a supervisor, a batch system or a closed terminal sends, and what would end Python without any cleaning up.
_ENDING = (signal.SIGTERM, signal.SIGHUP)


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


def _end(number: int, _: FrameType | None) -> NoReturn:
    """Leave through all `finally` blocks, with the exit code that a shell gives for the signal."""
    raise SystemExit(128 + number)


@contextmanager
def _cleaning_up() -> Iterator[None]:
    """Let signals that end the process clean up first, unless somebody else handles them or other threads run this."""
    main = threading.current_thread() is threading.main_thread()
    own = [number for number in _ENDING if main and signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in own:
            signal.signal(number, _end)
        yield
    finally:
        for number in own:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def scratch_folder(purpose: str) -> Iterator[str]:
    """Give a new folder for files of programs, named after a purpose; it is gone after the block, whatever ends it."""
    with _cleaning_up(), tempfile.TemporaryDirectory(prefix=f"lstmsim-{purpose}-") as folder:
        yield folder


def run_program(arguments: Sequence[str], folder: str | None = None, seconds: float = 3600) -> Ran:
    """Run a program to its end in a folder (None: the present one); whatever it has started ends with it.

    `LstmsimError` if it fails, or takes more than `seconds`.
    """
    with _cleaning_up():
        output, errors, code = _ended(arguments, folder, seconds)
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
    with _cleaning_up():
        process = subprocess.Popen(
            list(arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **_apart(folder)
        )
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


def _apart(folder: str | None) -> dict[str, Any]:
    """How programs are started: in a session of their own, so that compilers which they have started end with them."""
    return {"cwd": folder, "env": {**os.environ, "LC_ALL": "C"}, "start_new_session": True}


def _kill(process: subprocess.Popen[Any]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _ended(arguments: Sequence[str], folder: str | None, seconds: float) -> tuple[str, str, int]:
    """Run a program to its end; give what it wrote, and its exit code."""
    process = subprocess.Popen(
        list(arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        **_apart(folder),
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
