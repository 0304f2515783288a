"""What fixed point does to networks' outputs and to the words that g2p-en spells, at one precision and at several.

The reference is the golden model in float64. Formats are calibrated on frames of their own if a case has such frames,
else on the runs that are then measured, which is optimistic.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import readable_file
from lstmsim.files.catalog import find_model
from lstmsim.files.scenario.numbers import job_data
from lstmsim.model.model import Model, Precision
from lstmsim.model.numerics.accuracy import Accuracy, accuracy
from lstmsim.model.numerics.arithmetic import Arithmetic
from lstmsim.model.numerics.calibration import Range, calibrate
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.fixed_networks import fixed_chip
from lstmsim.model.numerics.jobs import JobData, fixed_numbers, float_numbers, run_jobs
from lstmsim.model.numerics.weights import Floats, Stimulus
from lstmsim.model.scenario import Scenario
from lstmsim.report.results import Table
from lstmsim.studies.accuracy.g2p import G2p, Phonemes, arithmetic_runner, golden_runner, read_g2p, spell

#: Called with the steps that are done and the steps in all.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Case(JobData):
    """A network on an input; `follows` is the place among the cases of the case whose last states this one begins with.

    jobs: names of the scenario's jobs that are this case.
    All other fields: as in `lstmsim.model.numerics.jobs.JobData`.
    """

    jobs: tuple[str, ...] = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class JobAccuracy:
    """Errors of a case's last layer against float64.

    case: what was run.
    accuracy: the errors.
    saturated: by name, how many values did not fit their format.
    overflowed: by name, how many sums did not fit the accumulator.
    """

    case: Case
    accuracy: Accuracy
    saturated: Mapping[str, int]
    overflowed: Mapping[str, int]


@dataclass(frozen=True)
class Respelled:
    """A word whose phonemes in fixed point differ from its phonemes in float64.

    word: the word.
    float64, fixed: its phonemes in each arithmetic.
    """

    word: str
    float64: Phonemes
    fixed: Phonemes


@dataclass(frozen=True, eq=False)
class WordsAccuracy:
    """How g2p-en spells words in fixed point.

    words: number of words that were spelled.
    changed: the words whose phonemes differ from float64.
    saturated: by name, how many values did not fit their format meanwhile.
    overflowed: by name, how many sums did not fit the accumulator meanwhile.
    """

    words: int
    changed: tuple[Respelled, ...]
    saturated: Mapping[str, int]
    overflowed: Mapping[str, int]

    @property
    def unchanged(self) -> float:
        """Share of the words that are spelled as in float64, 0 to 1."""
        return 1 - len(self.changed) / self.words


@dataclass(frozen=True, eq=False)
class Study:
    """All measurements at one precision.

    precision: the widths.
    jobs: one entry for each case.
    words: the spelling, if a job runs a network of g2p-en, else None.
    """

    precision: Precision
    jobs: tuple[JobAccuracy, ...]
    words: WordsAccuracy | None


@dataclass(frozen=True, eq=False)
class AccuracyReport(Table, forms="lstmsim.studies.accuracy.report"):
    """A scenario's accuracy.

    scenario: its name.
    given: measurements at the scenario's own precision.
    by_bits: width of weights and vectors in bits to measurements; empty if no widths were asked for.
    other_numbers: a sentence without a full stop where the scenario's chip does not compute in this fixed point.
    """

    scenario: str
    given: Study
    by_bits: Mapping[int, Study]
    other_numbers: str = ""


@dataclass(frozen=True, eq=False)
class Spelling:
    """Words as float64 spells them, and what the two networks reach meanwhile.

    g2p: the speller.
    phonemes: word to phonemes.
    ranges: "encoder" and "decoder" to the ranges of their values.
    """

    g2p: G2p
    phonemes: Mapping[str, Phonemes]
    ranges: Mapping[str, Mapping[str, Range]]


def with_bits(precision: Precision, bits: int) -> Precision:
    """Give the same precision with weights and vectors of `bits` bits; `InputError` if the width is not possible."""
    changed = replace(precision, weight_bits=bits, vector_bits=bits)
    if mistakes := changed.mistakes():
        raise InputError([Mistake(f"precision.{key}", text) for key, text in mistakes])
    return changed


def studies(
    cases: Sequence[Case],
    precisions: Sequence[Precision],
    words: tuple[G2p, Sequence[str]] | None = None,
    progress: Progress | None = None,
) -> tuple[Study, ...]:
    """Measure every case, and the spelling of words, at each precision."""
    different, numbered = list(dict.fromkeys(precisions)), dict(enumerate(cases))
    steps = sum(len(case.stimulus.x) for case in cases)
    letters = 0 if words is None else sum(len(word) for word in words[1])
    note = _counter((1 + len(different)) * (steps + letters), progress)
    exact = run_jobs(float_numbers(numbered))
    outputs = {index: own.output() for index, own in exact.items()}
    note(steps)
    spelled = None if words is None else spelling(*words, note)
    measured = {}
    for precision in different:
        jobs = _jobs_accuracy(numbered, outputs, precision)
        note(steps)
        own = None if spelled is None else words_accuracy(spelled, precision, note)
        measured[precision] = Study(precision, jobs, own)
    return tuple(measured[precision] for precision in precisions)


def _counter(total: int, progress: Progress | None) -> Callable[[int], None]:
    done = 0

    def note(steps: int) -> None:
        nonlocal done
        done += steps
        if progress is not None:
            progress(done, total)

    return note


def _jobs_accuracy(
    cases: Mapping[int, Case], references: Mapping[int, NDArray[np.float64]], precision: Precision
) -> tuple[JobAccuracy, ...]:
    numbers = fixed_numbers(cases, precision)
    runs = run_jobs(numbers)
    return tuple(
        JobAccuracy(case, accuracy(runs[index].output(), references[index]), *_lost(numbers[index].arithmetic))
        for index, case in cases.items()
    )


def _lost(arithmetic: Sequence[Sequence[Arithmetic]]) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Saturated and overflowed counts; layer and direction stand in the names if there are several."""
    saturated, overflowed = Counter[str](), Counter[str]()
    for number, both in enumerate(arithmetic):
        for direction, own in enumerate(both):
            assert isinstance(own, FixedArithmetic)
            where = f"layer {number} " if len(arithmetic) > 1 else ""
            where += "backward " if direction else ""
            for counts, totals in ((own.saturated, saturated), (own.overflowed, overflowed)):
                totals.update({where + name: count for name, count in counts.items()})
    return saturated, overflowed


