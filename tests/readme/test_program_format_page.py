"""The page about the flat program format has the tables and limits of the code, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lstmsim.engines.fast import binding as library
from lstmsim.files.program_file import FILE_FORMAT, save_program
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.flatten import FLAGS
from tests.readme.test_readme import tool

PAGE = Path(__file__).resolve().parents[2] / "docs" / "program_format.md"
TEXT = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
CORE = Path(library.__file__).parent / "core"

pytestmark = pytest.mark.skipif(not TEXT, reason="the page is in the checkout only")


def test_tables_are_up_to_date() -> None:
    assert tool().with_tables(TEXT) == TEXT, "run `make readme`"


@pytest.mark.skipif(not library.available(), reason="the native core was not built")
def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    save_program("many.npz", names["many"])  # type: ignore[arg-type]


def test_limits_are_those_of_the_core() -> None:
    flat = (CORE / "flat.hpp").read_text()
    check = "".join(each.read_text() for each in (*sorted(CORE.glob("check*")), CORE / "cycles.hpp"))
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
        (table.name, column)
        for table in FLAT_TABLES.values()
        for column, meaning in table.columns.items()
        if meaning.startswith("1 if")
    }
    assert said == set(FLAGS)
