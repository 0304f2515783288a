"""The key of a point never changes as long as its numbers do not: stored results stay valid."""

from __future__ import annotations

from typing import Any

import pytest

from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.studies.sweep import evaluate

MEMORY = {
    "kind": "column-npu",
    "frequency_mhz": 260,
    "memory": {"gb_per_s": 10},
    "exchange": {"width": 32},
    "cores": [{"npe": 64, "ep": 4, "vp": 16, "weight_kib": 64, "count": 2}],
}
#: Recorded when descriptions had no contract yet, with the versions left out.
KEYS = [
    ("column-npu-16k", "8d49f80562a11d7d"),
    ("column-npu-64k", "dd353034c76ae76d"),
    ("column-npu-4x16k", "71b0157c0112ae2b"),
    ("intel-npu-rtl", "75d646641752a34b"),
    ("intel-npu-cpp", "0c3dd4755aa1ae39"),
    ("brainwave-s10", "91e34fa2551c2a38"),
    (MEMORY, "483d0438e0222d07"),
]


@pytest.mark.parametrize(("chip", "key"), KEYS)
def test_keys_of_points_do_not_change(chip: Any, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "_versions", lambda: ["0", 0])
    scenario = load_scenario({"chip": chip, "jobs": [{"model": "lstm-256", "steps": 3}]})
    assert evaluate.scenario_key(scenario)[:16] == key
