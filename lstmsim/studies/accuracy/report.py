"""An accuracy report in the forms that people and scripts read: tables for the terminal, and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isfinite, isnan
from typing import Any

import numpy as np

from lstmsim.model.model import Precision
from lstmsim.model.numerics.jobs import beginning_lines, calibration_lines, judged_frames
from lstmsim.report.results import Forms
from lstmsim.report.tables import table
from lstmsim.studies.accuracy.study import AccuracyReport, JobAccuracy, Study, WordsAccuracy

__all__ = ["FORMS", "SCHEMA", "accuracy_json", "accuracy_text", "job_title"]

SCHEMA = "lstmsim/accuracy/1"

#: More jobs than this are cut short in tables for people.
_JOB_LIMIT = 40
_WORD_LIMIT = 5


def accuracy_text(report: AccuracyReport, steps: bool = False) -> str:
    """Format a report as tables of jobs, words and widths; without a final newline.

    steps: whether each job gets a table of its steps.
    """
    study = report.given
    lines = [f"ACCURACY of {report.scenario}: fixed point against float64", *_precision_lines(study.precision)]
    if report.other_numbers:
        lines.append(f"of the networks alone: {report.other_numbers}")
    lines.append("")
    lines += _jobs_table(study.jobs)
    if len(study.jobs) > _JOB_LIMIT:
        lines.append(f"... and {len(study.jobs) - _JOB_LIMIT} more jobs; --json has all")
    drawn = {job.case.weights for job in study.jobs if job.case.weights.startswith("random")}
    lines += [f"weights of some jobs are {each}" for each in sorted(drawn)]
    lines += beginning_lines([(each, job.case.begins) for job in study.jobs for each in job.case.jobs[:1]])
    lines += calibration_lines([job.case for job in study.jobs])
    if study.words is not None:
        lines += ["", *_words_lines(study.words)]
    if steps:
        for job in study.jobs:
            lines += ["", *_steps_table(job)]
    if report.by_bits:
        lines += ["", *_bits_table(report.by_bits)]
    return "\n".join(lines)


def job_title(job: JobAccuracy) -> str:
    """Give the name of a case's first job, and say how many equal jobs it has."""
    more = len(job.case.jobs) - 1
    return job.case.jobs[0] + (f" (and {more} equal)" if more else "")


def _precision_lines(own: Precision) -> list[str]:
    kind = "table entries" if own.activation == "table" else "straight pieces"
    shared = ["formats shared by all passes of a kind of cell"] * (own.formats == "shared")
    shared += ["one shift for all rows of a sum"] * (own.shift == "common")
    return [
        f"{own.weight_bits}-bit weights (a scale per {own.weight_scale}), {own.vector_bits}-bit vectors, "
        f"{own.accumulator_bits}-bit accumulator, {own.multiplier_bits}-bit multiplier,",
        f"{own.tail_bits}-bit tail, {own.state_bits}-bit state, activation functions of {own.activation_entries} "
        f"{kind} over -{own.activation_range} ... {own.activation_range}{',' * bool(shared)}",
        *([", ".join(shared)] if shared else []),
    ]


def _jobs_table(jobs: Sequence[JobAccuracy]) -> list[str]:
    rows = [["job", "inputs", "steps", "max error", "at step", "RMS error", "SQNR dB", "saturated", "overflowed"]]
    for job in jobs[:_JOB_LIMIT]:
        own = job.accuracy
        rows.append(
            [
                *(job_title(job), job.case.inputs, f"{len(own.step_max):,}"),
                *(_error(own.max_error), str(int(np.argmax(own.step_max))), _error(own.rms_error)),
                *(_decibels(own.sqnr_db), _counts(job.saturated), _counts(job.overflowed)),
            ]
        )
    return table(rows, left=(0, 1))


def _steps_table(job: JobAccuracy) -> list[str]:
    own = job.accuracy
    rows = [["step", "max error", "RMS error", "SQNR dB"]]
    for step, (largest, rms, sqnr) in enumerate(zip(own.step_max, own.step_rms, own.step_sqnr_db, strict=True)):
        rows.append([str(step), _error(largest), _error(rms), _decibels(sqnr)])
    return [f"STEPS of {job_title(job)}", *table(rows)]


