"""`lstmsim sweep` as users call it."""

from __future__ import annotations

import csv
import gc
from pathlib import Path

import pytest

from lstmsim.cli.sweep import bar_line
from lstmsim.studies.sweep import evaluate
from lstmsim.studies.sweep.bulk import Bulk
from lstmsim.studies.sweep.request import Progress
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
    result = call("sweep", spec, "--out", str(out), "--jobs", "1", "--plot", str(out / "map.svg"), "--stamp")
    shown, _, stamp = result.stdout.partition("\n\nCompared with: generated RTL, from the same contract; ")
    assert stamp.startswith("not compared with silicon. More: --stamp.\n\nSTAMP of column-npu: ")
    assert "varied: chip.cores.0.ep, chip.cores.0.vp." in " ".join(stamp.split())
    assert (result.exit_code, shown.splitlines()) == (
        0,
        [
            "scenario: the best point has latency_ms_mean 0.00157: ep 8, vp 32 (point 5)",
            "8 points: 7 simulated, 1 infeasible, 0 failed",
            "",
            "PARETO FRONT (minimise latency_ms_mean, npe): 1 of 7 points",
            "point  ep  vp  latency_ms_mean  npe",
            "    5   8  32          0.00157  256",
        ],
    )
    assert {"sweep.sqlite", "sweep.csv", "map.svg", "map.csv"} <= {each.name for each in out.iterdir()}
    with open(out / "sweep.csv", encoding="utf-8", newline="") as file:
        assert [(row["ep"], row["vp"], row["status"]) for row in csv.DictReader(file)][-1] == ("16", "32", "infeasible")
    again = call("sweep", spec, "--out", str(out), "--jobs", "1")
    assert "8 of them had a result already" in again.stderr
    assert "had a result" not in call("sweep", spec, "--out", str(out), "--jobs", "1", "--no-resume").stderr


@pytest.mark.slow
def test_the_front_is_that_of_the_files_objectives_and_its_picture_of_two(spec: str, tmp_path: Path) -> None:
    text = (
        SPEC + "device: stratix-10-gx-2800\nobjectives: {minimise: [latency_ms_p99, logic], maximise: [utilization]}\n"
    )
    Path(spec).write_text(text, encoding="utf-8")
    picture = ["--plot", str(tmp_path / "front.svg")]
    result = call("sweep", spec, "--out", str(tmp_path), "--jobs", "1", *picture)
    best, front, _ = result.stdout.split("\n\n")
    best = " ".join(best.split()).partition(" 8 points")[0]
    front, heads, *points = front.splitlines()
    assert best.endswith(", which fits stratix-10-gx-2800")
    assert front.startswith("PARETO FRONT (minimise latency_ms_p99, logic; maximise utilization): ")
    assert front.endswith(f"{len(points)} of 7 points, of which {len(points)} fit stratix-10-gx-2800")
    assert heads.split() == ["point", "ep", "vp", "latency_ms_p99", "logic", "utilization", "fits"]
    with open(tmp_path / "sweep.csv", encoding="utf-8", newline="") as file:
        marked = {row["point"] for row in csv.DictReader(file) if row["pareto"] == "1"}
    assert {line.split()[0] for line in points} == marked
    assert "logic cells, less is better" in (tmp_path / "front.svg").read_text(encoding="utf-8")
    again = ["--plot-objectives", "utilization,logic"]
    assert call("sweep", spec, "--out", str(tmp_path), "--jobs", "1", *picture, *again).exit_code == 0
    assert "utilization (1: all), more is better" in (tmp_path / "front.svg").read_text(encoding="utf-8")
    assert call("sweep", spec, "--out", str(tmp_path), "--jobs", "1", *picture, "--plot-kind", "heatmap").exit_code == 0
    assert "the best of all" in (tmp_path / "front.svg").read_text(encoding="utf-8")


