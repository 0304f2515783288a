"""The model of the multi-core CPU in `tests/oracle` is right on all golden cases, in every field, before it judges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.multicore_cases import answer

CASES = json.loads((Path(__file__).parents[2] / "data" / "contract_cases_gemm.json").read_text(encoding="utf-8"))


#: The largest products of a kind that two smaller ones have as well.
DEAR = {"gemm-1-08", "gemm-1-20", "gemm-1-26"}


@pytest.mark.halved
@pytest.mark.parametrize(
    "case",
    [pytest.param(each, id=each["name"], marks=pytest.mark.long if each["name"] in DEAR else ()) for each in CASES],
)
def test_the_model_answers_a_golden_case(case: dict[str, Any]) -> None:
    assert json.loads(json.dumps(answer(case))) == case["expect"]
