"""`lstmsim list`: every kind, every name, a source for each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from lstmsim.engines import ENGINES
from lstmsim.files.catalog import list_chips, list_models
from lstmsim.model.cells import CELLS
from lstmsim.model.scenario import DISPATCH, PLACEMENTS, SPLITS
from lstmsim.program.policy import POLICIES
from lstmsim.studies.known.run import KINDS, experiments
from tests.cli import runner


def call(*arguments: str) -> Result:
    return runner.call("list", *arguments)


def test_json_has_every_name_and_a_source_for_each() -> None:
    data = json.loads(call("--json", "-").stdout)
    assert data.pop("schema") == "lstmsim/list/1"
    # the keys of chips are shown when they are asked for
    assert list(data) == [each for each in KINDS if each != "keys"]
    names = {kind: {row["name"] for row in rows} for kind, rows in data.items()}
    assert names["models"] == {entry.name for entry in list_models()} != set()
    assert names["chips"] == {entry.name for entry in list_chips()} != set()
    placed = {f"placement: {each}" for each in PLACEMENTS} | {f"split: {each}" for each in SPLITS}
    assert names["policies"] == set(POLICIES) | set(DISPATCH) | placed
    assert (names["cells"], names["engines"]) == (set(CELLS), set(ENGINES))
    assert [row for rows in data.values() for row in rows if not row["source"]] == []


def test_text_has_what_json_has() -> None:
    text = call().stdout
    for kind, rows in json.loads(call("--json", "-").stdout).items():
        if kind != "schema":
            assert kind.upper() in text
            assert all(f"\n  {row['name']} " in text for row in rows)
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("kind", KINDS)
def test_one_kind_alone(kind: str) -> None:
    result = call(kind)
    assert result.exit_code == 0
    assert result.stdout.startswith(kind.upper())
    assert not any(other.upper() in result.stdout.splitlines() for other in KINDS if other != kind)


def test_json_file_is_written_whole(tmp_path: Path) -> None:
    target = tmp_path / "list.json"
    assert call("cells", "--json", str(target)).exit_code == 0
    assert json.loads(target.read_text()) == json.loads(call("cells", "--json", "-").stdout)


def test_experiments_are_read_and_not_run(tmp_path: Path) -> None:
    package = tmp_path / "lstmsim"
    script = tmp_path / "experiments" / "study" / "run.py"
    script.parent.mkdir(parents=True)
    script.write_text('"""Which ep is best?\n\nSource: a patent.\n"""\nraise SystemExit("was run")\n')
    assert experiments(package) == []
    (tmp_path / "pyproject.toml").touch()
    assert experiments(package) == [("study", "Which ep is best?; a patent")]


def test_a_word_shows_what_contains_it() -> None:
    names = [row["name"] for row in json.loads(call("keys", "Thread_Policy", "--json", "-").stdout)["keys"]]
    assert names == ["column-npu cores.thread_policy"]
    assert [line.split()[0] for line in call("chips", "V100").stdout.splitlines()[1:] if line[2] != " "] == [
        "edge",
        "v100",
    ]
    assert call("chips", "nowhere").stdout == "CHIPS\n  none\n"


def test_no_name_of_the_code_is_shown_for_keys() -> None:
    rows = json.loads(call("keys", "--json", "-").stdout)["keys"]
    assert [row for row in rows if "MAX_" in row["source"] or "lstmsim." in row["source"]] == []
