"""Intervals of what a run does per unit of time: throughput, goodput, the share in time, the share of time taken.

The run is cut into equal times, and these are put together into batches, as requests are for the intervals of
latencies: the same gates, the same t, the same veto (`lstmsim.traffic.intervals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import expm1, inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.traffic import intervals
from lstmsim.traffic.latencies import Distribution

Ints = NDArray[np.int64]

#: Most equal times that are kept; when they are full, two become one.
TIMES = 128
#: Of fewer independent excursions than this a share is too skew for Student's t.
EXCURSIONS = 50.0
#: What is counted in each of them.
SERVED, IN_TIME, ASKED, ATTAINED = range(4)


@dataclass(frozen=True)
class Rates:
    """Rates of a run, or of a tenant of it, with 95 % intervals.

    throughput, goodput: requests that are served, and served in time, per second.
    attainment: of the requests with a deadline, the share that is served in time; None: none has one.
    utilization: the share of time in which threads are taken; None: of a tenant.
    """

    throughput: intervals.Interval
    goodput: intervals.Interval
    attainment: intervals.Interval | None = None
    utilization: intervals.Interval | None = None

    def named(self) -> dict[str, intervals.Interval]:
        """Give the known ones by their keys in JSON."""
        known = {"throughput_per_second": self.throughput, "goodput_per_second": self.goodput}
        more = {"attainment": self.attainment, "utilization": self.utilization}
        return known | {name: each for name, each in more.items() if each is not None}


class Span(NamedTuple):
    """The part of a run that rates are of: its first cycle, its last, and the clock."""

    start: int
    end: int
    frequency_mhz: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end - self.start) / (self.frequency_mhz * 1e6)


class Tally:
    """Counts finishes in equal times, the first of which begins at cycle `origin`; `last` is the last finish.

    The rows of `counts`: requests served, served in time, with a deadline, and with a deadline that was kept.
    """

    def __init__(self, origin: int) -> None:
        self.origin, self.width, self.last = origin, 1, origin
        self.counts: Ints = np.zeros((4, TIMES), dtype=np.int64)

    def add(self, finishes: Ints, marks: NDArray[np.bool_]) -> None:
        """Count requests by when they left; the rows of `marks` say whether each belongs to a row of `counts`."""
        while int(finishes.max()) - self.origin >= self.width * TIMES:
            self._widen()
        self.last = max(self.last, int(finishes.max()))
        place = (finishes - self.origin) // self.width
        for counts, mark in zip(self.counts, marks, strict=True):
            counts += np.bincount(place[mark], minlength=TIMES)

    def _widen(self) -> None:
        joined = self.counts[:, ::2] + self.counts[:, 1::2]
        self.counts = np.concatenate([joined, np.zeros_like(joined)], axis=1)
        self.width *= 2

    def join(self, other: Tally) -> None:
        """Count what the other tally of the same origin has counted."""
        while self.width < other.width:
            self._widen()
        finer = Tally(other.origin)
        finer.width, finer.counts = other.width, other.counts
        while finer.width < self.width:
            finer._widen()
        self.counts = self.counts + finer.counts
        self.last = max(self.last, other.last)

    def whole(self, start: int, end: int) -> Ints:
        """Give the counts of those times that lie between two cycles as a whole, shape [4, times]."""
        first, last = -((self.origin - start) // self.width), (end - self.origin) // self.width
        return self.counts[:, max(0, first) : max(0, last)]


def relaxation_in(latency: Distribution | None, one_of: int = 1) -> float:
    """Give about how many requests pass until the queue has forgotten its past, as the intervals of latencies take it.

    latency: of these requests, or of one of `one_of`; None: of none.
    """
    return inf if latency is None or not latency.units else one_of * latency.requests / latency.units


def rates_of(tally: Tally, span: Span, values: tuple[float, float, float | None], relaxation: float) -> Rates:
    """Give throughput, goodput and attainment with their intervals.

    span: the part of the run that throughput and goodput are of.
    values: throughput and goodput per second, attainment.
    relaxation: of the queue, in requests.
    """
    inside, per = tally.whole(span.start, span.end), span.frequency_mhz * 1e6 / tally.width
    throughput, goodput = (
        level_interval(value, inside[row], per, int(inside[SERVED].sum()), relaxation)
        for row, value in ((SERVED, values[0]), (IN_TIME, values[1]))
    )
    asked, attainment = int(tally.counts[ASKED].sum()), None
    if values[2] is not None:
        used = slice(0, int(np.flatnonzero(tally.counts[ASKED]).max()) + 1)
        # of the requests with a deadline fewer pass in the same time
        own = relaxation * asked / max(1, int(tally.counts[SERVED].sum()))
        attainment = share_interval(tally.counts[ATTAINED, used], tally.counts[ASKED, used], max(1.0, own))
        skew = _skew(attainment.value, asked, max(1.0, own))
        if skew and attainment.half_width is not None and goodput.half_width is not None:
            # what is too skew as a share is too skew as a rate
            goodput = replace(goodput, half_width=max(goodput.half_width, values[0] * attainment.half_width))
    return Rates(_unless_over(throughput, tally, span), _unless_over(goodput, tally, span), attainment)


def _unless_over(level: intervals.Interval, tally: Tally, span: Span) -> intervals.Interval:
    """The interval of a rate, or none where these requests are over so long before the run that its mean tells less."""
    over = max(0, span.end - tally.last) / max(1, span.end - span.start) * level.value
    return replace(level, half_width=None) if (level.half_width or inf) < over else level.within(0)


def level_interval(value: float, counts: ArrayLike, per: float, requests: int, units: float) -> intervals.Interval:
    """Give the 95 % interval of a level, such as a rate; without half width if the requests are too few.

    counts, requests: of each equal time, and how many requests fall into all of them; `per`: level of a count of one.
    units: the relaxation of the queue, in requests.
    """
    sums, each = _batches([counts], requests, units)
    if sums is None:
        return intervals.Interval(value)
    plain = intervals.batch_interval(value, (sums[0] / each * per).tolist())
    return intervals.unless_alike(plain, intervals.widened(plain, requests / sums.shape[1], units))


def share_interval(part: ArrayLike, whole: ArrayLike, units: float) -> intervals.Interval:
    """Give the 95 % interval of a share, such as that of requests in time.

    Near 0 and 1, where fewer than `EXCURSIONS` independent excursions are to be expected, it is Wilson's, with the
    larger side for both: of two relaxations one request tells as much as all.
    """
    requests = int(np.sum(whole))
    value = int(np.sum(part)) / requests if requests else 0.0
    sums, _ = _batches([part, whole], requests, units)
    if sums is None:
        return intervals.Interval(value)
    if _skew(value, requests, units):
        low, high = intervals.wilson(value, requests / (2 * units))
        return intervals.Interval(value, max(high - value, value - low), sums.shape[1]).within(0, 1)
    parts, wholes = sums
    plain = intervals.batch_interval(value, (value + (parts - value * wholes) / wholes.mean()).tolist())
    half = max(intervals.widened(plain, requests / sums.shape[1], units), sqrt(value * (1 - value) / requests))
    return intervals.unless_alike(plain, half).within(0, 1)


def unless_sure(taken: intervals.Interval, requests: int, units: float) -> intervals.Interval:
    """Give the interval of the share of time in which threads are taken, as wide as Wilson's where they hardly idle.

    So near to 1 fewer than `EXCURSIONS` independent idle times are to be expected: batches without one are all alike.
    """
    if taken.half_width is None or taken.value < 0.5 or not _skew(taken.value, requests, units):
        return taken.within(0, 1)
    low, high = intervals.wilson(taken.value, requests / (2 * units))
    return replace(taken, half_width=max(taken.half_width, high - taken.value, taken.value - low)).within(0, 1)


def no_surer(rates: Rates, taken: intervals.Interval | None, seconds: float = inf, *, alike: bool = False) -> Rates:
    """Give rates no surer than the share of time taken, which limits them where requests are rejected or clients wait.

    A run with few idle times has a high throughput and a narrow interval at once; the logarithm of the room has not.
    Batches of a run of so many `seconds` count whole requests: of each, one is not known, even if all are equal.
    alike: all services take equally long, so that no rate is beyond that of threads that never idle.
    """
    own, good = rates.throughput, rates.goodput
    if own.half_width is None or taken is None or taken.half_width is None or not taken.value:
        unsure = (each if each.half_width else replace(each, half_width=None) for each in (own, good))
        return replace(rates, **dict(zip(("throughput", "goodput"), unsure, strict=True)))
    room = own.value * (1 - taken.value) / taken.value
    seen = max(own.half_width, own.batches / seconds if seconds else 0.0)
    bent = room * expm1(min(seen / room, 50.0)) if room > 0 else inf
    half = max(seen, min(bent, own.value * taken.half_width / taken.value))
    most = own.value / taken.value if alike else inf
    goods = None if good.half_width is None else max(good.half_width, half * good.value / (own.value or 1.0))
    throughput = replace(own, half_width=half, ends=None).within(0, most)
    return replace(rates, throughput=throughput, goodput=replace(good, half_width=goods, ends=None).within(0, most))


def _skew(share: float, requests: int, units: float) -> bool:
    return requests * min(share, 1 - share) < EXCURSIONS * units


def _batches(rows: Sequence[ArrayLike], requests: int, units: float) -> tuple[NDArray[np.float64] | None, int]:
    """The rows summed over batches of equal times, and how many times a batch has; None: there are too few requests."""
    values = np.asarray(rows, dtype=np.float64)
    if requests < intervals.MEAN_UNITS * units:
        return None, 0
    each = max(1, values.shape[1] // intervals.batch_number(requests, units))
    number = values.shape[1] // each
    if number < intervals.BATCHES:
        return None, 0
    return values[:, : number * each].reshape(len(values), number, each).sum(axis=2), each
