"""Random recurrent jobs against the model of `tests/oracle`: plans, traffic of each traced step, time, waits."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim import engines
from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.jobs import Shape, job_phases, traced
from lstmsim.machines.multicore.lines.space import COLUMNS
from lstmsim.machines.multicore.stages import cores_of, place_of
from lstmsim.program.program import Program, Task
from tests.machines.multicore.chips import flat
from tests.machines.multicore.random_work import cut_of, jobs, layers_of, machines
from tests.oracle.multicore import total_counts
from tests.oracle.multicore_jobs import Job, simulate
from tools.multicore_waits import step_times, waits_of

#: 1,000 and more by LSTMSIM_EXAMPLES=1000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "5"))


@st.composite
def one_job(draw: st.DrawFn) -> tuple[MulticoreCpu, Job]:
    machine = draw(machines())
    return machine, draw(jobs(machine))


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(one_job())
def test_a_job_alone(case: tuple[MulticoreCpu, Job]) -> None:
    machine, job = case
    (expected,) = simulate(flat(machine), [job])
    shape = Shape(layers_of(job), job.steps, job.batch, job.threads)
    said = traced(machine, shape, 0)
    for ours, plans, steps in zip(said, expected.plans, expected.traced, strict=True):
        assert [cut_of(plan.division.cut) for plan in ours.plans] == [plan.cut for plan in plans]
        counts = [[row_of(machine, part) for part in map(total_counts, step)] for step in steps]
        assert [step.counts.tolist() for step in ours.steps] == counts
    first, *others = place_of(machine, 0, job.threads)
    phases = ((0, job_phases(machine, shape, 0)),)
    task = Task("job", phases, (), (first,), job.arrival, job.frame_interval, gang=(tuple(others),))
    program = Program(cores_of(machine), (task,))
    for engine in engines.ENGINES:
        trace = engines.run(program, engine)
        assert trace.makespan_cycles == expected.finish
        assert dict(waits_of(step_times(program, trace))) == expected.waits


def row_of(machine: MulticoreCpu, totals: dict) -> list[int]:
    memories = (totals["memory"].get(str(domain), 0) for domain in range(machine.domains))
    return [*(totals[name] for name in COLUMNS), *memories]
