"""Outputs of the jobs of a run: a tensor for each job, as the simulated machine computed it, and the file of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.replay import Checked, Progress, execute
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.importers.tensors import MAX_HEADER, METADATA, write_safetensors
from lstmsim.machines.registry import target_of
from lstmsim.model.numerics.jobs import JobData
from lstmsim.model.scenario import Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace
from lstmsim.report.results import Forms, Result
from lstmsim.report.tables import table

#: Most bytes of the outputs of all layers together, which the replay holds until its end.
MOST_BYTES = 10**9


@dataclass(frozen=True, eq=False)
class Outputs(Result, forms="lstmsim.analysis.outputs"):
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
    """The outputs of a run whose numbers have been checked already."""
    fixed = bool(scenario.precision_given)
    return _gathered(scenario, {each.job: each.fixed if fixed else each.float64 for each in checks}, data)


def _gathered(scenario: Scenario, tensors: Mapping[str, NDArray[np.float64]], data: Mapping[int, JobData]) -> Outputs:
    away = tuple(job.name for job in scenario.jobs if job.name not in tensors)
    named = {scenario.jobs[index].name: each for index, each in data.items()}
    return Outputs(scenario, bool(scenario.precision_given), tensors, away, named)


#: Most groups of jobs with the same origins that a file's metadata names.
_MOST = 100
#: Most bytes of one tensor's description beside its name, and of the metadata.
_ENTRY, _METADATA = 100, 2**20


def check_names(scenario: Scenario) -> None:
    """Check that a file can hold a tensor for each job.

    `InputError` if the jobs are too many for a header, or one has a name that no tensor may have.
    """
    if any(job.name == METADATA for job in scenario.jobs):
        raise InputError(Mistake(f"job {METADATA}", "has a name that no tensor of a safetensors file may have"))
    header = _METADATA + sum(len(json.dumps(job.name)) + _ENTRY for job in scenario.jobs)
    if header > MAX_HEADER:
        text = f"{len(scenario.jobs):,} jobs are too many for one safetensors file, whose header holds at most"
        raise InputError(Mistake("outputs", f"{text} {MAX_HEADER // 2**20} MiB: give fewer jobs"))


def save_outputs(outputs: Outputs, path: str | os.PathLike[str], version: str) -> None:
    """Write a tensor [steps, outputs] as F64 for each job that was not turned away; the file is whole or not written.

    outputs: the numbers of all jobs.
    path: a name that ends in .safetensors.
    version: of lstmsim, for the metadata.

    `InputError` if the name has another ending or `check_names` refuses the scenario.
    """
    name = os.fspath(path)
    if not name.lower().endswith(".safetensors"):
        raise InputError(Mistake(name, "expected a file name that ends in .safetensors"))
    check_names(outputs.scenario)
    write_safetensors(path, outputs.tensors, {"lstmsim": version} | outputs_metadata(outputs))


def outputs_metadata(outputs: Outputs) -> dict[str, str]:
    """Make the texts that stand in the file beside the tensors; lists and mappings are JSON."""
    scenario = outputs.scenario
    words = "real values of fixed-point numbers, equal bit for bit to the golden model"
    if not outputs.fixed:
        words = "float64, equal to the golden model but for the order of additions"
    metadata = {
        "schema": "lstmsim/outputs/1",
        "scenario": scenario.name,
        "chip": scenario.chip.name,
        "numbers": f"what the simulated machine computed: {words}",
        "shape": "[steps, outputs of the last layer, both directions side by side]",
        "jobs": json.dumps(_origins(outputs)),
    }
    if outputs.fixed:
        metadata["precision"] = json.dumps(asdict(scenario.precision))
    if outputs.turned_away:
        away = [show(name) for name in outputs.turned_away[:_MOST]]
        metadata["turned_away"] = json.dumps({"count": len(outputs.turned_away), "first": away})
    return metadata


def _origins(outputs: Outputs) -> list[dict[str, Any]]:
    """Where the numbers of jobs are from: one entry for jobs with equal origins, the first `_MOST` entries."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in outputs.tensors:
        data = outputs.data[name]
        calibrated = data.calibrated_on or "the frames of these and the model's other jobs"
        key = (data.network.model.name, data.weights, data.inputs, data.begins or "0")
        groups.setdefault((*key, calibrated if outputs.fixed else ""), []).append(name)
    keys = ("model", "weights", "inputs", "begins_with", "calibrated_on")
    listed: list[dict[str, Any]] = [
        {**{key: each for key, each in zip(keys, group, strict=True) if each}, "count": len(names), "first": names[:3]}
        for group, names in list(groups.items())[:_MOST]
    ]
    return listed + ([{"more": len(groups) - _MOST}] if len(groups) > _MOST else [])


def outputs_json(outputs: Outputs) -> dict[str, Any]:
    """Give shape, smallest and largest number of each tensor as plain data of schema `lstmsim/outputs/1`."""
    return {
        "schema": "lstmsim/outputs/1",
        "fixed": outputs.fixed,
        "tensors": {
            name: {"shape": list(values.shape), "smallest": float(values.min()), "largest": float(values.max())}
            for name, values in outputs.tensors.items()
        },
        "turned_away": list(outputs.turned_away),
    }


def outputs_text(outputs: Outputs) -> str:
    """Give a table with a row for each job, and the jobs that computed nothing."""
    rows = [["job", "steps", "outputs", "smallest", "largest"]]
    for name, values in outputs.tensors.items():
        rows.append([name, *map(str, values.shape), f"{values.min():.4g}", f"{values.max():.4g}"])
    lines = [*table(rows, left=[0]), "", "in fixed point" if outputs.fixed else "in float64"]
    if outputs.turned_away:
        lines.append(f"turned away, without outputs: {', '.join(outputs.turned_away)}")
    return "\n".join(lines)


FORMS = Forms(outputs_json, outputs_text)
