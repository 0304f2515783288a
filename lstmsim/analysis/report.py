"""The report of a simulation: frozen numbers."""

from __future__ import annotations

from collections.abc import Mapping

from lstmsim.analysis.stall_words import pe_names
from lstmsim.base.records import record
from lstmsim.model.figures import CoreFigures, MainUnit, PlannedProducts, Words
from lstmsim.program.stall_reasons import CYCLE_NAMES, MACHINE_NAMES
from lstmsim.report.results import Table

#: The names that the cycles of every machine can have. Each cycle has exactly one name. Some machines have more names
#: (`CoreFigures.stalls`).
ACCOUNTS = MACHINE_NAMES

#: The names that the PE-cycles of every machine can have. Each PE-cycle has exactly one name.
LOSSES = pe_names(ACCOUNTS)


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
class TurnedAway:
    """A job that was turned away, because its queue was full or its patience had ended.

    name: name of the job.
    number: its place among the scenario's jobs.
    arrival: cycle at which it came.
    at: cycle at which it was turned away.
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
    cycles: cycles by name; they add up to the makespan, or to a multiple of it (`CoreFigures.ways`).
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
        return self.macs * self.figures.ways / total if total else 0.0


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
    """Mean and percentiles of the job latencies in milliseconds. Percentiles are interpolated between ranks."""

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
    turned_away: the jobs that were not served.
    memory_busy_cycles: how long the memory beside the chip was at work; None if all weights stay on the chip.
    remarks: what was simulated although the machine could not do it, or although no source says how long it takes.
    planned: how products of the jobs are spread over threads; None: the machine plans none, or nobody asked it.
    requests: whether jobs of one entry come at times of their own, so that each job says little.
    kernels: sentences on how time steps of the jobs were cut into kernels; empty: as the machine always does it.
    layers: what each layer of each model took of the main units; empty where operations belong to no layer.
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
    turned_away: tuple[TurnedAway, ...] = ()
    memory_busy_cycles: int | None = None
    remarks: tuple[str, ...] = ()
    planned: PlannedProducts | None = None
    requests: bool = False
    kernels: tuple[str, ...] = ()
    layers: tuple[LayerReport, ...] = ()

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
