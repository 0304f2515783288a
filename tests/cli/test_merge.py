"""`lstmsim merge` as users call it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.runner import call
from tests.cli.test_sweep import SPEC


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC, encoding="utf-8")
    return str(path)


def test_shards_are_merged(spec: str, tmp_path: Path) -> None:
    for shard in ("1/2", "2/2"):
        assert call("sweep", spec, "--out", str(tmp_path), "--jobs", "1", "--shard", shard).exit_code == 0
    one, two, out = (str(tmp_path / f"{name}.sqlite") for name in ("sweep-1-of-2", "sweep-2-of-2", "all"))
    part = call("merge", out, two)
    assert "the best point so far has" in part.stdout.splitlines()[0]
    assert part.stdout.splitlines()[1] == "4 of 8 points; 4 are missing"
    assert call("merge", out, one, two).stdout.splitlines()[:4] == [
        "scenario: the best point has latency_ms_mean 0.00157: ep 8, vp 32 (point 5)",
        "8 of 8 points",
        "",
        "PARETO FRONT (minimise latency_ms_mean, npe): 1 of 7 points",
    ]
    call("sweep", spec, "--out", str(tmp_path), "--jobs", "1")
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "sweep.csv").read_bytes()
    assert "infeasible: 1 point: ep * vp <= 256 is false" in call("merge", out, one, two).stderr


@pytest.fixture
def halves(spec: str, tmp_path: Path) -> list[str]:
    for shard in ("1/2", "2/2"):
        assert call("sweep", spec, "--out", str(tmp_path), "--jobs", "1", "--shard", shard).exit_code == 0
    return [str(tmp_path / f"sweep-{number}-of-2.sqlite") for number in (1, 2)]


@pytest.mark.slow
def test_no_output_replaces_another_one(halves: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(halves[0], "all.csv")
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    for arguments, sentence in [
        (
            ["all.sqlite", *halves, "--plot", "all.png"],
            "the numbers of the picture would replace all.csv, the table; call it for example all-front.png\n",
        ),
        (["x.csv", *halves], "OUT x.csv: expected a file name that ends in .sqlite"),
        (["-", *halves], "OUT -: expected a file name that ends in .sqlite"),
        (["all.sqlite", "all.csv", halves[1]], "OUT's table all.csv: is also the input"),
        ([halves[0], *halves], "is also the input"),
    ]:
        result = call("merge", *arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert sentence in result.stderr
        assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before
    assert call("merge", "all.sqlite", *halves, "--plot", "map.png").exit_code == 0


def test_a_damaged_shard_is_named(halves: list[str], tmp_path: Path) -> None:
    out, half = tmp_path / "all.sqlite", Path(halves[1])
    content = half.read_bytes()
    half.write_bytes(content[:8192] + b"\xff" * 4096 + content[12288:])
    result = call("merge", str(out), *halves)
    assert (result.exit_code, result.stdout, out.exists()) == (2, "", False)
    assert result.stderr.startswith(f"{half}: is damaged (")


def test_wrong_files_are_explained(spec: str, tmp_path: Path) -> None:
    wrong = call("merge", str(tmp_path / "nowhere" / "a.sqlite"), spec)
    assert wrong.exit_code == 2
    assert "there is no folder" in wrong.stderr
    assert "is no table of a sweep" in call("merge", str(tmp_path / "a.sqlite"), spec).stderr


def test_shards_that_all_simulated_nothing_are_a_mistake(spec: str, tmp_path: Path) -> None:
    Path(spec).write_text(SPEC.replace("<= 256", "> 10000"), encoding="utf-8")
    for shard in ("1/2", "2/2"):
        assert call("sweep", spec, "--out", str(tmp_path), "--jobs", "1", "--shard", shard).exit_code == 0
    one, two = (str(tmp_path / f"sweep-{number}-of-2.sqlite") for number in (1, 2))
    out = str(tmp_path / "all.sqlite")
    assert call("merge", out, one).exit_code == 0
    result = call("merge", out, one, two)
    assert result.exit_code == 2
    assert f"{out}: nothing could be simulated: 8 points: ep * vp > 10000 is false" in result.stderr
