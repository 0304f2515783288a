"""The golden cases of docs/fusion.md: every field of every case, plans, baselines and cycles."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.model.fusion.golden import cases
from tools.contract import differences

TIMED = [each for each in cases() if any((each["expect"].get("cycles") or {}).values())]
#: Cases that the reference engine takes a second to ten for, and the others less than that.
DEAR = {"fusion-1-08", "fusion-1-11", "fusion-1-12", "fusion-1-13", "fusion-1-15", "fusion-1-22"}
LONG = pytest.mark.skipif(
    int(os.environ.get("LSTMSIM_EXAMPLES", "60")) <= 60,
    reason="1 to 10 s on the reference engine, which takes one issue at a time; the other cases run there always",
)
IDS = [f"{case['name']}-{case['graph']['name']}" for case in cases()]


@pytest.mark.parametrize("case", cases(), ids=IDS)
def test_golden_cases(case: dict[str, Any]) -> None:
    assert differences(case, "fast") == []


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(each, id=each["name"], marks=LONG if each["name"] in DEAR or number % 2 else ())
        for number, each in enumerate(TIMED)
    ],
)
def test_golden_cycles_on_the_reference_engine(case: dict[str, Any]) -> None:
    assert differences(case, "reference") == []


def test_the_cases_that_there_are() -> None:
    assert (len(cases()), len(TIMED)) == (25, 12)
    assert {each["name"] for each in TIMED} > DEAR
