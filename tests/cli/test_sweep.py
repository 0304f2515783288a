"""`lstmsim sweep` and `lstmsim merge` as users call them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from lstmsim.cli.sweep import bar_line
from lstmsim.sweep.run import Progress
from tests.cli.runner import call

SPEC = """
scenario:
  chip:
    kind: column-npu
    frequency_mhz: 100
    cores: [{npe: 256, ep: 8, vp: 32}]
  jobs:
    - {model: {layers: [{cell: lstm, hidden: 24, input: 24}]}, steps: 2}
axes:
  ep: {path: chip.cores.0.ep, from: 2, to: 16, factor: 2}
  vp: {path: chip.cores.0.vp, values: [16, 32]}
constraints: ["ep * vp <= 256"]
"""


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC, encoding="utf-8")
    return str(path)


def test_a_sweep_writes_its_tables_and_its_picture(spec: str, tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    result = call("sweep", spec, "--out", str(out), "--jobs", "1", "--plot", str(out / "map.svg"))
    assert (result.exit_code, result.stdout) == (0, "8 points: 7 simulated, 1 infeasible, 0 failed\n")
    assert {"sweep.sqlite", "sweep.csv", "map.svg", "map.csv"} <= {each.name for each in out.iterdir()}
    with open(out / "sweep.csv", encoding="utf-8", newline="") as file:
        assert [(row["ep"], row["vp"], row["status"]) for row in csv.DictReader(file)][-1] == ("16", "32", "infeasible")
    again = call("sweep", spec, "--out", str(out), "--jobs", "1")
    assert "8 of them had a result already" in again.stderr
    assert "had a result" not in call("sweep", spec, "--out", str(out), "--jobs", "1", "--no-resume").stderr


def test_shards_are_merged(spec: str, tmp_path: Path) -> None:
    for shard in ("1/2", "2/2"):
        assert call("sweep", spec, "--out", str(tmp_path), "--jobs", "1", "--shard", shard).exit_code == 0
    one, two, out = (str(tmp_path / f"{name}.sqlite") for name in ("sweep-1-of-2", "sweep-2-of-2", "all"))
    part = call("merge", out, two)
    assert part.stdout == "4 of 8 points; 4 are missing\n"
    assert call("merge", out, one, two).stdout == "8 of 8 points\n"
    call("sweep", spec, "--out", str(tmp_path), "--jobs", "1")
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "sweep.csv").read_bytes()


def test_overrides_change_the_scenario(spec: str, tmp_path: Path) -> None:
    for steps in ("1", "50"):
        call("sweep", spec, "--out", str(tmp_path / steps), "--jobs", "1", "--set", f"jobs.0.steps={steps}")
    few, many = ((tmp_path / steps / "sweep.csv").read_text().splitlines()[1].split(",") for steps in ("1", "50"))
    assert int(few[4]) < int(many[4])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--shard", "0/2"], "is not a shard like 3/20"),
        (["--shard", "3"], "is not a shard like 3/20"),
        (["--jobs", "0"], "0 is not in the range"),
        (["--jobs", "2", "--dask", "tcp://x:1"], "--jobs: belongs to processes of this machine"),
        (["--plot", "map.gif"], "expected a file name that ends in .png"),
        (["--set", "jobs.0.step=1"], "--set jobs.0.step=1: unknown key; did you mean 'steps'?"),
    ],
)
def test_wrong_arguments_are_explained(spec: str, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    result = call("sweep", spec, "--out", str(tmp_path / "out"), *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_mistakes_have_their_places_and_outputs_are_looked_at_first(spec: str, tmp_path: Path) -> None:
    Path(spec).write_text(SPEC.replace("chip.cores.0.ep,", "chip.cores.0.epp,"), encoding="utf-8")
    result = call("sweep", spec, "--out", str(tmp_path / "out"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{spec}:10:14: axes.ep.path: chip.cores.0.epp: unknown key; did you mean 'ep'?" in result.stderr
    assert call("sweep", spec, "--out", spec).stderr == f"--out {spec}: cannot be a folder (File exists)\n"
    wrong = call("merge", str(tmp_path / "nowhere" / "a.sqlite"), spec)
    assert wrong.exit_code == 2
    assert "there is no folder" in wrong.stderr
    assert "is no table of a sweep" in call("merge", str(tmp_path / "a.sqlite"), spec).stderr


@pytest.mark.parametrize(
    ("progress", "computed", "seconds", "line"),
    [
        (Progress(0, 10), 0, 0.0, "s [........................] 0/10"),
        (Progress(10, 10), 10, 1.0, "s [########################] 10/10  10.0/s  0:00 left"),
        (
            Progress(5000, 50000, failed=2),
            4000,
            2.0,
            "s [##......................] 5,000/50,000  2,000/s  0:22 left  2 failed",
        ),
        (Progress(1, 7201), 1, 1.0, "s [........................] 1/7,201  1.0/s  2:00:00 left"),
    ],
)
def test_the_bar_shows_rate_and_remaining_time(progress: Progress, computed: int, seconds: float, line: str) -> None:
    assert bar_line("s", progress, computed, seconds) == line


EXAMPLES = sorted((Path(__file__).parents[2] / "experiments" / "sweeps").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_sweeps_run(path: Path, tmp_path: Path) -> None:
    result = call("sweep", str(path), "--out", str(tmp_path), "--jobs", "1", "--shard", "1/20")
    assert result.exit_code == 0, result.stderr
    assert " 0 simulated" not in result.stdout
    assert ", 0 failed" in result.stdout
