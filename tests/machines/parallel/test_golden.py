"""The golden cases of the parallel device and its kernels: every field of every case, on both engines."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tools import contract_sparse
from tools.contract import differences, read_cases

PATH = Path(__file__).parents[2] / "data" / "contract_cases_sparse.json"
CASES = read_cases(str(PATH))
#: The reference engine goes issue by issue: in the usual run it has the small cases, and one of every kind.
SMALL = 100


def issues(case: dict[str, Any]) -> int:
    return sum(case["expect"].get("kinds", {}).values())


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_golden_cases_on_the_fast_engine(case: dict[str, Any]) -> None:
    assert differences(case, "fast") == []


def of_reference() -> list[dict[str, Any]]:
    if int(os.environ.get("LSTMSIM_EXAMPLES", "60")) > 60:
        return CASES
    smallest = {min((each for each in CASES if each["kind"] == kind), key=issues)["name"] for kind in kinds()}
    # a device of 80 SMs has thousands of threads, each of which is a process of the reference engine
    few = [case for case in CASES if issues(case) < SMALL and case["device"]["preset"] != "v100"]
    return [case for case in CASES if case["name"] in smallest or case in few]


def kinds() -> set[str]:
    return {case["kind"] for case in CASES}


@pytest.mark.halved
@pytest.mark.parametrize("case", of_reference(), ids=[case["name"] for case in of_reference()])
def test_golden_cases_on_the_reference_engine(case: dict[str, Any]) -> None:
    assert differences(case, "reference") == []


def test_the_cases_are_of_every_kind() -> None:
    assert len(CASES) == 69
    assert kinds() == {"device", *contract_sparse.KINDS}


def test_each_field_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is changed in an expectation is told."""
    case = json.loads(json.dumps(next(each for each in CASES if each["name"] == "holes-hbp")))
    found = contract_sparse.result(case, "fast")
    monkeypatch.setattr(contract_sparse, "result", lambda case, engine: found)
    changed = 0
    for key, value in case["expect"].items():
        wrong = {**case, "expect": {key: _other(value)}}
        assert differences(wrong, "fast"), key
        changed += 1
    assert changed > 30


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str) or value is None:
        return "other"
    if isinstance(value, list):
        return [_other(value[0]), *value[1:]]
    first = next(iter(value))
    return {**value, first: _other(value[first])}


@pytest.mark.parametrize(
    "options",
    [{"bm": 3, "bn": 5}, {"bm": 3, "bn": 5, "bk": 1, "tm": 1, "tn": 1}, {"split": -1}, {"bm": 64, "split": 2}],
)
def test_a_layer_for_one_sequence_ignores_tiles(options: dict[str, Any]) -> None:
    case = next(case for case in CASES if case["kind"] == "lstm" and case["N"] == 1)

    assert differences({**case, "options": options}, "fast") == []


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("key", [{"warp": 48}, {"port": [0, 5]}, {"port": [4, 0]}, {"port": [4]}])
def test_a_device_that_cannot_be_is_refused(key: dict[str, Any], engine: str) -> None:
    for kind in ("spmv", "device"):
        case = next(case for case in CASES if case["kind"] == kind)
        refused = {**case, "device": {**case["device"], **key}, "expect": {"error": "InputError"}}

        assert differences(refused, engine) == []


def test_options_may_be_left_out() -> None:
    plain = [case for case in CASES if case.get("options") == {}]

    assert plain
    for case in plain:
        bare = {key: each for key, each in case.items() if key != "options"}
        assert differences(bare, "fast") == differences({**case, "options": None}, "fast") == []