def spelling(g2p: G2p, words: Sequence[str], note: Callable[[int], None] | None = None) -> Spelling:
    """Spell words in float64, and note the ranges that the networks reach."""
    golden = golden_runner(g2p)
    stimuli: dict[str, list[Stimulus]] = {"encoder": [], "decoder": []}

    def run(which: str, x: Floats, initial: Floats) -> NDArray[np.float64]:
        if which == "decoder" and len(x) > 1:
            # The decoder is asked again for a sequence that has grown: the longest sequence holds the shorter ones.
            stimuli[which].pop()
        stimuli[which].append(Stimulus(x, {(0, 0): {"h": initial}}))
        return golden(which, x, initial)

    phonemes = {}
    for word in words:
        phonemes[word] = spell(g2p, word, run)
        if note is not None:
            note(len(word))
    networks = {"encoder": g2p.encoder, "decoder": g2p.decoder}
    ranges = {which: calibrate(network, stimuli[which])[0][0] for which, network in networks.items()}
    return Spelling(g2p, phonemes, ranges)


def words_accuracy(spelled: Spelling, precision: Precision, note: Callable[[int], None] | None = None) -> WordsAccuracy:
    """Spell the same words in fixed point."""
    networks = {"encoder": spelled.g2p.encoder, "decoder": spelled.g2p.decoder}
    chip = fixed_chip([(network, [[spelled.ranges[which]]]) for which, network in networks.items()], precision)
    own = {which: passes[0][0] for which, passes in zip(networks, chip, strict=True)}
    runner = arithmetic_runner(own["encoder"], own["decoder"])
    changed = []
    for word, expected in spelled.phonemes.items():
        phonemes = spell(spelled.g2p, word, runner)
        if phonemes != expected:
            changed.append(Respelled(word, expected, phonemes))
        if note is not None:
            note(len(word))
    saturated, overflowed = Counter[str](), Counter[str]()
    for which, each in own.items():
        saturated.update({f"{which} {name}": count for name, count in each.saturated.items()})
        overflowed.update({f"{which} {name}": count for name, count in each.overflowed.items()})
    return WordsAccuracy(len(spelled.phonemes), tuple(changed), saturated, overflowed)


_G2P = ("g2p-en-encoder", "g2p-en-decoder")


def accuracy_cases(scenario: Scenario, random_weights: int | None = None) -> tuple[Case, ...]:
    """Read the numbers of a scenario's jobs; jobs with equal model, weights, inputs, steps and states are one case."""
    groups: dict[tuple[Model, str, str, int, str, int | None], list[int]] = {}
    data: Mapping[int, JobData] = job_data(scenario, random_weights)
    case_of: dict[int, int] = {}
    for index, job in enumerate(scenario.jobs):
        # A job without a file has random frames of its own.
        inputs = job.inputs or data[index].inputs
        before = None if job.states_of is None else case_of[job.states_of]
        group = groups.setdefault((job.model, job.model.weights, inputs, job.steps, job.initial, before), [])
        group.append(index)
        case_of[index] = len(groups) - 1 if len(group) == 1 else case_of[group[0]]
    return tuple(
        Case(
            jobs=tuple(scenario.jobs[index].name for index in indices), **{**vars(data[indices[0]]), "follows": key[-1]}
        )
        for key, indices in groups.items()
    )


def words_of(scenario: Scenario) -> tuple[G2p, tuple[str, ...]] | None:
    """Read the speller and its words if a job runs a network of g2p-en that comes with lstmsim, else None."""
    folder = os.path.realpath(_models() / "weights")
    files = {os.path.join(folder, f"{name}.safetensors") for name in _G2P}
    if files.isdisjoint(os.path.realpath(job.model.weights) for job in scenario.jobs if job.model.weights):
        return None
    return read_g2p(), read_words()


def read_words() -> tuple[str, ...]:
    """Read the English words that come with lstmsim."""
    with readable_file(_models() / "inputs" / "words.txt") as file:
        return tuple(file.read().decode("utf-8").split())


def _models() -> Path:
    return find_model(_G2P[0]).parent
