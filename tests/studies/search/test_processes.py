"""Searches on several processes: the same result to the last byte, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

import lstmsim
from lstmsim.model.scenario import Scenario
from lstmsim.studies.search.run import search
from lstmsim.studies.sweep.bulk import Parts
from tests.studies.search.test_exhaustive import random_searched
from tests.studies.sweep.workers import answered

MIX: dict[str, Any] = {
    "chip": {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 16, "threads": 2}]},
    "jobs": [
        {"model": {"name": "tiny", "layers": [{"cell": "lstm", "hidden": 24, "input": 20}]}, "steps": 4},
        {"model": {"name": "wide", "layers": [{"cell": "gru", "hidden": 50, "input": 30}]}, "steps": 3},
    ],
}


def shown(jobs: int, **options: Any) -> str:
    told: list[tuple[int, int]] = []
    result = lstmsim.search(MIX, 512, jobs=jobs, progress=lambda *counts: told.append(counts), **options)
    return json.dumps([result.to_dict(), told]) + result.to_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "several"),
    [
        ({}, (3,)),
        ({"exhaustive": True}, (2,)),
        # two processes and any EP: `test_a_search_in_bulk_tells_what_a_search_pair_by_pair_tells`
        pytest.param({"exhaustive": True, "any_ep": True}, (3,), marks=pytest.mark.long),
    ],
)
def test_result_and_progress_are_equal_for_any_number_of_processes(
    options: dict[str, bool], several: tuple[int, ...]
) -> None:
    alone = shown(1, **options)
    assert {shown(jobs, **options) for jobs in several} == {alone}


@pytest.mark.slow
@pytest.mark.halved
@pytest.mark.parametrize("seed", range(200, 204))
def test_random_searches_are_equal(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = random_searched(Random(seed), 30)
    made = Scenario(searched.chip, searched.jobs)
    core = None if len(searched.cores) == len(searched.chip.cores) else searched.cores[0]
    one, two = (search(made, 30, exhaustive=True, any_ep=True, core=core, jobs=jobs) for jobs in (1, 2))
    monkeypatch.setattr(Parts, "results", lambda *_: {})
    alone = search(made, 30, exhaustive=True, any_ep=True, core=core, jobs=1)
    assert repr(one) == repr(two) == repr(alone)


@pytest.mark.slow
@pytest.mark.needs_core
def test_a_search_in_bulk_tells_what_a_search_pair_by_pair_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    results, computed = Parts.results, list[Any]()
    monkeypatch.setattr(Parts, "results", lambda *given: computed.append(results(*given)) or computed[-1])
    several = [shown(2, exhaustive=True, any_ep=any_ep) for any_ep in (False, True)]
    assert sum(map(len, computed)) > 100
    monkeypatch.setattr(Parts, "results", lambda *_: {})
    assert several == [shown(1, exhaustive=True, any_ep=any_ep) for any_ep in (False, True)]


@pytest.mark.slow
@pytest.mark.usefixtures("one_by_one")
def test_workers_simulate_most_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = answered(monkeypatch)
    result = lstmsim.search(MIX, 512, exhaustive=True, jobs=2)
    assert result.common.exhaustive is not None
    assert len(sent) > result.common.exhaustive.simulated / 2


LONG = """
import signal, lstmsim
from lstmsim.studies.sweep.bulk import Parts
Parts.results = lambda *_: {}  # pairs one by one
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs tests in the background has them ignore it
job = {"model": "lstm-512", "steps": 200, "count": 40, "frame_interval": 1}
print("begins", flush=True)
lstmsim.search({"chip": "column-npu-64k", "jobs": [job]}, 65536, exhaustive=True, any_ep=True, jobs=2)
"""


def children(parent: int) -> set[int]:
    """Processes below one, and those below them."""
    parents = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, below = set[int](), {parent}
    while below:
        below = {child for child, own in parents.items() if own in below} - found
        found |= below
    return found


@pytest.mark.slow
@pytest.mark.needs_core
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are counted in /proc")
@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, *(pytest.param(each, marks=pytest.mark.long) for each in (signal.SIGTERM, signal.SIGINT))],
)
def test_a_killed_search_leaves_no_processes(number: signal.Signals) -> None:
    until = time.monotonic() + 60
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"begins\n"
        # the server that starts workers, two of these, and the process of the standard library that cleans up
        while len(left := children(running.pid)) < 4 and running.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        os.kill(running.pid, number)
        assert running.wait(60) != 0
    assert len(left) >= 4
    while any(Path(f"/proc/{each}").exists() for each in left) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [each for each in left if Path(f"/proc/{each}").exists()]
