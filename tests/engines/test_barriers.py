"""Barriers, units of several ways, mirrored threads, room of a task's own: small cases, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from lstmsim import engines
from lstmsim.base.errors import DeadlockError, InputError
from lstmsim.engines.feeds import check_templates
from lstmsim.engines.reference import run as reference
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit, WeightSet
from lstmsim.program.trace import Trace
from tests.engines.test_joint_tasks import both, named

ALU = (Unit("alu", "fine"),)
WAYS = (Unit("alu", "fine", instances=2),)


def task(*operations: Operation, repeat: int = 1, barriers: int = 0, first_barrier: int = 0, **more: Any) -> Task:
    phases = (Phase(Body(operations), repeat, first_barrier=first_barrier, barriers=barriers),)
    return Task(**{"name": "t", "variants": ((0, phases),), "buffers": (), "cores": (0,)} | more)


def work(cycles: int, **more: Any) -> Operation:
    return Operation(0, cycles=cycles, result_cycles=cycles, **more)


def times(trace: Trace) -> list[tuple[int, int, int]]:
    return list(zip(*(trace.task(name).tolist() for name in ("arrived", "admitted", "finish")), strict=True))


def test_operations_meet_at_a_barrier_in_each_iteration() -> None:
    """Thread 0 arrives at the end of its last issue: 0 + 2 x 3 = 6; thread 1 at 2. Both go on at 6 + 5 = 11."""
    meet = Dependence(0, 5, "barrier", barrier=True)
    slow = task(work(3, count=2, arrives=0), work(1, needs=(meet,)), repeat=2, barriers=1)
    quick = task(work(2, arrives=0), work(1, needs=(meet,)), repeat=2, barriers=1)
    trace = both(Program((Core(0, WAYS, 2),), (slow, quick), barriers=(2, 2)))
    starts = [trace.issue("start")[trace.issue("context") == thread].tolist() for thread in range(2)]
    # again 12 + 6 = 18 and 12 + 2 = 14; 18 + 5 = 23
    assert starts == [[0, 11, 12, 23], [0, 11, 12, 23]]
    assert trace.issue("barrier_until").max() == 23
    program = Program((Core(0, WAYS, 2),), (slow, quick), barriers=(2, 2))
    # 2 ways of 24 cycles each: 14 + 6 at work, the rest at the barrier
    assert named(engines.totals(program).cycles) == [{"busy": 20, "barrier": 28}]


def test_a_barrier_before_the_first_one_holds_nothing_back() -> None:
    before = Dependence(-1, 5, barrier=True)
    trace = both(
        Program((Core(0, ALU),), (task(work(2, arrives=0, needs=(before,)), repeat=2, barriers=1),), barriers=(1, 1))
    )
    # iteration 1 waits for barrier 0, which opens at 2
    assert trace.issue("start").tolist() == [0, 7]


def test_a_group_of_tasks_comes_behind_another_one() -> None:
    first = [task(work(cycles), ends=0) for cycles in (4, 9)]
    second = [task(work(1), behind=0, release=3), task(work(1), behind=0)]
    trace = both(Program((Core(0, WAYS, 2),), (*first, *second), barriers=(2,)))
    assert times(trace) == [(0, 0, 4), (0, 0, 9), (12, 12, 13), (9, 9, 10)]


def test_who_comes_behind_a_barrier_comes_with_those_that_come_after_tasks() -> None:
    """At 4 come, in this order: task 3, which follows nothing; tasks 1 and 2. The core has one thread."""
    tasks = (
        task(work(4), ends=0),
        task(work(1), behind=0),
        task(work(1), after=0),
        task(work(1), release=4, queue_limit=0),
    )
    trace = both(Program((Core(0, ALU),), tasks, barriers=(1,)))
    assert trace.task("admitted").tolist() == [0, 4, 5, 6]
    assert trace.task("finish").tolist() == [4, 5, 6, 7]


def test_an_admission_opens_a_barrier_and_others_come_in_the_next_round() -> None:
    """Task 1 comes behind the start of task 0, in cycle 2 too, when task 2 has got the second thread already."""
    tasks = (task(work(5), starts=0, release=2), task(work(1), behind=0, key=-1), task(work(7), release=2, key=3))
    trace = both(Program((Core(0, WAYS, 2),), tasks, barriers=(1,)))
    assert times(trace) == [(2, 2, 7), (2, 7, 8), (2, 2, 9)]


def test_a_barrier_opens_at_the_latest_of_its_cycles() -> None:
    """The issue that begins at 0 ends at 6; the task that finishes at 3 is the last whose arrival is known."""
    tasks = (task(work(6, arrives=0), barriers=1), task(work(3), ends=0), task(work(1), behind=0))
    assert times(both(Program((Core(0, WAYS, 2),), tasks, barriers=(2,))))[2] == (6, 6, 7)


def test_a_task_without_operations_stands_for_a_job() -> None:
    """Jobs run one after another on the thread of their host; what comes behind their start does the work."""
    host, empty = {"cores": (1,)}, {"variants": ((1, (Phase(Body(()), 1),)),)}
    jobs = [Task(name, buffers=(), starts=n, until=2 + n, **host, **empty) for n, name in enumerate("ab")]
    blocks = [task(work(cycles), behind=job, ends=2 + job, release=10) for job, cycles in ((0, 5), (0, 3), (1, 4))]
    program = Program((Core(0, WAYS, 2), Core(1, ALU, accounted=None, shared=True)), (*jobs, *blocks), (1, 1, 2, 1))
    trace = both(program)
    assert times(trace) == [(0, 0, 15), (0, 15, 29), (10, 10, 15), (10, 10, 13), (25, 25, 29)]
    assert named(engines.totals(program).cycles) == [{"busy": 12, "idle": 46}, {}]


def test_a_task_without_operations_leaves_in_its_cycle_and_another_takes_its_thread() -> None:
    empty = [Task(name, ((0, (Phase(Body(()), 1),)),), (), (0,), ends=0) for name in "ab"]
    trace = both(Program((Core(0, ALU),), (*empty, task(work(2)), task(work(1), behind=0)), barriers=(2,)))
    assert times(trace) == [(0, 0, 0), (0, 0, 0), (0, 0, 2), (0, 2, 3)]


def test_threads_of_each_way_share_that_way_alone() -> None:
    """Threads 0 and 2 use way 0, threads 1 and 3 way 1. `fine` begins behind the last thread, so 2 and 1 go first."""
    trace = both(Program((Core(0, WAYS, 4),), tuple(task(work(3, count=2)) for _ in range(4))))
    rows = sorted(zip(trace.issue("start").tolist(), trace.issue("context").tolist(), strict=True))
    assert rows == [(0, 1), (0, 2), (3, 0), (3, 3), (6, 1), (6, 2), (9, 0), (9, 3)]
    assert trace.issue("unit").tolist() == [0] * 8


def test_a_way_names_the_cycles_of_its_own_threads() -> None:
    tasks = (task(work(1), work(1, needs=(Dependence(0, 9, "memory"),))), task(work(2)))
    program = Program((Core(0, WAYS, 2),), tasks)
    both(program)
    # way 0: at work at 0 and 9; way 1: at work to 2, then idle
    assert named(engines.totals(program).cycles) == [{"busy": 4, "memory": 8, "idle": 8}]


def machine(*capacities: int | None, contexts: int = 2) -> tuple[Core, ...]:
    """Cores, and one that mirrors their threads."""
    cores = tuple(Core(0, ALU, contexts, capacity=capacity) for capacity in capacities)
    threads = contexts * len(cores)
    return *cores, Core(1, (Unit("dram", "fifo"),), threads, accounted=None, shared=True, mirrors=True)


def test_ties_on_a_mirroring_core_fall_by_the_threads_that_ask() -> None:
    """Both ask in cycle 1. The task on core 0 goes first, though it came later and its own place is higher."""
    ask = (work(1), Operation(0, cycles=4, result_cycles=4, needs=(Dependence(0, 1, "memory"),), member=1))
    late, early = (task(*ask, cores=(core,), gang=((2,),), key=key) for core, key in ((0, 2), (1, 1)))
    trace = both(Program(machine(None, None), (early, late)))
    assert trace.thread_slots.tolist() == [[0, 1, 2, 2], [1, 1, 2, 0]]
    assert trace.issue("start").tolist() == [0, 0, 1, 5]
    assert trace.issue("task")[2:].tolist() == [1, 0]


def test_members_on_a_mirroring_core_stand_for_members_before_them() -> None:
    tasks = [task(work(3), gang=((0, 1, 1),)), task(work(3), gang=((1, 0, 1),))]
    trace = both(Program(machine(None, contexts=4), tuple(tasks)))
    # the first task has threads 0 and 1, the second one 2 and 3; of the latter the mirrors stand in another order
    assert trace.thread_slots[:, 2:].tolist() == [[0, 1], [1, 0], [1, 1], [1, 2], [0, 3], [1, 3]]


@pytest.mark.parametrize(("size", "admitted"), [(3, [0, 0, 5]), (5, [0, 0, 0]), (6, [0, 5, 10])])
def test_each_task_has_room_of_its_own(size: int, admitted: list[int]) -> None:
    """Room for 10 has two tasks of 3 beside a weight set of 4 in use, or one of 6; room for 15 has three of 5."""
    own = [task(work(5), weight_set=WeightSet(None, size, 0)) for _ in range(3)]
    user = task(work(9), weight_set=WeightSet(7, 4, 0), key=-1)
    tasks = (user, *own) if size == 3 else own
    trace = both(
        Program((Core(0, (Unit("alu", "fine", instances=4),), 4, capacity=15 if size == 5 else 10),), tuple(tasks))
    )
    assert trace.task("admitted").tolist()[-3:] == admitted


def test_room_of_its_own_drives_out_weight_sets_that_nobody_uses() -> None:
    phases = (Phase(Body((work(4),)), 1), Phase(Body((work(1),)), 1))
    users = [Task("u", ((0, phases),), (), (0,), release, weight_set=WeightSet(0, 6)) for release in (0, 10, 30)]
    own = task(work(1), release=20, weight_set=WeightSet(None, 5, 0))
    trace = both(Program((Core(0, ALU, capacity=10),), (users[0], users[1], own, users[2])))
    # the weight set is brought in 4 cycles, lies there at 10, and is brought again at 30
    assert (trace.task("finish") - trace.task("admitted")).tolist() == [5, 1, 1, 5]


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_too_few_at_a_barrier_are_told(engine: str) -> None:
    stuck = task(work(2, arrives=0), Operation(0, needs=(Dependence(0, 5, barrier=True),), label="next"), barriers=1)
    with pytest.raises(DeadlockError, match=r"at cycle 0: .*\n  task t: next on unit 0 waits for barrier 0$"):
        engines.run(Program((Core(0, ALU),), (stuck,), barriers=(2,)), engine)


def test_programs_with_barriers_are_no_templates() -> None:
    with pytest.raises(InputError, match="barriers: a program whose tasks are fed has no barriers"):
        check_templates(Program((Core(0, ALU),), (task(work(1), ends=0),), barriers=(1,)))


def test_an_operation_of_no_issue_lets_its_task_wait() -> None:
    """The load of 1 cycle has its result 20 cycles later; nothing uses it."""
    load = task(work(1), Operation(0, count=0, needs=(Dependence(0, 20, "memory"),)))
    program = Program((Core(0, ALU),), (load,))
    trace = reference.run(program)
    assert (times(trace), trace == engines.run(program)) == ([(0, 0, 20)], True)
    assert named(engines.totals(program).cycles) == [{"busy": 1, "memory": 19}]
