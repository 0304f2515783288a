"""Sweeps that are killed, and sweeps whose workers are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lstmsim.studies.sweep.run import sweep as run_sweep
from lstmsim.studies.sweep.store import Store
from tests.studies.sweep.specs import spec, table

CHILD = """
import os, signal, sys
from lstmsim.studies.sweep import bulk, run
from lstmsim.studies.sweep.store import Store
from tests.studies.sweep.specs import spec

def killing(self, results, points):
    put(self, results, points)
    Store.left -= len(points)
    if Store.left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    # Every point is a commit, so that a kill finds the file in all its states.
    run.COMMIT_SECONDS, run.pool._MOST_POINTS, bulk.CHUNK = 0, 1, 1
    put, Store.put, Store.left = Store.put, killing, int(sys.argv[3])
    run.sweep(spec(), sys.argv[1], jobs=int(sys.argv[2]))
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}


def child(folder: Path, jobs: int, points: int) -> subprocess.Popen[bytes]:
    """A sweep in a process of its own that kills itself while it writes that point, counted from 1."""
    script = folder / "child.py"
    script.write_text(CHILD, encoding="utf-8")
    return subprocess.Popen([sys.executable, script, folder / "out", str(jobs), str(points)], env=ENVIRONMENT)


def recorded(folder: Path) -> int:
    """Points in the file of a sweep that was killed."""
    with Store(folder / "sweep.sqlite", create=False) as store:
        return len(list(store.statuses()))


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_sweep_killed_while_it_writes_keeps_all_it_had_written(whole: Path, tmp_path: Path, jobs: int) -> None:
    # with two processes while it writes the first point of all: the test below ends it at a later one
    points = (23, 1)[jobs - 1]
    assert child(tmp_path, jobs, points).wait() == -signal.SIGKILL
    assert recorded(tmp_path / "out") == points - 1
    assert run_sweep(spec(), tmp_path / "out", jobs=jobs).progress.reused == points - 1
    assert table(tmp_path / "out") == table(whole)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [2, pytest.param(1, marks=pytest.mark.long)])
def test_a_sweep_killed_at_any_moment_goes_on_to_the_same_table(whole: Path, tmp_path: Path, jobs: int) -> None:
    chance, path = random.Random(jobs), tmp_path / "out" / "sweep.sqlite"
    for _ in range(3 - jobs):
        running, wanted = child(tmp_path, jobs, 1000), chance.randrange(50)
        while running.poll() is None and not (path.exists() and changes(path) >= wanted):
            time.sleep(0.0005)
        running.kill()
        running.wait()
    before = recorded(tmp_path / "out") if path.exists() and path.stat().st_size else 0
    assert run_sweep(spec(), tmp_path / "out", jobs=jobs).progress.reused == before
    assert table(tmp_path / "out") == table(whole)


def changes(path: Path) -> int:
    """The change counter of an SQLite file, read without a lock (bytes 24 to 27 of its header)."""
    with open(path, "rb") as file:
        return int.from_bytes(file.read(28)[24:], "big")
