"""Several random jobs at once against the model of `tests/oracle`: their places, and how they meet in the memories."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim import engines
from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.jobs import lower
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from tests.machines.multicore.chips import flat
from tests.machines.multicore.random_work import jobs, layers_of, machines
from tests.oracle import multicore_jobs as model
from tools.multicore_waits import step_times, waits_of

#: 1,000 and more by LSTMSIM_EXAMPLES=1000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "3"))


@st.composite
def several(draw: st.DrawFn) -> tuple[MulticoreCpu, list[model.Job]]:
    """Two to four jobs on at least two cores; some on equally many threads, so that they want the same places."""
    machine = draw(machines().filter(lambda each: len(each.cores) > 1))
    drawn = draw(st.lists(jobs(machine), min_size=2, max_size=4))
    if draw(st.booleans()):
        for each in drawn[1:]:
            each.threads = min(drawn[0].threads, 2)
    return machine, drawn


def job_of(number: int, job: model.Job) -> Job:
    network = Model(f"m{number}", layers_of(job))
    return Job(f"j{number}", network, job.steps, job.arrival, job.frame_interval, batch=job.batch, threads=job.threads)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(several())
def test_jobs_at_once(case: tuple[MulticoreCpu, list[model.Job]]) -> None:
    machine, drawn = case
    expected = model.simulate(flat(machine), drawn)
    program = lower(machine, [job_of(number, job) for number, job in enumerate(drawn)])
    for engine in engines.ENGINES:
        trace = engines.run(program, engine)
        assert trace.task("admitted").tolist() == [each.admitted for each in expected]
        assert trace.task("finish").tolist() == [each.finish for each in expected]
        waits = [dict(waits_of(step_times(program, trace, number))) for number in range(len(drawn))]
        assert waits == [each.waits for each in expected]
