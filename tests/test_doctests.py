"""Every example in a docstring of the package runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import inspect
import linecache
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import lstmsim
from tests.core_needed import names_with_core

MODULES = ["lstmsim", *sorted(each.name for each in pkgutil.walk_packages(lstmsim.__path__, "lstmsim."))]
# a library for ctypes, by its name also a module
LIBRARY = "._core"
#: Those whose examples call the native core itself, or take long without it.
NEED_CORE = {
    "lstmsim.studies.serve.offered",
    "lstmsim.studies.serve.load_latency",
    "lstmsim.studies.serve.saturate",
    "lstmsim.studies.compare.request",
    "lstmsim.studies.search.request",
    "lstmsim.studies.sweep.request",
    "lstmsim.studies.validate.request",
    "lstmsim.engines.fast.run",
    "lstmsim.studies.validate.run",
}


class Finder(doctest.DocTestFinder):
    """Finds the examples of functions that a decorator of another module has wrapped, too."""

    def _from_module(self, module: ModuleType, found: object) -> bool:
        return bool(super()._from_module(module, inspect.unwrap(found) if callable(found) else found))  # type: ignore[misc]


@pytest.fixture(autouse=True)
def unwrapped_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctest, "DocTestFinder", Finder)


@pytest.mark.parametrize("name", names_with_core((each for each in MODULES if not each.endswith(LIBRARY)), NEED_CORE))
def test_examples_of(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(name)
    # to look for examples in all that a module names takes longer than to read its text
    if ">>>" not in Path(str(module.__file__)).read_text(encoding="utf-8"):
        return
    # doctest makes a debugger for every docstring, with or without examples, which looks after each file known here
    linecache.clearcache()
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS, exclude_empty=True)
    assert result.failed == 0, capsys.readouterr().out
