"""The limits on the size of a scenario, each at its edge."""

from __future__ import annotations

import pytest

from lstmsim.targets.sizes import MAX_JOB_OPERATIONS, MAX_OPERATIONS, MAX_STEP_OPERATIONS, PerStep, Tally


def small(steps: int) -> PerStep:
    """A step of so many operations that `steps` of them are the most that a job may have."""
    return PerStep(MAX_JOB_OPERATIONS // steps, 1)


@pytest.mark.parametrize("steps", [1, 4, 1000])
def test_a_job_may_have_as_many_operations_as_the_limit_says(steps: int) -> None:
    assert Tally().add("'m'", small(steps), steps) is None
    large = Tally().add("'m'", small(steps), steps + 1)
    assert large is not None
    assert large.what == "job"
    assert f"up to {MAX_JOB_OPERATIONS + MAX_JOB_OPERATIONS // steps:,} operations" in large.sentence


def test_a_step_may_have_as_many_operations_as_the_limit_says() -> None:
    assert Tally().add("'m'", PerStep(1, MAX_STEP_OPERATIONS), 1) is None
    large = Tally().add("'m'", PerStep(1, MAX_STEP_OPERATIONS + 1), 1)
    assert large is not None
    assert large.what == "step"


def test_all_jobs_may_have_as_many_operations_as_the_limit_says() -> None:
    """100 of the largest jobs; the first job beyond the limit is told, and none after it."""
    jobs = MAX_OPERATIONS // MAX_JOB_OPERATIONS
    assert jobs == 100
    tally = Tally()
    assert tally.add("'m'", small(4), 4, jobs) is None
    assert tally.total == MAX_OPERATIONS
    large = tally.add("'m'", PerStep(3, 3), 1)
    assert large is not None
    assert large.what == "all"
    assert f"up to {MAX_OPERATIONS + 3:,} operations" in large.sentence
    assert tally.add("'m'", PerStep(3, 3), 1) is None


def test_the_steps_of_all_jobs_are_counted_where_the_largest_would_be_too_many() -> None:
    """101 jobs of at most 4 steps, 400 steps in all: as many as 100 of the largest jobs."""
    assert Tally().add("'m'", small(4), 4, 101, lambda: 400) is None
    large = Tally().add("'m'", small(4), 4, 101, lambda: 401)
    assert large is not None
    assert large.what == "all"
    tally = Tally()
    # the limit is kept anyway: nobody counts
    assert tally.add("'m'", small(4), 4, 100, lambda: 1 // 0) is None
    assert tally.total == MAX_OPERATIONS
