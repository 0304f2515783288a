"""Two engines, one truth: whole traces, or the same deadlock; totals with a trace and without."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from lstmsim import machines
from lstmsim.base.errors import DeadlockError
from lstmsim.engines import run
from lstmsim.engines.fast import run as fast
from lstmsim.engines.fast.run import OWN, Machine, Outcome, Table
from lstmsim.model.cells import CELLS
from lstmsim.model.scenario import Scenario
from lstmsim.native.sources import COMMON
from lstmsim.program.accounts import totals_of
from lstmsim.program.flat import FLAT_TABLES, FORMAT, FlatProgram
from lstmsim.program.flatten import flat_of
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit
from lstmsim.program.trace import ISSUES, Totals, Trace
from tests.strategies import joint_programs, pooled_programs, programs, scenarios

#: 2,000 and more by LSTMSIM_EXAMPLES=2000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "8"))

Variants = tuple[tuple[int, tuple[Phase, ...]], ...]

pytestmark = pytest.mark.needs_core


def outcome(program: Program | FlatProgram, engine: str) -> Trace | str:
    try:
        return run(program, engine)
    except DeadlockError as deadlock:
        return str(deadlock)


def same_traces(program: Program) -> None:
    """Every engine gives one trace, or one deadlock, for a program and for its flat form."""
    note(f"from lstmsim.program.program import *\nprogram = {program!r}")
    slow, quick = outcome(program, "reference"), outcome(program, "fast")
    assert type(slow) is type(quick)
    assert slow == quick
    flat = flat_of(program)
    assert outcome(flat, "fast") == quick
    assert outcome(flat, "reference") == slow


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(programs())
def test_random_programs_give_equal_traces(program: Program) -> None:
    same_traces(program)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(st.one_of(joint_programs(), joint_programs(moldable=True)))
def test_random_programs_with_joint_tasks_give_equal_traces(program: Program) -> None:
    same_traces(program)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(pooled_programs(), st.sampled_from((1, 1, 4, 40)))
def test_random_programs_with_pools_sessions_and_links_give_equal_traces(program: Program, times: int) -> None:
    """Phases that repeat more often than their task has steps, too."""
    same_traces(longer(program, times))


def _longer(phase: Phase, times: int) -> Phase:
    columns = tuple(column * times for column in phase.extra_cycles)
    return replace(phase, repeat=phase.repeat * times, extra_cycles=columns)


def longer(program: Program, times: int) -> Program:
    """The same program with every phase repeated more often."""

    def stretched(variants: Variants) -> Variants:
        return tuple((kind, tuple(_longer(phase, times) for phase in phases)) for kind, phases in variants)

    tasks = [
        replace(task, variants=stretched(task.variants), sizes=tuple(map(stretched, task.sizes)))
        for task in program.tasks
    ]
    return replace(program, tasks=tuple(tasks))


def same_totals(program: Program) -> None:
    """The totals of a run without a trace are those of the trace."""
    try:
        trace = fast.run(program)
    except DeadlockError:
        return
    assert fast.totals(program) == totals_of(program, trace)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(st.one_of(programs(), joint_programs(), joint_programs(moldable=True)), st.sampled_from([1, 20, 60]))
def test_long_random_programs_give_equal_traces_and_totals(program: Program, times: int) -> None:
    program = longer(program, times)
    note(f"from lstmsim.program.program import *\nprogram = {program!r}")
    if times < 60:
        assert outcome(program, "reference") == outcome(program, "fast")
    same_totals(program)


@settings(max_examples=max(13, EXAMPLES // 4))
@given(scenarios(tuple(CELLS)), st.sampled_from([1, 20, 50]))
def test_random_scenarios_give_equal_totals(scenario: Scenario, times: int) -> None:
    jobs = tuple(replace(job, steps=job.steps * times) for job in scenario.jobs)
    same_totals(machines.lower(scenario.chip, jobs))


@pytest.mark.parametrize("lag", [0, 3, 40])
@pytest.mark.parametrize("looked_back_at", [False, True])
def test_streams_of_a_task_may_be_far_apart(looked_back_at: bool, lag: int) -> None:
    """One unit runs ahead of another one that waits for what the first has done hundreds of iterations ago."""
    needs = (Dependence(0, 3, lag=lag),)
    body = Body((Operation(0), Operation(1, cycles=7, needs=needs, result_cycles=9)))
    back = Body((Operation(0, needs=(Dependence(1, 1, phase=0, mirrored=True),)),))
    phases = (Phase(body, 400), *[Phase(back, 400)] * looked_back_at)
    program = Program(
        (Core(0, (Unit("array", "coarse"), Unit("tail", "fifo"))),), (Task("t", ((0, phases),), (), (0,)),)
    )
    assert outcome(program, "reference") == outcome(program, "fast")
    same_totals(program)


def test_a_stream_waits_for_another_one_in_every_iteration() -> None:
    """Rows of starts that are forgotten are used again, and must not look as if something had started."""
    body = Body((Operation(0, cycles=7, result_cycles=7), Operation(1, needs=(Dependence(0, 1),))))
    units = (Unit("array", "coarse"), Unit("tail", "fifo"))
    program = Program((Core(0, units),), (Task("t", ((0, (Phase(body, 100),)),), (), (0,)),))
    trace = fast.run(program)
    assert trace.issue("start")[trace.issue("unit") == 1].tolist() == [7 * number + 1 for number in range(100)]


LONG = """
import resource
from lstmsim.engines.fast.run import totals
from lstmsim.program.operations import Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit

