"""Random programs whose tasks stop others, give up and find queues full: both engines, and an oracle without events."""

from __future__ import annotations

import os

from hypothesis import given, note, settings
from hypothesis import strategies as st

from lstmsim import engines
from lstmsim.base.errors import DeadlockError
from lstmsim.engines.reference import run as reference
from lstmsim.program.accounts import totals_of
from lstmsim.program.flatten import flat_of, names_of
from lstmsim.program.program import Program
from lstmsim.program.unflatten import program_of
from tests.barrier_programs import barrier_programs
from tests.oracle.tasks import simulate
from tests.packing import packed
from tests.strategies import joint_programs, preempting_programs

#: 500 and more by LSTMSIM_EXAMPLES=500; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "6"))


def check(program: Program) -> None:
    note(f"from lstmsim.program.program import *\nprogram = {program!r}")
    try:
        trace = reference.run(program)
    except DeadlockError:
        return
    assert engines.run(program) == trace
    end = max(int(trace.task(name).max()) for name in ("finish", "admitted"))
    rows, pauses = simulate(program, end + 1)
    assert rows == trace.tasks.tolist()
    assert pauses == trace.pauses.tolist()


@settings(max_examples=EXAMPLES)
@given(preempting_programs())
def test_tasks_that_stop_others(program: Program) -> None:
    check(program)


@settings(max_examples=EXAMPLES // 2)
@given(st.one_of(joint_programs(), joint_programs(moldable=True)))
def test_tasks_that_take_several_cores_or_need_room(program: Program) -> None:
    check(program)


@settings(max_examples=EXAMPLES)
@given(barrier_programs())
def test_tasks_and_operations_that_meet_at_barriers(program: Program) -> None:
    check(program)


@settings(max_examples=EXAMPLES // 2)
@given(barrier_programs(plain=True))
def test_packed_bodies_and_named_cycles_of_each_way(program: Program) -> None:
    note(f"from lstmsim.program.program import *\nprogram = {program!r}")
    flat = flat_of(program)
    assert flat_of(program_of(flat, names_of(program))) == flat
    try:
        trace = engines.run(program)
    except DeadlockError:
        return
    assert engines.run(packed(flat)) == trace
    assert engines.run(packed(flat), "reference") == trace
    totals = engines.totals(program)
    assert totals == totals_of(program, trace) == engines.totals(packed(flat))
    for core, cycles in zip(program.cores, totals.cycles.tolist(), strict=True):
        ways = 0 if core.accounted is None else core.units[core.accounted].instances
        assert sum(cycles) == ways * totals.makespan_cycles