def _words_lines(words: WordsAccuracy) -> list[str]:
    same = words.words - len(words.changed)
    lines = [f"WORDS: {same} of {words.words} ({100 * words.unchanged:.1f} %) are spelled by g2p-en as in float64"]
    rows = [
        [each.word, " ".join(each.float64), "->", " ".join(each.fixed) or "(nothing)"]
        for each in words.changed[:_WORD_LIMIT]
    ]
    if rows:
        lines += table(rows, left=range(4))
    if len(words.changed) > _WORD_LIMIT:
        lines.append(f"... and {len(words.changed) - _WORD_LIMIT} more")
    lines.append(f"saturated: {_counts(words.saturated)}, overflowed: {_counts(words.overflowed)}")
    lines.append("formats for the words are calibrated on these very words: optimistic")
    return lines


def _bits_table(by_bits: Mapping[int, Study]) -> list[str]:
    every = list(by_bits.values())
    rows = [["SQNR dB at bits", *map(str, by_bits)]]
    for number, job in enumerate(every[0].jobs[:_JOB_LIMIT]):
        rows.append([job_title(job), *(_decibels(study.jobs[number].accuracy.sqnr_db) for study in every)])
    if every[0].words is not None:
        rows.append(["words unchanged, %", *(f"{100 * study.words.unchanged:.1f}" for study in every if study.words)])
    lines = ["BITS of weights and vectors together, all else as above", *table(rows, left=[0])]
    if len(every[0].jobs) > _JOB_LIMIT:
        lines.append(f"... and {len(every[0].jobs) - _JOB_LIMIT} more jobs; --json has all")
    over = [str(bits) for bits, study in by_bits.items() if _overflows(study)]
    if over:
        width = every[0].precision.accumulator_bits
        lines.append(f"sums overflowed the accumulator of {width} bits at {', '.join(over)}")
    return lines


def _overflows(study: Study) -> bool:
    return any(job.overflowed for job in study.jobs) or bool(study.words and study.words.overflowed)


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


def accuracy_json(report: AccuracyReport) -> dict[str, Any]:
    """Give a report as plain data of schema `lstmsim/accuracy/1`.

    Numbers that are not finite, like the ratio without any error, are null. Steps are listed for the scenario's own
    precision only.
    """
    return {
        "schema": SCHEMA,
        "scenario": report.scenario,
        "other_numbers": report.other_numbers,
        **_study_json(report.given, steps=True),
        "bits": [{"bits": bits, **_study_json(study, steps=False)} for bits, study in report.by_bits.items()],
    }


def _study_json(study: Study, steps: bool) -> dict[str, Any]:
    judged = judged_frames(job.case for job in study.jobs)
    return {
        "precision": asdict(study.precision),
        "jobs": [_job_json(job, each, steps) for job, each in zip(study.jobs, judged, strict=True)],
        "words": None if study.words is None else _words_json(study.words),
    }


def _job_json(job: JobAccuracy, judged: int, steps: bool) -> dict[str, Any]:
    own = job.accuracy
    fields: dict[str, Any] = {
        "jobs": list(job.case.jobs),
        "model": job.case.network.model.name,
        "weights": job.case.weights,
        "inputs": job.case.inputs,
        "begins_with": job.case.begins or "0",
        "calibrated_on": job.case.calibrated_on or None,
        "calibrated_on_judged_frames": judged,
        "max_error": own.max_error,
        "worst_step": int(np.argmax(own.step_max)),
        "rms_error": own.rms_error,
        "sqnr_db": _number(own.sqnr_db),
        "saturated": dict(job.saturated),
        "overflowed": dict(job.overflowed),
    }
    if steps:
        fields["steps"] = {
            "max_error": _numbers(own.step_max),
            "rms_error": _numbers(own.step_rms),
            "sqnr_db": _numbers(own.step_sqnr_db),
        }
    return fields


def _words_json(words: WordsAccuracy) -> dict[str, Any]:
    return {
        "words": words.words,
        "unchanged": words.unchanged,
        "changed": [
            {"word": each.word, "float64": list(each.float64), "fixed": list(each.fixed)} for each in words.changed
        ],
        "saturated": dict(words.saturated),
        "overflowed": dict(words.overflowed),
    }


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [_number(each) for each in values]


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _records(report: AccuracyReport) -> Iterator[dict[str, Any]]:
    """Each job at the scenario's precision, then at each other width; `bits` is the width of weights."""
    for study in (report.given, *report.by_bits.values()):
        for job in _study_json(study, steps=False)["jobs"]:
            yield {"bits": study.precision.weight_bits, **job}


FORMS = Forms(accuracy_json, accuracy_text, _records)
