"""No command replaces a file that its scenario reads: arrivals, steps, weights, input frames, models, chips."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lstmsim.files.catalog import find_chip, find_model
from tests.cli.runner import call

POISSON = {"kind": "poisson", "rate_per_second": 200_000}
LENGTHS = {"kind": "empirical", "path": "data/steps.csv", "column": "steps"}
CSV = "arrival_cycles,job,steps\n0,a,2\n90000,a,3\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    for name in ("steps.csv", "times.csv", "other.csv", "frames.csv"):
        Path("data", name).write_text(CSV)
    shutil.copy(find_chip("column-npu-16k"), "data/chip.json")
    shutil.copy(find_model("lstm-256"), "data/model.json")
    Path("data/inline.json").write_text(json.dumps({"layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}))


def _scenario(chip: str = "column-npu-16k", **job: Any) -> str:
    entry = {"model": "lstm-256", "steps": 2, "count": 2, "arrival": POISSON} | job
    Path("s.json").write_text(json.dumps({"chip": chip, "jobs": [entry]}))
    return "s.json"


def _stays(path: str, *arguments: str) -> None:
    before = Path(path).read_bytes()
    done = call(*arguments)
    assert done.exit_code == 2, done.output
    assert "is also the input; expected another file" in done.stderr
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize(
    "job",
    [
        {"steps": LENGTHS | {"path": "data/times.csv"}},
        {"arrival": {"kind": "file", "path": "data/times.csv"}},
        {"inputs": "data/times.csv"},
        {"model": {"layers": [{"cell": "lstm", "hidden": 8, "input": 8}], "weights": "data/times.csv"}},
    ],
)
def test_files_that_entries_name(job: dict[str, Any]) -> None:
    _stays("data/times.csv", "simulate", _scenario(**job), "--json", "data/times.csv")


def test_arrivals_of_the_whole_scenario_and_overrides() -> None:
    data = {"chip": "column-npu-16k", "arrivals": {"path": "data/times.csv"}}
    Path("s.json").write_text(json.dumps(data | {"jobs": [{"name": "a", "model": "lstm-256", "steps": 2}]}))
    _stays("data/times.csv", "serve", "s.json", "--csv", "./data/../data/times.csv")
    changed = ("--set", "arrivals.path=data/other.csv")
    _stays("data/other.csv", "serve", "s.json", *changed, "--csv", "data/other.csv")
    free = call("serve", "s.json", *changed, "--csv", "data/times.csv")
    assert free.exit_code == 0, free.stderr


@pytest.mark.parametrize("path", ["data/chip.json", "data/model.json"])
def test_chips_and_models_given_by_path(path: str) -> None:
    _stays(path, "simulate", _scenario("data/chip.json", model="data/model.json"), "--trace", path)


def test_weights_in_a_model_file_are_seen_from_its_folder() -> None:
    content = {"layers": [{"cell": "lstm", "hidden": 8, "input": 8}], "weights": "times.csv"}
    Path("data/model.json").write_text(json.dumps(content))
    _stays("data/times.csv", "simulate", _scenario(model="data/model.json"), "--json", "data/times.csv")


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "s.json", "--json", "data/steps.csv"),
        ("serve", "s.json", "--csv", "data/steps.csv"),
        ("simulate", "s.json", "--trace", "data/steps.csv"),
        ("compare", "s.json", "--chip", "row-npu-4096", "--csv", "data/steps.csv"),
        ("compare", "s.json", "--chip", "row-npu-4096", "--plot", "data/steps.svg"),
        ("saturate", "s.json", "--bound-ms", "1", "--json", "data/steps.csv"),
        ("load-latency", "s.json", "--csv", "data/steps.csv"),
        ("accuracy", "s.json", "--plot", "data/steps.svg"),
        ("fit", "s.json", "--json", "data/steps.csv"),
        ("search", "s.json", "--npe", "4096", "--json", "data/steps.csv"),
        ("design", "s.json", "--device", "none", "--axis", "chip.cores.0.ep=8,16", "--json", "data/steps.csv"),
        ("sweep", "sweep.json", "--out", "kept", "--plot", "data/steps.svg"),
    ],
)
def test_every_command(arguments: tuple[str, ...]) -> None:
    axes = {"threads": {"path": "chip.cores.0.threads", "values": [1, 2]}}
    Path("sweep.json").write_text(json.dumps({"scenario": _scenario(steps=LENGTHS), "axes": axes}))
    _stays("data/steps.csv", *arguments)


@pytest.mark.parametrize("command", ["compare", "load-latency"])
def test_chips_of_the_command_line(command: str) -> None:
    _stays("data/chip.json", command, _scenario(), "--chip", "data/chip.json", "--json", "data/chip.json")


def test_files_that_the_axes_of_a_sweep_go_through() -> None:
    axes = {"file": {"path": "jobs.0.steps.path", "values": ["data/steps.csv", "data/other.csv"]}}
    Path("sweep.json").write_text(json.dumps({"scenario": _scenario(steps=LENGTHS), "axes": axes}))
    _stays("data/other.csv", "sweep", "sweep.json", "--out", "kept", "--plot", "data/other.svg")


@pytest.mark.parametrize(
    "content",
    [
        "[1, 2]",
        "{",
        '{"chip": 3, "jobs": 4}',
        '{"chip": "nope", "jobs": [{"model": "no.yaml", "inputs": "a\\u0000b"}, 5, {"steps": {"path": 7}}]}',
        '{"chip": ["a"], "jobs": [{"model": {"weights": []}}], "arrivals": "x"}',
    ],
)
def test_mistakes_are_left_to_who_loads(content: str) -> None:
    Path("s.json").write_text(content)
    for override in ("jobs.0.model=x", "jobs.0.arrival.path=1", "chip.cores.0.ep=2", "arrivals.path=a"):
        done = call("simulate", "s.json", "--set", override, "--json", "out.json")
        assert (done.exit_code, done.stdout) == (2, ""), done.exception
        assert done.stderr == call("simulate", "s.json", "--set", override).stderr
