"""What large scenarios cost: counted, not timed. `benchmarks/large_scenarios.py` shows the seconds."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from lstmsim import machines
from lstmsim.analysis.report import measure
from lstmsim.base import wording
from lstmsim.base.errors import MAX_MISTAKES, InputError
from lstmsim.files.scenario import request_schema as job_steps
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.files.yaml.plain import plain_document
from lstmsim.machines.column.npu import ColumnCore
from lstmsim.machines.registry import target_of
from lstmsim.machines.row.target import _phases
from lstmsim.program import validate
from lstmsim.program.program import Program
from lstmsim.program.trace import Totals

CORE = {"npe": 1024, "ep": 16, "vp": 64}


def _crowd(size: int) -> dict[str, Any]:
    """So many cores, and twice as many jobs, each with an entry of its own."""
    jobs = [{"name": f"j{number}", "model": "lstm-256", "steps": 2} for number in range(2 * size)]
    return {"chip": {"kind": "column-npu", "name": "c", "frequency_mhz": 260, "cores": [CORE] * size}, "jobs": jobs}


def _calls(work: Callable[[], object]) -> int:
    """Calls of Python functions and of built-in ones while it works."""
    count = 0

    def note(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def _grows(work: Callable[[int], Callable[[], object]], size: int) -> float:
    """How many times as many calls twice the size takes, after a first time that loads what is loaded once."""
    _calls(work(2))
    return _calls(work(2 * size)) / _calls(work(size))


def test_reading_a_crowd() -> None:
    assert _grows(lambda size: lambda: load_scenario(_crowd(size)), 30) < 2.3


def test_lowering_a_crowd() -> None:
    def work(size: int) -> Callable[[], object]:
        scenario = load_scenario(_crowd(size))
        return lambda: machines.lower(scenario.chip, scenario.jobs)

    assert _grows(work, 30) < 2.3


def test_checking_and_measuring_a_crowd() -> None:
    from lstmsim import engines

    def work(size: int) -> Callable[[], object]:
        scenario = load_scenario(_crowd(size))
        program: Program = machines.lower(scenario.chip, scenario.jobs)
        totals: Totals = engines.totals(program)

        def both() -> None:
            validate.validate(program)
            measure(scenario, totals, "fast")

        return both

    assert _grows(work, 30) < 2.3


def test_lowering_a_batch() -> None:
    def work(size: int) -> Callable[[], object]:
        job = {"model": "gru-512", "steps": 2, "batch": size}
        scenario = load_scenario({"chip": "brainwave-s10", "jobs": [job]})
        _phases.cache_clear()
        return lambda: machines.lower(scenario.chip, scenario.jobs)

    assert _grows(work, 6) < 2.3


def test_a_core_is_asked_once_about_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    refusal = ColumnCore.refusal

    def counted(self: ColumnCore, model: Any) -> str | None:
        nonlocal asked
        asked += 1
        return refusal(self, model)

    monkeypatch.setattr(ColumnCore, "refusal", counted)
    load_scenario(_crowd(50))
    assert asked == 1


@pytest.mark.parametrize("question", ["job_faults", "model_refusal", "per_step"])
def test_a_machine_is_asked_once_about_like_entries(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    target = type(target_of("column-npu"))
    answer = getattr(target, question)

    def counted(*arguments: Any, **more: Any) -> Any:
        nonlocal asked
        asked += 1
        return answer(*arguments, **more)

    monkeypatch.setattr(target, question, counted)
    crowd = _crowd(5)
    load_scenario(crowd)
    assert asked == 1
    crowd["jobs"][7] |= {"cores": [3]}
    load_scenario(crowd)
    assert asked == 3


def test_of_many_mistakes_the_first_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    sought = 0
    alike = difflib.get_close_matches

    def counted(*arguments: Any, **more: Any) -> list[str]:
        nonlocal sought
        sought += 1
        return alike(*arguments, **more)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    data = {**_crowd(1), **{f"key{number}": 1 for number in range(1000)}}
    with pytest.raises(InputError) as caught:
        load_scenario(data)
    assert len(caught.value.mistakes) == MAX_MISTAKES
    assert sought == MAX_MISTAKES


def test_a_name_is_sought_among_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [f"n{number:06}" for number in range(20_000)] + ["nearest-of-all"]
    assert wording.nearest("nearest-of-al", known) == "; did you mean 'nearest-of-all'?"
    among: list[int] = []
    monkeypatch.setattr(difflib, "get_close_matches", lambda word, names, **_: among.append(len(names)) or [])
    wording.nearest("nearest-of-al", known)
    assert among == [wording._MOST_COMPARED]


def test_large_json_does_not_go_through_the_yaml_library() -> None:
    assert plain_document(json.dumps(_crowd(400)), "s.json") is not None


def test_entries_with_equal_steps_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_steps, "MAX_LENGTHS", 3)
    jobs = [{"name": f"j{number}", "model": "lstm-256", "steps": 2 + number % 3} for number in range(9)]
    assert len(load_scenario({"chip": "column-npu-16k", "jobs": jobs}).jobs) == 9
    jobs.append({"name": "one more", "model": "lstm-256", "steps": 1})
    with pytest.raises(InputError, match=r"jobs\.9\.steps: may be 4 different numbers"):
        load_scenario({"chip": "column-npu-16k", "jobs": jobs})
