"""Objects as well as files: names in constructors, objects among keys, and the sentences for what is wrong."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim import ColumnCore, ColumnNpu, InputError, Job, Layer, Model, Scenario, cell
from lstmsim.importers.tensors import write_safetensors
from lstmsim.model import model as models
from lstmsim.model import scenario as scenarios
from lstmsim.model.numerics.weights import random_network

CHIP = "column-npu-64k"
LAYER = {"cell": "gru", "hidden": 8, "input": 4}
ENTRY: dict[str, Any] = {"model": "lstm-512", "steps": 3}


def job(**keys: Any) -> Any:
    return Job(**{**ENTRY, **keys})


def file_error(**keys: Any) -> list[tuple[str, str]]:
    """The mistakes of a scenario file with these keys in its only entry: their places in the entry, their sentences."""
    with pytest.raises(InputError) as caught:
        lstmsim.load_scenario({"chip": CHIP, "jobs": [{**ENTRY, **keys}]})
    return [(each.location.removeprefix("jobs.0").removeprefix("."), each.sentence) for each in caught.value.mistakes]


def object_error(make: Callable[[], Any]) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        make()
    return [(each.location.partition(": ")[2], each.sentence) for each in caught.value.mistakes]


def test_names_stand_for_chips_models_and_cells() -> None:
    scenario = Scenario(chip=CHIP, jobs=[Job(model="lstm-512", steps=20)])
    assert scenario == lstmsim.load_scenario({"chip": CHIP, "jobs": [{"model": "lstm-512", "steps": 20}]})
    assert lstmsim.simulate(scenario).makespan_cycles == 1423
    assert Layer(cell="gru", hidden=8, input=4) == Layer(cell("gru"), 8, 4) == models.Layer(cell("gru"), 8, 4)
    assert Model(layers=[LAYER, Layer("gru", 8, 8)]).name == "model-gru-8"
    assert Job(model="deepbench-gru-1024-1500").steps == 1500
    assert Job("mine", {"layers": [LAYER], "steps": 7}).steps == 7


def test_one_mistake_is_told_in_one_sentence() -> None:
    assert object_error(lambda: Model([Layer("gru", 4, 4)])) == [  # type: ignore[arg-type]
        ("name", "must be text, got a list; layers are given by their name: Model(layers=[...])")
    ]
    ((place, sentence),) = object_error(lambda: Job(model=Model))
    assert place == "model"
    assert sentence.endswith("got the class Model")
    assert Job(model="lstm-512").steps == 25


def test_what_is_loaded_is_what_is_built() -> None:
    loaded = lstmsim.load_scenario({"chip": CHIP, "jobs": [ENTRY]})
    assert isinstance(loaded, Scenario)
    assert isinstance(loaded.jobs[0], Job)
    assert isinstance(loaded.jobs[0].model, Model)
    assert isinstance(loaded.jobs[0].model.layers[0], Layer)
    assert not isinstance(loaded, Job)
    assert issubclass(scenarios.Job, Job)
    assert not issubclass(scenarios.Scenario, Job)


def test_what_is_built_is_the_pure_class() -> None:
    made = Scenario(CHIP, [job()])
    assert type(made) is scenarios.Scenario
    assert type(made.jobs[0]) is scenarios.Job
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made
    assert replace(made.jobs[0], steps=9).steps == 9
    assert list(inspect.signature(Job).parameters)[:3] == ["name", "model", "steps"]


@pytest.mark.parametrize(("public", "pure"), [(Layer, models.Layer), (Model, models.Model), (Job, scenarios.Job)])
def test_the_arguments_are_the_fields_in_their_order(public: Any, pure: Any) -> None:
    ours, theirs = (inspect.signature(each).parameters for each in (public, pure))
    assert sorted(ours) == sorted(theirs)
    # what is given by position comes first
    assert list(ours)[:3] == list(theirs)[:3]
    for name, parameter in theirs.items():
        if parameter.default is not parameter.empty:
            assert ours[name].default == parameter.default, name


def test_jobs_of_one_name_are_numbered_as_in_a_file() -> None:
    made = Scenario(CHIP, [job(), job()])
    assert made == lstmsim.load_scenario({"chip": CHIP, "jobs": [ENTRY, ENTRY]})


def test_objects_stand_among_keys() -> None:
    cycles = lstmsim.simulate({"chip": CHIP, "jobs": [ENTRY]}).makespan_cycles
    model = lstmsim.load_model("lstm-512")
    chip = lstmsim.load_chip(CHIP)
    for source in (
        {"chip": chip, "jobs": [ENTRY]},
        {"chip": CHIP, "jobs": [{"model": model, "steps": 3}]},
        {"chip": CHIP, "jobs": [job()]},
        {"chip": chip, "jobs": (job(model=model),)},
        Scenario(chip, [ENTRY]),
        Scenario(
            {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 65536, "ep": 32, "vp": 2048}]}, [job()]
        ),
    ):
        assert lstmsim.simulate(source).makespan_cycles == cycles


def test_a_cell_of_ones_own_stands_in_a_layer() -> None:
    own = replace(cell("gru"), name="mine")
    made = Model("m", [Layer(own, 8, 4)])
    assert made.layers[0].cell is own
    report = lstmsim.simulate({"chip": CHIP, "jobs": [{"model": made, "steps": 5}]})
    assert report.makespan_cycles == lstmsim.simulate(Scenario(CHIP, [Job(model=made, steps=5)])).makespan_cycles


def test_every_function_takes_a_scenario(tmp_path: Path) -> None:
    made = Scenario("column-npu-16k", [Job(model="lstm-256", steps=2, arrival=100)])
    assert lstmsim.serve(made).makespan_cycles == lstmsim.simulate(made).makespan_cycles
    assert lstmsim.search(made, 4096).npe == 4096
    assert lstmsim.fit(made, "alveo-u250")[0].models == ("lstm-256",)
    assert lstmsim.compare(made, CHIP).entries[0][1].cycles
    axes = {"ep": {"path": "chip.cores.0.ep", "values": [16, 32]}}
    assert lstmsim.sweep({"scenario": made, "axes": axes}, tmp_path / "out", jobs=1).progress.failed == 0
    with pytest.raises(InputError, match="is finished: its jobs come at fixed cycles"):
        lstmsim.saturate(made, 1.0)


@pytest.fixture
def imported(tmp_path: Path) -> Any:
    random = np.random.default_rng(1)
    file = tmp_path / "speech.safetensors"
    tensors = {"weight_ih_l0": random.normal(size=(32, 4)), "weight_hh_l0": random.normal(size=(32, 8))}
    write_safetensors(file, tensors)
    return lstmsim.import_model(file)[0]


@pytest.mark.slow
def test_an_imported_model_is_a_model(imported: Any, tmp_path: Path) -> None:
    """Its numbers are in memory, and give what they give from the files that `save_model` writes."""
    path = lstmsim.save_model(imported, tmp_path / "m.yaml")
    wanted = lstmsim.outputs(lstmsim.run({"chip": CHIP, "jobs": [{"model": path, "steps": 3, "name": "a"}]}))
    for source in (
        Scenario(CHIP, [Job("a", imported, 3)]),
        {"chip": CHIP, "jobs": [{"model": imported, "steps": 3, "name": "a"}]},
        {"chip": CHIP, "jobs": [Job("a", imported, 3)]},
    ):
        result = lstmsim.run(source)
        assert lstmsim.check_numerics(result)[0].values > 0
        assert np.array_equal(lstmsim.outputs(result).tensors["a"], wanted.tensors["a"])


def test_networks_of_one_shape_keep_their_numbers_apart(imported: Any, tmp_path: Path) -> None:
    # with the same frames only the weights differ
    frames = tmp_path / "x.npy"
    np.save(frames, np.ones((3, 4)))
    other = replace(imported, network=random_network(imported.model, 5))
    jobs = [{"model": each, "steps": 3, "inputs": str(frames)} for each in (imported, other, imported)]
    first, second, third = lstmsim.outputs(lstmsim.run({"chip": CHIP, "jobs": jobs})).tensors.values()
    assert not np.array_equal(first, second)
    assert np.array_equal(first, third)


#: Wrong values of keys that an entry of a file and a `Job` have in common.
WRONG: list[dict[str, Any]] = [
    {"model": 5},
    {"model": "lstm-51"},
    {"model": "no-such-file.yaml"},
    {"model": {"layers": 5}},
    {"model": {"layers": [{**LAYER, "cell": "grru"}]}},
    {"model": {"layers": [{**LAYER, "hidden": "8"}]}},
    {"model": {"layers": [LAYER], "layer": 1}},
    {"name": 5},
    {"name": ""},
    {"steps": "3"},
    {"steps": 3.0},
    {"steps": 0},
    {"steps": 10**12},
    {"steps": True},
    {"arrival": "soon"},
    {"arrival": -1},
    {"frame_interval": 2.5},
    {"cores": 0},
    {"cores": []},
    {"cores": [0, "1"]},
    {"split": "row"},
    {"split": 5},
    {"batch": 0},
    {"inputs": 5},
    {"priority": "high"},
    {"deadline": 0},
    {"queue_limit": -1},
    {"patience": "1"},
    {"stepz": 3},
]


@pytest.mark.parametrize("keys", WRONG, ids=str)
def test_a_job_is_told_what_a_file_is_told(keys: dict[str, Any]) -> None:
    ours, theirs = object_error(lambda: job(**keys)), file_error(**keys)
    if "stepz" in keys:
        assert ours[0][1].startswith("unknown key; did you mean 'steps'")
        ours, theirs = ours[:1], theirs[:1]
    assert [place for place, _ in ours] == [place for place, _ in theirs]
    assert [sentence for _, sentence in ours] == [sentence for _, sentence in theirs]


@pytest.mark.parametrize(
    "layer",
    [
        {**LAYER, "hidden": "8"},
        {**LAYER, "cell": 5},
        {**LAYER, "cell": "grru"},
        {**LAYER, "input": 0},
        {**LAYER, "bidirectional": 1},
        {**LAYER, "projection": 3},
        {"cell": "lstm-projection", "hidden": 8, "input": 4},
        {"cell": "gru", "hidden": 8},
    ],
    ids=str,
)
def test_a_layer_is_told_what_a_file_is_told(layer: dict[str, Any]) -> None:
    ours = object_error(lambda: Layer(**layer))
    theirs = file_error(model={"layers": [layer]})
    prefix = "model.layers.0."
    if "input" not in layer:
        assert ours == [("input", "required key is missing")]
        assert theirs[0][1].startswith(ours[0][1])
    else:
        assert ours == [(place.removeprefix(prefix), sentence) for place, sentence in theirs]


WRONG_SCENARIOS: list[dict[str, Any]] = [
    *({"chip": 5}, {"chip": "column-npu-64"}, {"chip": {"kind": "row"}}, {"name": 5}),
    *({"jobs": 5}, {"jobs": [5]}, {"jobs": []}, {"precision": 5}, {"precision": {"weight_bits": 1}}),
]


@pytest.mark.parametrize("keys", WRONG_SCENARIOS, ids=str)
def test_a_scenario_is_told_what_a_file_is_told(keys: dict[str, Any]) -> None:
    with pytest.raises(InputError) as theirs:
        lstmsim.load_scenario({"chip": CHIP, "jobs": [ENTRY], **keys})
    with pytest.raises(InputError) as ours:
        Scenario(**{"chip": CHIP, "jobs": [job()], **keys})
    assert ours.value.mistakes == theirs.value.mistakes


NOT_SOURCES: list[Any] = [
    5,
    None,
    2.5,
    [1],
    b"a.yaml",
    object(),
    ColumnNpu("c", 100, (ColumnCore(npe=64, ep=8, vp=8),)),
]


@pytest.mark.parametrize("wrong", NOT_SOURCES, ids=lambda each: type(each).__name__)
def test_what_is_no_scenario_is_told_everywhere(wrong: Any, tmp_path: Path) -> None:
    sentence = "scenario: must be a file's path, a mapping of keys to values or a Scenario, got "
    functions: list[Callable[[Any], Any]] = [
        *(lstmsim.simulate, lstmsim.run, lstmsim.trace, lstmsim.accuracy, lstmsim.fit, lstmsim.energy, lstmsim.serve),
        lstmsim.load_latency,
        lambda each: lstmsim.compare(each, CHIP),
        lambda each: lstmsim.search(each, 64),
        lambda each: lstmsim.saturate(each, 1.0),
    ]
    for function in functions:
        with pytest.raises(InputError) as caught:
            function(wrong)
        assert str(caught.value).startswith(sentence)
    with pytest.raises(InputError, match=r"^spec: must be text or a path or a mapping"):
        lstmsim.sweep(wrong, tmp_path)


def test_a_single_job_has_one_arrival_and_one_number_of_steps() -> None:
    with pytest.raises(InputError, match="arrival: must be a whole number, got a mapping: a process"):
        job(arrival={"kind": "poisson", "rate_per_second": 5})
    with pytest.raises(InputError, match="steps: must be a whole number, got a list"):
        job(steps=[1, 2])


def test_jobs_and_mappings_do_not_mix() -> None:
    with pytest.raises(InputError, match=r"jobs\.1: is a Job among mappings"):
        Scenario(CHIP, [ENTRY, job()])
    with pytest.raises(InputError, match="dispatch: belongs to each Job"):
        lstmsim.simulate({"chip": CHIP, "dispatch": "sjf", "jobs": [job()]})


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"dispatch": "sjff"}, "dispatch: must be 'fcfs', 'sjf', 'edf' or 'priority', got 'sjff'; did you mean 'sjf'?"),
        ({"preempts": 1}, "preempts: must be true or false, got 1"),
        ({"after": "a"}, "after: must be a whole number, got 'a'"),
        ({"tenant": 3}, "tenant: must be text, got 3"),
    ],
)
def test_keys_that_a_file_states_once_have_sentences_too(keys: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as caught:
        job(**keys)
    assert str(caught.value) == f"job: {text}"


def test_what_is_no_result_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.svg"
    plots = {
        "plot": "timeline: must be a Timeline or a Run or a Report",
        "plot_accuracy": "report: must be an AccuracyReport",
        "plot_comparison": "comparison: must be a Comparison",
        "plot_load_latency": "curves: must be a LoadLatency",
        "plot_sweep": "swept: must be a SweepResult or a Merged",
        "plot_fusion": "report: must be a FusionReport",
        "plot_rtl": "report: must be a RtlReport",
    }
    for name, told in plots.items():
        with pytest.raises(InputError, match=rf"^{told}, got a mapping$"):
            getattr(lstmsim, name)({}, file)
    with pytest.raises(InputError, match=r"^save_trace: expects a Run .*; got a value of type dict$"):
        lstmsim.save_trace({}, file)
    with pytest.raises(InputError, match=r"^save_outputs: expects Outputs.*; got a value of type dict$"):
        lstmsim.save_outputs({}, file)
    with pytest.raises(InputError, match=r"^name: must be text or a path, got 5$"):
        lstmsim.load_chip(5)
    with pytest.raises(InputError, match=r"^name: must be text or a path, got nothing$"):
        lstmsim.load_model(None)
    assert not list(tmp_path.iterdir())
