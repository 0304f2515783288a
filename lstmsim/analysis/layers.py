"""What each layer of each model took of the main units, worked out from the program and from where the jobs ran."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.report import JobReport, LayerReport
from lstmsim.model.model import Model
from lstmsim.model.scenario import Scenario
from lstmsim.program.body import Body
from lstmsim.program.flat_tables import FLAT_TABLES
from lstmsim.program.program import Phase, Program, Task
from lstmsim.program.tabled import TabledProgram

__all__ = ["layer_reports"]

_COLUMNS = FLAT_TABLES["operations"].place
#: Of each layer: cycles in which main units issue, multiply-accumulates, multiply-accumulates that would have fitted.
_Sums = NDArray[np.int64]


def layer_reports(scenario: Scenario, program: Program, jobs: Sequence[JobReport]) -> tuple[LayerReport, ...]:
    """Add up the cycles in which main units issue for each layer of each model, over all jobs that were served.

    scenario: the chip and its jobs.
    program: what was run.
    jobs: where each job ran.
    It is empty for programs that were written as tables: their operations belong to kernels, not to layers.
    """
    if isinstance(program, TabledProgram):
        return ()
    peaks = [core.peak for core in scenario.chip.core_figures]
    known: dict[tuple[int, tuple[int, ...]], dict[int, _Sums]] = {}
    models: dict[Model, dict[int, _Sums]] = {}
    for job in jobs:
        task, model = program.tasks[job.number], scenario.jobs[job.number].model
        phases, cores = _way(program, task, job)
        key = (id(phases), cores)
        if key not in known:
            known[key] = _layers_of(program, phases, cores, peaks)
        sums = models.setdefault(model, {})
        for layer, own in known[key].items():
            sums[layer] = sums[layer] + own if layer in sums else own
    return tuple(
        _report(model, layer, *own.tolist()) for model, sums in models.items() for layer, own in sorted(sums.items())
    )


def _report(model: Model, number: int, cycles: int, macs: int, slots: int) -> LayerReport:
    layer = model.layers[number]
    sizes = (layer.cell.name, layer.hidden, layer.input, layer.directions)
    return LayerReport(model.name, number, *sizes, cycles=cycles, macs=macs, slots=slots)


def _way(program: Program, task: Task, job: JobReport) -> tuple[tuple[Phase, ...], tuple[int, ...]]:
    """The phases of a task where it ran, and the core of each of its members."""
    wide = next((each for each in task.wide if each.members == len(job.cores)), None)
    if wide is not None:
        return wide.phases, job.cores
    place = next((each for each in task.places if each[0] == job.core), task.places[0])
    return dict(task.variants)[program.cores[place[0]].kind], place


def _layers_of(
    program: Program, phases: Sequence[Phase], cores: Sequence[int], peaks: Sequence[int]
) -> dict[int, _Sums]:
    sums: dict[int, _Sums] = {}
    for phase in phases:
        rows = phase.body.rows.operations.reshape(-1, FLAT_TABLES["operations"].width)
        unit, member, cycles, count, work, extra = (
            rows[:, _COLUMNS(name)] for name in ("unit", "member", "cycles", "count", "work", "extra")
        )
        more = np.array([sum(column) for column in phase.extra_cycles] + [0], dtype=np.int64)
        taken = cycles * count * phase.repeat + more[extra]
        done = work * count * phase.repeat
        layers = _layers(phase.body)
        for place, core in enumerate(cores):
            if core >= len(peaks) or program.cores[core].accounted is None:
                continue
            own = (member == place) & (unit == program.cores[core].accounted) & (layers >= 0)
            for layer in np.unique(layers[own]).tolist():
                these = own & (layers == layer)
                both = np.array([taken[these].sum(), done[these].sum()])
                row = np.array([*both, both[0] * peaks[core]])
                sums[layer] = sums[layer] + row if layer in sums else row
    return sums


def _layers(body: Body) -> NDArray[np.int64]:
    """The layer of each operation; -1 for operations of none."""
    return np.array([place[0] if place else -1 for _, place in body.names], dtype=np.int64)
