"""`tools/build_wheels.py`: what it does with a wheel, where there is `auditwheel` and where not."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from lstmsim.native.sources import cores_of, library_of
from tools import build_wheels

CORES = cores_of(build_wheels.ROOT / "lstmsim")
NAME = "lstmsim-0.2.0-py3-none-linux_x86_64.whl"
BETTER = "lstmsim-0.2.0-py3-none-manylinux_2_34_x86_64.whl"


pytestmark = pytest.mark.skipif(not CORES, reason="the native sources are in the checkout only")


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What was called; `build` makes a wheel with all libraries, `auditwheel` another one by its better name."""
    called: list[list[str]] = []

    def run(command: Sequence[str], *, check: bool) -> SimpleNamespace:
        assert not check
        called.append([*command])
        built = command[1] == "-m"
        folder = Path(command[command.index("--outdir" if built else "--wheel-dir") + 1])
        folder.mkdir(exist_ok=True)
        with zipfile.ZipFile(folder / (NAME if built else BETTER), "w") as wheel:
            for core in CORES:
                wheel.writestr(library_of(core).relative_to(build_wheels.ROOT).as_posix(), "")
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
    tmp_path: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build_wheels.shutil, "which", lambda name, path=None: None)
    assert build_wheels.repaired(build_wheels.build(tmp_path)) == tmp_path / NAME
    assert len(commands) == 1
    text = f"auditwheel is not installed or not for this system: the tag of {NAME} stays as it is\n"
    assert capsys.readouterr().out == text


@pytest.mark.parametrize("libraries", [(), ("lstmsim/engines/fast/_core.so",)])
def test_a_wheel_that_lacks_a_library_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libraries: tuple[str, ...]
) -> None:
    def run(command: Sequence[str], *, check: bool) -> SimpleNamespace:
        with zipfile.ZipFile(tmp_path / "lstmsim-0.2.0-py3-none-any.whl", "w") as wheel:
            for each in libraries:
                wheel.writestr(each, "")
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SystemExit, match="has not the 3 native libraries"):
        build_wheels.build(tmp_path)
