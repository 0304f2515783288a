"""Jobs that begin with the last states of others, executed: on any cores, split, paused, with weights from a memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lstmsim import engines, machines
from lstmsim.analysis.replay import execute
from lstmsim.base.errors import InputError, ReplayError
from lstmsim.files.scenario.first_states import state_shapes
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.jobs import JobData
from lstmsim.model.numerics.weights import random_network, random_stimulus
from lstmsim.model.scenario import Job, Scenario
from tests.replays import crowds, legal


def data_of(scenario: Scenario) -> dict[int, JobData]:
    networks = {job.model: random_network(job.model, seed=1) for job in scenario.jobs}
    return {
        index: JobData(
            networks[job.model], random_stimulus(job.model, job.steps, index), "random", "random", job.states_of
        )
        for index, job in enumerate(scenario.jobs)
    }


def chained(scenario: Scenario) -> Scenario:
    """The scenario with every job after the last one before it that has states like its own; nobody is turned away."""
    jobs: list[Job] = []
    for job in scenario.jobs:
        same = [n for n, each in enumerate(jobs) if state_shapes(each.model) == state_shapes(job.model)]
        before = same[-1] if same else None
        jobs.append(replace(job, after=before, states_of=before, queue_limit=None, patience=None))
    return replace(scenario, jobs=tuple(jobs))


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(st.data(), st.sampled_from(["weights", "pauses"]), st.sampled_from(sorted(engines.ENGINES)))
def test_chains_compute_what_the_golden_model_does(data: st.DataObject, kind: str, engine: str) -> None:
    scenario = chained(data.draw(crowds(kind)))
    program, trace = legal(scenario, engine)
    numbers = data_of(scenario)
    assert len(execute(scenario, program, trace, numbers, fixed=True)) == len(scenario.jobs)


MODEL = Model("m", (Layer(cell("lstm"), 6, 5),))
CHIP = ColumnNpu("c", 100, (ColumnCore(npe=64, ep=4, vp=16, threads=2),))


def pair(**second: object) -> Scenario:
    jobs = Job("one", MODEL, 3), replace(Job("two", MODEL, 3, after=0), states_of=0, **second)  # type: ignore[arg-type]
    return Scenario(CHIP, jobs)


def test_a_schedule_that_begins_too_early_is_found() -> None:
    early = pair(after=None)
    program = machines.lower(CHIP, early.jobs)
    with pytest.raises(ReplayError, match=r"job one: the result|it is there only from cycle|not been computed"):
        execute(early, program, engines.run(program, "fast"), data_of(early), fixed=True)


def test_who_follows_a_job_that_was_rejected_has_no_states() -> None:
    alone = pair()
    first = replace(alone.jobs[0], queue_limit=0, arrival=1)
    filler = tuple(Job(f"f{number}", MODEL, 9) for number in range(3))
    scenario = Scenario(CHIP, (*filler, first, replace(alone.jobs[1], after=3, states_of=3)))
    program = machines.lower(CHIP, scenario.jobs)
    trace = engines.run(program, "fast")
    assert trace.task("core")[3] < 0
    with pytest.raises(InputError, match="job two: begins with the last states of one, which was rejected"):
        execute(scenario, program, trace, data_of(scenario), fixed=False)


def test_the_states_are_those_of_the_machine_not_of_the_golden_model() -> None:
    scenario = pair()
    program = machines.lower(CHIP, scenario.jobs)
    done = execute(scenario, program, engines.run(program, "fast"), data_of(scenario), fixed=False)
    from_zero = data_of(replace(scenario, jobs=(scenario.jobs[0], replace(scenario.jobs[1], states_of=None))))
    plain = execute(scenario, program, engines.run(program, "fast"), from_zero, fixed=False)
    assert np.abs(done[1].run.output() - plain[1].run.output()).max() > 0.01
