"""The command line called within the test process, its two outputs kept apart."""

from __future__ import annotations

import inspect

from click.testing import CliRunner, Result

from lstmsim.cli.group import lstmsim

# Before click 8.2 a runner had to be told; since then it cannot be.
_APART = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}


def call(*arguments: str) -> Result:
    return CliRunner(**_APART).invoke(lstmsim, list(arguments))
