"""A wrong type of an argument of a public function is a sentence, whatever Python would say of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.base.errors import InputError

SCENARIO = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]}
ARRAY = "got a value of type 'ndarray'"


@pytest.mark.parametrize(
    ("function", "arguments", "named", "told"),
    [
        ("simulate", [SCENARIO], {"overrides": None}, "overrides: must be a list, got nothing"),
        ("simulate", [SCENARIO], {"engine": []}, "engine: must be text, got a list"),
        (
            "compare",
            [SCENARIO, []],
            {"each": np.zeros(3)},
            "each: must be True or False, got a value of type 'ndarray'",
        ),
        ("run_gemm", [], {"batch": np.zeros(3)}, f"batch: must be a whole number, {ARRAY}"),
        (
            "run_gemm_threads",
            [1, 64, 32],
            {"threads": np.array([1, 2]), "chip": "xeon-gold-5122"},
            f"threads: must be a list, {ARRAY}",
        ),
        ("validate", [], {"engine": None}, "engine: must be text, got nothing"),
        ("plot_blocks", [None], {}, "report: must be a SparseReport, got nothing"),
        ("import_model", [None], {}, "file: must be text or a path, got nothing"),
        ("fit_summary", [None], {}, "fits: must be a list, got nothing"),
    ],
)
def test_a_wrong_type_is_a_sentence(function: str, arguments: list[Any], named: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as error:
        getattr(lstmsim, function)(*arguments, **named)
    assert str(error.value) == told


def test_errors_that_no_argument_explains_stay_what_they_are() -> None:
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'threads'"):
        lstmsim.run_gemm_threads(1, 2, 3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes 0 positional arguments"):
        lstmsim.validate(["intel-npu-cpp"], progress=lambda: None)  # type: ignore[arg-type,misc]
