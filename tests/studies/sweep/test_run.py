"""Whole sweeps: the table is the same whichever processes compute it, and whatever interrupts them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.studies.sweep import dispatch as pool
from lstmsim.studies.sweep import evaluate, run, store
from lstmsim.studies.sweep.columns import NUMBERS
from lstmsim.studies.sweep.dispatch import compute_chunk
from lstmsim.studies.sweep.evaluate import Outcome
from lstmsim.studies.sweep.resolve import Resolver, Setup
from lstmsim.studies.sweep.run import merge, prepare
from lstmsim.studies.sweep.run import sweep as run_sweep
from lstmsim.studies.sweep.store import Store
from tests.studies.sweep.specs import numbers_of_report, rows, spec, table


def test_every_row_has_the_numbers_of_a_simulation_or_its_reason(whole: Path) -> None:
    setup = prepare(spec())
    points = rows(whole)
    assert [int(row["point"]) for row in points] == list(range(60))
    assert {row["status"] for row in points} == {"done", "infeasible"}
    for row in points:
        values = setup.sweep.values(int(row["point"]))
        assert {name: str(value) for name, value in values.items()} == {name: row[name] for name in values}
        if row["status"] == "infeasible":
            assert row["reason"]
            assert not any(row[name] for name in (*NUMBERS, "pareto", "knee"))
            continue
        scenario = Resolver(setup).checked(values)
        numbers = numbers_of_report(scenario, lstmsim.simulate(scenario))
        assert [row[name] for name in NUMBERS] == [str(each) for each in numbers]
    reasons = {row["reason"].partition(":")[0] for row in points if row["reason"]}
    assert reasons == {"vp <= 2 * hidden is false", "chip column-npu", "job m #1"}


@pytest.mark.slow
def test_one_process_two_processes_and_four_merged_shards_give_the_same_table(whole: Path, tmp_path: Path) -> None:
    run_sweep(spec(), tmp_path / "two", jobs=2)
    assert table(tmp_path / "two") == table(whole)
    for index in range(1, 5):
        run_sweep(spec(), tmp_path, jobs=1, shard=(index, 4))
    merged = merge(tmp_path / "all.sqlite", sorted(tmp_path.glob("sweep-*-of-4.sqlite"), reverse=True))
    assert (merged.points, merged.total) == (60, 60)
    assert table(tmp_path, "all") == table(whole)


@pytest.mark.slow
@pytest.mark.usefixtures("one_by_one")
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
    # Another sweep in the same folder simulates only points whose keys are new.
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


@pytest.mark.slow
def test_points_that_come_now_give_the_table_that_is_read_back(tmp_path: Path) -> None:
    named = {"path": "jobs.0.model.name", "values": ["a,b", "=1+1", 'q"x', "1e3", "é", "two words"]}
    every = spec(objectives={"minimise": ["latency_ms_p99"], "maximise": ["utilization", "ep"]})
    every["axes"] = {"name": named, **every["axes"]}
    run_sweep(every, tmp_path, jobs=2)
    first = table(tmp_path)
    (tmp_path / "sweep.csv").unlink()
    assert run_sweep(every, tmp_path, jobs=1).progress.reused == 360
    assert table(tmp_path) == first
    assert b",1,0," in first
    assert b"infeasible" in first


@pytest.mark.usefixtures("one_by_one")
def test_an_error_of_ours_in_one_point_is_kept_and_shown(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = evaluate.simulated

    def broken(chip: Any, jobs: Any) -> Any:
        if chip.cores[0].ep == 4:
            raise ZeroDivisionError("by accident")
        return real(chip, jobs)

    monkeypatch.setattr(evaluate, "simulated", broken)
    result = run_sweep(spec(), tmp_path, jobs=1)
    failed = [row for row in rows(tmp_path) if row["status"] == "failed"]
    assert {row["reason"] for row in failed} == {"internal error: ZeroDivisionError: by accident"}
    assert result.progress.failed == len(failed) > 0
    monkeypatch.undo()
    run_sweep(spec(), tmp_path, jobs=1, retry_failed=True)
    assert table(tmp_path) == table(whole)


@pytest.mark.usefixtures("one_by_one")
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


def test_only_one_process_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_PATIENCE_SECONDS", 0.05)
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


@pytest.mark.usefixtures("one_by_one")
def test_progress_counts_up_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "COMMIT_SECONDS", 0)
    seen: list[run.Progress] = []
    run_sweep(spec(), tmp_path, jobs=1, progress=seen.append)
    assert [each.done for each in seen] == [*range(61), 60]
    assert {each.total for each in seen} == {60}


def test_parquet_holds_the_same_table(whole: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run_sweep(spec(), tmp_path, jobs=1)
    stored = parquet.read_table(tmp_path / "sweep.parquet").to_pylist()
    shown = [{name: "" if value is None else str(value) for name, value in row.items()} for row in stored]
    assert shown == rows(whole)


def test_a_dask_cluster_gives_the_same_table(whole: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster:
        run_sweep(spec(), tmp_path, dask=cluster.scheduler_address)
    assert table(tmp_path) == table(whole)


def test_a_derived_value_that_no_table_holds_makes_its_point_infeasible(tmp_path: Path) -> None:
    axes: dict[str, dict[str, Any]] = {
        "s": {"path": "jobs.0.steps", "values": [2, 9]},
        "big": {"path": "jobs.0.arrival", "expression": "s ** 21 - 1"},
        "small": {"path": "chip.cores.0.switch_cycles", "expression": "min(1, big)"},
    }
    result = run_sweep(spec(axes=axes, constraints=[]), tmp_path, jobs=1)
    assert (result.progress.done, result.progress.infeasible, result.progress.failed) == (2, 1, 0)
    fine, large = rows(tmp_path)
    assert (fine["status"], fine["big"], large["big"]) == ("done", str(2**21 - 1), "")
    assert large["reason"] == "s ** 21 - 1: a whole number of 2**63 or more fits in no table"
    # The largest whole number that fits.
    axes["big"]["expression"] = "2 ** 62 - 1 + 2 ** 62 - s + 2"
    run_sweep(spec(axes=axes, constraints=[]), tmp_path / "edge", jobs=1)
    assert [row["big"] for row in rows(tmp_path / "edge")] == [str(2**63 - 1), str(2**63 - 8)]


SCENARIO_FILE = """
chip: {kind: column-npu, frequency_mhz: 100, cores: [{npe: 64, ep: 4}]}
jobs: [{model: lstm-256, steps: 2, core: 0}, {model: lstm-256, steps: 2, core: 1}]
"""
SWEEP_FILE = """
scenario: sub/base.yaml
axes:
  count: {path: chip.cores.0.count, values: [1, 2]}
  model: {path: jobs.0.model, values: [lstm-256, sub/there.yaml, sub/broken.yaml, sub/ther.yaml]}
