"""The highest rate that a machine can bear: bisection over runs of the simulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf, log2

from lstmsim.errors import InputError, Mistake
from lstmsim.serving.arrivals import positive

__all__ = ["Saturation", "Tried", "highest_rate", "most_runs"]

#: Far below what any run can tell apart, and far above the spacing of doubles, where halving would not end.
LEAST_TOLERANCE = 1e-9


#: Share of requests that may be turned away where a percentile of 99 keeps a bound.
MOST_TURNED_AWAY = 0.01


@dataclass(frozen=True)
class Tried:
    """One run: its rate in requests per second, its 99th percentile in ms, the share of requests that were turned away,
    and whether it keeps the bound."""

    rate: float
    p99_ms: float
    kept: bool
    turned_away: float = 0.0


@dataclass(frozen=True)
class Saturation:
    """`rate`: the highest that was seen to keep the bound; None if not even the lowest does.

    `fails_from`: the lowest rate that was seen to break it; None if not even the highest does. The truth lies between
    the two, if the percentile grows with the rate. `runs`: all of them, in the order in which they were made.
    `falls`: neighbouring rates of which the higher one has the lower percentile, where it should not be. They are
    chance where both keep (or both break) the bound; `monotone` says that a rate below `rate` broke it nowhere.
    """

    rate: float | None
    fails_from: float | None
    bound_ms: float
    runs: tuple[Tried, ...]

    @property
    def falls(self) -> tuple[tuple[Tried, Tried], ...]:
        """Pairs of neighbouring rates whose percentiles are the wrong way round."""
        ordered = sorted(self.runs, key=lambda run: run.rate)
        return tuple((low, high) for low, high in pairwise(ordered) if low.p99_ms > high.p99_ms)

    @property
    def monotone(self) -> bool:
        """Does every run below `rate` keep the bound, and none from `fails_from` on?"""
        least, most = self.fails_from or inf, self.rate or 0.0
        return all(run.kept if run.rate <= most else not run.kept for run in self.runs) and most < least


def most_runs(low: float, high: float, tolerance: float, probes: int = 2) -> int:
    """How many runs `highest_rate` makes at most: both ends, one for each halving, and the probes.

    >>> most_runs(100, 1100, tolerance=0.01)
    11
    """
    return 2 + max(0, ceil(log2((high - low) / (tolerance * high)))) + probes


def highest_rate(
    simulate: Callable[[float], float | tuple[float, float]],
    low: float,
    high: float,
    bound_ms: float,
    tolerance: float = 0.01,
    *,
    probes: int = 2,
) -> Saturation:
    """The highest rate between `low` and `high` whose 99th percentile, `simulate(rate)` in ms, is at most `bound_ms`.

    Where requests may be turned away, `simulate` gives the percentile of the others and the share of those; a run that
    turns more than one in a hundred away keeps no bound on what 99 of them get.

    The bracket is halved until it is no wider than `tolerance` times `high`; then `probes` rates, evenly spread
    between `low` and the answer, are tried to see whether they keep the bound too. `most_runs` is how many runs that
    takes at most. With arrivals of one key at all rates (`lstmsim.serving.arrivals`) the percentile of a
    first-come-first-served queue cannot fall with the rate; other machines may break the order, and `monotone` then
    says so. Where a probe breaks the bound, `rate` stays what the bisection found.

    >>> found = highest_rate(lambda rate: 1000 / (1000 - rate), low=100, high=999, bound_ms=5, tolerance=0.001)
    >>> 799 <= found.rate <= 800 < found.fails_from <= 801, found.monotone, len(found.runs)
    (True, True, 14)
    """
    positive("saturation", low=low, high=high, bound_ms=bound_ms, tolerance=tolerance)
    _check(low, high, tolerance, probes)
    runs: list[Tried] = []

    def keeps(rate: float) -> bool:
        found = simulate(rate)
        p99, away = found if isinstance(found, tuple) else (found, 0.0)
        if not p99 >= 0:
            raise InputError(Mistake("saturation", f"the run at {rate} requests per second gave a p99 of {p99} ms"))
        runs.append(Tried(rate, p99, p99 <= bound_ms and away <= MOST_TURNED_AWAY, away))
        return runs[-1].kept

    if not keeps(low):
        return Saturation(None, low, bound_ms, tuple(runs))
    best, worst = low, high
    fails: float | None = None
    if keeps(high):
        best = high
    else:
        fails = high
        while worst - best > tolerance * high:
            middle = (best + worst) / 2
            if keeps(middle):
                best = middle
            else:
                worst = fails = middle
    for place in range(1, probes + 1):
        rate = low + (best - low) * place / (probes + 1)
        if all(run.rate != rate for run in runs):
            keeps(rate)
    return Saturation(best, fails, bound_ms, tuple(runs))


def _check(low: float, high: float, tolerance: float, probes: int) -> None:
    wrong = []
    if not low < high:
        wrong.append(Mistake("saturation: high", f"must be above low ({low}), got {high}"))
    if tolerance < LEAST_TOLERANCE:
        wrong.append(Mistake("saturation: tolerance", f"must be at least {LEAST_TOLERANCE}, got {tolerance}"))
    if probes < 0:
        wrong.append(Mistake("saturation: probes", f"must be at least 0, got {probes}"))
    if wrong:
        raise InputError(wrong)
