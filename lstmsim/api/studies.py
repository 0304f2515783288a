"""What is found out with many simulations, or with none: comparisons, validation, precision, searches, sweeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lstmsim.api.loading import Path, Source, load_at_clocks, load_scenario
from lstmsim.workload.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lstmsim.applications.accuracy_study import AccuracyReport
    from lstmsim.comparison.result import Comparison
    from lstmsim.devices.energy import Energy
    from lstmsim.devices.fit import Fit
    from lstmsim.searches.result import SearchResult
    from lstmsim.sweeps.run import SweepResult
    from lstmsim.validation.rows import Validation

__all__ = [
    "accuracy",
    "compare",
    "energy",
    "fit",
    "plot_accuracy",
    "plot_comparison",
    "search",
    "sweep",
    "validate",
]


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
    from lstmsim.applications.accuracy_cases import accuracy_cases, words_of
    from lstmsim.applications.accuracy_study import AccuracyReport, studies, with_bits

    loaded = load_scenario(scenario, overrides)
    precisions = [loaded.precision, *(with_bits(loaded.precision, each) for each in bits)]
    cases = accuracy_cases(loaded, random_weights)
    given, *others = studies(cases, precisions, words_of(loaded), progress)
    return AccuracyReport(loaded.name, given, dict(zip(bits, others, strict=True)))


def plot_accuracy(report: AccuracyReport, path: Path | None = None) -> Figure:
    """Draw the widths of an accuracy report (at least one), written to `path` (.png .svg .pdf, and its numbers as .csv
    beside it) if given."""
    from lstmsim.applications.accuracy_text import job_title
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


def compare(
    scenario: Source,
    chips: Sequence[str],
    *,
    base: str | None = None,
    each: bool = False,
    published: bool = False,
    engine: str = "fast",
    overrides: Sequence[str] = (),
) -> Comparison:
    """Run the same jobs on the scenario's chip (or on `base` instead) and on others, presets or chip files.

    `each`: every distinct model alone, a row each; `published`: with the published DeepBench figures beside them. What
    arrives by the second does so at each chip's own clock (the jobs of a ready `Scenario` have their cycles already).
    Of jobs that come over time, entries have latencies with intervals (`Entry.latencies`, `Comparison.latency_ratio`).

    >>> found = compare({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}, ["intel-npu-rtl"])
    >>> [machine.name for machine in found.machines]
    ['column-npu-64k', 'intel-npu-rtl']
    """
    from lstmsim.api.serving.served import served
    from lstmsim.comparison.chips import chips_of
    from lstmsim.comparison.compare import compare as comparing
    from lstmsim.formats.tables.published import deepbench

    loaded, at_clock = load_at_clocks(scenario, overrides)
    rows = deepbench() if published else ()
    found = chips_of(loaded, chips, base)
    return comparing(loaded, found, each=each, published=rows, engine=engine, at_clock=at_clock, served=served)


def plot_comparison(found: Comparison, path: Path | None = None) -> Figure:
    """Draw a comparison as bars, written to `path` (.png .svg .pdf, and its numbers as .csv beside it) if given."""
    from lstmsim.plots import comparison as plots

    return plots.plot(found, path)


def fit(scenario: Source, devices: Sequence[str] = (), *, overrides: Sequence[str] = ()) -> tuple[Fit, ...]:
    """What the scenario's chip needs of FPGAs (names or device files; all known ones if none are given), with the
    weights of its models on the chip, and which resource binds.

    >>> found = fit({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]}, ["stratix-10-gx-2800"])
    >>> found[0].fits
    True
    """
    from lstmsim.devices.fit import fit as fitting
    from lstmsim.formats.tables.devices_file import device, device_files

    loaded = load_scenario(scenario, overrides)
    models = tuple(dict.fromkeys(job.model for job in loaded.jobs))
    names = tuple(devices) or tuple(device_files())
    return tuple(fitting(loaded.chip, models, loaded.precision, device(name)) for name in names)


def energy(scenario: Source, *, overrides: Sequence[str] = ()) -> tuple[Energy, ...]:
    """The relative energy of each distinct job of a scenario, from a cited table of operations.

    >>> energy({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 2, "count": 3}]})[0].steps
    2
    """
    from lstmsim.devices.energy import energy as spending

    loaded = load_scenario(scenario, overrides)
    distinct = dict.fromkeys((job.model, job.steps, job.allowed(1)[0]) for job in loaded.jobs)
    chip, precision = loaded.chip, loaded.precision
    return tuple(spending(chip, model, steps, precision, core=core) for model, steps, core in distinct)


def validate(groups: Sequence[str] = (), *, engine: str = "fast") -> Validation:
    """Rerun the published rows that the models claim to reproduce; of all groups, or of those named.

    >>> validate(["intel-npu-rtl"]).failures
    ()
    """
    from lstmsim.validation import run

    return run.validate(tuple(groups) or run.GROUPS, engine=engine)


def search(
    scenario: Source,
    npe: int,
    *,
    exhaustive: bool = False,
    any_ep: bool = False,
    core: int | None = None,
    overrides: Sequence[str] = (),
) -> SearchResult:
    """Search the best (EP, VP) of `npe` multipliers for a scenario's jobs; see `lstmsim.searches.search`.

    >>> jobs = [{"model": "lstm-512", "steps": 25}]
    >>> search({"chip": "column-npu-64k", "jobs": jobs}, 65536).common.walk.chosen.ep
    32
    """
    from lstmsim.searches import search as searching
    from lstmsim.searches.loading import load_for_search

    loaded = scenario if isinstance(scenario, Scenario) else load_for_search(scenario, overrides)
    return searching.search(loaded, npe, exhaustive=exhaustive, any_ep=any_ep, core=core)


def sweep(spec: Path | Mapping[str, Any], folder: Path, *, jobs: int | None = None) -> SweepResult:
    """Simulate every point of a design space and write its tables into `folder`; see `lstmsim.sweeps.run`.

    >>> import tempfile
    >>> axes = {"ep": {"path": "chip.cores.0.ep", "values": [16, 32]}}
    >>> scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sweep({"scenario": scenario, "axes": axes}, folder, jobs=1).progress.done
    2
    """
    from lstmsim.sweeps.run import run_sweep

    return run_sweep(spec, folder, jobs=jobs)
