"""Points go out and come back, each once, whatever becomes of those who compute them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

import pytest

from lstmsim.base.errors import LstmsimError
from lstmsim.studies.sweep import dispatch as pool
from lstmsim.studies.sweep.evaluate import Rows
from lstmsim.studies.sweep.processes import CannotStartError, WorkerEndedError
from lstmsim.studies.sweep.run import prepare
from lstmsim.studies.sweep.run import sweep as run_sweep
from tests.studies.sweep.executors import Dying
from tests.studies.sweep.specs import rows, spec, table

pytestmark = pytest.mark.usefixtures("one_by_one")


def test_a_point_that_kills_its_worker_twice_fails_alone_and_is_retried_on_request(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadly, deaths = {17, 42}, list[int]()
    monkeypatch.setattr("lstmsim.studies.sweep.run.ProcessExecutor", lambda workers: Dying(deadly, deaths))
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
    monkeypatch.setattr("lstmsim.studies.sweep.run.ProcessExecutor", lambda workers: Dying(set(range(60)), []))
    with pytest.raises(LstmsimError, match="before they have done anything"):
        run_sweep(spec(), tmp_path, jobs=2)


class Ends(Executor):
    """Computes at once; after some calls it takes no more, while nothing is under way."""

    def __init__(self, calls: int) -> None:
        self.calls = calls

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        self.calls -= 1
        if self.calls < 0:
            raise BrokenExecutor("a worker died while it had nothing to do")
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **named))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.calls = 0


@pytest.mark.parametrize("calls", [1, 2, 3, 7])
def test_an_executor_that_takes_nothing_any_more_loses_no_point(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_MOST_POINTS", 3)
    setup = prepare(spec())
    found = Rows([], [], [])
    for some in pool.on_executor(setup, range(60), lambda: Ends(calls), 1):
        found.add(some)
    assert sorted(point for point, *_ in found.points) == list(range(60))
    assert {status for _, status, *_ in found.results} == {"done", "infeasible"}


def test_executors_that_only_break_end_the_sweep() -> None:
    setup = prepare(spec())
    with pytest.raises(LstmsimError, match="before they have done anything"):
        list(pool.on_executor(setup, range(60), lambda: Ends(0), 1))


class Fails(Ends):
    """Every call fails with the next error of a list that all such executors share."""

    def __init__(self, errors: list[Exception]) -> None:
        super().__init__(10**6)
        self.errors = errors

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        if not self.errors:
            return super().submit(function, *arguments, **named)
        future: Future[Any] = Future()
        future.set_exception(self.errors.pop(0))
        return future


@pytest.mark.parametrize(
    ("errors", "status"),
    [
        ([WorkerEndedError("killed")], "done"),
        # A worker that could not start has not tried the point.
        ([WorkerEndedError("killed"), CannotStartError("no memory"), CannotStartError("no memory")], "done"),
        ([CannotStartError("no memory"), WorkerEndedError("killed")], "failed"),
        ([WorkerEndedError("killed"), CannotStartError("no memory"), WorkerEndedError("killed")], "failed"),
    ],
)
def test_a_point_fails_only_after_a_second_attempt_of_its_own(errors: list[Exception], status: str) -> None:
    setup = prepare(spec())
    (some,) = pool.on_executor(setup, [5], lambda: Fails(errors), 1)
    assert ([row[0] for row in some.points], [row[1] for row in some.results], errors) == ([5], [status], [])


def test_points_without_an_outcome_are_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inline = pool.inline
    monkeypatch.setattr(pool, "inline", lambda setup, points: inline(setup, list(points)[:50]))
    with pytest.raises(LstmsimError, match="10 points were never computed; the same command computes them"):
        run_sweep(spec(), tmp_path, jobs=1)
    monkeypatch.undo()
    assert run_sweep(spec(), tmp_path, jobs=1).progress.reused == 50
