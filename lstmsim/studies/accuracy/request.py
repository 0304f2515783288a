"""Fixed point against floating point: options, and what users call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY
from math import inf
from typing import TYPE_CHECKING, Annotated

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import Overrides, Progress, RandomWeights, Source, takes

if TYPE_CHECKING:
    from lstmsim.studies.accuracy.study import AccuracyReport


def _widths(text: str) -> range:
    """The widths of LOW:HIGH."""
    from lstmsim.model.model import WIDTHS

    least, most = WIDTHS["weight_bits"]
    match = re.fullmatch(r"(\d{1,4}):(\d{1,4})", text, re.ASCII)
    low, high = (int(each) for each in match.groups()) if match else (0, 0)
    if not least <= low <= high <= most:
        raise ValueError(f"expected LOW:HIGH with {least} <= LOW <= HIGH <= {most}, like 4:12; got {text}")
    return range(low, high + 1)


def _thresholds(text: str) -> tuple[float, ...]:
    """The numbers of a list with commas."""
    try:
        numbers = tuple(float(each) for each in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or any(not 0 <= each < inf for each in numbers):
        raise ValueError(f"expected numbers of at least 0 with commas between them, like 0,0.02,0.05; got {text}")
    return numbers


@record
class AccuracyRequest:
    """A scenario, and at which widths its jobs are computed."""

    scenario: Source
    _: KW_ONLY
    overrides: Overrides = ()
    random_weights: RandomWeights = None
    bits: Annotated[
        Sequence[int],
        Key(
            "Repeat with weights and vectors of each width in this range; with --plot 4:12 unless given.",
            metavar="LOW:HIGH",
            read=_widths,
        ),
    ] = ()
    thresholds: Annotated[
        Sequence[float],
        Key(
            "Run again with columns skipped whose elements change by less than each of these thresholds.",
            metavar="T,T,...",
            read=_thresholds,
        ),
    ] = ()
    progress: Progress = None


@takes(AccuracyRequest)
def accuracy(request: AccuracyRequest) -> AccuracyReport:
    """Compare fixed point at the scenario's precision with float64, per job.

    A network of g2p-en among the jobs adds the words whose phonemes change.

    `InputError` for a model without weights, unless `random_weights` is given.

    >>> job = {"model": "silero-vad-16k", "steps": 30, "inputs": "silero-speech.safetensors"}
    >>> report = accuracy({"chip": "column-npu-64k", "jobs": [job]}, bits=[12])
    >>> report.by_bits[12].jobs[0].accuracy.sqnr_db > report.given.jobs[0].accuracy.sqnr_db
    True
    """
    from lstmsim.machines.registry import target_of
    from lstmsim.studies.accuracy.study import AccuracyReport, accuracy_cases, studies, with_bits, words_of
    from lstmsim.studies.accuracy.thresholds import senders_of, skipped
    from lstmsim.studies.shared.loading import load_scenario

    loaded, bits = load_scenario(request.scenario, request.overrides), request.bits
    precisions = [loaded.precision, *(with_bits(loaded.precision, each) for each in bits)]
    cases = accuracy_cases(loaded, request.random_weights)
    target = target_of(loaded.chip.kind)
    # words are spelled without skipping: the decoder is asked again for sequences that have grown
    words = None if target.reads_numbers(loaded.chip) else words_of(loaded)
    given, *others = studies(cases, precisions, words, request.progress, senders_of(loaded, dict(enumerate(cases))))
    by_bits = dict(zip(bits, others, strict=True))
    found = skipped(loaded, cases, request.thresholds)
    return AccuracyReport(loaded.name, given, by_bits, target.other_numbers, found, bool(loaded.precision_given))