"""


@pytest.mark.slow
def test_reasons_do_not_depend_on_how_the_file_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "somewhere"
    inner = folder / "sub" / "sub"
    inner.mkdir(parents=True)
    (folder / "s.yaml").write_text(SWEEP_FILE, encoding="utf-8")
    (folder / "sub" / "base.yaml").write_text(SCENARIO_FILE, encoding="utf-8")
    (inner / "there.yaml").write_text("layers: [{cell: lstm, hidden: 16, input: 16}]", encoding="utf-8")
    (inner / "broken.yaml").write_text("layers: [{cell: lstm, hidden: 0, input: 16}]", encoding="utf-8")
    tables = []
    for number, (start, name) in enumerate(
        [(folder, "s.yaml"), (folder, "./s.yaml"), (folder, str(folder / "s.yaml")), (inner, "../../s.yaml")]
    ):
        monkeypatch.chdir(start)
        run_sweep(name, tmp_path / str(number), jobs=1)
        tables.append(table(tmp_path / str(number)))
    reasons = {row["reason"] for row in rows(tmp_path / "0")}
    assert any("sub/broken.yaml:1" in each for each in reasons), reasons
    assert any("no file called 'sub/ther.yaml'; did you mean 'sub/there.yaml'?" in each for each in reasons), reasons
    assert any(each.startswith("base.yaml:3") for each in reasons), reasons
    assert len(set(tables)) == 1


ARRIVING = """
chip: {kind: column-npu, frequency_mhz: 100, cores: [{npe: 64, ep: 4}]}
jobs: [{model: lstm-256, steps: 2, arrival: {kind: file, path: a.csv}}]
"""


@pytest.mark.parametrize("by", ["scenario", "axis", "override", "override that the axes complete"])
def test_other_arrivals_in_a_file_are_simulated_anew(by: str, tmp_path: Path) -> None:
    text = "scenario: sub/base.yaml\naxes: {steps: {path: jobs.0.steps, values: [2, 3]}}\n"
    overrides, base = [], ARRIVING
    if by == "axis":
        text = "scenario: sub/base.yaml\naxes: {path: {path: jobs.0.arrival.path, values: [a.csv, b.csv]}}\n"
    elif by != "scenario":
        overrides, base = ["jobs.0.arrival.path=a.csv"], ARRIVING.replace("a.csv", "b.csv")
    if by == "override that the axes complete":
        base = base.replace("steps: 2, ", "")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "base.yaml").write_text(base, encoding="utf-8")
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    arrivals = tmp_path / "sub" / "a.csv"
    (tmp_path / "sub" / "b.csv").write_text("arrival_cycles\n0\n", encoding="utf-8")
    results = []
    for start in (100, 9000, 9000):
        arrivals.write_text(f"arrival_cycles\n{start}\n", encoding="utf-8")
        result = run_sweep(tmp_path / "s.yaml", tmp_path, jobs=1, overrides=overrides)
        results.append((int(rows(tmp_path)[0]["makespan_cycles"]), result.progress.reused))
    (first, _), (second, _), again = results
    assert second - first == 9000 - 100
    assert again == (second, 2)


def test_a_pipe_in_place_of_a_file_of_arrivals_does_not_stop_a_sweep(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    (tmp_path / "base.yaml").write_text(ARRIVING, encoding="utf-8")
    (tmp_path / "s.yaml").write_text("scenario: base.yaml\naxes: {n: {path: jobs.0.steps, values: [2]}}\n")
    run_sweep(tmp_path / "s.yaml", tmp_path, jobs=1)
    assert "is a device or a pipe" in rows(tmp_path)[0]["reason"]


def test_truth_values_are_written_as_such(tmp_path: Path) -> None:
    axes = {
        "n": {"path": "jobs.0.steps", "values": [1, 2]},
        "odd": {"path": "jobs.0.name", "expression": "n == 1"},
        "flag": {"path": "chip.cores.0.vp", "values": [True, None]},
    }
    run_sweep(spec(axes=axes, constraints=[]), tmp_path, jobs=1)
    assert [(row["n"], row["odd"], row["flag"]) for row in rows(tmp_path)] == [
        ("1", "true", "true"),
        ("1", "true", ""),
        ("2", "false", "true"),
        ("2", "false", ""),
    ]
