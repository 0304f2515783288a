"""Keras's HDF5 files: whole models and weights alone, in layouts written here, and hostile files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.importers.files import import_weights
from lstmsim.importers.imported import ImportedModel
from lstmsim.importers.keras import files
from tests.importers.test_weights_keras import external, keras_pass, output, soft, virtual
from tests.importers.weight_files import cell_at, h5, keras_both, keras_file, keras_layer, keras_model, keras_variables

NAMES = ("kernel:0", "recurrent_kernel:0", "bias:0")


def legacy(path: str, variables: list[np.ndarray]) -> dict[str, Any]:
    """Name the variables of a cell as Keras 2 does."""
    return {f"{path}/{name}": array for name, array in zip(NAMES, variables, strict=False)}


def attribute(name: str, value: Any) -> Callable[[Any, str], None]:
    def put(file: Any, _: str) -> None:
        file.attrs[name] = value

    return put


def whole(config: Any, datasets: dict[str, Any]) -> bytes:
    """Make the file of a whole model of Keras 2."""
    inner = {f"model_weights/{path}": value for path, value in datasets.items()}
    return h5({"config": attribute("model_config", json.dumps(config)), **inner})


def read(folder: Path, content: bytes, **options: Any) -> list[ImportedModel]:
    path = folder / "net.h5"
    path.write_bytes(content)
    return import_weights(path, **options)


def refusal(folder: Path, content: bytes, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(folder, content, **options)
    assert all(line.startswith(str(folder / "net.h5")) for line in str(caught.value).splitlines())
    return str(caught.value)


X = np.random.default_rng(3).normal(size=(4, 2))
LSTM = keras_variables("LSTM", 3, 2)
GRU = keras_variables("GRU", 3, 2)


def test_layers_are_found_by_their_names(tmp_path: Path) -> None:
    """A layer may have a slash in its name, or be in an inner model."""
    inner = keras_model([keras_layer("GRU", "own", 3)])
    inner["config"]["name"] = "inner"
    config = keras_model([keras_layer("LSTM", "a/own", 3), inner])
    datasets = legacy("a/own/own/lstm_cell", LSTM) | legacy("inner/own/gru_cell", GRU)
    datasets |= legacy("inner/other/gru_cell", keras_variables("GRU", 3, 2, seed=9))
    models = read(tmp_path, whole(config, datasets))
    for each, kind, variables in zip(models, ("LSTM", "GRU"), (LSTM, GRU), strict=True):
        np.testing.assert_allclose(output(each, X), keras_pass(kind, variables, X), rtol=0, atol=1e-6)


def test_the_oldest_sequential_models(tmp_path: Path) -> None:
    """The configuration of the oldest Sequential models is a list of layers."""
    config = {"class_name": "Sequential", "config": [{**keras_layer("LSTM", "own", 3), "module": "keras.layers"}]}
    (model,) = read(tmp_path, whole(config, legacy("own/lstm_1", LSTM)))
    np.testing.assert_allclose(output(model, X), keras_pass("LSTM", LSTM, X), rtol=0, atol=1e-6)


def test_both_directions(tmp_path: Path) -> None:
    backward = keras_variables("GRU", 3, 2, seed=5)
    config = keras_model([keras_both(keras_layer("GRU", "own", 3), "two")])
    datasets = legacy("two/two/forward_own/gru_cell", GRU) | legacy("two/two/backward_own/gru_cell", backward)
    wanted = np.concatenate([keras_pass("GRU", GRU, X), keras_pass("GRU", backward, X[::-1])[::-1]], axis=1)
    (model,) = read(tmp_path, whole(config, datasets))
    np.testing.assert_allclose(output(model, X), wanted, rtol=0, atol=1e-6)
    (alone,) = read(tmp_path, h5(datasets))
    assert (alone.nodes, alone.model.layers) == (("two",), model.model.layers)
    np.testing.assert_allclose(output(alone, X), wanted, rtol=0, atol=1e-6)


def test_shapes_alone_tell_most(tmp_path: Path) -> None:
    old = keras_variables("GRU", 3, 2, reset_after=False)
    datasets = legacy("a/lstm_cell", LSTM) | legacy("b/gru_cell", GRU) | legacy("c/gru_cell", old)
    datasets |= legacy("forward_d/lstm_cell", LSTM[:2])
    models = read(tmp_path, h5(datasets))
    assert [each.model.layers[0].cell.name for each in models] == ["lstm", "gru", "gru-lbr0", "lstm"]
    assert [each.nodes for each in models] == [("a",), ("b",), ("c",), ("forward_d",)]
    assert not models[3].model.layers[0].bidirectional


def test_cells_of_layers_of_a_users_own_are_named(tmp_path: Path) -> None:
    """A layer of another class may hold recurrent layers; its configuration does not say which."""
    mine = {"class_name": "Encoder", "registered_name": "my>Encoder", "config": {"name": "enc"}}
    config = keras_model([keras_layer("LSTM", "own", 3), mine])
    sentence = "variables of cells that its configuration does not describe, they are left out: "
    (model,) = read(tmp_path, whole(config, legacy("own/lstm_cell", LSTM) | legacy("enc/lstm/lstm_cell", LSTM)))
    assert model.notes == (f"the file has {sentence}'model_weights/enc/lstm/lstm_cell'",)
    path = tmp_path / "net.keras"
    path.write_bytes(keras_file(config, cell_at("layers/lstm", LSTM) | cell_at("layers/encoder/rnn", LSTM)))
    (model,) = import_weights(path)
    assert model.notes == (f"the file has {sentence}'layers/encoder/rnn/cell/vars'",)


def test_what_shapes_do_not_tell_is_asked(tmp_path: Path) -> None:
    simple = keras_variables("SimpleRNN", 3, 2)
    content = h5(cell_at("layers/simple_rnn", simple))
    assert "layers/simple_rnn: is a SimpleRNN, whose activation the file does not hold: say --cell rnn" in refusal(
        tmp_path, content
    )
    models = [read(tmp_path, content, cell=name)[0] for name in ("rnn", "rnn-relu")]
    assert [each.model.layers[0].cell.name for each in models] == ["rnn", "rnn-relu"]
    assert "a GRU without biases: its weights do not show reset_after" in refusal(
        tmp_path, h5(legacy("a/gru_cell", GRU[:2]))
    )


@pytest.mark.parametrize(("version", "old"), [("2.2.4", True), ("2.2.4-tf", False), ("2.3.0", False), ("1.2", True)])
def test_weights_of_the_time_of_hard_sigmoid(version: str, old: bool, tmp_path: Path) -> None:
    content = h5({"version": attribute("keras_version", version), **legacy("a/lstm_1", LSTM)})
    if old:
        assert f"holds weights only, of Keras '{version}': recurrent_activation was hard_sigmoid" in refusal(
            tmp_path, content
        )
    else:
        assert len(read(tmp_path, content)) == 1


@pytest.mark.parametrize(
    ("datasets", "sentence"),
    [
        ({"a": np.ones(3)}, "holds no configuration and no variables of an LSTM"),
        (
            legacy("a/cell", [np.ones((2, 15)), np.ones((3, 15)), np.ones(15)]),
            "shape [3, 15]: expected 4 (LSTM), 3 (GRU)",
        ),
        (legacy("a/cell", [np.ones((2, 13)), np.ones((3, 13)), np.ones(13)]), "which no LSTM, GRU or SimpleRNN has"),
        (legacy("a/cell", [np.ones((2, 12)), np.ones((3, 12)), np.ones(24)]), "has shape [24], expected [12]"),
        (legacy("a/cell", [np.ones((2, 9)), np.ones((3, 12)), np.ones(12)]), "has shape [2, 9], expected [2, 12]"),
        (legacy("a/cell", [np.full((2, 12), np.nan), np.ones((3, 12))]), "holds nan at [0, 0]"),
        (legacy("a/cell", [np.ones((2, 12)), np.ones((0, 12))]), "which no LSTM, GRU or SimpleRNN has"),
        (legacy("a/cell", [np.ones((2, 12)), virtual]), "takes its numbers from other files"),  # type: ignore[list-item]
        (legacy("a/cell", [np.ones((2, 12)), external]), "holds no configuration"),  # type: ignore[list-item]
        (legacy("a/cell", [np.ones((2, 12)), soft]), "holds no configuration"),  # type: ignore[list-item]
        ({"c": attribute("model_config", "[]"), **legacy("a/cell", LSTM)}, "its model_config describes no Keras model"),
        ({"c": attribute("model_config", 7), **legacy("a/cell", LSTM)}, "model_config: is no text"),
        ({"c": attribute("model_config", ["a", "b"]), **legacy("a/cell", LSTM)}, "model_config: is no text"),
    ],
)
def test_refused(datasets: dict[str, Any], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in refusal(tmp_path, h5(datasets))


@pytest.mark.parametrize(
    ("datasets", "sentence"),
    [
        ({}, "layer 'own': has no groups of variables kernel and recurrent_kernel"),
        (legacy("other/lstm_cell", LSTM), "has no groups"),
        (legacy("own/lstm_cell", LSTM[:2]), "has 2 variables, its configuration needs 3"),
        (legacy("own/a", LSTM) | legacy("own/b", LSTM), "has 2 groups of variables"),
        (legacy("own/lstm_cell", GRU), "has shape [2, 9], expected [2, 12]"),
    ],
)
def test_weights_that_do_not_fit_their_model(datasets: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    assert sentence in refusal(tmp_path, whole(keras_model([keras_layer("LSTM", "own", 3)]), datasets))


def test_groups_that_hold_each_other(tmp_path: Path) -> None:
    def loop(file: Any, path: str) -> None:
        file.create_group("a/b")
        file["a/b/again"] = file["a"]

    assert "groups more than 40 deep" in refusal(tmp_path, h5({"loop": loop}))


def test_a_heap_without_end(tmp_path: Path) -> None:
    """The HDF5 library would never stop reading such a file."""
    content = bytearray(whole(keras_model([keras_layer("LSTM", "own", 3)]), legacy("own/lstm_cell", LSTM)))
    heap = content.index(b"GCOL")
    free = heap + 16
    while content[free : free + 2] != bytes(2):
        free += 16 + -(-int.from_bytes(content[free + 8 : free + 16], "little") // 8) * 8
    content[free + 8 : free + 16] = bytes(8)
    assert "is no HDF5 file, or is damaged" in refusal(tmp_path, bytes(content))


def test_a_heap_of_too_many_entries() -> None:
    """Entries of nothing but their heads: a file of 2 GB has 134 million of them."""
    size = 16 * (files.MAX_OBJECTS + 2)
    heap = b"GCOL\x01\0\0\0" + size.to_bytes(8, "little") + (b"\1" + bytes(15)) * (files.MAX_OBJECTS + 1)
    assert files._sound_heaps(heap[:8] + (16 * 100).to_bytes(8, "little") + heap[16 : 16 * 100])
    assert not files._sound_heaps(heap)


def test_references_and_damage(tmp_path: Path) -> None:
    def reference(file: Any, _: str) -> None:
        file.attrs.create("model_config", file.ref, dtype=h5py.ref_dtype)

    assert "model_config: is no text" in refusal(tmp_path, h5({"a": np.ones(2), "r": reference}))
    good = whole(keras_model([keras_layer("LSTM", "own", 3)]), legacy("own/lstm_cell", LSTM))
    for content in (good[:100], good[: len(good) // 2], good[:8] + bytes(len(good))):
        assert "is no HDF5 file, or is damaged or cut off" in refusal(tmp_path, content)


CONSTANT = [[0.1, 0.2, 0.3]]


def functional(call: Any) -> dict[str, Any]:
    """Make a model of an input and a GRU with these calls."""
    entries = [
        {"class_name": "InputLayer", "config": {"name": name}, "name": name, "inbound_nodes": []} for name in ("x", "s")
    ]
    layer = {**keras_layer("GRU", "own", 3), "name": "own", "inbound_nodes": [call]}
    return {"class_name": "Functional", "config": {"name": "m", "layers": [*entries, layer]}}


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        ([CONSTANT, CONSTANT], "begins with 2 states, expected 1"),
        ([[[0.1, 0.2]]], "initial_state has shape [1, 2], expected [3] or [1, 3]"),
        ([[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]], "initial_state has other numbers for each sequence of a batch"),
        ([[[0.1, 0.2, float("nan")]]], "initial_state holds a number that is not finite"),
        ([[[0.1, "a", 0.2]]], "initial_state holds something else than numbers"),
        ([[[0.1, 0.2], [0.3]]], "initial_state holds something else than numbers"),
    ],
)
def test_initial_states_that_cannot_be_read(states: Any, sentence: str, tmp_path: Path) -> None:
    config = functional([["x", 0, 0, {"initial_state": states}]])
    text = refusal(tmp_path, whole(config, legacy("own/gru_cell", GRU)))
    assert f"layer 'own': {sentence}" in text


def test_initial_states_of_unknown_form_are_not_taken_for_0(tmp_path: Path) -> None:
    config = functional([["x", 0, 0, {"initial_state": "mine"}]])
    (model,) = read(tmp_path, whole(config, legacy("own/gru_cell", GRU)))
    assert model.model.states_from == "an initial_state of layer 'own' that cannot be read"


@pytest.mark.parametrize("bias", [True, False])
def test_a_gru_that_is_older_than_reset_after_resets_before_its_product(bias: bool, tmp_path: Path) -> None:
    """Keras 2.1 has no such key: nothing but the bias would show a wrong guess."""
    kernel, recurrent, own = keras_variables("GRU", 3, 2, reset_after=False)
    entry = keras_layer("GRU", "own", 3, use_bias=bias)
    del entry["config"]["reset_after"]
    variables = [kernel, recurrent, *([own] if bias else [])]
    (model,) = read(tmp_path, whole(keras_model([entry]), legacy("own/gru_1", variables)))
    assert model.model.layers[0].cell.name == "gru-lbr0"
    wanted = keras_pass("GRU", [kernel, recurrent, own if bias else np.zeros_like(own)], X)
    np.testing.assert_allclose(output(model, X), wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("config", "slope"), [({"implementation": 1}, "0.2"), ({"seed": None}, "0.16666667"), ({}, "0.2")]
)
def test_the_slope_of_hard_sigmoid_without_a_module(config: dict[str, Any], slope: str, tmp_path: Path) -> None:
    entry = keras_layer("LSTM", "own", 3, recurrent_activation="hard_sigmoid", **config)
    del entry["module"]
    (model,) = read(tmp_path, whole(keras_model([entry]), legacy("own/lstm_1", LSTM)))
    nodes = {node.name: node for node in model.model.layers[0].cell.nodes}
    assert nodes["it_m"].inputs == ("i", float(slope))


def test_an_rnn_of_several_cells_with_an_initial_state_is_refused(tmp_path: Path) -> None:
    cells = [{"class_name": "GRUCell", "config": {"name": name, "units": 3}} for name in "ab"]
    config = functional([["x", 0, 0, {"initial_state": [CONSTANT, CONSTANT]}]])
    stack = {"class_name": "StackedRNNCells", "config": {"cells": cells}}
    config["config"]["layers"][2] |= {"class_name": "RNN", "config": {"name": "own", "cell": stack}}
    text = refusal(tmp_path, whole(config, legacy("own/a", GRU)))
    assert "layer 'own': is an RNN of 2 cells with an initial_state: such an RNN can be read with one cell only" in text
