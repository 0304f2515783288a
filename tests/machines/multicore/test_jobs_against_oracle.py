"""Random recurrent jobs on both engines, alone and several at once, against the model of `tests/oracle`."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim import engines
from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.jobs import Shape, lower, traced, twin
from lstmsim.machines.multicore.lines.space import COLUMNS
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job
from tests.machines.multicore.chips import flat
from tests.machines.multicore.random_work import machines
from tests.oracle import multicore_jobs as model
from tests.oracle.multicore import total_counts
from tests.oracle.multicore_caches import Caches
from tools.multicore_waits import step_times, waits_of

#: 1,000 and more by LSTMSIM_EXAMPLES=1000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "6"))
SIZES = st.sampled_from([1, 2, 3, 5, 8, 11, 16, 21])


@st.composite
def jobs(draw: st.DrawFn, machine: MulticoreCpu, steps: st.SearchStrategy[int]) -> model.Job:
    widths = draw(st.lists(SIZES, min_size=2, max_size=3))
    return model.Job(
        cell=draw(st.sampled_from(["lstm", "gru", "rnn"])),
        layers=list(zip(widths[1:], widths, strict=False)),
        steps=draw(steps),
        batch=draw(st.sampled_from([1, 1, 2, 3])),
        threads=draw(st.integers(1, len(machine.cores))),
        arrival=draw(st.sampled_from([0, 0, 3, 400])),
        frame_interval=draw(st.sampled_from([0, 0, 50, 3000])),
    )


def as_job(job: model.Job, name: str) -> Job:
    layers = tuple(Layer(cell(job.cell), hidden, width) for hidden, width in job.layers)
    return Job(
        name, Model("m", layers), job.steps, job.arrival, job.frame_interval, batch=job.batch, threads=job.threads
    )


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_jobs_in_time(data: st.DataObject) -> None:
    """Up to four jobs: places that they share, places that are too few, cores without a place."""
    machine = data.draw(machines())
    many = data.draw(st.lists(jobs(machine, st.sampled_from([1, 2, 3, 4, 6])), min_size=1, max_size=4))
    check(machine, many, tuple(engines.ENGINES))


def check(machine: MulticoreCpu, many: list[model.Job], used: tuple[str, ...] = ("fast",)) -> None:
    program = lower(machine, [as_job(job, f"job {number}") for number, job in enumerate(many)])
    expected = model.simulate(flat(machine), many)
    for engine in used:
        trace = engines.run(program, engine)
        assert trace.task("admitted").tolist() == [each.admitted for each in expected]
        assert trace.task("finish").tolist() == [each.finish for each in expected]
        waits = [waits_of(step_times(program, trace, number)) for number in range(len(many))]
        assert waits == [each.waits for each in expected]


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_traffic_of_jobs(data: st.DataObject) -> None:
    """Every count of each traced time step, wherever the job runs."""
    machine = data.draw(machines())
    job = data.draw(jobs(machine, st.integers(1, 4)))
    first = twin(machine, data.draw(st.integers(0, len(machine.cores) // job.threads - 1)) * job.threads, job.threads)
    shape = Shape(as_job(job, "job").model.layers, job.steps, job.batch, job.threads)
    space, layers = model.layout(flat(machine), job, first)
    caches = Caches(flat(machine), space)
    for one, layer in zip(traced(machine, shape, first), layers, strict=True):
        for number, step in enumerate(one.steps):
            for counts, work in zip(
                step.counts, model.traced_step(flat(machine), job, layer, caches, first, number), strict=True
            ):
                expected = total_counts(work)
                memory = {str(place): lines for place, lines in enumerate(counts[len(COLUMNS) :]) if lines}
                assert dict(zip(COLUMNS, counts.tolist(), strict=False)) | {"memory": memory} == expected
