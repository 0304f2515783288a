"""`lstmsim timeline`: a saved trace becomes a picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result

from lstmsim import save_trace
from tests.cli import runner
from tests.timelines import small


@pytest.fixture(autouse=True)
def _trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_trace(small(), "trace.json.gz")


def call(*arguments: str) -> Result:
    return runner.call("timeline", *arguments)


@pytest.mark.slow
def test_the_picture_is_beside_the_trace_and_named(tmp_path: Path) -> None:
    result = call(str(tmp_path / "trace.json.gz"))
    assert result.stdout == f"wrote {tmp_path / 'trace.png'}\n"
    assert (tmp_path / "trace.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_window_of_some_cores() -> None:
    assert call("trace.json.gz", "--out", "all.svg").exit_code == 0
    assert call("trace.json.gz", "--from", "5", "--to", "30", "--cores", "0,0", "--out", "part.svg").exit_code == 0
    assert Path("all.svg").read_text() != Path("part.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trace.json.gz", "--cores", "a"], "not a list of core numbers"),
        (["trace.json.gz", "--cores", "7"], "7"),
        (["trace.json.gz", "--from", "30", "--to", "5"], "30"),
        (["trace.json.gz", "--from", "-1"], "-1"),
        (["trace.json.gz", "--out", "picture.bmp"], "--out picture.bmp"),
        (["trace.json.gz", "--out", "no/picture.png"], "no folder"),
        (["trace.vcd"], "trace.vcd: cannot be read back: .json, .json.gz, .csv and .csv.gz can"),
        (["trace.xls"], "expected it to end in .json, .json.gz, .csv, .csv.gz\n"),
        (["missing.json"], "missing.json"),
    ],
)
def test_refused(arguments: list[str], words: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert [path.name for path in Path.cwd().iterdir()] == ["trace.json.gz"]


def test_a_table_cut_at_a_line_end_is_refused() -> None:
    save_trace(small(), "trace.csv")
    lines = Path("trace.csv").read_text().splitlines(keepends=True)
    Path("trace.csv").write_text("".join(lines[:-1]))
    result = call("trace.csv")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "trace.csv: holds 17 of 18 spans, perhaps cut short\n"
    assert not Path("trace.png").exists()
