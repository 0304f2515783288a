"""`benchmarks/`: what is measured is the package of the Python that runs them, with its native core."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lstmsim

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are in the checkout only")


def ran(code: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Python that finds a package `lstmsim` in a folder before any other, started in the benchmarks' folder."""
    (folder / "lstmsim").symlink_to(Path(lstmsim.__file__).parent)
    environment = {key: value for key, value in os.environ.items() if key != "LSTMSIM_BENCHMARKS_SAID"}
    environment["PYTHONPATH"] = str(folder)
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, cwd=BENCHMARKS, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.needs_core
def test_the_installed_package_is_measured_and_named(tmp_path: Path) -> None:
    """`build_cost` put the checkout before what is installed."""
    done = ran("import build_cost, measures; measures.measured_package()", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        f"measured: lstmsim {lstmsim.__version__} of {tmp_path / 'lstmsim'}, fast engine with its native core\n"
    )


@pytest.mark.slow
def test_without_the_native_core_nothing_is_measured(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from lstmsim.native.library import Library\nLibrary.absence = 'it was not built'\n", encoding="utf-8"
    )
    done = ran("import measures; measures.measured_package(); print('measured all the same')", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing to measure, the fast engine has no native core: it was not built" in done.stderr
