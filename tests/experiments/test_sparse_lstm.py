"""The study of sparse LSTMs: its claims hold, and what it prints is what stands beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.ranges import assert_no_range_of_one_value

FOLDER = Path(__file__).parents[2] / "experiments"
pytestmark = [
    pytest.mark.needs_core,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the experiments are not part of the installed package"),
]


@pytest.fixture(scope="module")
def study() -> tuple[Any, Any]:
    from experiments import run

    script = run.load("sparse_lstm")
    return script, script.results(small=True)


def test_what_is_printed_stands_beside_it(study: tuple[Any, Any]) -> None:
    script, small = study
    expected = (FOLDER / "sparse_lstm" / "expected.md").read_text(encoding="utf-8")
    tables = (script.large_lstm, script.layer_table, script.balance_table, script.alignment_table, script.hash_table)
    rows = [line for table in tables for line in table(small) if line]
    assert len(rows) > 8
    assert_no_range_of_one_value(script.summary(small))
    assert not [line for line in rows if line not in expected]


def test_sparse_wins_from_within_the_band_and_more_zeros_are_never_slower(study: tuple[Any, Any]) -> None:
    script, small = study
    row = script.ratios(small, script.UNITS)
    at = script.crossover(row)
    low, high = script.BAND
    assert low < at < high
    assert sorted(row.values(), reverse=True) == list(row.values())
    # measured with an independent model on other random masks: 66.2 %
    assert abs(at - 0.662) < 0.02


def test_the_dense_product_is_as_measured(study: tuple[Any, Any]) -> None:
    assert study[1].dense[2048] == {"64 x 64": 478979, "128 x 64": 612925, "128 x 128": 735002}


def test_the_strong_baseline_stands_in_the_tables(study: tuple[Any, Any]) -> None:
    _, small = study
    rows = small.balance["Silero", 32]
    # with every block there at once, sorting costs on short rows
    assert rows["plain", "demand"][0] < rows["sorted", "demand"][0]
    rows = small.hbp["Silero, 80 %"].rows
    assert rows["CSR, best setting"][0] <= rows["CSR, 32 lanes"][0] < rows["CSR, 1 lane"][0]
    assert rows["HBP, best setting"][0] < rows["HBP, linear"][0]


def test_a_sort_groups_best_and_literal_probing_is_dearer_than_it(study: tuple[Any, Any]) -> None:
    by_hash = study[1].hashes["Silero"]
    assert min(by_hash, key=lambda each: by_hash[each].deviation) == "sort"
    # measured with an independent model: deviations, and probes of a row
    assert round(by_hash["linear"].deviation, 2) == 7.81
    assert round(by_hash["linear"].probes) == 128
    assert by_hash["linear"].finds < by_hash["sort"].comparisons < by_hash["linear"].probes


@pytest.mark.skipif("LSTMSIM_EXAMPLES" not in os.environ, reason="takes seconds: LSTMSIM_EXAMPLES")
def test_pictures_are_drawn(tmp_path: Path) -> None:
    from experiments.sparse_lstm import pictures

    assert all(path.stat().st_size > 2000 for path in pictures.timelines(tmp_path))
    assert pictures.loads(tmp_path / "loads.png").stat().st_size > 2000
