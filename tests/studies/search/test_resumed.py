"""Searches with the store of a sweep: the same results, and nothing is simulated that the store has."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.studies.search import array
from lstmsim.studies.search.array import different_vps, doublings, limits_of, vp_starts, widest_vp
from lstmsim.studies.sweep.store import Store
from tests.studies.search.test_processes import MIX

NPE = 128
CORE = {"npe": NPE, "ep": 4, "vp": 16, "threads": 2}
CHIP: dict[str, Any] = {"kind": "column-npu", "frequency_mhz": 100, "cores": [CORE, CORE]}
LSTM = {"name": "tiny", "layers": [{"cell": "lstm", "hidden": 12, "input": 10}]}
PLAIN: dict[str, Any] = {"chip": CHIP, "jobs": [{"model": LSTM, "steps": 4, "count": 3}]}


def shown(scenario: Any = PLAIN, npe: int = NPE, **options: Any) -> str:
    told: list[tuple[int, int]] = []
    result = lstmsim.search(
        scenario, npe, exhaustive=True, progress=lambda *counts: told.append(counts), **{"jobs": 1} | options
    )
    return json.dumps([result.to_dict(), told]) + result.to_text()


@pytest.fixture
def simulations(monkeypatch: pytest.MonkeyPatch, one_by_one: None) -> list[Any]:
    """The chips that this process simulates in searches, one by one."""
    made: list[Any] = []
    simulated = array.simulated
    monkeypatch.setattr(array, "simulated", lambda chip, jobs: made.append(chip) or simulated(chip, jobs))
    return made


def pairs() -> list[tuple[int, int]]:
    """Every pair that a search may try."""
    limits = limits_of([job.model for job in lstmsim.Scenario(**PLAIN).jobs], 64)
    starts = vp_starts(limits)
    return [(ep, vp) for ep in doublings(limits, NPE) for vp in different_vps(starts, widest_vp(limits, NPE, ep)[0])]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "npe", "jobs"),
    [
        (PLAIN, NPE, 1),
        (MIX, 512, 2),
        *(pytest.param(*each, marks=pytest.mark.long) for each in ((PLAIN, NPE, 2), (MIX, 512, 1))),
    ],
)
def test_result_and_progress_are_those_of_the_plain_search(
    scenario: Any, npe: int, jobs: int, tmp_path: Path, simulations: list[Any]
) -> None:
    plain = shown(scenario, npe)
    assert [shown(scenario, npe, folder=tmp_path, jobs=jobs) for _ in range(2)] == [plain, plain]
    simulations.clear()
    assert shown(scenario, npe, folder=tmp_path) == plain
    assert not simulations


def test_after_a_sweep_nothing_is_simulated_and_the_sweep_stays(tmp_path: Path, simulations: list[Any]) -> None:
    plain = shown()
    assert simulations
    every = pairs()
    axes = {
        name: {"path": [f"chip.cores.{core}.{name}" for core in (0, 1)], "values": sorted({pair[at] for pair in every})}
        for at, name in enumerate(("ep", "vp"))
    }
    spec = {"scenario": PLAIN, "axes": axes}
    swept = lstmsim.sweep(spec, tmp_path, jobs=1)
    table = Path(swept.tables[0]).read_bytes()
    simulations.clear()
    assert shown(folder=tmp_path) == plain
    assert not simulations
    again = lstmsim.sweep(spec, tmp_path, jobs=1)
    assert (again.progress.reused, Path(again.tables[0]).read_bytes()) == (again.progress.total, table)


def test_a_sweep_takes_what_a_search_kept(tmp_path: Path) -> None:
    result = lstmsim.search(PLAIN, NPE, folder=tmp_path).common.walk.chosen
    axes = {
        name: {"path": [f"chip.cores.{core}.{name}" for core in (0, 1)], "values": [value]}
        for name, value in (("ep", result.ep), ("vp", result.vp))
    }
    assert lstmsim.sweep({"scenario": PLAIN, "axes": axes}, tmp_path, jobs=1).progress.reused == 1
    with Store(tmp_path / "sweep.sqlite", create=False) as store:
        assert list(store.rows(["makespan_cycles"])) == [(result.cycles,)]


@pytest.mark.parametrize(
    "other",
    [
        {"chip": {**CHIP, "cores": [{**CORE, "threads": 1}] * 2}},
        {"jobs": [{"model": {"name": "tiny", "layers": [{"cell": "gru", "hidden": 12, "input": 10}]}, "steps": 4}]},
    ],
)
def test_another_chip_or_model_does_not_match(other: Any, tmp_path: Path, simulations: list[Any]) -> None:
    changed = PLAIN | other
    plain, count = shown(changed), len(simulations)
    shown(folder=tmp_path)
    simulations.clear()
    assert shown(changed, folder=tmp_path) == plain
    assert len(simulations) == count


def test_a_damaged_row_is_simulated_again(tmp_path: Path, simulations: list[Any]) -> None:
    plain = shown(folder=tmp_path)
    for expected in (1, 0):
        with closing(sqlite3.connect(tmp_path / "sweep.sqlite")) as sql, sql:
            text = "UPDATE results SET makespan_cycles = 1 WHERE key = (SELECT min(key) FROM results)"
            sql.execute(text if expected else "SELECT 1")
        simulations.clear()
        assert shown(folder=tmp_path) == plain
        assert len(simulations) == expected


def test_a_store_of_another_format_is_refused_as_by_a_sweep(tmp_path: Path) -> None:
    shown(folder=tmp_path)
    with closing(sqlite3.connect(tmp_path / "sweep.sqlite")) as sql, sql:
        sql.execute("UPDATE meta SET content = 'lstmsim sweep 99' WHERE name = 'format'")
    said = []
    axes = {"n": {"path": "jobs.0.steps", "values": [1]}}
    for call in (
        lambda: lstmsim.search(PLAIN, NPE, folder=tmp_path),
        lambda: lstmsim.sweep({"scenario": PLAIN, "axes": axes}, tmp_path),
    ):
        with pytest.raises(InputError) as caught:
            call()
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "is no table of a sweep that this version of lstmsim can read" in said[0]


def test_one_core_of_several_has_no_store(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^folder: keeps numbers of whole chips, not of one core of several"):
        lstmsim.search(PLAIN, NPE, core=1, folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()


#: A search that is killed in its fourth simulation.
KILLED = """
import os, signal, sys, lstmsim
from lstmsim.studies.sweep.bulk import Parts
Parts.results = lambda *_: {}  # pairs one by one
from lstmsim.studies.search import array
from lstmsim.studies.sweep import store
store.COMMIT_SECONDS = 0
made, simulated = [], array.simulated
def counted(*given):
    made.append(given)
    return os.kill(os.getpid(), signal.SIGKILL) if len(made) == 4 else simulated(*given)
array.simulated = counted
lstmsim.search(eval(sys.argv[2]), int(sys.argv[3]), exhaustive=True, jobs=1, folder=sys.argv[1])
"""


@pytest.mark.slow
def test_a_killed_search_goes_on(tmp_path: Path, simulations: list[Any]) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), repr(PLAIN), str(NPE)], check=False)
    assert ended.returncode == -signal.SIGKILL
    plain, count = shown(), len(simulations)
    simulations.clear()
    assert shown(folder=tmp_path) == plain
    assert len(simulations) == count - 3
