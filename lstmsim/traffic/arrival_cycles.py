"""The whole cycles that descriptions of arrivals stand for, one at a time or in arrays.

Everything is exact but for one rounding per arrival: an arrival at the real time t belongs to cycle floor(t * clock),
the cycle within which it falls. Rates, times and clock count as the decimals that they are written as (0.1 is 1/10,
not the double next to it). Random times are sums of whole multiples of 2^-52 of a mean. Both meet in whole numbers of
any length: nothing drifts, not even over billions of arrivals. (Floored arrivals leave the mean wait of M/D/1
unchanged, exactly, where the service takes whole cycles.)

A Poisson process of another rate with the same key is the same process on another scale: no arrival comes later at a
higher rate. Runs at several rates therefore differ by the rate alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import accumulate, islice, repeat
from itertools import count as count_up

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.traffic.arrivals import (
    MAX_CYCLE,
    Bursty,
    Fixed,
    OpenArrivals,
    Periodic,
    Poisson,
    Stream,
    Timestamps,
    exact,
    positive,
)
from lstmsim.traffic.streams import (
    CHUNK,
    UNIT,
    StreamKey,
    below_arrays,
    exponential_arrays,
    exponentials,
    floors,
    floors_of_sums,
)

Ints = NDArray[np.int64]


def arrivals(description: OpenArrivals, count: int, frequency_mhz: float, seed_key: StreamKey = (0,)) -> Iterator[int]:
    """Give the cycles of the first `count` arrivals in order, one at a time, in memory that does not grow.

    description: how requests come.
    frequency_mhz: the clock.
    seed_key: the key of the stream of random numbers; equal keys give equal arrivals on every machine.
    `InputError` for more arrivals than a list of time stamps holds; on the way, for an arrival after `MAX_CYCLE`.

    >>> list(arrivals(Timestamps((0, 7, 7)), 2, 250))
    [0, 7]
    """
    return _one_by_one(arrival_arrays(description, count, frequency_mhz, seed_key))


def arrival_arrays(
    description: OpenArrivals, count: int, frequency_mhz: float, seed_key: StreamKey = (0,), chunk: int = CHUNK
) -> Iterator[Ints]:
    """Give the same cycles as `arrivals` in arrays of shape [`chunk`]; the last one may be shorter."""
    positive("chip", frequency_mhz=frequency_mhz)
    if isinstance(description, Timestamps) and count > len(description.cycles):
        raise InputError(Mistake("timestamps", f"holds {len(description.cycles)} arrivals, expected {count} or more"))
    if count < 0:
        raise InputError(Mistake("count", f"must be at least 0, got {count}"))
    chunk = max(1, min(chunk, count))
    return _bounded(_endless(description, exact(frequency_mhz) * 1000, seed_key, chunk), count)


def deadlines(stream: Stream, count: int, frequency_mhz: float) -> Iterator[int]:
    """Give the cycle at which each of the first `count` frames is due: the next frame's arrival.

    A frame that finishes at that very cycle is in time: its results are there when the next frame arrives.

    >>> list(deadlines(Stream(10), 3, 250))
    [2500000, 5000000, 7500000]
    """
    return _one_by_one(deadline_arrays(stream, count, frequency_mhz))


def deadline_arrays(stream: Stream, count: int, frequency_mhz: float, chunk: int = CHUNK) -> Iterator[Ints]:
    """Give the same cycles as `deadlines` in arrays of shape [`chunk`]; the last one may be shorter."""
    chunk = max(1, min(chunk, count))
    return _bounded(_frames(stream, exact(frequency_mhz) * 1000, chunk, first=1), count)


def _one_by_one(blocks: Iterable[Ints]) -> Iterator[int]:
    for block in blocks:
        yield from block.tolist()


def _endless(description: OpenArrivals, cycles_per_ms: Fraction, key: StreamKey, chunk: int) -> Iterator[Ints]:
    """All arrivals of a description, in arrays; only those of `Timestamps` end."""
    match description:
        case Fixed(interval, start):
            return _evenly(Fraction(interval), start, chunk)
        case Periodic(interval, jitter, start):
            late = below_arrays((*key, "jitter"), jitter + 1, chunk)
            return map(np.add, _evenly(Fraction(interval), start, chunk), late)
        case Stream():
            return _frames(description, cycles_per_ms, chunk)
        case Poisson(rate):
            gap = 1000 * cycles_per_ms / exact(rate)
            return floors_of_sums(exponential_arrays((*key, "gap"), chunk), gap / UNIT)
        case Bursty():
            bursts = _bursts(description, cycles_per_ms, key)
            return (np.array(list(islice(bursts, chunk)), dtype=object) for _ in repeat(None))
        case Timestamps(cycles):
            known = np.array(cycles, dtype=np.int64)
            return (known[first : first + chunk] for first in range(0, len(known), chunk))


def _evenly(interval: Fraction, start: int, chunk: int, first: int = 0) -> Iterator[Ints]:
    """Arrivals number `first` and following, one every `interval` cycles from `start` on."""
    return (floors(np.arange(at, at + chunk), interval, start) for at in count_up(first, chunk))


def _frames(stream: Stream, cycles_per_ms: Fraction, chunk: int, first: int = 0) -> Iterator[Ints]:
    return _evenly(exact(stream.frame_ms) * cycles_per_ms, stream.start_cycle, chunk, first)


def _bursts(bursty: Bursty, cycles_per_ms: Fraction, key: StreamKey) -> Iterator[int]:
    """Arrivals of a Poisson process on a clock that runs only while on; the periods off are added between."""
    gap = 1000 * cycles_per_ms / exact(bursty.on_rate_per_second)
    on, off = exact(bursty.mean_on_ms) * cycles_per_ms, exact(bursty.mean_off_ms) * cycles_per_ms
    common = gap.denominator * on.denominator * off.denominator
    per_gap, per_on, per_off = (int(each * common) for each in (gap, on, off))
    ons, offs = exponentials((*key, "on")), exponentials((*key, "off"))
    end, away = next(ons) * per_on, 0
    for time in accumulate(exponentials((*key, "gap"))):
        now = time * per_gap
        while now >= end:
            away += next(offs) * per_off
            end += next(ons) * per_on
        yield (now + away) // (common * UNIT)


def _bounded(blocks: Iterator[Ints], count: int) -> Iterator[Ints]:
    """The first `count` of these cycles; `InputError` at the first one after `MAX_CYCLE`."""
    while count:
        block = next(blocks)[:count]
        count -= len(block)
        late = int(np.searchsorted(block, MAX_CYCLE, side="right"))
        if late:
            yield block[:late].astype(np.int64, copy=False)
        if late < len(block):
            text = f"would go on to cycle {block[late]}, expected at most {MAX_CYCLE} (2^62)"
            raise InputError(Mistake("arrivals", text))
