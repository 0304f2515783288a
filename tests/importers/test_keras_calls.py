"""Keras models whose layers are called again or do not form a stack, and files of cells without their layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lstmsim.importers.files import import_weights
from lstmsim.importers.imported import ImportedModel
from tests.importers.test_weights_h5 import read, whole
from tests.importers.test_weights_keras import layer_of, output, saved
from tests.importers.weight_files import cell_at, h5, keras_both, keras_file, keras_layer, keras_model, keras_variables

STACK = "a model of its own, not a stack"


def called(entry: dict[str, Any], *sources: str, states: str = "") -> dict[str, Any]:
    """Change a layer's entry so that the layer is called once for each source."""

    def tensor(name: str, index: int = 0) -> dict[str, Any]:
        return {"class_name": "__keras_tensor__", "config": {"keras_history": [name, 0, index]}}

    kwargs = {"initial_state": [tensor(states, 1)]} if states else {}
    return {**entry, "inbound_nodes": [{"args": [tensor(each)], "kwargs": kwargs} for each in sources]}


def inner_of(name: str, *layers: dict[str, Any]) -> dict[str, Any]:
    model = keras_model(list(layers))
    model["config"]["name"] = name
    return model


def functional(*layers: dict[str, Any]) -> dict[str, Any]:
    return keras_model([layer_of("InputLayer"), *layers]) | {"class_name": "Functional"}


LOW, HIGH = keras_variables("LSTM", 4, 4), keras_variables("GRU", 4, 4, seed=1)
NESTED = functional(
    called(inner_of("twice", keras_layer("LSTM", "a", 4), keras_layer("GRU", "b", 4)), "inputlayer", "twice")
)
DATASETS = cell_at("layers/sequential/layers/lstm", LOW) | cell_at("layers/sequential/layers/gru", HIGH)


def table_of(model: ImportedModel) -> str:
    assert model.operators is not None
    return "\n".join(model.operators.lines())


@pytest.mark.parametrize("kind", ["keras", "h5"])
def test_a_model_that_is_called_twice_is_said(kind: str, tmp_path: Path) -> None:
    if kind == "keras":
        (model,) = import_weights(saved(tmp_path, keras_file(NESTED, DATASETS)))
    else:
        groups = {f"twice/{name}/cell": own for name, own in (("a", LOW), ("b", HIGH))}
        names = ("kernel:0", "recurrent_kernel:0", "bias:0")
        datasets = {f"{path}/{n}": value for path, own in groups.items() for n, value in zip(names, own, strict=True)}
        (model,) = read(tmp_path, whole(NESTED, datasets))
    assert model.nodes == ("a", "b")
    assert model.notes == ("model 'twice' is called 2 times with the same weights; here each of its layers runs once",)
    assert model.operators is not None
    assert model.operators.left_out == 0.5
    assert "100.0 %" not in table_of(model)
    assert "LSTM called again" in table_of(model)
    assert "counted for calls of equally many steps" in table_of(model)
    assert "50.0 % of the multiply-accumulates are left out" in str(model.operators.warning())


def test_calls_of_models_in_models_multiply(tmp_path: Path) -> None:
    middle = functional(called(inner_of("low", keras_layer("LSTM", "a", 4)), "inputlayer", "low"))
    middle["config"]["name"] = "middle"
    config = functional(called(middle, "inputlayer", "middle", "middle"))
    datasets = cell_at("layers/functional/layers/sequential/layers/lstm", LOW)
    (model,) = import_weights(saved(tmp_path, keras_file(config, datasets)))
    assert [note.split(" with")[0] for note in model.notes] == [
        "model 'middle' is called 3 times",
        "model 'low' is called 2 times",
    ]
    assert model.operators is not None
    assert model.operators.left_out == 5 / 6


def test_the_table_counts_every_call_of_a_layer(tmp_path: Path) -> None:
    config = functional(called(keras_layer("LSTM", "a", 4), "inputlayer", "a"))
    (model,) = import_weights(saved(tmp_path, keras_file(config, cell_at("layers/lstm", LOW))))
    assert model.notes == ("layer 'a' is called 2 times with the same weights; here it is one model",)
    assert model.operators is not None
    assert model.operators.left_out == 0.5


def test_both_cells_of_an_rnn_of_cells_are_read(tmp_path: Path) -> None:
    first, second = keras_variables("LSTM", 5, 4), keras_variables("LSTM", 3, 5, seed=2)
    names = ("lstm_cell", "lstm_cell_1")
    datasets = {
        f"layers/rnn/cell/cells/{name}/vars/{at}": array
        for name, own in zip(names, (first, second), strict=True)
        for at, array in enumerate(own)
    }
    models = read(tmp_path, h5(datasets))
    assert [each.nodes for each in models] == [("lstm_cell",), ("lstm_cell_1",)]
    assert [each.model.layers[0].hidden for each in models] == [5, 3]


def test_what_weights_alone_do_not_say_is_said(tmp_path: Path) -> None:
    (model,) = read(tmp_path, h5(cell_at("layers/lstm", LOW)))
    (note,) = model.notes
    assert "forward direction and initial states of 0" in note
    assert "go_backwards, initial_state and other backward layers are not in it" in note


BETWEEN = [
    ("BatchNormalization", {}),
    ("Activation", {"activation": "relu"}),
    ("Permute", {"dims": [2, 1]}),
    ("Reshape", {"target_shape": [4, 6]}),
    ("MaxPooling1D", {}),
    ("Cropping1D", {}),
    ("Dense", {}),
    ("TimeDistributed", {"layer": {"class_name": "Dense", "config": {"name": "inner"}}}),
]


