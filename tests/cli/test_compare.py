"""`lstmsim compare`: what it prints and writes, what it refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from lstmsim import simulate
from tests.cli.runner import call

CHIP = {"kind": "column-npu", "name": "own", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 16}]}
JOB = {"model": {"name": "tiny", "layers": [{"cell": "lstm", "hidden": 24, "input": 20}]}, "steps": 4}
OTHER = {"model": {"name": "wide", "layers": [{"cell": "gru", "hidden": 150, "input": 60}]}, "steps": 3}


def scenario(folder: Path, *jobs: object, **others: object) -> str:
    path = folder / "s.json"
    path.write_text(json.dumps({"chip": CHIP, "jobs": list(jobs) or [JOB, OTHER], **others}))
    return str(path)


def result(*arguments: str) -> dict[str, Any]:
    done = call("compare", *arguments, "--json", "-")
    assert done.exit_code == 0, done.output
    comparison: dict[str, Any] = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(name))
    return comparison


def refused(*arguments: str) -> str:
    done = call("compare", *arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr
    assert not done.stdout
    return done.stderr


def cycles(comparison: dict[str, Any], row: int = 0) -> list[int | None]:
    return [each["cycles"] for each in comparison["workloads"][row]["entries"]]


def test_the_scenario_on_its_own_chip_and_others(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    comparison = result(path, "--chip", "column-npu-16k")
    assert comparison["schema"] == "lstmsim/comparison/2"
    assert [each["name"] for each in comparison["machines"]] == ["own", "column-npu-16k"]
    assert cycles(comparison) == [
        simulate(path).makespan_cycles,
        simulate(path, overrides=["chip=column-npu-16k"]).makespan_cycles,
    ]
    shown = call("compare", path, "--chip", "column-npu-16k")
    assert shown.exit_code == 0
    assert not shown.stderr
    assert f"{cycles(comparison)[0]:,}" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 100


def test_requests_come_at_the_clock_of_each_chip(tmp_path: Path) -> None:
    poisson = {"kind": "poisson", "rate_per_second": 200_000}
    path = scenario(tmp_path, {**JOB, "count": 9, "arrival": poisson})
    assert cycles(result(path, "--chip", "column-npu-16k", "--set", "jobs.0.steps=3")) == [
        simulate(path, overrides=["jobs.0.steps=3"]).makespan_cycles,
        simulate(path, overrides=["jobs.0.steps=3", "chip=column-npu-16k"]).makespan_cycles,
    ]


@pytest.mark.needs_core
def test_both_engines_give_the_same_numbers(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    fast, reference = (result(path, "--chip", "column-npu-16k", "--engine", name) for name in ("fast", "reference"))
    assert reference.pop("engine") == "reference"
    assert fast.pop("engine") == "fast"
    assert fast == reference


def test_each_model_alone_and_files_of_chips(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("{kind: column-npu, frequency_mhz: 100, cores: [{npe: 48, ep: 4, vp: 3}]}")
    path = scenario(tmp_path, JOB, OTHER, JOB)
    comparison = result(path, "--each", "--chip", str(mine))
    assert [each["name"] for each in comparison["workloads"]] == ["tiny", "wide"]
    assert comparison["machines"][1]["name"] == "mine"
    assert cycles(comparison)[1] is None
    assert "vp >= 4, got vp 3" in comparison["workloads"][0]["entries"][1]["reason"]
    assert isinstance(cycles(comparison, 1)[1], int)
    shown = call("compare", path, "--each", "--chip", str(mine)).stdout
    assert "[1] mine: job tiny-a: no core can run it: cell 'lstm' has 4 gates" in " ".join(shown.split())


def test_overrides_change_the_own_chip_only_and_base_leaves_it_out(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    before, changed = (
        result(path, "--chip", "column-npu-16k", "--set", f"chip.cores.0.ep={ep}", "--set", "chip.cores.0.vp=8")
        for ep in (4, 8)
    )
    assert cycles(before)[0] != cycles(changed)[0]
    assert cycles(before)[1] == cycles(changed)[1]
    based = result(path, "--base", "column-npu-16k", "--chip", "column-npu-64k", "--set", "jobs.0.steps=9")
    assert based["base"] == "column-npu-16k"
    assert [each["name"] for each in based["machines"]] == ["column-npu-16k", "column-npu-64k"]
    line = refused(path, "--base", "column-npu-16k", "--chip", "column-npu-64k", "--set", "chip.cores.0.ep=8")
    assert line.startswith("--set chip.cores.0.ep=8: changes the scenario's own chip, which --base column-npu-16k")


@pytest.mark.needs_core
def test_published_rows_beside(tmp_path: Path) -> None:
    path = scenario(tmp_path, {"model": "deepbench-lstm-256-150"}, JOB)
    comparison = result(path, "--each", "--published")
    names = {each["name"] for each in comparison["machines"] if each["published"]}
    assert {"Brainwave BW_S10", "Plasticine", "Tesla V100"} < names
    column = [each["name"] for each in comparison["machines"]].index("Plasticine")
    assert comparison["workloads"][0]["entries"][column]["ms"] == 0.0419
    assert comparison["workloads"][1]["entries"][column]["ms"] is None
    together = call("compare", path, "--published", "--chip", "column-npu-64k")
    assert together.exit_code == 0
    assert "several jobs together; --each compares each model alone" in together.stderr
    assert "published" not in together.stdout


@pytest.mark.slow
def test_files_are_written_and_named(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    table, picture, data = (str(tmp_path / name) for name in ("t.csv", "p.svg", "d.json"))
    chips = ("--chip", "column-npu-16k", "--chip", "column-npu-64k")
    done = call("compare", path, *chips, "--each", "--csv", table, "--plot", picture, "--json", data)
    assert done.exit_code == 0, done.output
    numbers = str(tmp_path / "p.csv")
    assert done.stderr.splitlines() == [f"wrote {each}" for each in (data, table, picture, numbers)]
    assert json.loads(Path(data).read_text()) == result(path, *chips, "--each")
    with open(table, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3
    assert Path(numbers).read_text() == Path(table).read_text()
    assert Path(picture).read_text().startswith("<?xml")
    assert done.stdout == call("compare", path, *chips, "--each").stdout


def test_csv_on_standard_output_stands_alone(tmp_path: Path) -> None:
    done = call("compare", scenario(tmp_path), "--chip", "column-npu-16k", "--csv", "-")
    assert done.exit_code == 0
    rows = list(csv.reader(done.stdout.splitlines()))
    assert len(rows) == 3
    assert {len(row) for row in rows} == {len(rows[0])}


def test_mistakes_get_a_line(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    assert refused(path) == "--chip: expected at least one chip to compare with, or --published\n"
    assert "did you mean 'column-npu-16k'?" in refused(path, "--chip", "column-npu-16")
    twice = refused(path, "--chip", "column-npu-16k", "--chip", "column-npu-16k")
    assert twice == "chip 'column-npu-16k': is named twice; expected different chips\n"
    assert "no file called" in refused(path, "--chip", "gone.yaml")
    assert "no file called" in refused(str(tmp_path / "gone.yaml"), "--chip", "column-npu-16k")
    assert "expected a file name that ends in" in refused(path, "--chip", "column-npu-16k", "--plot", "a.gif")
    both = refused(path, "--chip", "column-npu-16k", "--json", "-", "--csv", "-")
    assert both == "--csv -: standard output is taken by --json; expected a file\n"
    numbers = str(tmp_path / "p.csv")
    plots = ("--plot", str(tmp_path / "p.png"), "--csv", numbers)
    assert "is also the output of" in refused(path, "--chip", "column-npu-16k", *plots)


def test_a_workload_that_no_chip_runs_is_a_mistake(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("{kind: column-npu, frequency_mhz: 100, cores: [{npe: 48, ep: 4, vp: 3}]}")
    line = refused(scenario(tmp_path), "--base", str(mine), "--published")
    assert line.startswith(
        "s: none of the chips can run it; mine: job tiny: no core can run it: cell 'lstm' has 4 gates"
    )


@pytest.mark.parametrize("command", [("simulate",), ("compare", "--chip", "column-npu-16k")])
def test_a_rate_without_a_count_is_remarked_because_one_request_is_simulated(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    job = JOB | {"arrival": {"kind": "poisson", "rate_per_second": 100}}
    sentence = "a job at a random rate without `count` is one request: set `count`, or use `lstmsim serve`"
    path = scenario(tmp_path, job)
    assert sentence in call(command[0], path, *command[1:]).stderr.splitlines()
    assert sentence not in call(command[0], path, *command[1:], "--set", "jobs.0.count=3").stderr
