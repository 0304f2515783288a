"""Does a run keep a bound on a percentile? The answers are certain, or say that they are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log, sqrt
from statistics import NormalDist

from lstmsim.traffic.saturation import Judged
from lstmsim.traffic.statistics import Interval

__all__ = ["far_above", "joined", "judged", "of_beyond", "of_interval", "of_share", "wilson"]

#: Chance that `of_beyond` says `above` of a percentile that keeps its bound, at each look.
_WRONG = 0.0025
#: Each look at the share of requests beyond a bound is so many times as far out as the one before.
_FURTHER = 1.5


def far_above(percentile: float) -> tuple[float, ...]:
    """Give the percentiles that tell how many requests lie beyond a bound: those of 1.5, 2.25 ... times as many.

    >>> [round(each, 2) for each in far_above(99.0)[:3]], len(far_above(99.0))
    ([98.5, 97.75, 96.62], 11)
    """
    share, wanted = 1 - percentile / 100, []
    while (share := share * _FURTHER) < 1:
        wanted.append(100 * (1 - share))
    return tuple(wanted)


def of_beyond(share: float, most: float, units: float) -> bool:
    """Say whether so large a share of requests beyond a bound is certainly more than `most`, interval or not.

    Requests beyond a high level come in clumps whose number is that of a Poisson process and whose sizes are
    exponential, of one relaxation on average (Aldous: Probability approximations via the Poisson clumping heuristic;
    Springer, 1989). Of such a sum S with mean m, in relaxations, Chernoff's bound is
    P(S >= s) <= exp(-(sqrt(s) - sqrt(m))^2).

    share: of the requests, how many lie beyond the bound.
    most: the share that may.
    units: how many relaxations of the queue the run holds.

    >>> of_beyond(0.3, 0.01, units=40), of_beyond(0.3, 0.01, units=20), of_beyond(0.02, 0.01, units=1000)
    (True, False, False)
    """
    return share > most and (sqrt(share) - sqrt(most)) ** 2 * units >= -log(_WRONG)


def wilson(share: float, number: float, confidence: float = 0.95, widths: float = 1.0) -> tuple[float, float]:
    """Give the lower and the upper end of the interval of a probability.

    share: the share of trials in which the event was seen.
    number: how many independent trials there were.
    widths: how many times as wide the interval is made.

    Source: Wilson, Probable inference, the law of succession, and statistical inference; Journal of the American
    Statistical Association 22, 1927.

    >>> [round(each, 4) for each in wilson(0.01, 1000)]
    [0.0054, 0.0183]
    """
    if number <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2) * widths
    middle = share + z * z / (2 * number)
    half = z * sqrt(share * (1 - share) / number + z * z / (4 * number * number))
    least, most = ((middle + sign * half) / (1 + z * z / number) for sign in (-1, 1))
    return max(0.0, least), min(1.0, most)


def of_interval(interval: Interval, bound: float, widths: float = 1.0) -> str:
    """Say where an interval lies: `below` or `above` the bound, `cannot tell` (around it), `too few` (no interval).

    widths: how many half widths away from the bound is certain.

    >>> of_interval(Interval(10.0, 1.0, 20), 12.0), of_interval(Interval(10.0, 1.0, 20), 12.0, widths=3)
    ('below', 'cannot tell')
    >>> of_interval(Interval(10.0), 12.0)
    'too few'
    """
    if interval.half_width is None:
        return "too few"
    if interval.value + widths * interval.half_width <= bound:
        return "below"
    return "above" if interval.value - widths * interval.half_width > bound else "cannot tell"


def of_share(turned_away: int, came: int, most: float, *, alike: float = 1.0, widths: float = 1.0) -> str:
    """Say whether the share of requests that are turned away is at most `most`, by the interval of `wilson`.

    turned_away, came: numbers of requests.
    alike: of about so many neighbouring requests one tells as much as all, for they meet the same queue (at least 1).
    widths: as in `wilson`.

    >>> of_share(0, 10_000, 0.01), of_share(0, 100, 0.01), of_share(500, 10_000, 0.01)
    ('below', 'cannot tell', 'above')
    """
    least, highest = wilson(turned_away / came if came else 0.0, came / max(1.0, alike), widths=widths)
    if highest <= most:
        return "below"
    return "above" if least > most else "cannot tell"


def joined(verdicts: Iterable[str]) -> str:
    """Give the verdict on all bounds together: one broken bound is enough to break them, and all must be kept.

    >>> joined(["below", "cannot tell"]), joined(["too few", "above"]), joined(["below", "below"])
    ('cannot tell', 'above', 'below')
    """
    known = set(verdicts)
    return next(each for each in ("unstable", "above", "too few", "cannot tell", "below") if each in known)


def judged(
    interval: Interval,
    bound_ms: float,
    percentile: float,
    *,
    served: int,
    turned_away: int,
    may_leave: bool,
    alike: float = 1.0,
    widths: float = 1.0,
    others: Mapping[float, float] | None = None,
    units: float = 0.0,
) -> Judged:
    """Judge a percentile of latencies against its bound; a share above 1 - percentile turned away breaks the bound too.

    A bound that far more requests exceed than may is broken even where there is no interval (`of_beyond`).

    interval: the percentile, in ms.
    percentile: which one, between 0 and 100.
    served, turned_away: numbers of requests.
    may_leave: whether requests can be turned away at all.
    alike: as in `of_share`.
    widths: how many half widths away from the bound is certain.
    others: the percentiles of `far_above`, in ms; None: unknown.
    units: how many relaxations of the queue the run holds.

    >>> judged(Interval(0.4, 0.01, 20), 0.5, 99.0, served=900, turned_away=100, may_leave=True).verdict
    'above'
    >>> judged(Interval(3.5), 0.5, 99.0, served=9, turned_away=0, may_leave=False, others={60.0: 0.6}, units=40).verdict
    'above'
    """
    came, most = served + turned_away, 1 - percentile / 100
    verdicts = [of_interval(interval, bound_ms, widths) if served else "too few"]
    beyond = max((1 - each / 100 for each, value in (others or {}).items() if value > bound_ms), default=0.0)
    if of_beyond(beyond, most, units):
        verdicts = ["above"]
    if may_leave:
        verdicts.append(of_share(turned_away, came, most, alike=alike, widths=widths))
    share = turned_away / came if came else 0.0
    value = interval.value if served else None
    return Judged(bound_ms, value, interval.half_width, joined(verdicts), served, share, beyond)
