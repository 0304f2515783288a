"""Whole sweeps: who computes and what interrupts them changes nothing in the table."""

from __future__ import annotations

import csv
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.errors import InputError, LstmsimError
from lstmsim.sweep import evaluate, pool, run
from lstmsim.sweep.evaluate import NUMBERS, Outcome, compute_chunk
from lstmsim.sweep.merge import merge
from lstmsim.sweep.prepare import prepare
from lstmsim.sweep.resolve import Resolver, Setup
from lstmsim.sweep.run import run_sweep
from lstmsim.sweep.store import Store
from tests.sweep.specs import spec


def table(folder: Path, name: str = "sweep") -> bytes:
    return (folder / f"{name}.csv").read_bytes()


def rows(folder: Path) -> list[dict[str, str]]:
    with open(folder / "sweep.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small sweep, run in this process without a break."""
    folder = tmp_path_factory.mktemp("whole")
    run_sweep(spec(), folder, jobs=1)
    return folder


def test_every_row_has_the_numbers_of_a_simulation_or_its_reason(whole: Path) -> None:
    setup, _ = prepare(spec())
    found = rows(whole)
    assert [int(row["point"]) for row in found] == list(range(60))
    assert {row["status"] for row in found} == {"done", "infeasible"}
    for row in found:
        values = setup.sweep.values(int(row["point"]))
        assert {name: str(value) for name, value in values.items()} == {name: row[name] for name in values}
        if row["status"] == "infeasible":
            assert row["reason"]
            assert not any(row[name] for name in (*NUMBERS, "pareto", "knee"))
            continue
        scenario = Resolver(setup).checked(values)
        numbers = evaluate.numbers_of(scenario, lstmsim.simulate(scenario))
        assert [row[name] for name in NUMBERS] == [str(each) for each in numbers]
    reasons = {row["reason"].partition(":")[0] for row in found if row["reason"]}
    assert reasons == {"vp <= 2 * hidden is false", "chip column-npu", "job m-a"}


def test_one_process_two_processes_and_four_merged_shards_give_the_same_table(whole: Path, tmp_path: Path) -> None:
    run_sweep(spec(), tmp_path / "two", jobs=2)
    assert table(tmp_path / "two") == table(whole)
    for index in range(1, 5):
        run_sweep(spec(), tmp_path, jobs=1, shard=(index, 4))
    merged = merge(tmp_path / "all.sqlite", sorted(tmp_path.glob("sweep-*-of-4.sqlite"), reverse=True))
    assert (merged.points, merged.total) == (60, 60)
    assert table(tmp_path, "all") == table(whole)


def test_what_has_a_result_is_not_computed_again(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []

    def counting(setup: Setup, points: Sequence[int]) -> list[Outcome]:
        computed.extend(points)
        return compute_chunk(setup, points)

    monkeypatch.setattr(pool, "compute_chunk", counting)
    run_sweep(spec(), tmp_path, jobs=1)
    assert computed == list(range(60))
    assert run_sweep(spec(), tmp_path, jobs=1).progress.reused == 60
    assert len(computed) == 60
    # Another spec in the same folder: only what is new is simulated, by the key of what is simulated.
    axes = spec()["axes"]
    axes["hidden"] = {**axes["hidden"], "to": 40}
    result = run_sweep(spec(axes=axes), tmp_path, jobs=1)
    done = [row for row in rows(whole) if row["status"] == "done"]
    assert result.progress.reused == len(done)
    run_sweep(spec(axes=axes), tmp_path / "fresh", jobs=1)
    assert table(tmp_path) == table(tmp_path / "fresh")
    computed.clear()
    run_sweep(spec(), tmp_path, jobs=1, resume=False)
    assert computed == list(range(60))


CHILD = """
import os, signal, sys
from lstmsim.sweep import run
from lstmsim.sweep.store import Store
from tests.sweep.specs import spec

def killing(self, results, points):
    put(self, results, points)
    Store.left -= len(points)
    if Store.left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    # Every point is a commit, so that a kill finds the file in all its states.
    run._COMMIT_POINTS = run.pool._MOST_POINTS = 1
    put, Store.put, Store.left = Store.put, killing, int(sys.argv[3])
    run.run_sweep(spec(), sys.argv[1], jobs=int(sys.argv[2]))
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def child(folder: Path, jobs: int, points: int) -> subprocess.Popen[bytes]:
    """A sweep in a process of its own that kills itself while it writes that point, counted from 1."""
    script = folder / "child.py"
    script.write_text(CHILD, encoding="utf-8")
    return subprocess.Popen([sys.executable, script, folder / "out", str(jobs), str(points)], env=ENVIRONMENT)


def recorded(folder: Path) -> int:
    """Points in the file of a sweep that was killed."""
    with Store(folder / "sweep.sqlite", create=False) as store:
        return len(list(store.statuses()))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_sweep_killed_while_it_writes_keeps_all_it_had_written(whole: Path, tmp_path: Path, jobs: int) -> None:
    before = 0
    for points in (1, 9, 23):
        assert child(tmp_path, jobs, points).wait() == -signal.SIGKILL
        assert recorded(tmp_path / "out") == before + points - 1
        before += points - 1
    assert run_sweep(spec(), tmp_path / "out", jobs=jobs).progress.reused == before == 30
    assert table(tmp_path / "out") == table(whole)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_sweep_killed_at_any_moment_goes_on_to_the_same_table(whole: Path, tmp_path: Path, jobs: int) -> None:
    chance, path = random.Random(jobs), tmp_path / "out" / "sweep.sqlite"
    for _ in range(2):
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


class Dying(Executor):
    """Computes in threads; some points break it, as a worker that dies breaks a pool of processes."""

    def __init__(self, deadly: set[int], deaths: list[int]) -> None:
        self.threads = ThreadPoolExecutor(1)
        self.deadly, self.deaths = deadly, deaths
        self.broken = False

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        if self.broken:
            raise BrokenProcessPool("broken before")

        def work() -> Any:
            found = self.deadly & set(arguments[1])
            if found or self.broken:
                self.broken = True
                self.deaths.extend(found)
                raise BrokenProcessPool("a worker died")
            return function(*arguments)

        return self.threads.submit(work)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.threads.shutdown(wait, cancel_futures=cancel_futures)


def test_a_point_that_kills_its_worker_twice_fails_alone_and_is_retried_on_request(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadly, deaths = {17, 42}, list[int]()
    monkeypatch.setattr(pool, "process_executor", lambda workers: Dying(deadly, deaths))
    result = run_sweep(spec(), tmp_path, jobs=2)
    assert sorted(deaths) == [17, 17, 42, 42]
    assert (result.progress.done, result.progress.failed) == (60, 2)
    failed = [row for row in rows(tmp_path) if row["status"] == "failed"]
    assert [int(row["point"]) for row in failed] == [17, 42]
    assert all("its worker ended" in row["reason"] for row in failed)
    deadly.clear()
    assert run_sweep(spec(), tmp_path, jobs=2).progress.failed == 2
    assert run_sweep(spec(), tmp_path, jobs=2, retry_failed=True).progress.failed == 0
    assert table(tmp_path) == table(whole)


def test_workers_that_cannot_start_end_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "process_executor", lambda workers: Dying(set(range(60)), []))
    with pytest.raises(LstmsimError, match="before they have done anything"):
        run_sweep(spec(), tmp_path, jobs=2)


def test_an_error_of_ours_in_one_point_is_kept_and_shown(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = evaluate._simulate

    def broken(scenario: Any) -> Any:
        if scenario.chip.cores[0].ep == 4:
            raise ZeroDivisionError("by accident")
        return real(scenario)

    monkeypatch.setattr(evaluate, "_simulate", broken)
    result = run_sweep(spec(), tmp_path, jobs=1)
    failed = [row for row in rows(tmp_path) if row["status"] == "failed"]
    assert {row["reason"] for row in failed} == {"internal error: ZeroDivisionError: by accident"}
    assert result.progress.failed == len(failed) > 0
    monkeypatch.undo()
    run_sweep(spec(), tmp_path, jobs=1, retry_failed=True)
    assert table(tmp_path) == table(whole)


def test_an_interrupt_keeps_what_came_in(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(setup: Setup, points: Iterator[int]) -> pool.Results:
        for number, outcomes in enumerate(pool_inline(setup, points)):
            yield outcomes
            if number == 6:
                raise KeyboardInterrupt

    pool_inline = pool.inline
    monkeypatch.setattr(pool, "inline", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(spec(), tmp_path, jobs=1)
    monkeypatch.undo()
    assert run_sweep(spec(), tmp_path, jobs=1).progress.reused == 7
    assert table(tmp_path) == table(whole)


def test_only_one_process_writes(tmp_path: Path) -> None:
    run_sweep(spec(), tmp_path, jobs=1)
    with Store(tmp_path / "sweep.sqlite", create=True), pytest.raises(InputError, match="another process writes"):
        run_sweep(spec(), tmp_path, jobs=1)


@pytest.mark.parametrize("content", [b"", b"no database, but quite long " * 100, "sqlite"])
def test_a_file_that_is_no_sweep_is_refused_or_begun(tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "sweep.sqlite"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE mine (a)")
        other.close()
    if content == b"":
        assert run_sweep(spec(), tmp_path, jobs=1).progress.done == 60
        return
    before = path.read_bytes()
    with pytest.raises(InputError, match="is no table of a sweep"):
        run_sweep(spec(), tmp_path, jobs=1)
    assert path.read_bytes() == before


def test_merge_refuses_what_does_not_belong_together(whole: Path, tmp_path: Path) -> None:
    run_sweep(spec(), tmp_path, jobs=1, shard=(1, 2))
    run_sweep(spec(constraints=[]), tmp_path / "other", jobs=1, shard=(2, 2))
    half, other = tmp_path / "sweep-1-of-2.sqlite", tmp_path / "other" / "sweep-2-of-2.sqlite"
    with pytest.raises(InputError, match="is of another sweep"):
        merge(tmp_path / "all.sqlite", [half, other])
    with pytest.raises(InputError, match="is the output too"):
        merge(half, [half])
    with pytest.raises(InputError, match="no file called"):
        merge(tmp_path / "all.sqlite", [tmp_path / "none.sqlite"])
    changed = sqlite3.connect(half)
    changed.execute("UPDATE results SET makespan_cycles = makespan_cycles + 1 WHERE status = 'done'")
    changed.commit()
    changed.close()
    with pytest.raises(InputError, match=r"point \d+ has another result there"):
        merge(tmp_path / "both.sqlite", [whole / "sweep.sqlite", half])


def test_merge_takes_what_is_done_over_what_failed(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "process_executor", lambda workers: Dying({5, 8}, []))
    run_sweep(spec(), tmp_path, jobs=2)
    for order in ([tmp_path, whole], [whole, tmp_path]):
        out = tmp_path / f"from-{order[0].name}.sqlite"
        merge(out, [each / "sweep.sqlite" for each in order])
        assert out.with_suffix(".csv").read_bytes() == table(whole)


def test_progress_counts_up_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_COMMIT_POINTS", 7)
    seen: list[run.Progress] = []
    run_sweep(spec(), tmp_path, jobs=1, progress=seen.append)
    assert [each.done for each in seen] == [0, 7, 14, 21, 28, 35, 42, 49, 56, 60]
    assert {each.total for each in seen} == {60}


def test_parquet_holds_the_same_table(whole: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run_sweep(spec(), tmp_path, jobs=1)
    found = parquet.read_table(tmp_path / "sweep.parquet").to_pylist()
    shown = [{name: "" if value is None else str(value) for name, value in row.items()} for row in found]
    assert shown == rows(whole)


def test_a_dask_cluster_gives_the_same_table(whole: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster:
        run_sweep(spec(), tmp_path, dask=cluster.scheduler_address)
    assert table(tmp_path) == table(whole)
