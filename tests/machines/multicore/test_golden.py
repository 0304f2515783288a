"""The golden cases of the multi-core CPU: every field of every case, on both engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lstmsim.engines import ENGINES
from tools import contract_gemm
from tools.contract import differences, read_cases

PATH = Path(__file__).parents[2] / "data" / "contract_cases_gemm.json"
CASES = read_cases(str(PATH))


@pytest.mark.parametrize(
    ("case", "engine"),
    [
        pytest.param(
            case, engine, id=f"{case['name']}-{engine}", marks=pytest.mark.halved if engine == "reference" else ()
        )
        for case in CASES
        # plans and numbers are made without an engine
        for engine in (("fast",) if case["kind"] in ("plan", "numbers") else ENGINES)
    ],
)
def test_golden_cases(case: dict[str, Any], engine: str) -> None:
    assert differences(case, engine) == []


def test_the_cases_are_of_every_kind() -> None:
    assert {case["kind"] for case in CASES} == {"plan", "run", "relief", "numbers", "job"}


@pytest.mark.parametrize("kind", ["plan", "run", "relief", "numbers", "job"])
def test_each_field_counts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is changed in an expectation is told, and nothing else is."""
    case = min((each for each in CASES if each["kind"] == kind), key=lambda each: len(json.dumps(each)))
    found = contract_gemm.result(case, "fast")
    monkeypatch.setattr(contract_gemm, "result", lambda case, engine: found)
    paths = list(leaves(case["expect"]))
    for path in paths[:: max(1, len(paths) // 12)]:
        wrong = json.loads(json.dumps(case))
        inner = wrong["expect"]
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = "other"
        (line,) = differences(wrong, "fast")

        assert line.startswith(".".join(map(str, path)))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Any:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not inner:
        yield path
    for key, each in inner:
        yield from leaves(each, (*path, key))
