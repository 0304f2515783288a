"""The table of docs/validation.md, and the README's lines of it, are what a validation finds now.

The row of V100 takes 15 s of processor time: it is compared where `LSTMSIM_EXAMPLES` asks for the long version.
"""

from __future__ import annotations

import os

import pytest

from tests.readme.test_readme import ROOT, tool
from tests.readme.test_readme import TEXT as README
from tests.studies.validate.whole import whole
from tools.readme import readme_table

TEXT = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8") if README else ""

pytestmark = [pytest.mark.needs_core, pytest.mark.skipif(not README, reason="the README is in the checkout only")]


def test_the_table_is_up_to_date_and_an_edit_of_it_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    written = tool()
    (v100,) = (line for line in TEXT.splitlines() if line.startswith("| V100 "))
    if "LSTMSIM_EXAMPLES" in os.environ:
        section = written.validation_section()
    else:
        lines = readme_table(whole()).splitlines()
        place = next(number for number, line in enumerate(lines) if line.startswith("| claims: "))
        section = "\n".join([*lines[:place], v100, *lines[place:]])
    assert "| 10 | 10 of 10 within a factor of 3;" in v100
    assert "| 19 of 19 exact in cycles |" in section
    assert section in TEXT, "run `make readme`"
    monkeypatch.setattr(written, "validation_section", lambda _: section)
    assert written.with_validation(TEXT) == TEXT, "run `make readme`"
    assert written.with_validation(TEXT.replace("19 of 19 exact", "19 of 19 perfect")) == TEXT
    with pytest.raises(SystemExit, match="lacks <!-- validation:begin -->"):
        written.with_validation("no markers")


def test_the_lines_of_the_readme_are_those_of_the_table() -> None:
    lines = [each for each in README.splitlines() if each.startswith("| ")]
    at = lines.index("| published figures | rows | result |")
    shown = lines[at + 2 : at + 7]
    assert len(shown) == 5
    for line in shown:
        assert any(each.startswith(line.removesuffix(" |")) for each in TEXT.splitlines()), "run `make readme`"
