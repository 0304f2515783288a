"""Fixed point against floating point: what users ask, and the picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lstmsim.base.errors import InputError
from lstmsim.studies.shared.arguments import refuse, wrong_whole, wrong_wholes
from lstmsim.studies.shared.loading import Path, Source, load_scenario
from lstmsim.studies.simulate.run import expect

if TYPE_CHECKING:
    from lstmsim.report.pictures.figures import Picture
    from lstmsim.studies.accuracy.study import AccuracyReport


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
    from lstmsim.studies.accuracy.study import AccuracyReport, accuracy_cases, studies, with_bits, words_of

    refuse(wrong_whole("random_weights", random_weights, 0), wrong_wholes("bits", bits))
    loaded = load_scenario(scenario, overrides)
    precisions = [loaded.precision, *(with_bits(loaded.precision, each) for each in bits)]
    cases = accuracy_cases(loaded, random_weights)
    given, *others = studies(cases, precisions, words_of(loaded), progress)
    other = target_of(loaded.chip.kind).other_numbers
    return AccuracyReport(loaded.name, given, dict(zip(bits, others, strict=True)), other)


def plot_accuracy(report: AccuracyReport, path: Path | None = None) -> Picture:
    """Draw the widths of an accuracy report.

    report: with at least one width.
    path: the picture's file (.png, .svg or .pdf), with its numbers beside it as .csv; None: no file.
    """
    from lstmsim.studies.accuracy import picture as plots
    from lstmsim.studies.accuracy.report import job_title
    from lstmsim.studies.accuracy.study import AccuracyReport

    expect(report, (AccuracyReport,), "plot_accuracy", "an AccuracyReport, as lstmsim.accuracy gives it")
    if not report.by_bits:
        raise InputError("nothing to draw: ask for accuracy(..., bits=range(4, 13))")
    bits = sorted(report.by_bits)
    every = [report.by_bits[each] for each in bits]
    curves = [
        (job_title(job), [study.jobs[number].accuracy.sqnr_db for study in every])
        for number, job in enumerate(every[0].jobs)
    ]
    words = [study.words.unchanged for study in every if study.words is not None]
    title = f"{report.scenario}: fixed point against float64"
    return plots.plot(bits, curves, words or None, path, title=title)
