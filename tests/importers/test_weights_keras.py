"""Keras 3 files against the formulas of Keras's layers on Keras's own matrices, and hostile files."""

from __future__ import annotations

import builtins
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.importers.files import import_weights
from lstmsim.importers.imported import ImportedModel
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Stimulus
from tests.importers.weight_files import (
    cell_at,
    h5,
    keras_both,
    keras_file,
    keras_layer,
    keras_model,
    keras_variables,
    sigmoid,
    zipped,
)


def keras_pass(kind: str, variables: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """One direction: the steps of keras.layers.LSTMCell, GRUCell and SimpleRNNCell."""
    kernel, recurrent, bias = (each.astype(np.float64) for each in variables)
    units = len(recurrent)
    h, c, out = np.zeros(units), np.zeros(units), []
    for frame in x:
        if kind == "LSTM":
            i, f, g, o = np.split(frame @ kernel + h @ recurrent + bias, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        elif kind == "GRU":
            own, other = (bias[0], bias[1]) if bias.ndim == 2 else (bias, np.zeros_like(bias))
            xz, xr, xh = np.split(frame @ kernel + own, 3)
            hz, hr, hh = np.split(h @ recurrent + other, 3)
            z, r = sigmoid(xz + hz), sigmoid(xr + hr)
            inner = r * hh if bias.ndim == 2 else (r * h) @ recurrent[:, 2 * units :]
            h = z * h + (1 - z) * np.tanh(xh + inner)
        else:
            h = np.tanh(frame @ kernel + h @ recurrent + bias)
        out.append(h)
    return np.array(out)


def output(model: ImportedModel, x: np.ndarray) -> np.ndarray:
    assert model.network is not None
    return run_network(float_arithmetic(model.network), Stimulus(x)).output()


def saved(folder: Path, content: bytes) -> Path:
    path = folder / "net.keras"
    path.write_bytes(content)
    return path


@pytest.mark.slow
@given(
    st.sampled_from(["LSTM", "GRU", "SimpleRNN"]), st.integers(1, 6), st.integers(1, 6), st.booleans(), st.booleans()
)
def test_the_numbers_are_those_of_keras(
    tmp_path_factory: Any, kind: str, units: int, width: int, both: bool, reset_after: bool
) -> None:
    entry = keras_layer(kind, "own", units, **({"reset_after": reset_after} if kind == "GRU" else {}))
    first, second = (keras_variables(kind, units, width, seed, reset_after) for seed in (1, 2))
    x = np.random.default_rng(5).normal(size=(4, width))
    wanted = keras_pass(kind, first, x)
    if both:
        entry = keras_both(entry, "two")
        wanted = np.concatenate([wanted, keras_pass(kind, second, x[::-1])[::-1]], axis=1)
        datasets = cell_at("layers/bidirectional/forward_layer", first)
        datasets |= cell_at("layers/bidirectional/backward_layer", second)
    else:
        datasets = cell_at(f"layers/{'simple_rnn' if kind == 'SimpleRNN' else kind.lower()}", first)
    path = saved(tmp_path_factory.mktemp("w"), keras_file(keras_model([entry]), datasets))
    (model,) = import_weights(path)
    layer = model.model.layers[0]
    assert layer.cell.name == ("gru-lbr0" if kind == "GRU" and not reset_after else model.model.layers[0].cell.name)
    np.testing.assert_allclose(output(model, x), wanted, rtol=0, atol=2e-6)
    assert import_weights(path, weights=False)[0].model == model.model


def layer_of(kind: str, **config: Any) -> dict[str, Any]:
    return {"module": "keras.layers", "class_name": kind, "config": {"name": kind.lower(), **config}}


def test_layers_that_feed_each_other_are_a_stack(tmp_path: Path) -> None:
    layers = [
        layer_of("InputLayer"),
        keras_layer("LSTM", "low", 3),
        layer_of("Dropout", rate=0.5),
        keras_layer("LSTM", "high", 2, return_sequences=False),
        layer_of("Dense"),
        layer_of("Lambda", function={"class_name": "__lambda__", "config": {"code": "4wAAAA=="}}),
        keras_layer("GRU", "alone", 2),
    ]
    datasets = cell_at("layers/lstm", keras_variables("LSTM", 3, 4))
    datasets |= cell_at("layers/lstm_1", keras_variables("LSTM", 2, 3, seed=1))
    datasets |= cell_at("layers/gru", keras_variables("GRU", 2, 2))
    models = import_weights(saved(tmp_path, keras_file(keras_model(layers), datasets)))
    assert [each.nodes for each in models] == [("low", "high"), ("alone",)]
    assert [each.model.name for each in models] == ["net-low", "net-alone"]
    first = datasets["layers/lstm_1/cell/vars/0"]
    assert models[0].network is not None
    np.testing.assert_array_equal(models[0].network.passes[1][0].matrices["i", "x"], first[:, :2].T)


@pytest.mark.parametrize(("readers", "stacks"), [(("low",), [2]), (("low", "dense"), [1, 1])])
def test_functional_models_follow_their_links(readers: tuple[str, ...], stacks: list[int], tmp_path: Path) -> None:
    def after(entry: dict[str, Any], *sources: str) -> dict[str, Any]:
        tensors = [{"class_name": "__keras_tensor__", "config": {"keras_history": [each, 0, 0]}} for each in sources]
        return {**entry, "inbound_nodes": [{"args": tensors, "kwargs": {}}]}

    layers = [layer_of("InputLayer"), after(keras_layer("GRU", "low", 3), "inputlayer")]
    layers += [after(layer_of("Dense"), "low")] if "dense" in readers else []
    layers += [after(keras_layer("GRU", "high", 3), "low")]
    config = keras_model(layers) | {"class_name": "Functional"}
    datasets = cell_at("layers/gru", keras_variables("GRU", 3, 3))
    datasets |= cell_at("layers/gru_1", keras_variables("GRU", 3, 3, seed=1))
    models = import_weights(saved(tmp_path, keras_file(config, datasets)))
    assert [len(each.model.layers) for each in models] == stacks


def test_models_in_models(tmp_path: Path) -> None:
    inner = keras_model([keras_layer("LSTM", "deep", 3)])
    config = keras_model([keras_layer("LSTM", "own", 2), inner])
    datasets = cell_at("layers/lstm", keras_variables("LSTM", 2, 4))
    datasets |= cell_at("layers/sequential/layers/lstm", keras_variables("LSTM", 3, 2))
    models = import_weights(saved(tmp_path, keras_file(config, datasets)))
    assert [each.model.layers[0].hidden for each in models] == [2, 3]


def test_a_merge_other_than_concat_is_noted(tmp_path: Path) -> None:
    entry = keras_both(keras_layer("SimpleRNN", "a", 2), "both", merge="sum")
    datasets = cell_at("layers/bidirectional/forward_layer", keras_variables("SimpleRNN", 2, 2))
    datasets |= cell_at("layers/bidirectional/backward_layer", keras_variables("SimpleRNN", 2, 2))
    (model,) = import_weights(saved(tmp_path, keras_file(keras_model([entry]), datasets)))
    assert model.notes == ("layer 'both' joins its directions by 'sum'; here they are concatenated",)


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_weights(path)
    assert all(line.startswith(str(path)) for line in str(caught.value).splitlines())
    return str(caught.value)


def cell_of(kind: str, **config: Any) -> dict[str, Any]:
    return layer_of(kind, **{"units": 3} | config)


def rnn_of(*cells: dict[str, Any]) -> dict[str, Any]:
    """Make the entry of an RNN of a cell, or of several."""
    inner = cells[0] if len(cells) == 1 else layer_of("StackedRNNCells", cells=list(cells))
    return layer_of("RNN", cell=inner, return_sequences=True)


LSTM = keras_layer("LSTM", "own", 3)
GOOD = cell_at("layers/lstm", keras_variables("LSTM", 3, 2))
KERNEL = "layers/lstm/cell/vars/0"


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (
            keras_layer("LSTM", "own", 3, activation="gelu"),
            "layer 'own': has activation 'gelu': only tanh, sigmoid, relu, elu, softsign, softplus, linear and",
        ),
        (keras_layer("GRU", "own", 3, recurrent_activation="relu6"), "has recurrent_activation 'relu6': only tanh,"),
        (keras_layer("GRU", "own", 3, activation={"class_name": "Lambda"}), "has activation a mapping"),
        (
            keras_both(keras_layer("LSTM", "own", 3, go_backwards=True), "b"),
            "has a first direction that goes backward: only the second can be simulated so",
        ),
        (
            keras_both(keras_layer("LSTM", "own", 3), "b", backward={"go_backwards": False}),
            "has a first direction that goes backward",
        ),
        (
            keras_both(keras_layer("LSTM", "own", 3), "b", backward={"use_bias": False}),
            "has two directions that differ",
        ),
        (
            keras_both(keras_layer("LSTM", "own", 3), "b", backward={"recurrent_activation": "hard_sigmoid"}),
            "has two directions that differ",
        ),
        (layer_of("TimeDistributed", layer=keras_layer("LSTM", "own", 3)), "is 'TimeDistributed' around 'LSTM'"),
        (keras_layer("CuDNNLSTM", "own", 3), "is 'CuDNNLSTM'"),
        (keras_layer("SimpleRNN", "own", 3, activation="selu"), "has activation 'selu': only tanh,"),
        (keras_layer("LSTM", "own", 0), "has units 0, must be between 1 and"),
        (keras_layer("LSTM", "own", True), "has units true"),  # type: ignore[arg-type]
        (keras_layer("LSTM", "own", 10**400), "has units a number of"),
        (keras_layer("RNN", "own", 3), "is RNN around nothing: LSTMCell, GRUCell, SimpleRNNCell and lists of them"),
        (rnn_of(cell_of("PeepholeLSTMCell")), "is RNN around 'PeepholeLSTMCell': LSTMCell, GRUCell"),
        (rnn_of(cell_of("LSTM")), "is RNN around 'LSTM': LSTMCell, GRUCell"),
        (rnn_of(), "is RNN around StackedRNNCells without a list of"),
        (rnn_of(cell_of("LSTMCell"), cell_of("LSTMCell") | {"module": "mine"}), "belongs to 'mine', only Keras's own"),
        (rnn_of(cell_of("LSTMCell", units=0)), "has units 0, must be between 1 and"),
        (keras_both(rnn_of(cell_of("LSTMCell"), cell_of("LSTMCell")), "b"), "is an RNN of 2 cells in two directions"),
        (
            keras_both(rnn_of(cell_of("GRUCell")), "b", backward={"cell": cell_of("GRUCell", units=4)}),
            "has two directions that differ",
        ),
        (LSTM | {"module": "mine.layers"}, "belongs to 'mine.layers', only Keras's own"),
        (keras_both(keras_layer("RNN", "own", 3), "b"), "is RNN around nothing"),
        (layer_of("Bidirectional", layer=7), "is Bidirectional around something that is no layer"),
        (layer_of("Lambda"), "holds no layer LSTM, GRU or SimpleRNN; it has 1 'Lambda'"),
    ],
)
def test_layers_that_cannot_be_simulated(entry: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    assert sentence in refusal(saved(tmp_path, keras_file(keras_model([entry]), GOOD)))


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (b"", "its config.json is no JSON"),
        (b"\xff", "its config.json is no JSON"),
        (b"[" * 100_000, "its config.json is no JSON"),
        (b"7", "describes no Keras model"),
        (b'{"config": {}}', "does not list at most 10000 layers of a model"),
        (b'{"config": {"layers": [7]}}', "does not list at most 10000 layers of a model"),
        (b'{"config": {"layers": []}}', "it has no layers"),
    ],
)
def test_broken_configurations(config: bytes, sentence: str, tmp_path: Path) -> None:
    assert sentence in refusal(saved(tmp_path, keras_file(config, GOOD)))


