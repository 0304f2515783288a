"""The weights and inputs that come with lstmsim are whole, have a licence and compute what they should."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

from lstmsim.files.catalog import find_model
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Network, Stimulus
from lstmsim.studies.accuracy.study import read_g2p
from tests.studies.accuracy.real_files import INPUTS, NAMES, array, real_input, real_network, tensors, weights_path

#: The README of the inputs says where each sound is.
SILENCES, VOICE, NOISE = (slice(0, 24), slice(126, 150)), slice(34, 118), slice(150, 174)


@pytest.mark.parametrize("name", NAMES)
def test_every_weight_file_has_its_licence_and_provenance(name: str) -> None:
    path = weights_path(name)
    licence = path.with_suffix(".LICENSE").read_text(encoding="utf-8")
    wanted = "MIT License" if name.startswith("silero") else "Apache License"
    assert wanted in licence
    assert len(licence.splitlines()) > 15, "the full text, not only a name"
    assert path.name in (path.parent / "README.md").read_text(encoding="utf-8")
    assert tensors(path).metadata["source"]


def test_no_weight_file_is_without_a_model() -> None:
    folder = find_model("silero-vad-16k").parent / "weights"
    assert {each.stem for each in folder.glob("*.safetensors")} == set(NAMES)
    sizes = [each.stat().st_size for each in (*folder.iterdir(), *INPUTS.iterdir())]
    assert sum(sizes) < 12e6


@pytest.mark.parametrize("name", NAMES)
def test_weights_fit_their_model_and_are_trained(name: str) -> None:
    network = real_network(name)
    for (weights,) in network.passes:
        for matrix in weights.matrices.values():
            assert matrix.dtype == np.float32
            assert 0.01 < matrix.std() < 10
        # A sum without a bias would mean a lost tensor: in these networks every sum has a bias.
        assert set(weights.biases) == {each.name for each in network.model.layers[0].cell.sums}


@pytest.mark.parametrize("path", sorted(INPUTS.glob("*.safetensors")), ids=lambda path: path.stem)
def test_inputs_are_small_finite_and_fit_a_model(path: Path) -> None:
    x = real_input(path.stem)
    network = real_network("silero-vad-16k" if path.stem.startswith("silero") else "resemblyzer")
    assert x.shape[1] == network.model.layers[0].input
    assert np.isfinite(x).all()
    assert x.min() >= 0, "behind a rectifier, or a power"
    assert path.stat().st_size < 200_000


def probabilities(dtype: DTypeLike) -> NDArray[np.float64]:
    path = weights_path("silero-vad-16k")
    h = run_network(float_arithmetic(real_network("silero-vad-16k"), dtype), Stimulus(real_input("silero-speech")))
    logits = np.maximum(h.output(), 0) @ array(path, "output.weight").T + array(path, "output.bias")
    return 1 / (1 + np.exp(-logits[:, 0]))


def test_silero_tells_a_voice_from_silence_and_noise() -> None:
    probability_of = probabilities(np.float64)
    assert probability_of[VOICE].min() > 0.98
    assert max(probability_of[part].max() for part in SILENCES) < 0.02
    assert probability_of[NOISE].max() < 0.1
    assert tensors(INPUTS / "silero-speech.safetensors").metadata["speech"] == "24:126"
    np.testing.assert_allclose(probabilities(np.float32), probability_of, rtol=0, atol=1e-5)


def voice(name: str) -> NDArray[np.float64]:
    path = weights_path("resemblyzer")
    run = run_network(float_arithmetic(real_network("resemblyzer"), np.float32), Stimulus(real_input(name)))
    direction = np.maximum(array(path, "output.weight") @ run.output()[-1] + array(path, "output.bias"), 0)
    return direction / np.linalg.norm(direction)


@pytest.mark.slow
def test_resemblyzer_tells_voices_apart() -> None:
    speech, same, other = (voice(f"resemblyzer-{name}") for name in ("speech", "same-voice", "other-voice"))
    assert speech @ same > speech @ other + 0.1
    assert speech @ same > same @ other + 0.1


def golden_h(
    network: Network, x: NDArray[np.floating], initial: NDArray[np.floating] | None = None
) -> list[NDArray[np.float64]]:
    start = {} if initial is None else {(0, 0): {"h": initial}}
    run = run_network(float_arithmetic(network), Stimulus(x, start))
    return [run.h(layer) for layer in range(len(network.model.layers))]


@pytest.mark.parametrize(
    ("name", "input_"),
    [
        ("silero-vad-16k", "silero-speech"),
        ("resemblyzer", "resemblyzer-speech"),
        ("resemblyzer", "resemblyzer-other-voice"),
    ],
)
def test_every_layer_agrees_with_onnxruntime(name: str, input_: str) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from tests.studies.accuracy.onnx_layers import onnx_layer

    network, x = real_network(name), real_input(input_)
    for layer, (weights,), expected in zip(network.model.layers, network.passes, golden_h(network, x), strict=True):
        x = onnx_layer(layer, weights)(x, np.zeros(layer.hidden))
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-5)


def test_both_grus_agree_with_onnxruntime() -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from tests.studies.accuracy.onnx_layers import onnx_layer

    g2p = read_g2p()
    rows = np.arange(3, 29)
    initial = np.zeros(256)
    for network, x in ((g2p.encoder, g2p.letters[rows]), (g2p.decoder, g2p.phonemes[rows])):
        h = onnx_layer(network.model.layers[0], network.passes[0][0])(x, initial)
        np.testing.assert_allclose(h, golden_h(network, x, initial)[0], rtol=0, atol=1e-5)
        initial = h[-1]
