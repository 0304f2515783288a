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
from lstmsim.studies.diff.sides import Side, paired
from tests.strategies import examples

#: Rates of each of two kinds of requests, a second, with how many of each kind come: offered loads of 0.13 to 0.77.
RATES = {2e5: 300, 5e5: 500, 1e6: 2000, 1.2e6: 5000}
#: What the sides run: steps of both kinds of requests, the cycles of the writeback, whether the requests are the same.
#: Of `mirrored` and `other requests` the true difference is 0, for exchanging the kinds, or the seeds, is exchanging
#: the sides. In the others B is slower in every request, or (`mixed`) on the average only.
CASES: dict[str, tuple[tuple[int, int, int], tuple[int, int, int], bool]] = {
    "mirrored": ((1, 3, 4), (3, 1, 4), True),
    "other requests": ((1, 3, 4), (1, 3, 4), False),
    "slower": ((1, 3, 4), (1, 3, 6), True),
    "mixed": ((1, 3, 4), (3, 1, 8), True),
}


@dataclass(frozen=True)
class Rate:
    """Of `runs` pairs: how many were told apart, in how many the verdict is wrong, and in how many there is an
    interval, and one that does not hold the truth."""

    runs: int
    told: int
    wrong: int
    known: int
    missed: int


def side(rate: float, count: int, seed: int, steps: tuple[int, int, int]) -> Side:
    arrivals = ({"kind": "poisson", "rate_per_second": rate, "seed": 2 * seed + number} for number in (0, 1))
    jobs = [
        {"name": name, "model": "lstm-256", "steps": own, "count": count, "arrival": each}
        for name, own, each in zip("xy", steps[:2], arrivals, strict=True)
    ]
    scenario: dict[str, Any] = {"chip": "column-npu-16k", "jobs": jobs}
    run = lstmsim.run(scenario, overrides=[f"chip.cores.0.latency.writeback={steps[2]}"])
    return Side("", run)


def rate_of(case: str, rate: float, count: int, runs: int) -> Rate:
    a, b, same = CASES[case]
    made = []
    for number in range(runs):
        sides = side(rate, count, number, a), side(rate, count, number if same else number + 1_000_000, b)
        found = arrivals_of(*sides, paired(sides[0].jobs, sides[1].jobs))
        assert found is not None
        assert found.same == same
        made.append((found.difference_ms["mean"], verdict_of(found)))
    # of machines with a difference the truth is that of all runs together, which is some twenty times as exact
    truth = fmean(each.value for each, _ in made) if case in ("slower", "mixed") else 0.0
    told = [(each.value, verdict) for each, verdict in made if verdict != "cannot tell"]
    wrong = sum(not truth or (value > 0) != (truth > 0) for value, _ in told)
    known = [each for each, _ in made if each.half_width is not None]
    return Rate(runs, len(told), wrong, len(known), sum(not each.holds(truth) for each in known))


def allowed(runs: int) -> int:
    """So many of the runs may be wrong if the error is one of 5 %: three standard deviations more."""
    return ceil(0.05 * runs + 3 * sqrt(0.05 * 0.95 * runs))


def rates(runs: int) -> Iterator[tuple[str, float, Rate]]:
    for case in CASES:
        for rate, count in RATES.items():
            yield case, rate, rate_of(case, rate, count, runs)


@pytest.mark.needs_core
@pytest.mark.parametrize("case", ["mirrored", "other requests"])
def test_equal_machines_are_rarely_told_apart(case: str) -> None:
    found = rate_of(case, 5e5, 300, 40)
    assert found.known > 30
    assert found.wrong == found.told == found.missed <= allowed(40)


@pytest.mark.needs_core
@pytest.mark.long
def test_verdicts_keep_their_5_percent() -> None:
    """Prints a table; docs/diff.md has that of 400 runs."""
    bad = []
    for case, rate, found in rates(min(examples(100), 400)):
        line = f"| {case} | {rate:g} | {found.runs} | {found.told} | {found.wrong} | {found.known} | {found.missed} |"
        print(line, file=sys.stderr)
        if found.wrong > allowed(found.runs) or found.missed > allowed(found.known):
            bad.append(line)
    assert not bad