def test_models_without_end(tmp_path: Path) -> None:
    config = keras_model([LSTM])
    for _ in range(100):
        config = keras_model([config])
    assert "more than 20 deep" in refusal(saved(tmp_path, keras_file(config, GOOD)))


def external(file: Any, path: str) -> None:
    file[path] = h5py.ExternalLink("other.h5", "/secret")


def soft(file: Any, path: str) -> None:
    file[path] = h5py.SoftLink("/layers/lstm/cell/vars/1")


def virtual(file: Any, path: str) -> None:
    layout = h5py.VirtualLayout((2, 12), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "secret", (2, 12))
    file.create_virtual_dataset(path, layout)


def outside(file: Any, path: str) -> None:
    file.create_dataset(path, (2, 12), "f4", external=[("secret.bin", 0, 96)])


def bomb(file: Any, path: str) -> None:
    file.create_dataset(path, (10**6, 12), "f4", chunks=(1000, 12))


def empty(file: Any, path: str) -> None:
    file[path] = h5py.Empty("f4")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (external, "is a link to somewhere else"),
        (soft, "is a link to somewhere else"),
        (virtual, "takes its numbers from other files"),
        (outside, "takes its numbers from other files"),
        (bomb, "needs more bytes than the whole file"),
        (empty, "has shape [], expected [1, 12]"),
        (np.ones((2, 13), np.float32), "has shape [2, 13], expected [2, 12]"),
        (np.ones(24, np.float32), "has shape [24], expected [1, 12]"),
        (np.ones((2, 12), np.int32), "holds int32, expected floating-point numbers"),
        (np.full((2, 12), np.nan), "holds nan at [0, 0], expected finite numbers"),
        (np.ones((0, 12), np.float32), "is empty"),
        (lambda file, path: file.create_group(path), "is a group, expected a dataset"),
        (lambda file, path: None, "is missing"),
    ],
)
def test_hostile_datasets(value: Any, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.h5").write_bytes(h5({"secret": np.ones((2, 12), np.float32)}))
    (tmp_path / "secret.bin").write_bytes(bytes(96))
    text = refusal(saved(tmp_path, keras_file(keras_model([LSTM]), GOOD | {KERNEL: value})))
    assert f"layer 'own': {KERNEL}: " in text
    assert sentence in text


def test_links_on_the_way_are_not_followed(tmp_path: Path) -> None:
    datasets = {
        "elsewhere/cell/vars/0": np.ones((2, 12)),
        "layers/lstm": lambda f, p: f.__setitem__(p, h5py.SoftLink("/elsewhere")),
    }
    assert "is a link to somewhere else" in refusal(saved(tmp_path, keras_file(keras_model([LSTM]), datasets)))


def test_zip_bombs_and_files_of_something_else(tmp_path: Path) -> None:
    bomb = keras_file(keras_model([LSTM]), bytes(10**7), zipfile.ZIP_DEFLATED)
    assert "inflates to 10000000 bytes" in refusal(saved(tmp_path, bomb))
    liar = bytearray(keras_file(keras_model([LSTM]), bytes(3 * 10**6), zipfile.ZIP_DEFLATED))
    # The directory claims a small size, but the size after inflation counts.
    place = liar.rindex(b"PK\x01\x02")
    liar[place + 24 : place + 28] = (1000).to_bytes(4, "little")
    assert "net.keras: " in refusal(saved(tmp_path, bytes(liar)))
    wide = keras_file(b" " * (17 * 2**20) + b"{}", GOOD)
    assert "at most 16777216 are read" in refusal(saved(tmp_path, wide))
    assert "has no member 'config.json'" in refusal(saved(tmp_path, zipped({"../config.json": b"{}"})))
    assert "is no Keras file: neither a zip file (.keras) nor HDF5 (.h5)" in refusal(saved(tmp_path, b"GIF89a"))
    assert "is no HDF5 file" in refusal(
        saved(tmp_path, keras_file(keras_model([LSTM]), b"\x89HDF\r\n\x1a\n" + bytes(99)))
    )
    assert "compressed in a way" in refusal(saved(tmp_path, keras_file(keras_model([LSTM]), GOOD, zipfile.ZIP_LZMA)))


def test_without_the_package_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, keras_file(keras_model([LSTM]), GOOD))
    load = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "h5py":
            raise ModuleNotFoundError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "reading Keras files needs the extra: pip install 'lstmsim[keras]'" in refusal(path)
