"""What fixed point does to networks' outputs and to the words that g2p-en spells.

The reference is the golden model in float64. Symbols and greedy decoder of the words are those of the package g2p-en
2.1.0 (Kyubyong Park, Jongseok Kim; Apache-2.0), which uses the networks for words that are in no dictionary.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lstmsim.base.bounded import placed
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.files import readable_file
from lstmsim.files.catalog import find_model
from lstmsim.files.scenario.numbers import job_data
from lstmsim.importers.files import canonical_network
from lstmsim.importers.tensors import floats, read_safetensors
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.accuracy import Accuracy, accuracy
from lstmsim.model.numerics.arithmetic import Arithmetic, Array
from lstmsim.model.numerics.calibration import Range, calibrate
from lstmsim.model.numerics.fixed import FixedArithmetic, fixed_chip
from lstmsim.model.numerics.golden import float_arithmetic, initial_states, step
from lstmsim.model.numerics.jobs import JobData, Senders, fixed_numbers, float_numbers, run_jobs
from lstmsim.model.numerics.weights import Floats, Network, Stimulus
from lstmsim.model.scenario import Scenario
from lstmsim.report.results import Table

#: Symbols that the encoder reads: rows of its embedding.
GRAPHEMES = ("<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz")


def _symbols(sounds: str, stresses: tuple[str, ...] = ("",)) -> list[str]:
    return [f"{sound}{stress}" for sound in sounds.split() for stress in stresses]


#: Symbols that the decoder reads and gives: ARPAbet with stress 0, 1, 2 at vowels, in alphabetical order after the
#: signs.
PHONEMES = (
    *("<pad>", "<unk>", "<s>", "</s>"),
    *sorted(
        chain(
            _symbols("AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW", ("0", "1", "2")),
            _symbols("B CH D DH F G HH JH K L M N NG P R S SH T TH UW V W Y Z ZH"),
        )
    ),
)
#: The decoder stops after so many phonemes even without `</s>`. Source: g2p-en.
MAX_PHONEMES = 20
#: Assumption, because no English word in use is longer.
MAX_LETTERS = 100

#: The phonemes of a word, like `("K", "AE1", "T")`.
Phonemes = tuple[str, ...]

#: Runs one of the networks. Arguments: "encoder" or "decoder", x [steps, input], h before the first step [hidden].
#: Result: h of every step [steps, hidden] as real numbers. The decoder is asked again for a sequence that has grown by
#: one step.
Runner = Callable[[str, Floats, Floats], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class G2p:
    """The two networks and the tensors around them; `InputError` if shapes do not fit.

    encoder: reads letters.
    decoder: reads phonemes.
    letters: embedding of `GRAPHEMES`, [29, input].
    phonemes: embedding of `PHONEMES`, [74, input].
    output_weight, output_bias: judge the decoder's h, [74, hidden] and [74].
    """

    encoder: Network
    decoder: Network
    letters: Floats
    phonemes: Floats
    output_weight: Floats
    output_bias: Floats

    def __post_init__(self) -> None:
        mistakes = []
        for network in (self.encoder, self.decoder):
            layers = network.model.layers
            if len(layers) != 1 or layers[0].bidirectional or layers[0].reverse:
                mistakes.append(Mistake(f"model {network.model.name}", "must have one layer that runs forward"))
        reads, hidden = self.encoder.model.layers[0].input, self.encoder.model.layers[0].width("h")
        given, wanted = self.decoder.model.layers[0].width("h"), self.decoder.model.layers[0].input
        if given != hidden:
            text = f"must have {hidden} units, as many as {self.encoder.model.name}, got {given}"
            mistakes.append(Mistake(f"model {self.decoder.model.name}", text))
        shapes = {
            "letters": (len(GRAPHEMES), reads),
            "phonemes": (len(PHONEMES), wanted),
            "output_weight": (len(PHONEMES), given),
            "output_bias": (len(PHONEMES),),
        }
        for name, shape in shapes.items():
            own_shape = getattr(self, name).shape
            if own_shape != shape:
                mistakes.append(Mistake(name, f"has shape {list(own_shape)}, expected {list(shape)}"))
        refuse(mistakes)


def letters_of(word: str) -> tuple[int, ...]:
    """Give the rows of the letters' embedding for a word, with the end sign."""
    if len(word) > MAX_LETTERS:
        raise InputError(f"a word of {len(word)} letters, expected at most {MAX_LETTERS}")
    if not any("a" <= letter <= "z" for letter in word.lower()):
        raise InputError(f"{word!r} has no letter from a to z, expected an English word")
    rows = {symbol: row for row, symbol in enumerate(GRAPHEMES)}
    return (*(rows.get(letter, rows["<unk>"]) for letter in word.lower()), rows["</s>"])


