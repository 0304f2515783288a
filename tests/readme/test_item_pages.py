"""The pages on mechanisms name every item, and files and tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]
#: A page -> how many items each of its sources has.
PAGES = {
    "sparse_items.md": {"000": 36, "002": 18},
    "gemm_items.md": {"001": 14},
    "fusion_items.md": {"003": 23},
    "npu_items.md": {"004": 18},
}
TEXTS = {name: (HOME / "docs" / name).read_text(encoding="utf-8") for name in PAGES if (HOME / "docs" / name).is_file()}

pytestmark = [
    pytest.mark.skipif(not TEXTS, reason="the pages are in the checkout only"),
    pytest.mark.parametrize("page", PAGES),
]


def rows(page: str) -> list[list[str]]:
    lines = [line for line in TEXTS[page].splitlines() if re.match(r"\| \d{3}-", line)]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def test_every_item_is_there(page: str) -> None:
    wanted = {f"{source}-{number:02}" for source, count in PAGES[page].items() for number in range(1, count + 1)}
    assert {row[0].split()[0] for row in rows(page)} == wanted


def test_each_item_has_a_test_or_is_not_built(page: str) -> None:
    for name, _, where, tests in rows(page):
        assert "::" in tests or "**not" in where, name


def test_files_and_tests_that_are_named_are_there(page: str) -> None:
    for place in re.findall(r"`((?:lstmsim|experiments)/[^`]*)`", TEXTS[page]):
        assert (HOME / place).exists(), place
    named = set(re.findall(r"`(tests/[^`]*)::(\w+)`", TEXTS[page]))
    assert len(named) > 15
    for file, test in named:
        assert f"def {test}(" in (HOME / file).read_text(encoding="utf-8"), (file, test)
