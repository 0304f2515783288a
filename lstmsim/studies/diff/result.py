"""The result of a diff: frozen rows, each with the number of A and the number of B (docs/diff.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lstmsim.model.figures import Words
from lstmsim.report.results import Table
from lstmsim.studies.program.run import ProgramRun
from lstmsim.studies.simulate.run import Run
from lstmsim.traffic.intervals import Interval

#: The number of A and that of B; None where a side has none.
Pair = tuple[int | None, int | None]
#: A number of both sides.
Both = tuple[int, int]
Floats = tuple[float, float]

Verdict = Literal["faster", "slower", "same", "cannot tell"]


@dataclass(frozen=True)
class Changed:
    """A key of the descriptions with unlike values; None where a side has no such key."""

    key: str
    values: tuple[Any, Any]


@dataclass(frozen=True)
class PathRow:
    """Cycles of the critical paths of one name and one cause (`analysis.explanations.explanation.PathPart`)."""

    what: str
    why: str
    cycles: Both


@dataclass(frozen=True)
class CoreRow:
    """Where the cycles of a core went.

    core: its number.
    ways: of how many equal slots its main unit consists.
    cycles: by name; on each side they add up to ways x makespan.
    peak: multiply-accumulates that it can do in a cycle; None where the side has no such core, or is a program.
    multiplier_cycles: by name; on each side they add up to peak x makespan.
    """

    core: int
    ways: Pair
    cycles: Mapping[str, Pair]
    peak: Pair = (None, None)
    multiplier_cycles: Mapping[str, Pair] = field(default_factory=dict)

    @property
    def comparable(self) -> bool:
        """Whether both sides have the core with equally many slots, so that differences add up to the makespans'."""
        return self.ways[0] is not None and self.ways[0] == self.ways[1]


@dataclass(frozen=True)
class JobRow:
    """The latency of a job, and the cycles of which it consists (`explanations.slowest.RequestCycles`).

    numbers: its place among the jobs of each side; None where only the other side has it.
    latency_cycles: None where it was not served.
    cycles: by name; on each side they add up to the latency.
    """

    job: str
    numbers: Pair
    latency_cycles: Pair
    cycles: Mapping[str, Pair]

    @property
    def more(self) -> int | None:
        """How many cycles longer B takes for it; None where a side did not serve it."""
        a, b = self.latency_cycles
        return None if a is None or b is None else b - a


@dataclass(frozen=True)
class Parting:
    """The first cycle in which the two traces have unlike events.

    core: where; None for a job that came to no core.
    a, b: what each side did there.
    why: why one of them did not do what the other did.
    """

    cycle: int
    core: int | None
    a: str
    b: str
    why: str


@dataclass(frozen=True)
class Lag:
    """The step of a layer at which B's lag behind A changes most.

    cycles: by how much it changes (below 0: B gains).
    behind: B's lag at the end of the step: its cycle in B - its cycle in A.
    """

    job: str
    layer: int
    step: int
    cycles: int
    behind: int


@dataclass(frozen=True)
class Arrivals:
    """Latencies of requests that come at open arrivals.

    same: whether the same requests come at the same times on both sides, so that differences are taken in pairs.
    drawn: whether any of them come as a process; else the requests are all there is, and no interval is needed.
    compared: how many requests both sides served, without those of the warm-up.
    only_a, only_b: how many requests only A, only B served of those that both have.
    mean_ms: mean latency of all requests that were served, as `simulate` prints it.
    difference_ms: of the mean and of percentiles, B's - A's, with its 95 % interval; `half_width` None: none is known.
    reason: why there is no interval; empty if there is one, or if none is needed.
    """

    same: bool
    drawn: bool
    compared: int
    only_a: int
    only_b: int
    mean_ms: Floats
    difference_ms: Mapping[str, Interval]
    reason: str = ""


@dataclass(frozen=True)
class Diff(Table, forms="lstmsim.studies.diff.report"):
    """Two runs, and where the cycles between them went. Every pair has the number of A, then of B.

    names: what each side is.
    chips: names of the chips.
    frequency_mhz: clocks.
    makespan_cycles: of the runs.
    ms: the makespans in milliseconds.
    clock_ms, cycles_ms: the two parts of their difference, by the clock and by the cycles.
    changed: keys of the descriptions with unlike values.
    path: the critical paths by name and cause, rows with the largest difference first; they add up to the makespans.
    cores: where the cycles of each core went.
    jobs: latencies of the jobs, in the order of A.
    parts_at: the first cycle in which the traces differ; None if they never do.
    apart: names of jobs whose pieces of work cannot be compared one by one.
    lag: the step at which B gains or loses most; None if no step does, or none can be compared.
    arrivals: latencies at open arrivals; None if jobs come otherwise on a side.
    verdict: whether B is faster than A: by the makespan in ms, at open arrivals by the mean latency.
    words: words of the machines.
    runs: the two runs, for pictures.
    """

    names: tuple[str, str]
    chips: tuple[str, str]
    frequency_mhz: Floats
    makespan_cycles: Both
    ms: Floats
    clock_ms: float
    cycles_ms: float
    changed: tuple[Changed, ...]
    path: tuple[PathRow, ...]
    cores: tuple[CoreRow, ...]
    jobs: tuple[JobRow, ...]
    parts_at: Parting | None
    apart: tuple[str, ...]
    lag: Lag | None
    arrivals: Arrivals | None
    verdict: Verdict
    words: Mapping[str, Words] = field(default_factory=dict, compare=False, repr=False)
    runs: tuple[Run | ProgramRun, ...] = field(default=(), compare=False, repr=False)