def spell(g2p: G2p, word: str, runner: Runner) -> Phonemes:
    """Spell a word: the likeliest phoneme at each step, until the end sign or `MAX_PHONEMES`.

    The decoder runs from its start for every further phoneme, so that a runner needs no memory between two calls.
    """
    start = np.zeros(g2p.encoder.model.layers[0].width("h"))
    initial = runner("encoder", g2p.letters[list(letters_of(word))], start)[-1]
    rows = [PHONEMES.index("<s>")]
    while len(rows) <= MAX_PHONEMES:
        h = runner("decoder", g2p.phonemes[rows], initial)[-1]
        row = int(np.argmax(g2p.output_weight @ h + g2p.output_bias))
        if PHONEMES[row] == "</s>":
            break
        rows.append(row)
    return tuple(PHONEMES[row] for row in rows[1:])


def arithmetic_runner(encoder: Arithmetic, decoder: Arithmetic) -> Runner:
    """Make a runner of the golden model in any arithmetic, float or fixed point.

    The runner remembers the states after the sequences that it ran last. A sequence that has grown costs only its new
    steps.
    """
    passes = {"encoder": encoder, "decoder": decoder}

    @lru_cache(maxsize=4 * MAX_LETTERS)
    def states(which: str, initial: bytes, x: tuple[bytes, ...]) -> dict[str, Array]:
        arithmetic = passes[which]
        if not x:
            stimulus = Stimulus(np.zeros((0, arithmetic.layer.input)), {(0, 0): {"h": np.frombuffer(initial)}})
            return initial_states(arithmetic, stimulus, 0, 0)
        return step(arithmetic, arithmetic.encode(np.frombuffer(x[-1])), states(which, initial, x[:-1]))

    def run(which: str, x: Floats, initial: Floats) -> NDArray[np.float64]:
        start = np.asarray(initial, np.float64).tobytes()
        rows = tuple(np.asarray(row, np.float64).tobytes() for row in x)
        h = [states(which, start, rows[:count])["h"] for count in range(1, len(rows) + 1)]
        return passes[which].decode("h", np.array(h))

    return run


def golden_runner(g2p: G2p, dtype: DTypeLike = np.float64) -> Runner:
    """Make a runner of the golden model in floating point; dtype: the type of all numbers."""
    return arithmetic_runner(float_arithmetic(g2p.encoder, dtype)[0][0], float_arithmetic(g2p.decoder, dtype)[0][0])


_UNITS = 256


def read_g2p(folder: Path | None = None) -> G2p:
    """Read the speller from `g2p-en-encoder.safetensors` and `g2p-en-decoder.safetensors`."""
    folder = folder or find_model("g2p-en-encoder").parent / "weights"
    encoder, around_encoder = _part(folder, "encoder", {"embedding": (len(GRAPHEMES), _UNITS)})
    shapes = {
        "embedding": (len(PHONEMES), _UNITS),
        "output.weight": (len(PHONEMES), _UNITS),
        "output.bias": (len(PHONEMES),),
    }
    decoder, around = _part(folder, "decoder", shapes)
    return G2p(
        encoder,
        decoder,
        around_encoder["embedding"],
        around["embedding"],
        around["output.weight"],
        around["output.bias"],
    )


