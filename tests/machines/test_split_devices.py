"""Split jobs on chips of several devices: both engines, the cycle-stepped model of section 9, its example, numbers."""

from __future__ import annotations

import os
from dataclasses import replace

from hypothesis import given, settings

from lstmsim import engines
from lstmsim.engines.reference import run as reference
from lstmsim.machines import lower
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.machines.column.shape import ARRAY
from lstmsim.model.scenario import Job
from lstmsim.program.accounts import named_cycles, totals_of
from tests.oracle import split as oracle
from tests.splits import issues, linked

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "12"))


@settings(max_examples=EXAMPLES, deadline=None)
@given(linked())
def test_random_jobs_over_devices_as_the_cycle_stepped_model_has_them(case: tuple[ColumnNpu, list[Job]]) -> None:
    chip, jobs = case
    assert chip.devices is not None
    program = lower(chip, jobs)
    trace = reference.run(program)
    assert engines.run(program) == trace
    assert engines.totals(program) == totals_of(program, trace)
    places = [(job, job.cores or ()) for job in jobs]
    device = tuple(map(chip.device_of, range(len(chip.cores))))
    finish, cores = oracle.simulate_splits(places, chip.cores[0], device, chip.exchange, chip.devices)
    assert trace.task("finish").tolist() == finish
    for on, core in enumerate(cores):
        assert issues(trace, on, ARRAY) == core.issued
        names = {name: cycles for name, cycles in named_cycles(program, trace, on).totals().items() if cycles}
        first = min(job.arrival for job in jobs)
        assert names == core.names | ({"idle": core.names.get("idle", 0) + first} if first else {})


@settings(max_examples=EXAMPLES, deadline=None)
@given(linked())
def test_links_change_nothing_for_jobs_that_stay_on_a_device(case: tuple[ColumnNpu, list[Job]]) -> None:
    chip, jobs = case
    each = len(chip.cores) // chip.device_count
    own = [job for job in jobs if len({core // each for core in job.cores or ()}) == 1]
    if own:
        one = replace(chip, devices=None)
        assert reference.run(lower(chip, own)) == reference.run(lower(one, own))
