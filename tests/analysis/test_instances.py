"""Units of several ways and tasks behind those of jobs, in timelines, windows, reports and traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from lstmsim import engines
from lstmsim.analysis.files import load_trace, save_trace
from lstmsim.analysis.report import pe_cycles
from lstmsim.analysis.spans import busy_windows
from lstmsim.analysis.timeline import MAIN, STATES, Timeline, build_timeline, owners
from lstmsim.base.errors import DeadlockError
from lstmsim.model.figures import CoreFigures
from lstmsim.program.accounts import totals_of
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit
from tests.barrier_programs import barrier_programs
from tests.strategies import examples
from tests.timelines import assert_equal

pytestmark = pytest.mark.needs_core


def program() -> Program:
    """Two jobs on a host; the first has two blocks of two warps on the two ways of a core, the second has one."""
    issue, memory = Unit("issue", "fine", instances=2), Unit("dram0", "fifo")
    cores = (
        Core(0, (issue, Unit("lsu", "fifo")), 4),
        Core(1, (memory,), 4, accounted=None, shared=True, mirrors=True),
        Core(2, (Unit("host", "fifo", shown=False),), accounted=None, shared=True),
    )
    empty = ((2, (Phase(Body(()), 1),)),)
    jobs = [Task(name, empty, (), (2,), starts=n, until=2 + n) for n, name in enumerate(("a", "b"))]
    load = (Operation(0), Operation(1, needs=(Dependence(0, 1),)))
    remote = Operation(0, cycles=3, result_cycles=9, member=2, needs=(Dependence(1, 1, "memory"),))
    use = Operation(0, cycles=2, result_cycles=2, needs=(Dependence(2, 9, "memory"),), work=32)
    other = Operation(0, cycles=4, result_cycles=4, member=1, work=64)
    block = Task("a", ((0, (Phase(Body((*load, remote, use, other)), 1),)),), (), (0,), gang=((0, 1, 1),))
    blocks = [replace(block, behind=job, ends=2 + job, name="ab"[job]) for job in (0, 0, 1)]
    return Program(cores, (*jobs, *blocks), (1, 1, 2, 1))


def timeline() -> Timeline:
    return build_timeline(program(), engines.run(program()), ["a", "b"], "chip", 100.0, "issue")


def test_each_way_has_a_row_and_each_span_its_job() -> None:
    drawn = timeline()
    assert [row.name for row in drawn.rows] == [
        *("core 0 issue 0", "core 0 issue 1"),
        *(f"core 0 thread {thread}" for thread in range(4)),
        *("core 0 lsu", "core 1 dram0"),
    ]
    lengths = drawn.end - drawn.start
    for row in range(2):
        assert lengths[drawn.row == row].sum() == drawn.makespan_cycles
    busy = drawn.state == STATES.index("busy")
    # warp 0 of each block issues for 3 cycles on way 0, warp 1 for 4 on way 1
    assert [lengths[busy & (drawn.row == row)].sum() for row in range(2)] == [9, 12]
    assert [lengths[busy & (drawn.row == row) & (drawn.job == 1)].sum() for row in range(2)] == [3, 4]
    assert set(drawn.job[busy].tolist()) == {0, 1}


def test_names_of_all_ways_add_up() -> None:
    trace = engines.run(program())
    totals = totals_of(program(), trace)
    assert totals == engines.totals(program())
    assert totals.cycles.sum(axis=1).tolist() == [2 * trace.makespan_cycles, 0, 0]
    assert totals.work.tolist() == [3 * 96, 0, 0]


def test_a_window_has_the_mean_of_the_ways() -> None:
    drawn = timeline()
    (busy,) = busy_windows(drawn, np.array([0, drawn.makespan_cycles])).values()
    assert busy.tolist() == [(9 + 12) / 2 / drawn.makespan_cycles]


def test_parts_of_a_core_count_for_a_part_of_its_cycles() -> None:
    core = CoreFigures(peak=32, issuing=32, instances=2)
    losses = pe_cycles(core, 100, {"busy": 10, "idle": 14})
    assert losses == {"useful": 100, "padding": 60, "unmapped": 0, "idle": 224}
    assert sum(losses.values()) == core.peak * 12


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_rows_of_ways_come_back_from_files(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"trace{suffix}"
    save_trace(timeline(), path)
    assert_equal(load_trace(path), timeline())


def test_a_task_behind_those_of_jobs_belongs_to_the_job_that_it_comes_behind() -> None:
    assert owners(program(), 2).tolist() == [0, 1, 0, 0, 1]
    strange = replace(program(), tasks=tuple(replace(each, behind=None) for each in program().tasks))
    assert owners(strange, 2).tolist() == [0, 1, 0, 0, 1]
    assert owners(replace(strange, tasks=(*strange.tasks, Task("c", (), (), ()))), 2).tolist()[-1] == -1
    assert owners(program(), 5).tolist() == [0, 1, 2, 3, 4]


@settings(max_examples=examples(12))
@given(barrier_programs())
def test_rows_of_main_units_name_every_cycle_and_no_spans_overlap(random: Program) -> None:
    try:
        trace = engines.run(random)
    except DeadlockError:
        return
    drawn = build_timeline(random, trace, [task.name for task in random.tasks], "chip", 100.0)
    lengths = drawn.end - drawn.start
    for number, row in enumerate(drawn.rows):
        mine = drawn.row == number
        assert (drawn.start[mine][1:] >= drawn.end[mine][:-1]).all()
        if row.kind == MAIN:
            assert lengths[mine].sum() == drawn.makespan_cycles
