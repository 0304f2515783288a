"""Scenarios from files, from the same keys as mappings, or ready-made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from lstmsim.workload.scenario import Scenario

__all__ = ["Path", "Source", "load_scenario"]

Path = str | PathLike[str]
Source = Scenario | Path | Mapping[str, Any]


def load_scenario(source: Source, overrides: Sequence[str] = ()) -> Scenario:
    """A scenario from a file or from the same keys as a mapping; `overrides` like `"chip.cores.0.ep=16"`.

    Raises `InputError` with every mistake found.

    >>> scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 20}]})
    >>> scenario.jobs[0].name
    'lstm-512'
    """
    from lstmsim.formats import scenario_file

    if isinstance(source, Scenario):
        if overrides:
            raise TypeError("overrides need a file or a mapping; a Scenario is finished: use dataclasses.replace")
        return source
    return scenario_file.load_scenario(source, overrides)
