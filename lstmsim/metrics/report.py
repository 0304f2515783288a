"""The report of a simulation: frozen numbers."""

from __future__ import annotations

from collections.abc import Mapping

from lstmsim.metrics.cycle_names import pe_names
from lstmsim.program.cycles import CYCLE_NAMES, MACHINE_NAMES
from lstmsim.records import record
from lstmsim.results import Table
from lstmsim.workload.scenario import CoreFigures, Words

__all__ = ["ACCOUNTS", "LOSSES", "CoreReport", "JobReport", "LatencyMs", "Report", "TurnedAway"]

#: The names that the cycles of every machine can have; each cycle has exactly one. Some machines know more
#: (`CoreFigures.stalls`).
ACCOUNTS = MACHINE_NAMES

#: The names that the PE-cycles of every machine can have; each PE-cycle has exactly one.
LOSSES = pe_names(ACCOUNTS)


@record
class JobReport:
    """Where and when one job ran, in cycles; `start` is its admission, `latency` is finish - arrival, `deadline` the
    latency that it should not have exceeded, `preempted` how often it gave up its thread, `number` its place among the
    scenario's jobs. `cores`: all that it ran on at once, where these are several; `core` and `thread` are the first."""

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
        """The cores on which it ran, for people: `0`, `0,1,2` or `0..15`."""
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
        """Whether it was later than its deadline."""
        return self.deadline is not None and self.latency > self.deadline


@record
class TurnedAway:
    """A job that found its queue full, or whose patience had ended: when it came, when it was turned away."""

    name: str
    number: int
    arrival: int
    at: int


@record
class CoreReport:
    """Where one core's cycles and PE-cycles went; a PE-cycle is a multiply-accumulate that could be done in a cycle.

    index: its place on the chip.
    figures: what the machine says of it: its peak, sizes and settings.
    macs: useful multiply-accumulates.
    cycles: cycles by name; they add up to the makespan.
    pe_cycles: PE-cycles by name; they add up to the peak times the makespan.
    """

    index: int
    figures: CoreFigures
    macs: int
    cycles: Mapping[str, int]
    pe_cycles: Mapping[str, int]

    @property
    def peak(self) -> int:
        """Multiply-accumulates that it can do in a cycle."""
        return self.figures.peak

    @property
    def columns(self) -> Mapping[str, int]:
        """Sizes by the name of a column, for example `npe`, `ep`, `vp`."""
        return self.figures.columns

    @property
    def settings(self) -> Mapping[str, int | str]:
        """Its other figures (threads, adders saved ...)."""
        return self.figures.settings

    @property
    def utilization(self) -> float:
        """Useful multiply-accumulates / (peak * makespan)."""
        total = self.peak * sum(self.cycles.values())
        return self.macs / total if total else 0.0


@record
class LatencyMs:
    """Mean and percentiles of the job latencies in milliseconds (linear interpolation between ranks)."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float


@record
class Report(Table, forms="lstmsim.metrics.report_text"):
    """What a simulation found. The same input gives the same report on every engine but for the engine's name.

    `jobs` are those that were served. `memory_busy_cycles`: how long the memory beside the chip was at work (None: all
    weights stay on the chip). `remarks`: what was simulated although the machine could not do it, or although no source
    says how long it takes.
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

    @property
    def accounts(self) -> tuple[str, ...]:
        """The names of cycles that any of the cores knows, in the order in which a core looks for them."""
        return tuple(name for name in CYCLE_NAMES if any(name in core.cycles for core in self.cores))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of sizes that any of the cores has."""
        return tuple(dict.fromkeys(name for core in self.cores for name in core.columns))

    @property
    def words(self) -> Mapping[str, Words]:
        """What names of cycles and losses mean on this machine, where that is not the usual."""
        return {name: words for core in self.cores for name, words in core.figures.words.items()}

    @property
    def losses(self) -> dict[str, int]:
        """PE-cycles of all cores by name; they add up to the chip's peak times the makespan."""
        return {name: sum(core.pe_cycles.get(name, 0) for core in self.cores) for name in pe_names(self.accounts)}
