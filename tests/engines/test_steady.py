"""What comes again is not run again: tables, totals, ends and refusals are those of a run of everything."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, note, settings

from lstmsim.base.errors import ProgramError
from lstmsim.engines import run
from lstmsim.engines.fast.run import Machine, Outcome, Table
from lstmsim.program.flat import FlatProgram
from lstmsim.program.flatten import flat_of
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.trace import ISSUES, TABLES, TASKS
from tests.packing import packed
from tests.steady_programs import NOTHING, steady_programs
from tests.strategies import BOOLEANS, among

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "11"))

pytestmark = pytest.mark.needs_core

_COUNT, _CYCLES = ISSUES.place("count"), ISSUES.place("cycles")


def ran(flat: FlatProgram, *, keep: bool, each: bool, events: int) -> tuple[list[Any], int]:
    """All that a run tells, or why it was refused; and how many times it came back."""
    machine, times = Machine(flat, keep=keep, each=each), 1
    try:
        while (outcome := machine.run(events)) is Outcome.PAUSED:
            times += 1
    except ProgramError as error:
        return [str(error)], times
    told: list[Any] = [outcome, *machine.waits()] if outcome is Outcome.STUCK else [outcome]
    written = [(each, machine.table(Table[each.name.upper()], len(each.columns))) for each in TABLES]
    # a core that comes back in the midst of its steps lets another one write rows in between
    tables = [each.ordered(rows) if each.order else rows for each, rows in written]
    if outcome is Outcome.DONE:
        makespan = int(TASKS.of(machine.table(Table.TASKS, len(TASKS.names)), "finish").max())
        tables.append(machine.totals(makespan, len(CYCLE_NAMES) + 2))
    return [*told, *(table.tolist() for table in tables)], times


def same(flat: FlatProgram, events: int = 1_000_000) -> tuple[int, int]:
    """How many times runs came back that leave out, or run, what comes again. What they tell is the same."""
    for keep in (True, False):
        short, few = ran(flat, keep=keep, each=False, events=events)
        whole_run, many = ran(flat, keep=keep, each=True, events=events)
        assert [str(each) for each in short] == [str(each) for each in whole_run]
    return few, many


@settings(max_examples=EXAMPLES)
@given(steady_programs(), among(1_000_000, 20), BOOLEANS)
def test_random_programs_come_to_the_same_both_ways(program: Program, events: int, pack: bool) -> None:
    note(f"from lstmsim.program.program import *\nprogram = {program!r}")
    flat = flat_of(program)
    same(packed(flat) if pack else flat, events)


def chain(kernels: int, *operations: Operation, release: int = 5, tasks: int = 3, more: int | None = None) -> Program:
    """Kernels of some equal tasks, one behind the other; more: when a task comes in between."""
    cores = (
        Core(0, (Unit("alu", "fine"), Unit("lsu", "fifo")), 4, 0),
        Core(1, (Unit("host", "fifo"),), 1, shared=True),
    )
    variants = ((0, (Phase(Body(operations), 1),)),)
    made = [Task("job", ((1, NOTHING),), (), (1,), starts=0, until=kernels)]
    for number in range(kernels):
        meet = {"behind": number, "ends": number + 1, "release": release}
        made += [Task(f"{number}.{each}", variants, (), (0,), **meet) for each in range(tasks)]
    if more is not None:
        made.append(Task("between", variants, (), (0,), release=more))
    return Program(cores, tuple(made), (1, *[tasks] * kernels))


WORK = (Operation(0, count=50, work=2), Operation(1, cycles=3, needs=(Dependence(0, 4),), result_cycles=9))


def test_kernels_that_come_again_are_not_run_again() -> None:
    """Of 40 kernels of 150 and more cycles each, a few are run."""
    few, many = same(flat_of(chain(40, *WORK)), events=100)
    assert many > 60
    assert few < many / 5


def test_they_are_those_of_the_reference_engine() -> None:
    for program in (chain(12, *WORK), chain(12, *WORK, more=700)):
        assert run(program) == run(program, "reference")


@pytest.mark.parametrize("more", [0, 161, 162, 163, 485, 1000, 1700])
def test_a_task_that_comes_in_between_is_not_passed(more: int) -> None:
    """A kernel takes 162 cycles; what comes at its end, or in it, comes while it is run."""
    program = chain(10, *WORK, more=more)
    same(flat_of(program))
    assert run(program) == run(program, "reference")


def test_a_run_ends_where_it_would() -> None:
    """Cycles that come too late, sums that do not fit, and a barrier that never opens."""
    assert "comes to cycle" in str(ran(flat_of(chain(40, *WORK, release=2**55)), keep=False, each=False, events=1000))
    same(flat_of(chain(40, *WORK, release=2**55)))
    heavy = flat_of(chain(5000, Operation(0, count=2, work=2**49)))
    assert "does not fit" in str(ran(heavy, keep=False, each=False, events=10_000_000))
    same(heavy)
    stuck = replace(chain(10, *WORK), barriers=(1, *[3] * 9, 4))
    same(flat_of(stuck))


def test_rows_that_were_taken_away_are_not_written_again() -> None:
    """A caller may take the rows of a trace, and clear the table, whenever a run comes back."""
    flat = flat_of(chain(30, *WORK))

    def pieces(*, each: bool) -> list[tuple[int, ...]]:
        machine, rows = Machine(flat, keep=True, each=each), []
        outcome = Outcome.PAUSED
        while outcome is Outcome.PAUSED:
            outcome = machine.run(400)
            rows += machine.table(Table.ISSUES, len(ISSUES.columns)).tolist()
            machine.clear(Table.ISSUES)
        # one by one, for an operation that goes on gets a new row
        return sorted((row[0] + i * row[_CYCLES], *row[1:_COUNT]) for row in rows for i in range(row[_COUNT]))

    assert pieces(each=False) == pieces(each=True)
