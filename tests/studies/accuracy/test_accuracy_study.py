"""Errors of fixed point against float64: of jobs, of words, at several widths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.fixed import fixed_arithmetic
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Stimulus, random_network, random_stimulus
from lstmsim.studies.accuracy.study import (
    PHONEMES,
    Case,
    G2p,
    accuracy_cases,
    arithmetic_runner,
    golden_runner,
    letters_of,
    read_g2p,
    read_words,
    spell,
    spelling,
    studies,
    with_bits,
    words_accuracy,
    words_of,
)

TWO = Model("two", (Layer(cell("lstm"), 6, 5, bidirectional=True), Layer(cell("lstm"), 4, 12)))
#: Wide in everything but the weights and vectors, which are measured.
WIDE = Precision(tail_bits=24, state_bits=24, multiplier_bits=20, activation_entries=4096)


def case(model: Model = TWO, steps: int = 12, seed: int = 1) -> Case:
    return Case(random_network(model, seed), random_stimulus(model, steps, seed), "random", "random", jobs=("a",))


@pytest.fixture(scope="module")
def g2p() -> G2p:
    return read_g2p()


def test_errors_are_those_of_the_last_layer() -> None:
    own = case()
    (study,) = studies([own], [Precision()])
    fixed = run_network(fixed_arithmetic(own.network, own.stimulus, Precision()), own.stimulus).output()
    exact = run_network(float_arithmetic(own.network), own.stimulus).output()
    errors = study.jobs[0].accuracy
    assert errors.max_error == np.abs(fixed - exact).max() > 0
    assert errors.rms_error == pytest.approx(np.sqrt(np.mean((fixed - exact) ** 2)))
    assert errors.sqnr_db == pytest.approx(20 * np.log10(np.linalg.norm(exact) / np.linalg.norm(fixed - exact)))
    assert errors.step_max.tolist() == np.abs(fixed - exact).max(axis=1).tolist()
    assert study.words is None


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn"])
def test_a_bit_more_gains_about_six_decibels(name: str) -> None:
    own = case(Model("m", (Layer(cell(name), 32, 24),)), steps=40)
    bits = (4, 6, 8, 10)
    ratios = [study.jobs[0].accuracy.sqnr_db for study in studies([own], [with_bits(WIDE, each) for each in bits])]
    gains = np.diff(ratios) / 2
    assert gains.min() > 4
    assert gains.max() < 8


def test_what_does_not_fit_is_counted_where_it_happened() -> None:
    narrow = replace(Precision(), accumulator_bits=10)
    (study,) = studies([case()], [narrow])
    counted = set(study.jobs[0].overflowed)
    assert any(name.startswith("layer 0 backward ") for name in counted)
    assert any(name.startswith("layer 1 ") for name in counted)
    # The last layer has one direction.
    assert not any(name.startswith("layer 1 backward") for name in counted)
    (single,) = studies([case(Model("one", (Layer(cell("rnn"), 8, 8),)))], [narrow])
    assert set(single.jobs[0].overflowed) == {"a"}
    (wide,) = studies([case()], [WIDE])
    assert not wide.jobs[0].overflowed


def test_counts_belong_to_one_precision_alone() -> None:
    own, narrow = case(), replace(Precision(), accumulator_bits=10)
    (alone,) = studies([own], [narrow])
    _, after = studies([own], [replace(narrow, weight_bits=4), narrow])
    assert alone.jobs[0].overflowed == after.jobs[0].overflowed
    assert alone.jobs[0].saturated == after.jobs[0].saturated


def test_equal_precisions_are_measured_once_and_progress_ends_at_its_total() -> None:
    seen: list[tuple[int, int]] = []
    precisions = [Precision(), with_bits(Precision(), 8), with_bits(Precision(), 5)]
    measured = studies([case()], precisions, progress=lambda done, total: seen.append((done, total)))
    assert measured[0] is measured[1]
    assert measured[2].precision.weight_bits == 5
    done = [each for each, _ in seen]
    assert done == sorted(done)
    assert seen[-1][0] == seen[-1][1]
    assert len({total for _, total in seen}) == 1


def test_progress_covers_words(g2p: G2p) -> None:
    seen: list[tuple[int, int]] = []
    studies([], [Precision()], (g2p, ["cat", "dog"]), lambda done, total: seen.append((done, total)))
    assert seen[-1] == (12, 12)


@pytest.mark.parametrize("bits", [1, 17])
def test_impossible_widths_are_refused(bits: int) -> None:
    with pytest.raises(InputError, match=f"weight_bits: must be between 2 and 16, got {bits}"):
        with_bits(Precision(), bits)


@pytest.mark.slow
def test_words_are_spelled_with_formats_from_all_their_float_runs(g2p: G2p) -> None:
    words = read_words()[::18]
    precision = with_bits(Precision(), 4)
    spelled = spelling(g2p, words)
    golden = golden_runner(g2p)
    assert spelled.phonemes == {word: spell(g2p, word, golden) for word in words}
    encoded = [Stimulus(g2p.letters[list(letters_of(word))]) for word in words]
    decoded = []
    for word, own in zip(words, encoded, strict=True):
        rows = [PHONEMES.index(each) for each in ("<s>", *spelled.phonemes[word])]
        start = golden("encoder", own.x, np.zeros(256))[-1]
        decoded.append(Stimulus(g2p.phonemes[rows], {(0, 0): {"h": start}}))
    encoder = fixed_arithmetic(g2p.encoder, encoded, precision)[0][0]
    decoder = fixed_arithmetic(g2p.decoder, decoded, precision)[0][0]
    expected = {word: spell(g2p, word, arithmetic_runner(encoder, decoder)) for word in words}
    respelled = words_accuracy(spelled, precision)
    changed = {word: own for word, own in expected.items() if own != spelled.phonemes[word]}
    assert {each.word: each.fixed for each in respelled.changed} == changed
    assert 0 < len(changed) < len(words)
    assert respelled.unchanged == pytest.approx(1 - len(changed) / len(words))
    assert all(each.float64 == spelled.phonemes[each.word] for each in respelled.changed)
    assert {name.split()[0] for name in respelled.saturated} <= {"encoder", "decoder"}


def test_equal_jobs_are_one_case_and_random_frames_are_not_equal() -> None:
    silero = {"model": "silero-vad-16k", "steps": 3, "inputs": "silero-speech.safetensors"}
    jobs = [silero, {**silero, "count": 2}, {**silero, "steps": 4}, {"model": "silero-vad-16k", "steps": 3, "count": 2}]
    cases = accuracy_cases(load_scenario({"chip": "column-npu-16k", "jobs": jobs}))
    assert [len(each.jobs) for each in cases] == [3, 1, 1, 1]
    assert [len(each.stimulus.x) for each in cases] == [3, 4, 3, 3]
    assert not np.array_equal(cases[2].stimulus.x, cases[3].stimulus.x)


@pytest.mark.parametrize(("model", "wanted"), [("g2p-en-encoder", True), ("g2p-en-decoder", True), ("lstm-256", False)])
def test_words_belong_to_the_networks_of_g2p(model: str, wanted: bool) -> None:
    speller = words_of(load_scenario({"chip": "column-npu-16k", "jobs": [{"model": model, "steps": 2}]}))
    assert (speller is not None) is wanted
    if speller is not None:
        assert speller[1] == read_words()
