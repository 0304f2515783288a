"""The README tells the truth: everything it shows runs, and what it leads to is there."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from lstmsim import load_scenario
from lstmsim.cli.group import COMMANDS, command_of, lstmsim

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8") if README.is_file() else ""

pytestmark = pytest.mark.skipif(not TEXT, reason="the README is in the checkout only")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


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


def shown(block: str) -> list[tuple[str, str]]:
    """The command lines of a block, each with the output that is shown below it."""
    parts = re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)
    assert parts[0] == ""
    return [
        (line.partition("  # ")[0].strip(), output) for line, _, output in (each.partition("\n") for each in parts[1:])
    ]


SHOWN = [each for block in blocks("console") for each in shown(block)]
#: Requests that come at random take some seconds.
COMMAND_LINES = [
    pytest.param(*each, id=each[0], marks=[pytest.mark.slow] if each[0].startswith("lstmsim serve") else [])
    for each in SHOWN
    if each[0].startswith("lstmsim ")
]


@pytest.mark.needs_core
@pytest.mark.parametrize(("line", "output"), COMMAND_LINES)
def test_commands_run_and_answer_as_shown(line: str, output: str, desk: Path) -> None:
    result = CliRunner().invoke(lstmsim, shlex.split(line)[1:])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(output), "the output that is shown is another one"
    assert "too few" not in result.output, "an example that does not answer"


def test_the_start_names_the_command_that_passes_the_tests_and_ci_runs_the_same() -> None:
    start = TEXT.partition("\n## Start\n")[2].partition("\n## ")[0]
    lines = [
        line
        for block in re.findall(r"^```console\n(.*?)^```", start, re.DOTALL | re.MULTILINE)
        for line, _ in shown(block)
    ]
    targets = [line.removeprefix("make ") for line in lines if line.startswith("make ")]
    assert targets == ["demo", "test"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{target}: ", makefile, re.MULTILINE) for target in targets)
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in ci if line.startswith("make ")][:2] == [f"make {target}" for target in targets]
    assert [line for line, _ in SHOWN if not line.startswith(("lstmsim ", "make "))] == [
        f". {venv(makefile)}/bin/activate"
    ]


def venv(makefile: str) -> str:
    """The folder that make installs into."""
    (folder,) = re.findall(r"^VENV := (\S+)$", makefile, re.MULTILINE)
    return str(folder)


def test_commands_of_the_table_have_these_options() -> None:
    lines = [line for line in re.findall(r"`(lstmsim [^`]+)`", TEXT) if line.split()[1] in COMMANDS]
    assert len(lines) > 8
    for line in lines:
        name, *arguments = line.split()[1:]
        options = {option for each in command_of(name).params for option in each.opts}
        assert {each for each in arguments if each.startswith("--")} <= options, line


@pytest.mark.parametrize("block", blocks("python"))
def test_python_blocks_run(block: str, desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block, "README.md", "exec"), {})


@pytest.mark.parametrize("block", blocks("yaml"))
def test_yaml_blocks_are_scenarios(block: str, desk: Path) -> None:
    (desk / "scenario.yaml").write_text(block, encoding="utf-8")
    assert load_scenario(desk / "scenario.yaml").jobs


def test_the_file_of_an_experiment_is_there() -> None:
    named = re.findall(r"`python (experiments/\S+\.py)`", TEXT)
    assert named
    assert all((ROOT / each).is_file() for each in named)
