"""The report of a simulation: frozen numbers, and how they are read off the totals of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from math import fsum, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.batches import Batch, BatchFigures, batches_of, figures_of, padded_work, pads
from lstmsim.analysis.stall_words import pe_names
from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.base.units import cycles_to_ms, rank_below, tops
from lstmsim.machines.registry import target_of
from lstmsim.model.figures import CoreFigures, MainUnit, PlannedProducts, Words
from lstmsim.model.model import Model
from lstmsim.model.scenario import Chip, Scenario, cores_at_once
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.program import Phase, Program, TabledProgram
from lstmsim.program.stall_reasons import CYCLE_NAMES, MACHINE_NAMES
from lstmsim.program.trace import Totals
from lstmsim.report.results import Table
from lstmsim.report.stamp import Stamp

#: The names that the cycles of every machine can have. Each cycle has exactly one name. Some machines have more names
#: (`CoreFigures.stalls`).
ACCOUNTS = MACHINE_NAMES

#: The names that the PE-cycles of every machine can have. Each PE-cycle has exactly one name.
LOSSES = pe_names(ACCOUNTS)

#: What is said in the place of latencies where all jobs were rejected.
NOBODY = "nobody was served"


@record
class JobReport:
    """Where and when one job ran. Times are in cycles.

    name: name of the job.
    core, thread: where it ran; of several cores the first.
    arrival: when it came.
    start: when it was admitted.
    finish: when its last result was visible.
    macs: its multiply-accumulates.
    deadline: the latency that it should not exceed; None without one.
    preempted: how often it gave up its thread.
    number: its place among the scenario's jobs.
    cores: all cores that it ran on at once; empty if there was one.
    batch: place of its batch (in rounds, of its first round) in the report's `batches`; None where none are listed.
    """

    name: str
    core: int
    thread: int
    arrival: int
    start: int
    finish: int
    macs: int
    deadline: int | None = None
    preempted: int = 0
    number: int = 0
    cores: tuple[int, ...] = ()
    batch: int | None = None

    @property
    def places(self) -> str:
        """The cores on which the job ran, for people: `0`, `0,1,2` or `0..15`."""
        if not self.cores:
            return str(self.core)
        listed = ",".join(map(str, self.cores))
        return listed if len(self.cores) <= 4 else f"{self.cores[0]}..{self.cores[-1]}"

    @property
    def latency(self) -> int:
        """Cycles from arrival to the last visible result."""
        return self.finish - self.arrival

    @property
    def missed(self) -> bool:
        """Whether the job was later than its deadline."""
        return self.deadline is not None and self.latency > self.deadline


@record
class Rejected:
    """A job that was rejected, because its queue was full or it reneged.

    name: name of the job.
    number: its place among the scenario's jobs.
    arrival: cycle at which it came.
    at: cycle at which it was rejected.
    """

    name: str
    number: int
    arrival: int
    at: int


@record
class CoreReport:
    """Where the cycles and PE-cycles of one core went.

    A PE-cycle is one multiply-accumulate that a core could do in one cycle.

    index: place of the core on the chip.
    figures: what the machine says of the core: its peak, sizes and settings.
    macs: useful multiply-accumulates.
    cycles: cycles by name; they add up to the makespan, or to a multiple of it (`CoreFigures.instances`).
    pe_cycles: PE-cycles by name; they add up to the peak times the makespan.
    """

    index: int
    figures: CoreFigures
    macs: int
    cycles: Mapping[str, int]
    pe_cycles: Mapping[str, int]

    @property
    def peak(self) -> int:
        """Multiply-accumulates that the core can do in a cycle."""
        return self.figures.peak

    @property
    def columns(self) -> Mapping[str, int]:
        """Sizes by the name of a column, for example `npe`, `ep`, `vp`."""
        return self.figures.columns

    @property
    def settings(self) -> Mapping[str, int | str]:
        """Other figures of the core (threads, adders saved ...)."""
        return self.figures.settings

    @property
    def utilization(self) -> float:
        """Useful multiply-accumulates / (peak * makespan)."""
        total = self.peak * sum(self.cycles.values())
        return self.macs * self.figures.instances / total if total else 0.0


@record
class LayerReport:
    """What one layer of a model took of the main units (arrays), over all jobs of the model.

    model: name of the model.
    layer: its place in the model, from 0.
    cell, hidden, input, directions: of the layer.
    cycles: cycles in which a main unit issued for the layer, summed over cores.
    macs: useful multiply-accumulates.
    slots: multiply-accumulates that the main units could have done in these cycles.
    """

    model: str
    layer: int
    cell: str
    hidden: int
    input: int
    directions: int
    cycles: int
    macs: int
    slots: int

    @property
    def utilization(self) -> float:
        """Useful multiply-accumulates / those that fit into the cycles in which a main unit issued, 0 to 1."""
        return self.macs / self.slots if self.slots else 0.0


@record
class LatencyMs:
    """Mean and percentiles of the job latencies in ms, interpolated between ranks; NaN where nobody was served."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float


