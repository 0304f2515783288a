"""`lstmsim load-latency`: table, files, picture, mistakes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from lstmsim.studies.serve.curves import CDF
from tests.cli.runner import call

POISSON = {"kind": "poisson", "rate_per_second": 200_000}
SCENARIO: dict[str, Any] = {
    "chip": "column-npu-16k",
    "jobs": [{"model": "lstm-256", "steps": 2, "deadline": 900, "arrival": POISSON}],
}
QUICK = ("s.json", "--loads", "0.4,1.2", "--requests", "500", "--jobs", "1")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.json").write_text(json.dumps(SCENARIO))


@pytest.mark.slow
@pytest.mark.needs_core
def test_table_files_and_picture() -> None:
    outputs = ("--csv", "c.csv", "--json", "c.json", "--plot", "c.svg", "--out", "kept")
    done = call("load-latency", *QUICK, "--policies", "fcfs,edf", *outputs)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("LOAD AND LATENCY: s; load 1 is ")
    assert [line.split()[:2] for line in lines if line.startswith(("fcfs", "edf"))] == [
        ["fcfs", "0.4"],
        ["fcfs", "1.2"],
        ["edf", "0.4"],
        ["edf", "1.2"],
    ]
    rows = list(csv.DictReader(Path("c.csv").read_text().splitlines()))
    assert [row["verdict"] == "unstable" for row in rows] == [False, True, False, True]
    assert rows[1]["p99_ms"] == ""
    data = json.loads(Path("c.json").read_text())
    assert data["schema"] == "lstmsim/load-latency/2"
    assert float(rows[0]["p50_ms"]) == data["points"][0]["latency_ms"]["p50"]["value"]
    picture = Path("c.svg").read_text()
    for text in (
        "offered load (1: all that the machine can do)",
        "unstable",
        "in time (%)",
        "distribution at load 0.4",
    ):
        assert text in picture
    assert len(list(Path("kept/points").iterdir())) == 4
    again = call("load-latency", *QUICK, "--policies", "fcfs,edf", "--out", "kept")
    assert again.stdout == done.stdout


def test_json_alone_on_standard_output() -> None:
    assert json.loads(call("load-latency", *QUICK, "--json", "-").stdout)["machines"][0]["label"] == "fcfs"


@pytest.mark.slow
def test_a_picture_of_one_unstable_machine() -> None:
    arguments = ("s.json", "--loads", "1.2,1.4", "--requests", "300", "--jobs", "1", "--plot", "c.png")
    assert call("load-latency", *arguments).exit_code == 0
    assert Path("c.png").stat().st_size > 1000


def test_the_help_names_every_percentile() -> None:
    text = " ".join(call("load-latency", "--help").stdout.split())
    *first, last = (f"{each:g}" for each in CDF)
    assert f"Percentile that is drawn: {', '.join(first)} or {last}." in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--loads", "x"), "must look like"),
        (("--percentile", "98.7"), "must be one of"),
        (("--cdf-at", "0.5"), "must be one of the loads: 0.4, 1.2"),
        (("--until-half-width", "200%"), "is not a share"),
        (("--plot", "c.jpg"), "--plot c.jpg"),
        (("--csv", "s.json"), ".csv"),
        (("--json", "s.json"), "the input"),
        (("--policies", ""), "has an empty entry"),
        (("--policies", "fcfs,,edf"), "has an empty entry"),
        (("--placements", ""), "has an empty entry"),
        (("--out", ""), "--out '': the name is empty"),
        (("--chip", "fish"), "--chip fish: no chip called 'fish'"),
        (("--chip", "fish.yaml"), "--chip fish.yaml: "),
        (("--loads", "1:0"), "A:B needs A below B, both above 0 and below 100, got 1 and 0"),
        (("--loads", "1:1"), "A:B needs A below B"),
        (("--loads", "0.3:nan"), "A:B needs A below B"),
        (("--loads", "0.3:0.95:100000"), "must have 2 to 1,000 points, got 100,000"),
        (("--loads", "0.3:0.95:3:4"), "must look like"),
        (("--policies", "lifo"), "policy 'lifo'"),
        (("--out", "s.json"), "cannot be a folder"),
        (("--set", "jobs.0.arrival=0"), "s.json: jobs: no job comes at a rate"),
    ],
)
def test_mistakes_are_sentences(arguments: tuple[str, ...], sentence: str) -> None:
    result = call("load-latency", *QUICK, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
