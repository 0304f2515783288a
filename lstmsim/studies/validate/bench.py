"""Where everything that is compared is simulated: a chip preset, one model, a number of jobs, the engine of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from lstmsim import engines, machines
from lstmsim.analysis.measure import measure
from lstmsim.analysis.report import Report
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.model.scenario import Scenario

__all__ = ["Bench", "layer"]


def layer(cell: str, hidden: int, inputs: int) -> dict[str, Any]:
    """Describe a layer as scenario files do.

    >>> layer("lstm", 512, 256)
    {'cell': 'lstm', 'hidden': 512, 'input': 256}
    """
    return {"cell": cell, "hidden": hidden, "input": inputs}


class Bench:
    """Simulates on one engine; equal scenarios are simulated once."""

    def __init__(self, engine: str = "fast") -> None:
        self.engine = engine
        self.report = cache(self._report)

    def _report(self, scenario: Scenario) -> Report:
        program = machines.lower(scenario.chip, scenario.jobs)
        return measure(scenario, engines.totals(program, self.engine, check=False), self.engine)

    def on_preset(
        self,
        chip: str,
        layers: Sequence[Mapping[str, Any]],
        steps: int,
        *,
        batch: int = 1,
        count: int = 1,
        overrides: Sequence[str] = (),
    ) -> Report:
        """Simulate equal jobs of some layers on a preset, all there at cycle 0.

        chip: the preset's name.
        layers: as scenario files write them.
        steps: of each job.
        batch: inferences that a job has.
        count: how many jobs there are.
        overrides: changes like `"chip.cores.0.ep=16"`.

        >>> Bench().on_preset("column-npu-64k", [layer("lstm", 512, 512)], 25).makespan_cycles
        1773
        """
        job = {"model": {"layers": list(layers)}, "steps": steps, "batch": batch, "count": count}
        return self.report(load_scenario({"chip": chip, "jobs": [job]}, overrides))