@record
class Report(Table, forms="lstmsim.analysis.report_text"):
    """The result of a simulation. The same input gives the same report on every engine, but for the engine's name.

    chip, engine: their names.
    frequency_mhz: clock of the chip.
    makespan_cycles: cycle at which the last job has finished.
    jobs: the jobs that were served.
    cores: where the cycles of each core went.
    utilization: useful multiply-accumulates / (peak * makespan), 0 to 1.
    tops: 10^12 operations a second; a multiply-accumulate counts as two.
    latency_ms: latencies of the jobs.
    rejected: the jobs that were not served.
    memory_busy_cycles: how long the memory beside the chip was at work; None if all weights stay on the chip.
    remarks: what was simulated although the machine could not do it, or although no source says how long it takes.
    planned: how products of the jobs are spread over threads; None: the machine plans none, or nobody asked it.
    requests: whether jobs of one entry come at times of their own, so that each job says little.
    kernels: sentences on how time steps of the jobs were cut into kernels; empty: as the machine always does it.
    layers: what each layer of each model took of the main units; empty where operations belong to no layer, and where
        members of a batch end one by one (ragged).
    batches, batching: the batches in which requests ran, and what they came to; empty and None without any.
    left_out: share of the groups of columns that were not sent, 0 to 1; None: the machine sends all.
    stamping, tracing: give the stamp and the timeline when they are first asked for; None: nobody can.
    """

    chip: str
    engine: str
    frequency_mhz: float
    makespan_cycles: int
    jobs: tuple[JobReport, ...]
    cores: tuple[CoreReport, ...]
    utilization: float
    tops: float
    latency_ms: LatencyMs
    rejected: tuple[Rejected, ...] = ()
    memory_busy_cycles: int | None = None
    remarks: tuple[str, ...] = ()
    planned: PlannedProducts | None = None
    requests: bool = False
    kernels: tuple[str, ...] = ()
    layers: tuple[LayerReport, ...] = ()
    left_out: float | None = None
    batches: tuple[Batch, ...] = ()
    batching: BatchFigures | None = None
    stamping: Callable[[], Stamp] | None = field(default=None, compare=False, repr=False)
    tracing: Callable[[], Any] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def stamp(self) -> Stamp | None:
        """What the cycles are exact against, and which keys are assumptions; None: nobody asked."""
        return None if self.stamping is None else self.stamping()

    @cached_property
    def timeline(self) -> Any:
        """The `Timeline` of the same run, simulated again; `InputError` if nobody can."""
        if self.tracing is None:
            raise InputError("this report has no run that could be drawn; those of simulate() and run() have one")
        return self.tracing()

    @property
    def effective_tops(self) -> float:
        """10^12 operations a second if columns that were left out are counted as well, as for a dense machine."""
        return tops(sum(job.macs for job in self.jobs), self.makespan_cycles, self.frequency_mhz)

    @property
    def accounts(self) -> tuple[str, ...]:
        """The names of cycles that any core knows, in the order in which a core looks for the name of a cycle."""
        return tuple(name for name in CYCLE_NAMES if any(name in core.cycles for core in self.cores))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of sizes that any core has."""
        return tuple(dict.fromkeys(name for core in self.cores for name in core.columns))

    @property
    def words(self) -> Mapping[str, Words]:
        """Name of cycles or losses -> its meaning on this machine, where the usual words do not fit."""
        return {name: words for core in self.cores for name, words in core.figures.words.items()}

    @property
    def unit(self) -> MainUnit:
        """What people call the main unit of a core; all cores of a machine call it the same."""
        return self.cores[0].figures.unit if self.cores else MainUnit()

    @property
    def losses(self) -> dict[str, int]:
        """PE-cycles of all cores by name; they add up to the chip's peak times the makespan."""
        return {name: sum(core.pe_cycles.get(name, 0) for core in self.cores) for name in pe_names(self.accounts)}


