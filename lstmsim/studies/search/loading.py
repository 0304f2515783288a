"""Reads the scenario of a search, whose own array need not be able to run its jobs: the search replaces the array."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lstmsim.base.bounds import MAX_PES
from lstmsim.base.errors import InputError
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.machines.registry import target_of
from lstmsim.model.scenario import Scenario

__all__ = ["load_for_search"]

#: A job that every core can run.
_TRIVIAL = {"model": {"layers": [{"cell": "dense", "hidden": 1, "input": 1}]}, "steps": 1}


def load_for_search(source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = ()) -> Scenario:
    """Read a scenario whose EP and VP need not fit its jobs, because a search replaces them.

    source, overrides: as for `load_scenario`.
    `InputError` for every other mistake.

    >>> core = {"npe": 64, "ep": 32, "vp": 2}
    >>> chip = {"kind": "column-npu", "frequency_mhz": 260, "cores": [core]}
    >>> load_for_search({"chip": chip, "jobs": [{"model": "lstm-512", "steps": 5}]}).chip.cores[0].vp
    2
    """
    try:
        return load_scenario(source, overrides)
    except InputError as error:
        try:
            # First the chip is read without its jobs, then the jobs with a chip that runs all that any array can run.
            trivial = [f"jobs={json.dumps([_TRIVIAL])}", "precision.calibration=null"]
            chip = load_scenario(source, [*overrides, *trivial]).chip
            array = target_of(chip.kind).array_search()
            if array is None:
                raise error from None
            core = array.widest_core(len(chip.cores), MAX_PES)
            stand_in = {"kind": chip.kind, "frequency_mhz": chip.frequency_mhz, "cores": [core]}
            scenario = load_scenario(source, [*overrides, f"chip={json.dumps(stand_in)}"])
        except InputError:
            raise error from None
    return replace(scenario, chip=chip)
