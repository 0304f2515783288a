"""Projections, weights, inputs, precision and division in scenario and model files."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from lstmsim.base.errors import InputError
from lstmsim.base.keys import keys_of
from lstmsim.files.scenario.scenario_file import load_model, load_scenario
from lstmsim.files.scenario.schema import PrecisionEntry
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.model.model import ACTIVATIONS, FORMATS, SHIFTS, WEIGHT_SCALES, Precision

PLAIN = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 1}]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reported(folder: Path, text: str, *overrides: str) -> list[str]:
    (folder / "s.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        load_scenario("s.yaml", overrides)
    return str(caught.value).splitlines()


def model(**more: Any) -> dict[str, Any]:
    return {"layers": [{"cell": "lstm", "hidden": 8, "input": 8}], "steps": 1, **more}


LAYERS = """\
chip: column-npu-64k
jobs:
  - model:
      layers:
        - {cell: lstm-projection, hidden: 8, input: 4, projection: 3}
        - {cell: lstm, hidden: 8, input: 3}
    steps: 1
"""


def test_projections(folder: Path) -> None:
    (folder / "s.yaml").write_text(LAYERS)
    assert [layer.output for layer in load_scenario("s.yaml").jobs[0].model.layers] == [3, 8]
    layer = "jobs.0.model.layers"
    assert reported(folder, LAYERS.replace(", projection: 3", ""))[0] == (
        f"s.yaml:5:11: {layer}.0.projection: cell 'lstm-projection' projects h and needs it: "
        "the number of projected units"
    )
    assert reported(folder, LAYERS.replace("input: 3}", "input: 3, projection: 2}")) == [
        f"s.yaml:6:57: {layer}.1.projection: cell 'lstm' has no projection; lstm-projection has"
    ]
    assert reported(folder, LAYERS.replace("projection: 3", "projection: 0"))[0] == (
        f"s.yaml:5:68: {layer}.0.projection: must be at least 1, got 0"
    )
    assert reported(folder, LAYERS.replace("input: 3}", "input: 4}")) == [
        f"s.yaml:6:42: {layer}.1.input: must be 3, the output of layer 0 (3 projected units), got 4"
    ]


def test_weights_and_inputs_are_seen_from_their_file(folder: Path) -> None:
    (folder / "nets" / "deep").mkdir(parents=True)
    (folder / "nets" / "deep" / "m.yaml").write_text(json.dumps(model(weights="w/m.safetensors")))
    inline = model(weights="own.safetensors")
    jobs = [{"model": "deep/m.yaml", "inputs": "../x.npy"}, {"model": inline, "inputs": "in/x.csv", "count": 2}]
    source = {"chip": "column-npu-64k", "jobs": jobs}
    (folder / "nets" / "s.yaml").write_text(json.dumps(source))
    loaded = load_scenario("nets/s.yaml").jobs
    assert [Path(job.model.weights) for job in loaded] == [
        Path("nets/deep/w/m.safetensors"),
        *[Path("nets/own.safetensors")] * 2,
    ]
    assert [Path(job.inputs) for job in loaded] == [Path("nets/../x.npy"), *[Path("nets/in/x.csv")] * 2]
    overrides = ["jobs.0.model.weights=a/b.safetensors", "jobs.0.inputs=c/d.safetensors"]
    changed = load_scenario("nets/s.yaml", overrides).jobs[0]
    assert (Path(changed.model.weights), Path(changed.inputs)) == (
        Path("nets/a/b.safetensors"),
        Path("nets/c/d.safetensors"),
    )
    assert Path(load_model("nets/deep/m.yaml").weights) == Path("nets/deep/w/m.safetensors")
    plain = load_scenario({**source, "jobs": jobs[1:]}).jobs[0]
    assert (Path(plain.model.weights), Path(plain.inputs)) == (Path("own.safetensors"), Path("in/x.csv"))
    assert (load_model("lstm-512").weights, load_scenario(PLAIN).jobs[0].inputs) == ("", "")


@pytest.mark.parametrize("name", ["w.pt", "", ".safetensors", "a/.safetensors", "a\nb.safetensors", "\0.safetensors"])
def test_weights_are_safetensors(name: str) -> None:
    data = model(weights=name)
    with pytest.raises(InputError, match=r"^jobs\.0\.model\.weights: must be the path of a file that ends in \.safet"):
        load_scenario({"chip": "column-npu-64k", "jobs": [{"model": data}]})


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("jobs.0.model.weights", "[a]", "must be text, got a list"),
        ("jobs.0.inputs", "3", "must be text, got 3"),
        ("jobs.0.inputs", "x.wav", "must be the path of a file that ends in .safetensors or .npy or .csv, got 'x.wav'"),
        ("precision.weight_bits", "1", "must be between 2 and 16, got 1"),
        ("precision.weight_bits", "-1", "must be between 2 and 16, got -1"),
        ("precision.weight_bits", "8.0", "must be a whole number, got 8.0; write 8"),
        ("precision.state_bits", "1" + "0" * 50, "must be at most 1000000, got 1"),
        ("precision.weight_scale", "rows", "must be 'row' or 'tensor', got 'rows'; did you mean 'row'?"),
        ("precision.activation_entries", "100", "must be a power of two between 2 and 65536, got 100"),
        ("precision.formats", "share", "must be 'own' or 'shared', got 'share'; did you mean 'shared'?"),
        ("precision.activation_rang", "4", "unknown key; did you mean 'activation_range'?"),
        ("precision", "8", "must be a mapping of keys to values, got 8"),
        ("cells", "[]", "must be a mapping of keys to values, got a list"),
        ("cells", "{' a': {}}", "a cell's name must be printable text without spaces around it"),
        ("chip.cores.0.latency.divide", "0", "must be at least 1, got 0"),
    ],
)
def test_single_mistakes_in_the_other_keys(key: str, value: str, line: str) -> None:
    override = f"{key}={value}"
    with pytest.raises(InputError) as caught:
        load_scenario(PLAIN, [override])
    assert any(mistake.sentence.startswith(line) for mistake in caught.value.mistakes), str(caught.value)
    assert all(mistake.location.startswith("overrides ") for mistake in caught.value.mistakes)


def test_precision_of_a_file_is_placed_at_its_key(folder: Path) -> None:
    text = "chip: column-npu-64k\nprecision:\n  tail_bits: 3\n  state_bits: 12\n  vector_bits: x\n"
    assert reported(folder, text + "jobs: [{model: lstm-512, steps: 1}]\n") == [
        "s.yaml:3:14: precision.tail_bits: must be between 4 and 24, got 3",
        "s.yaml:5:16: precision.vector_bits: must be a whole number, got 'x'",
    ]


def test_precision_and_division_reach_the_scenario() -> None:
    overrides = ["precision.weight_bits=6", "precision.activation=table", "chip.cores.0.latency.divide=20"]
    scenario = load_scenario(PLAIN, overrides)
    assert scenario.precision == Precision(weight_bits=6, activation="table")
    assert load_scenario(PLAIN).precision == Precision()
    assert isinstance(scenario.chip, ColumnNpu)
    assert scenario.chip.cores[0].latency.divide == 20


def test_precision_has_the_fields_and_defaults_of_what_it_describes() -> None:
    # where formats are calibrated is no width
    own = {key: each.default for key, each in keys_of(PrecisionEntry).items() if key != "calibration"}
    assert own == {each.name: each.default for each in fields(Precision)}


@pytest.mark.parametrize(
    ("key", "known"),
    [("weight_scale", WEIGHT_SCALES), ("activation", ACTIVATIONS), ("formats", FORMATS), ("shift", SHIFTS)],
)
def test_words_of_precision_are_all_known(key: str, known: tuple[str, ...]) -> None:
    for word in known:
        assert getattr(load_scenario(PLAIN, [f"precision.{key}={word}"]).precision, key) == word
