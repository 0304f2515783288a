"""Examples of functions that the package itself calls: those of each section of a file here run in its module."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

FILES = sorted(Path(__file__).parent.glob("*.md"))
SECTIONS: dict[str, str] = {}
for file in FILES:
    for name, text in re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", file.read_text(encoding="utf-8"), re.M | re.S):
        SECTIONS[name] = SECTIONS.get(name, "") + text


@pytest.mark.parametrize("module", SECTIONS)
def test_examples(module: str) -> None:
    # what one function's examples call a thing is not there for the next
    parts = [each for each in re.split(r"^\S+:\n\n(?=>>> )", SECTIONS[module], flags=re.M) if ">>>" in each]
    assert parts
    for number, part in enumerate(parts):
        names = vars(import_module(module)).copy()
        examples = doctest.DocTestParser().get_doctest(part, names, f"{module}, {number + 1}", None, 0)
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples).failed == 0


def test_there_are_examples() -> None:
    assert len(FILES) > 10
