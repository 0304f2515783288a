"""The tables of docs/validation.md and of the README are what a validation finds now.

V100 takes a minute of processor time: its lines are compared where `LSTMSIM_EXAMPLES` asks for the long version.
"""

from __future__ import annotations

import os

import pytest

from lstmsim.studies.validate.run import validate
from tests.readme.test_readme import ROOT
from tests.readme.test_readme import TEXT as README
from tests.studies.validate.whole import whole
from tools.readme import page_section, short_table, with_short, with_validation

TEXT = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8") if README else ""
#: How the lines of V100 begin, which a usual run takes as they are.
V100 = ("| V100 ", "* V100 ")

pytestmark = [pytest.mark.needs_core, pytest.mark.skipif(not README, reason="the README is in the checkout only")]


def between(page: str) -> list[str]:
    """The lines of a page between the markers of the validation, an item of a list in one."""
    lines = page.replace("\n  ", " ").splitlines()
    return lines[lines.index("<!-- validation:begin -->") + 2 : lines.index("<!-- validation:end -->") - 1]


def test_the_tables_are_up_to_date() -> None:
    every = "LSTMSIM_EXAMPLES" in os.environ
    found = validate() if every else whole()
    for page, section in ((TEXT, page_section(found)), (README, short_table(found))):
        written = [each for each in between(page) if every or not each.startswith(V100)]
        assert written == section.replace("\n  ", " ").splitlines(), "run `make readme`"
    assert "| 19 of 19 exact in cycles |" in TEXT


def test_the_lines_of_v100_are_the_same_on_both_pages() -> None:
    short, long = (next(each for each in between(page) if each.startswith(V100)) for page in (README, TEXT))
    assert "| 10 of 10 within a factor of 3 |" in short
    assert long.startswith(short.removesuffix(" |"))
    error = float(short.split(" | ")[2].removesuffix(" %"))
    limits = (ROOT / "docs" / "explanation" / "limits.md").read_text(encoding="utf-8")
    assert f"with a mean error of {error:.0f} %" in limits


def test_an_edit_between_the_markers_is_noticed() -> None:
    for page, write in ((TEXT, with_validation), (README, with_short)):
        written = write(page, whole())
        assert write(page.replace("19 of 19 exact", "19 of 19 perfect"), whole()) == written
        assert "perfect" not in written
    with pytest.raises(SystemExit, match="lacks <!-- validation:begin -->"):
        with_validation("no markers", whole())