@pytest.mark.parametrize(("kind", "options"), BETWEEN)
def test_why_layers_are_not_joined(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    middle = {"class_name": kind, "config": {"name": "m", **options}}
    layers = [keras_layer("LSTM", "a", 4), layer_of("Dropout"), middle, keras_layer("GRU", "b", 4)]
    datasets = cell_at("layers/lstm", LOW) | cell_at("layers/gru", HIGH)
    low, high = import_weights(saved(tmp_path, keras_file(keras_model(layers), datasets)))
    assert (low.notes, high.notes) == ((), (f"'b' reads 'a' through {kind} 'm': {STACK}",))


def test_why_layers_without_anything_between_are_not_joined(tmp_path: Path) -> None:
    def high(low: dict[str, Any], *more: dict[str, Any]) -> str:
        layers = [called(low, "inputlayer"), called(keras_layer("GRU", "b", 4), "a"), *more]
        stem = "layers/bidirectional/forward_layer" if low["class_name"] == "Bidirectional" else "layers/lstm"
        datasets = cell_at(stem, LOW) | cell_at("layers/gru", keras_variables("GRU", 4, width))
        datasets |= cell_at(stem.replace("forward", "backward"), LOW) | cell_at("layers/gru_1", HIGH)
        models = import_weights(saved(tmp_path, keras_file(functional(*layers), datasets)))
        return " | ".join(note for each in models for note in each.notes if "reads" in note)

    width = 4
    entry = keras_layer("LSTM", "a", 4)
    assert high(entry) == ""
    assert high(entry, called(layer_of("Dense"), "a")) == "'b' reads 'a', which other layers read too: " + STACK
    both = keras_both(keras_layer("LSTM", "own", 4), "a", merge="sum")
    assert high(both) == f"'b' reads 'a', whose directions Keras joins by 'sum': {STACK}"
    back = keras_layer("LSTM", "a", 4, go_backwards=True)
    assert high(back) == f"'b' reads 'a', whose last step Keras hands on first: {STACK}"
    ends = keras_layer("LSTM", "a", 4, return_sequences=False)
    assert high(ends) == f"'b' reads only the end of 'a': {STACK}"
    add = {"class_name": "Add", "config": {"name": "add"}, **called(layer_of("Add"), "a", "inputlayer")}
    more = called(keras_layer("GRU", "c", 4), "add")
    assert f"'c' reads 'a' through Add 'add': {STACK}" in high(entry, add, more)


def test_layers_of_other_models_are_not_joined(tmp_path: Path) -> None:
    inner = inner_of("inner", keras_layer("LSTM", "a", 4))
    config = keras_model([keras_layer("GRU", "b", 4), inner, keras_layer("GRU", "c", 4)])
    datasets = cell_at("layers/sequential/layers/lstm", LOW)
    datasets |= cell_at("layers/gru", HIGH) | cell_at("layers/gru_1", HIGH)
    models = import_weights(saved(tmp_path, keras_file(config, datasets)))
    notes = {each.nodes[0]: each.notes for each in models}
    assert notes["b"] == ()
    assert notes["a"] == (f"'a' reads 'b' from outside its own model: {STACK}",)
    assert notes["c"] == (f"'c' reads model 'inner': {STACK}",)


def test_an_encoder_gives_its_states_and_no_note(tmp_path: Path) -> None:
    """A state is no sequence: `states_from` says where it comes from."""
    layers = [called(keras_layer("GRU", "enc", 4), "inputlayer")]
    layers += [called(keras_layer("GRU", "dec", 4), "inputlayer", states="enc")]
    datasets = cell_at("layers/gru", HIGH) | cell_at("layers/gru_1", HIGH)
    models = import_weights(saved(tmp_path, keras_file(functional(*layers), datasets)))
    assert [each.notes for each in models] == [(), ()]
    assert models[1].model.states_from == "the last states of layer 'enc'"
    np.testing.assert_array_equal(output(models[0], np.zeros((2, 4))).shape, (2, 4))


@pytest.mark.parametrize("kind", ["Add", "Concatenate"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("order", [("inputlayer", "a"), ("a", "inputlayer")])
def test_a_layer_that_reads_a_join_says_so(kind: str, version: int, order: tuple[str, str], tmp_path: Path) -> None:
    """A join reads a list of tensors; the second is no state, wherever the recurrent layer is."""
    joined = layer_of(kind) | {"inbound_nodes": [[[each, 0, 0, {}] for each in order]]}
    if version == 3:
        tensors = [called({}, each)["inbound_nodes"][0]["args"][0] for each in order]
        joined["inbound_nodes"] = [{"args": [tensors], "kwargs": {}}]
    layers = [
        called(keras_layer("LSTM", "a", 4), "inputlayer"),
        joined,
        called(keras_layer("GRU", "b", 4), kind.lower()),
    ]
    width = 8 if kind == "Concatenate" else 4
    datasets = cell_at("layers/lstm", LOW) | cell_at("layers/gru", keras_variables("GRU", 4, width))
    low, high = import_weights(saved(tmp_path, keras_file(functional(*layers), datasets)))
    assert (low.notes, high.notes) == ((), (f"'b' reads 'a' through {kind} '{kind.lower()}': {STACK}",))
