"""The key `initial` of a job: a file of states, `zero`, or the last states of an earlier job."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lstmsim as api
from lstmsim.base.errors import InputError
from lstmsim.files.scenario.first_states import Initials
from lstmsim.files.scenario.numbers import job_data
from lstmsim.files.scenario.requests import load_requests
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.files.scenario.written import write_model_file
from lstmsim.importers.tensors import write_safetensors
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.jobs import float_numbers, run_jobs
from lstmsim.model.numerics.weights import Network, Stimulus, random_network

CORE = {"npe": 64, "ep": 4, "vp": 16, "threads": 2}
CHIP = {"kind": "column-npu", "frequency_mhz": 100, "cores": [CORE]}


def model(cell_name: str = "lstm", hidden: int = 6, **more: Any) -> dict[str, Any]:
    return {"name": f"m-{cell_name}-{hidden}", "layers": [{"cell": cell_name, "hidden": hidden, "input": 5}], **more}


def chain(**second: Any) -> dict[str, Any]:
    jobs = [{"name": "enc", "model": model(), "steps": 4}, {"name": "dec", "model": model(), "steps": 3}]
    return {"chip": CHIP, "jobs": [jobs[0], {**jobs[1], "initial": "enc", **second}]}


def refused(data: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        load_scenario(data)
    return str(caught.value)


def test_a_decoder_begins_where_its_encoder_ends_and_comes_after_it() -> None:
    scenario = load_scenario(chain())
    data = job_data(scenario, random_weights=3)
    runs = run_jobs(float_numbers(data))
    # the same network over all frames at once: encoder and decoder are one run
    whole = np.concatenate([data[0].stimulus.x, data[1].stimulus.x])
    network = data[0].network
    expected = run_network(float_arithmetic(network), Stimulus(whole)).output()
    assert np.array_equal(runs[1].output(), expected[4:])
    assert data[1].begins == "the last states of enc"


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_the_schedule_takes_the_states_and_waits_for_them(engine: str) -> None:
    result = api.run(chain(arrival=7), engine=engine)
    first, second = result.report.jobs
    assert second.arrival == first.finish + 7
    assert second.start >= second.arrival
    assert not api.run(chain(initial="zero"), engine=engine).report.jobs[1].arrival
    checks = api.check_numerics(result, random_weights=3)
    assert [each.job for each in checks] == ["enc", "dec"]
    same = api.check_numerics(api.run(chain(initial="zero"), engine=engine), random_weights=3)
    assert np.abs(checks[1].fixed - same[1].fixed).max() > 0.01


@pytest.mark.parametrize("name", ["gru", "gru-lbr0", "slstm", "mingru", "lstm-projection"])
def test_every_state_goes_over(name: str) -> None:
    layer = {"cell": name, "hidden": 8, "input": 5} | ({"projection": 3} if name == "lstm-projection" else {})
    both = [{"name": each, "model": {"name": name, "layers": [layer]}, "steps": 3} for each in ("enc", "dec")]
    both[1]["initial"] = {"job": "enc"}
    data = {"chip": {**CHIP, "cores": [CORE, CORE]}, "jobs": both}
    scenario = load_scenario(data)
    runs = run_jobs(float_numbers(job_data(scenario, random_weights=1)))
    stimuli = [each.stimulus.x for each in job_data(scenario, random_weights=1).values()]
    network = job_data(scenario, random_weights=1)[0].network
    expected = run_network(float_arithmetic(network), Stimulus(np.concatenate(stimuli))).output()
    # where h is rounded for the stream, nothing else is: in float64 a state goes over as it is
    assert np.array_equal(runs[1].output(), expected[3:])
    api.check_numerics(api.run(data), random_weights=1)


def test_layers_without_states_do_not_count() -> None:
    layers = [{"cell": "lstm", "hidden": 6, "input": 5}, {"cell": "dense", "hidden": 2, "input": 6}]
    data = chain(model={"name": "with-head", "layers": layers})
    checks = api.check_numerics(api.run(data), random_weights=3)
    assert checks[1].fixed.shape == (3, 2)


def test_counts_are_paired_job_by_job() -> None:
    data = chain(count=3)
    data["jobs"][0]["count"] = 3
    jobs = load_scenario(data).jobs
    assert [job.states_of for job in jobs] == [None] * 3 + [0, 1, 2]
    assert [job.after for job in jobs] == [job.states_of for job in jobs]
    checks = api.check_numerics(api.run(data), random_weights=3)
    assert len({each.fixed.tobytes() for each in checks}) == 6
    data["jobs"][1]["count"] = 2
    assert "count must be 3, as many as there, got 2" in refused(data)


def states(folder: Path, **tensors: np.ndarray) -> str:
    path = folder / "states.safetensors"
    write_safetensors(path, {f"layers.0.forward.initial.{name}": each for name, each in tensors.items()})
    return str(path)


def test_a_file_of_states(tmp_path: Path) -> None:
    c = np.linspace(-1, 1, 6)
    for given in (states(tmp_path, c=c), {"file": states(tmp_path, c=c)}):
        data = job_data(load_scenario(chain(initial=given)), random_weights=3)[1]
        assert {name: each.tolist() for name, each in data.stimulus.initial[0, 0].items()} == {"c": c.tolist()}
        assert data.begins == "the states in states.safetensors"
    text = chain(initial="states.safetensors")
    (tmp_path / "s.json").write_text(json.dumps(text))
    assert load_scenario(tmp_path / "s.json").jobs[1].initial == str(tmp_path / "states.safetensors")


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        ({"layers.0.forward.initial.s": np.zeros(6)}, "is no initial state of model 'm-lstm-6'"),
        ({"layers.0.forward.initial.h": np.zeros(5)}, "layers.0.forward.initial.h: has shape [5], expected [6]"),
        ({"layers.0.forward.initial.h": np.full(6, np.inf)}, "layers.0.forward.initial.h: holds inf"),
        ({"x": np.zeros(6)}, "is no initial state of model"),
        ({}, "holds no initial state: expected names like layers.0.forward.initial.h"),
    ],
)
def test_wrong_states_are_named(tmp_path: Path, tensors: dict[str, np.ndarray], sentence: str) -> None:
    path = tmp_path / "states.safetensors"
    write_safetensors(path, tensors)
    with pytest.raises(InputError) as caught:
        job_data(load_scenario(chain(initial=str(path))), random_weights=3)
    assert sentence in str(caught.value)
    assert str(path) in str(caught.value)


def test_what_a_network_fixes_stays_where_nothing_else_is_given(tmp_path: Path) -> None:
    plain = Model("m", (Layer(cell("lstm"), 6, 5),))
    fixed = {(0, 0): {"h": np.full(6, 0.5), "c": np.full(6, 0.25)}}
    network = Network(plain, random_network(plain, seed=1).passes, fixed)
    write_model_file(plain, tmp_path / "m.yaml", source="a test", network=network)
    entry = {"model": str(tmp_path / "m.yaml"), "steps": 2}
    beginnings = {}
    for given in (None, states(tmp_path, h=np.zeros(6)), "zero"):
        scenario = load_scenario({"chip": CHIP, "jobs": [entry | ({"initial": given} if given else {})]})
        initial = job_data(scenario)[0].stimulus.initial.get((0, 0), {})
        beginnings[given] = {name: float(each[0]) for name, each in initial.items()}
    assert list(beginnings.values()) == [{"h": 0.5, "c": 0.25}, {"h": 0.0, "c": 0.25}, {}]


def test_states_that_come_from_the_run_must_be_said() -> None:
    from_encoder = model(states_from="the last states of LSTM 'encoder'")
    data = chain(model=from_encoder)
    assert api.check_numerics(api.run(data), random_weights=1)[1].job == "dec"
    del data["jobs"][1]["initial"]
    with pytest.raises(InputError, match=r"starts from the last states of LSTM 'encoder': give the job `initial`"):
        job_data(load_scenario(data), random_weights=1)


def test_states_in_other_places_are_no_last_states_of_a_job() -> None:
    mixed = "the last states of LSTM 'encoder', in part or in another order"
    data = chain(model=model(states_from=mixed, states_whole=False))
    assert f"the last states of 'enc', but model 'm-lstm-6' with {mixed}: give them as a file of states" in refused(
        data
    )


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        ({"initial": "encc"}, "jobs.1.initial: no earlier job called 'encc'; did you mean 'enc'?"),
        ({"initial": "dec"}, "names 'dec', which does not stand before this entry in the file"),
        ({"initial": {"job": "enc", "file": "a.safetensors"}}, "must have one key, `job`"),
        ({"initial": {}}, "must have one key, `job`"),
        ({"initial": {"jobb": "enc"}}, "unknown key; did you mean 'job'?"),
        ({"initial": {"file": "a.npy"}}, "must be the path of a file that ends in .safetensors"),
        ({"initial": 3}, "jobs.1.initial: must be text, got 3"),
        ({"initial": ""}, "must hold at least 1 letter"),
        ({"model": model(hidden=8)}, "'enc', which has h [6], c [6]; model 'm-lstm-8' has h [8], c [8]"),
        ({"model": model("rnn")}, "'enc', which has h [6], c [6]; model 'm-rnn-6' has h [6]"),
        ({"arrival": {"kind": "fixed", "interval_cycles": 9}}, "jobs.1.arrival: must be cycles, counted from the"),
    ],
)
def test_mistakes(second: dict[str, Any], sentence: str) -> None:
    assert sentence in refused(chain(**second))


def test_mistakes_in_the_job_that_is_named() -> None:
    data = chain()
    data["jobs"][0]["queue_limit"] = 3
    assert "may be rejected or may renege: leave queue_limit and patience out" in refused(data)
    twice = chain()
    twice["jobs"].insert(0, twice["jobs"][0])
    assert "names 2 entries called 'enc': give each a `name` of its own" in refused(twice)


def test_a_stream_of_requests_knows_no_such_jobs() -> None:
    with pytest.raises(InputError, match="begins after 'enc', which a stream of requests does not support"):
        load_requests(chain())


def test_jobs_that_follow_others_are_offered_as_often_as_those() -> None:
    data = chain(count=40, model=model(hidden=6))
    data["jobs"][0] |= {"count": 40, "arrival": {"kind": "poisson", "rate_per_second": 5000}}
    summary = api.serving(api.run(data))
    assert summary.load is not None
    assert summary.load.rate_per_second == 10_000
    assert not summary.load.not_counted


def test_a_search_finds_the_jobs_of_each_model_by_themselves() -> None:
    data = chain(model=model("lstm", name="other"))
    assert api.search(data, npe=64).mix is not None


def test_a_chain_is_not_walked_from_its_start_for_each_of_its_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plain = Initials.follows

    def follows(self: Initials, index: int) -> int | None:
        asked.append(index)
        return plain(self, index)

    monkeypatch.setattr(Initials, "follows", follows)
    jobs = [{"name": f"j{index}", "model": "lstm-256", "steps": 1} for index in range(100)]
    for before, job in pairwise(jobs):
        job["initial"] = before["name"]
    scenario = load_scenario({"chip": "column-npu-16k", "jobs": jobs})
    assert [job.after for job in scenario.jobs] == [None, *range(99)]
    assert max(Counter(asked).values()) < 8
