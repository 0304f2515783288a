"""Iterations that come again are not run again: totals are those of a run of every iteration."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, note, settings

from lstmsim import machines
from lstmsim.engines.fast.run import Machine, Outcome
from lstmsim.model.scenario import Scenario
from lstmsim.program.flatten import flat_of
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Buffer, Core, Phase, Program, Task, Unit
from tests.engines.test_steady import same
from tests.strategies import among, examples, programs, scenarios

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
        replace(task, variants=tuple((kind, stretched(phases)) for kind, phases in task.variants))
        for task in program.tasks
    ]
    return replace(program, tasks=tuple(tasks))


@settings(max_examples=examples(30))
@given(programs(), among(7, 30), among(1_000_000, 20))
def test_random_programs_come_to_the_same_both_ways(program: Program, times: int, events: int) -> None:
    note(f"program = {program!r}")
    same(flat_of(longer(program, times)), events)


@settings(max_examples=examples(20))
@given(scenarios(), among(11, 40))
def test_random_scenarios_come_to_the_same_both_ways(scenario: Scenario, steps: int) -> None:
    note(f"scenario = {scenario!r}")
    jobs = [replace(job, steps=job.steps * steps) for job in scenario.jobs]
    same(flat_of(machines.lower(scenario.chip, jobs)))


def looped(repeat: int, *, contexts: int = 1, tasks: int = 1, arrivals: int = 0, slots: int = 2) -> Program:
    """Tasks of one body: two operations that take and free a slot, and look back at the iteration before."""
    first = Operation(0, 3, result_cycles=3, takes=0, needs=(Dependence(1, 4, "hazard", lag=1),))
    second = Operation(1, 2, result_cycles=2, frees=0, needs=(Dependence(0, 5, "hazard"),))
    phases = (Phase(Body((first, second)), repeat),)
    units = (Unit("array", "coarse"), Unit("tail", "fifo"))
    buffers = ((0, (Buffer("bank", slots),)),)
    each = [Task(f"t{number}", ((0, phases),), buffers, (0,), release=number * arrivals) for number in range(tasks)]
    return Program((Core(0, units, contexts, 0),), tuple(each))


def events_of(program: Program) -> int:
    """After how many calls of ten events a run is at its end."""
    machine, calls = Machine(flat_of(program)), 1
    while machine.run(10) is Outcome.PAUSED:
        calls += 1
    return calls


@pytest.mark.parametrize(("contexts", "tasks", "arrivals"), [(1, 1, 0), (1, 3, 0), (2, 2, 0), (2, 4, 777)])
def test_long_tasks_take_no_more_events_than_short_ones(contexts: int, tasks: int, arrivals: int) -> None:
    short, long = (looped(each, contexts=contexts, tasks=tasks, arrivals=arrivals) for each in (100, 100_000))
    assert events_of(long) <= events_of(short) + 8 * tasks
    same(flat_of(looped(300, contexts=contexts, tasks=tasks, arrivals=arrivals)))
