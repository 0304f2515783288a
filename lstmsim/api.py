"""What the commands do, as functions: load, simulate, trace, compare, plot, search, sweep.

`search` and `sweep` are reached as `lstmsim.api.search` and `.sweep`: the package has folders of those names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from lstmsim import engines, targets
from lstmsim.errors import InputError
from lstmsim.metrics.accounts import totals_of
from lstmsim.metrics.measure import measure
from lstmsim.metrics.report import Report
from lstmsim.metrics.spans import build_timeline
from lstmsim.metrics.timeline import Timeline
from lstmsim.program.program import Program
from lstmsim.program.totals import Totals
from lstmsim.program.trace import Trace
from lstmsim.workload.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lstmsim.applications.accuracy_study import AccuracyReport
    from lstmsim.replay.check import Checked
    from lstmsim.search.result import SearchResult
    from lstmsim.sweep.run import SweepResult

__all__ = [
    "Run",
    "accuracy",
    "check_numerics",
    "load_scenario",
    "load_trace",
    "plot",
    "plot_accuracy",
    "run",
    "save_trace",
    "search",
    "simulate",
    "sweep",
    "trace",
]

#: Most operations whose trace is kept: a row has about 100 bytes.
MAX_TRACE_OPERATIONS = 10_000_000

Path = str | PathLike[str]
Source = Scenario | Path | Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Run:
    """One simulation: what was asked and the lowered program; trace, report and timeline are made when asked for."""

    scenario: Scenario
    engine: str
    program: Program

    @cached_property
    def trace(self) -> Trace:
        """What every unit did, event for event."""
        rows = sum(
            sum(len(phase.body.operations) * phase.repeat for phase in task.variants[0][1])
            for task in self.program.tasks
        )
        if rows > MAX_TRACE_OPERATIONS:
            text = f"a trace of {rows:,} operations is too long to keep, at most {MAX_TRACE_OPERATIONS:,} are recorded"
            raise InputError(f"{text}; the report alone has no such limit on the engine 'fast'")
        return engines.run(self.program, self.engine)

    @cached_property
    def totals(self) -> Totals:
        """Cycles by name, work and finishes; without a trace where none was asked for before."""
        if self.engine == "fast" and "trace" not in self.__dict__:
            return engines.totals(self.program)
        return totals_of(self.program, self.trace)

    @cached_property
    def report(self) -> Report:
        """The numbers."""
        return measure(self.scenario, self.totals, self.engine)

    @cached_property
    def timeline(self) -> Timeline:
        """What happened cycle by cycle, for pictures and trace files."""
        chip = self.scenario.chip
        names = [job.name for job in self.scenario.jobs]
        return build_timeline(self.program, self.trace, names, chip.name, chip.frequency_mhz)

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


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


def run(scenario: Source, *, engine: str = "fast", overrides: Sequence[str] = ()) -> Run:
    """Simulate a scenario and keep everything: report, trace and timeline of one and the same run.

    >>> result = run({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 20}]})
    >>> result.report.makespan_cycles == result.timeline.makespan_cycles
    True
    """
    loaded = load_scenario(scenario, overrides)
    program = targets.lower(loaded.chip, loaded.jobs)
    return Run(loaded, engine, program)


def simulate(scenario: Source, *, engine: str = "fast", overrides: Sequence[str] = ()) -> Report:
    """Simulate a scenario: cycles, utilization, where the cycles went, when each job finished.

    `engine` is a key of `lstmsim.engines.ENGINES`; all give the same numbers. Raises `InputError`.

    >>> core = {"npe": 65536, "ep": 32, "vp": 2048}
    >>> chip = {"kind": "column-npu", "frequency_mhz": 260, "cores": [core]}
    >>> layer = {"cell": "lstm", "hidden": 512, "input": 512}
    >>> simulate({"chip": chip, "jobs": [{"model": {"layers": [layer]}, "steps": 20}]}).makespan_cycles
    1423
    """
    return run(scenario, engine=engine, overrides=overrides).report


def check_numerics(
    result: Run, *, random_weights: int | None = None, progress: Callable[[int, int], None] | None = None
) -> tuple[Checked, ...]:
    """Execute the trace of a run on the real weights of its jobs and compare with the golden model.

    Fixed point must be equal bit for bit, float64 to rounding; `ReplayError` otherwise, `InputError` for a model
    without weights unless `random_weights` gives a seed to draw some. `progress` is called with rows done and in all.

    >>> result = run({"chip": "column-npu-64k", "jobs": [{"model": "silero-vad-16k", "steps": 3}]})
    >>> check_numerics(result)[0].values
    384
    """
    from lstmsim.formats.numbers import job_data
    from lstmsim.replay.check import check_numerics as check

    data = job_data(result.scenario, random_weights)
    return check(result.scenario, result.program, result.trace, data, progress)


def accuracy(
    scenario: Source,
    *,
    overrides: Sequence[str] = (),
    random_weights: int | None = None,
    bits: Sequence[int] = (),
    progress: Callable[[int, int], None] | None = None,
) -> AccuracyReport:
    """Compare fixed point at the scenario's precision with float64, per job; and at each width of `bits` (2 to 16) of
    weights and vectors.

    A network of g2p-en among the jobs adds the words whose phonemes change. `InputError` for a model without weights
    unless `random_weights` gives a seed to draw some. `progress` is called with steps done and in all.

    >>> job = {"model": "silero-vad-16k", "steps": 30, "inputs": "silero-speech.safetensors"}
    >>> report = accuracy({"chip": "column-npu-64k", "jobs": [job]}, bits=[12])
    >>> report.by_bits[12].jobs[0].accuracy.sqnr_db > report.given.jobs[0].accuracy.sqnr_db
    True
    """
    from lstmsim.applications.accuracy_study import AccuracyReport, studies, with_bits
    from lstmsim.formats.accuracy_cases import accuracy_cases, words_of

    loaded = load_scenario(scenario, overrides)
    precisions = [loaded.precision, *(with_bits(loaded.precision, each) for each in bits)]
    cases = accuracy_cases(loaded, random_weights)
    given, *others = studies(cases, precisions, words_of(loaded), progress)
    return AccuracyReport(loaded.name, given, dict(zip(bits, others, strict=True)))


def plot_accuracy(report: AccuracyReport, path: Path | None = None) -> Figure:
    """Draw the widths of an accuracy report (at least one), written to `path` (.png .svg .pdf, and its numbers as .csv
    beside it) if given."""
    from lstmsim.formats.accuracy_text import job_title
    from lstmsim.plots import accuracy as plots

    if not report.by_bits:
        raise ValueError("nothing to draw: ask for accuracy(..., bits=range(4, 13))")
    bits = sorted(report.by_bits)
    every = [report.by_bits[each] for each in bits]
    curves = [
        (job_title(job), [study.jobs[number].accuracy.sqnr_db for study in every])
        for number, job in enumerate(every[0].jobs)
    ]
    words = [study.words.unchanged for study in every if study.words is not None]
    title = f"{report.scenario}: fixed point against float64"
    return plots.plot(bits, curves, words or None, path, title=title)


def trace(scenario: Source, *, engine: str = "fast", overrides: Sequence[str] = ()) -> Timeline:
    """Simulate a scenario and return what happened cycle by cycle, as named spans.

    >>> len(trace({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 2}]})) > 0
    True
    """
    return run(scenario, engine=engine, overrides=overrides).timeline


def save_trace(timeline: Timeline, path: Path) -> None:
    """Write a timeline; the suffix decides: `.json`, `.json.gz` (Perfetto), `.vcd` or `.csv`. Whole or not at all."""
    from lstmsim.formats import traces

    traces.save_trace(timeline, path)


def load_trace(path: Path) -> Timeline:
    """Read back a saved trace; `InputError` if the file is not one."""
    from lstmsim.formats import traces

    return traces.load_trace(path)


def plot(
    timeline: Timeline | Run,
    path: Path | None = None,
    *,
    start: int | None = None,
    end: int | None = None,
    cores: Sequence[int] | None = None,
) -> Figure:
    """Draw a timeline, `start <= cycle < end`, of all or some cores; written to `path` (.png .svg .pdf) if given."""
    from lstmsim.plots import timeline as plots

    drawn = timeline.timeline if isinstance(timeline, Run) else timeline
    return plots.plot(drawn, path, start=start, end=end, cores=cores)


def search(
    scenario: Source,
    npe: int,
    *,
    exhaustive: bool = False,
    any_ep: bool = False,
    core: int | None = None,
    overrides: Sequence[str] = (),
) -> SearchResult:
    """Search the best (EP, VP) of `npe` multipliers for a scenario's jobs; see `lstmsim.search.search`.

    >>> jobs = [{"model": "lstm-512", "steps": 25}]
    >>> search({"chip": "column-npu-64k", "jobs": jobs}, 65536).common.walk.chosen.ep
    32
    """
    from lstmsim.search import search as searching

    loaded = load_scenario(scenario, overrides)
    return searching.search(loaded, npe, exhaustive=exhaustive, any_ep=any_ep, core=core)


def sweep(spec: Path | Mapping[str, Any], folder: Path, *, jobs: int | None = None) -> SweepResult:
    """Simulate every point of a design space and write its tables into `folder`; see `lstmsim.sweep.run`.

    >>> import tempfile
    >>> axes = {"ep": {"path": "chip.cores.0.ep", "values": [16, 32]}}
    >>> scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sweep({"scenario": scenario, "axes": axes}, folder, jobs=1).progress.done
    2
    """
    from lstmsim.sweep.run import run_sweep

    return run_sweep(spec, folder, jobs=jobs)
