"""The page about the flat program format has the tables and limits of the code, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lstmsim.engines.fast.run import OWN
from lstmsim.files.program_file import FILE_FORMAT, save_program
from lstmsim.native.sources import COMMON
from lstmsim.program.flat import FLAT_TABLES, FORMAT
from lstmsim.program.flatten import FLAGS, LINKS, Link

PAGE = Path(__file__).resolve().parents[2] / "docs" / "program_format.md"
TEXT = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
CORE = OWN.core

pytestmark = pytest.mark.skipif(not TEXT, reason="the page is in the checkout only")


def described() -> dict[str, list[tuple[str, str, str]]]:
    """Column, meaning and "rows of" of each row of each table of the page."""
    tables = TEXT[TEXT.index("## Tables") : TEXT.index("\n## ", TEXT.index("## Tables") + 1)]
    parts = re.findall(r"^### `(\w+)`: .+?\n\n(.*?)(?=\n\n|\Z)", tables, re.DOTALL | re.MULTILINE)
    return {name: re.findall(r"^\| `(\w+)` \| (.+?) \| ?(.*?) ?\|$", rows, re.MULTILINE) for name, rows in parts}


def test_the_page_describes_every_table_and_column() -> None:
    assert f"This is version {FORMAT}." in TEXT
    page = described()
    assert {name: tuple(row[0] for row in rows) for name, rows in page.items()} == {
        name: table.columns for name, table in FLAT_TABLES.items()
    }
    assert list(page) == list(FLAT_TABLES)
    links = {(each.table, each.column): each for each in (*LINKS, Link("phases", "first_extra", "extras"))}
    assert {(name, row[0]): row[2] for name, rows in page.items() for row in rows if row[2]} == {
        key: f"`{link.target}`" + (" or -1" if link.optional else "") for key, link in links.items()
    }


@pytest.mark.skipif(OWN.absence is not None, reason="the native core was not built")
def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    save_program("many.npz", names["many"])  # type: ignore[arg-type]


def test_limits_are_those_of_the_core() -> None:
    flat = (COMMON / "flat.hpp").read_text()
    check = "".join(each.read_text() for each in (*sorted(CORE.glob("check*")), COMMON / "cycles.hpp"))
    shifts = {name: int(shift) for name, shift in re.findall(r"(\w+) = i64\{1\} << (\d+)", check)}
    shifts |= {name: int(shift) for name, shift in re.findall(r"(MOST_STARTS) = i64\{1\} << (\d+)", flat)}
    assert shifts.pop("NEVER") == 60
    assert "constexpr i64 LATEST = (i64{1} << 59) - 1;" in check
    limits = {int(each) for each in re.findall(r"\| -?2\^(\d+)(?: - 1)? \|$", TEXT, re.MULTILINE)}
    # where tasks may pause, all phases together have twice the operations of all bodies
    assert "2 * MOST_OPERATIONS" in check
    assert limits == {*shifts.values(), 59, shifts["MOST_OPERATIONS"] + 1}
    for name, words in (("MOST_NAMES", "names of cycles"), ("MOST_CAUSES", "causes")):
        (most,) = re.findall(rf"{name} = (\d+);", flat)
        assert f"| {words} | 1 | {most} |" in TEXT
    (spread,) = re.findall(r"MOST_SPREAD = (\d+);", check)
    assert f"different ones, at most {spread}." in TEXT
    assert f"the version of the file: {FILE_FORMAT} |" in TEXT


def test_flags_are_the_columns_that_say_so() -> None:
    said = {
        (table, column)
        for table, rows in described().items()
        for column, meaning, _ in rows
        if meaning.startswith("1 if")
    }
    assert said == set(FLAGS)
