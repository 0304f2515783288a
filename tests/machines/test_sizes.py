"""The limits on the size of a scenario, each at its edge."""

from __future__ import annotations

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.engines import totals
from lstmsim.machines import lower
from lstmsim.machines.assembly import MAX_OPERATIONS, MAX_STEP_OPERATIONS, PerStep, Tally


def small(steps: int) -> PerStep:
    """A step of so many operations that `steps` of them are the most that a job may have."""
    return PerStep(MAX_OPERATIONS // steps, 1)


@pytest.mark.parametrize("steps", [1, 4, 1000])
def test_a_job_may_have_as_many_operations_as_the_limit_says(steps: int) -> None:
    assert Tally().add(small(steps), steps) is None
    large = Tally().add(small(steps), steps + 1)
    assert large is not None
    assert large.what == "job"
    assert f"up to {MAX_OPERATIONS + MAX_OPERATIONS // steps:,} operations" in large.sentence


def test_a_step_may_have_as_many_operations_as_the_limit_says() -> None:
    assert Tally().add(PerStep(1, MAX_STEP_OPERATIONS), 1) is None
    large = Tally().add(PerStep(1, MAX_STEP_OPERATIONS + 1), 1)
    assert large is not None
    assert large.what == "step"


def test_all_jobs_may_have_as_many_operations_as_the_limit_says() -> None:
    """The first job beyond the limit is told, and none after it."""
    tally = Tally()
    assert tally.add(small(400), 4, 100) is None
    assert tally.total == MAX_OPERATIONS
    large = tally.add(PerStep(3, 3), 1)
    assert large is not None
    assert large.what == "all"
    assert f"up to {MAX_OPERATIONS + 3:,} operations" in large.sentence
    assert tally.add(PerStep(3, 3), 1) is None


def test_the_steps_of_all_jobs_are_counted_where_the_largest_would_be_too_many() -> None:
    """101 jobs of at most 4 steps, 400 steps in all: as many as 100 of the largest jobs."""
    assert Tally().add(small(400), 4, 101, lambda: 400) is None
    large = Tally().add(small(400), 4, 101, lambda: 401)
    assert large is not None
    assert large.what == "all"
    tally = Tally()
    # the limit is kept anyway: nobody counts
    assert tally.add(small(400), 4, 100, lambda: 1 // 0) is None
    assert tally.total == MAX_OPERATIONS


def test_a_long_job_is_refused_only_where_its_later_phases_look_back() -> None:
    layers = [{"cell": "lstm", "input": 256, "hidden": 256}, {"cell": "lstm", "input": 256, "hidden": 256}]
    job = {"model": {"name": "m", "layers": layers}, "steps": 3_000_000}
    lstmsim.load_scenario({"chip": "column-npu-16k", "jobs": [job]})
    chip = lstmsim.load_chip("brainwave-s10")
    with pytest.raises(InputError, match=r"job m: steps: its later phases look back at .* fewer steps show the same"):
        lower(chip, lstmsim.load_scenario({"chip": "brainwave-s10", "jobs": [job | {"steps": 1_000_000}]}).jobs)


def test_a_million_steps_are_no_more_than_a_thousand_to_lower() -> None:
    job = {"model": "lstm-256", "steps": 1_000_000}
    scenario = lstmsim.load_scenario({"chip": "column-npu-16k", "jobs": [job]})
    assert lower(scenario.chip, scenario.jobs).tasks[0].variants[0][1][-1].repeat > 900_000


def test_bodies_of_a_row_wise_npu_are_kept_as_rows() -> None:
    """Of thousands of models, operations as objects take most of the memory, and no engine looks at them."""
    job = {"model": "lstm-256", "steps": 3}
    scenario = lstmsim.load_scenario({"chip": "intel-npu-rtl", "jobs": [job]})
    program = lower(scenario.chip, scenario.jobs)
    totals(program, check=False)
    bodies = [phase.body for task in program.tasks for _, phases in task.variants for phase in phases]
    assert bodies
    assert not any("operations" in vars(body) for body in bodies)
    assert all(len(body.operations) == body.size for body in bodies)
