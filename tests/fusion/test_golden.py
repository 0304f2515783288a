"""The golden cases of docs/fusion.md: every field of every case, plans, baselines and cycles."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.fusion.golden import cases
from tools.contract import differences

IDS = [f"{case['name']}-{case['graph']['name']}" for case in cases()]


@pytest.mark.parametrize("case", cases(), ids=IDS)
def test_golden_cases(case: dict[str, Any]) -> None:
    assert differences(case, "fast") == []


@pytest.mark.skipif(
    int(os.environ.get("LSTMSIM_EXAMPLES", "60")) <= 60,
    reason="80 SMs are thousands of threads, each a process of the reference engine: minutes; tests/targets/parallel "
    "has both engines on small devices",
)
@pytest.mark.parametrize("case", [each for each in cases() if any((each["expect"].get("cycles") or {}).values())])
def test_golden_cycles_on_the_reference_engine(case: dict[str, Any]) -> None:
    assert differences(case, "reference") == []


def test_the_cases_that_there_are() -> None:
    timed = [each for each in cases() if any((each["expect"].get("cycles") or {}).values())]
    assert (len(cases()), len(timed)) == (25, 12)
