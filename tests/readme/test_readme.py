"""The README tells the truth: everything it shows runs, and what it leads to is there."""

from __future__ import annotations

import importlib.util
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from types import ModuleType

import pytest
from click.testing import CliRunner

from lstmsim import load_scenario
from lstmsim.cli.group import COMMANDS, lstmsim

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8") if README.is_file() else ""

pytestmark = pytest.mark.skipif(not TEXT, reason="the README is in the checkout only")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def commands(block: str) -> list[str]:
    """The command lines of a block; a backslash at the end goes on in the next line."""
    return [line[2:] for line in block.replace("\\\n", " ").splitlines() if line.startswith("$ ")]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the checkout to a reader, but where files can be written."""
    for name in ("experiments", "models"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("readme_tool", ROOT / "tools" / "readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_one_screen_and_leads_on() -> None:
    assert len(TEXT.splitlines()) < 150
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert len(links) > 20
    assert [each for each in links if not (ROOT / each).exists()] == []
    assert all(re.search(rf"`{name}`|lstmsim {name}", TEXT) for name in COMMANDS), "a command that the README hides"


@pytest.mark.needs_core
@pytest.mark.parametrize("block", blocks("console"))
def test_console_blocks_run(block: str, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert commands(block), "a console block without a command"
    # all words of g2p-en take most of the time that the block takes; a long test of an experiment spells them
    monkeypatch.setattr("lstmsim.studies.accuracy.study.read_words", lambda: ("cat", "language"))
    for line in commands(block):
        program, *arguments = shlex.split(line)
        if program == "mkdir":
            (desk / arguments[-1]).mkdir(parents=True, exist_ok=True)
            continue
        if arguments[:2] == ["board", "run"] and (which("iverilog") is None or find_spec("serial") is None):
            pytest.skip(f"{line}: needs iverilog and pyserial")
        assert program == "lstmsim", f"only lstmsim and mkdir can be checked here, not {line!r}"
        result = CliRunner().invoke(lstmsim, arguments)
        assert result.exit_code == 0, f"{line}\n{result.output}"


@pytest.mark.parametrize("block", blocks("python"))
def test_python_blocks_run(block: str, desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block, "README.md", "exec"), {})


@pytest.mark.parametrize("block", blocks("yaml"))
def test_yaml_blocks_are_scenarios(block: str, desk: Path) -> None:
    (desk / "scenario.yaml").write_text(block, encoding="utf-8")
    assert load_scenario(desk / "scenario.yaml").jobs


def test_the_folder_to_activate_is_the_one_that_make_installs_into() -> None:
    (folder,) = re.findall(r"^VENV := (\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert re.search(rf"^\. {re.escape(folder)}/bin/activate ", TEXT, re.MULTILINE)


def test_the_file_of_an_experiment_is_there() -> None:
    named = re.findall(r"`python (experiments/\S+\.py)`", TEXT)
    assert named
    assert all((ROOT / each).is_file() for each in named)
