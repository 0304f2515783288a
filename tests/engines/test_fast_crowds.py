"""Many cores and tasks: places that are full are not looked at again in a pass of admission, but later."""

from __future__ import annotations

import pytest

from lstmsim import engines
from lstmsim.engines.reference import run as reference
from lstmsim.program.accounts import totals_of
from lstmsim.program.operations import Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit


def crowd(cores: int, tasks: int, contexts: int = 1) -> Program:
    body = Body((Operation(0, count=3, result_cycles=5),))
    machine = (Core(0, (Unit("array", "coarse"),), contexts),) * cores
    own = [
        Task(f"t{number}", ((0, (Phase(body, 1 + number % 3),)),), (), tuple(range(cores)), release=number // 7)
        for number in range(tasks)
    ]
    return Program(machine, tuple(own))


@pytest.mark.parametrize(("cores", "contexts"), [(1, 2), (5, 1), (5, 2), (12, 3)])
def test_places_that_were_full_are_free_again_later(cores: int, contexts: int) -> None:
    program = crowd(cores, 60, contexts)
    assert engines.totals(program) == totals_of(program, reference.run(program))
