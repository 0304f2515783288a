"""Where the time of requests goes: every cycle of each of them once, and cases that are known by hand."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import assume, given, settings

from lstmsim import engines, machines
from lstmsim.analysis.explanations.slowest import SHARES, latency_shares
from lstmsim.base.errors import DeadlockError
from lstmsim.model.scenario import Scenario
from lstmsim.program.accounts import core_spans
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace
from tests.strategies import joint_programs, programs, scenarios

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "8"))


def check(program: Program, trace: Trace) -> None:
    """Every cycle from arrival to finish has one name; what threads do is what the array does."""
    shares = latency_shares(program, trace)
    served = trace.task("core") >= 0
    latency = trace.task("finish") - trace.task("arrived")
    assert (shares >= 0).all()
    assert np.array_equal(shares.sum(axis=1)[served], latency[served])
    assert not shares[~served].any()
    named = dict(zip(SHARES, shares.T, strict=True))
    paused = np.zeros(len(program.tasks), dtype=np.int64)
    np.add.at(paused, trace.pause("task"), trace.pause("resumed") - trace.pause("paused"))
    assert np.array_equal(named["paused"], paused)
    waited = named["queue"] + named["queue, weights"] + named["queue, kept"]
    assert np.array_equal(waited[served], (trace.task("admitted") - trace.task("arrived"))[served])
    issued = np.zeros(len(program.tasks), dtype=np.int64)
    for number, core in enumerate(program.cores):
        if not core.shared:
            mine = (trace.issue("core") == number) & (trace.issue("unit") == core.accounted)
            cycles = trace.issue("count")[mine] * trace.issue("cycles")[mine]
            np.add.at(issued, trace.issue("task")[mine], cycles)
    alone = np.ones(len(program.tasks), dtype=bool)
    alone[trace.thread_slot("task")] = False
    assert np.array_equal(named["work"][alone], issued[alone])
    assert (named["work"] <= issued).all()


def ran(program: Program) -> Trace:
    try:
        return engines.run(program)
    except DeadlockError:
        assume(False)
        raise


def by_cycle(program: Program, trace: Trace, task: int) -> dict[str, int]:
    """The same of a task on one core, cycle by cycle."""
    core = int(trace.task("core")[task])
    spans = core_spans(program, trace, core)
    counts = dict.fromkeys(SHARES, 0)
    held = {name: each for name, each in spans.waits.items() if name != "ready"} | {"work": spans.busy}
    for name, each in held.items():
        mine = each.task == task
        counts[name] = int((each.end[mine] - each.start[mine]).sum())
    switching = {cycle for a, b in zip(spans.switch.start, spans.switch.end, strict=True) for cycle in range(a, b)}
    issuing = {cycle for a, b in zip(spans.busy.start, spans.busy.end, strict=True) for cycle in range(a, b)}
    ready = spans.waits["ready"]
    mine = ready.task == task
    for start, end in zip(ready.start[mine].tolist(), ready.end[mine].tolist(), strict=True):
        for cycle in range(start, end):
            # a thread that could issue while the array does nothing would be a mistake of the engine
            assert (cycle in issuing) != (cycle in switching)
            counts["switch" if cycle in switching else "other threads"] += 1
    return counts


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(joint_programs())
def test_tasks_that_pause_share_cores_and_wait_for_weight_sets_add_up(program: Program) -> None:
    check(program, ran(program))


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(programs())
def test_tasks_of_one_core_add_up_and_equal_a_count_of_cycles(program: Program) -> None:
    trace = ran(program)
    check(program, trace)
    shares = latency_shares(program, trace)
    for task in range(len(program.tasks)):
        counted = by_cycle(program, trace, task)
        counted["queue"] = int(trace.task("admitted")[task] - trace.task("arrived")[task])
        assert dict(zip(SHARES, shares[task].tolist(), strict=True)) == counted


@settings(max_examples=EXAMPLES)
@given(scenarios())
def test_requests_of_scenarios_add_up(scenario: Scenario) -> None:
    program = machines.lower(scenario.chip, scenario.jobs)
    check(program, engines.run(program))
