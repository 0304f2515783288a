"""Files of outputs: safetensors with a tensor for each job, and in words where its numbers are from."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Any

from lstmsim.analysis.replay.outputs import Outputs
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.importers.safetensors import MAX_HEADER, METADATA, write_safetensors
from lstmsim.model.scenario import Scenario

__all__ = ["check_names", "outputs_metadata", "save_outputs"]

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
    """Make the texts that stand in the file beside the tensors; lists and mappings are JSON.

    `numbers` says what the numbers are. `jobs` says where the weights, frames, first states and formats of jobs are
    from. `turned_away` names the jobs without a tensor.
    """
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
