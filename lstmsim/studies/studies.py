"""Questions that take many simulations, or none: comparisons, validation, precision, searches, sweeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Optional

from lstmsim import engines
from lstmsim.base.checked import of_kind
from lstmsim.base.errors import InputError, Mistake
from lstmsim.model.scenario import Scenario
from lstmsim.studies.fit.fits import Fits
from lstmsim.studies.shared.arguments import refuse, wrong_name, wrong_names, wrong_path, wrong_whole, wrong_wholes
from lstmsim.studies.shared.loading import Path, Source, file_or_data, load_at_clocks, load_scenario

if TYPE_CHECKING:
    from lstmsim.studies.accuracy.accuracy_study import AccuracyReport
    from lstmsim.studies.compare.result import Comparison
    from lstmsim.studies.fit.energy import Energy
    from lstmsim.studies.search.result import SearchResult
    from lstmsim.studies.sweep.merge import Merged
    from lstmsim.studies.sweep.run import Progress, SweepResult
    from lstmsim.studies.validate.rows import Validation

__all__ = [
    "accuracy",
    "compare",
    "energy",
    "fit",
    "merge",
    "search",
    "sweep",
    "validate",
]

#: What a chip is named by, in words.
_CHIP = "a preset's name or a chip's file"


def accuracy(
    scenario: Source,
    *,
    overrides: Sequence[str] = (),
    random_weights: int | None = None,
    bits: Sequence[int] = (),
    progress: Callable[[int, int], None] | None = None,
) -> AccuracyReport:
    """Compare fixed point at the scenario's precision with float64, per job.

    A network of g2p-en among the jobs adds the words whose phonemes change.

    scenario: a path, a mapping, or a `Scenario`.
    overrides: texts like `"chip.cores.0.ep=16"`.
    random_weights: the seed to draw weights with, for models that have none.
    bits: widths (2 to 16) of weights and vectors at which the comparison is made as well.
    progress: is called with steps done and in all.

    `InputError` for a model without weights, unless `random_weights` is given.

    >>> job = {"model": "silero-vad-16k", "steps": 30, "inputs": "silero-speech.safetensors"}
    >>> report = accuracy({"chip": "column-npu-64k", "jobs": [job]}, bits=[12])
    >>> report.by_bits[12].jobs[0].accuracy.sqnr_db > report.given.jobs[0].accuracy.sqnr_db
    True
    """
    from lstmsim.machines.registry import target_of
    from lstmsim.studies.accuracy.accuracy_cases import accuracy_cases, words_of
    from lstmsim.studies.accuracy.accuracy_study import AccuracyReport, studies, with_bits

    refuse(wrong_whole("random_weights", random_weights, 0), wrong_wholes("bits", bits))
    loaded = load_scenario(scenario, overrides)
    precisions = [loaded.precision, *(with_bits(loaded.precision, each) for each in bits)]
    cases = accuracy_cases(loaded, random_weights)
    given, *others = studies(cases, precisions, words_of(loaded), progress)
    other = target_of(loaded.chip.kind).other_numbers
    return AccuracyReport(loaded.name, given, dict(zip(bits, others, strict=True)), other)


def compare(
    scenario: Source,
    chips: str | Sequence[str] = (),
    *,
    base: str | None = None,
    each: bool = False,
    published: bool = False,
    engine: str = "fast",
    overrides: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run the same jobs on the scenario's chip and on others.

    Arrivals by the second come so at each chip's own clock; the jobs of a ready `Scenario` have their cycles already.
    For jobs that come over time, entries have latencies with intervals (`Entry.latencies`, `Comparison.latency_ratio`).

    scenario: a path, a mapping, or a `Scenario`.
    chips: presets or chip files to compare with.
    base: a chip that takes the place of the scenario's own.
    each: run every distinct model alone, a row each.
    published: show the published DeepBench figures of the same tasks, too.
    engine: a key of `lstmsim.engines.ENGINES`.
    overrides: texts like `"chip.cores.0.ep=16"`.
    progress: is called with runs done and in all.

    >>> comparison = compare({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}, ["intel-npu-rtl"])
    >>> [machine.name for machine in comparison.machines]
    ['column-npu-64k', 'intel-npu-rtl']
    """
    from lstmsim.files.tables.published import deepbench
    from lstmsim.studies.compare.chips import chips_of
    from lstmsim.studies.compare.compare import compare as comparing
    from lstmsim.studies.serve.served import served

    refuse(wrong_names("chips", chips, _CHIP), wrong_name("base", base, _CHIP))
    loaded, at_clock = load_at_clocks(scenario, overrides)
    rows = deepbench() if published else ()
    machines = chips_of(loaded, [chips] if isinstance(chips, str) else chips, base)
    return comparing(
        loaded,
        machines,
        each=each,
        published=rows,
        engine=engines.running(engine),
        progress=progress,
        at_clock=at_clock,
        served=served,
    )


