"""Run the tests against the built wheel, away from the checkout, with the newest and the lowest versions allowed.

    python tools/check_wheel.py [newest|lowest] [pytest arguments]

The wheel is built from the source distribution, so both are complete or this fails. It is installed in fresh
environments beside copies of `tests/`, `tools/` and `experiments/`; nothing of the checkout can be imported there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EDITIONS = ("newest", "lowest")

_WHERE = "import lstmsim, sys; print(lstmsim.__file__); sys.exit(not lstmsim.__file__.startswith(sys.prefix))"


def lowest_pins() -> list[str]:
    """`name==lower bound` of each direct dependency of the package and of the extra `onnx`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = []
    for requirement in (*project["dependencies"], *project["optional-dependencies"]["onnx"]):
        match = re.fullmatch(r"([\w.-]+)>=([\w.]+),<[\w.]+", requirement)
        if not match:
            raise SystemExit(f"{requirement}: expected NAME>=LOWEST,<LIMIT")
        pins.append(f"{match[1]}=={match[2]}")
    return pins


def run(*command: str | Path, cwd: Path, path: Path | None = None) -> None:
    """Run a command without the variables that could lead Python to the checkout; stop here if it fails.

    path: a further folder that Python imports from; None: no other.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"PYTHONPATH": str(path)} if path else {}
    print("+", *command, flush=True)
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"failed with exit code {done.returncode}")


def build(folder: Path) -> Path:
    """The wheel, built from the source distribution."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def check(edition: str, wheel: Path, folder: Path, pytest_arguments: list[str]) -> None:
    """Install the wheel in a fresh environment in `folder` and run the tests there."""
    for name in ("tests", "tools", "experiments"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    run(sys.executable, "-m", "venv", "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    pins = lowest_pins() if edition == "lowest" else []
    run(python, "-m", "pip", "--disable-pip-version-check", "install", "-q", f"{wheel}[test,onnx]", *pins, cwd=folder)
    run(python, "-m", "pip", "--disable-pip-version-check", "list", cwd=folder)
    run(python, "-I", "-c", _WHERE, cwd=folder)
    run(folder / "venv" / "bin" / "lstmsim", "list", cwd=folder)
    # Old releases warn about newer neighbours; that is no fault of this package.
    lenient = ["-W", "default"] if edition == "lowest" else []
    # Scripts of experiments import their neighbours, which an installation from the checkout leads them to.
    run(python, "-m", "pytest", "-n", "2", *lenient, *pytest_arguments, cwd=folder, path=folder)


def main() -> None:
    """Build once, check the editions asked for (default: both)."""
    arguments = sys.argv[1:]
    editions = [each for each in arguments if each in EDITIONS] or list(EDITIONS)
    rest = [each for each in arguments if each not in EDITIONS]
    with tempfile.TemporaryDirectory(prefix="lstmsim-wheel-") as name:
        folder = Path(name)
        (folder / "dist").mkdir()
        wheel = build(folder / "dist")
        for edition in editions:
            (folder / edition).mkdir()
            check(edition, wheel, folder / edition, rest)
    print(f"the wheel passes with the {' and the '.join(editions)} versions")


if __name__ == "__main__":
    main()
