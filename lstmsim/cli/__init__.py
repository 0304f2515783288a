"""The command line, one file per command: parse, call one function, print. Heavy imports wait for a command."""

from __future__ import annotations

import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line and exit: 0 done, 2 the input is at fault, 1 anything else, 130 interrupted."""
    from lstmsim.cli.group import lstmsim

    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a letter must not turn a result into a failure.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    lstmsim(prog_name="lstmsim")
    raise AssertionError("click ends the process")