def ran(repeat):
    task = Task("t", ((0, (Phase(Body((Operation(0),)), repeat),)),), (), (0,))
    totals(Program((Core(0, (Unit("array", "coarse"),)),), (task,)))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

print(ran(100), ran(3_000_000))
"""


def test_a_long_task_takes_no_more_memory_than_a_short_one() -> None:
    """Starts are forgotten: all of them would be 24 MB."""
    pytest.importorskip("resource")
    reported = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, check=True).stdout
    before, after = map(int, reported.split())
    assert after - before < before / 10


def test_a_run_goes_on_where_it_came_back() -> None:
    """The core comes back to Python every so many events, so that keys are heard."""
    from lstmsim import load_scenario

    jobs = [{"model": "lstm-512", "steps": 30, "count": 3}, {"model": "bilstm-256", "steps": 12, "arrival": 500}]
    scenario = load_scenario({"chip": "column-npu-4x16k", "jobs": jobs})
    program = machines.lower(scenario.chip, scenario.jobs)
    whole = fast.run(program)
    for events in (1, 7, 1000):
        machine = Machine(flat_of(program), keep=True, each=True)
        returns = 0
        while machine.run(events) is Outcome.PAUSED:
            returns += 1
        assert returns >= 1000 // events
        assert np.array_equal(ISSUES.ordered(machine.table(Table.ISSUES, len(ISSUES.names))), whole.issues)


@pytest.mark.skipif(not OWN.core.is_dir(), reason="the core's sources are not part of the installed package")
def test_rows_of_the_core_are_those_of_the_format() -> None:
    source = (COMMON / "flat.hpp").read_text()
    structures = dict(re.findall(r"struct (\w+) \{\s*i64 ([\w, \n]+);\s*\}", source))
    assert f"FORMAT = {FORMAT};" in source
    order = re.findall(r"Slice<const (\w+)> (\w+);", source)
    assert [name for _, name in order] == list(FLAT_TABLES)
    for structure, name in order:
        assert re.split(r",\s+", structures[structure]) == list(FLAT_TABLES[name].columns)


def names_in_the_core(name: str) -> list[str]:
    """The names of the enum in the core's sources and what it shares, in the order of their numbers."""
    texts = [file.read_text() for folder in (OWN.core, COMMON) for file in sorted(folder.glob("*.[ch]pp"))]
    (names,) = (enum[1] for text in texts if (enum := re.search(rf"enum {name} : i64 \{{ ([^}}]+) \}};", text)))
    return names.split(", ")


@pytest.mark.skipif(not OWN.core.is_dir(), reason="the core's sources are not part of the installed package")
def test_numbers_of_the_core_are_those_of_its_binding() -> None:
    """An enum of C++ counts from 0, and failures go on where outcomes end."""
    outcomes, failures = names_in_the_core("Outcome"), names_in_the_core("Failure")
    first, _, start = failures[0].partition(" = ")
    assert start == str(len(outcomes))
    assert {each.name: each.value for each in Outcome} == {
        name: number for number, name in enumerate([*outcomes, first, *failures[1:]])
    }
    assert {each.name: each.value for each in Table} == {
        name: number for number, name in enumerate(names_in_the_core("Table"))
    }


def test_totals_are_compared_by_value() -> None:
    one = Totals(np.zeros((1, 7)), np.zeros(1), np.zeros(1), np.zeros((1, 4)))
    assert one == Totals(np.zeros((1, 7)), np.zeros(1), np.zeros(1), np.zeros((1, 4)))
    assert one != Totals(np.ones((1, 7)), np.zeros(1), np.zeros(1), np.zeros((1, 4)))
