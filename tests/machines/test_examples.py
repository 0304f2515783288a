"""The examples of functions that only their own machine calls: of each section of an `examples.md` in its module."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

FILES = sorted(Path(__file__).parent.glob("*/examples.md"))
SECTIONS: dict[str, str] = {}
for file in FILES:
    for name, text in re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", file.read_text(), re.M | re.S):
        SECTIONS[name] = SECTIONS.get(name, "") + text


@pytest.mark.parametrize("module", SECTIONS)
def test_examples(module: str) -> None:
    examples = doctest.DocTestParser().get_doctest(
        SECTIONS[module], vars(import_module(module)).copy(), module, None, 0
    )
    assert examples.examples
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples).failed == 0


def test_there_are_examples() -> None:
    assert [file.parent.name for file in FILES] == ["multicore", "parallel"]
