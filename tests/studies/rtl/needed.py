"""Tests that need a program of others: skipped where it is not installed, with the name of its package."""

from __future__ import annotations

import os
import shutil

import pytest

from lstmsim.base.errors import InputError
from lstmsim.studies.rtl.synthesis import yosys_program

__all__ = ["long_run", "needs_icarus", "needs_verilator", "needs_yosys"]


def _needs(program: str, package: str) -> pytest.MarkDecorator:
    reason = f"there is no {program}: apt install {package}"
    return pytest.mark.skipif(shutil.which(program) is None, reason=reason)


needs_icarus = _needs("iverilog", "iverilog")
needs_verilator = _needs("verilator", "verilator")


def _yosys_is_missing() -> str:
    """Why there is no Yosys, as the product says it: under either name, on the path or beside this Python."""
    try:
        yosys_program()
    except InputError as error:
        return str(error)
    return ""


needs_yosys = pytest.mark.skipif(bool(_yosys_is_missing()), reason=_yosys_is_missing() or "Yosys is there")

#: Takes minutes: compilers of C++, hundreds of scenarios. It runs where the usual run looks for new examples.
long_run = pytest.mark.skipif(
    os.environ.get("LSTMSIM_HYPOTHESIS") != "explore", reason="a long run: LSTMSIM_HYPOTHESIS=explore"
)
