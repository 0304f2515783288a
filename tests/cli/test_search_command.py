"""`lstmsim search` on the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.runner import call

CHIP = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 4096, "ep": 4}]}


@pytest.fixture
def path(tmp_path: Path) -> str:
    layers = [{"cell": "gru", "hidden": 64, "input": 40}]
    jobs = [{"model": {"layers": layers}, "steps": 5}]
    (tmp_path / "s.json").write_text(json.dumps({"chip": CHIP, "jobs": jobs}))
    return str(tmp_path / "s.json")


def test_text_and_json_say_the_same(path: str) -> None:
    shown = call("search", path, "--npe", "2048", "--exhaustive")
    assert shown.exit_code == 0
    found = json.loads(call("search", path, "--npe", "2048", "--exhaustive", "--json", "-").stdout)
    assert found["schema"] == "lstmsim/search/1"
    assert "regret of the greedy choice" in shown.stdout
    marked = [line for line in shown.stdout.splitlines() if line.startswith("* ")]
    assert len(marked) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--npe", "0"), "--npe"),
        (("--npe", "-3"), "--npe"),
        (("--npe", "2"), "npe"),
        (("--npe", "2048", "--core", "5"), "--core"),
        (("--npe", "2048", "--set", "jobs.0.stepps=3"), "stepps"),
    ],
)
def test_mistakes_get_a_line(path: str, arguments: tuple[str, ...], words: str) -> None:
    result = call("search", path, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr.lower() or words in result.stderr
    assert "Traceback" not in result.stderr


def test_npe_is_required(path: str) -> None:
    result = call("search", path)
    assert result.exit_code == 2
    assert "--npe" in result.stderr
