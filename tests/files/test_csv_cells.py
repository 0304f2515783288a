"""No CSV that lstmsim writes has a cell that a spreadsheet would run, and no name is lost by that."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lstmsim
from lstmsim.base.csv_table import NUMBER, neutral, original
from tests.cli.runner import call

NAMES = ['=HYPERLINK("http://x")', "+1+1", "-2+3", "@SUM(A1)", "plain, =1", "'=x"]
POISSON = {"kind": "poisson", "rate_per_second": 200_000}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = [{"name": name, "model": "lstm-256", "steps": 2, "count": 2, "arrival": POISSON} for name in NAMES]
    scenario = {"name": "@name", "chip": "column-npu-16k", "jobs": jobs}
    Path("s.json").write_text(json.dumps(scenario))
    axis = {"path": "jobs.0.name", "values": ["=1+1", "@b"]}
    Path("sweep.json").write_text(json.dumps({"scenario": scenario, "axes": {"axis": axis}}))


@given(st.text(alphabet="'=+-@\t\r\nab1.,\" ", max_size=6))
def test_every_text_comes_back_and_none_runs(text: str) -> None:
    cell = neutral(text)
    assert original(cell) == text
    assert NUMBER.fullmatch(cell) or not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (("simulate", "s.json", "--trace", "out.csv"), "out.csv"),
        (("serve", "s.json", "--csv", "out.csv"), "out.csv"),
        (("compare", "s.json", "--each", "--chip", "brainwave-s10", "--csv", "out.csv"), "out.csv"),
        (("compare", "s.json", "--chip", "brainwave-s10", "--plot", "p.svg"), "p.csv"),
        pytest.param(
            ("load-latency", "s.json", "--loads", "0.3", "--requests", "400", "--jobs", "1", "--csv", "out.csv"),
            "out.csv",
            marks=pytest.mark.needs_core,
        ),
        (("sweep", "sweep.json", "--out", "kept", "--jobs", "1", "--plot", "p.svg"), "kept/sweep.csv"),
        (("accuracy", "s.json", "--random-weights", "0", "--bits", "8:8", "--plot", "p.svg"), "p.csv"),
    ],
)
def test_files_of_commands(arguments: tuple[str, ...], written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # the table beside a picture is what counts
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)
    outcome = call(*arguments)
    assert outcome.exit_code == 0, (outcome.exception, outcome.stderr)
    for separator in (",", ";", "\t"):
        with Path(written).open(newline="", encoding="utf-8") as file:
            for row in csv.reader(file, delimiter=separator):
                for cell in row:
                    assert not _runs(cell), row


def _runs(cell: str) -> bool:
    return cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) and not NUMBER.fullmatch(cell)


def test_a_trace_comes_back_with_its_names() -> None:
    timeline = lstmsim.trace("s.json")
    lstmsim.save_trace(timeline, "out.csv")
    assert lstmsim.load_trace("out.csv").jobs == timeline.jobs


def test_arrival_files_with_cells_of_ours() -> None:
    data: dict[str, Any] = json.loads(Path("s.json").read_text())
    data["jobs"] = [{"name": "=a", "model": "lstm-256", "steps": 2}]
    data["arrivals"] = {"path": "times.csv"}
    Path("s.json").write_text(json.dumps(data))
    Path("times.csv").write_text(f"arrival_cycles,job\n0,{neutral('=a')}\n5,=a\n")
    assert len(lstmsim.load_scenario("s.json").jobs) == 2


def test_all_rows_are_written_in_one_place() -> None:
    package = Path(lstmsim.__file__).parent
    users = [path for path in package.rglob("*.py") if re.search(r"csv\.writer|DictWriter", path.read_text())]
    assert [path.name for path in users] == ["csv_table.py"]
