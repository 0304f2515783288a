"""Many cores and tasks: when the compiled loop runs from the start, and that full places are not looked at again."""

from __future__ import annotations

import numpy as np
import pytest

from lstmsim.engines.fast import compiled
from lstmsim.engines.fast import run as fast
from lstmsim.engines.reference import run as reference
from lstmsim.metrics.accounts import totals_of
from lstmsim.program.program import Body, Core, Operation, Phase, Program, Task, Unit


def crowd(cores: int, tasks: int, contexts: int = 1) -> Program:
    body = Body((Operation(0, count=3, result_cycles=5),))
    machine = (Core(0, (Unit("array", "coarse"),), contexts),) * cores
    own = [
        Task(f"t{number}", ((0, (Phase(body, 1 + number % 3),)),), (), tuple(range(cores)), release=number // 7)
        for number in range(tasks)
    ]
    return Program(machine, tuple(own))


def test_code_of_another_digest_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_digest", lambda: "of another source")
    assert not compiled.kept()


@pytest.mark.skipif(not compiled.available(), reason="numba is not installed")
def test_a_crowd_waits_for_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "_CROWD", 5)
    monkeypatch.setattr(compiled, "loaded", lambda: False)
    for kept, kind in ((False, list), (True, np.ndarray)):
        monkeypatch.setattr(compiled, "kept", lambda kept=kept: kept)
        started = fast.FastRun(crowd(2, 3), keep=False, skipping=True, budget=fast.BUDGET)
        assert isinstance(started.state, kind)
        small = fast.FastRun(crowd(1, 3), keep=False, skipping=True, budget=fast.BUDGET)
        assert isinstance(small.state, list)


@pytest.mark.parametrize(("cores", "contexts"), [(1, 2), (5, 1), (5, 2), (12, 3)])
def test_places_that_were_full_are_free_again_later(cores: int, contexts: int) -> None:
    program = crowd(cores, 60, contexts)
    assert fast.totals(program) == totals_of(program, reference.run(program))