def test_a_device_file_is_never_written_over(spec: str, tmp_path: Path) -> None:
    from lstmsim.studies.fit.device import device_files

    text = device_files()["stratix-10-gx-2800"].read_text(encoding="utf-8")
    (tmp_path / "mine.svg").write_text(text, encoding="utf-8")
    Path(spec).write_text(SPEC + "device: mine.svg\n", encoding="utf-8")
    result = call("sweep", spec, "--out", str(tmp_path / "out"), "--jobs", "1", "--plot", str(tmp_path / "mine.svg"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is also the input" in result.stderr
    assert (tmp_path / "mine.svg").read_text(encoding="utf-8") == text


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
        (["--plot-kind", "pareto"], "--plot-kind: belongs to --plot, which is not given"),
        (["--plot-objectives", "ep,vp"], "--plot-objectives: belongs to --plot, which is not given"),
        (["--plot", "a.png", "--plot-kind", "heatmap", "--plot-objectives", "ep,vp"], "belongs to --plot-kind pareto"),
        (["--plot", "a.png", "--plot-objectives", "ep,vp"], "--plot-objectives: no objective called 'ep'"),
        (
            ["--plot", "a.png", "--plot-kind", "utilization"],
            "--plot-kind utilization: needs an axis for npe; this sweep varies ep",
        ),
        (["--set", "jobs.0.step=1"], "--set jobs.0.step=1: unknown key; did you mean 'steps'?"),
    ],
)
def test_wrong_arguments_are_explained(spec: str, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    result = call("sweep", spec, "--out", str(tmp_path / "out"), *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out" / "sweep.csv").exists()


def test_mistakes_have_their_places_and_outputs_are_looked_at_first(spec: str, tmp_path: Path) -> None:
    Path(spec).write_text(SPEC.replace("chip.cores.0.ep,", "chip.cores.0.epp,"), encoding="utf-8")
    result = call("sweep", spec, "--out", str(tmp_path / "out"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{spec}:10:14: axes.ep.path: chip.cores.0.epp: unknown key; did you mean 'ep'?" in result.stderr
    assert call("sweep", spec, "--out", spec).stderr == f"--out {spec}: cannot be a folder (File exists)\n"
    out, name = tmp_path / "new", tmp_path / "new" / "sweep.png"
    picture = call("sweep", spec, "--out", str(out), "--plot", str(name))
    assert (picture.exit_code, picture.stdout, out.exists()) == (2, "", False)
    table, works = out / "sweep.csv", out / "sweep-front.png"
    text = f"the numbers of the picture would replace {table}, the table; call it for example {works}"
    assert picture.stderr == f"--plot {name}: {text}\n"
    Path(spec).write_text(SPEC, encoding="utf-8")
    assert call("sweep", spec, "--out", str(out), "--jobs", "1", "--plot", str(works)).exit_code == 0
    # A shard's table has another name.
    again = ["--shard", "1/2", "--plot", str(out / "sweep-1-of-2.svg")]
    assert "call it for example" in call("sweep", spec, "--out", str(out), *again).stderr


def test_reasons_of_infeasible_points_are_told_the_most_frequent_first(spec: str, tmp_path: Path) -> None:
    text = SPEC.replace("from: 2, to: 16, factor: 2", "values: [2, 4, 8, 3.0, eight]") + "  - vp + 16 < 16 * ep\n"
    Path(spec).write_text(text.replace('constraints: ["ep * vp <= 256"]', "constraints:"), encoding="utf-8")
    result = call("sweep", spec, "--out", str(tmp_path / "out"), "--jobs", "1")
    assert (result.exit_code, result.stdout.splitlines()[1]) == (0, "10 points: 4 simulated, 6 infeasible, 0 failed")
    reported = [line for line in result.stderr.splitlines() if line.startswith("infeasible: ")]
    assert reported == [
        "infeasible: 3 points: vp + 16 < 16 * ep is false",
        "infeasible: 2 points: vp + 16 < 16 * ep: only numbers can be added, multiplied and ordered",
        "infeasible: 1 point: chip.cores.0.ep=3.0: must be a whole number, got 3.0; write 3",
    ]


def test_many_reasons_are_counted_together(spec: str, tmp_path: Path) -> None:
    text = SPEC.replace("from: 2, to: 16, factor: 2", "values: [2, 2.5, 3.5, 4.5, 5.5, 6.5]")
    Path(spec).write_text(text, encoding="utf-8")
    result = call("sweep", spec, "--out", str(tmp_path / "out"), "--jobs", "1")
    like = "(for example; the others differ in numbers only)"
    assert f"infeasible: 10 points: chip.cores.0.ep=2.5: must be a whole number, got 2.5 {like}\n" in result.stderr
    # who varies a key that another key limits learns that before the results
    assert result.output.index("infeasible: ") < result.output.index("12 points: ")
    words = text.replace("2.5, 3.5, 4.5, 5.5, 6.5]", "a, b, c, d, e, f, x]")
    Path(spec).write_text(words.replace("constraints", "name: a #"), encoding="utf-8")
    reported = call("sweep", spec, "--out", str(tmp_path / "out"), "--jobs", "1").stderr
    assert reported.count("infeasible: 2 points: chip.cores.0.ep=") == 5
    assert "infeasible: 4 points for 2 other reasons" in reported


@pytest.mark.parametrize(
    ("path", "values", "reason"),
    [
        ("jobs.0.model", "[lstm-51]", "no model called 'lstm-51'; did you mean 'lstm-512'?"),
        ("chip", "[column-npu-64]", "no chip called 'column-npu-64'; did you mean 'column-npu-64k'?"),
        ("jobs.0.model", "[nowhere.yaml]", "no file called 'nowhere.yaml'"),
        ("chip.cores.0.npe", "[eight]", "must be a whole number, got 'eight'"),
    ],
)
def test_a_sweep_that_simulates_nothing_is_a_mistake_but_has_its_table(
    spec: str, tmp_path: Path, path: str, values: str, reason: str
) -> None:
    text = SPEC.replace("axes:", f"axes:\n  wrong: {{path: {path}, values: {values}}}").replace("to: 16", "to: 8")
    Path(spec).write_text(text, encoding="utf-8")
    picture = ["--plot", str(tmp_path / "map.png")]
    result = call("sweep", spec, "--out", str(tmp_path), "--jobs", "1", *picture)
    assert (result.exit_code, result.stdout) == (2, "6 points: 0 simulated, 6 infeasible, 0 failed\n")
    (line,) = [each for each in result.stderr.splitlines() if "nothing could be simulated" in each]
    assert line.startswith(f"{spec}: nothing could be simulated: 6 points: {path}=")
    assert reason in line
    assert len((tmp_path / "sweep.csv").read_text(encoding="utf-8").splitlines()) == 7
    # The few points of a shard may all be infeasible.
    shard = call("sweep", spec, "--out", str(tmp_path), "--jobs", "1", "--shard", "1/2")
    assert shard.exit_code == 0
    assert f"infeasible: 3 points: {path}=" in shard.stderr


def test_a_sweep_that_only_fails_is_no_success(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bulk, "possible", False)
    monkeypatch.setattr(evaluate, "numbers_of", lambda *_: 1 // 0)
    Path(spec).write_text(SPEC.replace("<= 256", "> 0").replace("to: 16", "to: 8"), encoding="utf-8")
    result = call("sweep", spec, "--out", str(tmp_path), "--jobs", "1")
    assert (result.exit_code, result.stdout) == (1, "6 points: 0 simulated, 0 infeasible, 6 failed\n")
    assert "nothing could be simulated: 6 points: internal error: ZeroDivisionError" in result.stderr


def test_a_wrong_address_of_a_cluster_is_one_line_also_where_nothing_is_left_to_do(spec: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    for _ in range(2):
        result = call("sweep", spec, "--out", str(tmp_path), "--dask", "foo")
        # A client that is half made would complain here.
        gc.collect()
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("--dask foo: no scheduler answers there (")
        assert result.stderr.count("\n") == 1
        call("sweep", spec, "--out", str(tmp_path), "--jobs", "1")


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
