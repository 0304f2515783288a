"""Scenarios from files, from the same keys as mappings, or ready-made."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from lstmsim.workload.scenario import Scenario

if TYPE_CHECKING:
    from lstmsim.workload.model import Model
    from lstmsim.workload.scenario import Chip

__all__ = ["AtClock", "Path", "Source", "load_at_clocks", "load_chip", "load_model", "load_scenario"]

Path = str | PathLike[str]
Source = Scenario | Path | Mapping[str, Any]
#: A scenario with its jobs as they come at a clock in MHz.
AtClock = Callable[[float], Scenario]


def load_scenario(source: Source, overrides: Sequence[str] = ()) -> Scenario:
    """A scenario from a file or from the same keys as a mapping; `overrides` like `"chip.cores.0.ep=16"`.

    Raises `InputError` with every mistake found.

    >>> scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 20}]})
    >>> scenario.jobs[0].name
    'lstm-512'
    """
    from lstmsim.formats.scenario import scenario_file

    if isinstance(source, Scenario):
        if overrides:
            raise TypeError("overrides need a file or a mapping; a Scenario is finished: use dataclasses.replace")
        return source
    return scenario_file.load_scenario(source, overrides)


def load_at_clocks(source: Source, overrides: Sequence[str] = ()) -> tuple[Scenario, AtClock]:
    """A scenario, and what it is at another clock of its chip: arrivals by the second come at other cycles.

    A ready-made scenario has its arrivals in cycles, which are the same on every chip. The file is read once.

    >>> job = {"model": "lstm-512", "steps": 2, "count": 3, "arrival": {"kind": "stream", "frame_ms": 10}}
    >>> scenario, at_clock = load_at_clocks({"chip": "column-npu-64k", "jobs": [job]})
    >>> scenario.chip.frequency_mhz, scenario.jobs[1].arrival, at_clock(100).jobs[1].arrival
    (260, 2600000, 1000000)
    """
    from lstmsim.formats.scenario.scenario_file import scenario_from_document
    from lstmsim.formats.yaml.document import document_of
    from lstmsim.formats.yaml.source import read_document

    if isinstance(source, Scenario):
        ready = load_scenario(source, overrides)
        return ready, lambda frequency_mhz: ready
    if isinstance(source, Mapping):
        document, name = document_of(source), "scenario"
    else:
        document, name = read_document(source), os.path.splitext(os.path.basename(source))[0]

    def at_clock(frequency_mhz: float) -> Scenario:
        clock = f"chip.frequency_mhz={frequency_mhz!r}"
        return scenario_from_document(copy.deepcopy(document), [*overrides, clock], name)

    return scenario_from_document(copy.deepcopy(document), overrides, name), at_clock


def load_chip(name: Path) -> Chip:
    """The chip preset of that name, or the chip in that file.

    `InputError`: there is none, with the nearest name, or the file is wrong.

    >>> load_chip("column-npu-64k").cores[0].npe
    65536
    """
    from lstmsim.formats.scenario import scenario_file

    return scenario_file.load_chip(name)


def load_model(name: Path) -> Model:
    """The model of that name that comes with lstmsim, or the model in that file.

    `InputError`: there is none, with the nearest name, or the file is wrong.

    >>> load_model("lstm-512").layers[0].hidden
    512
    """
    from lstmsim.formats.scenario import scenario_file

    return scenario_file.load_model(name)
