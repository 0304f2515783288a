"""Each broken rule of barriers, ways, mirrored threads and room of a task's own is named in a sentence."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lstmsim.base.errors import ProgramError
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit, WeightSet
from lstmsim.program.validate import validate

ALU = (Unit("alu", "fine"),)
CORES = (Core(0, ALU, 2), Core(1, ALU, 2, accounted=None, shared=True, mirrors=True))
WORK = Operation(0)


def task(*operations: Operation, repeat: int = 1, first_barrier: int = 0, barriers: int = 0, **more: Any) -> Task:
    phases = (Phase(Body(operations), repeat, first_barrier=first_barrier, barriers=barriers),)
    return Task(**{"name": "t", "variants": ((0, phases),), "buffers": (), "cores": (0,)} | more)


def program(*tasks: Task, barriers: tuple[int, ...] = (), cores: tuple[Core, ...] = CORES) -> Program:
    return Program(cores, tasks, barriers)


WAITS = Operation(0, needs=(Dependence(1, 1, barrier=True),))
FAULTS = [
    (program(barriers=(0,)), "barrier 0: opens after 0 arrivals, which must be at least 1"),
    (program(task(WORK, behind=1), barriers=(1,)), "task t: comes behind barrier 1, of 1"),
    (program(task(WORK, starts=-2), barriers=(1,)), "task t: starts at barrier -2, of 1"),
    (program(task(WORK, ends=0)), "task t: ends at barrier 0, of 0"),
    (program(task(WORK, until=7), barriers=(1,)), "task t: lasts until barrier 7, of 1"),
    (
        program(task(WORK), task(WORK, after=0, behind=0), barriers=(1,)),
        "task t: comes behind a barrier and after a task",
    ),
    (
        program(task(WORK, first_barrier=2), barriers=(1,)),
        "phase 0: first_barrier 2 must be 0 to 1, and barriers 0 not negative",
    ),
    (program(task(WORK, barriers=-1), barriers=(1,)), "and barriers -1 not negative"),
    (program(task(Operation(0, arrives=1)), barriers=(1,)), "operation 0: arrives at barrier 1, at last 1, of 1"),
    (program(task(Operation(0, arrives=-1)), barriers=(1,)), "operation 0: arrives at barrier -1, at last -1, of 1"),
    (
        program(task(Operation(0, arrives=0), repeat=3, barriers=1), barriers=(1, 1)),
        "arrives at barrier 0, at last 2, of 2",
    ),
    (program(task(WAITS, repeat=2, barriers=1), barriers=(1, 1)), "operation 0: waits for barrier 1, at last 2, of 2"),
    (
        program(task(Operation(0, needs=(Dependence(0, 1, lag=1, barrier=True),))), barriers=(1,)),
        "waits for a barrier, so it has no lag, no phase and is not mirrored",
    ),
    (
        program(task(WORK, ends=0), task(WORK, ends=0), barriers=(1,)),
        "barrier 0: 2 may arrive, and it opens when 1 have",
    ),
    (
        program(task(Operation(0, arrives=0), repeat=3), barriers=(2,)),
        "barrier 0: 3 may arrive, and it opens when 2 have",
    ),
    (program(task(WORK, preempts=True), barriers=(1,)), "a task preempts others, so there are no barriers"),
    (program(task(WORK, preempts=True), task()), "has no operation, and a task preempts others"),
    (
        program(task(WORK, until=0, weight_set=WeightSet(3, 1, 0)), barriers=(1,)),
        "lasts until a barrier has opened, so it has no weight set but room of its own",
    ),
    (program(task(WORK, weight_set=WeightSet(None, 1, 1))), "room of its own is not loaded"),
    (program(task(WORK, weight_set=WeightSet(None, 1, 0), affine=True)), "loading is 0, and affine False"),
    (program(task(WORK, weight_set=WeightSet(-1, 1, 0))), "weight set -1 has the number that stands for none"),
    (
        program(task(WORK, weight_set=WeightSet(None, 4, 0)), cores=(Core(0, ALU, capacity=3),)),
        "room of its own of size 4 does not fit on cores (0,)",
    ),
    (program(cores=(Core(0, (Unit("alu", "fine", instances=0),)),)), "core 0, unit alu: instances 0 < 1"),
    (program(cores=(Core(0, ALU, accounted=1),)), "core 0: accounted unit 1 does not exist"),
    (
        program(cores=(Core(0, ALU, mirrors=True),)),
        "core 0: its threads stand for all 1 of cores that are not shared, and it is not shared",
    ),
    (
        program(cores=(Core(0, ALU), Core(1, ALU, 2, shared=True, mirrors=True))),
        "core 1: its threads stand for all 1 of cores that are not shared, and it has 2",
    ),
    (program(task(WORK, gang=((1, 1, 0),))), "takes thread 2 of core 1, and 1 before it for which that could stand"),
    (program(Task("t", ((0, ()),), (), (0,))), "has no phases"),
    (program(Task("t", ((0, (Phase(Body((WORK,)), 1), Phase(Body(()), 1))),), (), (0,))), "must repeat at least once"),
]


@pytest.mark.parametrize(("broken", "reported"), FAULTS, ids=[reported for _, reported in FAULTS])
def test_each_broken_rule_is_named(broken: Program, reported: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(reported)):
        validate(broken)


def test_as_many_as_a_barrier_counts_may_come() -> None:
    meets = Operation(0, arrives=0, needs=(Dependence(-1, 1, barrier=True),))
    group = [task(meets, repeat=2, barriers=1, ends=2, gang=((0, 1, 1),), weight_set=WeightSet(None, 1, 0))]
    validate(program(*group, task(starts=2, behind=0), barriers=(1, 1, 2)))
    # a task runs in one of its ways: it may arrive once, whatever the kind of its core
    both = Task("t", tuple((kind, (Phase(Body((meets,)), 1),)) for kind in (0, 1)), (), (0,))
    validate(program(both, barriers=(1,)))
