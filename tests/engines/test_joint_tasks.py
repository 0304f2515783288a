"""Tasks that take several threads, need room for contents, or pause for others: small cases, worked out by hand."""

from __future__ import annotations

from lstmsim.engines import fast, reference
from lstmsim.metrics.accounts import totals_of
from lstmsim.program.program import Body, Content, Core, Dependence, Operation, Phase, Program, Task, Unit
from lstmsim.program.trace import Trace

ARRAY = (Unit("array", "coarse"),)


def both(program: Program) -> Trace:
    trace = reference.run(program)
    assert fast.run(program) == trace
    assert fast.totals(program) == fast.totals(program, skipping=False) == totals_of(program, trace)
    return trace


def task(name: str, *operations: Operation, repeat: int = 1, cores: tuple[int, ...] = (0,), **more: object) -> Task:
    phases = (Phase(Body(operations), repeat),)
    return Task(name, ((0, phases),), (), cores, **more)  # type: ignore[arg-type]


def test_a_task_pauses_at_a_boundary_and_what_it_put_off_keeps_its_cause() -> None:
    slow = task("slow", Operation(0, needs=(Dependence(0, 10, lag=1),)), repeat=3, key=1)
    urgent = task("urgent", Operation(0, cycles=4, result_cycles=4), release=3, preempts=True)
    trace = both(Program((Core(0, ARRAY),), (slow, urgent)))
    # the delay of 10 cycles that the next iteration would have waited with is over at 10
    assert trace.pauses.tolist() == [[0, 0, 0, 10, 14]]
    assert trace.halts.tolist() == [[3, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0]]
    assert trace.issue("start").tolist() == [0, 10, 14, 24]
    totals = fast.totals(Program((Core(0, ARRAY),), (slow, urgent)))
    # hazard from 1 to 3 and from 15 to 24, drain from 3 to 10
    assert totals.cycles.tolist() == [[7, 0, 11, 0, 0, 0, 0, 0, 7, 0]]


def test_a_member_waits_for_another_and_has_a_seat_of_its_own() -> None:
    ahead = Operation(0, cycles=5, result_cycles=5)
    behind = Operation(0, needs=(Dependence(0, 5, "weights"),), member=1)
    program = Program((Core(0, ARRAY), Core(0, ARRAY, 2)), (task("t", ahead, behind, partners=((1,),)),))
    trace = both(program)
    assert trace.seats.tolist() == [[0, 1, 1, 0]]
    assert trace.issue("start").tolist() == [0, 5]
    assert fast.totals(program).cycles.tolist() == [[5, 0, 0, 0, 0, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, 0, 0, 5, 0, 0]]


def test_of_contents_that_fall_free_in_one_cycle_that_of_the_lower_thread_goes_first() -> None:
    def user(key: int, release: int, result: int = 8) -> Task:
        loading, work = Phase(Body((Operation(0, result_cycles=result),)), 1), Phase(Body((Operation(1),)), 1)
        return Task(f"k{key}", ((0, (loading, work)),), (), (0,), release, content=Content(key, 1))

    units = (Unit("memory", "fine"), Unit("array", "fine"))
    # thread 1 issues first, at 0, thread 0 at 1, and both finish at 8; then comes one that makes room
    tasks = (user(0, 0, 7), user(1, 0, 8), user(2, 40), user(1, 80), user(0, 120))
    trace = both(Program((Core(0, units, 2, capacity=2),), tasks))
    assert (trace.task("finish") - trace.task("admitted")).tolist() == [8, 8, 8, 1, 8]
