"""A wrong type of an argument of a public function is a sentence, whatever Python would say of it."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.studies.validate.request import ValidateRequest

SCENARIO = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]}
ARRAY = "got a value of type 'ndarray'"


@pytest.mark.parametrize(
    ("function", "arguments", "named", "reported"),
    [
        ("simulate", [SCENARIO], {"overrides": None}, "overrides: must be a list, got nothing"),
        ("simulate", [SCENARIO], {"engine": []}, "engine: must be text, got a list"),
        (
            "compare",
            [SCENARIO, []],
            {"each": np.zeros(3)},
            "each: must be True or False, got a value of type 'ndarray'",
        ),
        ("run_gemm", [], {"batch": np.zeros(3)}, f"batch: must be a whole number from 1 to 1000000, {ARRAY}"),
        (
            "run_gemm_threads",
            [1, 64, 32],
            {"threads": [1.5, 2.0], "chip": "xeon-gold-5122"},
            "threads.0: must be a whole number of at least 1, got 1.5\n"
            "threads.1: must be a whole number of at least 1, got 2.0",
        ),
        ("validate", [], {"engine": None}, "engine: must be text, got nothing"),
        ("plot_blocks", [None], {}, "report: must be a SparseReport, got nothing"),
        ("import_model", [None], {}, "file: must be text or a path, got nothing"),
        ("fit_summary", [None], {}, "fits: must be a list, got nothing"),
    ],
)
def test_a_wrong_type_is_a_sentence(function: str, arguments: list[Any], named: dict[str, Any], reported: str) -> None:
    with pytest.raises(InputError) as error:
        getattr(lstmsim, function)(*arguments, **named)
    assert str(error.value) == reported


def test_a_whole_request_may_be_given_and_is_checked() -> None:
    request: Any = ValidateRequest("brainwave-fitted")
    assert lstmsim.validate(request).groups[0].rows == lstmsim.validate("brainwave-fitted").groups[0].rows
    wrong: Any = ValidateRequest(engine="fst")
    with pytest.raises(InputError, match="engine: must be fast or reference, got 'fst'; did you mean 'fast'"):
        lstmsim.validate(wrong)


def test_the_documentation_of_a_function_has_the_meaning_of_each_argument() -> None:
    assert "tolerance: Relative tolerance of the reported rate." in str(lstmsim.saturate.__doc__)
    assert list(inspect.signature(lstmsim.validate).parameters) == ["groups", "engine", "progress"]
    assert inspect.signature(lstmsim.validate).return_annotation == "Validation"


def test_errors_that_no_argument_explains_stay_what_they_are() -> None:
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'threads'"):
        lstmsim.run_gemm_threads(1, 2, 3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes 0 positional arguments"):
        lstmsim.validate(["intel-npu-cpp"], progress=lambda: None)  # type: ignore[arg-type,misc]
