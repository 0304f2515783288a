"""How often the verdict at open arrivals is wrong: pairs of machines whose true difference is known."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import fmean
from typing import Any

import pytest

import lstmsim
from lstmsim.studies.diff.arrivals import arrivals_of, verdict_of
from lstmsim.studies.diff.sides import Side, of_run, paired
from tests.strategies import examples

#: Requests a second, with how many come: offered loads of 0.13 to 0.77.
RATES = {4e5: 600, 1e6: 1000, 2e6: 4000, 2.4e6: 10_000}


@dataclass(frozen=True)
class Case:
    """How B differs from A: other arrivals, other lengths of the requests (drawn by the same law), cycles of the
    writeback. Without the last the sides could be exchanged, so that the true difference is 0."""

    arrivals: bool
    lengths: bool
    writeback: int


CASES = {
    "other lengths": Case(False, True, 4),
    "other requests": Case(True, True, 4),
    "slower, same requests": Case(False, False, 6),
    "slower, other lengths": Case(False, True, 8),
}
#: As all machines have it.
WRITEBACK = 4


@dataclass(frozen=True)
class Rate:
    """Of `runs` pairs: how many were told apart, in how many the verdict is wrong, and in how many there is an
    interval, and one that does not hold the truth."""

    runs: int
    told: int
    wrong: int
    known: int
    missed: int


def side(rate: float, count: int, arrivals: int, lengths: int, writeback: int) -> Side:
    job = {
        "model": "lstm-256",
        "steps": {"kind": "uniform", "low": 1, "high": 3, "seed": lengths},
        "count": count,
        "arrival": {"kind": "poisson", "rate_per_second": rate, "seed": arrivals},
    }
    scenario: dict[str, Any] = {"chip": "column-npu-16k", "jobs": [job]}
    return of_run("", lstmsim.run(scenario, overrides=[f"chip.cores.0.latency.writeback={writeback}"]))


def rate_of(case: Case, rate: float, count: int, runs: int) -> Rate:
    made = []
    for number in range(0, 2 * runs, 2):
        a = side(rate, count, number, number, WRITEBACK)
        b = side(rate, count, number + case.arrivals, number + case.lengths, case.writeback)
        found = arrivals_of(a, b, paired(a.jobs, b.jobs))
        assert found is not None
        assert found.same != case.arrivals
        made.append((found.difference_ms["mean"], verdict_of(found)))
    # of machines with a difference the truth is that of all runs together, which is some twenty times as exact
    truth = fmean(each.value for each, _ in made) if case.writeback != WRITEBACK else 0.0
    told = [(each.value, verdict) for each, verdict in made if verdict != "cannot tell"]
    wrong = sum(not truth or (value > 0) != (truth > 0) for value, _ in told)
    known = [each for each, _ in made if each.half_width is not None]
    return Rate(runs, len(told), wrong, len(known), sum(not each.holds(truth) for each in known))


def allowed(runs: int) -> int:
    """So many of the runs may be wrong if the error is one of 5 %: three standard deviations more."""
    return ceil(0.05 * runs + 3 * sqrt(0.05 * 0.95 * runs))


def rates(runs: int) -> Iterator[tuple[str, float, Rate]]:
    for name, case in CASES.items():
        for rate, count in RATES.items():
            yield name, rate, rate_of(case, rate, count, runs)


@pytest.mark.slow
@pytest.mark.needs_core
@pytest.mark.parametrize("case", ["other lengths", "other requests"])
def test_equal_machines_are_rarely_told_apart(case: str) -> None:
    found = rate_of(CASES[case], 1e6, 600, 12)
    assert found.known > 9
    assert found.wrong == found.told == found.missed <= allowed(12)


@pytest.mark.needs_core
@pytest.mark.long
def test_verdicts_keep_their_5_percent() -> None:
    """Prints a table, from which that in docs/diff.md is made."""
    bad = []
    for case, rate, found in rates(min(examples(100), 400)):
        line = f"| {case} | {rate:g} | {found.runs} | {found.told} | {found.wrong} | {found.known} | {found.missed} |"
        print(line, file=sys.stderr)
        if found.wrong > allowed(found.runs) or found.missed > allowed(found.known):
            bad.append(line)
    assert not bad
