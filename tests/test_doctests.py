"""Every example in a docstring of the package runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import lstmsim

MODULES = ["lstmsim", *sorted(each.name for each in pkgutil.walk_packages(lstmsim.__path__, "lstmsim."))]
# a library for ctypes, by its name also a module
LIBRARY = "lstmsim.engines.fast._core"


@pytest.mark.parametrize("name", [each for each in MODULES if each != LIBRARY])
def test_examples_of(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0, capsys.readouterr().out
