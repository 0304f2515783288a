"""What fixed point does to networks' outputs and to the words that g2p-en spells, at one precision and over many.

The reference is the golden model in float64. Formats are calibrated on frames of their own where a case has some,
else on the runs that are then measured, which is optimistic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lstmsim.applications.g2p import G2p, Phonemes, arithmetic_runner, golden_runner, spell
from lstmsim.errors import InputError, Mistake
from lstmsim.numerics.accuracy import Accuracy, accuracy
from lstmsim.numerics.arithmetic import Arithmetic
from lstmsim.numerics.fixed import FixedArithmetic, Range, calibrate, fixed_passes
from lstmsim.numerics.jobs import fixed_numbers, float_numbers, run_jobs
from lstmsim.numerics.weights import Floats, Network, Stimulus
from lstmsim.results import Table
from lstmsim.workload.precision import Precision

__all__ = ["AccuracyReport", "Case", "JobAccuracy", "Respelled", "Spelling", "Study", "WordsAccuracy"]
__all__ += ["spelling", "studies", "with_bits", "words_accuracy"]

#: Called with the steps done and those to do.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Case:
    """A network on an input: `jobs` are the names of the scenario's jobs that are this case; further fields as in
    `lstmsim.numerics.jobs.JobData`, but `follows` is a place among the cases."""

    jobs: tuple[str, ...]
    network: Network
    stimulus: Stimulus
    weights: str
    inputs: str
    follows: int | None = None
    begins: str = ""
    calibration: Floats | None = None
    calibrated_on: str = ""


@dataclass(frozen=True, eq=False)
class JobAccuracy:
    """Errors of a case's last layer against float64; values that `saturated` and sums that `overflowed`, by name."""

    case: Case
    accuracy: Accuracy
    saturated: Mapping[str, int]
    overflowed: Mapping[str, int]


@dataclass(frozen=True)
class Respelled:
    """A word whose phonemes are others than in float64."""

    word: str
    float64: Phonemes
    fixed: Phonemes


@dataclass(frozen=True, eq=False)
class WordsAccuracy:
    """How many words were spelled, those that changed, and what did not fit while they were spelled."""

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
    """All that was measured at one precision; `words` if a job runs a network of g2p-en."""

    precision: Precision
    jobs: tuple[JobAccuracy, ...]
    words: WordsAccuracy | None


@dataclass(frozen=True, eq=False)
class AccuracyReport(Table, forms="lstmsim.applications.accuracy_text"):
    """A scenario's accuracy: at its own precision, and by the width of weights and vectors where that was asked for."""

    scenario: str
    given: Study
    by_bits: Mapping[int, Study]


@dataclass(frozen=True, eq=False)
class Spelling:
    """Words as float64 spells them, and what the two networks reach meanwhile."""

    g2p: G2p
    phonemes: Mapping[str, Phonemes]
    ranges: Mapping[str, Mapping[str, Range]]


def with_bits(precision: Precision, bits: int) -> Precision:
    """The same with weights and vectors of `bits` bits; `InputError` if such a width is not possible.

    >>> with_bits(Precision(), 6).vector_bits
    6
    """
    found = replace(precision, weight_bits=bits, vector_bits=bits)
    if mistakes := found.mistakes():
        raise InputError([Mistake(f"precision.{key}", text) for key, text in mistakes])
    return found


def studies(
    cases: Sequence[Case],
    precisions: Sequence[Precision],
    words: tuple[G2p, Sequence[str]] | None = None,
    progress: Progress | None = None,
) -> tuple[Study, ...]:
    """Measure every case, and the spelling of `words`, at each precision; equal ones once.

    >>> from lstmsim.numerics.weights import random_network, random_stimulus
    >>> from lstmsim.workload.cells import cell
    >>> from lstmsim.workload.model import Layer, Model
    >>> model = Model("m", (Layer(cell("gru"), 8, 6),))
    >>> case = Case(("a",), random_network(model, 1), random_stimulus(model, 20, 1), "random", "random")
    >>> coarse, fine = studies([case], [with_bits(Precision(), 4), with_bits(Precision(), 10)])
    >>> fine.jobs[0].accuracy.sqnr_db > coarse.jobs[0].accuracy.sqnr_db + 20
    True
    """
    different, numbered = list(dict.fromkeys(precisions)), dict(enumerate(cases))
    steps = sum(len(case.stimulus.x) for case in cases)
    letters = 0 if words is None else sum(len(word) for word in words[1])
    note = _counter((1 + len(different)) * (steps + letters), progress)
    exact = run_jobs(float_numbers(numbered))
    outputs = {index: own.output() for index, own in exact.items()}
    note(steps)
    spelled = None if words is None else spelling(*words, note)
    found = {}
    for precision in different:
        jobs = _jobs_accuracy(numbered, outputs, precision)
        note(steps)
        own = None if spelled is None else words_accuracy(spelled, precision, note)
        found[precision] = Study(precision, jobs, own)
    return tuple(found[precision] for precision in precisions)


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
    """Saturated and overflowed, with layer and direction in the name where there are several."""
    saturated, overflowed = Counter[str](), Counter[str]()
    for number, both in enumerate(arithmetic):
        for direction, own in enumerate(both):
            assert isinstance(own, FixedArithmetic)
            where = f"layer {number} " if len(arithmetic) > 1 else ""
            where += "backward " if direction else ""
            for counts, found in ((own.saturated, saturated), (own.overflowed, overflowed)):
                found.update({where + name: count for name, count in counts.items()})
    return saturated, overflowed


def spelling(g2p: G2p, words: Sequence[str], note: Callable[[int], None] | None = None) -> Spelling:
    """Spell the words in float64; `note` is called with the letters done.

    >>> from lstmsim.applications.g2p_files import read_g2p
    >>> spelling(read_g2p(), ["cat"]).phonemes["cat"]
    ('K', 'AE1', 'T')
    """
    golden = golden_runner(g2p)
    stimuli: dict[str, list[Stimulus]] = {"encoder": [], "decoder": []}

    def run(which: str, x: Floats, initial: Floats) -> NDArray[np.float64]:
        if which == "decoder" and len(x) > 1:
            # It is asked again for a sequence that has grown: the longest one holds the others.
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
    """Spell the same words in fixed point; `note` is called with the letters done.

    >>> from lstmsim.applications.g2p_files import read_g2p
    >>> words_accuracy(spelling(read_g2p(), ["cat", "dog"]), Precision()).unchanged
    1.0
    """
    networks = {"encoder": spelled.g2p.encoder, "decoder": spelled.g2p.decoder}
    own = {
        which: fixed_passes(network, [[spelled.ranges[which]]], precision)[0][0] for which, network in networks.items()
    }
    runner = arithmetic_runner(own["encoder"], own["decoder"])
    changed = []
    for word, expected in spelled.phonemes.items():
        found = spell(spelled.g2p, word, runner)
        if found != expected:
            changed.append(Respelled(word, expected, found))
        if note is not None:
            note(len(word))
    saturated, overflowed = Counter[str](), Counter[str]()
    for which, each in own.items():
        saturated.update({f"{which} {name}": count for name, count in each.saturated.items()})
        overflowed.update({f"{which} {name}": count for name, count in each.overflowed.items()})
    return WordsAccuracy(len(spelled.phonemes), tuple(changed), saturated, overflowed)
