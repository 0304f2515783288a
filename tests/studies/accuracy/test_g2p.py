"""Words to phonemes, end to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lstmsim.base.errors import InputError
from lstmsim.importers.tensors import write_safetensors
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Floats, Stimulus
from lstmsim.studies.accuracy.study import (
    GRAPHEMES,
    MAX_LETTERS,
    MAX_PHONEMES,
    PHONEMES,
    G2p,
    Runner,
    golden_runner,
    letters_of,
    read_g2p,
    spell,
)
from tests.strategies import CHARACTERS
from tests.studies.accuracy.real_files import INPUTS

#: The README of g2p-en 2.1.0 prints these phonemes.
PUBLISHED = {
    "activationist": "AE2 K T IH0 V EY1 SH AH0 N IH0 S T",
    "popular": "P AA1 P Y AH0 L ER0",
    "pets": "P EH1 T S",
    "cats": "K AE1 T S",
    "collect": "K AH0 L EH1 K T",
    "dollars": "D AA1 L ER0 Z",
    "pocket": "P AA1 K AH0 T",
    "example": "IH0 G Z AE1 M P AH0 L",
    "around": "ER0 AW1 N D",
    "my": "M AY1",
}


@pytest.fixture(scope="module")
def g2p() -> G2p:
    return read_g2p()


@pytest.fixture(scope="module")
def words() -> list[str]:
    return (INPUTS / "words.txt").read_text(encoding="utf-8").split()


def test_symbols() -> None:
    assert (len(GRAPHEMES), len(PHONEMES)) == (29, 74)
    assert len(set(PHONEMES)) == 74
    assert PHONEMES[2:5] == ("<s>", "</s>", "AA0")


@pytest.mark.parametrize("word", PUBLISHED)
def test_spells_as_published(g2p: G2p, word: str) -> None:
    assert " ".join(spell(g2p, word, golden_runner(g2p))) == PUBLISHED[word]


def test_capitals_do_not_matter(g2p: G2p) -> None:
    runner = golden_runner(g2p)
    assert spell(g2p, "Pocket", runner) == spell(g2p, "pocket", runner)


def test_list_of_words_is_sorted_and_long_enough(words: list[str]) -> None:
    assert words == sorted(set(words))
    assert len(words) >= 200


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.long)])
def test_both_floats_spell_words_alike(g2p: G2p, words: list[str], every: int) -> None:
    single, double = golden_runner(g2p, np.float32), golden_runner(g2p)
    assert [word for word in words[::every] if spell(g2p, word, single) != spell(g2p, word, double)] == []


@pytest.mark.slow
def test_onnxruntime_spells_alike(g2p: G2p, words: list[str]) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from tests.studies.accuracy.onnx_layers import onnx_layer

    layers = {
        which: onnx_layer(network.model.layers[0], network.passes[0][0])
        for which, network in (("encoder", g2p.encoder), ("decoder", g2p.decoder))
    }
    runner = golden_runner(g2p)
    for word in words[::6]:
        assert spell(g2p, word, lambda which, x, initial: layers[which](x, initial)) == spell(g2p, word, runner)


def test_exchanged_gates_are_noticed(g2p: G2p) -> None:
    (weights,) = g2p.decoder.passes[0]
    exchanged = {({"r": "z", "z": "r"}.get(key[0], key[0]), key[1]): each for key, each in weights.matrices.items()}
    wrong = replace(g2p, decoder=replace(g2p.decoder, passes=((replace(weights, matrices=exchanged),),)))
    runner = golden_runner(wrong)
    assert all(" ".join(spell(wrong, word, runner)) != PUBLISHED[word] for word in ("activationist", "collect"))


def test_a_runner_is_asked_for_growing_sequences(g2p: G2p) -> None:
    golden = golden_runner(g2p)
    calls: list[tuple[str, Floats, Floats]] = []

    def runner(which: str, x: Floats, initial: Floats) -> NDArray[np.float64]:
        calls.append((which, x, initial))
        return golden(which, x, initial)

    phonemes = spell(g2p, "cats", runner)
    assert [which for which, _, _ in calls] == ["encoder", *["decoder"] * (len(phonemes) + 1)]
    assert calls[0][1].shape == (5, 256)
    assert not calls[0][2].any()
    last = golden("encoder", calls[0][1], calls[0][2])[-1]
    for count, (_, x, initial) in enumerate(calls[1:], start=1):
        assert x.shape == (count, 256)
        np.testing.assert_array_equal(x, calls[-1][1][:count])
        np.testing.assert_array_equal(initial, last)


def test_without_an_end_sign_it_stops(g2p: G2p) -> None:
    endless = replace(g2p, output_bias=np.where(np.arange(74) == PHONEMES.index("K"), 1e6, 0))
    assert spell(endless, "cat", golden_runner(endless)) == ("K",) * MAX_PHONEMES


def test_the_runner_remembers_nothing_but_what_it_would_compute(g2p: G2p) -> None:
    runner: Runner = golden_runner(g2p)
    random = np.random.default_rng(1)
    x, other = random.standard_normal((2, 7, 256))
    starts = random.standard_normal((2, 256))
    for rows, start in ((x[:3], 0), (x, 0), (other, 0), (x, 1), (x[:5], 0), (np.concatenate([x[:3], other]), 0)):
        stimulus = Stimulus(rows, {(0, 0): {"h": starts[start]}})
        expected = run_network(float_arithmetic(g2p.decoder), stimulus).h()
        np.testing.assert_array_equal(runner("decoder", rows, starts[start]), expected)
        encoded = run_network(float_arithmetic(g2p.encoder), stimulus).h()
        np.testing.assert_array_equal(runner("encoder", rows, starts[start]), encoded)


@given(st.text(CHARACTERS, min_size=1, max_size=MAX_LETTERS))
def test_any_text_becomes_rows_or_a_sentence(word: str) -> None:
    try:
        rows = letters_of(word)
    except InputError:
        assert not set(word.lower()) & set(GRAPHEMES[3:])
        return
    assert rows[-1] == GRAPHEMES.index("</s>")
    assert len(rows) == len(word.lower()) + 1
    assert [GRAPHEMES[row] for row in rows[:-1]] == [
        letter if "a" <= letter <= "z" else "<unk>" for letter in word.lower()
    ]


@pytest.mark.parametrize(("word", "sentence"), [("", "letter"), ("123", "letter"), ("a" * 101, "at most 100")])
def test_what_is_no_word_is_refused(word: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        letters_of(word)


def test_shapes_that_do_not_fit_are_refused(g2p: G2p) -> None:
    with pytest.raises(InputError) as caught:
        replace(g2p, letters=g2p.letters[:5], output_bias=g2p.output_bias[:-1])
    assert "letters" in str(caught.value)
    assert "[73], expected [74]" in str(caught.value)


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_g2p(tmp_path)
    write_safetensors(tmp_path / "g2p-en-encoder.safetensors", {"embedding": np.zeros((29, 256))})
    with pytest.raises(InputError, match=r"layers\.0\.forward\.matrix\.r\.x"):
        read_g2p(tmp_path)
    (tmp_path / "other").mkdir()
    write_safetensors(tmp_path / "other" / "g2p-en-encoder.safetensors", {"layers.0.forward.bias.r": np.zeros(256)})
    with pytest.raises(InputError, match="lacks the tensor embedding"):
        read_g2p(tmp_path / "other")