def pe_cycles(core: CoreFigures, macs: int, cycles: Mapping[str, int]) -> dict[str, int]:
    """Count the PE-cycles of a core by name. They add up to peak * makespan."""
    busy, peak, issuing = cycles["busy"], core.peak // core.instances, core.issuing // core.instances
    losses = {"useful": macs, "padding": busy * issuing - macs, "unmapped": busy * (peak - issuing)}
    return losses | {name: peak * count for name, count in cycles.items() if name != "busy"}


def latency_statistics(cycles: Sequence[int], frequency_mhz: float) -> LatencyMs:
    """Mean, percentiles and maximum of latencies in ms. Percentiles are interpolated linearly between ranks."""
    if not cycles:
        # all were rejected: no number says how long nobody took
        return LatencyMs(*[nan] * 5)
    values = sorted(cycles_to_ms(each, frequency_mhz) for each in cycles)
    points = []
    # by hand, not by numpy, whose versions may give different bits
    for percent in (50, 95, 99):
        rank, rest, whole = rank_below(len(values), percent)
        above = values[min(rank + 1, len(values) - 1)]
        points.append(values[rank] + (above - values[rank]) * rest / whole)
    return LatencyMs(fsum(values) / len(values), points[0], points[1], points[2], values[-1])


def utilization(chip: Chip, macs: int, makespan_cycles: int) -> float:
    """Useful multiply-accumulates of a chip / (its PEs * makespan); 0 if nothing ran."""
    peak = sum(core.peak for core in chip.core_figures) * makespan_cycles
    return macs / peak if peak else 0.0


def measure(scenario: Scenario, totals: Totals, engine: str, program: Program | None = None) -> Report:
    """Make the report of a run, by layers as well if its program is given."""
    remarks, chip = scenario.remarks, scenario.chip
    batches = batches_of(scenario.jobs, totals)
    padded = padded_work(scenario, program, batches)
    if padded:
        work = totals.work.copy()
        work[list(padded)] -= list(padded.values())
        totals = replace(totals, work=work)
    cores = _cores(chip.core_figures, totals)
    jobs, rejected = _jobs(scenario, totals, batches)
    macs, makespan = sum(totals.work.tolist()), totals.makespan_cycles
    # of cores beside those of the chip only a memory's cycles are named
    rows = totals.cycles[len(cores) :]
    beside = rows[rows.any(axis=1), CYCLE_NAMES.index("busy")].tolist()
    # whether jobs of one entry come one after another
    came = {(job.tenant, job.arrival, job.after) for job in scenario.jobs if job.tenant}
    return Report(
        chip=chip.name,
        engine=engine,
        frequency_mhz=chip.frequency_mhz,
        makespan_cycles=makespan,
        jobs=tuple(jobs),
        cores=cores,
        batches=batches,
        batching=figures_of(scenario.jobs, batches),
        layers=() if program is None else _layers(scenario, program, jobs, batches),
        utilization=utilization(chip, macs, makespan),
        latency_ms=latency_statistics([each.latency for each in jobs], chip.frequency_mhz),
        tops=tops(macs, makespan, chip.frequency_mhz),
        rejected=tuple(rejected),
        memory_busy_cycles=beside[0] if beside else None,
        remarks=remarks,
        requests=len(came) > len({tenant for tenant, *_ in came}),
        left_out=target_of(chip.kind).left_out(chip, [scenario.jobs[job.number] for job in jobs]),
    )


def _cores(figures: Sequence[CoreFigures], totals: Totals) -> tuple[CoreReport, ...]:
    """Where the cycles and PE-cycles of each core of the chip went."""
    cores = []
    for index, (core, macs) in enumerate(zip(figures, totals.work.tolist(), strict=False)):
        named = zip(CYCLE_NAMES, totals.cycles[index].tolist(), strict=True)
        cycles = {name: count for name, count in named if name in ACCOUNTS or name in core.stalls}
        cores.append(CoreReport(index, core, macs, cycles, pe_cycles(core, macs, cycles)))
    return tuple(cores)


