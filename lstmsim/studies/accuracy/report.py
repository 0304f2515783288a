"""An accuracy report as a document and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, isnan
from typing import Any

import numpy as np

from lstmsim.model.model import Precision
from lstmsim.model.numerics.jobs import beginning_lines, calibration_lines, judged_frames
from lstmsim.report.document import Document, Grid, Section, Text, grid
from lstmsim.report.results import Forms, picked, plain
from lstmsim.studies.accuracy.study import AccuracyReport, JobAccuracy, Study, WordsAccuracy

#: More jobs than this are cut short in tables for people.
_JOB_LIMIT = 40
_MORE_JOBS = "jobs; --json has all"
_WORD_LIMIT = 5


def accuracy_document(report: AccuracyReport, steps: bool = False) -> Document:
    """Tables of jobs, words and widths.

    steps: whether each job gets a table of its steps.
    """
    study = report.given
    drawn = {job.case.weights for job in study.jobs if job.case.weights.startswith("random")}
    begun = [(each, job.case.begins) for job in study.jobs for each in job.case.jobs[:1]]
    jobs = Section.of(
        _jobs_grid(study.jobs),
        *(f"weights of some jobs are {each}" for each in sorted(drawn)),
        *map(Text, beginning_lines(begun)),
        *map(Text, calibration_lines([job.case for job in study.jobs])),
    )
    other = f"of the networks alone: {report.other_numbers}" if report.other_numbers else None
    return Document.of(
        f"ACCURACY of {report.scenario}: fixed point against float64",
        Section.of(_widths(study.precision), other),
        jobs,
        None if study.words is None else _words(study.words),
        *(map(_steps_grid, study.jobs) if steps else ()),
        _bits(report.by_bits) if report.by_bits else None,
        _thresholds(report) if report.by_threshold else None,
    )


def job_title(job: JobAccuracy) -> str:
    """Give the name of a case's first job, and say how many equal jobs it has."""
    more = len(job.case.jobs) - 1
    return job.case.jobs[0] + (f" (and {more} equal)" if more else "")


def _widths(own: Precision) -> str:
    kind = "table entries" if own.activation == "table" else "straight pieces"
    shared = ["formats shared by all passes of a kind of cell"] * (own.formats == "shared")
    shared += ["one shift for all rows of a sum"] * (own.shift == "common")
    parts = [
        f"{own.weight_bits}-bit weights (a scale per {own.weight_scale}), {own.vector_bits}-bit vectors, "
        f"{own.accumulator_bits}-bit accumulator, {own.multiplier_bits}-bit multiplier",
        f"{own.tail_bits}-bit tail, {own.state_bits}-bit state, activation functions of {own.activation_entries} "
        f"{kind} over -{own.activation_range} ... {own.activation_range}",
    ]
    return ",\n".join([*parts, *([", ".join(shared)] if shared else [])])


def _jobs_grid(jobs: Sequence[JobAccuracy]) -> Grid:
    columns = ["<job", "<inputs", "steps", "max error", "at step", "RMS error", "SQNR dB", "saturated", "overflowed"]
    rows = [
        [
            *(job_title(job), job.case.inputs, len(job.accuracy.step_max), _error(job.accuracy.max_error)),
            *(str(int(np.argmax(job.accuracy.step_max))), _error(job.accuracy.rms_error)),
            *(_decibels(job.accuracy.sqnr_db), _counts(job.saturated), _counts(job.overflowed)),
        ]
        for job in jobs
    ]
    return grid(columns, rows, limit=_JOB_LIMIT, more=_MORE_JOBS)


def _steps_grid(job: JobAccuracy) -> Grid:
    own = job.accuracy
    errors = zip(own.step_max, own.step_rms, own.step_sqnr_db, strict=True)
    rows = [
        [str(step), _error(largest), _error(rms), _decibels(sqnr)] for step, (largest, rms, sqnr) in enumerate(errors)
    ]
    return grid(["step", "max error", "RMS error", "SQNR dB"], rows, title=f"STEPS of {job_title(job)}")


def _words(words: WordsAccuracy) -> Section:
    same = words.words - len(words.changed)
    rows = [[each.word, " ".join(each.float64), "->", " ".join(each.fixed) or "(nothing)"] for each in words.changed]
    return Section.of(
        f"WORDS: {same} of {words.words} ({100 * words.unchanged:.1f} %) are spelled by g2p-en as in float64",
        grid(["<", "<", "<", "<"], rows, headed=False, limit=_WORD_LIMIT, more="words") if rows else None,
        f"saturated: {_counts(words.saturated)}, overflowed: {_counts(words.overflowed)}",
        "formats for the words are calibrated on these very words: optimistic",
    )