def _part(folder: Path, name: str, shapes: dict[str, tuple[int, ...]]) -> tuple[Network, dict[str, Floats]]:
    """One network, and the other tensors of its file."""
    path = folder / f"g2p-en-{name}.safetensors"
    tensors = read_safetensors(path).tensors
    model = Model(f"g2p-en-{name}", (Layer(cell("gru"), _UNITS, _UNITS),), weights=str(path))
    missing = [key for key in shapes if key not in tensors]
    try:
        if missing:
            raise InputError(f"lacks the tensor {', '.join(missing)}")
        return canonical_network(tensors, model), floats(tensors, shapes)
    except InputError as error:
        raise placed(error, str(path)) from None


#: Called with the steps that are done and the steps in all.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Case(JobData):
    """A network on an input, which is several `jobs` of the scenario; `follows` is an index among the cases."""

    jobs: tuple[str, ...] = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class JobAccuracy:
    """Errors of a case's last layer against float64; by name, how many values and sums did not fit."""

    case: Case
    accuracy: Accuracy
    saturated: Mapping[str, int]
    overflowed: Mapping[str, int]


@dataclass(frozen=True)
class Respelled:
    """A word whose phonemes in fixed point differ from its phonemes in float64."""

    word: str
    float64: Phonemes
    fixed: Phonemes


@dataclass(frozen=True, eq=False)
class WordsAccuracy:
    """How g2p-en spells words in fixed point: their number, those that differ, and by name what did not fit."""

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
    """All measurements at one precision; words are spelled if a job runs a network of g2p-en."""

    precision: Precision
    jobs: tuple[JobAccuracy, ...]
    words: WordsAccuracy | None


@dataclass(frozen=True, eq=False)
class Skipped:
    """A run at one threshold.

    cycles: makespan of the scenario.
    left_out: share of the groups of columns that were not sent.
    accuracy: of each case against float64 without skipping, in the order of the cases.
    """

    cycles: int
    left_out: float
    accuracy: tuple[Accuracy, ...]


@dataclass(frozen=True, eq=False)
class AccuracyReport(Table, forms="lstmsim.studies.accuracy.report"):
    """A scenario's accuracy.

    scenario: its name.
    given: measurements at the scenario's own precision.
    by_bits: width of weights and vectors in bits to measurements; empty if no widths were asked for.
    other_numbers: a sentence without a full stop where the scenario's chip does not compute in this fixed point.
    by_threshold: least change that is sent to a run in which smaller ones were skipped; empty if nobody asked for any.
    fixed: whether these runs are in fixed point; else in float64.
    """

    scenario: str
    given: Study
    by_bits: Mapping[int, Study]
    other_numbers: str = ""
    by_threshold: Mapping[float, Skipped] = field(default_factory=dict)
    fixed: bool = False


@dataclass(frozen=True, eq=False)
class Spelling:
    """Words as float64 spells them, and the ranges of "encoder" and "decoder" meanwhile."""

    g2p: G2p
    phonemes: Mapping[str, Phonemes]
    ranges: Mapping[str, Mapping[str, Range]]


def with_bits(precision: Precision, bits: int) -> Precision:
    """Give the same precision with weights and vectors of `bits` bits; `InputError` if the width is not possible."""
    changed = replace(precision, weight_bits=bits, vector_bits=bits)
    refuse(Mistake(f"precision.{key}", text) for key, text in changed.mistakes())
    return changed


def studies(
    cases: Sequence[Case],
    precisions: Sequence[Precision],
    words: tuple[G2p, Sequence[str]] | None = None,
    progress: Progress | None = None,
    senders: Senders | None = None,
) -> tuple[Study, ...]:
    """Measure every case, and the spelling of words, at each precision.

    senders: gives what the products of a case see in fixed point, where columns are skipped.
    """
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
        jobs = _jobs_accuracy(numbered, outputs, precision, senders)
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
    cases: Mapping[int, Case],
    references: Mapping[int, NDArray[np.float64]],
    precision: Precision,
    senders: Senders | None,
) -> tuple[JobAccuracy, ...]:
    numbers = fixed_numbers(cases, precision)
    runs = run_jobs(numbers, senders)
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
