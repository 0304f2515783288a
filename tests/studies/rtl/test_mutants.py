"""Changes of the Verilog are noticed: a comparison that found everything equal would prove nothing."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from tests.studies.rtl.directed_bits import BITS
from tests.studies.rtl.lane_mutants import LANE_MUTANTS, LaneMutant, changed
from tests.studies.rtl.lane_mutants import noticed as lane_noticed
from tests.studies.rtl.mutants import MUTANTS, Mutant, noticed
from tests.studies.rtl.needed import long_run, needs_icarus
from tests.studies.rtl.verified import written


def test_every_place_that_is_changed_is_there() -> None:
    folder = files("lstmsim.machines.column.rtl") / "verilog"
    assert len(MUTANTS) >= 25
    assert [each for each in MUTANTS if (folder / each.file).read_text(encoding="utf-8").count(each.old) != 1] == []


@long_run
@needs_icarus
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file} {mutant.scenario}")
def test_changes_are_noticed(mutant: Mutant, tmp_path: Path) -> None:
    assert noticed(mutant, tmp_path)


@pytest.mark.slow
def test_every_place_of_the_lanes_that_is_changed_is_there(tmp_path: Path) -> None:
    designs = {name: written(BITS[name], tmp_path / name) for name in {each.scenario for each in LANE_MUTANTS}}
    for mutant in LANE_MUTANTS:
        design = designs[mutant.scenario]
        assert changed(mutant, design) != (design / "rtl" / mutant.file).read_text(), mutant.name


@long_run
@needs_icarus
@pytest.mark.parametrize("mutant", LANE_MUTANTS, ids=lambda mutant: mutant.name)
def test_changes_of_the_lanes_are_noticed(mutant: LaneMutant, tmp_path: Path) -> None:
    assert lane_noticed(mutant, tmp_path)