def _bits(by_bits: Mapping[int, Study]) -> Section:
    every = list(by_bits.values())
    rows = [
        [job_title(job), *(_decibels(study.jobs[number].accuracy.sqnr_db) for study in every)]
        for number, job in enumerate(every[0].jobs)
    ]
    more = len(rows) - _JOB_LIMIT
    words = [f"{100 * study.words.unchanged:.1f}" for study in every if study.words]
    shown = [*rows[:_JOB_LIMIT], *([["words unchanged, %", *words]] if words else [])]
    over = ", ".join(
        str(bits)
        for bits, study in by_bits.items()
        if any(job.overflowed for job in study.jobs) or (study.words and study.words.overflowed)
    )
    width = every[0].precision.accumulator_bits
    title = "BITS of weights and vectors together, all else as above"
    return Section.of(
        grid(["<SQNR dB at bits", *map(str, by_bits)], shown, title),
        f"... and {more} more {_MORE_JOBS}" if more > 0 else None,
        f"sums overflowed the accumulator of {width} bits at {over}" if over else None,
    )


def _thresholds(report: AccuracyReport) -> Section:
    jobs = report.given.jobs
    head = ["threshold", "cycles", "against 0" if 0.0 in report.by_threshold else "against first", "left out, %"]
    head += [f"SQNR dB {job_title(job)}" for job in jobs[:_JOB_LIMIT]]
    first = report.by_threshold.get(0.0) or next(iter(report.by_threshold.values()))
    rows = [
        [f"{threshold:g}", own.cycles, f"{own.cycles / first.cycles:.3f}", f"{100 * own.left_out:.1f}"]
        + [_decibels(each.sqnr_db) for each in own.accuracy[:_JOB_LIMIT]]
        for threshold, own in report.by_threshold.items()
    ]
    numbers = "the scenario's fixed point" if report.fixed else "float64"
    return Section.of(
        grid(head, rows),
        f"in {numbers}, with columns skipped, against float64 without; cycles are those of these very data",
        title="THRESHOLDS: columns are skipped whose elements change by less, of x and of h",
    )


def _error(value: float) -> str:
    return f"{value:.2e}" if value else "0"


def _decibels(value: float) -> str:
    """Decibels in words: "exact" without any error, "-" if the reference is all zero."""
    return "-" if isnan(value) else f"{value:.1f}" if isfinite(value) else "exact"


def _counts(counts: Mapping[str, int]) -> str:
    """The total of the counts, and the name with the highest count."""
    if not counts:
        return "0"
    name, most = max(counts.items(), key=lambda each: each[1])
    where = f"all {name}" if len(counts) == 1 else f"{most:,} {name}"
    return f"{sum(counts.values()):,} ({where})"


def _data(report: AccuracyReport) -> dict[str, Any]:
    """The report as plain data of schema `lstmsim/accuracy/1`.

    Numbers that are not finite, like the ratio without any error, are null. Steps are listed for the scenario's own
    precision only.
    """
    return {
        "schema": "lstmsim/accuracy/1",
        **picked(report, "scenario other_numbers"),
        **_study_data(report.given, steps=True),
        "bits": [{"bits": bits, **_study_data(study, steps=False)} for bits, study in report.by_bits.items()],
        **({"thresholds": _threshold_data(report)} if report.by_threshold else {}),
    }


def _threshold_data(report: AccuracyReport) -> list[dict[str, Any]]:
    names = "max_error rms_error sqnr_db"
    return [
        {
            "threshold": threshold,
            **picked(own, "cycles left_out"),
            "jobs": [picked(each, names) for each in own.accuracy],
        }
        for threshold, own in report.by_threshold.items()
    ]


def _study_data(study: Study, steps: bool) -> dict[str, Any]:
    judged = judged_frames(job.case for job in study.jobs)
    return {
        "precision": plain(study.precision),
        "jobs": [_job_data(job, each, steps) for job, each in zip(study.jobs, judged, strict=True)],
        "words": None if study.words is None else picked(study.words, "words unchanged changed saturated overflowed"),
    }


def _job_data(job: JobAccuracy, judged: int, steps: bool) -> dict[str, Any]:
    names = "jobs=case.jobs model=case.network.model.name weights=case.weights inputs=case.inputs"
    errors = "rms_error=accuracy.rms_error sqnr_db=accuracy.sqnr_db saturated overflowed"
    shown = {
        **picked(job, names),
        "begins_with": job.case.begins or "0",
        "calibrated_on": job.case.calibrated_on or None,
        "calibrated_on_judged_frames": judged,
        "max_error": job.accuracy.max_error,
        "worst_step": int(np.argmax(job.accuracy.step_max)),
        **picked(job, errors),
    }
    if steps:
        shown["steps"] = picked(job.accuracy, "max_error=step_max rms_error=step_rms sqnr_db=step_sqnr_db")
    return shown


def _records(report: AccuracyReport) -> Iterator[dict[str, Any]]:
    """Each job at the scenario's precision, then at each other width; `bits` is the width of weights."""
    for study in (report.given, *report.by_bits.values()):
        for job in _study_data(study, steps=False)["jobs"]:
            yield {"bits": study.precision.weight_bits, **job}


FORMS = Forms(_data, accuracy_document, _records, picture="lstmsim.studies.accuracy.picture:plot_accuracy")
