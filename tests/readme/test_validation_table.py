"""The README's validation table is what a validation finds now."""

from __future__ import annotations

import pytest

from tests.readme.test_readme import TEXT, tool

pytestmark = [
    pytest.mark.needs_core,
    pytest.mark.skipif(not TEXT, reason="the README is in the checkout only"),
]


def test_the_table_is_up_to_date_and_an_edit_of_it_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    written = tool()
    section = written.validation_section()
    assert "| 19 of 19 exact in cycles |" in section
    assert section in TEXT, "run `make readme`"
    monkeypatch.setattr(written, "validation_section", lambda: section)
    assert written.with_validation(TEXT) == TEXT, "run `make readme`"
    assert written.with_validation(TEXT.replace("19 of 19 exact", "19 of 19 perfect")) == TEXT
    with pytest.raises(SystemExit, match="lacks <!-- validation:begin -->"):
        written.with_validation("no markers")
