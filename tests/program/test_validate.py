"""Programs that break a rule are refused with a sentence; deadlocks name who waits for what, alike on both engines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lstmsim.base.errors import DeadlockError, InputError, ProgramError
from lstmsim.engines import ENGINES, run
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Buffer, Core, Moldable, Phase, Pool, Program, Task, Unit, WeightSet
from lstmsim.program.validate import quiet_faults, validate

CORE = Core(0, (Unit("array", "coarse"), Unit("tail", "fifo")))
PLAIN = Operation(0)


def program(*operations: Operation, buffers: tuple[Buffer, ...] = (), repeat: int = 2, **task: object) -> Program:
    phases = (Phase(Body(operations), repeat),)
    made = Task("t", ((0, phases),), ((0, buffers),), (0,))
    return Program((CORE,), (replace(made, **task),))  # type: ignore[arg-type]


def with_extra(operation: Operation, *columns: tuple[int, ...]) -> Program:
    phases = (Phase(Body((operation,)), 2, extra_cycles=columns),)
    return Program((CORE,), (Task("t", ((0, phases),), (), (0,)),))


def in_pool(pool: Pool, **keys: object) -> Program:
    (task,) = program(PLAIN).tasks
    return Program((CORE,), (replace(task, pool=0, **keys),), pools=(pool,))  # type: ignore[arg-type]


ROUNDS = Pool(2, policy="continuous")
FAULTS = [
    (in_pool(Pool(0)), "pool 0: takes 0 tasks"),
    (in_pool(Pool(1, policy="sometimes")), "by policy 'sometimes'"),
    (replace(in_pool(Pool(1)), pools=()), "waits in pool 0, of 0"),
    (in_pool(ROUNDS), "goes on step by step and has 0 steps"),
    (in_pool(ROUNDS, length=1, weight_set=WeightSet(7, 1, 0)), "so it has no gang, no weight set and no barriers"),
    (program(Operation(2)), "unit 2 does not exist"),
    (Program((Core(0, (Unit("array", "sleepy"),)),), ()), "core 0, unit array: no policy called 'sleepy'"),
    (program(Operation(0, cycles=0)), "cycles must be at least 1, count at least 0"),
    (program(Operation(0, count=-1)), "cycles must be at least 1, count at least 0"),
    (program(Operation(0, count=0)), "has no issue, so it must wait for operations of its body and for nothing else"),
    (program(Operation(0, cycles=3, result_cycles=2)), "result_cycles 2 < cycles 3"),
    (program(Operation(0, work=-1)), "work -1 < 0"),
    (program(Operation(0), weight_set=WeightSet(7, -2, 0)), "weight set 7 has size -2 < 0"),
    (program(Operation(0, extra=0)), "extra 0 needs a column of extra_cycles"),
    (with_extra(Operation(0, extra=0, count=2), (1, 2)), "extra 0 needs a column of extra_cycles and a single issue"),
    (with_extra(PLAIN, (1,)), "extra_cycles must have a number from 0 on for each iteration"),
    (with_extra(PLAIN, (1, -1)), "extra_cycles must have a number from 0 on for each iteration"),
    (program(Operation(0, takes=0)), "buffer 0 does not exist"),
    (program(PLAIN, variants=((0, (Phase(Body((PLAIN,)), 1),)),) * 2), "has two variants for one kind of core"),
    (Program((replace(CORE, held=(3, 3)),), program(PLAIN).tasks), "core 0: holds a weight set twice, (3, 3)"),
    (program(Operation(0), Operation(0, needs=(Dependence(0, 0),))), "delay 0 < 1"),
    (program(Operation(0, needs=(Dependence(0, 1),))), "operation 0 with lag 0, which comes no earlier"),
    (program(Operation(0, needs=(Dependence(5, 1, lag=1),))), "operation 5, which does not exist"),
    (program(Operation(0, needs=(Dependence(0, 1, phase=0),))), "phase 0 is not an earlier one"),
    (program(Operation(0, needs=(Dependence(0, 1, "hunger", lag=1),))), "no cause called 'hunger'"),
    (program(Operation(0), repeat=0), "must repeat at least once"),
    (program(repeat=0), "must repeat at least once and hold an operation"),
    (program(Operation(0), cores=()), "may run on no core"),
    (program(Operation(0), cores=(3,)), "core 3 does not exist"),
    (program(Operation(0), release=-1), "must not be negative"),
    (program(Operation(0), buffers=(Buffer("b", 0),)), "at least one slot"),
    (
        program(Operation(0, takes=0), Operation(1, takes=0, frees=0), buffers=(Buffer("b", 1),)),
        "buffer 0 is taken by more than one unit",
    ),
]


def moldable(*members: int, operation: Operation = PLAIN, cores: tuple[int, ...] = (0, 1), **task: object) -> Program:
    """Two cores of kind 0, one of kind 1 and one that is shared, and a task that spreads over some of them."""
    ways = tuple(Moldable(each, (Phase(Body((operation,)), 1),)) for each in members)
    made = replace(program(Operation(0)).tasks[0], cores=cores, moldable=ways, **task)  # type: ignore[arg-type]
    variants = (*made.variants, (1, made.variants[0][1]))
    other, shared = replace(CORE, kind=1), replace(CORE, contexts=9, shared=True)
    return Program((CORE, CORE, other, shared), (replace(made, variants=variants),))


FAULTS += [
    (moldable(3), "is moldable over [3] cores, which must grow from 2 on and not exceed its 2"),
    (moldable(2, 2), "is moldable over [2, 2] cores"),
    (moldable(1), "is moldable over [1] cores"),
    (moldable(2, cores=(0, 2)), "must be different ones of one kind and not shared, got (0, 2)"),
    (moldable(2, cores=(0, 0)), "must be different ones of one kind and not shared, got (0, 0)"),
    (moldable(2, cores=(0, 3)), "must be different ones of one kind and not shared, got (0, 3)"),
    (moldable(2, preempts=True), "is moldable, so it has no gang and no weight set and does not preempt"),
    (
        moldable(2, weight_set=WeightSet(0, 1, 0)),
        "is moldable, so it has no gang and no weight set and does not preempt",
    ),
    (
        moldable(2, operation=Operation(0, member=2)),
        "over 2 cores, kind 0, phase 0, operation 0: member 2 does not exist",
    ),
    (
        moldable(2, operation=Operation(0, takes=0)),
        "over 2 cores, kind 0, phase 0, operation 0: buffer 0 does not exist",
    ),
]


@pytest.mark.parametrize(("wrong", "sentence"), FAULTS, ids=[sentence for _, sentence in FAULTS])
def test_each_broken_rule_is_named(wrong: Program, sentence: str) -> None:
    with pytest.raises(ProgramError) as caught:
        validate(wrong)
    assert sentence in str(caught.value)


def test_an_operation_without_issue_stands_where_nothing_comes_after_it() -> None:
    quiet = Operation(1, count=0, needs=(Dependence(0, 5),))

    def faults(repeat: int, *behind: Operation, phases: int = 1) -> list[str]:
        return list(quiet_faults((Phase(Body((PLAIN, quiet, *behind)), repeat),) * phases, 0, 1))

    assert faults(1) == faults(1, PLAIN) == []
    assert faults(2) == faults(1, phases=2) == ["has no issue, so its phase must be the last one and not repeat"]
    assert faults(1, Operation(1)) == ["has no issue, so no operation of its stream may follow"]
    assert faults(1, Operation(0, needs=(Dependence(1, 5),))) == ["has no issue, so no operation may wait for it"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("mirrored", "starts"), [(False, [10, 12, 13]), (True, [12, 13, 14])])
def test_a_need_of_an_iteration_that_is_not_there_holds_nothing_back(
    engine: str, mirrored: bool, starts: list[int]
) -> None:
    first = Phase(Body((Operation(0, cycles=2, result_cycles=2),)), 2)
    second = Phase(Body((Operation(1, needs=(Dependence(0, 10, phase=0, mirrored=mirrored),)),)), 3)
    task = Task("t", ((0, (first, second)),), (), (0,))
    trace = run(Program((CORE,), (task,)), engine)
    assert trace.issue("start")[trace.issue("unit") == 1].tolist() == starts


@pytest.mark.parametrize("engine", ENGINES)
def test_a_deadlock_names_who_waits_for_what(engine: str) -> None:
    # the second take needs a slot that only the tail frees, which waits for the second tile
    stuck = program(
        Operation(0, takes=0, label="tile"),
        Operation(0, takes=0, label="tile"),
        Operation(1, needs=(Dependence(1, 4),), frees=0, label="tail"),
        buffers=(Buffer("bank", 1),),
    )
    with pytest.raises(DeadlockError) as caught:
        run(stuck, engine)
    assert str(caught.value).splitlines() == [
        "deadlock at cycle 0: nothing can start any more",
        "  task t: tile on unit 0 waits for a free slot of buffer 0",
        "  task t: tail on unit 1 waits for tile 1 of phase 0, iteration 0",
    ]


def test_an_unknown_engine_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="no engine called 'warp'; there are: fast, reference"):
        run(program(Operation(0)), "warp")
