"""From a trace to its report: jobs, cores, and what each layer took of the main units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.report import ACCOUNTS, CoreReport, JobReport, LatencyMs, LayerReport, Report, TurnedAway
from lstmsim.base.units import cycles_to_ms, rank_below, tops
from lstmsim.model.figures import CoreFigures
from lstmsim.model.model import Model
from lstmsim.model.scenario import Chip, Scenario, cores_at_once
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.program import Body, Phase, Program, TabledProgram, Task
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.trace import Totals


def pe_cycles(core: CoreFigures, macs: int, cycles: Mapping[str, int]) -> dict[str, int]:
    """Count the PE-cycles of a core by name. They add up to peak * makespan."""
    busy, peak, issuing = cycles["busy"], core.peak // core.ways, core.issuing // core.ways
    losses = {"useful": macs, "padding": busy * issuing - macs, "unmapped": busy * (peak - issuing)}
    return losses | {name: peak * count for name, count in cycles.items() if name != "busy"}


def latency_statistics(latencies_ms: Sequence[float]) -> LatencyMs:
    """Mean, percentiles and maximum of latencies in ms. Percentiles are interpolated linearly between ranks.

    >>> latency_statistics([1.0, 2.0, 3.0]).p50
    2.0
    """
    values = sorted(latencies_ms)
    # by hand, not by numpy, whose versions may give different bits
    p50, p95, p99 = (_percentile(values, percent) for percent in (50, 95, 99))
    return LatencyMs(fsum(values) / len(values), p50, p95, p99, values[-1])


def _percentile(ordered: Sequence[float], percent: int) -> float:
    rank, rest, whole = rank_below(len(ordered), percent)
    above = ordered[min(rank + 1, len(ordered) - 1)]
    return ordered[rank] + (above - ordered[rank]) * rest / whole


def utilization(chip: Chip, macs: int, makespan_cycles: int) -> float:
    """Useful multiply-accumulates of a chip / (its PEs * makespan); 0 if nothing ran.

    chip: description of the chip.
    macs: useful multiply-accumulates of all its cores.
    makespan_cycles: the cycle from which every task is finished.
    """
    peak = sum(core.peak for core in chip.core_figures) * makespan_cycles
    return macs / peak if peak else 0.0


def measure(scenario: Scenario, totals: Totals, engine: str) -> Report:
    """Make the report of a run.

    scenario: the chip and its jobs.
    totals: totals of the run; cores and tasks begin with those of the scenario, in its order.
    engine: name of the engine.
    """
    chip, makespan, macs = scenario.chip, totals.makespan_cycles, totals.work.tolist()
    cores = []
    for index, core in enumerate(chip.core_figures):
        named = zip(CYCLE_NAMES, totals.cycles[index].tolist(), strict=True)
        cycles = {name: count for name, count in named if name in ACCOUNTS or name in core.stalls}
        losses = pe_cycles(core, macs[index], cycles)
        cores.append(CoreReport(index, core, macs[index], cycles, losses))
    jobs, turned_away = _jobs(scenario, totals)
    # of cores beside those of the chip only a memory's cycles are named
    rows = totals.cycles[len(cores) :]
    beside = rows[rows.any(axis=1), CYCLE_NAMES.index("busy")].tolist()
    return Report(
        chip=chip.name,
        engine=engine,
        frequency_mhz=chip.frequency_mhz,
        makespan_cycles=makespan,
        jobs=tuple(jobs),
        cores=tuple(cores),
        utilization=utilization(chip, sum(macs), makespan),
        tops=tops(sum(macs), makespan, chip.frequency_mhz),
        latency_ms=latency_statistics([cycles_to_ms(each.latency, chip.frequency_mhz) for each in jobs]),
        turned_away=tuple(turned_away),
        memory_busy_cycles=beside[0] if beside else None,
        remarks=scenario.remarks,
        requests=_over_time(scenario),
    )


def _over_time(scenario: Scenario) -> bool:
    """Whether jobs of one entry come one after another."""
    came = {(job.tenant, job.arrival, job.after) for job in scenario.jobs if job.tenant}
    return len(came) > len({tenant for tenant, *_ in came})


def _jobs(scenario: Scenario, totals: Totals) -> tuple[list[JobReport], list[TurnedAway]]:
    """The jobs that were served, and the jobs that were turned away."""
    served, others = [], []
    chip_cores = len(scenario.chip.core_figures)
    # a machine may have further tasks, which do the work of the jobs
    rows = zip(scenario.jobs, totals.tasks[: len(scenario.jobs)].tolist(), strict=True)
    for number, (job, (core, context, admitted, finish, arrived, pauses, taken)) in enumerate(rows):
        # a job that is led from a core beside those of the chip has all of the chip
        whole = tuple(range(chip_cores)) if core >= chip_cores else ()
        if core < 0:
            others.append(TurnedAway(job.name, number, arrived, admitted))
        else:
            served.append(
                JobReport(
                    name=job.name,
                    core=0 if whole else core,
                    thread=context,
                    arrival=arrived,
                    start=admitted,
                    finish=finish,
                    macs=job.macs,
                    deadline=job.deadline,
                    preempted=pauses,
                    number=number,
                    cores=whole or cores_at_once(scenario.chip, job, core, taken),
                )
            )
    return served, others


_COLUMNS = FLAT_TABLES["operations"].place
#: Of each layer: cycles in which main units issue, multiply-accumulates, multiply-accumulates that would have fitted.
_Sums = NDArray[np.int64]


def layer_reports(scenario: Scenario, program: Program, jobs: Sequence[JobReport]) -> tuple[LayerReport, ...]:
    """Add up the cycles in which main units issue for each layer of each model, over all jobs that were served."""
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
