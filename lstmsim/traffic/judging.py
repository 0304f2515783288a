"""Does a run keep a bound on a percentile? The answers are certain, or say that they are not."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from statistics import NormalDist

from lstmsim.traffic.saturation import Judged
from lstmsim.traffic.statistics import Interval

__all__ = ["joined", "judged", "of_interval", "of_share", "wilson"]


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
) -> Judged:
    """Judge a percentile of latencies against its bound; a share above 1 - percentile turned away breaks the bound too.

    interval: the percentile, in ms.
    percentile: which one, between 0 and 100.
    served, turned_away: numbers of requests.
    may_leave: whether requests can be turned away at all.
    alike: as in `of_share`.
    widths: how many half widths away from the bound is certain.

    >>> judged(Interval(0.4, 0.01, 20), 0.5, 99.0, served=900, turned_away=100, may_leave=True).verdict
    'above'
    """
    came = served + turned_away
    verdicts = [of_interval(interval, bound_ms, widths) if served else "too few"]
    if may_leave:
        verdicts.append(of_share(turned_away, came, 1 - percentile / 100, alike=alike, widths=widths))
    share = turned_away / came if came else 0.0
    return Judged(bound_ms, interval.value if served else None, interval.half_width, joined(verdicts), served, share)
