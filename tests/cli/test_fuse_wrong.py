"""`lstmsim fuse` where kernels do not compute what numpy does: nobody can miss it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import lstmsim
from lstmsim.model.fusion.interpreter.checks import Difference
from lstmsim.model.fusion.interpreter.run import Fault
from tests.cli.runner import call

ASKED = ("row-sum", "--size", "length=64", "--modes", "op,stitch", "--no-cycles")
OFF = Difference(0.25, "y", 1234, 0)
FAR = (
    "op is WRONG, please report it: a value of y is off by 0.25 of max(1, |numpy's|), the largest of 1,234 "
    "differences; up to 1e-06 is equal"
)


@pytest.fixture
def computes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets what comes out of the kernels of `op` in place of what they compute; others are right."""

    def set_to(outcome: Difference | Fault) -> None:
        outcomes = iter([outcome])

        def instead(*_: object) -> Difference:
            given = next(outcomes, Difference(0.0, "y", 4))
            if isinstance(given, Fault):
                raise given
            return given

        monkeypatch.setattr("lstmsim.studies.fuse.run.difference_of_run", instead)

    return set_to


def test_wrong_numbers_come_first_and_end_with_1(computes: Any) -> None:
    computes(OFF)
    called = call("fuse", *ASKED)
    assert called.exit_code == 1
    first = called.stdout.partition("\n\n")[0]
    assert " ".join(first.split()) == FAR
    assert called.stderr == f"Error: {FAR}\n"
    assert "Difference(" not in called.output
    assert "executed     NOT equal to numpy: op; why stands at the top" in called.stdout


def test_scripts_read_what_is_wrong(computes: Any) -> None:
    computes(OFF)
    called = call("fuse", *ASKED, "--json", "-")
    assert (called.exit_code, called.stderr) == (1, f"Error: {FAR}\n")
    answer = json.loads(called.stdout)
    assert answer["wrong"] == [FAR]
    assert [each["executed"]["equal_to_numpy"] for each in answer["modes"]] == [False, True]
    assert json.loads(call("fuse", *ASKED, "--json", "-").stdout)["wrong"] == []


def test_a_fault_is_told_with_its_place(computes: Any) -> None:
    computes(Fault("it lies in a register of thread 3", "k", "y", "x", 7, 0, 5))
    report = lstmsim.run_fusion("row-sum", sizes={"length": 64}, modes=["op"], cycles=False)
    why = "kernel k, stage y: block 0, thread 5 reads element 7 of x: it lies in a register of thread 3"
    assert report.wrong == (f"op is WRONG, please report it: {why}",)
    assert report.to_text().startswith("op is WRONG")


def test_what_is_a_number_on_one_side_only(computes: Any) -> None:
    computes(Difference(float("inf"), "y", 4, 0))
    called = call("fuse", *ASKED)
    assert called.exit_code == 1
    assert "a value of y is finite only here or only in numpy" in called.stderr
