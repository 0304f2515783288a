"""What scenario files mean: YAML 1.2, names and paths, defaults, counts, overrides."""

import json
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest

from lstmsim import simulate
from lstmsim.base.errors import InputError
from lstmsim.files.scenario.entries import unique_names
from lstmsim.files.scenario.scenario_file import load_chip, load_model, load_scenario, scenario_from_document
from lstmsim.files.yaml.document import document_of
from lstmsim.files.yaml.source import parse_document, read_document
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Latency
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario

CHIP = {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 64, "ep": 4}]}
JOB = {"model": {"layers": [{"cell": "lstm", "hidden": 8, "input": 4}]}, "steps": 2}


def test_yaml_1_2():
    spelled = {
        "010": 10,
        "1e3": 1000.0,
        "no": "no",
        "0x1F": 31,
        "0o17": 15,
        "12:30:45": "12:30:45",
        "2020-01-01": "2020-01-01",
        "~": None,
        "'7'": "7",
        "true": True,
        "-.inf": float("-inf"),
        "=": "=",
    }
    text = "".join(f"- {word}\n" for word in spelled)
    assert parse_document(text, "a").data == list(spelled.values())


def test_json_is_yaml_and_a_byte_order_mark_is_allowed(tmp_path):
    source = {"chip": CHIP, "jobs": [JOB, {**JOB, "arrival": [1, 2], "count": 2}]}
    path = tmp_path / "s.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(source, indent="\t").encode())
    assert load_scenario(path) == scenario_from_document(document_of(source), name="s")


def test_every_key_and_value_has_its_place():
    document = parse_document("jobs:\n  - model: a\n    steps:\n      7\n", "f.yaml")
    path = ("jobs", 0, "steps")
    assert document.place(path) == "f.yaml:4:7: jobs.0.steps"
    assert document.place(path, key=True) == "f.yaml:3:5: jobs.0.steps"
    assert document.place(("jobs", 0, "core")) == "f.yaml:2:5: jobs.0.core"


def test_a_scenario_becomes_plain_descriptions():
    core = {"count": 2, "npe": 65, "ep": 4, "threads": 3, "latency": {"read": 0}, "block_order": "row"}
    job = {**JOB, "arrival": [5, 3], "count": 2, "frame_interval": 9, "core": 1}
    built = scenario_from_document(document_of({"chip": {**CHIP, "cores": [core]}, "jobs": [job]}), name="x")
    model = Model("model-lstm-8", (Layer(cell("lstm"), 8, 4),))
    assert built == Scenario(
        ColumnNpu("column-npu", 260, (ColumnCore(npe=65, ep=4, vp=16, threads=3, latency=Latency(read=0)),) * 2),
        (Job("model-lstm-8 #1", model, 2, 5, 9, (1,)), Job("model-lstm-8 #2", model, 2, 3, 9, (1,))),
        "x",
    )
    assert repr(built.chip.frequency_mhz) == "260"


def test_names_paths_and_steps_of_models(tmp_path):
    (tmp_path / "net.yaml").write_text("layers: [{cell: gru, hidden: 8, input: 8}]\nsteps: 6\n")
    (tmp_path / "chip.yml").write_text(json.dumps({**CHIP, "frequency_mhz": 12.5}))
    jobs = [{"model": "net.yaml"}, {"model": "./net.yaml", "steps": 4}, {"model": "lstm-512", "steps": 1, "name": "n"}]
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps({"name": "mine", "chip": "chip.yml", "jobs": jobs}))
    scenario = load_scenario(str(path))
    assert [(job.name, job.steps) for job in scenario.jobs] == [("net-a", 6), ("net-b", 4), ("n", 1)]
    assert (scenario.name, scenario.chip.name, scenario.chip.frequency_mhz) == ("mine", "chip", 12.5)
    assert load_chip(tmp_path / "chip.yml") == scenario.chip
    assert load_model(str(tmp_path / "net.yaml")) == load_model(tmp_path / "net.yaml") == scenario.jobs[0].model


def test_names_are_unique_and_lettered():
    assert unique_names(["x"] * 28)[-3:] == ["x-z", "x-aa", "x-ab"]
    names = ["x", "x-a", "x", "y", "x-a"]
    assert unique_names(names) == ["x-b", "x-a-a", "x-c", "y", "x-a-b"]
    assert unique_names(["x", "x", "x-a"]) == ["x-b", "x-c", "x-a"]


