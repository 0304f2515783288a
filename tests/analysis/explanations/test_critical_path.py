"""The critical path: every cycle once, each link justified, ties as documented."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lstmsim import engines, machines
from lstmsim.analysis.explanations.critical_path import HELD_BY, KINDS, CriticalPath, critical_path
from lstmsim.analysis.explanations.explanation import PathTable
from lstmsim.analysis.explanations.trace_index import TraceIndex
from lstmsim.base.errors import DeadlockError
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Buffer, Core, Moldable, Phase, Program, Task, Unit
from lstmsim.program.trace import Trace
from tests.strategies import joint_programs, programs, scenarios

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "10"))
Link = tuple[int, int, str, str]


def links(path: CriticalPath) -> list[Link]:
    columns = (path.start.tolist(), path.end.tolist(), path.kind.tolist(), path.held_by.tolist())
    return [(start, end, KINDS[kind], HELD_BY[held]) for start, end, kind, held in zip(*columns, strict=True)]


def check(program: Program, trace: Trace) -> None:
    """Each cycle on one segment; each busy segment lies within an issue of its row; shares add up."""
    index = TraceIndex(program, trace)
    path = critical_path(program, trace, index)
    assert path.start[0] == 0
    assert path.end[-1] == trace.makespan_cycles
    assert np.array_equal(path.start[1:], path.end[:-1])
    assert (path.cycles > 0).all()
    busy = np.isin(path.kind, [KINDS.index("busy"), KINDS.index("turn")])
    assert (path.start[busy] >= index.start[path.row[busy]]).all()
    assert (path.end[busy] <= index.end[path.row[busy]]).all()
    latency = path.kind == KINDS.index("latency")
    assert (path.start[latency] > index.last[path.row[latency]]).all()
    table = PathTable(index, path)
    assert sum(share.cycles for share in table.shares()) == trace.makespan_cycles
    assert sum(table.causes().values()) == trace.makespan_cycles
    on_array = sum(share.cycles for share in table.shares() if share.array and share.kind in ("busy", "turn"))
    assert on_array + sum(leg.cycles for leg in table.legs()) == trace.makespan_cycles
    assert all(sum(cycles for _, cycles in leg.parts) == leg.cycles for leg in table.legs())


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(st.one_of(joint_programs(), joint_programs(moldable=True)))
def test_every_cycle_of_tasks_that_are_paused_or_share_cores_is_on_one_segment(program: Program) -> None:
    try:
        trace = engines.run(program)
    except DeadlockError:
        assume(False)
    if trace.makespan_cycles:
        check(program, trace)


@settings(max_examples=EXAMPLES)
@given(programs())
def test_every_cycle_of_a_random_program_is_on_one_segment(program: Program) -> None:
    try:
        trace = engines.run(program)
    except DeadlockError:
        return
    check(program, trace)


@settings(max_examples=EXAMPLES)
@given(scenarios())
def test_every_cycle_of_a_random_scenario_is_on_one_segment(scenario: Scenario) -> None:
    program = machines.lower(scenario.chip, scenario.jobs)
    check(program, engines.run(program))


@pytest.mark.parametrize("policy", ["coarse", "fine"])
@pytest.mark.parametrize("name", ["lstm", "gru-lbr0", "slstm"])
def test_every_cycle_of_a_core_full_of_threads_is_on_one_segment(name: str, policy: str) -> None:
    core = ColumnCore(npe=256, ep=8, vp=32, threads=3, tail_width=2, thread_policy=policy, switch_cycles=2)
    deep = Model("m", (Layer(cell(name), 20, 20), Layer(cell(name), 20, 20)))
    jobs = [Job(f"j{number}", deep, steps=7, arrival=50 * number) for number in range(5)]
    program = machines.lower(ColumnNpu("c", 260, (core,)), jobs)
    check(program, engines.run(program))


@pytest.mark.halved
@pytest.mark.parametrize("preset", ["brainwave-s10", "intel-npu-rtl", "intel-npu-cpp"])
@pytest.mark.parametrize("name", ["lstm", "gru", "gru-lbr0", "rnn", "dense"])
def test_every_cycle_of_a_row_npu_is_on_one_segment(preset: str, name: str) -> None:
    deep = Model("m", (Layer(cell(name), 300, 200), Layer(cell(name), 100, 300)))
    chip = load_chip(preset)
    jobs = [Job("a", deep, steps=3, batch=2), Job("b", deep, steps=2, batch=7, arrival=900, frame_interval=700)]
    program = machines.lower(chip, jobs)
    check(program, engines.run(program))


def slower(program: Program, phase: int, operation: int) -> Program:
    """One operation and all that waits for it a cycle slower."""
    task = program.tasks[0]
    phases = []
    for number, each in enumerate(task.variants[0][1]):
        operations = []
        for index, one in enumerate(each.body.operations):
            needs = tuple(
                need._replace(delay=need.delay + 1)
                if (need.operation, number if need.phase is None else need.phase) == (operation, phase)
                else need
                for need in one.needs
            )
            more = int((number, index) == (phase, operation))
            changed = one._replace(needs=needs, cycles=one.cycles + more, result_cycles=one.result_cycles + more)
            operations.append(changed)
        phases.append(replace(each, body=Body(tuple(operations))))
    return Program(program.cores, (replace(task, variants=((0, tuple(phases)),)),))


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(programs(), st.data())
def test_what_is_on_the_path_lengthens_the_run_when_it_gets_slower(program: Program, data: st.DataObject) -> None:
    # one task in one context: nothing is chosen, so the run can be no luckier than its longest chain
    core = replace(program.cores[0], kind=0, contexts=1)
    task = replace(program.tasks[0], cores=(0,), variants=((0, program.tasks[0].phases(program.cores[0].kind)),))
    program = Program((core,), (replace(task, buffers=((0, task.slots(program.cores[0].kind)),)),))
    try:
        trace = engines.run(program)
    except DeadlockError:
        return
    path = critical_path(program, trace)
    on_path = path.row[np.isin(path.kind, [KINDS.index("busy"), KINDS.index("latency")])]
    assume(len(on_path))
    row = trace.issues[data.draw(st.sampled_from(on_path.tolist()))]
    changed = engines.run(slower(program, int(row[5]), int(row[7])))
    assert changed.makespan_cycles > trace.makespan_cycles


def program_of(*operations: Operation, repeat: int = 1, units: int = 2, contexts: int = 1, tasks: int = 1) -> Program:
    core = Core(0, tuple(Unit(name, "coarse") for name in ("array", "tail", "third")[:units]), contexts)
    phases = (Phase(Body(operations), repeat),)
    buffers = ((0, (Buffer("bank", 1),)),)
    return Program((core,), tuple(Task(f"t{i}", ((0, phases),), buffers, (0,)) for i in range(tasks)))


def path_of(program: Program) -> list[Link]:
    return links(critical_path(program, engines.run(program)))


def test_the_array_alone_is_all_of_it() -> None:
    assert path_of(program_of(Operation(0, count=3), repeat=2)) == [
        (0, 3, "busy", "order"),
        (3, 5, "busy", "order"),
        (5, 6, "busy", "result"),
    ]


def test_where_issue_and_result_end_together_the_path_follows_the_issue() -> None:
    # the second operation lacks its result until cycle 4, when the third has just left the unit
    slow = Operation(1, needs=(Dependence(0, 2),), result_cycles=2)
    after = Operation(0, needs=(Dependence(1, 2),))
    program = program_of(Operation(0), slow, Operation(0, count=3), after)
    assert path_of(program) == [(0, 1, "busy", "order"), (1, 4, "busy", "order"), (4, 5, "busy", "result")]


def test_results_that_leave_one_after_another_are_issue_time_as_far_as_they_are_waited_for() -> None:
    # 8 turns in the tail, each result 6 cycles after its turn: the first is there after 6, the last after 13
    for delay, busy in ((6, 1), (9, 4), (13, 8)):
        tail = Operation(1, cycles=8, needs=(Dependence(0, 3),), result_cycles=13)
        path = path_of(program_of(Operation(0), tail, Operation(0, needs=(Dependence(1, delay),), result_cycles=20)))
        assert path[2:4] == [(3, 3 + busy, "busy", "hazard"), (3 + busy, 3 + delay, "latency", "hazard")]


def test_a_slot_that_is_freed_late_is_backpressure() -> None:
    fill, empty = Operation(0, takes=0), Operation(1, cycles=5, needs=(Dependence(0, 2),), frees=0, result_cycles=5)
    assert path_of(program_of(fill, empty, repeat=2)) == [
        (0, 1, "busy", "hazard"),
        (1, 2, "latency", "hazard"),
        (2, 7, "busy", "backpressure"),
        (7, 8, "busy", "hazard"),
        (8, 9, "latency", "hazard"),
        (9, 14, "busy", "result"),
    ]


def test_switches_and_turns_of_other_threads() -> None:
    program = program_of(Operation(0, count=4), contexts=2, tasks=2)
    core = replace(program.cores[0], units=(Unit("array", "coarse", switch_cycles=3),))
    program = Program((core,), program.tasks)
    assert path_of(program) == [
        (0, 4, "turn", "turn"),
        (4, 7, "switch", "switch"),
        (7, 10, "busy", "order"),
        (10, 11, "busy", "result"),
    ]


def test_one_thread_two_tasks_the_second_waits_for_the_first_to_end() -> None:
    program = program_of(Operation(0, count=2, result_cycles=5), tasks=2)
    trace = engines.run(program)
    path = critical_path(program, trace)
    assert path.handovers == 1
    assert links(path)[:3] == [(0, 1, "busy", "order"), (1, 2, "busy", "thread"), (2, 6, "latency", "thread")]


def test_a_task_that_comes_after_another() -> None:
    program = program_of(Operation(0, count=2), contexts=2, tasks=2)
    late = replace(program.tasks[1], after=0, release=10)
    path = path_of(Program(program.cores, (program.tasks[0], late)))
    assert path[1:3] == [(1, 2, "busy", "after"), (2, 12, "arrival", "arrival")]


def test_a_trace_of_another_program_is_refused() -> None:
    trace = engines.run(program_of(Operation(0, count=2), Operation(0, needs=(Dependence(0, 9),))))
    with pytest.raises(ValueError, match="not one of this program"):
        critical_path(program_of(Operation(0, count=2), Operation(0, needs=(Dependence(0, 8),))), trace)


def test_nothing_ran() -> None:
    program = Program((Core(0, (Unit("array", "coarse"),)),), ())
    assert not len(critical_path(program, engines.run(program)).start)


def test_a_task_may_have_more_phases_over_several_cores_than_on_one() -> None:
    phase = Phase(Body((Operation(0, count=3),)), 2)
    other = Phase(Body((Operation(0, member=1, count=2),)), 2)
    task = Task("t", ((0, (phase,)),), (), (0, 1), moldable=(Moldable(2, (phase, other)),))
    program = Program((Core(0, (Unit("array", "coarse"),)),) * 2, (task,))
    check(program, engines.run(program))


@pytest.mark.parametrize(
    ("units", "cycles", "last_cycles", "several"),
    [
        # a third operation waits for two others: for results that come together, for one of them
        ((0, 1, 2), (4, 4), 1, True),
        ((0, 1, 2), (4, 5), 1, False),
        ((0, 1, 2), (5, 4), 1, False),
        # on the unit of the first: the unit is free just when the second's results come, or before
        ((0, 1, 0), (4, 4), 1, True),
        ((0, 1, 0), (4, 5), 1, False),
        # all on one unit: one chain, though each is ready when the one before ends
        ((0, 0, 0), (4, 4), 1, False),
    ],
)
def test_a_path_is_one_of_several_where_two_things_end_together(
    units: tuple[int, int, int], cycles: tuple[int, int], last_cycles: int, several: bool
) -> None:
    needs = tuple(Dependence(at, each, "hazard") for at, each in enumerate(cycles))
    first = [Operation(unit, cycles=n, result_cycles=n) for unit, n in zip(units[:2], cycles, strict=True)]
    last = Operation(units[2], cycles=last_cycles, result_cycles=last_cycles, needs=needs)
    task = Task("t", ((0, (Phase(Body((*first, last)), 1),)),), (), (0,))
    kinds = tuple(Unit(name, "fifo") for name in ("array", "tail", "third"))
    program = Program((Core(0, kinds, 1),), (task,))
    trace = engines.run(program)
    check(program, trace)
    assert critical_path(program, trace).several == several


def test_two_equal_jobs_on_two_cores_have_two_paths() -> None:
    chip = load_chip("column-npu-16k")
    model = Model("m", (Layer(cell("lstm"), 64, 64),))
    for other, several in ((3, True), (2, False)):
        chip = replace(chip, cores=(replace(chip.cores[0], threads=1),) * 2)
        program = machines.lower(chip, (Job("a", model, 3), Job("b", model, other)))
        assert critical_path(program, engines.run(program)).several == several
