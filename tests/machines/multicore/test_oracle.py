"""The model of the multi-core CPU in `tests/oracle` is right on all golden cases, in every field, before it judges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.multicore_cases import answer

CASES = json.loads((Path(__file__).parents[2] / "data" / "contract_cases_gemm.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[each["name"] for each in CASES])
def test_the_model_answers_a_golden_case(case: dict[str, Any]) -> None:
    assert json.loads(json.dumps(answer(case))) == case["expect"]
