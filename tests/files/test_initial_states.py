"""The states that a network begins with: in its file, in the golden model, in the replay, in fixed point."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.numbers import job_data
from lstmsim.files.scenario.scenario_file import load_model, load_scenario
from lstmsim.files.scenario.written import write_model_file
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Network, random_network
from tests.cli.runner import call

MODEL = Model("m", (Layer(cell("lstm"), 4, 3, True),))
STATES = {(0, 1): {"h": np.linspace(-0.9, 0.9, 4), "c": np.linspace(2, -2, 4)}}


def model_file(folder: Path, **changes: str) -> Path:
    network = Network(replace(MODEL, **changes), random_network(MODEL, seed=1).passes, STATES)
    write_model_file(network.model, folder / "m.yaml", source="a test", network=network)
    return folder / "m.yaml"


def scenario(path: Path) -> dict[str, object]:
    return {"chip": "column-npu-16k", "jobs": [{"model": str(path), "steps": 3}]}


def test_the_states_of_a_file_are_those_of_the_run(tmp_path: Path) -> None:
    data = job_data(load_scenario(scenario(model_file(tmp_path))))[0]
    ours = run_network(float_arithmetic(data.network), data.stimulus).output()
    zero = run_network(float_arithmetic(data.network), replace(data.stimulus, initial={})).output()
    # the forward half begins at 0 either way
    assert np.array_equal(ours[:, :4], zero[:, :4])
    assert np.abs(ours[-1, 4:] - zero[-1, 4:]).max() > 0.05


def test_the_schedule_computes_with_the_states(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"chip: column-npu-16k\njobs:\n  - {{model: {model_file(tmp_path)}, steps: 3}}\n")
    result = call("simulate", str(tmp_path / "s.yaml"), "--check-numerics")
    assert result.exit_code == 0, result.output


def test_states_from_the_run_are_not_taken_for_0(tmp_path: Path) -> None:
    path = model_file(tmp_path, states_from="the last states of LSTM 'encoder'")
    assert load_model(path).states_from == "the last states of LSTM 'encoder'"
    with pytest.raises(InputError, match="model m starts from the last states of LSTM 'encoder'"):
        job_data(load_scenario(scenario(path)))


@pytest.mark.parametrize(
    ("initial", "text"),
    [
        ({(1, 0): {"h": np.zeros(4)}}, "layer 1 forward: has initial states, but there is no such pass"),
        ({(0, 0): {"s": np.zeros(4)}}, "initial s is no state of cell 'lstm', which has h, c"),
        ({(0, 0): {"h": np.zeros(3)}}, r"initial h has shape \[3\], expected \[4\]"),
        ({(0, 1): {"c": np.full(4, np.nan)}}, "layer 0 backward: initial c holds a number that is not finite"),
    ],
)
def test_wrong_states_are_refused(initial: dict[tuple[int, int], dict[str, np.ndarray]], text: str) -> None:
    with pytest.raises(InputError, match=text):
        Network(MODEL, random_network(MODEL, seed=1).passes, initial)


def test_models_that_differ_in_their_numbers_only_keep_these_apart(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        write_model_file(MODEL, tmp_path / name / "m.yaml", source="a test", network=random_network(MODEL, seed))
    jobs = [{"model": str(tmp_path / name / "m.yaml"), "steps": 3} for name in "ab"]
    one, other = load_scenario({"chip": "column-npu-16k", "jobs": jobs}).jobs
    assert one.model == other.model
    assert one.model.weights != other.model.weights
