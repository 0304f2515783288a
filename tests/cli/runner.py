"""The command line called within the test process, its two outputs kept apart."""

from __future__ import annotations

import inspect
import json
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from lstmsim.cli.group import lstmsim

# Before click 8.2 a runner had to be told; since then it cannot be.
_APART = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}


def call(*arguments: str) -> Result:
    return CliRunner(**_APART).invoke(lstmsim, list(arguments))


def both(*arguments: str) -> tuple[str, Any]:
    """What a command prints and its JSON, of one run that succeeds."""
    text, data = _both(*arguments)
    return text, json.loads(data)


def both_kept(*arguments: str) -> tuple[str, Any]:
    """As `both`, and run once only: for commands that read no file of the test and write none."""
    text, data = _both_kept(*arguments)
    return text, json.loads(data)


def _both(*arguments: str) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "result.json")
        called = call(*arguments, "--json", str(path))
        assert called.exit_code == 0, called.output
        return called.stdout, path.read_text(encoding="utf-8")


_both_kept = lru_cache(maxsize=64)(_both)