def test_data_may_be_any_mapping_with_any_integers():
    job: Mapping[str, object] = MappingProxyType({**JOB, "steps": np.int64(2)})
    plain = load_scenario({"chip": CHIP, "jobs": [JOB]})
    assert load_scenario(MappingProxyType({"chip": CHIP, "jobs": (job,)})) == plain


def test_overrides_reach_into_names():
    source = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 3}, {"model": "lstm-512", "steps": 3}]}
    overrides = [
        "chip.cores.0.ep=16",
        "chip.cores.0.latency.read=7",
        "jobs.0.model.layers.0.hidden=128",
        "jobs.1.steps=9",
    ]
    changed = load_scenario(source, overrides)
    assert (changed.chip.cores[0].ep, changed.chip.cores[0].vp, changed.chip.cores[0].latency.read) == (16, 4096, 7)
    assert [job.model.layers[0].hidden for job in changed.jobs] == [128, 512]
    assert [job.steps for job in changed.jobs] == [3, 9]
    assert source["chip"] == "column-npu-64k"
    assert load_chip("column-npu-64k").cores[0].ep == 32


def test_overrides_apply_in_order_and_may_replace_whole_parts():
    source = {"chip": "none", "jobs": [JOB]}
    chip = load_scenario(source, ["chip=column-npu-16k", "chip.cores.0.ep=8", "chip.cores.0.ep=4"]).chip
    assert (chip.name, chip.cores[0].ep) == ("column-npu-16k", 4)
    jobs = load_scenario(source, ["chip=column-npu-16k", "jobs=[{model: lstm-256, steps: 3, count: 2}]"]).jobs
    assert [job.name for job in jobs] == ["lstm-256 #1", "lstm-256 #2"]


def test_an_override_may_create_an_optional_mapping():
    changed = load_scenario({"chip": CHIP, "jobs": [JOB]}, ["chip.cores.0.latency.read=1"])
    assert changed.chip.cores[0].latency == Latency(read=1)


def test_an_override_keeps_the_file_as_it_is(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps({"chip": CHIP, "jobs": [JOB]}))
    before = path.read_bytes()
    assert load_scenario(path, ["jobs.0.steps=5"]).jobs[0].steps == 5
    assert path.read_bytes() == before
    assert read_document(path).data["jobs"][0]["steps"] == 2


@pytest.mark.parametrize("steps", ["+3", "3", "0x3", "003"])
def test_whole_numbers_in_all_spellings(steps):
    assert load_scenario({"chip": CHIP, "jobs": [JOB]}, [f"jobs.0.steps={steps}"]).jobs[0].steps == 3


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ("jobs.0.steps=3", "overrides: must be a list or a mapping, got 'jobs.0.steps=3'"),
        (["jobs.0.steps=3", 4], "overrides.1: must be text, got 4"),
        ([b"jobs.0.steps=3"], "overrides.0: must be text, got a value of type 'bytes'"),
    ],
)
def test_overrides_that_are_no_list_of_texts_are_a_mistake_of_the_program(overrides, sentence):
    with pytest.raises(InputError, match=sentence):
        simulate({"chip": CHIP, "jobs": [JOB]}, overrides=overrides)
    with pytest.raises(InputError, match="overrides: must be a list of texts like"):
        load_scenario({"chip": CHIP, "jobs": [JOB]}, overrides)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "reason", "name"),
    [
        (None, "is a folder, expected a file", "sub/other.yaml"),
        (b"\x89PNG\0\0", "is a binary file (or UTF-16), expected YAML or JSON text in UTF-8", "sub/other.yaml"),
        (b"", "is empty, expected a mapping of keys to values", "sub/nowhere/../other.yaml"),
        (b"[" * 700, "is nested too deeply", "sub/nowhere/../other.yaml"),
    ],
)
def test_a_file_that_is_none_is_told_where_it_is_named(tmp_path, monkeypatch, content, reason, name):
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "sub/other.yaml"
    (tmp_path / "sub/nowhere").mkdir(parents=True)
    if content is None:
        other.mkdir()
    else:
        other.write_bytes(content)
    (tmp_path / "s.yaml").write_text(f"chip: {name}\njobs:\n  - {{model: {name}, steps: 1}}\n")
    with pytest.raises(InputError) as caught:
        load_scenario("s.yaml")
    assert str(caught.value).splitlines() == [
        f"s.yaml:1:7: chip: {name}: {reason}",
        f"s.yaml:3:13: jobs.0.model: {name}: {reason}",
    ]
    with pytest.raises(InputError) as caught:
        load_scenario({"chip": CHIP, "jobs": [JOB]}, [f"jobs.0.model={name}"])
    assert str(caught.value) == f"overrides jobs.0.model={name}: {name}: {reason}"
