"""Worker processes: answers come back, and one that ends at the worst moment holds up nobody."""

from __future__ import annotations

import multiprocessing
import operator
import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lstmsim.studies.sweep import dispatch as pool
from lstmsim.studies.sweep import processes, run
from lstmsim.studies.sweep.processes import CannotStartError, ProcessExecutor, WorkerEndedError
from lstmsim.studies.sweep.run import sweep as run_sweep
from tests.studies.sweep.specs import spec, table

SECONDS = 60


@pytest.fixture(scope="module")
def executor() -> Iterator[ProcessExecutor]:
    with ProcessExecutor(2) as found:
        yield found


def test_answers_and_errors_come_back(executor: ProcessExecutor) -> None:
    answers = [executor.submit(operator.floordiv, 100, number) for number in range(20)]
    assert isinstance(answers[0].exception(SECONDS), ZeroDivisionError)
    assert [each.result(SECONDS) for each in answers[1:]] == [100 // number for number in range(1, 20)]
    large = executor.submit(operator.mul, b"a", 10_000_000)
    assert len(large.result(SECONDS)) == 10_000_000
    # What cannot be sent is an error of that call alone.
    assert executor.submit(lambda: 1).exception(SECONDS) is not None
    assert executor.submit(max, 1, 2).result(SECONDS) == 2


#: Half a message, as a worker leaves it that is killed while it writes. The caller's frame has the pipe.
HALF = """
import os, signal, struct, sys
pipe = sys._getframe(1).f_locals["pipe"]
os.write(pipe.fileno(), struct.pack("!i", 1000) + b"half")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("function", "arguments"), [(exec, (HALF, {})), (os._exit, (3,)), (signal.raise_signal, (signal.SIGKILL,))]
)
def test_a_worker_that_ends_loses_its_own_call_only(
    executor: ProcessExecutor, function: Any, arguments: tuple[Any, ...]
) -> None:
    busy = executor.submit(time.sleep, 0.2)
    lost: Future[Any] = executor.submit(function, *arguments)
    assert isinstance(lost.exception(SECONDS), WorkerEndedError)
    assert busy.result(SECONDS) is None
    assert [executor.submit(max, number, 2).result(SECONDS) for number in range(4)] == [2, 2, 2, 3]


def test_workers_that_cannot_start_are_told_from_calls_that_end_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_work", sys.exit)
    with ProcessExecutor(1) as executor:
        assert isinstance(executor.submit(max, 1, 2).exception(SECONDS), CannotStartError)
        with pytest.raises(CannotStartError):
            executor.submit(max, 1, 2)


def test_shutdown_ends_workers_whatever_they_do() -> None:
    executor = ProcessExecutor(1)
    executor.submit(max, 1, 2).result(SECONDS)
    (worker,) = [each.process for each in executor._workers]
    long = [executor.submit(time.sleep, 1000) for _ in range(3)]
    executor.shutdown()
    assert not worker.is_alive()
    assert not wait(long, 0).not_done
    with pytest.raises(RuntimeError, match="have been ended"):
        executor.submit(max, 1, 2)


@pytest.mark.slow
@pytest.mark.usefixtures("one_by_one")
def test_a_sweep_whose_workers_are_killed_gives_the_same_table(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []

    def kill_one(_: run.Progress) -> None:
        for worker in multiprocessing.active_children()[:1]:
            if len(killed) < 5 and worker.pid is not None:
                with suppress(ProcessLookupError):  # one that was killed before is still being replaced
                    os.kill(worker.pid, signal.SIGKILL)
                    killed.append(worker.pid)

    monkeypatch.setattr(run, "COMMIT_SECONDS", 0)
    monkeypatch.setattr(pool, "_MOST_POINTS", 2)
    result = run_sweep(spec(), tmp_path, jobs=2, progress=kill_one)
    assert (len(set(killed)) > 1, result.progress.failed) == (True, 0)
    assert table(tmp_path) == table(whole)