def _jobs(scenario: Scenario, totals: Totals, batches: Sequence[Batch]) -> tuple[list[JobReport], list[Rejected]]:
    """The jobs that were served, and the jobs that were rejected."""
    served, others = [], []
    # a request is told where it began; in rounds it may have other threads later
    last = len(batches) - 1
    first = {number: last - at for at, batch in enumerate(reversed(batches)) for number in batch.members}
    chip_cores = len(scenario.chip.core_figures)
    # a machine may have further tasks, which do the work of the jobs
    rows = zip(scenario.jobs, totals.tasks[: len(scenario.jobs)].tolist(), strict=True)
    for number, (job, (core, context, admitted, finish, arrived, pauses, taken, _)) in enumerate(rows):
        if core < 0:
            others.append(Rejected(job.name, number, arrived, admitted))
            continue
        # a job that is led from a core beside those of the chip has all of the chip
        whole = tuple(range(chip_cores)) if core >= chip_cores else ()
        cores = whole or cores_at_once(scenario.chip, job, core, taken)
        batch = first.get(number)
        thread = context if batch is None else batches[batch].thread
        times = 0 if whole else core, thread, arrived, admitted, finish
        # between two rounds nobody has taken its thread
        stopped = 0 if job.batching is not None and job.batching.in_rounds else pauses
        served.append(JobReport(job.name, *times, job.macs, job.deadline, stopped, number, cores, batch))
    return served, others


_OPERATIONS = FLAT_TABLES["operations"]
_WIDTH = _OPERATIONS.width
_PLACES = [_OPERATIONS.place(name) for name in ("unit", "member", "cycles", "count", "work", "extra")]
#: Of each layer: cycles in which main units issue, multiply-accumulates, multiply-accumulates that would have fitted.
_Sums = defaultdict[int, NDArray[np.int64]]


def _none() -> _Sums:
    return defaultdict(lambda: np.zeros(3, dtype=np.int64))


def _layers(
    scenario: Scenario, program: Program, jobs: Sequence[JobReport], batches: Sequence[Batch]
) -> tuple[LayerReport, ...]:
    """Add up the cycles in which main units issue for each layer of each model, over all jobs that were served."""
    if isinstance(program, TabledProgram) or any(job.batching and job.batching.ragged for job in scenario.jobs):
        return ()
    peaks = [core.peak for core in scenario.chip.core_figures]
    known: dict[tuple[int, tuple[int, ...]], _Sums] = {}
    models: dict[Model, _Sums] = {}
    served = {job.number: job for job in jobs}
    for members in [each.members for each in batches] or [(job.number,) for job in jobs]:
        steps = {number: scenario.jobs[number].steps for number in members}
        longest = max(members, key=lambda each: steps[each])
        job, task, asked = served[longest], program.tasks[longest], scenario.jobs[longest]
        cores = job.cores
        if all(each.members != len(cores) for each in task.moldable):
            cores = next((each for each in task.places if each[0] == job.core), task.places[0])
        phases = task.phases(program.cores[cores[0]].kind, len(cores), len(members))
        key = (id(phases), cores)
        if key not in known:
            known[key] = _layers_of(program, phases, cores, peaks)
        sums, run = models.setdefault(asked.model, _none()), len(members) * steps[longest]
        for number, (cycles, macs, slots) in known[key].items():
            useful = macs * sum(steps.values()) // run if pads(asked) else macs
            sums[number] = sums[number] + np.array([cycles, useful, slots])
    reports = []
    for model, sums in models.items():
        for number, own in sorted(sums.items()):
            layer = model.layers[number]
            sizes = layer.cell.name, layer.hidden, layer.input, layer.directions
            reports.append(LayerReport(model.name, number, *sizes, *own.tolist()))
    return tuple(reports)


def _layers_of(program: Program, phases: Sequence[Phase], cores: Sequence[int], peaks: Sequence[int]) -> _Sums:
    sums = _none()
    for phase in phases:
        rows = phase.body.rows.operations.reshape(-1, _WIDTH)
        unit, member, cycles, count, work, extra = (rows[:, place] for place in _PLACES)
        more = np.array([sum(column) for column in phase.extra_cycles] + [0], dtype=np.int64)
        taken, done = cycles * count * phase.repeat + more[extra], work * count * phase.repeat
        layers = phase.body.layers
        for rank, core in enumerate(cores):
            if core >= len(peaks) or program.cores[core].accounted is None:
                continue
            own = (member == rank) & (unit == program.cores[core].accounted) & (layers >= 0)
            for layer in sorted(set(layers[own].tolist())):  # np.unique would import numpy.ma
                these = own & (layers == layer)
                issued = taken[these].sum()
                sums[layer] = sums[layer] + np.array([issued, done[these].sum(), issued * peaks[core]])
    return sums
