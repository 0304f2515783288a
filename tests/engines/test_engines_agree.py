"""Two engines, one truth: whole traces, or the same deadlock; totals with and without skipping; compiled or not."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from lstmsim import targets
from lstmsim.engines import run
from lstmsim.engines.fast import compiled, layout
from lstmsim.engines.fast import run as fast
from lstmsim.engines.reference import run as reference
from lstmsim.errors import DeadlockError
from lstmsim.metrics.accounts import totals_of
from lstmsim.program.program import Program
from lstmsim.program.totals import Totals
from lstmsim.program.trace import Trace
from lstmsim.workload.cells import CELLS
from lstmsim.workload.scenario import Scenario
from tests.strategies import joint_programs, programs, scenarios

#: 2,000 and more by LSTMSIM_EXAMPLES=2000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "40"))
#: Uncompiled, however long it takes.
NEVER = 1 << 60

numba = pytest.mark.skipif(not compiled.available(), reason="numba is not installed")


def outcome(program: Program, engine: str) -> Trace | str:
    try:
        return run(program, engine)
    except DeadlockError as deadlock:
        return str(deadlock)


@settings(max_examples=EXAMPLES)
@given(programs())
def test_random_programs_give_equal_traces(program: Program) -> None:
    note(f"from lstmsim.program.program import *\nprogram = {program!r}")
    slow, quick = outcome(program, "reference"), outcome(program, "fast")
    assert type(slow) is type(quick)
    assert slow == quick


@settings(max_examples=EXAMPLES)
@given(st.one_of(joint_programs(), joint_programs(wide=True)))
def test_random_programs_with_joint_tasks_give_equal_traces(program: Program) -> None:
    note(f"from lstmsim.program.program import *\nprogram = {program!r}")
    slow, quick = outcome(program, "reference"), outcome(program, "fast")
    assert type(slow) is type(quick)
    assert slow == quick


def longer(program: Program, times: int) -> Program:
    """The same program with every phase repeated more often."""
    tasks = []
    for task in program.tasks:
        variants = tuple(
            (kind, tuple(replace(phase, repeat=phase.repeat * times) for phase in phases))
            for kind, phases in task.variants
        )
        tasks.append(replace(task, variants=variants))
    return Program(program.cores, tuple(tasks))


def same_totals(program: Program) -> bool:
    """Totals of a trace, of a run without one, and of one that skips periods; whether any were skipped."""
    try:
        trace = fast.run(program, budget=NEVER)
    except DeadlockError:
        return False
    expected = totals_of(program, trace)
    plain = fast.totals(program, skipping=False, budget=NEVER)
    assert plain == expected
    done = fast.FastRun(program, keep=False, skipping=True, budget=NEVER)
    done.finish()
    assert fast.totals(program, budget=NEVER) == expected
    first, size = done.state[layout.S_CORE], layout.S_CORE_SIZE
    return any(done.state[first + core * size + layout.OFFSET] > 0 for core in range(len(program.cores)))


@settings(max_examples=EXAMPLES)
@given(programs(), st.sampled_from([1, 20, 60]))
def test_random_programs_give_equal_totals_with_periods_skipped(program: Program, times: int) -> None:
    note(f"from lstmsim.program.program import *\nprogram = {longer(program, times)!r}")
    same_totals(longer(program, times))


@settings(max_examples=EXAMPLES)
@given(st.one_of(joint_programs(), joint_programs(wide=True)), st.sampled_from([1, 1, 20]))
def test_random_programs_with_joint_tasks_give_equal_totals(program: Program, times: int) -> None:
    note(f"from lstmsim.program.program import *\nprogram = {longer(program, times)!r}")
    same_totals(longer(program, times))


@settings(max_examples=max(20, EXAMPLES // 4))
@given(scenarios(tuple(CELLS)), st.sampled_from([1, 20, 50]))
def test_random_scenarios_give_equal_totals_with_periods_skipped(scenario: Scenario, times: int) -> None:
    jobs = tuple(replace(job, steps=job.steps * times) for job in scenario.jobs)
    same_totals(targets.lower(scenario.chip, jobs))


def test_periods_are_skipped_where_threads_interleave() -> None:
    from lstmsim import load_scenario

    core = {"npe": 4096, "ep": 8, "vp": 512, "threads": 2, "tail_width": 16}
    jobs = [
        {"model": {"layers": [{"cell": name, "hidden": hidden, "input": 64}]}, "steps": 400}
        for name, hidden in (("lstm", 128), ("gru", 96))
    ]
    chip = {"kind": "column-npu", "frequency_mhz": 260, "cores": [core]}
    scenario = load_scenario({"chip": chip, "jobs": jobs})
    assert same_totals(targets.lower(scenario.chip, scenario.jobs))


@pytest.mark.parametrize("model", ["deepbench-gru-1024-1500", "lstm-2x512", "bilstm-256"])
def test_steps_cost_nothing_once_the_run_is_periodic(model: str) -> None:
    from lstmsim import load_scenario

    events = []
    for steps in (150, 1500):
        scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": model, "steps": steps}]})
        program = targets.lower(scenario.chip, scenario.jobs)
        done = fast.FastRun(program, keep=False, skipping=True, budget=NEVER)
        done.finish()
        events.append(NEVER - done.state[layout.BUDGET])
    assert events[1] <= 1.3 * events[0]


def uncompiled(program: Program) -> Trace | str:
    try:
        return fast.run(program, budget=NEVER)
    except DeadlockError as deadlock:
        return str(deadlock)


@numba
@settings(max_examples=max(20, EXAMPLES // 4))
@given(st.one_of(programs(), joint_programs(), joint_programs(wide=True)), st.sampled_from([1, 30]))
def test_the_compiled_loop_gives_the_same(program: Program, times: int) -> None:
    program = longer(program, times)
    plain = uncompiled(program)
    compiled.compiled()
    assert outcome(program, "fast") == plain
    if isinstance(plain, Trace):
        assert fast.totals(program) == totals_of(program, plain)


@numba
def test_a_run_goes_on_compiled_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    from lstmsim import load_scenario

    monkeypatch.setattr(compiled, "loaded", lambda: False)
    jobs = [{"model": "lstm-512", "steps": 30, "count": 3}, {"model": "bilstm-256", "steps": 12, "arrival": 500}]
    scenario = load_scenario({"chip": "column-npu-4x16k", "jobs": jobs})
    program = targets.lower(scenario.chip, scenario.jobs)
    whole = reference.run(program)
    for budget in (1, 7, 100, 1000):
        assert fast.run(program, budget=budget) == whole
        assert fast.totals(program, budget=budget) == totals_of(program, whole)


def test_totals_are_compared_by_value() -> None:
    one = Totals(np.zeros((1, 7)), np.zeros(1), np.zeros(1), np.zeros((1, 4)))
    assert one == Totals(np.zeros((1, 7)), np.zeros(1), np.zeros(1), np.zeros((1, 4)))
    assert one != Totals(np.ones((1, 7)), np.zeros(1), np.zeros(1), np.zeros((1, 4)))
