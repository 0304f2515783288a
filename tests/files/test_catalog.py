"""The chips and models that come along: all load, all say where their numbers are from, a wheel finds them too."""

import shutil
from pathlib import Path

import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.catalog import chip_files, find_chip, find_model, is_path, list_chips, list_models, model_files
from lstmsim.files.scenario.scenario_file import load_chip, load_model, load_scenario
from lstmsim.files.yaml.source import read_document

SCENARIOS = Path(__file__).parents[2] / "experiments" / "scenarios"
DEEPBENCH = {
    **{("lstm", size): steps for size, steps in ((256, 150), (512, 25), (1024, 25), (1536, 50), (2048, 25))},
    **{
        ("gru", size): steps
        for size, steps in ((512, 1), (1024, 1500), (1536, 375), (2048, 375), (2560, 375), (2816, 750))
    },
}


#: Words of which a citation has one.
SOURCES = (
    "OpenBLAS",
    "TACC report",
    "patent",
    "doi",
    "arXiv",
    "intel/fpga-npu",
    "published",
    "gpgpusim.config",
    "PMC10448217",
    "ASPLOS",
    "Xavier",
    "kerncraft",
    "EdgeDRNN's RTL",
    "flame/blis",
    "AnandTech",
    "data sheet",
)


@pytest.mark.parametrize("entry", list_models(), ids=lambda entry: entry.name)
def test_models_load_under_their_names_and_state_their_source(entry):
    assert load_model(entry.name).name == entry.name
    assert entry.source
    assert read_document(entry.path).data["licence"]
    assert entry.path.read_text(encoding="utf-8").startswith("# ")


def test_deepbench_is_complete():
    steps = {}
    for entry in list_models():
        if entry.name.startswith("deepbench-"):
            (layer,) = load_model(entry.name).layers
            assert layer.hidden == layer.input
            steps[layer.cell.name, layer.hidden] = read_document(entry.path).data["steps"]
    assert steps == DEEPBENCH


@pytest.mark.parametrize("entry", list_chips(), ids=lambda entry: entry.name)
def test_chips_load_and_each_number_says_where_it_comes_from(entry):
    chip = load_chip(entry.name)
    assert chip.name == entry.name
    core = read_document(entry.path).data["cores"][0]
    silent = {"count"} if core["count"] == 1 else set()
    derived = {"vp"} if chip.kind == "column-npu" else set()
    assert set(chip.sources) >= ({"frequency_mhz", *derived, *core} - silent)
    for text in chip.sources.values():
        assert text.startswith(("assumption, because", "fitted")) or any(word in text for word in SOURCES)
    # EdgeDRNN has one cell and sizes of its own
    refused = [model.name for model in list_models() if chip.cores[0].refusal(load_model(model.name))]
    assert bool(refused) == (chip.kind == "edgedrnn")


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.name)
def test_example_scenarios_load(path):
    assert load_scenario(path).name == path.stem


def test_an_installed_package_finds_its_models_inside(tmp_path):
    package = tmp_path / "site-packages" / "lstmsim"
    shutil.copytree(find_model("lstm-512").parent, package / "_models")
    shutil.copytree(find_chip("column-npu-64k").parent, package / "presets")
    (package.parent / "models").mkdir()
    assert model_files(package)["lstm-512"] == package / "_models" / "lstm-512.yaml"
    assert set(model_files(package)) == set(model_files())
    assert set(chip_files(package)) == set(chip_files())


def test_an_empty_folder_is_an_empty_catalog(tmp_path):
    assert not model_files(tmp_path / "lstmsim")


@pytest.mark.parametrize(
    ("find", "name", "sentence"),
    [
        (find_model, "LSTM-512", "no model called 'LSTM-512'; did you mean 'lstm-512'?"),
        (find_chip, "column-npu-16", "no chip called 'column-npu-16'; did you mean 'column-npu-16k'?"),
        (find_chip, "", "no chip called ''; `lstmsim list` shows all, a file's path ends in .yaml"),
        (find_model, "..", "no model called '..'; `lstmsim list` shows all, a file's path ends in .yaml"),
    ],
)
def test_unknown_names(find, name, sentence):
    with pytest.raises(InputError) as caught:
        find(name)
    assert str(caught.value) == sentence


def test_what_counts_as_a_path():
    assert [is_path(name) for name in ("a", "a.yaml", "a.yml", "a.json", "b/a", "a.b")] == [0, 1, 1, 1, 1, 0]
