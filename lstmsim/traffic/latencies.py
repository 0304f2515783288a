"""Latencies of ever so many requests in bounded memory: all of them while they fit, then a histogram.

Up to `KEPT` latencies are kept one by one and every figure is exact. With one more, a tenth of the latencies is left
out as warm-up; the rest and all that follow go into histograms. Mean and maximum stay exact, a percentile is off by at
most 1 / 2048 of itself. `Series.exact` says which of the two cases it is.

The histogram has a bucket for each whole number below 2048, and 1024 equal buckets for each power of two above (as in
HdrHistogram by G. Tene); a percentile is the middle of its bucket.

Of a tenant a `Sample` is kept: all latencies and waits while there is room, then one of every 2, 4, 8 ... Which of two
neighbours stays is drawn, so that a pattern in the traffic (every other request is a large one, say) does not decide
it; it depends on the requests' places alone, and not on when room was short. The requests that stay are exact and in
their order: a percentile of them is that of a random sample, and its interval is as wide as that of so many requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.units import rank_below
from lstmsim.traffic import intervals

Ints = NDArray[np.int64]

#: Latencies that are kept one by one: 8 MB.
KEPT = 2**20
#: A tenant has room for at least so many, however many tenants there are: 64 KB each.
LEAST_KEPT = 4096
#: The largest number that has four bytes.
_SMALL = 2**31 - 1
PERCENTILES = (50.0, 95.0, 99.0, 99.9)

_PARTS = 1024
_POWERS = np.array([2 * _PARTS << shift for shift in range(52)], dtype=np.int64)


@dataclass(frozen=True)
class Distribution:
    """Mean and percentiles of times in cycles, with confidence intervals.

    requests: number of times (without warm-up).
    percentiles: by percent.
    exact: whether every single number was kept; otherwise percentiles are off by at most 1 / 2048 of themselves.
    units: relaxations of the queue that the requests hold, as the intervals take it.
    """

    requests: int
    mean: intervals.Interval
    percentiles: dict[float, intervals.Interval]
    max: int
    exact: bool
    units: float = 0.0

    @property
    def p50(self) -> intervals.Interval:
        """The median."""
        return self.percentiles[50.0]

    @property
    def p95(self) -> intervals.Interval:
        """The 95th percentile."""
        return self.percentiles[95.0]

    @property
    def p99(self) -> intervals.Interval:
        """The 99th percentile."""
        return self.percentiles[99.0]


def no_times(percentiles: Sequence[float]) -> Distribution:
    """The distribution of no times at all, whose values mean nothing."""
    return Distribution(0, intervals.Interval(0.0), {each: intervals.Interval(0.0) for each in percentiles}, 0, True)


class Histogram:
    """How often whole numbers from 0 below 2^62 occurred, in buckets no wider than 1 / 1024 of what they hold.

    >>> histogram = Histogram()
    >>> histogram.add(np.array([3, 5, 5, 1_000_000]))
    >>> histogram.percentile(50), abs(histogram.percentile(100) - 1_000_000) <= 1_000_000 / 2048
    (5.0, True)
    """

    def __init__(self) -> None:
        self.counts: Ints = np.zeros(0, dtype=np.int64)
        self.requests = 0
        self.total = 0

    def add(self, values: Ints) -> None:
        """Count these values, shape [values]."""
        shift = np.searchsorted(_POWERS, values, side="right")
        self._join(np.bincount(shift * _PARTS + (values >> shift)), len(values), sum_of(values))

    def join(self, other: Histogram) -> None:
        """Count what the other histogram has counted."""
        self._join(other.counts, other.requests, other.total)

    def _join(self, counts: Ints, requests: int, total: int) -> None:
        if len(counts) > len(self.counts):
            self.counts = np.concatenate([self.counts, np.zeros(len(counts) - len(self.counts), dtype=np.int64)])
        self.counts[: len(counts)] += counts
        self.requests += requests
        self.total += total

    def percentile(self, percent: float) -> float:
        """Give a percentile, linear between ranks as for single numbers; at least one number must have been counted."""
        below, rest, whole = rank_below(self.requests, percent)
        until = np.cumsum(self.counts)
        ranks = [below, min(below + 1, self.requests - 1)]
        one, two = (_middle(int(each)) for each in np.searchsorted(until, ranks, side="right"))
        return one + (two - one) * (rest / whole)

    def share_to(self, value: float) -> float:
        """Give the share of the numbers that lie in the bucket of `value` or below it."""
        least = int(value)
        shift = int(np.searchsorted(_POWERS, least, side="right"))
        return int(self.counts[: shift * _PARTS + (least >> shift) + 1].sum()) / self.requests

    @property
    def least(self) -> float:
        """The smallest number, as the middle of its bucket."""
        return _middle(int(np.flatnonzero(self.counts)[0]))

    @property
    def variance(self) -> float:
        """The variance of the numbers, each taken as the middle of its bucket."""
        middles = np.array([_middle(each) for each in np.flatnonzero(self.counts).tolist()])
        weights = self.counts[self.counts > 0]
        return float(np.average((middles - np.average(middles, weights=weights)) ** 2, weights=weights))


class Series:
    """Numbers in the order in which they come, the first `kept` one by one, and their distribution."""

    def __init__(self, kept: int = KEPT) -> None:
        self.kept = kept
        self.count = 0
        self._values: Ints = np.zeros(min(kept, 4096), dtype=np.int64)
        self._batches: list[Histogram] | None = None
        self._batch_size = 0
        self._max = 0

    @property
    def exact(self) -> bool:
        """Whether all numbers are still there one by one."""
        return self._batches is None

    @property
    def values(self) -> Ints:
        """The numbers one by one, while `exact`."""
        return self._values[: self.count]

    def add(self, values: Ints) -> None:
        """Take further numbers from 0 below 2^62; while `exact`, only as many as there is room for (`kept` in all)."""
        if self._batches is not None:
            self._add_to_batches(values)
            return
        until = self.count + len(values)
        if until > len(self._values):
            grown = np.zeros(min(self.kept, max(until, 2 * len(self._values))), dtype=np.int64)
            grown[: self.count] = self.values
            self._values = grown
        self._values[self.count : until] = values
        self.count = until

    def summarize(self, warmup: int) -> None:
        """Put all but the first `warmup` numbers into histograms; from now on no number is kept one by one."""
        values, self._values = self.values[warmup:], np.zeros(0, dtype=np.int64)
        self._batches, self._batch_size, self.count = [], max(1, -(-len(values) // intervals.BATCHES)), 0
        self._add_to_batches(values)

    def _add_to_batches(self, values: Ints) -> None:
        assert self._batches is not None
        self.count += len(values)
        self._max = max(self._max, int(values.max(initial=0)))
        while len(values):
            if not self._batches or self._batches[-1].requests == self._batch_size:
                if len(self._batches) == 2 * intervals.BATCHES:
                    for one, two in zip(self._batches[::2], self._batches[1::2], strict=True):
                        one.join(two)
                    self._batches = self._batches[::2]
                    self._batch_size *= 2
                self._batches.append(Histogram())
            room = self._batch_size - self._batches[-1].requests
            self._batches[-1].add(values[:room])
            values = values[room:]

    def grows(self, warmup: int, relaxation: float) -> bool:
        """Say whether the numbers grow all the time, where a stable queue would have settled long ago.

        The answer is False where there are too few numbers; `warmup` and `relaxation` are as in `distribution`.
        """
        if self._batches is None:
            values = self.values[warmup:]
            means = (
                [float(row.mean()) for row in _rows(values, intervals.BATCHES)]
                if len(values) >= intervals.BATCHES
                else []
            )
            return len(values) >= intervals.MEAN_UNITS * relaxation and intervals.growing(means)
        means = [each.total / each.requests for each in self._batches if each.requests == self._batch_size]
        return self.count >= intervals.MEAN_UNITS * relaxation and intervals.growing(means)

    def distribution(
        self, warmup: int, *, relaxation: float | None = None, percentiles: Sequence[float] = PERCENTILES
    ) -> Distribution:
        """Give mean and percentiles of all but the first `warmup` numbers (after `summarize` these are gone already).

        relaxation: about how many of these numbers pass until what they measure has forgotten its past, at least 1;
            None: unknown, and it is estimated with caution (`lstmsim.traffic.intervals`).
        """
        if self._batches is None:
            return _of_values(self.values[warmup:], relaxation, percentiles)
        return _of_histograms(self._batches, self._batch_size, self._max, relaxation, percentiles)


def sum_of(values: Ints) -> int:
    """Give the exact sum of whole numbers from 0 below 2^62, however many."""
    return (int((values >> 31).sum()) << 31) + int((values & (2**31 - 1)).sum())


def _rows(values: Ints, number: int) -> Ints:
    size = len(values) // number
    return values[: size * number].reshape(number, size)


def _of_values(values: Ints, relaxation: float | None, wanted: Sequence[float]) -> Distribution:
    ordered, number = np.sort(values), len(values)
    units = intervals.forgetting(intervals.spreads_of(values), float(np.var(values, dtype=np.float64)), relaxation)
    rows = _rows(values, intervals.batch_number(number, units))
    size = rows.shape[1]
    means = intervals.Spread([sum_of(row) / size for row in rows] if size else [], size)
    mean = intervals.mean_interval(sum_of(values) / number, float(ordered[0]), means, number, units)

    def shares(value: float) -> intervals.Spread:
        return intervals.Spread((rows <= value).mean(axis=1).tolist() if size else [], size)

    percentiles = _intervals(wanted, lambda percent: _percentile(ordered, percent), shares, number, units)
    return Distribution(number, mean, percentiles, int(ordered[-1]), True, number / units)


def _of_histograms(
    batches: list[Histogram], size: int, most: int, relaxation: float | None, wanted: Sequence[float]
) -> Distribution:
    whole, full = Histogram(), [batch for batch in batches if batch.requests == size]
    for batch in batches:
        whole.join(batch)
    number, means = whole.requests, intervals.Spread([batch.total / size for batch in full], size)
    units = intervals.forgetting([means], whole.variance, relaxation)
    mean = intervals.mean_interval(whole.total / number, whole.least, means, number, units)

    def shares(value: float) -> intervals.Spread:
        return intervals.Spread([batch.share_to(value) for batch in full], size)

    percentiles = _intervals(wanted, whole.percentile, shares, number, units)
    return Distribution(number, mean, percentiles, most, False, number / units)


def _intervals(
    wanted: Sequence[float],
    percentile: Callable[[float], float],
    shares: Callable[[float], intervals.Spread],
    number: int,
    units: float,
) -> dict[float, intervals.Interval]:
    """Intervals of the percentiles; `shares`: of each batch, the share of its numbers up to a value."""
    values = {percent: percentile(percent) for percent in wanted}
    return {
        percent: intervals.tail_interval(percent, value, shares(value), number, units, percentile)
        for percent, value in values.items()
    }


def _percentile(ordered: Ints, percent: float) -> float:
    """Linear between ranks, as in the report of a simulation."""
    below, rest, whole = rank_below(len(ordered), percent)
    one, two = int(ordered[below]), int(ordered[min(below + 1, len(ordered) - 1)])
    return one + (two - one) * (rest / whole)


def _middle(bucket: int) -> float:
    if bucket < 2 * _PARTS:
        return float(bucket)
    shift = bucket // _PARTS - 1
    return float((bucket - shift * _PARTS << shift) + ((1 << shift) - 1) / 2)


class Sample:
    """Pairs of latency and wait in the order in which they come: a sample of at most `room` of them.

    count, max: number of pairs that have come, and the largest latency of them all.
    one_of: one of so many is kept.
    """

    def __init__(self, room: int) -> None:
        self.room, self.count, self.one_of, self.max, self._kept = room, 0, 1, 0, 0
        #: In half the memory as long as all numbers are small.
        self._pairs: NDArray[Any] = np.zeros((2, 0), dtype=np.int32)

    @property
    def latency(self) -> Ints:
        """The latencies that are kept."""
        return self._pairs[0, : self._kept].astype(np.int64)

    @property
    def wait(self) -> Ints:
        """The waits of the same requests."""
        return self._pairs[1, : self._kept].astype(np.int64)

    def add(self, latency: Ints, wait: Ints) -> None:
        """Take further requests, shape [requests] each."""
        if not len(latency):
            return
        places = np.arange(self.count, self.count + len(latency))
        self.count += len(latency)
        self.max = max(self.max, int(latency.max()))
        self._thin()
        stay = np.ones(len(places), dtype=np.bool_)
        for level in range(1, self.one_of.bit_length()):
            stay &= _drawn(places >> level, level) == (places >> (level - 1)) & 1
        more = int(stay.sum())
        if max(self.max, int(wait.max())) > _SMALL:
            self._pairs = self._pairs.astype(np.int64, copy=False)
        if self._kept + more > self._pairs.shape[1]:
            size = max(self._kept + more, min(self.room, 2 * self._kept))
            grown = np.zeros((2, size), dtype=self._pairs.dtype)
            grown[:, : self._kept] = self._pairs[:, : self._kept]
            self._pairs = grown
        self._pairs[0, self._kept : self._kept + more] = latency[stay]
        self._pairs[1, self._kept : self._kept + more] = wait[stay]
        self._kept += more

    def _thin(self) -> None:
        """Drop every second pair until there is room."""
        while -(-self.count // self.one_of) > self.room:
            level = self.one_of.bit_length()
            # What is kept at place p is of group p: only the last group may have nobody yet.
            groups = np.arange(self._kept)
            stay = _drawn(groups >> 1, level) == groups & 1
            self._pairs = self._pairs[:, : self._kept][:, stay]
            self._kept = int(stay.sum())
            self.one_of *= 2

    def distributions(
        self, warmup: int | None, relaxation: float | None, percentiles: Sequence[float] = PERCENTILES
    ) -> tuple[Distribution, Distribution] | None:
        """Give the distributions of latencies and waits; None if there are no requests.

        The largest latency is that of all requests, also where only a sample is kept.

        warmup: number of the first requests that are left out; None: a tenth.
        relaxation: about how many requests of this tenant pass until the queue has forgotten its past; None: unknown.
        """
        cut = self._kept // 10 if warmup is None else min(-(-warmup // self.one_of), self._kept - 1)
        if not self._kept:
            return None
        made = []
        for values in (self.latency, self.wait):
            series = Series(self._kept)
            series.add(values)
            own = None if relaxation is None else max(1.0, relaxation / self.one_of)
            made.append(series.distribution(cut, relaxation=own, percentiles=percentiles))
        if self.one_of == 1:
            return made[0], made[1]
        return replace(made[0], max=self.max, exact=False), replace(made[1], exact=False)


def _drawn(groups: Ints, level: int) -> Ints:
    """Which half of each group stays, 0 or 1, as good as drawn: the mixing of SplitMix64.

    Source: Steele, Lea, Flood: Fast splittable pseudorandom number generators; OOPSLA 2014, doi
    10.1145/2660193.2660195.
    """
    mixed = groups.astype(np.uint64) * np.uint64(64) + np.uint64(level)
    mixed = (mixed + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) & np.uint64(1)).astype(np.int64)
