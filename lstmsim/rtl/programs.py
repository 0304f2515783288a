"""Programs of others that are looked for and run: never a dependence, and never left running."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from lstmsim.errors import InputError, LstmsimError, Mistake
from lstmsim.records import record

__all__ = ["Ran", "missing", "run_program"]


@record
class Ran:
    """What a program has written.

    output: on standard output.
    errors: on standard error.
    """

    output: str
    errors: str


def missing(place: str, programs: Sequence[tuple[str, str]]) -> None:
    """`InputError` with every program that is not there.

    place: the option that needs them.
    programs: the name of each program, and of the package that has it.

    >>> missing("--synth", [("no-yosys", "yosys")])
    Traceback (most recent call last):
    lstmsim.errors.InputError: --synth: there is no program no-yosys; install yosys (apt install yosys)
    """
    mistakes = [
        Mistake(place, f"there is no program {name}; install {package} (apt install {package})")
        for name, package in programs
        if shutil.which(name) is None
    ]
    if mistakes:
        raise InputError(mistakes)


def run_program(arguments: Sequence[str], folder: str | None = None, seconds: float = 3600) -> Ran:
    """Run a program to its end; whatever it has started ends with it.

    arguments: the program's name, and what it is given.
    folder: in which it runs; None: the present one.
    seconds: after which it is ended.

    `LstmsimError` if it fails, or takes too long.

    >>> run_program(["echo", "done"]).output
    'done\\n'
    """
    # a session of its own, so that compilers which the program has started end with it
    process = subprocess.Popen(
        list(arguments),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise LstmsimError(f"{arguments[0]} was ended after {seconds:g} seconds") from None
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode:
        said = [line for line in (errors or output).splitlines() if line.strip()]
        text = f"{arguments[0]} failed with code {process.returncode}"
        raise LstmsimError("\n  ".join([text, *said[:20]]))
    return Ran(output, errors)
