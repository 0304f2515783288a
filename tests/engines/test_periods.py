"""Iterations that come again are not run again: totals and traces are those of a run of every iteration."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from lstmsim import machines
from lstmsim.engines import run
from lstmsim.engines.fast.run import Machine, Outcome
from lstmsim.model.scenario import Scenario
from lstmsim.program.flatten import flat_of
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Buffer, Core, Phase, Pool, Program, Task, Unit
from tests.engines.test_steady import same
from tests.strategies import among, examples, pooled_programs, programs, scenarios

pytestmark = pytest.mark.needs_core


def longer(program: Program, times: int) -> Program:
    """The program with so many more iterations of each phase whose iterations are alike."""
    known: dict[int, tuple[Phase, ...]] = {}

    def stretched(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
        if id(phases) not in known:
            alike = not any(phase.extra_cycles for phase in phases)
            known[id(phases)] = tuple(replace(each, repeat=each.repeat * (times if alike else 1)) for each in phases)
        return known[id(phases)]

    tasks = [
        replace(
            task,
            variants=tuple((kind, stretched(phases)) for kind, phases in task.variants),
            sizes=tuple(tuple((kind, stretched(phases)) for kind, phases in own) for own in task.sizes),
        )
        for task in program.tasks
    ]
    return replace(program, tasks=tuple(tasks))


@pytest.mark.slow
@settings(max_examples=examples(18))
@given(st.one_of(programs(), pooled_programs()), among(7, 30), among(1_000_000, 20))
def test_random_programs_come_to_the_same_both_ways(program: Program, times: int, events: int) -> None:
    note(f"program = {program!r}")
    same(flat_of(longer(program, times)), events)


@pytest.mark.slow
@settings(max_examples=examples(12))
@given(scenarios(), among(11, 40))
def test_random_scenarios_come_to_the_same_both_ways(scenario: Scenario, steps: int) -> None:
    note(f"scenario = {scenario!r}")
    jobs = [replace(job, steps=job.steps * steps) for job in scenario.jobs]
    same(flat_of(machines.lower(scenario.chip, jobs)))


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("lengths", [(30, 30), (30, 12)])
def test_steps_beyond_those_of_a_ragged_batch_do_not_come_again(lengths: tuple[int, int], mirrored: bool) -> None:
    """A kept program may repeat a phase more often than its tasks have steps."""
    array = Operation(0, 3, result_cycles=3, needs=(Dependence(1, 9, lag=1),))

    def tail(inference: int) -> Operation:
        return Operation(1, 2, result_cycles=2, needs=(Dependence(0, 5),), inference=inference)

    alone, both = (Phase(Body((array, tail(own))), 40, mirrored) for own in (0, 1))
    tasks = [
        Task(f"t{n}", ((0, (alone,)),), (), (0,), pool=0, sizes=(((0, (both,)),),), length=length)
        for n, length in enumerate(lengths)
    ]
    core = Core(0, (Unit("array", "coarse"), Unit("tail", "coarse")))
    program = Program((core,), tuple(tasks), pools=(Pool(2, wait=5, ragged=True),))
    trace = run(program, "fast")
    assert trace == run(program, "reference")
    assert len(trace.issues) == sum(lengths)
    same(flat_of(program))


def looped(repeat: int, *, contexts: int = 1, tasks: int = 1, arrivals: int = 0, slots: int = 2) -> Program:
    """Tasks of one body: two operations that take and free a slot, and look back at the iteration before."""
    first = Operation(0, 3, result_cycles=3, takes=0, needs=(Dependence(1, 4, "hazard", lag=1),))
    second = Operation(1, 2, result_cycles=2, frees=0, needs=(Dependence(0, 5, "hazard"),))
    phases = (Phase(Body((first, second)), repeat),)
    units = (Unit("array", "coarse"), Unit("tail", "fifo"))
    buffers = ((0, (Buffer("bank", slots),)),)
    each = [Task(f"t{number}", ((0, phases),), buffers, (0,), release=number * arrivals) for number in range(tasks)]
    return Program((Core(0, units, contexts, 0),), tuple(each))


def events_of(program: Program, *, keep: bool = False, each: bool = False) -> int:
    """After how many calls of ten events a run is at its end."""
    machine, calls = Machine(flat_of(program), keep=keep, each=each), 1
    while machine.run(10) is Outcome.PAUSED:
        calls += 1
    return calls


def layers(repeat: int, *, contexts: int = 2, mirrored: bool = False, policy: str = "fine") -> Program:
    """Tasks of two phases, of which the second waits for the results of the first, and for the arrival of its task.

    It has more iterations than the first: some wait for nothing. Its first operation has issues between which others
    may come.
    """
    first = Operation(0, 3, result_cycles=3, needs=(Dependence(0, 4, "hazard", lag=1),))
    each = (Dependence(0, 500, "start", phase=0, mirrored=mirrored), Dependence(1, 9, "hazard", lag=1))
    second = Operation(0, 2, count=3, needs=each, frame=True, result_cycles=2)
    last = Operation(1, 2, result_cycles=2, needs=(Dependence(0, 5, "hazard"),))
    phases = (Phase(Body((first,)), repeat), Phase(Body((second, last)), repeat + repeat // 2))
    units = (Unit("array", policy, switch_cycles=1), Unit("tail", "fifo"))
    tasks = [Task(f"t{number}", ((0, phases),), (), (0,), release=3) for number in range(contexts)]
    return Program((Core(0, units, contexts, 0),), tuple(tasks))


@pytest.mark.parametrize(("contexts", "tasks", "arrivals"), [(1, 1, 0), (1, 3, 0), (2, 2, 0), (2, 4, 777)])
def test_long_tasks_take_no_more_events_than_short_ones(contexts: int, tasks: int, arrivals: int) -> None:
    short, long = (looped(each, contexts=contexts, tasks=tasks, arrivals=arrivals) for each in (100, 100_000))
    assert events_of(long) <= events_of(short) + 8 * tasks
    same(flat_of(looped(300, contexts=contexts, tasks=tasks, arrivals=arrivals)))


@pytest.mark.slow
@pytest.mark.parametrize(("contexts", "tasks"), [(1, 1), (2, 2), (3, 9)])
def test_rows_of_a_trace_are_written_again(contexts: int, tasks: int) -> None:
    """A row that is written again costs half an event; here one that is run costs about one."""
    program = looped(3000, contexts=contexts, tasks=tasks)
    assert events_of(program, keep=True) < 0.7 * events_of(program, keep=True, each=True)
    same(flat_of(program), events=100)


def test_a_row_that_still_grows_is_not_written_again() -> None:
    """The second unit is in the midst of an operation whenever the first has come to its next iteration."""
    first = Operation(0, 7, result_cycles=7)
    second = Operation(1, 2, count=3, result_cycles=2, needs=(Dependence(0, 5, "hazard"),))
    phases = (Phase(Body((first, second)), 500),)
    tasks = tuple(Task(f"t{number}", ((0, phases),), (), (0,), release=9 * number) for number in range(2))
    for contexts in (2, 3):
        same(
            flat_of(
                Program((Core(0, (Unit("array", "fine"), Unit("tail", "fine")), contexts, 0),), tasks[: contexts - 1])
            )
        )


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(("contexts", "policy"), [(1, "fine"), (2, "coarse"), (2, "fine")])
def test_waits_for_an_earlier_phase_are_those_of_each_iteration(contexts: int, policy: str, mirrored: bool) -> None:
    program = layers(400, contexts=contexts, policy=policy, mirrored=mirrored)
    assert events_of(program, keep=True) < events_of(program, keep=True, each=True)
    same(flat_of(program), events=100)
    short = layers(60, contexts=contexts, policy=policy, mirrored=mirrored)
    assert run(short) == run(short, "reference")
