"""Every example in a docstring of the package runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import inspect
import linecache
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType

import pytest

import lstmsim
from tests.core_needed import names_with_core

# not the libraries for ctypes, by their names also modules
MODULES = [
    "lstmsim",
    *sorted(each.name for each in walk_packages(lstmsim.__path__, "lstmsim.") if each.name[-6:] != "._core"),
]
#: Those whose examples call the native core itself, or take long without it.
NEED_CORE = {
    "lstmsim.studies.serve.offered",
    "lstmsim.studies.serve.load_latency",
    "lstmsim.studies.serve.saturate",
    "lstmsim.studies.validate.request",
}


class Finder(doctest.DocTestFinder):
    """Finds the examples of functions that a decorator of another module has wrapped, too."""

    def _from_module(self, module: ModuleType, found: object) -> bool:
        return bool(super()._from_module(module, inspect.unwrap(found) if callable(found) else found))  # type: ignore[misc]


@pytest.fixture(autouse=True)
def unwrapped_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctest, "DocTestFinder", Finder)


def has_examples(name: str) -> bool:
    """To look for examples in all that a module names takes far longer than to read its text."""
    path = Path(lstmsim.__file__).parent.joinpath(*name.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ">>>" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", names_with_core(filter(has_examples, MODULES), NEED_CORE))
def test_examples_of(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(name)
    # doctest makes a debugger for every docstring, with or without examples, which looks after each file known here
    linecache.clearcache()
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS, exclude_empty=True)
    assert result.failed == 0, capsys.readouterr().out


def test_modules_without_examples_can_be_imported() -> None:
    for name in MODULES:
        importlib.import_module(name)
