"""A chip that cannot run some jobs says so first, in a sentence for each job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.runner import call
from tests.files.test_cells_in_files import HEAD

JOB = {"model": "lstm-256", "steps": 2}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _reasons(data: dict[str, Any], *chips: str) -> list[str]:
    """The reason of each machine, empty where it ran the jobs."""
    Path("s.json").write_text(json.dumps(data))
    named = [part for chip in chips for part in ("--chip", chip)]
    outcome = call("compare", "s.json", *named, "--json", "-")
    assert outcome.exit_code == 0, (outcome.exception, outcome.stderr)
    return [each["reason"] for each in json.loads(outcome.stdout)["workloads"][0]["entries"]]


@pytest.mark.parametrize(
    ("jobs", "row", "column"),
    [
        ([JOB | {"core": 3}], "core: there is no core 3; the chip has 1 (0 to 0)", "there is no core 3; the chip has"),
        ([JOB | {"cores": [2, 3], "split": "rows"}], "split: a row-wise NPU runs a job on one core", "no core 2"),
        ([JOB | {"split": "rows"}], "split: a row-wise NPU runs a job on one core: leave it out", ""),
        ([JOB | {"split": "auto"}], "split: a row-wise NPU runs a job on one core: leave it out", ""),
    ],
)
def test_cores_and_splits_that_another_chip_has_not(jobs: list[dict[str, Any]], row: str, column: str) -> None:
    own, brainwave, small = _reasons({"chip": "column-npu-4x16k", "jobs": jobs}, "brainwave-s10", "column-npu-16k")
    assert own == ""
    assert row in brainwave
    assert column in small
    assert bool(small) == bool(column)


def test_a_sentence_for_each_job() -> None:
    jobs = [JOB | {"name": "a", "core": 1}, JOB | {"name": "b", "core": 2}, JOB | {"name": "c", "cores": [0]}]
    _, small = _reasons({"chip": "column-npu-4x16k", "jobs": jobs}, "column-npu-16k")
    expected = [
        f"job {name}: core: there is no core {core}; the chip has 1 (0 to 0)" for name, core in (("a", 1), ("b", 2))
    ]
    assert small == "; ".join(expected)


def test_own_cells_on_a_row_wise_chip() -> None:
    layers = "{layers: [{cell: my-gru, hidden: 8, input: 4}]}"
    Path("s.yaml").write_text(f"{HEAD}jobs: [{{model: {layers}, steps: 2, name: mine}}]\n")
    outcome = call("compare", "s.yaml", "--chip", "brainwave-s10", "--json", "-")
    assert outcome.exit_code == 0, (outcome.exception, outcome.stderr)
    own, other = json.loads(outcome.stdout)["workloads"][0]["entries"]
    assert own["reason"] == ""
    assert other["reason"].startswith("job mine: no core can run it: ")
    assert "my-gru" in other["reason"]


def test_no_chip_at_all() -> None:
    Path("s.json").write_text(json.dumps({"chip": "column-npu-4x16k", "jobs": [JOB | {"core": 3}]}))
    outcome = call("compare", "s.json", "--base", "brainwave-s10", "--chip", "column-npu-16k")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert "none of the chips can run it; brainwave-s10: job lstm-256: core: there is no core 3" in outcome.stderr


#: A machine that writes its kernels out has hundreds of thousands of operations for a larger one.
SMALL = JOB | {"model": {"layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}, "name": "a"}


def test_chips_of_every_kind_have_figures_for_open_arrivals() -> None:
    job = SMALL | {"count": 5, "arrival": {"kind": "poisson", "rate_per_second": 10_000}}
    assert not any(_reasons({"chip": "column-npu-16k", "jobs": [job]}, "v100", "epyc-7742"))
    outcome = call("compare", "s.json", "--chip", "v100", "--json", "-")
    assert outcome.exit_code == 0, (outcome.exception, outcome.stderr)
    own, other = json.loads(outcome.stdout)["workloads"][0]["entries"]
    assert own["latency"] is not None
    assert other["latency"] is not None
