"""The outputs of the jobs of a run: one tensor for each job, as the simulated machine computed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.replay.check import Checked, Progress, execute
from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.registry import target_of
from lstmsim.model.numerics.jobs import JobData
from lstmsim.model.scenario import Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace
from lstmsim.report.results import Result

__all__ = ["MOST_BYTES", "Outputs", "check_size", "outputs", "outputs_of"]

#: Most bytes of the outputs of all layers together, which the replay holds until its end.
MOST_BYTES = 10**9


@dataclass(frozen=True, eq=False)
class Outputs(Result, forms="lstmsim.analysis.replay.outputs_forms"):
    """The outputs of a run.

    scenario: scenario of the run.
    fixed: whether the outputs are in fixed point, as the scenario's `precision` says, or in float64.
    tensors: name of a job -> [steps, outputs] of its last layer, both directions side by side, as float64 numbers.
    turned_away: names of the jobs that computed nothing.
    data: name of a job -> its numbers, and where they are from.
    """

    scenario: Scenario
    fixed: bool
    tensors: Mapping[str, NDArray[np.float64]]
    turned_away: tuple[str, ...]
    data: Mapping[str, JobData]


def check_size(scenario: Scenario) -> None:
    """Refuse a scenario whose outputs cannot be computed.

    `InputError` if the chip has no structural model, or if the outputs of all layers are larger than `MOST_BYTES`.
    """
    if target_of(scenario.chip.kind).structural_model() is None:
        text = f"a chip of kind {scenario.chip.kind!r} has no structural model that could compute them"
        raise InputError(Mistake("outputs", text))
    numbers = sum(job.steps * sum(layer.output for layer in job.model.layers) for job in scenario.jobs)
    if 8 * numbers > MOST_BYTES:
        size = f"{8 * numbers / 1e9:,.1f} GB"
        text = (
            f"those of all layers would be {size}, at most {MOST_BYTES / 1e9:g} GB are kept: take fewer steps or jobs"
        )
        raise InputError(Mistake("outputs", text))


def outputs(
    scenario: Scenario, program: Program, trace: Trace, data: Mapping[int, JobData], progress: Progress | None = None
) -> Outputs:
    """Replay the trace on the numbers of all jobs, in fixed point if the scenario has a `precision`, else in float64.

    Every value is compared with the golden model.

    scenario, program, trace: the run.
    data: index of a job -> its numbers.
    progress: called with the rows that are done, and how many rows there are.
    `ReplayError` if a value differs. `InputError` as for `check_size`.
    """
    check_size(scenario)
    fixed = bool(scenario.precision_given)
    done = execute(scenario, program, trace, data, fixed=fixed, progress=progress)
    return _gathered(scenario, {scenario.jobs[index].name: own.run.output() for index, own in done.items()}, data)


def outputs_of(scenario: Scenario, data: Mapping[int, JobData], checks: Sequence[Checked]) -> Outputs:
    """The outputs of a run whose numbers have been checked already.

    data: index of a job -> its numbers.
    checks: results of `lstmsim.analysis.replay.check.check_numerics`.
    """
    fixed = bool(scenario.precision_given)
    return _gathered(scenario, {each.job: each.fixed if fixed else each.float64 for each in checks}, data)


def _gathered(scenario: Scenario, tensors: Mapping[str, NDArray[np.float64]], data: Mapping[int, JobData]) -> Outputs:
    away = tuple(job.name for job in scenario.jobs if job.name not in tensors)
    named = {scenario.jobs[index].name: each for index, each in data.items()}
    return Outputs(scenario, bool(scenario.precision_given), tensors, away, named)
