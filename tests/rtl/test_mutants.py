"""Changes of the Verilog are noticed: a comparison that found everything equal would prove nothing."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from tests.rtl.mutants import MUTANTS, Mutant, noticed
from tests.rtl.needed import long_run, needs_icarus


def test_every_place_that_is_changed_is_there() -> None:
    folder = files("lstmsim.targets.column.rtl") / "verilog"
    assert len(MUTANTS) >= 25
    assert [each for each in MUTANTS if each.old not in (folder / each.file).read_text(encoding="utf-8")] == []


@long_run
@needs_icarus
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file} {mutant.scenario}")
def test_changes_are_noticed(mutant: Mutant, tmp_path: Path) -> None:
    assert noticed(mutant, tmp_path)
