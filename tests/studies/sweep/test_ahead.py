"""Calls computed ahead by worker processes: answers are those of the calls, whatever the workers do."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Iterator

import pytest

from lstmsim.studies.sweep import ahead, processes
from lstmsim.studies.sweep.ahead import Ahead, Workers


def of_workers(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(2) as found:
        yield found


@pytest.mark.slow
def test_answers_come_in_any_order_that_is_asked_for(workers: Workers) -> None:
    ticks: list[int] = []
    run = Ahead(of_workers, workers, lambda: ticks.append(1))
    run.expect((number,) for number in range(100))
    # of what is expected, some are passed over, and others are asked for that nobody expects
    asked = [0, 1, 2, 500, 7, 8, 8, 30, 31, 29, 99]
    answers = [run(number) for number in asked]
    assert [square for square, _ in answers] == [number * number for number in asked]
    assert answers[-1][1] == answers[0][1] == os.getpid() != answers[1][1]
    assert len(ticks) == len(set(asked))


def test_what_was_computed_for_an_earlier_order_is_used(workers: Workers) -> None:
    run = Ahead(of_workers, workers)
    run.expect([(1,), (2,), (3,)])
    run(1)
    run.expect([(3,), (2,)])
    assert os.getpid() not in (run(3)[1], run(2)[1])


def test_expected_calls_are_taken_one_by_one(workers: Workers) -> None:
    taken = []

    def expected() -> Iterator[tuple[int]]:
        for number in range(10_000):
            taken.append(number)
            yield (number,)

    run = Ahead(of_workers, workers)
    run.expect(expected())
    for number in range(5):
        run(number)
    assert len(taken) < 1000


def test_errors_are_those_of_the_call(workers: Workers) -> None:
    run: Ahead[int] = Ahead(operator.floordiv, workers)
    run.expect([(4, 2), (1, 0), (6, 2)])
    assert run(4, 2) == 2
    with pytest.raises(ZeroDivisionError):
        run(1, 0)
    assert run(6, 2) == 3


def dies_elsewhere(parent: int, number: int) -> int:
    if os.getpid() != parent:
        os._exit(3)
    return number


def test_a_call_whose_worker_ends_is_done_here(workers: Workers) -> None:
    run: Ahead[int] = Ahead(dies_elsewhere, workers)
    run.expect([(os.getpid(), number) for number in range(4)])
    assert [run(os.getpid(), number) for number in range(4)] == [0, 1, 2, 3]


def test_without_processes_all_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_Worker", lambda context: pytest.fail("no process may start"))
    monkeypatch.setattr(ahead, "processors", lambda: 4)
    for jobs in (1, None):  # work of less than a second is not worth a process
        with Workers(jobs) as few:
            run = Ahead(of_workers, few)
            run.expect((number,) for number in range(100))
            assert {run(number)[1] for number in range(100)} == {os.getpid()}


@pytest.mark.slow
def test_processes_start_when_the_work_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_WORTH_SECONDS", 0.05)
    monkeypatch.setattr(ahead, "processors", lambda: 2)
    with Workers(None) as later:
        run = Ahead(of_workers, later)
        run.expect((number,) for number in range(100))
        here = run(0)[1]
        time.sleep(0.06)
        assert here == run(1)[1] == os.getpid() != run(2)[1]


def test_workers_that_cannot_start_hold_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_work", os.abort)
    with Workers(2) as none:
        run = Ahead(of_workers, none)
        run.expect((number,) for number in range(20))
        assert {run(number)[1] for number in range(20)} == {os.getpid()}


def test_what_cannot_be_sent_is_done_here(workers: Workers) -> None:
    run: Ahead[int] = Ahead(lambda number: number + 1, workers)
    run.expect((number,) for number in range(3))
    assert [run(number) for number in range(3)] == [1, 2, 3]