def fit(
    scenario: Source, devices: str | Sequence[str] = (), *, with_energy: bool = False, overrides: Sequence[str] = ()
) -> Fits:
    """Say what the scenario's chip needs of FPGAs, with the weights of its models on the chip, and which resource
    binds.

    The answer has a fit for each device, in the order of the devices.

    scenario: a path, a mapping, or a `Scenario`.
    devices: names or device files, one or several; all known devices if none are given.
    with_energy: add the energy of each distinct job (`Fits.energy`).
    overrides: texts like `"chip.cores.0.ep=16"`.

    >>> fits = fit({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]}, "stratix-10-gx-2800")
    >>> fits[0].fits
    True
    """
    from lstmsim.machines.hardware import Stored
    from lstmsim.studies.fit.devices_file import device, device_files
    from lstmsim.studies.fit.fit import fit as fitting

    refuse(wrong_names("devices", devices, "a device's name or file"))
    loaded = load_scenario(scenario, overrides)
    models = tuple(dict.fromkeys(job.model for job in loaded.jobs))
    names = ([devices] if isinstance(devices, str) else tuple(devices)) or tuple(device_files())
    fits = [fitting(loaded.chip, models, loaded.precision, device(name), Stored.of(loaded.jobs)) for name in names]
    return Fits(fits, energy(loaded) if with_energy else ())


def energy(scenario: Source, *, overrides: Sequence[str] = ()) -> tuple[Energy, ...]:
    """Give the relative energy of each distinct job of a scenario, from a cited table of operations.

    >>> energy({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 2, "count": 3}]})[0].steps
    2
    """
    from lstmsim.studies.fit.energy import energy as spending

    loaded = load_scenario(scenario, overrides)
    distinct = dict.fromkeys((job.model, job.steps, job.allowed(1)[0]) for job in loaded.jobs)
    chip, precision = loaded.chip, loaded.precision
    return tuple(spending(chip, model, steps, precision, core=core) for model, steps, core in distinct)


def validate(
    groups: str | Sequence[str] = (), *, engine: str = "fast", progress: Callable[[int, int], None] | None = None
) -> Validation:
    """Rerun the published rows that the models claim to reproduce.

    groups: names of groups; all groups unless given.
    engine: a key of `lstmsim.engines.ENGINES`.
    progress: is called with comparisons done and in all.

    >>> validate(["intel-npu-rtl"]).failures
    ()
    """
    from lstmsim.studies.validate import run

    refuse(wrong_names("groups", groups, "a group's name"))
    named = (groups,) if isinstance(groups, str) else tuple(groups)
    return run.validate(named or run.GROUPS, engine=engines.running(engine), progress=progress)


