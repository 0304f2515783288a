"""The page on the mechanisms of threads for matrix products names every item, and files and tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]
PAGE = HOME / "docs" / "gemm_items.md"
TEXT = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""

pytestmark = pytest.mark.skipif(not TEXT, reason="the page is in the checkout only")


def rows() -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in TEXT.splitlines() if line.startswith("| 001")]


def test_every_item_is_there() -> None:
    assert {row[0] for row in rows()} == {f"001-{number:02}" for number in range(1, 15)}


def test_each_item_has_a_test_or_is_not_built() -> None:
    for name, _, where, tests in rows():
        assert "::" in tests or "**not" in where, name


def test_files_and_tests_that_are_named_are_there() -> None:
    for place in re.findall(r"`(lstmsim/[^`]*)`", TEXT):
        assert (HOME / place).exists(), place
    named = set(re.findall(r"`(tests/[^`]*)::(\w+)`", TEXT))
    assert len(named) > 15
    for file, test in named:
        assert f"def {test}(" in (HOME / file).read_text(encoding="utf-8"), (file, test)
