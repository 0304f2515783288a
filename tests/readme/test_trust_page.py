"""The table of the page on trust is that of the rule that makes stamps."""

from __future__ import annotations

import pytest

from lstmsim.machines.registry import KINDS
from tools.trust import PAGE, stamps, with_table

TEXT = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
pytestmark = pytest.mark.skipif(not TEXT, reason="the page is in the checkout only")


def test_the_table_is_made_from_the_rule() -> None:
    assert with_table(TEXT) == TEXT, "run `make readme`"


def test_the_examples_have_every_machine_and_say_what_rtl_can_do() -> None:
    found = stamps()
    assert {each.machine for each in found.values()} == set(KINDS)
    by_rtl = {name for name, each in found.items() if each.compared.startswith("generated RTL")}
    assert {"column-wise, `split: rows`", "column-wise, weights streamed from a memory"} <= by_rtl
    assert "column-wise, `split` and streamed weights together" not in by_rtl
