"""The first time step of jobs, which on some machines loads the weights, beside the later ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lstmsim import engines, machines
from lstmsim.machines.registry import target_of
from lstmsim.model.arriving import arriving
from lstmsim.model.scenario import Chip, Job, Scenario

__all__ = ["begins_cold", "first_cycles", "wanted"]


def begins_cold(chip: Chip) -> bool:
    """Whether the first time step of a job loads weights that later steps have near.

    >>> from lstmsim.files.scenario.scenario_file import load_chip
    >>> begins_cold(load_chip("column-npu-16k")), begins_cold(load_chip("epyc-7742"))
    (False, True)
    """
    return target_of(chip.kind).begins_cold(chip)


def wanted(chips: Sequence[Chip], jobs: Sequence[Job]) -> bool:
    """Whether the first step is simulated alone: a chip begins cold, and the jobs come at once and have later steps.

    chips: all that are compared.
    jobs: those of a row.
    """
    some_have_later = any(job.steps > 1 for job in jobs)
    return some_have_later and arriving(jobs) == "at once" and any(map(begins_cold, chips))


def first_cycles(scenario: Scenario, engine: str) -> int:
    """The makespan in cycles of the same jobs with one time step each.

    scenario: jobs that its chip can run, all of which come at once.
    engine: the engine of the run.
    """
    program = machines.lower(scenario.chip, tuple(replace(job, steps=1) for job in scenario.jobs))
    return engines.totals(program, engine, check=False).makespan_cycles
