"""`tools/build_wheels.py`: what it does with a wheel, where there is `auditwheel` and where not."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import build_wheels

NAME = "lstmsim-0.1.0-py3-none-linux_x86_64.whl"
BETTER = "lstmsim-0.1.0-py3-none-manylinux_2_34_x86_64.whl"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What was called; `build` makes a wheel with a core, `auditwheel` another one by its better name."""
    called: list[list[str]] = []

    def run(command: Sequence[str], *, check: bool) -> SimpleNamespace:
        assert not check
        called.append([*command])
        built = command[1] == "-m"
        folder = Path(command[command.index("--outdir" if built else "--wheel-dir") + 1])
        folder.mkdir(exist_ok=True)
        with zipfile.ZipFile(folder / (NAME if built else BETTER), "w") as wheel:
            wheel.writestr("lstmsim/engines/fast/_core.so", "")
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "platform", "linux")
    return called


def test_with_auditwheel_the_wheel_gets_its_better_name(
    tmp_path: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_wheels.shutil, "which", lambda name, path=None: f"bin/{name}")
    (tmp_path / "lstmsim-0.0.9-py3-none-any.whl").touch()
    made = build_wheels.repaired(build_wheels.build(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == [BETTER]
    assert made == tmp_path / BETTER
    assert [command[:2] for command in commands] == [[sys.executable, "-m"], ["bin/auditwheel", "repair"]]


def test_without_auditwheel_it_says_so(
    tmp_path: Path,
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(build_wheels.shutil, "which", lambda name, path=None: None)
    assert build_wheels.repaired(build_wheels.build(tmp_path)) == tmp_path / NAME
    assert len(commands) == 1
    text = f"auditwheel is not installed or not for this system: the tag of {NAME} stays as it is\n"
    assert capsys.readouterr().out == text


def test_a_wheel_without_the_core_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: Sequence[str], *, check: bool) -> SimpleNamespace:
        zipfile.ZipFile(tmp_path / "lstmsim-0.1.0-py3-none-any.whl", "w").close()
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SystemExit, match="has no native core"):
        build_wheels.build(tmp_path)
