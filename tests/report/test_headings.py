"""Headings of results have one style: words in capitals first, then names and sentences as they are."""

from __future__ import annotations

import ast
from pathlib import Path

import lstmsim

PACKAGE = Path(lstmsim.__file__).parent


def heading(node: ast.expr) -> str:
    """The text with which a heading begins; empty if it begins with a value."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_headings_of_sections_begin_in_capitals() -> None:
    found = [
        (path.name, heading(keyword.value))
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Section.of"
        for keyword in node.keywords
        if keyword.arg == "title" and heading(keyword.value)
    ]
    assert len(found) > 15
    assert [each for each in found if not each[1].split(":")[0].split()[0].isupper()] == []
