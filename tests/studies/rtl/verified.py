"""Scenarios as RTL, simulated and compared with lstmsim."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from lstmsim.files.scenario.first_states import state_shapes
from lstmsim.model.scenario import Scenario
from lstmsim.studies.rtl.result import RtlReport
from lstmsim.studies.rtl.run import run_rtl
from lstmsim.studies.shared.loading import load_scenario

__all__ = ["all_compared", "verify", "written"]


def verify(
    mapping: Mapping[str, Any], folder: Path, *, simulator: str = "icarus", timing_only: bool = False
) -> RtlReport:
    """Write, simulate and compare a scenario; weights are drawn. `folder` gets the scenario, too."""
    weights = None if timing_only else 1
    path = _scenario_file(mapping, folder)
    return run_rtl(
        path, folder / "design", verify=True, simulator=simulator, timing_only=timing_only, random_weights=weights
    )


def all_compared(report: RtlReport) -> bool:
    """Whether every group had events that were compared; cells whose only state is h have no others."""
    assert report.verified is not None
    equal = dict(report.verified.compared.equal)
    states = any(
        len(set(layer.cell.states.values())) > 1 for job in report.run.scenario.jobs for layer in job.model.layers
    )
    if not states:
        equal.pop("state")
    return report.deep and all(equal.values())


def written(scenario: Mapping[str, Any] | Scenario, folder: Path) -> Path:
    """Write the design of a scenario; give its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    source = scenario if isinstance(scenario, Scenario) else _scenario_file(scenario, folder)
    run_rtl(source, folder / "design", random_weights=1)
    return folder / "design"


def _scenario_file(mapping: Mapping[str, Any], folder: Path) -> Path:
    """Write a scenario, its files of states, and its file of frames to calibrate on (up to the number in its name)."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_states(mapping, folder)
    if "calibration" in mapping.get("precision", {}):
        size = mapping["jobs"][0]["model"]["layers"][0]["input"]
        name = mapping["precision"]["calibration"]
        most = float(name.removeprefix("calm-").removesuffix(".npy"))
        np.save(folder / name, np.random.default_rng(0).uniform(-most, most, (4, size)))
    path = folder / "scenario.yaml"
    path.write_text(json.dumps(mapping, indent=1))
    return path


def _write_states(mapping: Mapping[str, Any], folder: Path) -> None:
    """Write the files of states with which jobs begin: of some states, drawn from the file's name."""
    precision = {key: value for key, value in mapping.get("precision", {}).items() if key != "calibration"}
    without = {
        **mapping,
        "precision": precision,
        "jobs": [{k: v for k, v in job.items() if k != "initial"} for job in mapping["jobs"]],
    }
    scenario = load_scenario(without)
    for job, known in zip(mapping["jobs"], scenario.jobs, strict=True):
        if not str(job.get("initial", "")).endswith(".safetensors"):
            continue
        random = np.random.default_rng(sum(map(ord, job["initial"])))
        tensors: dict[str, Any] = {}
        recurrent = [number for number, layer in enumerate(known.model.layers) if layer.cell.recurrent]
        for number, directions in zip(recurrent, state_shapes(known.model), strict=True):
            for name, states in zip(("forward", "backward"), directions, strict=False):
                for state, units in states.items():
                    if not tensors or random.random() < 0.7:
                        tensors[f"layers.{number}.{name}.initial.{state}"] = random.uniform(-1, 1, units)
        save_file(tensors, str(folder / job["initial"]))
