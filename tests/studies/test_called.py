"""A wrong type of an argument of a public function is a sentence, whatever Python would say of it."""

from __future__ import annotations

import inspect
from dataclasses import replace
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
        ("simulate", [SCENARIO], {"overrides": None}, "overrides: must be a list or a mapping, got nothing"),
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
    parts = str(lstmsim.simulate.__doc__).split("\n\n")
    assert [each.partition(":")[0] for each in parts] == [
        "Simulate a scenario",
        "Args",
        "Returns",
        "Raises",
        "Examples",
    ]
    assert "    engine: Engine that simulates; both give the same numbers." in parts[1].splitlines()
    assert parts[2].startswith("Returns:\n    Report: The result of a simulation.")
    assert parts[3] == "Raises:\n    `InputError` with every mistake."
    assert "tolerance: Relative tolerance of the reported rate." in str(lstmsim.saturate.__doc__)
    assert list(inspect.signature(lstmsim.validate).parameters) == ["groups", "engine", "progress"]
    assert inspect.signature(lstmsim.validate).return_annotation == "Validation"


def test_errors_that_no_argument_explains_stay_what_they_are() -> None:
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'threads'"):
        lstmsim.run_gemm_threads(1, 2, 3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes 0 positional arguments"):
        lstmsim.validate(["intel-npu-cpp"], progress=lambda: None)  # type: ignore[arg-type,misc]


def test_signatures_have_types_as_people_write_them() -> None:
    source = "Scenario | str | PathLike | Mapping[str, Any]"
    changes = "overrides: Sequence[str] | Mapping[str, Any] = ()"
    shown = str(inspect.signature(lstmsim.simulate))
    clock = "clock: str | PathLike | None = None"
    assert shown == f"(scenario: {source}, *, engine: str = 'fast', {changes}, {clock}) -> Report"
    assert str(inspect.signature(lstmsim.load_chip)) == "(name: str | PathLike) -> Chip"
    assert f"result: Run | {source}, *" in str(inspect.signature(lstmsim.check_numerics))
    every = [getattr(lstmsim, each) for each in lstmsim.__all__]
    shown = "".join(str(inspect.signature(each)) for each in every if inspect.isfunction(each))
    assert "Annotated" not in shown
    assert "Key(" not in shown


def test_dir_has_what_is_public_only() -> None:
    assert set(dir(lstmsim)) == {*lstmsim.__all__, "__version__"}


def test_changes_may_be_a_mapping() -> None:
    listed = lstmsim.simulate(SCENARIO, overrides=["jobs.0.steps=3", "chip.cores.0.ep=8", "jobs.0.name='7'"])
    named = {"jobs.0.steps": np.int64(3), "chip.cores.0.ep": 8, "jobs.0.name": "7"}
    assert lstmsim.simulate(SCENARIO, overrides=named) == listed
    assert listed.jobs[0].name == "7"
    assert lstmsim.load_scenario(SCENARIO, named).jobs[0].steps == 3
    assert len(lstmsim.trace(SCENARIO, overrides={"jobs.0.steps": 2})) > len(lstmsim.trace(SCENARIO))
    with pytest.raises(InputError, match=r"overrides jobs\.0\.stepz=1: .*did you mean 'steps'"):
        lstmsim.simulate(SCENARIO, overrides={"jobs.0.stepz": 1})
    changed = lstmsim.run_gemm(4, 16, 16, threads=1, baselines=False, chip_overrides={"frequency_mhz": 2000})
    assert changed.chip.frequency_mhz == 2000


def test_the_picture_of_a_report_is_that_of_its_run() -> None:
    report = lstmsim.simulate(SCENARIO)
    assert lstmsim.plot(report).caption == lstmsim.plot(lstmsim.run(SCENARIO)).caption
    with pytest.raises(InputError, match="this report has no run that could be drawn"):
        lstmsim.plot(replace(report, tracing=None))
