"""Latencies and waits of a tenant in little memory: all of them while there is room, then one of every 2, 4, 8 ...

Which of two neighbours stays is drawn, so that a pattern in the traffic (every other request is a large one, say) does
not decide it; it depends on the requests' places alone, and not on when room was short. The requests that stay are
exact and in their order: a percentile of them is that of a random sample, and its interval is as wide as that of so
many requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lstmsim.traffic.latencies import PERCENTILES, Distribution, Series

__all__ = ["LEAST_KEPT", "Sample"]

Ints = NDArray[np.int64]

#: A tenant has room for at least so many, however many tenants there are: 64 KB each.
LEAST_KEPT = 4096


class Sample:
    """Pairs of numbers (latency and wait) in the order in which they come; a sample of them once there are more than
    `room`.

    room: how many pairs are kept at most.
    count: how many pairs have come.
    one_of: one of so many is kept.
    max: the largest latency that has come.

    >>> sample = Sample(room=1000)
    >>> sample.add(np.arange(3000), np.zeros(3000, dtype=np.int64))
    >>> sample.one_of, 650 < len(sample.latency) < 850, sample.max
    (4, True, 2999)
    """

    def __init__(self, room: int) -> None:
        self.room, self.count = room, 0
        #: One of so many is kept.
        self.one_of = 1
        self.max = 0
        self._kept = 0
        self._pairs: Ints = np.zeros((2, 0), dtype=np.int64)

    @property
    def latency(self) -> Ints:
        """The latencies that are kept."""
        return self._pairs[0, : self._kept]

    @property
    def wait(self) -> Ints:
        """The waits of the same requests."""
        return self._pairs[1, : self._kept]

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
        if self._kept + more > self._pairs.shape[1]:
            grown = np.zeros((2, max(self._kept + more, min(self.room, 2 * self._kept))), dtype=np.int64)
            grown[:, : self._kept] = self._pairs[:, : self._kept]
            self._pairs = grown
        self._pairs[0, self._kept : self._kept + more] = latency[stay]
        self._pairs[1, self._kept : self._kept + more] = wait[stay]
        self._kept += more

    def shrink(self, room: int) -> None:
        """Keep no more than `room` pairs from now on."""
        self.room = room
        self._thin()

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
        self,
        warmup: int | None,
        confidence: float,
        relaxation: float | None,
        percentiles: Sequence[float] = PERCENTILES,
    ) -> tuple[Distribution, Distribution] | None:
        """Give the distributions of latencies and waits; None if there are no requests.

        The largest latency is that of all requests, also where only a sample is kept.

        warmup: how many of the first requests are left out; None: a tenth.
        confidence: of the intervals, between 0 and 1.
        relaxation: about how many requests of this tenant pass until the queue has forgotten its past; None: unknown.
        percentiles: which percentiles.
        """
        cut = self._kept // 10 if warmup is None else min(-(-warmup // self.one_of), self._kept - 1)
        if not self._kept:
            return None
        made = []
        for values in (self.latency, self.wait):
            series = Series(self._kept)
            series.add(values)
            own = None if relaxation is None else max(1.0, relaxation / self.one_of)
            made.append(series.distribution(cut, confidence, relaxation=own, percentiles=percentiles))
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
