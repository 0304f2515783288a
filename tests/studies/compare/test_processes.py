"""Comparisons on several processes: the same table in the same order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.files.yaml.document import yaml_text
from tests.studies.sweep.workers import answered

POISSON = {"kind": "poisson", "rate_per_second": 2000}
OVER_TIME = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3, "count": 40, "arrival": POISSON}]}
SEVERAL = {"chip": "column-npu-16k", "jobs": [{"model": each, "steps": 3} for each in ("lstm-256", "gru-512")]}
CHIPS = ["column-npu-64k", "intel-npu-rtl"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "each", "several"),
    [
        (OVER_TIME, False, (2,)),
        (SEVERAL, True, (3,)),
        *(pytest.param(SEVERAL, *rest, marks=pytest.mark.long) for rest in ((True, (2,)), (False, (3,)))),
    ],
)
def test_the_table_is_equal_for_any_number_of_processes(
    scenario: dict[str, Any], each: bool, several: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml_text(scenario), encoding="utf-8")
    sent = answered(monkeypatch)

    def shown(jobs: int) -> str:
        told: list[tuple[int, int]] = []
        result = lstmsim.compare(path, CHIPS, each=each, jobs=jobs, progress=lambda *counts: told.append(counts))
        return json.dumps([result.to_dict(), told]) + result.to_text()

    alone = shown(1)
    assert not sent
    assert {shown(jobs) for jobs in several} == {alone}
    # all but the first, which this process simulates meanwhile
    rows = 2 if each else 1
    assert sent == len(several) * [(row, chip) for row in range(rows) for chip in range(3) if (row, chip) != (0, 0)]
