"""Files of outputs: safetensors with a tensor for each job, and in words how its numbers came about."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Any

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.weights.safetensors import MAX_HEADER, METADATA, write_safetensors
from lstmsim.formats.wording import show
from lstmsim.replay.outputs import Outputs
from lstmsim.workload.scenario import Scenario

__all__ = ["check_names", "outputs_metadata", "save_outputs"]

#: Most ways in which jobs came to their numbers that a file's metadata names.
_MOST = 100
#: Bytes of one tensor's description beside its name, at most, and of the metadata.
_ENTRY, _METADATA = 100, 2**20


def check_names(scenario: Scenario) -> None:
    """`InputError` if the jobs are too many for the header of a file, or one has a name that no tensor may have."""
    if any(job.name == METADATA for job in scenario.jobs):
        raise InputError(Mistake(f"job {METADATA}", "has a name that no tensor of a safetensors file may have"))
    header = _METADATA + sum(len(json.dumps(job.name)) + _ENTRY for job in scenario.jobs)
    if header > MAX_HEADER:
        text = f"{len(scenario.jobs):,} jobs are too many for one safetensors file, whose header holds at most"
        raise InputError(Mistake("outputs", f"{text} {MAX_HEADER // 2**20} MiB: give fewer jobs"))


def save_outputs(found: Outputs, path: str | os.PathLike[str], version: str) -> None:
    """Write a tensor [steps, outputs] for each job that was not turned away, as F64; whole or not at all.

    version: of lstmsim, for the metadata.
    """
    name = os.fspath(path)
    if not name.lower().endswith(".safetensors"):
        raise InputError(Mistake(name, "expected a file name that ends in .safetensors"))
    check_names(found.scenario)
    write_safetensors(path, found.tensors, {"lstmsim": version} | outputs_metadata(found))


def outputs_metadata(found: Outputs) -> dict[str, str]:
    """What stands in the file beside the tensors; lists and mappings as JSON.

    `numbers` says what they are, `jobs` where the weights, the frames, the first states and the formats of jobs are
    from, `turned_away` which jobs have no tensor.
    """
    scenario = found.scenario
    words = "real values of fixed-point numbers, equal bit for bit to the golden model"
    if not found.fixed:
        words = "float64, equal to the golden model but for the order of additions"
    metadata = {
        "schema": "lstmsim/outputs/1",
        "scenario": scenario.name,
        "chip": scenario.chip.name,
        "numbers": f"what the simulated machine computed: {words}",
        "shape": "[steps, outputs of the last layer, both directions side by side]",
        "jobs": json.dumps(_origins(found)),
    }
    if found.fixed:
        metadata["precision"] = json.dumps(asdict(scenario.precision))
    if found.turned_away:
        away = [show(name) for name in found.turned_away[:_MOST]]
        metadata["turned_away"] = json.dumps({"count": len(found.turned_away), "first": away})
    return metadata


def _origins(found: Outputs) -> list[dict[str, Any]]:
    """Where numbers are from, jobs that are alike in that together, the first ones of very many."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in found.tensors:
        data = found.data[name]
        calibrated = data.calibrated_on or "the frames of these and the model's other jobs"
        key = (data.network.model.name, data.weights, data.inputs, data.begins or "0")
        groups.setdefault((*key, calibrated if found.fixed else ""), []).append(name)
    keys = ("model", "weights", "inputs", "begins_with", "calibrated_on")
    listed: list[dict[str, Any]] = [
        {**{key: each for key, each in zip(keys, group, strict=True) if each}, "count": len(names), "first": names[:3]}
        for group, names in list(groups.items())[:_MOST]
    ]
    return listed + ([{"more": len(groups) - _MOST}] if len(groups) > _MOST else [])