def search(
    scenario: Source,
    npe: int,
    *,
    exhaustive: bool = False,
    any_ep: bool = False,
    core: int | None = None,
    overrides: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> SearchResult:
    """Search the best (EP, VP) of `npe` multipliers for a scenario's jobs; see `lstmsim.studies.search.search`.

    scenario: a path, a mapping, or a `Scenario`.
    npe: multipliers of each searched core.
    exhaustive: simulate every useful pair, too.
    any_ep: try EPs that are no powers of two.
    core: the number of the only core that is searched; None: all cores, which must be equal.
    overrides: texts like `"chip.cores.0.ep=16"`.
    progress: is called with pairs simulated and how many there may be.

    >>> jobs = [{"model": "lstm-512", "steps": 25}]
    >>> search({"chip": "column-npu-64k", "jobs": jobs}, 65536).common.walk.chosen.ep
    32
    """
    from lstmsim.studies.search import search as searching
    from lstmsim.studies.search.loading import load_for_search

    npe, core = of_kind("npe", int, npe), of_kind("core", Optional[int], core)  # noqa: UP045 - a value, no hint
    loaded = scenario if isinstance(scenario, Scenario) else load_for_search(file_or_data(scenario), overrides)
    return searching.search(loaded, npe, exhaustive=exhaustive, any_ep=any_ep, core=core, progress=progress)


def sweep(
    spec: Path | Mapping[str, Any],
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    dask: str | None = None,
    shard: tuple[int, int] | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> SweepResult:
    """Simulate every point of a design space and write its tables into `folder`.

    spec: the sweep's file, or the same keys as a mapping.
    folder: where the results go.
    overrides: texts like `"chip.cores.0.ep=16"`.
    jobs: worker processes; None: one for each processor.
    dask: address of a scheduler that computes in place of worker processes.
    shard: (i, n) computes only every n-th point, from the i-th, counted from 1; then `merge`.
    resume: False forgets the results in `folder`.
    retry_failed: compute points again that have failed.
    progress: is called after every commit.

    `InputError` for a mistake in the file; a mistake of a point is in the point's row.

    >>> import tempfile
    >>> axes = {"ep": {"path": "chip.cores.0.ep", "values": [16, 32]}}
    >>> scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sweep({"scenario": scenario, "axes": axes}, folder, jobs=1).progress.done
    2
    """
    from lstmsim.base.wording import show
    from lstmsim.studies.sweep.run import run_sweep

    given: object = spec
    if not isinstance(given, str | PathLike | Mapping):
        text = f"must be a file's path or a mapping of keys to values, got {show(given)}"
        raise InputError(Mistake("sweep", text))
    refuse(wrong_path("folder", folder), wrong_whole("jobs", jobs, 1), _wrong_shard(shard))
    if isinstance(spec, Mapping) and isinstance(spec.get("scenario"), Scenario | Mapping):
        spec = {**spec, "scenario": file_or_data(spec["scenario"])}
    return run_sweep(
        spec,
        folder,
        overrides=overrides,
        jobs=jobs,
        dask=dask,
        shard=shard,
        resume=resume,
        retry_failed=retry_failed,
        progress=progress,
    )


def _wrong_shard(shard: object) -> list[Mistake]:
    """Say what is wrong with a shard, which is a pair of whole numbers."""
    from lstmsim.base.wording import show

    if shard is None:
        return []
    if isinstance(shard, list | tuple) and len(shard) == 2:
        index, count = shard
        if not (wrong_whole("", count, 1) or wrong_whole("", index, 1, count)) and None not in shard:
            return []
        got = f"({show(index)}, {show(count)})"
    else:
        got = show(shard)
    return [Mistake("shard", f"must be a pair (i, n) of whole numbers with i from 1 to n, like (3, 20), got {got}")]


def merge(out: Path, inputs: Path | Sequence[Path]) -> Merged:
    """Join the SQLite files of a sweep's shards into `out`, and write its tables beside it.

    out: a file name that ends in .sqlite.
    inputs: the shards' files, all of the same sweep.

    `InputError` if a file belongs to another sweep or is damaged; `out` is then as it was before.
    """
    from lstmsim.studies.sweep import merge as merging

    refuse(wrong_path("out", out), wrong_names("inputs", inputs, "a path"))
    return merging.merge(out, [inputs] if isinstance(inputs, str | PathLike) else inputs)
