"""The study of generated hardware: its first rows are what stands beside it, and everything there is equal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.studies.rtl.needed import needs_icarus

FOLDER = Path(__file__).parents[2] / "experiments"
pytestmark = [
    pytest.mark.needs_core,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the experiments are not part of the installed package"),
]


def recorded() -> list[str]:
    text = (FOLDER / "rtl" / "expected.md").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if " | icarus | " in line or " | verilator | " in line]


def test_everything_there_is_equal() -> None:
    from experiments.rtl.run import SETTINGS

    rows = recorded()
    assert [line.split(" | ")[0].strip("| ") for line in rows] == [each.title for each in SETTINGS]
    assert all(line.endswith(" | all equal |") for line in rows)


@pytest.mark.slow
@needs_icarus
def test_the_first_rows_are_made_anew() -> None:
    from experiments.rtl.run import text

    made = [line for line in text(small=True).splitlines() if line.endswith("equal |")]
    assert len(made) == 2
    assert set(made) <= set(recorded())


def test_designs_for_a_board_stand_there_with_what_was_built_of_them() -> None:
    from experiments.board.build import rows
    from experiments.board.run import text

    expected = (FOLDER / "board" / "expected.md").read_text(encoding="utf-8")
    assert expected.startswith(text(small=True))
    assert rows(), "nothing was built"


def test_the_clock_model_is_what_the_builds_give() -> None:
    from experiments.clock.model import FILE, Builds
    from experiments.clock.run import text

    builds = Builds()
    assert text() == (FOLDER / "clock" / "expected.md").read_text(encoding="utf-8")
    assert FILE.exists() == builds.enough
    if not builds.enough:
        return
    assert (len(builds.fit.ns), len(builds.held_out.ns)) == (builds.data["fitted"], builds.data["held_out"])
    assert json.loads(FILE.read_text(encoding="utf-8")) == builds.data
