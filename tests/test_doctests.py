"""Every example in a docstring of the package runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import lstmsim

MODULES = ["lstmsim", *sorted(each.name for each in pkgutil.walk_packages(lstmsim.__path__, "lstmsim."))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0, capsys.readouterr().out
