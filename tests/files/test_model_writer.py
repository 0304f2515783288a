"""Model files written and read back."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.scenario_file import load_model
from lstmsim.files.scenario.written import model_text, save_model, write_model_file
from lstmsim.files.yaml.source import parse_document
from lstmsim.importers.imported import ImportedModel
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import random_network
from tests.strategies import CHARACTERS

MODEL = Model("two", (Layer(cell("lstm"), 8, 4, bidirectional=True), Layer(cell("gru"), 3, 16)))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    text = write_model_file(MODEL, path, source="here: there", licence="MIT", notes=["first", "second"])
    assert path.read_text(encoding="utf-8") == text
    assert load_model(path) == MODEL
    layers = "lstm of 8 units in each direction over 4 inputs, gru of 3 units over 16 inputs"
    assert text.splitlines()[:3] == [f"# Recurrent network of 2 layers: {layers}.", "# first", "# second"]


def test_step_order_is_kept(tmp_path: Path) -> None:
    model = Model("m", (Layer(cell("rnn"), 8, 4), Layer(cell("rnn"), 8, 8)), layer_order="step")
    write_model_file(model, tmp_path / "m.yaml", source="s")
    assert load_model(tmp_path / "m.yaml") == model


def test_a_reverse_layer_is_read_back(tmp_path: Path) -> None:
    model = Model("m", (Layer(cell("rnn-relu"), 8, 4, reverse=True),))
    text = write_model_file(model, tmp_path / "m.yaml", source="s")
    assert "{cell: rnn-relu, hidden: 8, input: 4, reverse: true}" in text
    assert "rnn-relu of 8 units over 4 inputs, in reverse." in text
    assert load_model(tmp_path / "m.yaml") == model


TRICKY = [
    "no",
    "Null",
    "1e3",
    "0x10",
    "a: b",
    "a #b",
    "- a",
    "{a}",
    "&a",
    "'",
    '"',
    "\\",
    "",
    " a ",
    "~",
    "1:30",
    "é\U0001f600",
]


@pytest.mark.parametrize("text", TRICKY)
def test_tricky_texts_stay_text(text: str) -> None:
    check_texts(text, text, text)


@given(st.text(CHARACTERS), st.text(CHARACTERS), st.text(CHARACTERS))
def test_any_text_stays_itself(name: str, source: str, note: str) -> None:
    check_texts(name, "".join("\ufffd" if 0xD800 <= ord(each) < 0xE000 else each for each in source), note)


def check_texts(name: str, source: str, note: str) -> None:
    text = model_text(Model(name, MODEL.layers), source=source, licence=source, notes=[note])
    data = parse_document(text, "m").data
    assert (data["name"], data["source"], data["licence"]) == (name, source, source)
    assert [layer["hidden"] for layer in data["layers"]] == [8, 3]


def test_half_letters_of_file_names_are_replaced() -> None:
    text = model_text(Model("a\udcff", MODEL.layers), source="\udcff")
    assert parse_document(text.encode().decode(), "m").data["name"] == "a\ufffd"


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        write_model_file(MODEL, tmp_path / "none" / "m.yaml", source="s")
    assert not list(tmp_path.iterdir())


def test_force_replaces_a_model_that_was_read_but_never_what_the_network_came_from(tmp_path: Path) -> None:
    network = random_network(MODEL, seed=1)
    imported = ImportedModel(MODEL, ("a", "b"), "a test", network=network)
    path = save_model(imported, tmp_path / "m.yaml")
    source = (tmp_path / "m.safetensors").read_bytes()
    # as if somebody else had written it
    os.utime(path, ns=(1, 1))
    load_model(path)
    with pytest.raises(InputError, match="exists already; force=True replaces it"):
        save_model(imported, path)
    assert save_model(imported, path, force=True) == path
    taken = replace(imported, files=(str(tmp_path / "m.safetensors"),))
    with pytest.raises(InputError, match="is also the input"):
        save_model(taken, path, force=True)
    assert (tmp_path / "m.safetensors").read_bytes() == source


def test_what_was_written_here_may_be_written_again_until_somebody_changes_it(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    write_model_file(MODEL, path, source="one")
    load_model(path)
    write_model_file(MODEL, path, source="two")
    path.write_text(path.read_text() + "# a word of mine\n")
    load_model(path)
    with pytest.raises(InputError, match="is also the input"):
        write_model_file(MODEL, path, source="three")
    assert path.read_text().endswith("# a word of mine\n")


def test_weights_of_another_model_are_found_when_the_model_is_read(tmp_path: Path) -> None:
    """Not only when their numbers are needed: a run would else be of another network than its weights."""
    path, numbers = tmp_path / "m.yaml", random_network(MODEL, 1)
    save_model(ImportedModel(MODEL, ("a", "b"), "here", network=numbers), path)
    text = path.read_text(encoding="utf-8")
    assert load_model(path).weights == str(tmp_path / "m.safetensors")
    path.write_text(text.replace("hidden: 3", "hidden: 5"), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_model(path)
    name = "layers.1.forward.matrix.r.x"
    assert str(caught.value).startswith(f"{path}:")
    assert str(caught.value).endswith(f"weights: do not fit this model: {name} has shape [3, 16], expected [5, 16]"), (
        caught.value
    )
    # a file that is no safetensors file is named where its numbers are read
    (tmp_path / "m.safetensors").write_bytes(b"damaged")
    assert load_model(path).layers[1].hidden == 5
