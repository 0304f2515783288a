"""Tasks that take several threads, need room for weight sets, or pause for others: small cases, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lstmsim import engines
from lstmsim.base.errors import DeadlockError
from lstmsim.engines.reference import run as reference
from lstmsim.program.accounts import totals_of
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Buffer, Core, Moldable, Phase, Program, Task, Unit, WeightSet
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.trace import HALTS, Trace

ARRAY = (Unit("array", "coarse"),)


def both(program: Program) -> Trace:
    trace = reference.run(program)
    assert engines.run(program) == trace
    assert engines.totals(program) == totals_of(program, trace)
    return trace


def named(cycles: NDArray[np.int64]) -> list[dict[str, int]]:
    """Of each core the cycles by name, without those that are 0."""
    return [{CYCLE_NAMES[at]: count for at, count in enumerate(row) if count} for row in cycles.tolist()]


def task(name: str, *operations: Operation, repeat: int = 1, cores: tuple[int, ...] = (0,), **more: object) -> Task:
    phases = (Phase(Body(operations), repeat),)
    return Task(name, ((0, phases),), (), cores, **more)  # type: ignore[arg-type]


def test_a_task_pauses_at_a_boundary_and_what_it_put_off_keeps_its_cause() -> None:
    slow = task("slow", Operation(0, needs=(Dependence(0, 10, lag=1),)), repeat=3, key=1)
    urgent = task("urgent", Operation(0, cycles=4, result_cycles=4), release=3, preempts=True)
    trace = both(Program((Core(0, ARRAY),), (slow, urgent)))
    # the delay of 10 cycles that the next iteration would have waited with is over at 10
    assert trace.pauses.tolist() == [[0, 0, 0, 10, 14, -1]]
    columns = {name: column for name, column in zip(HALTS.names, trace.halts.T.tolist(), strict=True) if any(column)}
    assert columns == {"asked": [3], "hazard_until": [3]}
    assert trace.issue("start").tolist() == [0, 10, 14, 24]
    totals = engines.totals(Program((Core(0, ARRAY),), (slow, urgent)))
    # hazard from 1 to 3 and from 15 to 24, drain from 3 to 10
    assert named(totals.cycles) == [{"busy": 7, "hazard": 11, "drain": 7}]


def test_what_was_put_off_is_not_looked_at_when_what_it_waited_for_starts() -> None:
    """Unit 1 is an iteration ahead and waits for the last of this one, which starts after the task was asked."""
    body = (Operation(0, cycles=9, result_cycles=9), Operation(0), Operation(1, needs=(Dependence(1, 1, lag=1),)))
    slow = task("slow", *body, repeat=3, key=1)
    urgent = task("urgent", Operation(0, cycles=4, result_cycles=4), release=3, preempts=True)
    trace = both(Program((Core(0, (*ARRAY, Unit("tail", "fifo"))),), (slow, urgent)))
    assert trace.pauses.tolist() == [[0, 0, 0, 10, 14, -1]]
    assert trace.halts[:, :3].tolist() == [[3, 0, 1]]


def test_a_member_waits_for_another_and_has_a_thread_slot_of_its_own() -> None:
    ahead = Operation(0, cycles=5, result_cycles=5)
    behind = Operation(0, needs=(Dependence(0, 5, "weights"),), member=1)
    program = Program((Core(0, ARRAY), Core(0, ARRAY, 2)), (task("t", ahead, behind, gang=((1,),)),))
    trace = both(program)
    assert trace.thread_slots.tolist() == [[0, 1, 1, 0]]
    assert trace.issue("start").tolist() == [0, 5]
    assert named(engines.totals(program).cycles) == [{"busy": 5, "drain": 1}, {"busy": 1, "weights": 5}]


def test_of_weight_sets_that_fall_free_in_one_cycle_that_of_the_lower_thread_goes_first() -> None:
    def user(key: int, release: int, result: int = 8) -> Task:
        loading, work = Phase(Body((Operation(0, result_cycles=result),)), 1), Phase(Body((Operation(1),)), 1)
        return Task(f"k{key}", ((0, (loading, work)),), (), (0,), release, weight_set=WeightSet(key, 1))

    units = (Unit("memory", "fine"), Unit("array", "fine"))
    # thread 1 issues first, at 0, thread 0 at 1, and both finish at 8; then comes one that makes room
    tasks = (user(0, 0, 7), user(1, 0, 8), user(2, 40), user(1, 80), user(0, 120))
    trace = both(Program((Core(0, units, 2, capacity=2),), tasks))
    assert (trace.task("finish") - trace.task("admitted")).tolist() == [8, 8, 8, 1, 8]


def test_a_task_waits_for_a_weight_set_that_another_one_loads() -> None:
    phases = (Phase(Body((Operation(0, result_cycles=10),)), 2), Phase(Body((Operation(0, count=3),)), 1))
    users = [Task(f"u{release}", ((0, phases),), (), (0,), release, weight_set=WeightSet(0, 1)) for release in (0, 2)]
    trace = both(Program((Core(0, ARRAY, 2, capacity=1),), tuple(users)))
    # the last of the two operations that load issues at 1, and the weight set is there 10 cycles later
    assert trace.task("admitted").tolist() == [0, 11]


@pytest.mark.parametrize(("affine", "core"), [(True, 1), (False, 0)])
def test_an_affine_task_goes_where_its_weight_set_lies_even_if_others_are_there(affine: bool, core: int) -> None:
    cores = (Core(0, ARRAY, 2, capacity=1), Core(0, ARRAY, 2, capacity=1, held=(0,)))
    other = task("other", Operation(0, count=9), cores=(1,))
    phases = (Phase(Body((Operation(0),)), 1), Phase(Body((Operation(0, count=3),)), 1))
    user = Task("user", ((0, phases),), (), (0, 1), 2, weight_set=WeightSet(0, 1), affine=affine)
    assert both(Program(cores, (other, user))).task("core").tolist() == [1, core]


def spreading(name: str, *members: int, cores: tuple[int, ...] = (0, 1, 2), **more: object) -> Task:
    """Twelve cycles of work, in equal parts on as many cores as it takes."""
    ways = []
    for count in members:
        each = 12 // count
        own = tuple(Operation(0, cycles=each, result_cycles=each, member=member) for member in range(count))
        ways.append(Moldable(count, (Phase(Body(own), 1),)))
    return task(name, Operation(0, cycles=12, result_cycles=12), cores=cores, moldable=tuple(ways), **more)


def test_a_task_takes_all_free_cores_if_nobody_waits_for_them() -> None:
    cores = (Core(0, ARRAY),) * 3
    tasks = (spreading("a", 2, 3), spreading("b", 2, 3, release=1), spreading("c", 2, 3, release=30))
    trace = both(Program(cores, (*tasks, spreading("d", 2, 3, release=30))))
    # b waits until a is through; then nobody waits beside it. c sees that d waits, and leaves it two cores
    assert trace.task("admitted").tolist() == [0, 4, 30, 30]
    assert trace.task("finish").tolist() == [4, 8, 42, 36]
    assert trace.task("taken").tolist() == [0b111, 0b111, 0b001, 0b110]
    assert [trace.spread(number) for number in range(4)] == [3, 3, 1, 2]
    assert trace.thread_slots.tolist() == [[0, 1, 1, 0], [0, 2, 2, 0], [1, 1, 1, 0], [1, 2, 2, 0], [3, 1, 2, 0]]


def test_it_takes_the_largest_number_that_it_can_run_on_in_the_order_of_its_cores() -> None:
    cores = (Core(0, ARRAY, 2),) * 4
    here = task("here", Operation(0, cycles=50, result_cycles=50), cores=(3,))
    trace = both(Program(cores, (here, here, spreading("a", 2, 4, cores=(3, 2, 0, 1), release=1))))
    assert trace.task("taken").tolist() == [0, 0, 0b0110]
    # without a variant for so few, it runs on one: the least occupied, then the lowest
    trace = both(Program(cores, (here, here, spreading("a", 4, cores=(3, 2, 0, 1), release=1))))
    assert trace.task("taken").tolist() == [0, 0, 0b0100]


def test_a_paused_task_that_waits_for_one_of_its_cores_counts() -> None:
    slow = task("slow", Operation(0, cycles=10, result_cycles=10), repeat=3, key=1, cores=(0,))
    urgent = task("urgent", Operation(0, cycles=40, result_cycles=40), release=5, preempts=True)
    for cores, taken in (((0, 1, 2), 0b010), ((1, 2), 0b11)):
        late = (
            spreading("late", 2, 3, cores=cores, release=20)
            if len(cores) > 2
            else spreading("late", 2, cores=cores, release=20)
        )
        trace = both(Program((Core(0, ARRAY),) * 3, (slow, urgent, late)))
        assert trace.pauses.tolist() == [[0, 0, 0, 10, 50, -1]]
        assert trace.task("taken").tolist() == [0, 0, taken]


def test_what_a_spread_task_waits_for_for_ever_is_named() -> None:
    stuck = Phase(Body((Operation(0), Operation(0, needs=(Dependence(0, 1, lag=1),), takes=0, member=1))), 2)
    moldable = (Moldable(2, (stuck,), (Buffer("b", 1),)),)
    program = Program((Core(0, ARRAY),) * 2, (task("t", Operation(0), cores=(0, 1), moldable=moldable),))
    reported = []
    for engine in (engines, reference):
        with pytest.raises(DeadlockError) as caught:
            engine.run(program)
        reported.append(str(caught.value))
    assert reported[0] == reported[1]
    assert "a free slot of buffer 0" in reported[0]
