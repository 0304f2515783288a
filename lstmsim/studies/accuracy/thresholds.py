"""What skipping columns costs in accuracy and saves in cycles, at several thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lstmsim import engines, machines
from lstmsim.base.errors import InputError, Mistake
from lstmsim.files.scenario.jobs import with_numbers
from lstmsim.machines.registry import target_of
from lstmsim.model.numerics.accuracy import accuracy
from lstmsim.model.numerics.jobs import Senders, fixed_numbers, float_numbers, run_jobs
from lstmsim.model.scenario import Scenario
from lstmsim.studies.accuracy.study import Case, Skipped


def senders_of(scenario: Scenario, cases: Mapping[int, Case]) -> Senders:
    """What gives the senders of each case on the scenario's chip."""
    jobs, chip = {job.name: job for job in scenario.jobs}, scenario.chip
    target = target_of(chip.kind)
    return lambda index, numbers: target.senders(chip, jobs[cases[index].jobs[0]], numbers.arithmetic)


def skipped(scenario: Scenario, cases: Sequence[Case], thresholds: Sequence[float]) -> dict[float, Skipped]:
    """Run a scenario at each threshold, in its own precision if it gives one, else in float64."""
    if not thresholds:
        return {}
    target, numbered = target_of(scenario.chip.kind), dict(enumerate(cases))
    references = run_jobs(float_numbers(numbered))
    numbers = fixed_numbers(numbered, scenario.precision) if scenario.precision_given else float_numbers(numbered)
    found, jobs = {}, None
    for threshold in thresholds:
        chip = target.with_threshold(scenario.chip, threshold)
        if chip is None:
            text = f"a {target.title} skips no columns: leave the thresholds out"
            raise InputError(Mistake("thresholds", text))
        own = with_numbers(replace(scenario, chip=chip)) if jobs is None else replace(scenario, chip=chip, jobs=jobs)
        jobs = own.jobs
        totals = engines.totals(machines.lower(own.chip, own.jobs), check=False)
        runs = run_jobs(numbers, senders_of(own, numbered))
        errors = [accuracy(runs[index].output(), references[index].output()) for index in numbered]
        share = target.left_out(own.chip, own.jobs)
        found[threshold] = Skipped(totals.makespan_cycles, share or 0.0, tuple(errors))
    return found
