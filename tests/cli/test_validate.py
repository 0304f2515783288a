"""`lstmsim validate`: what it prints and writes, and when it fails."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lstmsim.cli.known import GROUPS
from lstmsim.files import published
from lstmsim.studies.validate import run
from tests.cli.runner import call
from tests.studies.validate.whole import small_kernels


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the published tables, which the command reads instead."""
    folder = Path(shutil.copytree(published.published_folder(), tmp_path / "published"))
    monkeypatch.setattr(published, "published_folder", lambda: folder)
    return folder


def edit(folder: Path, table: str, before: str, after: str) -> None:
    path = folder / f"{table}.csv"
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), encoding="utf-8")


def test_the_groups_are_those_of_the_package() -> None:
    assert GROUPS == run.GROUPS


def test_one_group(tmp_path: Path) -> None:
    json_path, markdown_path = tmp_path / "v.json", tmp_path / "v.md"
    done = call("validate", "intel-npu-rtl", "--json", str(json_path), "--markdown", str(markdown_path))
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == "intel-npu-rtl 19 of 19 exact"
    assert done.stderr == f"wrote {json_path}\nwrote {markdown_path}\n"
    data = json.loads(json_path.read_text())
    assert data["ok"] is True
    assert [each["key"] for each in data["groups"]] == ["intel-npu-rtl"]
    assert markdown_path.read_text().startswith("# Validation\n")


@pytest.mark.slow
def test_both_engines_print_the_same_but_for_their_name() -> None:
    fast = call("validate", "intel-npu-cpp")
    slow = call("validate", "intel-npu-cpp", "--engine", "reference")
    assert fast.exit_code == slow.exit_code == 0
    assert fast.stdout.replace("engine fast", "engine reference") == slow.stdout


def test_standard_output_takes_one_form() -> None:
    done = call("validate", "intel-npu-cpp", "--json", "-")
    assert done.exit_code == 0
    assert not done.stderr
    assert [each["key"] for each in json.loads(done.stdout)["groups"]] == ["intel-npu-cpp"]
    done = call("validate", "intel-npu-cpp", "--markdown", "-")
    assert done.stdout.startswith("# Validation\n")
    refused = call("validate", "claims", "--markdown", "-", "--json", "-")
    assert refused.exit_code == 2
    assert refused.stderr == "--markdown -: standard output is taken by --json; expected a file\n"


def test_an_edited_row_is_named_and_gives_exit_code_1(tables: Path, tmp_path: Path) -> None:
    edit(tables, "intel_npu", ",3983,15.16,4545,", ",3983,15.16,4546,")
    done = call("validate", "intel-npu-rtl", "intel-npu-cpp", "--json", str(tmp_path / "v.json"))
    assert done.exit_code == 1
    expected = "intel-npu-rtl: 14_lstm_512_8: latency published 4546 cycles, simulated 4545 (-0.022 %)"
    assert done.stderr.splitlines()[-1] == f"{expected}; expected the same figure"
    assert done.stdout.splitlines()[-1] == "intel-npu-rtl 18 of 19 exact; intel-npu-cpp 19 of 19 exact"
    assert json.loads((tmp_path / "v.json").read_text())["ok"] is False


@pytest.mark.slow
def test_an_edited_claim_gives_exit_code_1(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_kernels(monkeypatch)
    edit(tables, "claims", ",16-64,", ",4-8,")
    done = call("validate", "claims", "--json", "-")
    assert done.exit_code == 1
    assert len(json.loads(done.stdout)["claims"]) == len(published.claims())
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("patent-ep-65536: best EP at NPE = 65536: 4-8 elements: best EP: 64 at 256")


def test_a_lost_row_gives_exit_code_1_and_a_damaged_table_2(tables: Path) -> None:
    path = tables / "intel_npu.csv"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]), encoding="utf-8")
    done = call("validate", "intel-npu-cpp")
    assert done.exit_code == 1
    assert done.stderr == "intel-npu-cpp: 18 rows, expected 19: published rows are missing\n"
    edit(tables, "intel_npu", ",3983,15.16,", ",x,15.16,")
    done = call("validate", "intel-npu-cpp")
    assert done.exit_code == 2
    assert "cpp_cycles: must be a whole number above 0" in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["intel"], "'intel' is not one of"),
        (["--engine", "quick"], "'quick' is not one of"),
        (["--json", "no/such/folder/v.json"], "there is no folder"),
    ],
)
def test_wrong_arguments(arguments: list[str], sentence: str) -> None:
    done = call("validate", *arguments)
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert not done.stdout
