"""A search that ends when its CPU seconds are used up: by a clock that tests turn, and what is known by then."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import lstmsim
from lstmsim.studies.serve.saturate import EFFORT_SECONDS, _Watch
from lstmsim.studies.serve.saturation import Known, Saturation, Tried, bisect_verdicts

#: Its function has the same name.
module = sys.modules["lstmsim.studies.serve.saturate"]
POISSON = {"kind": "poisson", "rate_per_second": 200_000}
JOB: dict[str, Any] = {"name": "a", "model": "lstm-256", "steps": 2, "arrival": POISSON}
SCENARIO: dict[str, Any] = {"chip": "column-npu-16k", "jobs": [JOB]}
BOUND_MS = 0.002


def ticking(seconds: float = 1.0) -> Callable[[], float]:
    """A clock on which so many seconds pass from one look to the next."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += seconds
        return now

    return clock


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU seconds of a search are those of the tests' clock."""
    monkeypatch.setattr(module, "process_time", ticking())


def stopped(effort: float | None, **more: Any) -> Saturation:
    return lstmsim.saturate(SCENARIO, BOUND_MS, effort=effort, percentile=90.0, **more)


@pytest.mark.slow
@pytest.mark.needs_core
def test_who_has_more_seconds_goes_on_where_the_others_stopped() -> None:
    """The clock only ends the search: the runs of a short one are the first runs of a long one."""
    short, long_ = stopped(9, tolerance=0.001, most_requests=20_000), stopped(40, tolerance=0.001, most_requests=20_000)
    assert (short.ended, short.complete, short.effort_seconds) == ("effort", False, 9)
    assert short.runs == long_.runs[: len(short.runs)]
    assert len(short.runs) < len(long_.runs)
    assert short.rate is not None
    assert long_.rate is not None
    assert long_.fails_from is not None
    assert short.rate <= long_.rate < long_.fails_from <= (short.fails_from or long_.fails_from)
    text = " ".join(Saturation.to_text(short).split())
    assert text.startswith("so far: ")
    assert "stopped after 9 CPU seconds with the rates that were decided until then" in text
    assert "--effort allows more seconds" in text
    assert "--most-requests" not in text


def test_no_time_at_all_says_so() -> None:
    answer = stopped(0.5)
    assert (answer.rate, answer.fails_from, answer.runs) == (None, None, ())
    assert Saturation.to_text(answer).startswith("so far: no rate is known to keep a p90 of 0.002 ms, nor to break it")


@pytest.mark.slow
@pytest.mark.needs_core
def test_an_answer_that_is_near_enough_depends_on_no_clock() -> None:
    one, other = (stopped(effort, tolerance=0.5) for effort in (1e6, 1e7))
    assert (one.ended, one.complete) == ("done", True)
    assert (one.runs, one.rate, one.fails_from) == (other.runs, other.rate, other.fails_from)


@pytest.mark.slow
@pytest.mark.needs_core
def test_a_number_of_requests_alone_needs_no_clock_and_without_it_there_is_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        looks = iter([0.0])
        # to look at the clock once more would be an error
        patch.setattr(module, "process_time", lambda: next(looks))
        answer = stopped(None, most_requests=1000, tolerance=0.5)
    assert (answer.effort_seconds, answer.complete) == (None, True)
    assert max(run.requests for run in answer.runs) == 1000
    assert stopped(None).effort_seconds == EFFORT_SECONDS == 20


@pytest.mark.slow
@pytest.mark.needs_core
def test_progress_is_there_before_the_first_run_and_while_it_lasts() -> None:
    seen: list[tuple[int, int]] = []
    stopped(30, progress=lambda done, of: seen.append((done, of)))
    assert seen[0] == (0, 1000)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > 10


def test_progress_without_a_clock_counts_rates_and_the_requests_of_the_present_one() -> None:
    seen: list[tuple[int, int]] = []
    watch = _Watch(None, lambda done, of: seen.append((done, of)), about=4)
    for done, requests in ((0, 0), (1, 0), (1, 500), (1, 1000), (2, 250), (9, 10)):
        watch.done = done
        watch(requests, 1000)
    assert [done for done, _ in seen] == [0, 0, 0, 125, 250, 312, 1000]


class Unsure:
    """Rates up to 30 keep the bound for certain, those from 60 on break it; between, runs show that 45 are the most.

    enough: by how many requests a rate that is so far from 30 is decided.
    """

    def __init__(self, enough: float = 0.0) -> None:
        self.enough, self.requests = enough, 1.0
        self.judged: list[float] = []

    def judge(self, rate: float) -> Tried:
        self.judged.append(rate)
        if 30 < rate < 60:
            return Tried(rate, None, None, verdict="cannot tell", missing="nobody knows")
        if abs(rate - 30) * self.requests < self.enough:
            return Tried(rate, 1.0, None, verdict="too few", requests=int(self.requests))
        return Tried(rate, 1.0, rate <= 30, verdict="below" if rate <= 30 else "above", requests=int(self.requests))

    def look(self, rate: float) -> Tried:
        if not 30 < rate < 60:
            return self.judge(rate)
        return Tried(
            rate, 1.0, None, verdict="seen below" if rate <= 45 else "seen above", requests=7, missing="nobody"
        )

    def longer(self) -> bool:
        self.requests *= 4
        return self.requests < 1000


def close(lower: float, upper: float) -> bool:
    return upper - lower <= 0.5


def test_what_nobody_knows_is_looked_at() -> None:
    case = Unsure()
    known = bisect_verdicts(case.judge, 1.0, 100.0, close=close, look=case.look)
    assert known.best is not None
    assert known.worst is not None
    assert known.seen is not None
    assert 29.5 <= known.best <= 30
    assert 60 <= known.worst <= 60.5
    keeps, breaks = known.seen
    assert keeps is not None
    assert breaks is not None
    assert 44.5 <= keeps <= 45 < breaks <= 45.5
    assert len({run.rate for run in known.runs}) == len(known.runs)
    answer = Saturation(known.best, known.worst, 1.0, known.runs, known.undecided, seen=known.seen)
    text = " ".join(Saturation.to_text(answer).split())
    assert f"{keeps:,.1f} were seen to hold, {breaks:,.1f} were seen to break it, not certain" in text
    without = bisect_verdicts(case.judge, 1.0, 100.0, close=close)
    assert without[:3] == known[:3]
    assert without.seen is None


def test_longer_runs_draw_the_bracket_closer_and_coarse_ones_come_first() -> None:
    case, at_once = Unsure(enough=40), Unsure(enough=40)
    known = bisect_verdicts(case.judge, 1.0, 30.5, close=close, more=case.longer)
    at_once.requests = 256
    whole = bisect_verdicts(at_once.judge, 1.0, 30.5, close=close)
    assert known.best is not None
    assert whole.best is not None
    assert known.best == pytest.approx(whole.best, abs=0.5)
    assert case.requests >= 64
    assert isinstance(known, Known)
