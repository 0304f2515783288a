"""Critical paths and shares of latencies where tasks meet at barriers and do the work of jobs."""

from __future__ import annotations

from hypothesis import given, settings

from lstmsim import engines
from lstmsim.analysis.explanations.critical_path import HELD_BY, KINDS, critical_path
from lstmsim.analysis.explanations.slowest import SHARES, latency_shares
from lstmsim.analysis.explanations.trace_index import Opener, TraceIndex
from lstmsim.base.errors import DeadlockError
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit
from tests.barrier_programs import barrier_programs
from tests.strategies import examples


def jobs() -> Program:
    """Two jobs on a host, each of a kernel of blocks: launched after 10, at work for 5 and 3, and for 4."""
    host = Core(1, (Unit("host", "fifo"),), accounted=None, shared=True)
    empty = ((1, (Phase(Body(()), 1),)),)
    heads = [Task(name, empty, (), (1,), starts=n, until=2 + n) for n, name in enumerate("ab")]
    blocks = [
        Task(
            "ab"[job],
            ((0, (Phase(Body((Operation(0, cycles=cycles, result_cycles=cycles),)), 1),)),),
            (),
            (0,),
            behind=job,
            ends=2 + job,
            release=10,
        )
        for job, cycles in ((0, 5), (0, 3), (1, 4))
    ]
    return Program((Core(0, (Unit("issue", "fine", instances=2),), 2), host), (*heads, *blocks), (1, 1, 2, 1))


def test_the_path_goes_through_launches_and_the_blocks_that_end_last() -> None:
    trace = engines.run(jobs())
    path = critical_path(jobs(), trace)
    steps = [
        (start, end, KINDS[kind], HELD_BY[held], trace.issue("task")[row])
        for start, end, kind, held, row in zip(
            *(column.tolist() for column in (path.start, path.end, path.kind, path.held_by, path.row)), strict=True
        )
    ]
    assert steps == [
        (0, 10, "behind", "behind", 2),
        (10, 15, "busy", "thread", 2),
        (15, 25, "behind", "behind", 4),
        (25, 29, "busy", "result", 4),
    ]


def test_cycles_of_a_job_are_those_of_its_blocks() -> None:
    shares = latency_shares(jobs(), engines.run(jobs()), 2)
    named = [{name: count for name, count in zip(SHARES, row, strict=True) if count} for row in shares[:2].tolist()]
    assert named == [{"work": 5, "start": 10}, {"queue": 15, "work": 4, "start": 10}]


def test_the_last_one_that_arrives_opens_a_barrier() -> None:
    body = Body((Operation(0, cycles=3, result_cycles=3, arrives=0),))
    tasks = [Task("t", ((0, (Phase(body, 2, barriers=1),)),), (), (0,), starts=2) for _ in range(2)]
    program = Program((Core(0, (Unit("issue", "fifo"),), 2),), tuple(tasks), (2, 2, 2))
    index = TraceIndex(program, engines.run(program))
    known = index.barriers
    assert known[2] == Opener(0, "starts", 1, tied=True)
    # thread 0 goes first in both iterations, at 0 and 3, then thread 1
    assert [(known[barrier].cycle, int(index.start[known[barrier].number])) for barrier in (0, 1)] == [(9, 6), (12, 9)]


def test_a_wait_at_a_barrier_is_that_of_the_last_one() -> None:
    meet = Dependence(0, 5, "barrier", barrier=True)
    slow, quick = (
        Task(
            "t",
            ((0, (Phase(Body((Operation(0, cycles=n, result_cycles=n, arrives=0), use)), 1, barriers=1),)),),
            (),
            (0,),
        )
        for n, use in ((2, Operation(0)), (7, Operation(0, needs=(meet,))))
    )
    program = Program((Core(0, (Unit("issue", "fine", instances=2),), 2),), (slow, quick), (2,))
    trace = engines.run(program)
    path = critical_path(program, trace)
    assert trace.makespan_cycles == 13
    assert [(int(a), KINDS[k], HELD_BY[h]) for a, k, h in zip(path.end, path.kind, path.held_by, strict=True)] == [
        (7, "busy", "barrier"),
        (12, "latency", "barrier"),
        (13, "busy", "result"),
    ]


@settings(max_examples=examples(30))
@given(barrier_programs())
def test_every_path_goes_from_the_end_to_cycle_0(program: Program) -> None:
    try:
        trace = engines.run(program)
    except DeadlockError:
        return
    if not len(trace.issues):
        return
    path = critical_path(program, trace)
    assert int(path.cycles.sum()) == trace.makespan_cycles
    assert (path.start[1:] == path.end[:-1]).all()
